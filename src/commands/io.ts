/** What a command has of the process: streams, signals, and the words for how it ended. */
import type { Readable, Writable } from 'node:stream'
import type { Configuration } from '../config/options.ts'
import type { Context } from '../config/surroundings.ts'

export interface Io {
  readonly stdin: Readable & { isTTY?: boolean }
  readonly stdout: Writable & { isTTY?: boolean }
  readonly stderr: Writable & { isTTY?: boolean }
  /** SIGINT or SIGTERM. */
  readonly interrupted: AbortSignal
  /** SIGHUP: read the configuration again. Returns how to stop listening. */
  readonly onHangup: (callback: () => void) => () => void
}

/** PRODUCT 2. */
export const EXIT = {
  ok: 0,
  usage: 1,
  config: 2,
  authorization: 3,
  unreachable: 4,
  tool: 5,
  mismatch: 6,
  internal: 70,
  interrupted: 130,
} as const

/** What a command is given: the configuration, how to read it again, and how it was asked. */
export interface Invocation {
  readonly configuration: Configuration
  /** When its reading began (wall clock, ms). */
  readonly sinceMs: number
  readonly read: () => Promise<Read>
  readonly context: Context
  readonly io: Io
  /** `--json`: machines read the answer. */
  readonly json: boolean
}

/** A configuration as it was read, and when the reading began (wall clock, ms). */
export interface Read {
  readonly configuration: Configuration
  readonly sinceMs: number
}

/** Ends a command with its exit code and words for a person: what, which, what next. */
export class CommandError extends Error {
  readonly exitCode: number
  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

/** Data, to stdout; resolves when it is taken, or when nobody is there any more to take it. */
export const print = (io: Io, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => void io.stdout.write(data, () => resolve()))

export const printLines = (io: Io, lines: readonly string[]): Promise<void> =>
  print(io, lines.map((line) => `${line}\n`).join(''))

export const printJson = (io: Io, value: unknown): Promise<void> => print(io, `${JSON.stringify(value)}\n`)
