/**
 * The servers that a person has in the files of hosts, as drafts of entries for our configuration: in our form, with our variables,
 * and each with where it stands. Files are read and nothing else; what cannot be read is a finding with its place.
 */
import { stat } from 'node:fs/promises'
import { basename, dirname, relative } from 'node:path'
import { withEnvFile } from '../config/read/env-files.ts'
import { byName, FORMS, hostConstants, readHostServers, readInputs, workspaceOf } from '../config/read/host-file.ts'
import { readSwitches } from '../config/read/host-switches.ts'
import { formatProblem } from '../config/syntax/problems.ts'
import type { Problem } from '../config/syntax/problems.ts'
import { readSource } from '../config/read/source.ts'
import { asTyped, child, plain } from '../config/syntax/tree.ts'
import type { MapTree, Tree } from '../config/syntax/tree.ts'
import { isList } from '../values/json-object.ts'
import { keysOf } from '../values/typed-keys.ts'
import { HOSTS, OUR_NAME } from './hosts.ts'
import type { Around, HostPlace, Scope, HostName } from './hosts.ts'
import { translate } from './variables.ts'
import type { UsedVariable } from './variables.ts'

/** An entry of `servers` as plain data. */
export type ServerDraft = Readonly<Record<string, unknown>>

export interface FoundServer {
  readonly host: HostName
  readonly scope: Scope
  readonly file: string
  /** As the host calls it. */
  readonly name: string
  /** `.mcp.json:3:5` */
  readonly place: string
  readonly draft: ServerDraft
  /** Variables it names, in the order of appearance. */
  readonly variables: readonly UsedVariable[]
  /** Of a project: its folder, where the server runs. */
  readonly folder: string | undefined
  /** The person switched it off. */
  readonly isOff: boolean
}

export interface FoundFile {
  readonly host: HostName
  readonly scope: Scope
  readonly file: string
  readonly servers: readonly FoundServer[]
  /** Entries that cannot be used, or the whole file: lines with places. */
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
  /** Trunkline is among its servers. */
  readonly isConnected: boolean
}

/** Every file of the hosts that is there. `hosts`: words of the table; `scopes`: which files. In the order of the table. */
export const findServers = async (
  around: Around & { readonly uid?: number | undefined },
  hosts: readonly HostName[] = keysOf(HOSTS),
  scopes: readonly Scope[] = ['local', 'project', 'user'],
): Promise<readonly FoundFile[]> => {
  const places = hosts.flatMap((host) => HOSTS[host].places(around).map((place) => ({ host, place })))
  const wanted = places.filter(({ place }) => scopes.includes(place.scope))
  const read = await Promise.all(wanted.map(({ host, place }) => readPlace(host, place, around)))
  return read.filter((file) => file !== undefined)
}

/** One file, read as the host of this place reads it; `undefined`: it is not there. */
export const readPlace = async (
  host: HostName,
  place: HostPlace,
  around: Around & { readonly uid?: number | undefined },
): Promise<FoundFile | undefined> => {
  const { path: file, scope } = place
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return undefined
  const about = { host, scope, file }
  // A folder may be shared: what others put there starts nothing here (T-12).
  if (around.uid !== undefined && around.uid !== 0 && found.uid !== around.uid && found.uid !== 0)
    return {
      ...about,
      servers: [],
      problems: [`${file}: belongs to another user; it is not read`],
      warnings: [],
      isConnected: false,
    }
  const problems: Problem[] = []
  const warnings: string[] = []
  const shown = nameOf(file, around)
  const source = await readSource(file, shown, problems)
  const outer = source && place.at.reduce<Tree | undefined>((tree, step) => child(tree, step), source.tree)
  const within = place.inner === undefined ? undefined : child(outer, place.inner)
  const section = within?.kind === 'map' && child(within, 'type') === undefined ? within : outer
  const servers = section?.kind === 'list' ? byName(section) : section
  const isEmpty = servers === undefined || (servers.kind === 'scalar' && servers.value === null)
  if (source === undefined || isEmpty || problems.length > 0) {
    if (problems.length === 0 && scope !== 'user') return undefined
    return { ...about, servers: [], problems: problems.map(formatProblem), warnings, isConnected: false }
  }
  const { kind } = HOSTS[host]
  const switches = await readSwitches(source.tree, kind, file, around.home, warnings)
  const off = new Set(namesIn(place.off?.reduce<Tree | undefined>((tree, step) => child(tree, step), source.tree)))
  const both = { ...switches, isOff: (name: string) => off.has(name) || switches.isOff(name) }
  const inputs = readInputs(source.tree)
  // A file for all projects means the one that is open, whatever folder the file lies in.
  const workspace = scope === 'project' ? workspaceOf(file) : around.cwd
  const constants = {
    ...hostConstants(file, around.home),
    workspaceFolder: workspace,
    workspaceFolderBasename: basename(workspace),
  }
  const list: FoundServer[] = []
  let isConnected = false
  const read = readHostServers({ kind, servers }, both, new Set(), asReferences, problems, [])
  for (const server of read) {
    const { name } = server
    const own = [...server.problems]
    const reading = {
      env: around.env,
      constants,
      inputs,
      folder: workspaceOf(file),
      home: around.home,
      files: new Set<string>(),
      secrets: () => Promise.resolve({ message: 'not a variable of hosts', remedy: '' }),
      forms: FORMS[kind],
      warn: () => undefined,
    }
    const tree = typedStrings(await withEnvFile(server.tree, reading, own))
    const { draft, variables } = translate(tree, {
      form: FORMS[kind],
      isOpen: kind === 'gemini' || kind === 'goose',
      constants,
      inputs,
      env: around.env,
      folder: workspaceOf(file),
    })
    const isOff = draft['enabled'] === false
    const { place: at, path } = server.tree
    const isNothing = draft['command'] === undefined && draft['url'] === undefined
    // What can never be started and is off is nothing to keep.
    if (isNothing && isOff) continue
    if (isNothing && own.length === 0)
      own.push({ place: at, path, message: 'has neither a command nor a URL', remedy: 'add one, or remove the entry' })
    if (isOurselves(name, draft)) isConnected = true
    else if (own.length > 0) problems.push(...own)
    else {
      const folder = { user: undefined, local: around.cwd, project: workspaceOf(file) }[scope]
      list.push({ ...about, name, place: server.tree.place, draft, variables, folder, isOff })
    }
  }
  return { ...about, servers: list, problems: problems.map(formatProblem), warnings, isConnected }
}

/**
 * Whether an entry is Trunkline itself: it is not imported, or we would be a server of our own. `draft`: the entry in our form. An entry of
 * our name counts whatever it says.
 */
const isOurselves = (name: string, { command, args }: ServerDraft): boolean => {
  if (name === OUR_NAME) return true
  const words = [command, ...(isList(args) ? args : [])].filter((word) => typeof word === 'string')
  const at = words.indexOf('stdio')
  return at > 0 && words.slice(0, at).some((word) => /^trunkline(@.*)?$/.test(basename(word)))
}

/** As a person would name the file: from the working folder, or from home. */
export const nameOf = (file: string, { cwd, home }: Pick<Around, 'cwd' | 'home'>): string => {
  const inside = relative(cwd, file)
  if (!inside.startsWith('..') && basename(file) !== '' && dirname(file) !== home) return inside
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
}

const namesIn = (tree: Tree | undefined): readonly string[] =>
  tree?.kind === 'list' ? tree.items.map((item) => String(plain(item))) : []

/** Members that name a variable of the environment stay references: the value is not copied into a file. */
const asReferences: Readonly<Record<string, string | undefined>> = new Proxy<Record<string, string | undefined>>(
  {},
  { get: (_, name) => (typeof name === 'string' ? `\${${name}}` : undefined) },
)

/** Values of the environment and of headers are texts, as they were typed. */
const typedStrings = (tree: MapTree): MapTree => ({
  ...tree,
  entries: new Map(
    [...tree.entries].map(([key, member]) => [key, ['env', 'headers', 'args'].includes(key) ? asTyped(member) : member]),
  ),
})
