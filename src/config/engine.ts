/** What the engine is told before the program is loaded: where it keeps compiled code, and when it collects the whole heap. */
import { lstatSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { makeFolder } from '../make-folder.ts'
import { homeFolder } from './home-folder.ts'
import { stateRoot } from './read/folders.ts'

/** When a running process writes what it has compiled: a signal often ends it before it could write at its exit. */
const FLUSH_MS = 3_000

/** The last major version of Node whose engine is known to have these options: it would report others on stderr. */
const LAST_KNOWN = 26
/** The heap may grow to four times what is alive, the most that the engine allows itself. */
const GROW = '--heap-growing-percent=300'
/** The heap is marked when four fifths of that growth are used. */
const MARK_LATE = '--incremental-marking-soft-trigger=80'
/** With a limit below this one the engine lets a heap grow to twice what is alive at most. */
const AMPLE_BYTES = 1024 ** 3

/**
 * Node's cache of compiled code, in our state folder: a start from it costs a quarter less CPU. Its content is executed, so a folder that
 * is a link, belongs to another user or is open to others is not used. `NODE_DISABLE_COMPILE_CACHE=1` switches it off. Never throws: the
 * cache is optional.
 */
export const useCompileCache = (): void => {
  const uid = process.getuid?.()
  try {
    const root = stateRoot({ env: process.env, home: homeFolder(), uid, platform: process.platform })
    const folder = join(root, 'compile-cache')
    makeFolder(folder)
    if (!belongsTo(uid, root, 0o022) || !belongsTo(uid, folder, 0o077)) return
    enableCompileCache(folder)
    setTimeout(flushCompileCache, FLUSH_MS).unref()
  } catch {
    // The home folder cannot be written, or Node was built without the cache.
  }
}

/**
 * Our heap is small, and messages come and go outside of it: by its own rule the engine marks all of the heap up to ten times a second, in
 * some processes and not in others. What is given on the command line of Node has precedence, and so has the engine where memory is scarce.
 *
 * Gain: a process that marked takes 41 in place of 66 µs for a call of 10 KB (decision 0186).
 */
export const setHeapOptions = (): void => {
  if (Number.parseInt(process.versions.node) > LAST_KNOWN) return
  const given = process.execArgv.map(nameOf)
  const options = getHeapStatistics().heap_size_limit < AMPLE_BYTES ? [MARK_LATE] : [MARK_LATE, GROW]
  for (const option of options) if (!given.includes(nameOf(option))) setFlagsFromString(option)
}

/** Node takes `_` for `-` in the names of the engine's options. */
const nameOf = (option: string): string => option.split('=', 1)[0]?.replaceAll('_', '-') ?? ''

/** Whether the folder belongs to this user and has none of the permissions `refused`. Windows has neither; there it is in the user's profile. */
const belongsTo = (uid: number | undefined, folder: string, refused: number): boolean => {
  const found = lstatSync(folder)
  return found.isDirectory() && (uid === undefined || (found.uid === uid && (found.mode & refused) === 0))
}
