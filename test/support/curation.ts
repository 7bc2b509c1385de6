/** What a configuration says of one server, as the modules of the gateway get it. */
import { loadConfiguration } from '../../src/config/load.ts'
import type { ServerOptions } from '../../src/downstream/options.ts'

/** Read from the entry of a server called `a`. Places are all `configuration`, as an object has no lines. */
export const curated = async (entry: object): Promise<Pick<ServerOptions, 'curation' | 'trusted'>> => {
  const value = { servers: { a: { command: 'x', ...entry } } }
  const { servers } = await loadConfiguration({ files: [], value }, { env: {}, cwd: '/', home: '/' })
  const { curation, trusted } = servers[0]!
  return { curation, trusted }
}
