/**
 * Changes a file that belongs to another program. A change needs a backup, and is refused if the file differs from the text that the change is
 * based on. The change is atomic: a new file replaces the old one.
 *
 * The surprise: the lock works only between our processes. The host may write at any time, so the file is compared again right before it is
 * replaced.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chmod, chown, open, readFile, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { asError } from '../../values/as-error.ts'
import { acquireFileLock, releaseFileLock } from '../../file-lock.ts'
import { makeFolder } from '../../make-folder.ts'
import { EditError } from './text-format.ts'

/** An older lock is stale. */
const STALE_LOCK_MS = 10_000
/** A larger file is not a settings file. */
const MAX_BYTES = 32 * 1024 * 1024
/** Steps of a path, links among them. */
const MAX_LINKS = 64

/** A change was refused and the file is unchanged. The message contains the remedy. */
export class ChangeError extends Error {
  override readonly name = 'ChangeError'
}

/** A file as it was read. */
export interface FileState {
  /** The path after symbolic links, which are kept. */
  readonly path: string
  /** `undefined`: there is no such file. */
  readonly bytes: Buffer | undefined
}

/** Reads a file. Rejects with `ChangeError` if it is too large, not a regular file, or not UTF-8. */
export const readState = async (file: string): Promise<FileState> => {
  const path = await resolveLinks(file)
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

/** The path after symbolic links, also of a file that does not exist yet: a link may name a file that its owner has not made. */
const resolveLinks = async (file: string, depth = 0): Promise<string> => {
  const path = await realpath(file).catch(() => undefined)
  if (path !== undefined || depth > MAX_LINKS || file === dirname(file)) return path ?? file
  const folder = await resolveLinks(dirname(file), depth + 1)
  const target = await readlink(file).catch(() => undefined)
  return target === undefined ? join(folder, basename(file)) : resolveLinks(resolve(folder, target), depth + 1)
}

export const textOfState = ({ bytes }: FileState): string => bytes?.toString('utf8') ?? ''

/** SHA-256 in hex; the empty text if there is no file. */
export const digestOf = (bytes: Buffer | undefined): string =>
  bytes === undefined ? '' : createHash('sha256').update(bytes).digest('hex')

/** The state folder of a file, named by the hash of its path. */
export const folderFor = (root: string, file: string): string =>
  join(root, 'host-files', createHash('sha256').update(file).digest('hex').slice(0, 16))

/** Runs `change` under a lock against our other processes; `folder`: the state folder of the file. */
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
 * Replaces a file by `next`; `undefined`: removes the file. Rejects with `ChangeError` if the file has changed since it was read. Only the
 * owner can read a new file. A replaced file keeps its mode.
 */
export const replaceFile = async ({ path, bytes }: FileState, next: Buffer | undefined, mode?: number): Promise<void> => {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.trunkline`)
  try {
    if (next !== undefined) {
      makeFolder(dirname(path), 0o777)
      const before = await stat(path).catch(() => undefined)
      // A replacement only needs write permission for the folder, so the mode of the file is checked here.
      if (before !== undefined && (before.mode & 0o222) === 0)
        throw new ChangeError(`${path} is read-only; make it writable, or change the source that it is generated from`)
      await writeThrough(temporary, next, mode ?? (before === undefined ? 0o600 : before.mode & 0o777))
      // As root (sudo), the file would no longer belong to its user.
      if (before !== undefined) await chown(temporary, before.uid, before.gid).catch(() => undefined)
    }
    const now = await readState(path)
    const isSame = now.bytes === undefined ? bytes === undefined : bytes !== undefined && now.bytes.equals(bytes)
    if (!isSame) throw new ChangeError(`${path} was changed by another program in the meantime and is left unchanged: try again`)
    await (next === undefined ? rm(path) : rename(temporary, path))
  } catch (error) {
    await rm(temporary, { force: true })
    if (error instanceof ChangeError) throw error
    throw new ChangeError(`${path} cannot be written (${asError(error).code}); check its permissions`, {
      cause: error,
    })
  }
}

/** Writes a new file and waits until its bytes are on the disk. */
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

/** Turns an `EditError` into a `ChangeError` with the name of the file. */
export const editing = <T>(file: string, edit: () => T): T => {
  try {
    return edit()
  } catch (error) {
    if (!(error instanceof EditError)) throw error
    throw new ChangeError(`${file} ${error.message}; it is left unchanged`, { cause: error })
  }
}
