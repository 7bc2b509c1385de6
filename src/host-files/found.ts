/**
 * Finds the servers in the files of hosts. Returns drafts of entries for our configuration, with our variables, and the place of each entry.
 * Only reads files. An unreadable entry is a problem with its place.
 */
import type { Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, extname, relative } from 'node:path'
import { withEnvFile } from '../config/read/env-files.ts'
import {
  byName,
  FORMS,
  hostConstants,
  isOurselves,
  readHostServers,
  readInputs,
  splitDuplicates,
  workspaceOf,
} from '../config/read/host-file.ts'
import { readSwitches } from '../config/read/host-switches.ts'
import { formatProblem } from '../config/syntax/problems.ts'
import type { Problem } from '../config/syntax/problems.ts'
import { readSource } from '../config/read/source.ts'
import { asTyped, child, plain } from '../config/syntax/tree.ts'
import type { MapTree, Tree } from '../config/syntax/tree.ts'
import { keysOf } from '../values/typed-keys.ts'
import { decodeUtf8 } from '../values/utf8.ts'
import { onlyAt } from './edit/edit-json.ts'
import { HOSTS, placesOf } from './hosts.ts'
import type { UserEnvironment, HostPlace, Scope, HostName } from './hosts.ts'
import { translate } from './variables.ts'
import type { UsedVariable } from './variables.ts'

/** An entry of `servers` in our configuration, as plain data. */
export type ServerDraft = Readonly<Record<string, unknown>>

export interface FoundServer {
  readonly host: HostName
  readonly scope: Scope
  readonly file: string
  /** Name of the entry in the file of the host. */
  readonly name: string
  /** File, line and column, as in `.mcp.json:3:5`. */
  readonly place: string
  readonly draft: ServerDraft
  /** Variables that the draft refers to, in order of appearance. */
  readonly variables: readonly UsedVariable[]
  /** Folder of the project, in which the server runs; `undefined`: not a server of a project. */
  readonly folder: string | undefined
  /** Whether the user disabled it. */
  readonly isOff: boolean
}

export interface FoundFile {
  readonly host: HostName
  readonly scope: Scope
  readonly file: string
  readonly servers: readonly FoundServer[]
  /** Reasons why entries, or the whole file, cannot be used: one line each, with the place. */
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
  /** Whether one of the entries is Trunkline. */
  readonly isConnected: boolean
}

/** Reads every existing file of these hosts, in the order of the table `HOSTS`. `scopes`: which files are read. */
export const findServers = async (
  user: UserEnvironment,
  hosts: readonly HostName[] = keysOf(HOSTS),
  scopes: readonly Scope[] = ['local', 'project', 'user'],
): Promise<readonly FoundFile[]> => {
  const places = hosts.flatMap((host) => placesOf(host, user, scopes).map((place) => ({ host, place })))
  const read = await Promise.all(places.map(({ host, place }) => readPlace(host, place, user)))
  return read.filter((file) => file !== undefined)
}

/** Reads one file like the host that it belongs to; `undefined`: there is no such file. */
export const readPlace = async (host: HostName, place: HostPlace, user: UserEnvironment): Promise<FoundFile | undefined> => {
  const { path: file, scope } = place
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return undefined
  const about = { host, scope, file }
  // A folder may be shared. Files of other users are not used (T-12).
  if (user.uid !== undefined && user.uid !== 0 && found.uid !== user.uid && found.uid !== 0)
    return { ...withoutServers(about), problems: [`${file}: belongs to another user; it is not read`] }
  const syntax: Problem[] = []
  const shown = nameOf(file, user)
  const source = await readSource(file, shown, syntax, await partOf(place, found))
  const [warnings, others] = splitDuplicates(syntax)
  const problems = [...others]
  const outer = source && place.at.reduce<Tree | undefined>((tree, step) => child(tree, step), source.tree)
  const within = place.inner === undefined ? undefined : child(outer, place.inner)
  const section = within?.kind === 'map' && child(within, 'type') === undefined ? within : outer
  const servers = section?.kind === 'list' ? byName(section) : section
  const isEmpty = servers === undefined || (servers.kind === 'scalar' && servers.value === null)
  if (source === undefined || isEmpty || problems.length > 0) {
    if (problems.length === 0 && scope !== 'user') return undefined
    return { ...withoutServers(about), problems: problems.map(formatProblem), warnings }
  }
  const { kind } = HOSTS[host]
  const switches = await readSwitches(source.tree, kind, file, user.home, warnings)
  const off = new Set(namesIn(place.off?.reduce<Tree | undefined>((tree, step) => child(tree, step), source.tree)))
  const both = { ...switches, isOff: (name: string) => off.has(name) || switches.isOff(name) }
  const inputs = readInputs(source.tree)
  // In a file for all projects, the workspace is the open project, independent of the folder of the file.
  const workspace = scope === 'project' ? workspaceOf(file) : user.cwd
  const constants = {
    ...hostConstants(file, user.home),
    workspaceFolder: workspace,
    workspaceFolderBasename: basename(workspace),
  }
  const list: FoundServer[] = []
  let isConnected = false
  const read = readHostServers({ kind, servers }, both, new Set(), asReferences, problems)
  for (const server of read) {
    const { name } = server
    const own = [...server.problems]
    const { draft, variables } = await translated(server.tree, { kind, file, user, constants, inputs }, own)
    const isOff = draft['enabled'] === false
    const { place: at, path } = server.tree
    const isEmptyEntry = draft['command'] === undefined && draft['url'] === undefined
    // A disabled entry without command and URL is ignored.
    if (isEmptyEntry && isOff) continue
    if (isEmptyEntry && own.length === 0)
      own.push({ place: at, path, message: 'has neither a command nor a URL', remedy: 'add one, or remove the entry' })
    if (isOurselves(name, server.tree)) isConnected = true
    else if (own.length > 0) problems.push(...own)
    else {
      warnings.push(...server.warnings)
      const folder = { user: undefined, local: user.cwd, project: workspaceOf(file) }[scope]
      list.push({ ...about, name, place: server.tree.place, draft, variables, folder, isOff })
    }
  }
  return { ...about, servers: list, problems: problems.map(formatProblem), warnings, isConnected }
}

/** Where an entry is. */
interface EntryPlace {
  readonly kind: keyof typeof FORMS
  readonly file: string
  readonly user: UserEnvironment
  readonly constants: Readonly<Record<string, string>>
  readonly inputs: ReturnType<typeof readInputs>
}

/** The entry with our variables, and with those of its env file. */
const translated = async (entry: MapTree, { kind, file, user, constants, inputs }: EntryPlace, problems: Problem[]) => {
  const common = { env: user.env, constants, inputs, folder: workspaceOf(file) }
  const reading = {
    ...common,
    home: user.home,
    files: new Set<string>(),
    secrets: () => Promise.resolve({ message: 'not a variable of hosts', remedy: '' }),
    forms: FORMS[kind],
    warn: () => undefined,
  }
  const tree = typedStrings(await withEnvFile(entry, reading, problems))
  return translate(tree, { ...common, form: FORMS[kind], isOpen: kind === 'gemini' || kind === 'goose' })
}

/** A file from which no server is used. */
export const withoutServers = (about: Pick<FoundFile, 'host' | 'scope' | 'file'>): FoundFile => ({
  ...about,
  servers: [],
  problems: [],
  warnings: [],
  isConnected: false,
})

/** A smaller file is read as a whole. */
const LARGE_BYTES = 256 * 1024
/** A larger file is not a settings file. */
const MAX_BYTES = 32 * 1024 * 1024

/**
 * The servers in a large JSON file, without the rest: Claude Code keeps the history of every project in the same file, megabytes of it.
 * `undefined`: the file is read as a whole.
 */
const partOf = async ({ path, at, off = [] }: HostPlace, found: Stats): Promise<string | undefined> => {
  if (extname(path) !== '.json' || !found.isFile() || found.size < LARGE_BYTES || found.size > MAX_BYTES) return undefined
  const bytes = await readFile(path).catch(() => undefined)
  const text = bytes && decodeUtf8(bytes)
  return text && onlyAt(text, [at, off])
}

/** The shortest usual path of a file: relative to the working folder, or to the home folder (`~`). */
export const nameOf = (file: string, { cwd, home }: Pick<UserEnvironment, 'cwd' | 'home'>): string => {
  const inside = relative(cwd, file)
  if (!inside.startsWith('..') && basename(file) !== '' && dirname(file) !== home) return inside
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
}

const namesIn = (tree: Tree | undefined): readonly string[] =>
  tree?.kind === 'list' ? tree.items.map((item) => String(plain(item))) : []

/** Yields `${NAME}` for every variable, so that values of the environment are not copied into a file. */
const asReferences: Readonly<Record<string, string | undefined>> = new Proxy<Record<string, string | undefined>>(
  {},
  { get: (_, name) => (typeof name === 'string' ? `\${${name}}` : undefined) },
)

/** Keeps the values of `env`, `headers` and `args` as typed, as text. */
const typedStrings = (tree: MapTree): MapTree => ({
  ...tree,
  entries: new Map(
    [...tree.entries].map(([key, member]) => [key, ['env', 'headers', 'args'].includes(key) ? asTyped(member) : member]),
  ),
})
