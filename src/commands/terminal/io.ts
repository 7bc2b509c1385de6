/** What a command has of the process: streams, signals, and the words for how it ended. */
import type { Readable, Writable } from 'node:stream'
import type { SocketLocation } from '../../admin/socket/socket-location.ts'
import type { Configuration } from '../../config/options.ts'
import type { Context, EditedFile } from '../../config/runtime-environment.ts'
import type { Discovered } from '../../host-files/discovered.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import type { Redactor } from '../../redactor.ts'

export interface Io {
  readonly stdin: Readable & { isTTY?: boolean }
  /** `columns`: the width of the terminal, where it is one. */
  readonly stdout: Writable & { isTTY?: boolean; columns?: number }
  readonly stderr: Writable & { isTTY?: boolean; columns?: number }
  /** SIGINT or SIGTERM. */
  readonly interrupted: AbortSignal
  /** An error was not caught; `reason` is the error. `interrupted` follows. */
  readonly crashed: AbortSignal
  /** Knows the secrets of every configuration that was read; what is said on stderr of what went wrong passes it. */
  readonly redactor: Redactor
  /** SIGHUP, except that of a terminal that is closed: read the configuration again. Returns how to stop listening. */
  readonly onHangup: (callback: () => void) => () => void
  /** Calls back for each key that is typed, Ctrl-C and the like aside. Returns how to stop. `undefined`: stdin is no terminal. */
  readonly onKey?: ((pressed: (key: string) => void) => () => void) | undefined
}

/** How long the end may take of a process whose state is not known any more: 5 s for its calls, the rest for its servers. */
export const CRASH_MS = 11_000

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

/** What a command is given: which configuration is meant, how to read it, and how it was asked. */
export interface Invocation {
  /** As named; relative ones count from the working folder. */
  readonly files: readonly string[]
  /** False: there is no configuration, and `files` is the one that would be found. */
  readonly isFound: boolean
  /** A command about the same configuration, for messages. */
  readonly command: CommandPrinter
  /** Where a process of this configuration can be asked, also while its files are wrong. */
  readonly place: SocketLocation
  /** `edited`: as if files held other texts. */
  readonly read: (edited?: readonly EditedFile[]) => Promise<Read>
  readonly context: Context
  readonly io: Io
  /** `--json`: machines read the answer. */
  readonly json: boolean
}

/** The same with the configuration read. */
export type Loaded = Invocation & Read

export const load = async (invocation: Invocation): Promise<Loaded> => ({ ...invocation, ...(await invocation.read()) })

/** A configuration as it was read, and when the reading began (wall clock, ms). */
export interface Read {
  readonly configuration: Configuration
  readonly sinceMs: number
  /** There is no file: the servers were found in those of hosts. */
  readonly discovered?: Discovered | undefined
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
