/** The environment of our process. It is read here only and passed to all other code. */
import { statSync } from 'node:fs'
import { homeFolder } from './home-folder.ts'

/** Values of secrets with `cache`, kept from one reading of the configuration to the next, by folder and entry. */
export type SecretMemory = Map<string, { readonly text: string; readonly readMs: number }>

/** A file with another text than on disk. */
export interface EditedFile {
  /** Absolute. */
  readonly file: string
  readonly text: string
}

/** The environment of our process, and the options of the command line. */
export interface RuntimeEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly home: string
  readonly uid?: number | undefined
  /** Of this process: systemd passes sockets to a process id. */
  readonly pid?: number | undefined
  readonly platform?: NodeJS.Platform | undefined
  /** How this program was started: Node and the script; for the single executable its own path. */
  readonly program?: readonly string[] | undefined
  /** The arguments of the program. */
  readonly args?: readonly string[] | undefined
  /** Cached secrets; absent: each reading reads them again. */
  readonly memory?: SecretMemory | undefined
  /** An edit of the configuration that is checked before it is written. */
  readonly edited?: readonly EditedFile[] | undefined
  readonly overrides?:
    | {
        /** The arguments of `-c`, unchanged: commands in messages have them. */
        readonly named?: readonly string[] | undefined
        /** Replaces `listen.http.bind`: addresses, separated by commas. */
        readonly listen?: string | undefined
        /** Replaces `state.dir`. */
        readonly state?: string | undefined
        /** Replaces `reload.watch`; where the servers come from hosts, it decides whether their files are watched. */
        readonly watch?: boolean | undefined
        /** The level of the log where the configuration has none. */
        readonly logLevel?: 'warn' | undefined
        /** `faults` may be injected. */
        readonly allowFaults?: boolean | undefined
        readonly allowUnauthenticatedNetwork?: boolean | undefined
        /** Absolute path of the file that this configuration replaces: it uses the id, state folder and socket of that file. */
        readonly standsFor?: string | undefined
        /** Ignores errors of the lock file, which is about to be written. */
        readonly withoutLock?: boolean | undefined
        /** Reads no `${secret:…}`: only the keys of the configuration are needed. */
        readonly withoutSecrets?: boolean | undefined
      }
    | undefined
}

/** Whether the program is a single executable, and not a script that Node runs. */
const isExecutable = (): boolean => process.getBuiltinModule('node:sea').isSea()

/** A folder that was removed resolves no relative path; paths from the root do not need it. */
const workingFolder = (): string => {
  try {
    return process.cwd()
  } catch {
    return '/'
  }
}

/** `overrides`: options of the command line. */
export const readRuntimeEnvironment = (overrides: RuntimeEnvironment['overrides'] = {}): RuntimeEnvironment => ({
  env: withSession(process.env, process.platform, process.getuid?.()),
  cwd: workingFolder(),
  home: homeFolder(),
  uid: process.getuid?.(),
  pid: process.pid,
  platform: process.platform,
  program: isExecutable() ? [process.execPath] : [process.execPath, ...process.argv.slice(1, 2)],
  args: process.argv.slice(2),
  memory: new Map(),
  overrides,
})

/**
 * Adds `XDG_RUNTIME_DIR` where it is missing and the folder exists: most hosts start a server with few variables, and it must find the
 * socket of a process that was started in a shell.
 */
const withSession = (
  env: RuntimeEnvironment['env'],
  platform: NodeJS.Platform,
  uid: number | undefined,
): RuntimeEnvironment['env'] => {
  if (env['XDG_RUNTIME_DIR'] || platform !== 'linux' || uid === undefined) return env
  const folder = sessionFolder(uid)
  const found = statSync(folder, { throwIfNoEntry: false })
  return found?.isDirectory() === true && found.uid === uid ? { ...env, XDG_RUNTIME_DIR: folder } : env
}

/** `XDG_RUNTIME_DIR` as login managers set it. */
export const sessionFolder = (uid: number): string => `/run/user/${uid}`
