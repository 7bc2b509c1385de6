/**
 * Makes a folder and those above it. Node's own `mkdir` with `recursive` never returns where a folder that exists reports its children as
 * not found: below `/proc`, on a mount that was taken away, behind a link to nothing (nodejs/node, `MKDirpSync`).
 */
import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { asError } from './values/as-error.ts'

/** Folders made here are for their owner alone unless `mode` says otherwise. Throws the system's error, with a message that names the place. */
export const makeFolder = (folder: string, mode = 0o700): void => {
  const missing: string[] = []
  for (let at = resolve(folder); !isFolder(at) && at !== missing.at(-1); at = dirname(at)) missing.push(at)
  for (const path of missing.toReversed())
    try {
      mkdirSync(path, { mode })
    } catch (error) {
      // Another process may have made it meanwhile.
      if (!isFolder(path)) throw explain(asError(error), folder, path)
    }
}

const isFolder = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

const explain = (error: NodeJS.ErrnoException, folder: string, path: string): Error => {
  const reason =
    error.code === 'EEXIST'
      ? `${path} is no folder, or a link to nothing`
      : error.code === 'ENOENT'
        ? `${dirname(path)} takes no new folders`
        : `${path} is refused by the system`
  return Object.assign(new Error(`the folder ${folder} cannot be made: ${reason} (${error.code})`, { cause: error }), {
    code: error.code,
  })
}
