/**
 * Configuration files of hosts: `mcpServers` (Claude, Cursor, Windsurf, Gemini, Cline …), `servers` with `inputs` (VS Code),
 * `context_servers` (Zed), `mcp_servers` (Codex), `extensions` (Goose), `mcp` (opencode), a list (Continue). `host-entry.ts` converts
 * their entries.
 */
import { basename, dirname, sep } from 'node:path'
import { memberOf } from '../../values/json-object.ts'
import { convertEntry, isPartOfHost, withDenied } from './host-entry.ts'
import type { EntryContext, HostKind } from './host-entry.ts'
import type { Switches } from './host-switches.ts'
import { formatProblem, reporterAt } from '../syntax/problems.ts'
import type { Problem } from '../syntax/problems.ts'
import { RESERVED_KEYS, normaliseKey, SERVER_KEY } from '../schema/server-key.ts'
import { child, itemsOf, mapAt, plain, textOf, valuesOf } from '../syntax/tree.ts'
import type { ListTree, MapTree, Tree } from '../syntax/tree.ts'
import type { VariableForms } from '../syntax/variables.ts'

/** The servers of a host's file, and the host whose form they have. */
export interface HostFile {
  readonly kind: HostKind
  readonly servers: Tree
}

/** Sections that only our files have. Hosts may have a `telemetry` or `cache` of their own. */
const OUR_SECTIONS = ['version', 'include', 'env_file', 'listen', 'naming', 'defaults', 'reload']

/** `undefined`: the file is one of ours. `isHosts`: it is named as a file of a host; it may contain no servers. */
export const recogniseHostFile = (tree: MapTree, file: string, isHosts = false): HostFile | undefined => {
  const of = (kind: HostKind, servers: Tree | undefined): HostFile | undefined => servers && { kind, servers }
  const known = of('zed', child(tree, 'context_servers')) ?? of('codex', child(tree, 'mcp_servers'))
  if (known !== undefined) return known
  const common = child(tree, 'mcpServers') ?? child(tree, 'amp.mcpServers')
  // These two have a `version`, too.
  if (common?.kind === 'list') return of('continue', byName(common))
  if (basename(file) === 'librechat.yaml') return of('common', common)
  if (OUR_SECTIONS.some((section) => tree.entries.has(section))) return undefined
  if (common !== undefined) return of(isGemini(tree, common, file) ? 'gemini' : 'common', common)
  const servers = child(tree, 'servers')
  const isTyped = valuesOf(servers).some((entry) => textOf(child(entry, 'type')) !== undefined)
  const isNamed = isHosts ? /\.jsonc?$/.test(file) : /[/\\](\.vscode|User)[/\\]mcp\.json$/.test(file)
  const isVscode = isTyped || tree.entries.has('inputs') || isNamed
  if (servers !== undefined && isVscode) return of('vscode', servers)
  const mcp = child(tree, 'mcp')
  const inner = child(mcp, 'servers')
  if (valuesOf(inner).some((entry) => ['local', 'remote'].includes(textOf(child(entry, 'type')) ?? '')))
    return of('opencode', inner)
  if (inner !== undefined) return of('vscode', inner)
  if (valuesOf(mcp).some((entry) => textOf(child(entry, 'type')) !== undefined)) return of('opencode', mcp)
  const extensions = child(tree, 'extensions')
  if (valuesOf(extensions).some((entry) => textOf(child(entry, 'type')) !== undefined)) return of('goose', extensions)
  return isHosts && servers === undefined && tree.entries.size > 0 ? of('common', mapAt(tree, new Map())) : undefined
}

/** A list of items with a `name`, as a mapping by name; of two items with one name the first counts. */
export const byName = (list: ListTree): MapTree => {
  const entries = new Map<string, Tree>()
  for (const [at, item] of list.items.entries()) {
    const name = textOf(child(item, 'name')) ?? `server ${at + 1}`
    if (!entries.has(name)) entries.set(name, item)
  }
  return mapAt(list, entries)
}

/** Whether the folder, or members that only this host has, show that the file is of Gemini. */
const isGemini = (tree: MapTree, servers: Tree, file: string): boolean =>
  /[/\\]\.(gemini|qwen)[/\\]/.test(file) ||
  [child(child(tree, 'mcp'), 'allowed'), child(child(tree, 'mcp'), 'excluded')].some((list) => list?.kind === 'list') ||
  ['allowMCPServers', 'excludeMCPServers'].some((member) => tree.entries.has(member)) ||
  valuesOf(servers).some((entry) =>
    ['httpUrl', 'includeTools', 'excludeTools', 'authProviderType'].some((one) => child(entry, one)),
  )

const BRACES = /\$\{([^{}]*)\}/g
/** How hosts write variables, and what a variable that is not set becomes. Codex has no variables in texts. */
export const FORMS: Readonly<Record<HostKind, VariableForms>> = {
  common: { pattern: BRACES, unset: 'literal' },
  zed: { pattern: BRACES, unset: 'literal' },
  vscode: { pattern: BRACES, unset: 'empty' },
  gemini: { pattern: /\$(?:\{([^{}]*)\}|([A-Za-z_]\w*))/g, unset: 'literal' },
  goose: { pattern: /\$(?:\{([^{}]*)\}|([A-Za-z_]\w*))/g, unset: 'literal' },
  opencode: { pattern: /\{((?:env|file):[^{}]*)\}/g, unset: 'empty' },
  codex: { pattern: /(?!)/g, unset: 'literal' },
  continue: { pattern: /\$\{\{\s*(?:secrets|inputs)\.([^\s{}]*)\s*\}\}/g, unset: 'literal' },
}

/** The folder of `${workspaceFolder}`: the one above `.vscode`, `.cursor` and the like, else that of the file. */
export const workspaceOf = (file: string): string => {
  const folder = dirname(file)
  return basename(folder).startsWith('.') ? dirname(folder) : folder
}

export const hostConstants = (file: string, home: string): Readonly<Record<string, string>> => ({
  workspaceFolder: workspaceOf(file),
  workspaceFolderBasename: basename(workspaceOf(file)),
  userHome: home,
  pathSeparator: sep,
  '/': sep,
})

/** Defaults of `${input:id}` by id, as VS Code writes them. */
export const readInputs = (tree: MapTree): ReadonlyMap<string, string | undefined> => {
  return new Map(
    itemsOf(child(tree, 'inputs')).map((input) => {
      const item = plain(input)
      const value = memberOf(item, 'default')
      return [String(memberOf(item, 'id')), typeof value === 'string' ? value : undefined]
    }),
  )
}

/** Duplicate keys in the file of a host as warnings, since the host reads it; and the other problems. */
export const splitDuplicates = (problems: readonly Problem[]): readonly [warnings: string[], others: readonly Problem[]] => [
  problems
    .filter(({ isDuplicate }) => isDuplicate === true)
    .map((problem) => formatProblem({ ...problem, remedy: `${problem.remedy}; the last one counts, as in the host` })),
  problems.filter(({ isDuplicate }) => isDuplicate !== true),
]

/** The name of our entry in files of hosts. */
export const OUR_NAME = 'trunkline'

/**
 * Whether an entry starts Trunkline itself. Such an entry is not used, because the gateway would be its own server. An entry with our name
 * always counts. `entry`: in our form.
 */
export const isOurselves = (name: string, entry: MapTree): boolean => {
  if (name === OUR_NAME) return true
  const words = [child(entry, 'command'), ...itemsOf(child(entry, 'args'))].flatMap((word) => textOf(word) ?? [])
  const at = words.indexOf('stdio')
  return at > 0 && words.slice(0, at).some((word) => /^trunkline(@.*)?$/.test(basename(word)))
}

/** A server of a host's file. */
export interface HostServer {
  /** Its name in the host's file. */
  readonly name: string
  readonly key: string
  readonly tree: MapTree
  /** Reasons why it is unusable; the other servers of the file are used. */
  readonly problems: readonly Problem[]
  /** What it says about permissions or authentication and is not honoured here. */
  readonly warnings: readonly string[]
}

/** The servers of a host's file, under keys that follow our rule; a generated key avoids those in `taken`. */
export const readHostServers = (
  { kind, servers }: HostFile,
  switches: Switches,
  taken: ReadonlySet<string>,
  env: EntryContext['env'],
  problems: Problem[],
): readonly HostServer[] => {
  if (servers.kind !== 'map') {
    reporterAt(servers, problems)([], 'expected a mapping of servers', '')
    return []
  }
  const fits = (name: string) => SERVER_KEY.test(name) && !RESERVED_KEYS.includes(name)
  const used = new Set([...taken, ...[...servers.entries.keys()].filter(fits)])
  const own = [...servers.entries].filter(([, entry]) => entry.kind !== 'map' || !isPartOfHost(entry, kind))
  return own.map(([name, entry]): HostServer => {
    const key = fits(name) ? name : normaliseKey(name, (key) => used.has(key))
    used.add(key)
    const { place, path } = entry
    if (entry.kind !== 'map') {
      const problem = { place, path, message: 'expected a mapping', remedy: '' }
      return { name, key, tree: mapAt(entry, new Map()), problems: [problem], warnings: [] }
    }
    const found: Problem[] = []
    const warnings: string[] = []
    const converted = convertEntry(entry, name, key, switches.isOff(name), { kind, env, problems: found, warnings })
    const denied = switches.denied(name)
    return {
      name,
      key,
      tree: denied === undefined ? converted : withDenied(converted, denied.patterns, denied.at),
      problems: found,
      warnings: [...warnings, ...(denied?.warnings ?? [])],
    }
  })
}
