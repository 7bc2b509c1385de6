/** Queries of the system: where a program is, what it prints, which `PATH` other programs have. All end within `ASK_MS` and never reject. */
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { RuntimeEnvironment } from '../../config/runtime-environment.ts'

export const ASK_MS = 5_000

/** The file of a command in these folders; `undefined`: none. */
export const findIn = async (command: string, path: string | undefined): Promise<string | undefined> => {
  if (/[/\\]/.test(command)) return (await isAllowed(command, constants.X_OK)) ? command : undefined
  for (const folder of (path ?? '').split(delimiter)) {
    const file = join(folder, command)
    if (folder !== '' && (await isAllowed(file, constants.X_OK))) return file
  }
  return undefined
}

export const isAllowed = (file: string, mode: number): Promise<boolean> =>
  access(file, mode).then(
    () => true,
    () => false,
  )

/** The stdout of a program; `undefined`: it is missing, failed, or took too long. */
export const ask = (
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: ASK_MS, windowsHide: true, env: { ...env } }, (error, stdout) =>
      resolve(error === null ? stdout : undefined),
    )
  })

/** The `PATH` of a terminal. A login shell may print other text before it. */
export const askShellPath = async ({ env }: RuntimeEnvironment): Promise<string | undefined> => {
  const shell = env['SHELL']
  if (!shell) return undefined
  const text = await ask(shell, ['-lc', 'printf "\\n%s" "trunkline-path:$PATH"'], env)
  return text === undefined ? undefined : /trunkline-path:(.*)$/.exec(text)?.[1]
}

/** The default of launchd. */
const LAUNCHD_PATH = '/usr/bin:/bin:/usr/sbin:/sbin'

/** The `PATH` of programs that are started from the desktop, such as Claude Desktop or an editor, without the settings of a shell. */
export const askDesktopPath = async ({ env, platform }: RuntimeEnvironment): Promise<string | undefined> => {
  if (platform === 'darwin') return (await ask('launchctl', ['getenv', 'PATH'], env))?.trim() || LAUNCHD_PATH
  if (platform !== 'linux') return undefined
  const text = await ask('systemctl', ['--user', 'show-environment'], env)
  return text === undefined ? undefined : /^PATH=(.*)$/m.exec(text)?.[1]
}
