/**
 * Which file a command names, looked up as the kernel would, before anything is spawned: behind a wrapper a missing command
 * would only show as the wrapper's own failure.
 */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { Failure } from '../wire/failure.ts'
import type { Launch } from './process.ts'

/** What `execvp` searches when there is no PATH. */
const PATH_OF_EXECVP = '/bin:/usr/bin'

/** The absolute path of the command; throws `Failure('spawn_failed')` with ENOENT or EACCES in its message. */
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
  const reason = states.includes('EACCES') ? 'EACCES: no permission to run it' : 'ENOENT: not found'
  throw new Failure('spawn_failed', `spawn ${launch.command}: ${reason}`, { executed: 'no' })
}

type FileState = 'runs' | 'EACCES' | 'ENOENT'

const stateOf = async (file: string): Promise<FileState> => {
  try {
    if (!(await stat(file)).isFile()) return 'EACCES'
    await access(file, constants.X_OK)
    return 'runs'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'EACCES' : 'ENOENT'
  }
}

const expectFolder = async (cwd: string): Promise<void> => {
  const isFolder = await stat(cwd).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isFolder)
    throw new Failure('spawn_failed', `spawn: the working directory ${cwd} does not exist (ENOENT)`, { executed: 'no' })
}
