/**
 * Makes a folder and those above it. Node's own `mkdir` with `recursive` never returns if an existing folder reports its children as not
 * found: below `/proc`, on a detached mount, behind a dangling link (nodejs/node, `MKDirpSync`).
 */
import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { asError } from './values/as-error.ts'
import { attempt } from './values/attempt.ts'

/** New folders are private unless `mode` differs. Throws the system's error, with a message that names the path. */
export const makeFolder = (folder: string, mode = 0o700): void => {
  for (const path of missingFolders(folder).toReversed())
    try {
      mkdirSync(path, { mode })
    } catch (error) {
      // Another process may have created it meanwhile.
      if (!isFolder(path)) throw explain(asError(error), folder, path)
    }
}

/** Returns the folders that `makeFolder` would make, innermost first. */
export const missingFolders = (folder: string): readonly string[] => {
  const missing: string[] = []
  for (let at = resolve(folder); !isFolder(at) && at !== missing.at(-1); at = dirname(at)) missing.push(at)
  return missing
}

const isFolder = (path: string): boolean => attempt(() => statSync(path).isDirectory()) ?? false

const explain = (error: NodeJS.ErrnoException, folder: string, path: string): Error => {
  const reason =
    error.code === 'EEXIST'
      ? `${path} is not a folder, or is a dangling link`
      : error.code === 'ENOENT'
        ? `${dirname(path)} accepts no new folders`
        : `${path} is refused by the system`
  return Object.assign(new Error(`the folder ${folder} cannot be made: ${reason} (${error.code})`, { cause: error }), {
    code: error.code,
  })
}
