/**
 * Converts servers from files of hosts to entries of one configuration. A server of several hosts becomes one entry with a valid key.
 * Secrets become variables. Disabled servers and tools stay disabled. Pure.
 */
import { basename } from 'node:path'
import { variableName, withoutSecrets } from '../config/build/written-secrets.ts'
import { normaliseKey, RESERVED_KEYS, SERVER_KEY } from '../config/schema/server-key.ts'
import { isList, jsonObject } from '../values/json-object.ts'
import { ownValue } from '../values/own-value.ts'
import type { FoundServer, ServerDraft } from './found.ts'

/** A server to import. `add` imports a server that is in no file of a host. */
export type Importable = Omit<FoundServer, 'host'>

/** An entry to write, with its sources. */
export interface ImportedServer<S extends Importable = FoundServer> {
  readonly key: string
  readonly draft: ServerDraft
  readonly from: readonly S[]
}

export interface ImportPlan<S extends Importable = FoundServer> {
  readonly servers: readonly ImportedServer<S>[]
  /** Servers that the configuration already contains. */
  readonly known: readonly { readonly key: string; readonly from: S }[]
  /** Values for `.env`, by name of the variable. */
  readonly secrets: ReadonlyMap<string, string>
  /** Unset variables, with the keys of the servers that use them. */
  readonly unset: ReadonlyMap<string, readonly string[]>
  readonly warnings: readonly string[]
}

/** The existing configuration. */
export interface Existing {
  /** Entries by key, as written in the file. */
  readonly servers: Readonly<Record<string, ServerDraft>>
  /** Variables of the process. They take precedence over those of the `env_file`. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Variables of the `env_file`. */
  readonly envFile: Readonly<Record<string, string | undefined>>
  /** Folder of the configuration. A server of a project in another folder gets a `cwd`. */
  readonly folder: string
}

/** Returns the entries to write; writes nothing. */
export const planImport = <S extends Importable>(found: readonly S[], existing: Existing): ImportPlan<S> => {
  const warnings: string[] = []
  const groups: S[][] = []
  const known: { key: string; from: S }[] = []
  const values = { ...existing.envFile, ...existing.env }
  for (const server of found) {
    const there = Object.entries(existing.servers).find(([key, draft]) => isSame(existingOf(key, draft), server, values))
    const group = groups.find((group) => group.every((other) => isSame(other, server, values)))
    if (there !== undefined) known.push({ key: there[0], from: server })
    else if (group === undefined) groups.push([server])
    else group.push(server)
  }
  const taken = new Set(namesIn(existing.servers))
  const secrets = new Map<string, string>()
  const unset = new Map<string, string[]>()
  const servers = groups.map((group): ImportedServer<S> => {
    // Cast: a group is never empty.
    const key = keyFor(group[0]!.name, taken)
    taken.add(key)
    const merged = merge(group, key, existing.folder, warnings)
    const draft = withoutSecrets(key, merged, (proposed, value) => nameFor(proposed, key, value, existing, secrets))
    for (const { name, fallback } of group.flatMap(({ variables }) => variables)) {
      const isSet = (existing.env[name] ?? existing.envFile[name] ?? secrets.get(name)) !== undefined
      const isUsed = JSON.stringify(draft).includes(`\${${name}}`)
      if (fallback === undefined && !isSet && isUsed) unset.set(name, [...new Set([...(unset.get(name) ?? []), key])])
    }
    return { key, draft, from: group }
  })
  return { servers, known, secrets, unset, warnings }
}

/** Secrets, and variables without a value, which are written without one to be filled in. */
export const valuesOf = ({ secrets, unset }: Pick<ImportPlan, 'secrets' | 'unset'>): ReadonlyMap<string, string> =>
  new Map([...secrets, ...[...unset.keys()].map((name) => [name, ''] as const)])

/** Keys and prefixes of servers. No further server may have one of them as its key. */
export const namesIn = (servers: Existing['servers']): readonly string[] => [
  ...Object.keys(servers),
  ...Object.values(servers).flatMap(({ prefix }) => (typeof prefix === 'string' ? [prefix] : [])),
]

/** An unused key, made from the name in the file of the host. */
const keyFor = (name: string, taken: ReadonlySet<string>): string =>
  SERVER_KEY.test(name) && !RESERVED_KEYS.includes(name) && !taken.has(name) ? name : normaliseKey(name, (key) => taken.has(key))

/** The variable that already has this value, or a new one. A name that has another value in the environment or the file is not used. */
const nameFor = (
  proposed: string,
  key: string,
  value: string,
  { env, envFile }: Existing,
  secrets: Map<string, string>,
): string => {
  const name = variableName(proposed)
  for (let number = 0; ; number++) {
    const candidate = [name, `${variableName(key)}_${name}`][number] ?? `${name}_${number}`
    const values = [env[candidate], envFile[candidate] ?? secrets.get(candidate)]
    if (values.some((one) => one !== undefined && one !== value)) continue
    if (values[1] === undefined) secrets.set(candidate, value)
    return candidate
  }
}

interface Entry {
  readonly name: string
  /** `undefined`: it is in the configuration. */
  readonly file?: string
  readonly draft: ServerDraft
}

const existingOf = (key: string, draft: ServerDraft): Entry => {
  const { display_name: label } = draft
  return { name: typeof label === 'string' ? label : key, draft }
}

/**
 * Whether both start the same program or use the same URL, without different values for a variable or header. In one file, two names
 * with different values are two servers, such as two accounts; elsewhere a reference may stand for the value of the other entry, unless
 * it has another one in `values`.
 */
const isSame = (one: Entry, other: Entry, values: Existing['env']): boolean => {
  const hasOneName = one.name === other.name
  const isOneFile = one.file === other.file && !hasOneName
  const isAlike = (value: unknown, there: unknown): boolean => {
    if (value === there || isOneFile) return value === there
    if (value === undefined || there === undefined) return true
    if (hasOneName) return isReference(value) || isReference(there)
    const [left, right] = [valueOf(value, values), valueOf(there, values)]
    return isReference(value) !== isReference(there) && (left === right || isReference(left) || isReference(right))
  }
  return (
    launchOf(one.draft) === launchOf(other.draft) &&
    ['env', 'headers'].every((member) => {
      const [left, right] = [one, other].map(({ draft }) => jsonObject(draft[member]) ?? {})
      return Object.keys({ ...left, ...right }).every((name) => isAlike(left?.[name], right?.[name]))
    })
  )
}

/** A text with the values of its variables, as far as they are known. */
const valueOf = (text: unknown, values: Existing['env']): string =>
  String(text).replaceAll(/\$\{(?:env:)?(\w+)\}/g, (found, name: string) => ownValue(values, name) ?? found)

const isReference = (value: unknown): boolean => String(value).includes('${')

/** The program with its arguments, or the URL, in one normal form. */
const launchOf = ({ command, args, url }: ServerDraft): string => {
  if (typeof url === 'string' && command === undefined) {
    const parsed = URL.parse(url)
    return `url ${(parsed === null ? url : parsed.href).replace(/\/$/, '')}`
  }
  const words = [command, ...(isList(args) ? args : [])].map(String)
  const bare = /^cmd(\.exe)?$/i.test(words[0] ?? '') && /^\/c$/i.test(words[1] ?? '') ? words.slice(2) : words
  const [program = '', ...rest] = bare
  const name = basename(program).replace(/\.(exe|cmd)$/i, '')
  if (!/^(npx|bunx|uvx)$/.test(name)) return JSON.stringify([program, ...rest])
  const own = rest.filter((word) => word !== '-y' && word !== '--yes')
  return JSON.stringify([name, ...own.map((word) => word.replace(/@latest$/, ''))])
}

/** One entry for a server that several hosts have. Disabled entries do not count if another one is enabled. */
const merge = (group: readonly Importable[], key: string, folder: string, warnings: string[]): ServerDraft => {
  const on = group.filter(({ isOff }) => !isOff)
  const counted = on.length > 0 ? on : group
  // Cast: a group is never empty.
  const first = counted[0]!
  const { display_name: _name, filter: _filter, enabled: _enabled, env: _env, headers: _headers, cwd, ...plain } = first.draft
  const both = (member: 'env' | 'headers'): Record<string, unknown> | undefined => {
    const all = counted.map(({ draft }) => jsonObject(draft[member]) ?? {})
    // A literal value takes precedence over a variable that may be unset.
    const sorted = all.toSorted((a, b) => Number(isLiteral(a)) - Number(isLiteral(b)))
    const merged = Object.fromEntries(sorted.flatMap((members) => Object.entries(members)))
    return Object.keys(merged).length === 0 ? undefined : merged
  }
  const merged = {
    ...plain,
    env: both('env'),
    headers: both('headers'),
    cwd: cwd ?? cwdOf(first, folder),
    filter: mergeFilters(counted, key, warnings),
    display_name: key === first.name ? undefined : first.name,
    enabled: on.length > 0 ? undefined : false,
  }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined))
}

const isLiteral = (members: Readonly<Record<string, unknown>>): boolean =>
  Object.values(members).every((value) => !String(value).includes('${'))

const cwdOf = ({ draft, folder: project }: Importable, folder: string): string | undefined =>
  draft['command'] === undefined || project === folder ? undefined : project

interface Filter {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

/** A tool that is disabled in one host stays disabled: the result allows what all allow, and denies what any denies. */
const mergeFilters = (group: readonly Importable[], key: string, warnings: string[]): Filter | undefined => {
  // Cast: the readers of host files write this member.
  const filters = group.map(({ draft }) => (draft['filter'] ?? {}) as Filter)
  const texts = new Set(filters.map((filter) => JSON.stringify(filter)))
  if (texts.size > 1)
    warnings.push(
      `${key}: its tools differ between ${group.map(({ place }) => place).join(', ')}; a tool that is disabled in one of them stays disabled`,
    )
  const lists = filters.flatMap(({ allow }) => (allow === undefined ? [] : [allow]))
  const allow = lists[0]?.filter((name) => lists.every((list) => list.includes(name)))
  const deny = [...new Set(filters.flatMap(({ deny }) => deny ?? []))]
  return allow === undefined && deny.length === 0
    ? undefined
    : { ...(allow === undefined ? {} : { allow }), ...(deny.length === 0 ? {} : { deny }) }
}
