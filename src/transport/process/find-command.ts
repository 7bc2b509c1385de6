/**
 * Finds the file of a command as `execvp` does, before anything is spawned. Behind a wrapper, a missing command would appear as a
 * failure of the wrapper.
 */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { asError } from '../../values/as-error.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Launch } from './process-group.ts'

/** The folders that `execvp` searches without a PATH. */
const PATH_OF_EXECVP = '/bin:/usr/bin'

/** Returns the absolute path of the command. Throws `Failure('spawn_failed')` with ENOENT or EACCES in its message. */
export const findCommand = async (launch: Launch): Promise<string> => {
  await expectFolder(launch.cwd)
  const path = launch.env['PATH'] ?? PATH_OF_EXECVP
  const folders = launch.command.includes('/') ? [''] : path.split(delimiter)
  const states: FileState[] = []
  for (const folder of folders) {
    const file = resolve(launch.cwd, join(folder, launch.command))
    const state = await stateOf(file)
    if (state === 'runs') return file
    states.push(state)
  }
  const reason = states.includes('EACCES')
    ? 'EACCES: no permission to run it; make it executable (chmod +x), or name its interpreter as command'
    : `ENOENT: not found; ${remedyFor(launch.command, launch.cwd)}`
  throw new Failure('spawn_failed', `spawn ${launch.command}: ${reason}`, { executed: 'no' })
}

/** How to install programs that configurations often use. */
const REMEDIES: Readonly<Record<string, string>> = {
  npx: 'install Node.js',
  node: 'install Node.js',
  uvx: 'install uv',
  uv: 'install uv',
  python: 'install Python, or write python3',
  docker: 'install Docker',
  bunx: 'install Bun',
  deno: 'install Deno',
}

const remedyFor = (command: string, cwd: string): string => {
  const [program, ...args] = command.split(/\s+/)
  if (args.length > 0 && program !== '') return `command is one program: write command: ${program}, args: [${args.join(', ')}]`
  if (command.includes('/')) return `correct the path, which is relative to ${cwd}`
  const remedy = Object.hasOwn(REMEDIES, command) ? REMEDIES[command] : 'install it'
  return `${remedy}, or write its full path (the PATH of trunkline is searched; which ${command} shows the path)`
}

type FileState = 'runs' | 'EACCES' | 'ENOENT'

const stateOf = async (file: string): Promise<FileState> => {
  try {
    if (!(await stat(file)).isFile()) return 'EACCES'
    await access(file, constants.X_OK)
    return 'runs'
  } catch (error) {
    return asError(error).code === 'EACCES' ? 'EACCES' : 'ENOENT'
  }
}

const expectFolder = async (cwd: string): Promise<void> => {
  const isFolder = await stat(cwd).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isFolder)
    throw new Failure('spawn_failed', `spawn: the working directory ${cwd} does not exist (ENOENT); create it, or correct cwd`, {
      executed: 'no',
    })
}
