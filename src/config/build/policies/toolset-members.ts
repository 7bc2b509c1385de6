/** Whether the names in a toolset can exist. Of tools only the prefix is known when a configuration is read. */
import { isWild } from '../../../catalog/view/toolset.ts'
import { matchesGlob } from '../../../catalog/glob.ts'
import type { ServerOptions } from '../../../downstream/options.ts'
import type { Gathered } from '../../read/gather.ts'
import type { ToolsetEntry } from '../../schema/toolset-schema.ts'
import { suggest } from '../../syntax/nearest-key.ts'
import type { ReportProblem } from '../../syntax/problems.ts'
import { child, scalarTexts, textOf } from '../../syntax/tree.ts'

/** Reports each name that cannot exist, and warns of patterns of keys that match no server yet. */
export const checkMembers = (
  entries: readonly (readonly [name: string, entry: ToolsetEntry])[],
  gathered: Gathered,
  servers: readonly ServerOptions[],
  report: ReportProblem,
  warn: (path: readonly string[], text: string) => void,
): void => {
  const known = new KnownNames(gathered, servers)
  for (const [name, entry] of entries) {
    for (const [at, item] of (entry.servers ?? []).entries()) {
      const problem = known.server(item)
      if (problem?.isCertain === true) report([name, 'servers', String(at)], problem.message, problem.remedy)
      else if (problem !== undefined) warn([name, 'servers', String(at)], problem.message)
    }
    for (const member of ['tools', 'prompts', 'always', 'confirm'] as const)
      for (const [at, item] of (entry[member] ?? []).entries()) {
        const problem = known.name(item)
        if (problem !== undefined) report([name, member, String(at)], problem.message, problem.remedy)
      }
    for (const tool of Object.keys(entry.override ?? {})) {
      const problem = known.name(tool)
      if (problem !== undefined) report([name, 'override', tool], problem.message, problem.remedy)
    }
  }
}

interface Finding {
  readonly message: string
  readonly remedy: string
}

/** All names of the configuration, including those of disabled servers. */
class KnownNames {
  readonly #keys: readonly string[]
  readonly #tags: ReadonlySet<string>
  /** By key. */
  readonly #prefixes: ReadonlyMap<string, string>
  readonly #aliases: readonly string[]
  readonly #isPrefixed: boolean

  constructor({ servers: gathered, settings }: Gathered, servers: readonly ServerOptions[]) {
    const all = [...gathered.values()]
    const textsOf = (key: string): string[] => all.flatMap(({ tree }) => scalarTexts(child(tree, key)))
    this.#keys = [...gathered.keys()]
    this.#tags = new Set([...all.flatMap(({ tags }) => tags), ...textsOf('tags'), ...servers.flatMap(({ tags }) => tags)])
    this.#prefixes = new Map(all.map(({ key, tree }) => [key, textOf(child(tree, 'prefix')) ?? key]))
    this.#aliases = textsOf('alias')
    this.#isPrefixed = (settings.naming?.prefix ?? 'always') === 'always'
  }

  /** What is wrong with a key, a pattern of keys or a tag. `isCertain` is false for a pattern, which may match later servers. */
  server(item: string): (Finding & { readonly isCertain: boolean }) | undefined {
    if (this.#tags.has(item) || this.#keys.some((key) => matchesGlob(item, key))) return undefined
    if (isWild(item)) return { isCertain: false, message: `no server has a key like "${item}"`, remedy: '' }
    return {
      isCertain: true,
      message: `no server has the key or the tag "${item}"`,
      remedy: suggest(item, [...this.#keys, ...this.#tags]),
    }
  }

  /** What is wrong with an exposed name, or a pattern of them. */
  name(item: string): Finding | undefined {
    if (!this.#isPrefixed || this.#aliases.some((alias) => matchesGlob(item, alias))) return undefined
    const end = item.indexOf('__')
    const prefix = end === -1 ? item : item.slice(0, end)
    const prefixes = [...this.#prefixes.values()]
    if (isWild(prefix) || (end !== -1 && prefixes.includes(prefix))) return undefined
    if (end === -1)
      return {
        message: `"${item}" is not an exposed name`,
        remedy: `write <prefix>__<name>, such as ${prefixes[0] ?? 'github'}__${item}`,
      }
    const other = this.#prefixes.get(prefix)
    const remedy = other === undefined ? suggest(prefix, prefixes) : `the prefix of ${prefix} is "${other}"`
    return { message: `no server has the prefix of "${item}"`, remedy }
  }
}
