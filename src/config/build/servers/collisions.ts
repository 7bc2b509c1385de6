/** Finds tools to which the configuration gives the same exposed name. `naming.collision` decides on those that only lists show. */
import type { CatalogServer } from '../../../catalog/catalog.ts'
import type { Placed } from '../../../catalog/curation.ts'
import { exposeNames } from '../../../catalog/names/naming.ts'
import type { NamingOptions } from '../../../catalog/names/naming.ts'
import type { Problem } from '../../syntax/problems.ts'

interface Owner {
  readonly server: string
  readonly original: string
}

/** Servers in the order of the configuration; of two tools the later one is reported. */
export const findCollisions = (servers: readonly CatalogServer[], naming: NamingOptions): Problem[] => {
  const owners = new Map<string, Owner>()
  return servers.flatMap((server) =>
    [...namesOf(server, naming)].flatMap(([original, { exposed, path, place }]) => {
      const owner = owners.get(exposed)
      owners.set(exposed, owner ?? { server: server.key, original })
      if (owner === undefined) return []
      const message = `"${exposed}" is already the exposed name of "${owner.original}" of server "${owner.server}"`
      return [{ place, path, message, remedy: 'choose another name' }]
    }),
  )
}

/** The exposed names of all tools that the configuration names, by original name. */
const namesOf = (server: CatalogServer, naming: NamingOptions): Map<string, Placed & { readonly exposed: string }> => {
  const edits = [...(server.curation?.edits.values() ?? [])]
  const renamed = new Map(edits.flatMap(({ original, name }) => (name === undefined ? [] : [[original, name.text]])))
  const originals = edits.map(({ original }) => original)
  const exposed = exposeNames(server, originals, naming, renamed)
  return new Map(
    edits.map((edit) => {
      const { path, place } = edit.name ?? edit
      return [edit.original, { path, place, exposed: exposed.get(edit.original) ?? edit.original }]
    }),
  )
}
