/** Streams and signals of a command that runs in this process. No signal arrives, and nothing exits. */
import { detachedIo } from '../../src/commands/terminal/io.ts'
import type { Io } from '../../src/commands/terminal/io.ts'

/** `own`: what the test gives or looks at itself. */
export const ioWith = <T extends Partial<Io>>(own: T): Io & T => ({ ...detachedIo(), ...own })
