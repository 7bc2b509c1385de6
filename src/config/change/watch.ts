/**
 * Tells when a file of the configuration changes. Folders are watched, not files: editors replace a file by renaming another over it,
 * and mounted configurations swap a symbolic link beside it. What counts is that a file looks different afterwards.
 */
import { watch } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { catchError, concatMap, debounceTime, defer, filter, interval, map, merge, Observable, startWith, switchMap } from 'rxjs'
import { expandGlob, globRoot } from '../read/glob.ts'

export interface WatchOptions {
  /** Silence after the last event. */
  readonly debounceMs?: number
  /** How long a file may be away while an editor replaces it; after that its absence is the change. */
  readonly vanishMs?: number
  /** When the configuration in force began to be read (wall clock): what was written since then is a change, too. */
  readonly sinceMs?: number
  /** For folders that cannot be watched. */
  readonly pollMs?: number
}

type Looks = ReadonlyMap<string, string | undefined>

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
    looks: asOf(await look(files, globs).catch(() => new Map()), sinceMs),
  })).pipe(
    switchMap(({ folders, looks }) => {
      let known = looks
      const compare = async () => {
        const now = await lookTwice(files, globs, known, vanishMs).catch(() => undefined)
        // What cannot be read now (no descriptor is left) has not changed; the next event looks again.
        if (now === undefined) return []
        const changed = [...new Set([...known.keys(), ...now.keys()])].filter((file) => known.get(file) !== now.get(file))
        known = now
        return changed
      }
      return merge(...folders.map((folder) => folderEvents(folder, pollMs))).pipe(
        // What happened between the first look and the watching.
        startWith(undefined),
        debounceTime(debounceMs),
        concatMap(compare),
      )
    }),
    filter((changed) => changed.length > 0),
  )

/** The folders of the files, those their links point to, and the roots of the patterns. */
const foldersOf = async (files: readonly string[], globs: readonly string[]): Promise<readonly string[]> => {
  const real = await Promise.all(files.map((file) => realpath(file).catch(() => file)))
  return [...new Set([...[...files, ...real].map(dirname), ...globs.map(globRoot)])]
}

/** How every file looks now; `undefined`: it is not there. Links are followed. */
const look = async (files: readonly string[], globs: readonly string[]): Promise<Looks> => {
  const found = await Promise.all(globs.map(expandGlob))
  const all = [...new Set([...files, ...found.flat()])]
  const looks = all.map(async (file): Promise<[string, string | undefined]> => {
    const seen = await stat(file, { bigint: true }).catch(() => undefined)
    return [file, seen && `${seen.ino} ${seen.size} ${seen.mtimeNs} ${seen.ctimeNs}`]
  })
  return new Map(await Promise.all(looks))
}

/** Clocks of file systems tick slowly: what was written just before the reading may count as written since. */
const TICK_MS = 20

/** Looks from which files that were written since then differ, whatever they look like. */
const asOf = (looks: Looks, sinceMs: number): Looks =>
  new Map(
    [...looks].map(([file, seen]) => {
      const writtenMs = seen === undefined ? 0 : Number(seen.split(' ')[3]) / 1e6
      return [file, writtenMs > sinceMs - TICK_MS ? 'as it was read' : seen]
    }),
  )

/** Looks again after `vanishMs` if a file that was there is away. */
const lookTwice = async (files: readonly string[], globs: readonly string[], known: Looks, vanishMs: number): Promise<Looks> => {
  const now = await look(files, globs)
  if (![...known].some(([file, before]) => before !== undefined && now.get(file) === undefined)) return now
  await new Promise((resolve) => setTimeout(resolve, vanishMs))
  return look(files, globs)
}

/** Something happened in a folder. One that cannot be watched (gone, or no watches left) is looked at from time to time. */
const folderEvents = (folder: string, pollMs: number): Observable<void> =>
  new Observable<void>((subscriber) => {
    const watcher = watch(folder, { persistent: false }, () => subscriber.next())
    watcher.on('error', (error) => subscriber.error(error))
    return () => watcher.close()
  }).pipe(catchError(() => interval(pollMs).pipe(map(() => undefined))))
