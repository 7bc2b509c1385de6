/** The servers of one file of a host, wherever the file lies: read as the host reads it whose form it has. */
import { readFile } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { entriesOf } from '../values/typed-keys.ts'
import { ChangeError, editing } from './edit/change.ts'
import { lookIn, readText } from './edit/editor.ts'
import { nameOf, readPlace } from './found.ts'
import type { FoundFile } from './found.ts'
import { HOSTS } from './hosts.ts'
import type { Around, HostPlace, HostName } from './hosts.ts'

/** Extensions of one syntax. */
const SYNTAX: Readonly<Record<string, string>> = {
  '.json': 'json',
  '.jsonc': 'json',
  '.json5': 'json',
  '.yml': 'yaml',
  '.yaml': 'yaml',
  '.toml': 'toml',
}

/** `file`: absolute. Rejects with `ChangeError` where it cannot be read, or is not the file of a host that is known. */
export const findInFile = async (file: string, around: Around & { readonly uid?: number | undefined }): Promise<FoundFile> => {
  const shown = nameOf(file, around)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ChangeError(`${shown} cannot be read (${error.code})`)
  })
  const data = editing(shown, () => readText(file, text))
  const found = placesOf(file, around).find(({ place }) => lookIn(data, place.at) !== undefined)
  if (found === undefined)
    throw new ChangeError(`${shown} holds no servers of a host that is known: ${Object.keys(HOSTS).join(', ')}`)
  const read = await readPlace(found.host, { ...found.place, path: file }, around)
  const { host, place } = found
  return read ?? { host, scope: place.scope, file, servers: [], problems: [], warnings: [], isConnected: false }
}

/** Places of one syntax with this file, those of its very name first. */
const placesOf = (file: string, around: Around): readonly { readonly host: HostName; readonly place: HostPlace }[] => {
  const syntax = SYNTAX[extname(file)] ?? 'json'
  const all = entriesOf(HOSTS).flatMap(([host, { places }]) => places(around).map((place) => ({ host, place })))
  return all
    .filter(({ place }) => (SYNTAX[extname(place.path)] ?? 'json') === syntax)
    .toSorted((a, b) => Number(basename(b.place.path) === basename(file)) - Number(basename(a.place.path) === basename(file)))
}
