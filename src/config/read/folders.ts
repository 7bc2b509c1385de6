/** The folders of state, of admin sockets and of the user's configuration (DECISIONS 1). Creates nothing. */
import { createHash } from 'node:crypto'
import { posix, win32 } from 'node:path'
import type { RuntimeEnvironment } from '../runtime-environment.ts'

type Environment = Pick<RuntimeEnvironment, 'env' | 'home' | 'uid' | 'platform'>

/** `Configuration.id`: 16 hex characters, a digest of the absolute path of its first file. */
export const configurationId = (firstFile: string): string => createHash('sha256').update(firstFile).digest('hex').slice(0, 16)

/** The folder for the state of all configurations. */
export const stateRoot = (environment: Environment): string =>
  folderIn(environment, {
    variable: 'XDG_STATE_HOME',
    linux: ['.local', 'state'],
    mac: ['Library', 'Application Support'],
    windows: 'LOCALAPPDATA',
  })

/** The folder of the user's own configuration. */
export const configRoot = (environment: Environment): string =>
  folderIn(environment, { variable: 'XDG_CONFIG_HOME', linux: ['.config'], mac: ['.config'], windows: 'APPDATA' })

/** The folder of admin sockets: in the session's folder if the system has one, else in the temporary folder, one for each user. */
export const runtimeRoot = ({ env, uid, platform = process.platform }: Environment): string => {
  const path = platform === 'win32' ? win32 : posix
  const session = env['XDG_RUNTIME_DIR']
  if (session && path.isAbsolute(session)) return path.join(session, 'trunkline')
  const temporary = env['TMPDIR'] || env['TEMP'] || env['TMP'] || '/tmp'
  return path.join(temporary, uid === undefined ? 'trunkline' : `trunkline-${uid}`)
}

interface SystemFolders {
  /** Variable of XDG. */
  readonly variable: string
  /** Below the home folder. */
  readonly linux: readonly string[]
  readonly mac: readonly string[]
  /** Variable. */
  readonly windows: string
}

/** XDG wins where it is set (absolute, as its specification demands), then the default folder of the system. */
const folderIn = ({ env, home, platform = process.platform }: Environment, system: SystemFolders): string => {
  const path = platform === 'win32' ? win32 : posix
  const chosen = env[system.variable]
  if (chosen && path.isAbsolute(chosen)) return path.join(chosen, 'trunkline')
  if (platform === 'win32') return path.join(env[system.windows] || path.join(home, 'AppData', 'Local'), 'trunkline')
  return path.join(home, ...(platform === 'darwin' ? system.mac : system.linux), 'trunkline')
}
