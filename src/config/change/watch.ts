/**
 * Watches the files of a configuration. Watches folders, not files: editors replace a file by renaming another over it, and mounted
 * configurations swap a symbolic link beside it. A file has changed when its inode, size or times differ.
 */
import { watch } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { catchError, concatMap, debounceTime, defer, filter, interval, map, merge, Observable, startWith, switchMap } from 'rxjs'
import { expandGlob, globRoot } from '../read/glob.ts'

export interface WatchOptions {
  /** Time without events before files are compared. */
  readonly debounceMs?: number
  /** How long a file may be missing while an editor replaces it; after that its absence is a change. */
  readonly vanishMs?: number
  /** When reading of the configuration in force began (wall clock): a file written since then has changed, too. */
  readonly sinceMs?: number
  /** Interval of comparison for folders that cannot be watched. */
  readonly pollMs?: number
}

/** Inode, size and times of each file, as one text; `undefined`: the file does not exist. */
type Snapshot = ReadonlyMap<string, string | undefined>

/**
 * Emits the changed files (absolute), debounced; nothing before the first change, never an error. `globs` are absolute patterns.
 * A reloaded configuration may have other files: call this again with them.
 */
export const watchConfiguration = (
  files: readonly string[],
  globs: readonly string[] = [],
  { debounceMs = 100, vanishMs = 1_000, pollMs = 2_000, sinceMs = Infinity }: WatchOptions = {},
): Observable<readonly string[]> =>
  defer(async () => ({
    folders: await foldersOf(files, globs),
    snapshot: asOf(await readSnapshot(files, globs).catch(() => new Map()), sinceMs),
  })).pipe(
    switchMap(({ folders, snapshot }) => {
      let known = snapshot
      const compare = async () => {
        const now = await readSettled(files, globs, known, vanishMs).catch(() => undefined)
        // Files that cannot be read now (no descriptor is left) count as unchanged until the next event.
        if (now === undefined) return []
        const changed = [...new Set([...known.keys(), ...now.keys()])].filter((file) => known.get(file) !== now.get(file))
        known = now
        return changed
      }
      return merge(...folders.map((folder) => folderEvents(folder, pollMs))).pipe(
        // Compares once at the start: a file may have changed between the first snapshot and the watching.
        startWith(undefined),
        debounceTime(debounceMs),
        concatMap(compare),
      )
    }),
    filter((changed) => changed.length > 0),
  )

/** The folders of the files and of the targets of links, and the roots of the patterns. */
const foldersOf = async (files: readonly string[], globs: readonly string[]): Promise<readonly string[]> => {
  const real = await Promise.all(files.map((file) => realpath(file).catch(() => file)))
  return [...new Set([...[...files, ...real].map(dirname), ...globs.map(globRoot)])]
}

/** Follows links. */
const readSnapshot = async (files: readonly string[], globs: readonly string[]): Promise<Snapshot> => {
  const found = await Promise.all(globs.map(expandGlob))
  const all = [...new Set([...files, ...found.flat()])]
  const entries = all.map(async (file): Promise<[string, string | undefined]> => {
    const seen = await stat(file, { bigint: true }).catch(() => undefined)
    return [file, seen && `${seen.ino} ${seen.size} ${seen.mtimeNs} ${seen.ctimeNs}`]
  })
  return new Map(await Promise.all(entries))
}

/** Resolution of file times: a file written just before the reading may count as written since. */
const TICK_MS = 20

/** A snapshot from which every file that was written after `sinceMs` differs. */
const asOf = (snapshot: Snapshot, sinceMs: number): Snapshot =>
  new Map(
    [...snapshot].map(([file, seen]) => {
      const writtenMs = seen === undefined ? 0 : Number(seen.split(' ')[3]) / 1e6
      return [file, writtenMs > sinceMs - TICK_MS ? 'as it was read' : seen]
    }),
  )

/** Reads again after `vanishMs` if a known file is missing. */
const readSettled = async (
  files: readonly string[],
  globs: readonly string[],
  known: Snapshot,
  vanishMs: number,
): Promise<Snapshot> => {
  const now = await readSnapshot(files, globs)
  if (![...known].some(([file, before]) => before !== undefined && now.get(file) === undefined)) return now
  await new Promise((resolve) => setTimeout(resolve, vanishMs))
  return readSnapshot(files, globs)
}

/** Emits when something changes in a folder. Emits every `pollMs` for one that cannot be watched (deleted, or no watches left). */
const folderEvents = (folder: string, pollMs: number): Observable<void> =>
  new Observable<void>((subscriber) => {
    const watcher = watch(folder, { persistent: false }, () => subscriber.next())
    watcher.on('error', (error) => subscriber.error(error))
    return () => watcher.close()
  }).pipe(catchError(() => interval(pollMs).pipe(map(() => undefined))))
