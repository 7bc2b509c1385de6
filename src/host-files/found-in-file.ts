/** Finds the servers in a file of a host in any folder. The host is detected by the form of the file. */
import { basename, extname } from 'node:path'
import { entriesOf } from '../values/typed-keys.ts'
import { ChangeError, editing, readState, textOfState } from './edit/change.ts'
import { lookIn, readText } from './edit/editor.ts'
import { nameOf, readPlace, withoutServers } from './found.ts'
import type { FoundFile } from './found.ts'
import { HOSTS } from './hosts.ts'
import type { UserEnvironment, HostPlace, HostName } from './hosts.ts'

/** Syntax by file extension. */
const SYNTAX: Readonly<Record<string, string>> = {
  '.json': 'json',
  '.jsonc': 'json',
  '.json5': 'json',
  '.yml': 'yaml',
  '.yaml': 'yaml',
  '.toml': 'toml',
}

/** `file`: absolute. Rejects with `ChangeError` if the file is unreadable or belongs to no known host. */
export const findInFile = async (file: string, user: UserEnvironment): Promise<FoundFile> => {
  const shown = nameOf(file, user)
  const state = await readState(file)
  if (state.bytes === undefined) throw new ChangeError(`${shown} cannot be read (ENOENT); check the path`)
  const data = editing(shown, () => readText(file, textOfState(state)))
  const found = placesOf(file, user).find(({ place }) => lookIn(data, place.at) !== undefined)
  if (found === undefined)
    throw new ChangeError(`${shown} contains no servers in the form of a known host: ${Object.keys(HOSTS).join(', ')}`)
  const read = await readPlace(found.host, { ...found.place, path: file }, user)
  const { host, place } = found
  return read ?? withoutServers({ host, scope: place.scope, file })
}

/**
 * The places with the syntax of this file, and `mcp.servers` in any syntax: mcp-agent has it in YAML. Places with the same file name come
 * first.
 */
const placesOf = (file: string, user: UserEnvironment): readonly { readonly host: HostName; readonly place: HostPlace }[] => {
  const syntax = SYNTAX[extname(file)] ?? 'json'
  const all = entriesOf(HOSTS).flatMap(([host, { places }]) => places(user).map((place) => ({ host, place })))
  return all
    .filter(({ place }) => (SYNTAX[extname(place.path)] ?? 'json') === syntax || place.at.join('.') === 'mcp.servers')
    .toSorted((a, b) => Number(basename(b.place.path) === basename(file)) - Number(basename(a.place.path) === basename(file)))
}
