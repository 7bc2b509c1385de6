/** Checks the stored lists of an earlier run against the limits of hosts. */
import { lintCatalog } from '../../admin/catalog/lint.ts'
import type { Lint } from '../../admin/catalog/lint.ts'
import { buildCatalog } from '../../catalog/build-catalog.ts'
import { Curator } from '../../catalog/curate/curated-inventory.ts'
import { vetHidden } from '../../catalog/curate/vetting.ts'
import { Pins } from '../../downstream/lists/pins.ts'
import { openMemory } from '../../downstream/lists/store.ts'
import { createLog } from '../../log.ts'
import type { Loaded } from '../terminal/io.ts'

/** Starts no server. `hosts`: keys of `HOST_LIMITS`. */
export const storedLint = ({ configuration, io }: Loaded, hosts: readonly string[]): Lint => {
  const memory = openMemory(configuration.stateDir, createLog({ ...configuration.log, level: 'error' }, io.stderr))
  const curator = new Curator()
  const sources = configuration.servers.map((server) => {
    const offered = memory.inventory(server)
    if (offered === undefined) return { server, inventory: undefined }
    const vetted = vetHidden(new Pins(memory.pins(server)).preview(offered, server).inventory, server.hidden)
    return { server, inventory: curator.curate(vetted, server.curation) }
  })
  return lintCatalog(buildCatalog(sources, configuration.gateway), configuration.gateway, hosts)
}
