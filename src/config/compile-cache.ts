/**
 * Node's cache of compiled code, in the private folder of our state: a start from it costs a quarter less CPU. What lies in it is run, so a
 * folder that is a link, belongs to another user or is open to others is not used. `NODE_DISABLE_COMPILE_CACHE=1` switches it off.
 */
import { lstatSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from '../make-folder.ts'
import { stateRoot } from './read/folders.ts'

/** When a process that goes on writes what it has compiled: hosts and machines often end it by a signal that lets it write nothing. */
const FLUSH_MS = 3_000

/** Never throws: without the cache everything works as well. */
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
    // A home that cannot be written, or a Node built without it.
  }
}

/** A folder of this user without the permissions `refused`. Windows tells no owner and no mode; the folder lies in the user's profile there. */
const belongsTo = (uid: number | undefined, folder: string, refused: number): boolean => {
  const found = lstatSync(folder)
  return found.isDirectory() && (uid === undefined || (found.uid === uid && (found.mode & refused) === 0))
}
