/** Streams and signals of a command that runs in this process. No signal arrives, and nothing exits. */
import { PassThrough } from 'node:stream'
import type { Io } from '../../src/commands/terminal/io.ts'
import { Redactor } from '../../src/redactor.ts'

/** `own`: what the test gives or looks at itself. */
export const ioWith = <T extends Partial<Io>>(own: T): Io & T => ({
  stdin: new PassThrough(),
  stdout: new PassThrough(),
  stderr: new PassThrough(),
  interrupted: new AbortController().signal,
  crashed: new AbortController().signal,
  redactor: new Redactor(),
  onHangup: () => () => undefined,
  atExit: () => () => undefined,
  ...own,
})
