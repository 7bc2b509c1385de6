/**
 * Configuration files of hosts, read as they are: `mcpServers` (Claude, Cursor, Windsurf, Gemini …), `servers` with `inputs` (VS Code),
 * `context_servers` (Zed). Each entry is rearranged into the form of ours; members we have no use for belong to the host and are left alone.
 */
import { basename, dirname, sep } from 'node:path'
import type { Problem } from './problems.ts'
import { RESERVED_KEYS, normaliseKey, SERVER_KEY } from './server-key.ts'
import { child, plain } from './tree.ts'
import type { MapTree, ScalarTree, Tree } from './tree.ts'

export type HostMember = 'mcpServers' | 'servers' | 'context_servers'

/** Transport by what hosts write under `type`; stdio has a command instead. */
const TYPES: Readonly<Record<string, string>> = {
  stdio: 'stdio',
  local: 'stdio',
  http: 'http',
  'streamable-http': 'http',
  streamable_http: 'http',
  streamableHttp: 'http',
  sse: 'sse',
}
/** Sections that only a file of ours has. Hosts have a `telemetry` or `cache` of their own. */
const OUR_SECTIONS = ['version', 'include', 'env_file', 'listen', 'naming', 'defaults', 'reload']
const URL_MEMBERS = ['url', 'serverUrl', 'httpUrl', 'uri']

/** Which member of a host's file holds its servers; `undefined`: the file is one of ours. */
export const recogniseHostFile = (tree: MapTree): HostMember | undefined => {
  if (tree.entries.has('context_servers')) return 'context_servers'
  if (OUR_SECTIONS.some((section) => tree.entries.has(section))) return undefined
  if (tree.entries.has('mcpServers')) return 'mcpServers'
  const servers = child(tree, 'servers')
  const typed = servers?.kind === 'map' && [...servers.entries.values()].some((entry) => typeOf(entry) !== undefined)
  return typed || tree.entries.has('inputs') ? 'servers' : undefined
}

/** The folder a host means by `${workspaceFolder}`: above `.vscode`, `.cursor` and the like, else that of the file. */
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
  const inputs = child(tree, 'inputs')
  const items = inputs?.kind === 'list' ? (inputs.items.map(plain) as readonly { id?: unknown; default?: unknown }[]) : []
  return new Map(items.map((item) => [String(item?.id), typeof item?.default === 'string' ? item.default : undefined]))
}

/** The servers of a host's file under keys that follow our rule; `taken` keys are avoided where one had to be made up. */
export const readHostServers = (
  tree: MapTree,
  member: HostMember,
  taken: ReadonlySet<string>,
  problems: Problem[],
  warnings: string[],
): ReadonlyMap<string, MapTree> => {
  const servers = child(tree, member)
  if (servers?.kind !== 'map') {
    problems.push({ place: servers!.place, path: member, message: 'expected a mapping of servers', remedy: '' })
    return new Map()
  }
  const fits = (name: string) => SERVER_KEY.test(name) && !RESERVED_KEYS.includes(name)
  const used = new Set([...taken, ...[...servers.entries.keys()].filter(fits)])
  const result = new Map<string, MapTree>()
  for (const [name, entry] of servers.entries) {
    const key = fits(name) ? name : normaliseKey(name, (key) => used.has(key))
    used.add(key)
    if (key !== name) warnings.push(`${entry.place}: server ${JSON.stringify(name)} is called "${key}" here`)
    if (entry.kind === 'map') result.set(key, rearrange(entry, name, key, member, problems))
    else problems.push({ place: entry.place, path: entry.path, message: 'expected a mapping', remedy: '' })
  }
  return result
}

const rearrange = (entry: MapTree, name: string, key: string, member: HostMember, problems: Problem[]): MapTree => {
  const found = (...members: string[]) => members.map((one) => child(entry, one)).find((tree) => tree && !isNull(tree))
  const literal = (value: string | boolean, at: Tree): ScalarTree => ({
    kind: 'scalar',
    value,
    source: String(value),
    path: at.path,
    place: at.place,
    variables: true,
  })
  const type = typeOf(entry)
  const transport = type === undefined ? undefined : TYPES[type]
  const command = found('command')
  const url = found(...URL_MEMBERS)
  const started = transport === 'stdio' || (transport === undefined && command !== undefined)
  const launch = started && command?.kind === 'map' ? command : entry
  const launched = (...members: string[]) => members.map((one) => child(launch, one)).find((tree) => tree && !isNull(tree))
  if (type !== undefined && transport === undefined) {
    const { place, path } = child(entry, 'type')!
    problems.push({ place, path, message: `transport ${JSON.stringify(type)} is not known`, remedy: 'use stdio, http or sse' })
  }
  const off = isTrue(found('disabled')) || isFalse(found('enabled'))
  const parts: Readonly<Record<string, Tree | undefined>> = started
    ? {
        command: launch === entry ? command : launched('path', 'command'),
        args: launched('args'),
        env: launched('env'),
        cwd: found('cwd'),
        env_file: found('envFile'),
      }
    : {
        url,
        headers: found('headers'),
        // VS Code means "HTTP, else SSE" by `http`.
        transport:
          transport === undefined || (member === 'servers' && transport === 'http')
            ? undefined
            : literal(transport, child(entry, 'type')!),
      }
  const display = key === name ? undefined : literal(name, entry)
  const all: Readonly<Record<string, Tree | undefined>> = {
    ...parts,
    enabled: off ? literal(false, entry) : undefined,
    display_name: display,
  }
  return { ...entry, entries: new Map(Object.entries(all).filter((pair): pair is [string, Tree] => pair[1] !== undefined)) }
}

const typeOf = (entry: Tree): string | undefined => {
  const type = child(entry, 'type')
  return type?.kind === 'scalar' && typeof type.value === 'string' ? type.value : undefined
}
const isNull = (tree: Tree) => tree.kind === 'scalar' && tree.value === null
const isTrue = (tree: Tree | undefined) => tree?.kind === 'scalar' && tree.value === true
const isFalse = (tree: Tree | undefined) => tree?.kind === 'scalar' && tree.value === false
