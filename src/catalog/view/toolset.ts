/**
 * A toolset: a named part of the catalog, a predicate over rows and unlisted URIs. Hidden entries do not exist for its callers
 * (DECISIONS 5). Several toolsets of one credential form one that shows everything any of them shows.
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

/** One choice; all its conditions must hold. */
export interface Choice {
  /** Keys, globs over keys, or tags. */
  readonly servers: readonly string[]
  /** Globs over exposed names and URIs. `undefined` in all three: everything of the servers; in one: nothing of that kind. */
  readonly tools: readonly string[] | undefined
  readonly resources: readonly string[] | undefined
  readonly prompts: readonly string[] | undefined
  /** Hints that a tool must have. */
  readonly where: Hints
}

type Discovery = 'full' | 'search' | 'auto'

export interface Budget {
  /** `Infinity`: no limit. */
  readonly tools: number
  /** Estimated. */
  readonly tokens: number
}

/** One entry of `toolsets`, merged with those it extends. */
export interface ToolsetOptions {
  readonly name: string
  /** Its place in the configuration: `trunkline.yaml:31:3`. */
  readonly place: string
  /** First part of the instructions of its endpoint. */
  readonly description: string | undefined
  /** The toolset shows what any of them chooses. */
  readonly choices: readonly Choice[]
  /** Globs over tools that are listed even if hosts must search. */
  readonly always: readonly string[]
  /** By exposed name. */
  readonly override: Readonly<Record<string, ToolOverride>>
  /** Globs over tools whose calls a person must confirm. */
  readonly confirm: readonly string[]
  readonly discovery: Discovery
  /** `undefined`: no limit. */
  readonly budget: Budget | undefined
  /** Limits the calls of all its callers together. */
  readonly rate: Rate | undefined
}

/** Default budget of `discovery: auto`. */
export const DEFAULT_BUDGET: Budget = { tools: 60, tokens: 12_000 }

export class Toolset {
  /** Names of the toolsets it consists of, separated by blanks. */
  readonly name: string
  readonly discovery: Discovery
  readonly budget: Budget | undefined
  readonly description: string | undefined
  /** Whether calls of any tool must be confirmed. */
  readonly confirmsAny: boolean
  readonly #override: ReadonlyMap<string, ToolOverride>
  readonly #choices: readonly CompiledChoice[]
  /** Cache of `mayHold`. A reload with another naming creates other toolsets. */
  readonly #mayHold = new WeakMap<CatalogServer, boolean>()
  /** Whether the tool of this exposed name is listed even if hosts must search. */
  readonly isAlways: Matcher
  /** Whether a person must confirm calls of the tool of this exposed name. */
  readonly isConfirmed: Matcher

  /** `discovery`, `budget` and `description` are those of the first toolset; its overrides take precedence. */
  constructor(all: readonly ToolsetOptions[]) {
    const [first] = all
    this.name = all.map(({ name }) => name).join(' ')
    this.discovery = first?.discovery ?? 'full'
    this.budget = first?.budget
    this.description = first?.description
    this.confirmsAny = all.some(({ confirm }) => confirm.length > 0)
    this.#override = new Map(all.toReversed().flatMap(({ override }) => Object.entries(override)))
    this.#choices = all.flatMap(({ choices }) => choices.map((choice) => new CompiledChoice(choice)))
    this.isAlways = matcher(all.flatMap(({ always }) => always))
    this.isConfirmed = matcher(all.flatMap(({ confirm }) => confirm))
  }

  /** Whether the toolset could contain anything of this server, judged by names. */
  mayHold(server: CatalogServer, naming: NamingOptions): boolean {
    let may = this.#mayHold.get(server)
    if (may === undefined) this.#mayHold.set(server, (may = this.#choices.some((choice) => choice.mayHold(server, naming))))
    return may
  }

  /** Whether the toolset could contain unlisted URIs of this server. */
  mayHoldUris(server: CatalogServer, naming: NamingOptions): boolean {
    return this.#choices.some((choice) => choice.mayHoldUris(server, naming))
  }

  shows(kind: ListKind, row: Exposed): boolean {
    return this.#choices.some((choice) => choice.shows(kind, row, this.overrideOf(row.exposed)?.annotations))
  }

  /** Whether the toolset contains an unlisted tool or prompt, judged by its name: an unlisted tool has no hints for `where`. */
  showsName(kind: 'tools' | 'prompts', server: CatalogServer, exposed: string): boolean {
    return this.#choices.some((choice) => choice.showsName(kind, server, exposed))
  }

  /** Whether the toolset contains an unlisted URI. `exposed`: its form under `/mcp`. */
  showsUri(server: CatalogServer, exposed: string): boolean {
    return this.#choices.some((choice) => choice.showsUri(server, exposed))
  }

  /** Whether the toolset contains all of this server, whatever that is. */
  holdsAll(server: CatalogServer): boolean {
    return this.#choices.some((choice) => choice.holdsAll(server))
  }

  overrideOf(exposed: string): ToolOverride | undefined {
    return this.#override.get(exposed)
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

  /** Whether some glob could match names of this server. */
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
    // A toolset that could contain tools of a server shows the sign-in tool of that server.
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

  holdsAll(server: CatalogServer): boolean {
    return this.#isWhole && this.#where.length === 0 && this.#has(server)
  }

  #has({ key, tags }: CatalogServer): boolean {
    return this.#choice.servers.some((item) => tags.includes(item) || matchesGlob(item, key))
  }
}

/** Whether the glob matches any text that begins with `start`. */
const mayBegin = (glob: string, start: string): boolean => {
  const [head = ''] = glob.split(/[*?]/, 1)
  return head.startsWith(start) || (start.startsWith(head) && head !== glob)
}

type Matcher = (name: string) => boolean

/** Returns whether any of the globs matches; globs without a wildcard take one look-up together. */
const matcher = (globs: readonly string[]): Matcher => {
  const exact = new Set(globs.filter((glob) => !isWild(glob)))
  const wild = globs.filter(isWild)
  return (name) => exact.has(name) || wild.some((glob) => matchesGlob(glob, name))
}

/** Whether the glob can match several names. */
export const isWild = (glob: string): boolean => /[*?]/.test(glob)
