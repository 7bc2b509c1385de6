/**
 * Where the admin socket of a configuration lies, and who owns it. The file permissions are the authentication, so they are checked
 * before any byte is sent or read: a folder and a socket of this user alone, no symbolic links (DECISIONS 1).
 */
import { chmod, lstat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Configuration } from '../../config/options.ts'
import { makeFolder } from '../../make-folder.ts'
import { isAnswered } from '../../transport/http1/server/connection/listen-address.ts'

/** The sub-protocol that makes a connection a host's pipe. */
export const PIPE = 'trunkline-pipe'

/** A configuration, as far as its socket depends on it, and who we are. */
export interface Place {
  readonly path: string
  readonly folder: string | undefined
  readonly uid: number | undefined
}

export const adminPlace = (
  { id, runtimeDir }: Pick<Configuration, 'id' | 'runtimeDir'>,
  uid: number | undefined,
  platform: NodeJS.Platform = process.platform,
): Place =>
  platform === 'win32'
    ? { path: `\\\\.\\pipe\\trunkline-${id}`, folder: undefined, uid }
    : { path: join(runtimeDir, `${id}.sock`), folder: runtimeDir, uid }

/** Makes the folder, if need be. Rejects with a sentence when it is not ours alone. */
export const prepareFolder = async ({ folder, uid }: Place): Promise<void> => {
  if (folder === undefined) return
  makeFolder(folder)
  const found = await lstat(folder)
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid))
    throw new Error(`${folder} is a link, not a folder, or belongs to another user; remove it`)
  if ((found.mode & 0o077) !== 0) await chmod(folder, 0o700)
}

/** Whether a socket lies there that only we can have put there. Nothing is said to any other. */
export const isOurs = async ({ path, folder, uid }: Place): Promise<boolean> => {
  if (folder === undefined) return true
  const [around, found] = await Promise.all([folder, path].map((name) => lstat(name).catch(() => undefined)))
  if (around === undefined || found === undefined) return false
  const isOwned = uid === undefined || (around.uid === uid && found.uid === uid)
  return isOwned && around.isDirectory() && (around.mode & 0o022) === 0 && found.isSocket()
}

/** Removes what a process that died left behind; anything but a socket of ours stays. */
export const removeStale = async (place: Place): Promise<void> => {
  if (place.folder !== undefined && (await isOurs(place)) && !(await isAnswered(place.path))) await unlink(place.path)
}
