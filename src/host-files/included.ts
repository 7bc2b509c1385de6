/** The servers of a configuration that are not in its first file: in files that it includes, or in further files of `-c`. */
import { gather } from '../config/read/gather.ts'
import type { RuntimeEnvironment } from '../config/runtime-environment.ts'
import { plainMap } from '../config/syntax/tree.ts'
import { shortPath } from '../config/syntax/variables.ts'
import type { ServerDraft } from './found.ts'

export interface Included {
  readonly servers: Readonly<Record<string, ServerDraft>>
  /** Where each of them is defined, by key. */
  readonly places: ReadonlyMap<string, string>
}

/** `file`: the first one, absolute. `further`: the other files of `-c`. Reads no secret; files with errors count as far as they can be read. */
export const readIncluded = async (file: string, further: readonly string[], context: RuntimeEnvironment): Promise<Included> => {
  const overrides = { ...context.overrides, withoutSecrets: true }
  const { servers } = await gather({ files: [file, ...further] }, { ...context, overrides }, [], [])
  const own = `${shortPath(file, context.cwd)}:`
  const others = [...servers.values()].filter(({ tree }) => !tree.place.startsWith(own))
  return {
    servers: Object.fromEntries(others.map(({ key, tree }) => [key, plainMap(tree)])),
    places: new Map(others.map(({ key, tree }) => [key, tree.place])),
  }
}
