/**
 * Node's cache of compiled code, in our state folder: a start from it costs a quarter less CPU. Its content is executed, so a folder that
 * is a link, belongs to another user or is open to others is not used. `NODE_DISABLE_COMPILE_CACHE=1` switches it off.
 */
import { lstatSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from '../make-folder.ts'
import { stateRoot } from './read/folders.ts'

/** When a running process writes what it has compiled: a signal often ends it before it could write at its exit. */
const FLUSH_MS = 3_000

/** Never throws: the cache is optional. */
export const useCompileCache = (): void => {
  const uid = process.getuid?.()
  try {
    const root = stateRoot({ env: process.env, home: homedir(), uid, platform: process.platform })
    const folder = join(root, 'compile-cache')
    makeFolder(folder)
    if (!belongsTo(uid, root, 0o022) || !belongsTo(uid, folder, 0o077)) return
    enableCompileCache(folder)
    setTimeout(flushCompileCache, FLUSH_MS).unref()
  } catch {
    // The home folder cannot be written, or Node was built without the cache.
  }
}

/** Whether the folder belongs to this user and has none of the permissions `refused`. Windows has neither; there it is in the user's profile. */
const belongsTo = (uid: number | undefined, folder: string, refused: number): boolean => {
  const found = lstatSync(folder)
  return found.isDirectory() && (uid === undefined || (found.uid === uid && (found.mode & refused) === 0))
}
