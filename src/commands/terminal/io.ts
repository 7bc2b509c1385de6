/** The environment of a command: streams and signals; and how a command ends. */
import { PassThrough } from 'node:stream'
import type { Readable, Writable } from 'node:stream'
import type { SocketLocation } from '../../admin/socket/socket-location.ts'
import type { Configuration } from '../../config/options.ts'
import type { RuntimeEnvironment, EditedFile } from '../../config/runtime-environment.ts'
import type { Discovered } from '../../host-files/discovered.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import { Redactor } from '../../redactor.ts'

export interface Io {
  readonly stdin: Readable & { isTTY?: boolean }
  /** `columns`: the width of a terminal. */
  readonly stdout: Writable & { isTTY?: boolean; columns?: number }
  readonly stderr: Writable & { isTTY?: boolean; columns?: number }
  /** SIGINT or SIGTERM; SIGHUP of a command that does not reload. */
  readonly interrupted: AbortSignal
  /** An error was not caught; `reason` is the error. `interrupted` follows. */
  readonly crashed: AbortSignal
  /** Contains the secrets of every configuration that was read; errors on stderr pass it. */
  readonly redactor: Redactor
  /** SIGHUP, except when a terminal closes: reload the configuration. Returns how to stop listening. */
  readonly onHangup: (callback: () => void) => () => void
  /** Calls back when the process exits, also at once (a second signal). Only synchronous work is done then. Returns how to stop listening. */
  readonly atExit: (callback: () => void) => () => void
  /** Calls back for each typed key, except Ctrl-C and similar. Returns how to stop. `undefined`: stdin is not a terminal. */
  readonly onKey?: ((pressed: (key: string) => void) => () => void) | undefined
  /** Another program has the terminal, such as an editor: Ctrl-C is for that program. Returns how to take the terminal back. */
  readonly lendTerminal?: (() => () => void) | undefined
}

/** For a command that runs in another program: no signal arrives, and its output is read from the streams. */
export const detachedIo = (): Io => ({
  stdin: new PassThrough(),
  stdout: new PassThrough(),
  stderr: new PassThrough(),
  interrupted: new AbortController().signal,
  crashed: new AbortController().signal,
  redactor: new Redactor(),
  onHangup: () => () => undefined,
  atExit: () => () => undefined,
})

/** Time to end a process in an unknown state: 5 s for its calls, the rest for its servers. */
export const CRASH_MS = 11_000

/** Exit codes (PRODUCT 2). */
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

/** The input of a command: its configuration, how to read it, and the form of output. */
export interface Invocation {
  /** As typed; relative ones start at the working folder. */
  readonly files: readonly string[]
  /** False: there is no configuration, and `files` has the default one. */
  readonly isFound: boolean
  /** Prints a command for the same configuration, for messages. */
  readonly command: CommandPrinter
  /** The admin socket of a process of this configuration, also while its files are invalid. */
  readonly socket: SocketLocation
  /** `edited`: texts that replace those of files. */
  readonly read: (edited?: readonly EditedFile[]) => Promise<Read>
  readonly context: RuntimeEnvironment
  readonly io: Io
  /** `--json`: print JSON. */
  readonly json: boolean
}

/** An invocation and its configuration. */
export type Loaded = Invocation & Read

export const load = async (invocation: Invocation): Promise<Loaded> => ({ ...invocation, ...(await invocation.read()) })

/** A configuration, and when its reading began (wall clock, ms). */
export interface Read {
  readonly configuration: Configuration
  readonly sinceMs: number
  /** Set if there is no file: the servers come from files of hosts. */
  readonly discovered?: Discovered | undefined
}

/** Ends a command with its exit code and a sentence: what failed, with what, and what to do. */
export class CommandError extends Error {
  readonly exitCode: number
  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}
