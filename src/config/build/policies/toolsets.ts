/** The toolsets of a configuration, each with what it extends put in, and everything that is wrong with them. */
import { DEFAULT_BUDGET, Toolset } from '../../../catalog/view/toolset.ts'
import type { ToolOverride } from '../../../catalog/curate/override.ts'
import type { Budget, Choice, ToolsetOptions } from '../../../catalog/view/toolset.ts'
import type { ServerOptions } from '../../../downstream/options.ts'
import { DEFAULT_GATEWAY } from '../../../gateway/options.ts'
import type { Gathered } from '../../read/gather.ts'
import { nearestKey } from '../../syntax/nearest-key.ts'
import type { Problem } from '../../syntax/problems.ts'
import { TOOLSET_NAME } from '../../schema/toolset-schema.ts'
import type { ToolsetEntry } from '../../schema/toolset-schema.ts'
import { child, nearest } from '../../syntax/tree.ts'
import { checkMembers } from './toolset-members.ts'

const NO_BUDGET: Budget = { tools: Infinity, tokens: Infinity }
const WHOLE: Choice = { servers: ['*'], tools: undefined, resources: undefined, prompts: undefined, where: {} }

/** One toolset as it stands: what it says itself. */
type Written = readonly [name: string, entry: ToolsetEntry]

/** What several toolsets say together, before the one that extends them says more. */
type Inherited = Omit<ToolsetOptions, 'name' | 'place' | 'discovery' | 'budget'> & {
  readonly discovery: ToolsetOptions['discovery'] | undefined
  readonly budget: Partial<Budget> | undefined
}

const NOTHING_SAID: Inherited = {
  description: undefined,
  choices: [WHOLE],
  always: [],
  override: {},
  confirm: [],
  discovery: undefined,
  budget: undefined,
  rate: undefined,
}

/** Adds problems and warnings with their places. `servers`: those that run; others are known by their keys. */
export const buildToolsets = (
  gathered: Gathered,
  servers: readonly ServerOptions[],
  problems: Problem[],
  warnings: string[],
): readonly ToolsetOptions[] => {
  const tree = gathered.sections.get('toolsets')
  const entries: readonly Written[] = Object.entries(gathered.settings.toolsets ?? {})
  if (tree === undefined || entries.length === 0) return []
  const complain: Complain = (path, message, remedy) => {
    const node = nearest(tree, path)
    problems.push({ place: node.place, path: node.path, message, remedy })
  }
  for (const [name] of entries)
    if (!TOOLSET_NAME.test(name))
      complain(
        [name],
        `${JSON.stringify(name)} is no name for a toolset`,
        'use a-z, 0-9 and -, at most 40, beginning with a letter',
      )
  const warn = (path: readonly string[], text: string): void => void warnings.push(`${nearest(tree, path).place}: ${text}`)
  checkMembers(entries, gathered, servers, complain, warn)
  const resolver = new Resolver(new Map(entries), complain)
  return entries.map(([name]): ToolsetOptions => {
    const { budget, discovery = 'full', ...resolved } = resolver.resolve(name, [])
    const counts = discovery === 'auto' ? { ...DEFAULT_BUDGET, ...budget } : budget && { ...NO_BUDGET, ...budget }
    const toolset = { ...resolved, name, place: (child(tree, name) ?? tree).place, discovery, budget: counts }
    const doubted = doubtedServers(toolset, servers, gathered)
    if (doubted.length > 0)
      warn(
        [name],
        `toolset "${name}" asks for annotations, and those of ${doubted.join(', ')} are not believed without trusted: true`,
      )
    return toolset
  })
}

/** Servers whose tools count as saying nothing of themselves, though the toolset asks. */
const doubtedServers = (
  toolset: ToolsetOptions,
  servers: readonly ServerOptions[],
  { settings }: Gathered,
): readonly string[] => {
  const asking = { ...toolset, choices: toolset.choices.filter(({ where }) => Object.keys(where).length > 0) }
  const naming = { prefix: settings.naming?.prefix ?? DEFAULT_GATEWAY.prefix, maxNameLength: DEFAULT_GATEWAY.maxNameLength }
  const made = new Toolset([asking])
  return servers.filter((server) => server.trusted !== true && made.mayHold(server, naming)).map(({ key }) => key)
}

/** Tells what is wrong at a path below `toolsets`. */
export type Complain = (path: readonly string[], message: string, remedy: string) => void

class Resolver {
  readonly #entries: ReadonlyMap<string, ToolsetEntry>
  readonly #complain: Complain
  readonly #done = new Map<string, Inherited>()

  constructor(entries: ReadonlyMap<string, ToolsetEntry>, complain: Complain) {
    this.#entries = entries
    this.#complain = complain
  }

  /** `chain`: the toolsets that extend this one, and led here. */
  resolve(name: string, chain: readonly string[]): Inherited {
    const done = this.#done.get(name)
    if (done !== undefined) return done
    const entry = this.#entries.get(name) ?? {}
    const bases = (entry.extends ?? []).flatMap((base) => this.#base(name, base, [...chain, name]))
    const resolved = own(entry, bases.length === 0 ? NOTHING_SAID : this.#union(name, entry, bases))
    this.#done.set(name, resolved)
    return resolved
  }

  #base(name: string, base: string, chain: readonly string[]): readonly (readonly [string, Inherited])[] {
    if (!this.#entries.has(base)) {
      const suggestion = nearestKey(base, [...this.#entries.keys()])
      const remedy = suggestion === undefined ? `known: ${[...this.#entries.keys()].join(', ')}` : `did you mean "${suggestion}"?`
      this.#complain([name, 'extends'], `there is no toolset "${base}"`, remedy)
      return []
    }
    if (chain.includes(base)) {
      const circle = [...chain.slice(chain.indexOf(base)), base].join(' → ')
      this.#complain([name, 'extends'], `toolsets extend each other: ${circle}`, 'remove one of them')
      return []
    }
    return [[base, this.resolve(base, chain)]]
  }

  /** Where two say different things of one, the toolset that extends both has to decide. */
  #union(name: string, entry: ToolsetEntry, bases: readonly (readonly [string, Inherited])[]): Inherited {
    const only = <T>(what: readonly string[], isSaid: boolean, valueOf: (base: Inherited) => T | undefined): T | undefined => {
      const said = bases.flatMap(([base, inherited]) => {
        const value = valueOf(inherited)
        return value === undefined ? [] : [{ base, value }]
      })
      const [first] = said
      const other = said.find(({ value }) => JSON.stringify(value) !== JSON.stringify(first?.value))
      if (other !== undefined && !isSaid)
        this.#complain(
          [name, 'extends'],
          `"${first?.base}" and "${other.base}" say different things of ${what.join('.')}`,
          `say it here: toolsets.${name}.${what.join('.')}`,
        )
      return first?.value
    }
    const inherited = bases.map(([, base]) => base)
    const tools = new Set(inherited.flatMap(({ override }) => Object.keys(override)))
    const merged = [...tools].map((tool): readonly [string, ToolOverride] => {
      const of = <K extends keyof ToolOverride>(field: K): ToolOverride[K] | undefined =>
        only(['override', tool, field], entry.override?.[tool]?.[field] !== undefined, ({ override }) => override[tool]?.[field])
      return [tool, defined({ title: of('title'), description: of('description'), annotations: of('annotations') })]
    })
    const descriptions = new Set(inherited.flatMap(({ description }) => description ?? []))
    const budgetOf = (of: keyof Budget): number | undefined =>
      only(['budget', of], entry.budget?.[of] !== undefined, ({ budget }) => budget?.[of])
    const budget = defined({ tools: budgetOf('tools'), tokens: budgetOf('tokens') })
    return {
      description: descriptions.size === 0 ? undefined : [...descriptions].join('\n\n'),
      choices: inherited.flatMap(({ choices }) => choices),
      always: inherited.flatMap(({ always }) => always),
      override: Object.fromEntries(merged),
      confirm: inherited.flatMap(({ confirm }) => confirm),
      discovery: only(['discovery'], entry.discovery !== undefined, ({ discovery }) => discovery),
      budget: Object.keys(budget).length === 0 ? undefined : budget,
      rate: only(['limits', 'rate'], entry.limits?.rate !== undefined, ({ rate }) => rate),
    }
  }
}

/** What the entry says itself, in place of what it inherits. */
const own = (entry: ToolsetEntry, inherited: Inherited): Inherited => {
  const { servers, tools, resources, prompts, where, override = {} } = entry
  const said = defined({ servers, tools, resources, prompts, where: where && defined(where) })
  const words = Object.entries(override).map(([tool, { title, description, annotations }]): readonly [string, ToolOverride] => [
    tool,
    {
      ...inherited.override[tool],
      ...defined({ title, description, annotations: annotations && defined(annotations) }),
    },
  ])
  const budget = entry.budget && { ...inherited.budget, ...defined(entry.budget) }
  return {
    description: entry.description ?? inherited.description,
    choices: inherited.choices.map((choice) => ({ ...choice, ...said })),
    always: entry.always ?? inherited.always,
    override: { ...inherited.override, ...Object.fromEntries(words) },
    confirm: entry.confirm ?? inherited.confirm,
    discovery: entry.discovery ?? inherited.discovery,
    budget: budget ?? inherited.budget,
    rate: entry.limits?.rate ?? inherited.rate,
  }
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Without the members that are not there. Cast: what is not defined is left out. */
const defined = <T extends object>(value: T): Defined<T> =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>
