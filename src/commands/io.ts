/** What a command has of the process: streams, signals, and the words for how it ended. */
import type { Readable, Writable } from 'node:stream'

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

/** Ends a command with its exit code and words for a person: what, which, what next. */
export class CommandError extends Error {
  readonly exitCode: number
  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}
