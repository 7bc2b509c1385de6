/** The toolsets of a configuration, each merged with those that it extends. */
import { DEFAULT_BUDGET, Toolset } from '../../../catalog/view/toolset.ts'
import type { ToolOverride } from '../../../catalog/curate/override.ts'
import type { Budget, Choice, ToolsetOptions } from '../../../catalog/view/toolset.ts'
import type { ServerOptions } from '../../../downstream/options.ts'
import { DEFAULT_GATEWAY } from '../../../gateway/options.ts'
import type { Gathered } from '../../read/gather.ts'
import { TOOLSET_NAME } from '../../schema/toolset-schema.ts'
import type { ToolsetEntry } from '../../schema/toolset-schema.ts'
import { suggest } from '../../syntax/nearest-key.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem, ReportProblem } from '../../syntax/problems.ts'
import { child, nearest } from '../../syntax/tree.ts'
import { checkMembers } from './toolset-members.ts'

const NO_BUDGET: Budget = { tools: Infinity, tokens: Infinity }
const WHOLE: Choice = { servers: ['*'], tools: undefined, resources: undefined, prompts: undefined, where: {} }

/** What a toolset inherits from those that it extends. */
type Inherited = Omit<ToolsetOptions, 'name' | 'place' | 'discovery' | 'budget'> & {
  readonly discovery: ToolsetOptions['discovery'] | undefined
  readonly budget: Partial<Budget> | undefined
}

const NOTHING_INHERITED: Inherited = {
  description: undefined,
  choices: [WHOLE],
  always: [],
  override: {},
  confirm: [],
  discovery: undefined,
  budget: undefined,
  rate: undefined,
}

/** Adds problems and warnings with their places. `servers`: the enabled ones; of the others only keys and prefixes are known. */
export const buildToolsets = (
  gathered: Gathered,
  servers: readonly ServerOptions[],
  problems: Problem[],
  warnings: string[],
): readonly ToolsetOptions[] => {
  const tree = gathered.sections.get('toolsets')
  const entries = Object.entries(gathered.settings.toolsets ?? {})
  if (tree === undefined) return []
  const report = reporterAt(tree, problems)
  for (const [name] of entries)
    if (!TOOLSET_NAME.test(name))
      report(
        [name],
        `${JSON.stringify(name)} is not a name for a toolset`,
        'use a-z, 0-9 and -, at most 40, beginning with a letter',
      )
  const warn = (path: readonly string[], text: string): void => void warnings.push(`${nearest(tree, path).place}: ${text}`)
  checkMembers(entries, gathered, servers, report, warn)
  const resolver = new Resolver(new Map(entries), report)
  return entries.map(([name]): ToolsetOptions => {
    const { budget, discovery = 'full', ...resolved } = resolver.resolve(name, [])
    const counts = discovery === 'auto' ? { ...DEFAULT_BUDGET, ...budget } : budget && { ...NO_BUDGET, ...budget }
    const toolset = { ...resolved, name, place: (child(tree, name) ?? tree).place, discovery, budget: counts }
    const untrusted = untrustedServers(toolset, servers, gathered)
    if (untrusted.length > 0)
      warn(
        [name],
        `toolset "${name}" selects by annotations, and those of ${untrusted.join(', ')} do not count without trusted: true`,
      )
    return toolset
  })
}

/** Servers whose annotations do not count, although the toolset selects by them. */
const untrustedServers = (
  toolset: ToolsetOptions,
  servers: readonly ServerOptions[],
  { settings }: Gathered,
): readonly string[] => {
  const choices = toolset.choices.filter(({ where }) => Object.keys(where).length > 0)
  const naming = { prefix: settings.naming?.prefix ?? DEFAULT_GATEWAY.prefix, maxNameLength: DEFAULT_GATEWAY.maxNameLength }
  const selecting = new Toolset([{ ...toolset, choices }])
  return servers.filter((server) => server.trusted !== true && selecting.mayHold(server, naming)).map(({ key }) => key)
}

/** Merges each toolset with those that it extends, once. */
class Resolver {
  readonly #entries: ReadonlyMap<string, ToolsetEntry>
  readonly #report: ReportProblem
  readonly #done = new Map<string, Inherited>()

  constructor(entries: ReadonlyMap<string, ToolsetEntry>, report: ReportProblem) {
    this.#entries = entries
    this.#report = report
  }

  /** `chain`: the toolsets that extend this one, outermost first. */
  resolve(name: string, chain: readonly string[]): Inherited {
    const done = this.#done.get(name)
    if (done !== undefined) return done
    const entry = this.#entries.get(name) ?? {}
    const bases = (entry.extends ?? []).flatMap((base) => this.#base(name, base, [...chain, name]))
    const resolved = override(entry, bases.length === 0 ? NOTHING_INHERITED : this.#union(name, entry, bases))
    this.#done.set(name, resolved)
    return resolved
  }

  #base(name: string, base: string, chain: readonly string[]): readonly (readonly [string, Inherited])[] {
    if (!this.#entries.has(base)) {
      this.#report([name, 'extends'], `there is no toolset "${base}"`, suggest(base, [...this.#entries.keys()]))
      return []
    }
    if (chain.includes(base)) {
      const circle = [...chain.slice(chain.indexOf(base)), base].join(' → ')
      this.#report([name, 'extends'], `toolsets extend each other: ${circle}`, 'remove one of them')
      return []
    }
    return [[base, this.resolve(base, chain)]]
  }

  /** Where two bases set different values, the toolset that extends both must set one itself; else that is reported. */
  #union(name: string, entry: ToolsetEntry, bases: readonly (readonly [string, Inherited])[]): Inherited {
    const only = <T>(
      path: readonly string[],
      isOverridden: boolean,
      valueOf: (base: Inherited) => T | undefined,
    ): T | undefined => {
      const values = bases.flatMap(([base, inherited]) => {
        const value = valueOf(inherited)
        return value === undefined ? [] : [{ base, value }]
      })
      const [first] = values
      const other = values.find(({ value }) => JSON.stringify(value) !== JSON.stringify(first?.value))
      if (other !== undefined && !isOverridden)
        this.#report(
          [name, 'extends'],
          `"${first?.base}" and "${other.base}" set different values for ${path.join('.')}`,
          `set it here: toolsets.${name}.${path.join('.')}`,
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

/** The inherited values, replaced by those that the entry sets itself. */
const override = (entry: ToolsetEntry, inherited: Inherited): Inherited => {
  const { servers, tools, resources, prompts, where } = entry
  const choice = defined({ servers, tools, resources, prompts, where: where && defined(where) })
  const overrides = Object.entries(entry.override ?? {}).map(
    ([tool, { title, description, annotations }]): readonly [string, ToolOverride] => [
      tool,
      {
        ...inherited.override[tool],
        ...defined({ title, description, annotations: annotations && defined(annotations) }),
      },
    ],
  )
  const budget = entry.budget && { ...inherited.budget, ...defined(entry.budget) }
  return {
    description: entry.description ?? inherited.description,
    choices: inherited.choices.map((base) => ({ ...base, ...choice })),
    always: entry.always ?? inherited.always,
    override: { ...inherited.override, ...Object.fromEntries(overrides) },
    confirm: entry.confirm ?? inherited.confirm,
    discovery: entry.discovery ?? inherited.discovery,
    budget: budget ?? inherited.budget,
    rate: entry.limits?.rate ?? inherited.rate,
  }
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Without undefined members. Cast: they are left out. */
const defined = <T extends object>(value: T): Defined<T> =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>
