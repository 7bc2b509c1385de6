/** Curation of one server: its rules, each with its place, checked against each other. */
import type { ArgumentEdit, Curation, ListFilter, Placed, ToolEdit } from '../../../catalog/curation.ts'
import type { HintName } from '../../../catalog/hints.ts'
import { isFromSecret } from '../known-secrets.ts'
import type { ServerEntry } from '../../schema/server-schema.ts'
import type { ReportProblem } from '../../syntax/problems.ts'
import { child, nearest, scalars } from '../../syntax/tree.ts'
import type { MapTree, Tree } from '../../syntax/tree.ts'

type CuratedTool = NonNullable<ServerEntry['tools']>[string]

const HINTS = {
  read_only: 'readOnlyHint',
  destructive: 'destructiveHint',
  idempotent: 'idempotentHint',
  open_world: 'openWorldHint',
} as const satisfies Record<string, HintName>

/** `undefined`: no rule changes what the server offers. */
export const buildCuration = (entry: ServerEntry, tree: MapTree, report: ReportProblem): Curation | undefined => {
  const { filter, tools = {}, resources, prompts, alias = {} } = entry
  const filters = [filter?.allow, filter?.deny, filter?.annotations, resources?.allow, resources?.deny, prompts]
  if ([...filters, entry.tools, entry.alias].every((rule) => rule === undefined)) return undefined
  checkHints(entry, report)
  checkNames(tools, alias, report)
  checkKeys(tools, tree, report)
  for (const [original, tool] of Object.entries(tools)) checkArguments(original, tool, tree, report)
  const filterTree = child(tree, 'filter')
  // Cast: the schema has these names.
  const hints = Object.entries(filter?.annotations ?? {}).flatMap(([name, verdict]) =>
    verdict === undefined ? [] : [{ ...at(filterTree, 'annotations', name), hint: HINTS[name as keyof typeof HINTS], verdict }],
  )
  return {
    tools: { ...listFilter(filterTree), hints },
    resources: listFilter(child(tree, 'resources')),
    prompts: listFilter(child(tree, 'prompts')),
    edits: new Map(Object.entries(tools).map(([name, tool]) => [name, toolEdit(name, tool, child(child(tree, 'tools'), name))])),
    aliases: new Map(Object.keys(alias).map((name) => [name, at(tree, 'alias', name)])),
  }
}

const at = (tree: Tree | undefined, ...path: readonly string[]): Placed => {
  // Cast: the file contains what has a place.
  const { place, path: written } = nearest(tree!, path)
  return { place, path: written }
}

const listFilter = (tree: Tree | undefined): ListFilter => {
  const allow = child(tree, 'allow')
  return {
    allow: allow && { ...at(allow), globs: globsOf(allow) },
    deny: globsOf(child(tree, 'deny')),
  }
}

const globsOf = (tree: Tree | undefined): ListFilter['deny'] => {
  const items = tree === undefined ? [] : tree.kind === 'list' ? tree.items : [tree]
  return items.map((item) => ({ ...at(item), glob: item.kind === 'scalar' ? String(item.value) : '' }))
}

const toolEdit = (original: string, tool: CuratedTool, tree: Tree | undefined): ToolEdit => {
  const text = (key: 'name' | 'title' | 'description') => {
    const given = tool[key]
    return given === undefined ? undefined : { ...at(tree, key), text: given }
  }
  const { annotations, timeout, rate, result, args = {} } = tool
  return {
    ...at(tree),
    original,
    name: text('name'),
    title: text('title'),
    description: text('description'),
    annotations: annotations && { ...at(tree, 'annotations'), hints: annotations },
    args: Object.entries(args).map(([name, argument]): ArgumentEdit => {
      const node = child(child(tree, 'args'), name)
      return {
        ...at(node),
        name,
        value: jsonText(child(node, 'value')),
        isHidden: argument.hide ?? false,
        default: jsonText(child(node, 'default')),
        description: argument.description,
      }
    }),
    timeout: timeout === undefined ? undefined : { ...at(tree, 'timeout'), totalMs: timeout },
    rate: rate && { ...at(tree, 'rate'), rate },
    result: result && { ...at(tree, 'result'), maxTokens: result.max_tokens, overflow: result.overflow ?? 'resource' },
  }
}

/** The tree as JSON; a number keeps its digits where JSON allows them. */
const jsonText = (tree: Tree | undefined): string | undefined => {
  if (tree === undefined) return undefined
  if (tree.kind === 'list') return `[${tree.items.map(jsonText).join(',')}]`
  if (tree.kind === 'map')
    return `{${[...tree.entries].map(([key, value]) => `${JSON.stringify(key)}:${jsonText(value)}`).join(',')}}`
  const isTyped = typeof tree.value === 'number' && /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(tree.source)
  return isTyped ? tree.source : JSON.stringify(tree.value)
}

/** DECISIONS 7: annotations of a server decide nothing unless it is trusted. */
const checkHints = ({ filter, trusted }: ServerEntry, report: ReportProblem): void => {
  if (filter?.annotations === undefined || trusted === true) return
  const message = 'annotations of a server that is not trusted decide nothing'
  report(['filter', 'annotations'], message, 'set "trusted: true" if you believe them, or use allow and deny')
}

/** A tool has either a name or an alias. */
const checkNames = (
  tools: Readonly<Record<string, CuratedTool>>,
  alias: Readonly<Record<string, string>>,
  report: ReportProblem,
): void => {
  for (const [original, { name }] of Object.entries(tools))
    if (name !== undefined && Object.hasOwn(alias, original))
      report(['tools', original, 'name'], `"${original}" has an alias, which wins`, 'keep one of them')
}

/** Reports `__proto__`, the one key that plain objects cannot have: validation drops it. */
const checkKeys = (tools: Readonly<Record<string, CuratedTool>>, tree: MapTree, report: ReportProblem): void => {
  for (const path of [['tools'], ...Object.keys(tools).map((original) => ['tools', original, 'args'])]) {
    const mapping = path.reduce<Tree | undefined>(child, tree)
    if (child(mapping, '__proto__') !== undefined) report([...path, '__proto__'], '"__proto__" cannot be configured', 'remove it')
  }
}

const checkArguments = (original: string, { args = {} }: CuratedTool, tree: MapTree, report: ReportProblem): void => {
  for (const [name, argument] of Object.entries(args)) {
    const path = ['tools', original, 'args', name]
    const hasValue = 'value' in argument
    if (hasValue && 'default' in argument) report([...path, 'default'], 'a pinned argument needs no default', 'keep one of them')
    else if (argument.hide === true && 'default' in argument)
      report([...path, 'default'], 'a caller cannot send a hidden argument, so its default is a value', 'set value instead')
    if (argument.hide === true && argument.description !== undefined)
      report([...path, 'description'], 'a hidden argument is not shown', 'remove the description')
    const given = [...path, 'value'].reduce<Tree | undefined>(child, tree)
    if (argument.hide !== true && scalars(given).some(isFromSecret))
      report([...path, 'value'], 'the variable is named like a secret, and hosts would see its value', 'add hide: true')
  }
}
