/** Where a configuration keeps its state and its socket, and where the one of the user lies (DECISIONS 1). Nothing is created here. */
import { createHash } from 'node:crypto'
import { posix, win32 } from 'node:path'

export interface RuntimeEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  readonly uid?: number | undefined
  readonly platform?: NodeJS.Platform | undefined
}

/** 16 hex characters that name a configuration: a digest of the absolute path of its first file. */
export const configurationId = (firstFile: string): string => createHash('sha256').update(firstFile).digest('hex').slice(0, 16)

/** The folder that holds the state of all configurations. */
export const stateRoot = (around: RuntimeEnvironment): string =>
  place(around, {
    variable: 'XDG_STATE_HOME',
    linux: ['.local', 'state'],
    mac: ['Library', 'Application Support'],
    windows: 'LOCALAPPDATA',
  })

/** The folder of the user's own configuration. */
export const configRoot = (around: RuntimeEnvironment): string =>
  place(around, { variable: 'XDG_CONFIG_HOME', linux: ['.config'], mac: ['.config'], windows: 'APPDATA' })

/** The folder of admin sockets: of the session if the system has one, else a folder of this user under the temporary one. */
export const runtimeRoot = ({ env, uid, platform = process.platform }: RuntimeEnvironment): string => {
  const path = platform === 'win32' ? win32 : posix
  const session = env['XDG_RUNTIME_DIR']
  if (session && path.isAbsolute(session)) return path.join(session, 'trunkline')
  const temporary = env['TMPDIR'] || env['TEMP'] || env['TMP'] || '/tmp'
  return path.join(temporary, uid === undefined ? 'trunkline' : `trunkline-${uid}`)
}

interface Usual {
  readonly variable: string
  readonly linux: readonly string[]
  readonly mac: readonly string[]
  readonly windows: string
}

/** XDG wins where it is set (absolute, as its specification demands), then the usual place of the system. */
const place = ({ env, home, platform = process.platform }: RuntimeEnvironment, usual: Usual): string => {
  const path = platform === 'win32' ? win32 : posix
  const chosen = env[usual.variable]
  if (chosen && path.isAbsolute(chosen)) return path.join(chosen, 'trunkline')
  if (platform === 'win32') return path.join(env[usual.windows] || path.join(home, 'AppData', 'Local'), 'trunkline')
  return path.join(home, ...(platform === 'darwin' ? usual.mac : usual.linux), 'trunkline')
}
