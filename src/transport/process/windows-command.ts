/**
 * The command line of a process on Windows. The system starts programs (`.exe`, `.com`) only. npx, and most commands that npm installs, are
 * batch files, which only `cmd.exe` runs.
 *
 * The surprise: `cmd.exe` reads the arguments twice, on its own line and where the batch file passes them on. What has a meaning there is
 * therefore escaped twice, so that no argument becomes a command (T-12).
 */
import { win32 } from 'node:path'
import { Failure } from '../../wire/message/failure.ts'
import type { Launch } from './process-group.ts'

export interface CommandLine {
  readonly file: string
  readonly args: readonly string[]
  /** The arguments are complete: Node must not quote them. */
  readonly isVerbatim: boolean
}

const EXTENSIONS = '.COM;.EXE;.BAT;.CMD'
const BATCH_FILE = /\.(?:bat|cmd)$/i
/** Characters that `cmd.exe` interprets. */
const META = /[()[\]%!^"`<>&|;, *?]/g
const LINE_END = /[\r\n]/

/** `isFile`: whether there is a file at a path. Throws `Failure('spawn_failed')` for an argument that no batch file can get. */
export const windowsCommand = async (launch: Launch, isFile: (path: string) => Promise<boolean>): Promise<CommandLine> => {
  const { command, args, env } = launch
  const file = await fileOf(launch, isFile)
  // What is not found fails at the start, with the reason of the system.
  if (file === undefined || !BATCH_FILE.test(file)) return { file: command, args, isVerbatim: false }
  if (args.some((arg) => LINE_END.test(arg)))
    throw new Failure('spawn_failed', `spawn ${command}: it is a batch file, which takes no argument with a line end`, {
      executed: 'no',
    })
  const line = [escaped(file), ...args.map((arg) => escaped(escaped(quoted(arg))))].join(' ')
  return { file: variable(env, 'ComSpec') ?? 'cmd.exe', args: ['/d', '/s', '/c', `"${line}"`], isVerbatim: true }
}

/** The file that `cmd.exe` would find. */
const fileOf = async ({ command, cwd, env }: Launch, isFile: (path: string) => Promise<boolean>): Promise<string | undefined> => {
  const known = (variable(env, 'PATHEXT') ?? EXTENSIONS).split(';').filter((extension) => extension !== '')
  const hasExtension = known.some((extension) => command.toLowerCase().endsWith(extension.toLowerCase()))
  const folders = /[/\\]/.test(command)
    ? ['']
    : (variable(env, 'PATH') ?? '').split(win32.delimiter).filter((folder) => folder !== '')
  for (const folder of folders)
    for (const extension of hasExtension ? [''] : known) {
      const file = win32.resolve(cwd, folder, `${command}${extension}`)
      if (await isFile(file)) return file
    }
  return undefined
}

/** In quotes, as programs of Windows read their arguments: backslashes before a quote are doubled, and the quote is escaped. */
const quoted = (arg: string): string => `"${arg.split('"').map(withDoubledTail).join('\\"')}"`

const withDoubledTail = (text: string): string => {
  let tail = text.length
  while (text[tail - 1] === '\\') tail--
  return text + text.slice(tail)
}

const escaped = (text: string): string => text.replaceAll(META, '^$&')

/** Names of variables have no case on Windows. */
const variable = (env: Launch['env'], name: string): string | undefined => {
  const found = Object.keys(env).find((key) => key.toUpperCase() === name.toUpperCase())
  return found === undefined ? undefined : env[found]
}
