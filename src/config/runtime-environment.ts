/** What is known of the process around us, and the one place where it is read: everything else is told. */
import { statSync } from 'node:fs'
import { homedir } from 'node:os'

/** Values with `cache`, from one reading of the configuration to the next; by everything that decides what they are. */
export type SecretMemory = Map<string, { readonly text: string; readonly readMs: number }>

/** A file as if it held another text. */
export interface EditedFile {
  /** Absolute. */
  readonly file: string
  readonly text: string
}

/** What the process around us contributes; nothing else of it is read. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly home: string
  readonly uid?: number | undefined
  /** Of this process: sockets are passed to one by its number. */
  readonly pid?: number | undefined
  readonly platform?: NodeJS.Platform | undefined
  /** How this program was started: Node, and the file it ran; the single executable alone. */
  readonly program?: readonly string[] | undefined
  /** The words of the command line behind it. */
  readonly args?: readonly string[] | undefined
  /** Secrets that need not be asked for again yet (`cache`); absent: each reading asks. */
  readonly memory?: SecretMemory | undefined
  /** An edit of the configuration that is looked at before it is written. */
  readonly edited?: readonly EditedFile[] | undefined
  readonly overrides?:
    | {
        /** What `-c` said, as it was said: messages name commands with it. */
        readonly named?: readonly string[] | undefined
        /** Replaces `listen.http.bind`: one address, or several with commas between. */
        readonly listen?: string | undefined
        /** Replaces `state.dir`. */
        readonly state?: string | undefined
        /** Replaces `reload.watch`; where the servers are those of hosts, it decides whether their files are watched. */
        readonly watch?: boolean | undefined
        /** `faults` may be injected. */
        readonly allowFaults?: boolean | undefined
        readonly allowUnauthenticatedNetwork?: boolean | undefined
        /** Absolute path of the file in whose place the configuration is read: it has that one's name, state folder and socket. */
        readonly standsFor?: string | undefined
        /** The lock file is about to be written, so that what is wrong with it does not matter. */
        readonly withoutLock?: boolean | undefined
      }
    | undefined
}

/** Whether the program is part of the file that runs, and not a script that Node was given. */
const isExecutable = (): boolean => process.getBuiltinModule('node:sea').isSea()

/** `overrides` are what the command line says. */
export const readRuntimeEnvironment = (overrides: Context['overrides'] = {}): Context => ({
  env: withSession(process.env, process.platform, process.getuid?.()),
  cwd: process.cwd(),
  home: homedir(),
  uid: process.getuid?.(),
  pid: process.pid,
  platform: process.platform,
  program: isExecutable() ? [process.execPath] : [process.execPath, ...process.argv.slice(1, 2)],
  args: process.argv.slice(2),
  memory: new Map(),
  overrides,
})

/**
 * With the folder of this login's session where only its variable is missing: most hosts start a server with a few variables, and it
 * must find the socket of a process that was started in a shell.
 */
const withSession = (env: Context['env'], platform: NodeJS.Platform, uid: number | undefined): Context['env'] => {
  if (env['XDG_RUNTIME_DIR'] || platform !== 'linux' || uid === undefined) return env
  const folder = sessionFolder(uid)
  const found = statSync(folder, { throwIfNoEntry: false })
  return found?.isDirectory() === true && found.uid === uid ? { ...env, XDG_RUNTIME_DIR: folder } : env
}

/** Where login managers make it. */
export const sessionFolder = (uid: number): string => `/run/user/${uid}`
