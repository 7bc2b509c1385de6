/** Whether what a toolset names can exist: servers are known when a configuration is read, tools only as far as their prefix. */
import { isWild } from '../../../catalog/view/toolset.ts'
import { matchesGlob } from '../../../catalog/glob.ts'
import type { ServerOptions } from '../../../downstream/options.ts'
import type { Gathered } from '../../read/gather.ts'
import { nearestKey } from '../../syntax/nearest-key.ts'
import type { ToolsetEntry } from '../../schema/toolset-schema.ts'
import type { Complain } from './toolsets.ts'
import { child, plain } from '../../syntax/tree.ts'
import type { Tree } from '../../syntax/tree.ts'

/** Adds a problem for each name that nothing can bear; `warn` is told of what may be meant so. */
export const checkMembers = (
  entries: readonly (readonly [name: string, entry: ToolsetEntry])[],
  gathered: Gathered,
  servers: readonly ServerOptions[],
  complain: Complain,
  warn: (path: readonly string[], text: string) => void,
): void => {
  const known = new Known(gathered, servers)
  for (const [name, entry] of entries) {
    for (const [at, item] of (entry.servers ?? []).entries()) {
      const problem = known.server(item)
      if (problem?.isCertain === true) complain([name, 'servers', String(at)], problem.message, problem.remedy)
      else if (problem !== undefined) warn([name, 'servers', String(at)], problem.message)
    }
    for (const member of ['tools', 'prompts', 'always', 'confirm'] as const)
      for (const [at, item] of (entry[member] ?? []).entries()) {
        const problem = known.name(item)
        if (problem !== undefined) complain([name, member, String(at)], problem.message, problem.remedy)
      }
    for (const tool of Object.keys(entry.override ?? {})) {
      const problem = known.name(tool)
      if (problem !== undefined) complain([name, 'override', tool], problem.message, problem.remedy)
    }
  }
}

interface Finding {
  readonly message: string
  readonly remedy: string
}

/** All names of the configuration, those of servers that are switched off among them. */
class Known {
  readonly #keys: readonly string[]
  readonly #tags: ReadonlySet<string>
  /** By key. */
  readonly #prefixes: ReadonlyMap<string, string>
  readonly #aliases: readonly string[]
  readonly #isPrefixed: boolean

  constructor({ servers: gathered, settings }: Gathered, servers: readonly ServerOptions[]) {
    const all = [...gathered.values()]
    const said = (key: string): unknown[] => all.map(({ tree }) => plainOf(child(tree, key))).filter(Boolean)
    this.#keys = [...gathered.keys()]
    // Cast: validation has found texts.
    this.#tags = new Set([
      ...all.flatMap(({ tags }) => tags),
      ...said('tags').flat(),
      ...servers.flatMap(({ tags }) => tags),
    ] as string[])
    this.#prefixes = new Map(all.map(({ key, tree }) => [key, prefixIn(tree) ?? key]))
    // Cast: validation has found texts.
    this.#aliases = said('alias').flatMap((alias) => Object.values(alias as object) as string[])
    this.#isPrefixed = (settings.naming?.prefix ?? 'always') === 'always'
  }

  /** What is wrong with a key, a pattern of keys or a tag; a pattern may mean servers that come later. */
  server(item: string): (Finding & { readonly isCertain: boolean }) | undefined {
    if (this.#tags.has(item) || this.#keys.some((key) => matchesGlob(item, key))) return undefined
    if (isWild(item)) return { isCertain: false, message: `no server has a key like "${item}"`, remedy: '' }
    return {
      isCertain: true,
      message: `no server has the key or the tag "${item}"`,
      remedy: this.#suggest(item, [...this.#keys, ...this.#tags]),
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
        message: `"${item}" is no exposed name`,
        remedy: `those are <prefix>__<name>, such as ${prefixes[0] ?? 'github'}__${item}`,
      }
    const other = this.#prefixes.get(prefix)
    const remedy = other === undefined ? this.#suggest(prefix, prefixes) : `that of ${prefix} is "${other}"`
    return { message: `no server has the prefix of "${item}"`, remedy }
  }

  #suggest(word: string, known: readonly string[]): string {
    const nearest = nearestKey(word, known)
    return nearest === undefined ? `known: ${known.join(', ')}` : `did you mean "${nearest}"?`
  }
}

const prefixIn = (tree: Tree): string | undefined => {
  const prefix = plainOf(child(tree, 'prefix'))
  return typeof prefix === 'string' ? prefix : undefined
}

const plainOf = (tree: ReturnType<typeof child>): unknown => (tree === undefined ? undefined : plain(tree))
