/**
 * A toolset: a named part of the catalog, a predicate over its rows and over URIs that no list names. What it hides does not exist
 * for its callers (DECISIONS 5). Where a credential has several toolsets, they form one that shows what any of them shows.
 */
import type { Rate } from '../../rpc/rate.ts'
import { entriesOf } from '../../values/typed-keys.ts'
import type { CatalogServer, Exposed } from '../catalog.ts'
import type { ToolOverride } from '../curate/override.ts'
import { matchesGlob } from '../glob.ts'
import { holds } from '../hints.ts'
import type { HintName, Hints } from '../hints.ts'
import type { ListKind } from '../inventory.ts'
import { uriMode } from '../names/naming.ts'
import type { NamingOptions } from '../names/naming.ts'
import { plainUri } from '../names/plain-uri.ts'

/** One way to choose: all that is said must hold. */
export interface Choice {
  /** Keys, globs over keys, or tags. */
  readonly servers: readonly string[]
  /** Globs over exposed names and URIs. `undefined` in all three: everything of the servers; in one: nothing of that kind. */
  readonly tools: readonly string[] | undefined
  readonly resources: readonly string[] | undefined
  readonly prompts: readonly string[] | undefined
  /** What must hold of a tool. */
  readonly where: Hints
}

export type Discovery = 'full' | 'search' | 'auto'

export interface Budget {
  /** `Infinity`: no limit. */
  readonly tools: number
  /** Estimated. */
  readonly tokens: number
}

/** One entry of `toolsets`, with what it extends put in. */
export interface ToolsetOptions {
  readonly name: string
  /** Where it is written: `trunkline.yaml:31:3`. */
  readonly place: string
  /** Begins the instructions of its endpoint. */
  readonly description: string | undefined
  /** It holds what any of these does. */
  readonly choices: readonly Choice[]
  /** Globs over tools that are listed even where hosts are to search. */
  readonly always: readonly string[]
  /** By exposed name. */
  readonly override: Readonly<Record<string, ToolOverride>>
  /** Globs over tools whose calls a person is asked about. */
  readonly confirm: readonly string[]
  readonly discovery: Discovery
  /** `undefined`: nothing counts. */
  readonly budget: Budget | undefined
  /** Calls of all who have it together. */
  readonly rate: Rate | undefined
}

/** Of `discovery: auto`, where the budget says nothing else. */
export const DEFAULT_BUDGET: Budget = { tools: 60, tokens: 12_000 }

export class Toolset {
  /** Names of those it is made of, with blanks between. */
  readonly name: string
  readonly discovery: Discovery
  readonly budget: Budget | undefined
  readonly description: string | undefined
  /** Whether there is any tool that a person is asked about. */
  readonly confirmsAny: boolean
  readonly #override: ReadonlyMap<string, ToolOverride>
  readonly #choices: readonly CompiledChoice[]
  /** A reload of another naming makes other toolsets. */
  readonly #mayHold = new WeakMap<CatalogServer, boolean>()
  readonly #isAlways: Matcher
  readonly #isConfirmed: Matcher

  /** The first decides what only one can: how it is offered, and whose override wins. */
  constructor(all: readonly ToolsetOptions[]) {
    const [first] = all
    this.name = all.map(({ name }) => name).join(' ')
    this.discovery = first?.discovery ?? 'full'
    this.budget = first?.budget
    this.description = first?.description
    this.confirmsAny = all.some(({ confirm }) => confirm.length > 0)
    this.#override = new Map(all.toReversed().flatMap(({ override }) => Object.entries(override)))
    this.#choices = all.flatMap(({ choices }) => choices.map((choice) => new CompiledChoice(choice)))
    this.#isAlways = matcher(all.flatMap(({ always }) => always))
    this.#isConfirmed = matcher(all.flatMap(({ confirm }) => confirm))
  }

  /** Whether it could hold anything of this server, as far as names tell; asked for every list. */
  mayHold(server: CatalogServer, naming: NamingOptions): boolean {
    let may = this.#mayHold.get(server)
    if (may === undefined) this.#mayHold.set(server, (may = this.#choices.some((choice) => choice.mayHold(server, naming))))
    return may
  }

  /** Whether it could hold URIs of this server that no list names. */
  mayHoldUris(server: CatalogServer, naming: NamingOptions): boolean {
    return this.#choices.some((choice) => choice.mayHoldUris(server, naming))
  }

  shows(kind: ListKind, row: Exposed): boolean {
    return this.#choices.some((choice) => choice.shows(kind, row, this.overrideOf(row.exposed)?.annotations))
  }

  /** Whether a tool or prompt that no list names is in it, as far as names decide: no `where` can be looked at. */
  showsName(kind: 'tools' | 'prompts', server: CatalogServer, exposed: string): boolean {
    return this.#choices.some((choice) => choice.showsName(kind, server, exposed))
  }

  /** Whether a URI that no list names is in it; `exposed`: under `/mcp`. */
  showsUri(server: CatalogServer, exposed: string): boolean {
    return this.#choices.some((choice) => choice.showsUri(server, exposed))
  }

  overrideOf(exposed: string): ToolOverride | undefined {
    return this.#override.get(exposed)
  }

  /** Whether the tool is listed where others must be searched for. */
  isAlways(exposed: string): boolean {
    return this.#isAlways(exposed)
  }

  /** Whether a person is asked before each call of the tool. */
  isConfirmed(exposed: string): boolean {
    return this.#isConfirmed(exposed)
  }
}

class CompiledChoice {
  readonly #choice: Choice
  readonly #where: readonly [HintName, boolean | undefined][]
  readonly #tools: Matcher | undefined
  readonly #prompts: Matcher | undefined
  readonly #isWhole: boolean

  constructor(choice: Choice) {
    const { tools, resources, prompts, where } = choice
    this.#choice = choice
    this.#where = entriesOf(where)
    this.#tools = tools && matcher(tools)
    this.#prompts = prompts && matcher(prompts)
    this.#isWhole = tools === undefined && resources === undefined && prompts === undefined
  }

  mayHold(server: CatalogServer, naming: NamingOptions): boolean {
    if (this.mayHoldUris(server, naming)) return true
    const { tools = [], prompts = [] } = this.#choice
    if (!this.#has(server) || tools.length + prompts.length === 0) return false
    return naming.prefix === 'never' || this.#mayName(server)
  }

  /** Whether some glob could be about names of this server. */
  #mayName(server: CatalogServer): boolean {
    const { tools = [], prompts = [] } = this.#choice
    const names = Object.values(server.alias)
    return [...tools, ...prompts].some(
      (glob) => mayBegin(glob, `${server.prefix}__`) || names.some((name) => matchesGlob(glob, name)),
    )
  }

  mayHoldUris(server: CatalogServer, naming: NamingOptions): boolean {
    const { resources = [] } = this.#choice
    if (!this.#has(server)) return false
    if (this.#isWhole) return true
    if (resources.length === 0) return false
    if (uriMode(server, naming) === 'identity') return true
    const starts = [`${server.prefix}+`, `ui://~${server.prefix}/`, 'http://', 'https://']
    return resources.some((glob) => starts.some((start) => mayBegin(glob, start)))
  }

  shows(kind: ListKind, row: Exposed, told: Hints | undefined): boolean {
    if (kind === 'resources' || kind === 'templates') return this.showsUri(row.server, row.exposed)
    if (!this.#has(row.server)) return false
    if (kind === 'prompts') return this.#isWhole || this.#prompts?.(row.exposed) === true
    // A toolset that names anything of a server shows the sign-in tool of that server.
    if (row.entry.isSignIn === true) return this.#isWhole || this.#mayName(row.server)
    return (
      (this.#isWhole || this.#tools?.(row.exposed) === true) &&
      this.#where.every(([hint, wanted]) => holds(hint, row, told) === wanted)
    )
  }

  showsName(kind: 'tools' | 'prompts', server: CatalogServer, exposed: string): boolean {
    if (!this.#has(server) || (kind === 'tools' && this.#where.length > 0)) return false
    return this.#isWhole || (kind === 'tools' ? this.#tools : this.#prompts)?.(exposed) === true
  }

  showsUri(server: CatalogServer, exposed: string): boolean {
    if (!this.#has(server)) return false
    if (this.#isWhole) return true
    const { resources = [] } = this.#choice
    const isMatch = (uri: string): boolean => resources.some((glob) => matchesGlob(glob, uri, '/'))
    const plain = plainUri(exposed)
    return plain !== undefined && isMatch(exposed) && (plain === exposed || isMatch(plain))
  }

  #has({ key, tags }: CatalogServer): boolean {
    return this.#choice.servers.some((item) => tags.includes(item) || matchesGlob(item, key))
  }
}

/** Whether the glob matches anything that begins like that. */
const mayBegin = (glob: string, start: string): boolean => {
  const [head = ''] = glob.split(/[*?]/, 1)
  return head.startsWith(start) || (start.startsWith(head) && head !== glob)
}

type Matcher = (name: string) => boolean

/** Whether any of the globs matches; names without a wild card cost one look-up together. */
const matcher = (globs: readonly string[]): Matcher => {
  const exact = new Set(globs.filter((glob) => !isWild(glob)))
  const wild = globs.filter(isWild)
  return (name) => exact.has(name) || wild.some((glob) => matchesGlob(glob, name))
}

/** Whether it can mean several. */
export const isWild = (glob: string): boolean => /[*?]/.test(glob)
