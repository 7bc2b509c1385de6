/**
 * One change of one file that belongs to another program. Nothing is written without a backup, nothing where the file is not what the
 * change was made from, and never in part: a new file takes the place of the old one.
 *
 * The surprise: the lock is only between processes of ours. The host itself may write at any time, so the file is compared once more
 * right before it is replaced.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chmod, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { asError } from '../../values/as-error.ts'
import { acquireFileLock, releaseFileLock } from '../../file-lock.ts'
import { makeFolder } from '../../make-folder.ts'
import { EditError } from './text-format.ts'

/** An older lock is stale. */
const STALE_LOCK_MS = 10_000
/** As the configuration itself: a larger one is not a file of settings. */
const MAX_BYTES = 32 * 1024 * 1024

/** What a change refuses, with the remedy; the file is as it was. */
export class ChangeError extends Error {
  override readonly name = 'ChangeError'
}

/** A file as it was read. */
export interface FileState {
  /** Where it really lies: links are followed, and stay. */
  readonly path: string
  /** `undefined`: there is no such file. */
  readonly bytes: Buffer | undefined
}

/** Rejects with `ChangeError` for what is no file of a reasonable size, or is not UTF-8. */
export const readState = async (file: string): Promise<FileState> => {
  const path = await realpath(file).catch(() => file)
  try {
    const found = await stat(path)
    if (!found.isFile()) throw new ChangeError(`${file} is not a file; remove it or name another`)
    if (found.size > MAX_BYTES) throw new ChangeError(`${file} is larger than 32 MiB; it is not changed`)
    const bytes = await readFile(path)
    if (!bytes.equals(Buffer.from(bytes.toString('utf8')))) throw new ChangeError(`${file} is not UTF-8; it is not changed`)
    return { path, bytes }
  } catch (error) {
    if (error instanceof ChangeError) throw error
    const { code } = asError(error)
    if (code === 'ENOENT') return { path, bytes: undefined }
    throw new ChangeError(`${file} cannot be read (${code}); check its permissions`, { cause: error })
  }
}

export const textOfState = ({ bytes }: FileState): string => bytes?.toString('utf8') ?? ''

/** SHA-256 in hex; of nothing: the empty text. */
export const digestOf = (bytes: Buffer | undefined): string =>
  bytes === undefined ? '' : createHash('sha256').update(bytes).digest('hex')

/** A folder that is named after a file, for what is kept about it. */
export const folderFor = (root: string, file: string): string =>
  join(root, 'host-files', createHash('sha256').update(file).digest('hex').slice(0, 16))

/** Runs `change` while no other process of ours changes the file; `folder`: of what is kept about it. */
export const exclusively = async <T>(folder: string, change: () => Promise<T>): Promise<T> => {
  const lock = join(folder, 'lock')
  if (!(await acquireFileLock(lock, STALE_LOCK_MS)))
    throw new ChangeError(`no backup can be kept in ${folder}, so nothing is changed; make that folder writable`)
  try {
    return await change()
  } finally {
    releaseFileLock(lock)
  }
}

/**
 * Puts `next` in the place of what was read; `undefined`: removes the file. Rejects with `ChangeError` where the file is not what was
 * read any more. A file that is new is for its owner alone, one that is replaced keeps its mode.
 */
export const replaceFile = async ({ path, bytes }: FileState, next: Buffer | undefined, mode?: number): Promise<void> => {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.trunkline`)
  try {
    if (next !== undefined) {
      makeFolder(dirname(path), 0o777)
      const before = await stat(path).catch(() => undefined)
      // A new file in its place would need the permission of the folder alone.
      if (before !== undefined && (before.mode & 0o222) === 0)
        throw new ChangeError(`${path} is read-only; make it writable, or change it where it is made`)
      await writeThrough(temporary, next, mode ?? (before === undefined ? 0o600 : before.mode & 0o777))
    }
    const now = await readState(path)
    const isSame = now.bytes === undefined ? bytes === undefined : bytes !== undefined && now.bytes.equals(bytes)
    if (!isSame) throw new ChangeError(`${path} was changed by another program meanwhile; it is left as it is: try again`)
    await (next === undefined ? rm(path) : rename(temporary, path))
  } catch (error) {
    await rm(temporary, { force: true })
    if (error instanceof ChangeError) throw error
    throw new ChangeError(`${path} cannot be written (${asError(error).code}); check its permissions`, {
      cause: error,
    })
  }
}

/** A new file with all of its bytes on the disk. */
export const writeThrough = async (file: string, bytes: Buffer, mode: number): Promise<void> => {
  const handle = await open(file, 'wx', mode)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
  // The umask may have removed bits.
  await chmod(file, mode)
}

/** Puts the file into the message of an `EditError`. */
export const editing = <T>(file: string, edit: () => T): T => {
  try {
    return edit()
  } catch (error) {
    if (!(error instanceof EditError)) throw error
    throw new ChangeError(`${file} ${error.message}; it is left as it is`, { cause: error })
  }
}
