/**
 * The location of a configuration's admin socket, and its owner. File permissions are the authentication, so they are checked before any
 * byte is sent or read: the folder and the socket belong to this user, and are not symbolic links (DECISIONS 1).
 */
import { chmod, lstat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Configuration } from '../../config/options.ts'
import { makeFolder } from '../../make-folder.ts'
import { isAnswered } from '../../transport/http1/server/connection/listen-address.ts'

/** The protocol name for an upgrade of a connection to a host's pipe. */
export const PIPE = 'trunkline-pipe'

/** Path and folder of a socket; `uid`: of this process. */
export interface SocketLocation {
  readonly path: string
  readonly folder: string | undefined
  readonly uid: number | undefined
}

export const locateSocket = (
  { id, runtimeDir }: Pick<Configuration, 'id' | 'runtimeDir'>,
  uid: number | undefined,
  platform: NodeJS.Platform = process.platform,
): SocketLocation =>
  platform === 'win32'
    ? { path: `\\\\.\\pipe\\trunkline-${id}`, folder: undefined, uid }
    : { path: join(runtimeDir, `${id}.sock`), folder: runtimeDir, uid }

/** Creates the folder if it does not exist. Rejects with a sentence if it is not private. */
export const prepareFolder = async ({ folder, uid }: SocketLocation): Promise<void> => {
  if (folder === undefined) return
  makeFolder(folder)
  const found = await lstat(folder)
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid))
    throw new Error(`${folder} is a link, not a folder, or belongs to another user; remove it`)
  if ((found.mode & 0o077) !== 0) await chmod(folder, 0o700)
}

/** Whether the path is a socket that only this user can have created. Other sockets get no byte. */
export const isOurs = async ({ path, folder, uid }: SocketLocation): Promise<boolean> => {
  if (folder === undefined) return true
  const [around, found] = await Promise.all([folder, path].map((name) => lstat(name).catch(() => undefined)))
  if (around === undefined || found === undefined) return false
  const isOwned = uid === undefined || (around.uid === uid && found.uid === uid)
  return isOwned && around.isDirectory() && (around.mode & 0o022) === 0 && found.isSocket()
}

/** Removes the socket of a process that died; anything but a socket of ours stays. */
export const removeStale = async (location: SocketLocation): Promise<void> => {
  if (location.folder !== undefined && (await isOurs(location)) && !(await isAnswered(location.path))) await unlink(location.path)
}
