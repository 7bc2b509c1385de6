/**
 * From servers found in files of hosts to entries of one configuration: one entry per server however many hosts have it, a key that
 * follows our rule, secrets as variables, and whatever a person switched off switched off. Pure.
 */
import { basename } from 'node:path'
import { normaliseKey, RESERVED_KEYS, SERVER_KEY } from '../config/schema/server-key.ts'
import { isList, jsonObject } from '../values/json-object.ts'
import type { FoundServer, ServerDraft } from './found.ts'
import { variableName, withoutSecrets } from './secrets.ts'

/** What is imported; `add` imports a server that no host has. */
export type Importable = Omit<FoundServer, 'host'>

/** An entry to write, and where it was found. */
export interface ImportedServer<S extends Importable = FoundServer> {
  readonly key: string
  readonly draft: ServerDraft
  readonly from: readonly S[]
}

export interface ImportPlan<S extends Importable = FoundServer> {
  readonly servers: readonly ImportedServer<S>[]
  /** Servers that the configuration has already. */
  readonly known: readonly { readonly key: string; readonly from: S }[]
  /** Values for `.env`, by name. */
  readonly secrets: ReadonlyMap<string, string>
  /** Variables that are not set anywhere, with the servers that name them. */
  readonly unset: ReadonlyMap<string, readonly string[]>
  readonly warnings: readonly string[]
}

/** What is there already. */
export interface Existing {
  /** Entries of the configuration as they are written, by key. */
  readonly servers: Readonly<Record<string, ServerDraft>>
  /** Values that variables have: of the process, then of the `env_file`. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly envFile: Readonly<Record<string, string | undefined>>
  /** Folder of the configuration: servers of a project elsewhere keep the folder they run in. */
  readonly folder: string
}

export const planImport = <S extends Importable>(found: readonly S[], existing: Existing): ImportPlan<S> => {
  const warnings: string[] = []
  const groups: S[][] = []
  const known: { key: string; from: S }[] = []
  for (const server of found) {
    const there = Object.entries(existing.servers).find(([, draft]) => isSame(draft, server.draft))
    const group = groups.find((group) => group.every((other) => isSame(other.draft, server.draft)))
    if (there !== undefined) known.push({ key: there[0], from: server })
    else if (group === undefined) groups.push([server])
    else group.push(server)
  }
  const taken = new Set(Object.keys(existing.servers))
  const secrets = new Map<string, string>()
  const unset = new Map<string, string[]>()
  const servers = groups.map((group): ImportedServer<S> => {
    // Cast: a group has a server.
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

/** A key from the name that the host has. */
const keyFor = (name: string, taken: ReadonlySet<string>): string =>
  SERVER_KEY.test(name) && !RESERVED_KEYS.includes(name) && !taken.has(name) ? name : normaliseKey(name, (key) => taken.has(key))

/** The variable that holds this value already, or a new one. The environment wins over the file, so a name set there to another value is no use. */
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

/** The same program or URL, and no two different values for one variable or header. */
const isSame = (one: ServerDraft, other: ServerDraft): boolean =>
  launchOf(one) === launchOf(other) &&
  ['env', 'headers'].every((member) => {
    const right = jsonObject(other[member])
    return Object.entries(jsonObject(one[member]) ?? {}).every(([name, value]) => {
      const there = right?.[name]
      return there === undefined || there === value || [there, value].some((text) => String(text).includes('${'))
    })
  })

/** What is started or reached, without what does not matter to which server it is. */
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
  const meant = rest.filter((word) => word !== '-y' && word !== '--yes')
  return JSON.stringify([name, ...meant.map((word) => word.replace(/@latest$/, ''))])
}

/** One entry for a server that several hosts have. */
const merge = (group: readonly Importable[], key: string, folder: string, warnings: string[]): ServerDraft => {
  const on = group.filter(({ isOff }) => !isOff)
  const counted = on.length > 0 ? on : group
  // Cast: a group has a server.
  const first = counted[0]!
  const { display_name: _name, filter: _filter, enabled: _enabled, ...rest } = first.draft
  const both = (member: 'env' | 'headers'): Record<string, unknown> | undefined => {
    const all = counted.map(({ draft }) => jsonObject(draft[member]) ?? {})
    // A value that is written beats a variable that may not be set.
    const sorted = all.toSorted((a, b) => Number(isWritten(a)) - Number(isWritten(b)))
    const merged = Object.fromEntries(sorted.flatMap((members) => Object.entries(members)))
    return Object.keys(merged).length === 0 ? undefined : merged
  }
  const filter = mergeFilters(counted, key, warnings)
  const { env, headers, cwd, ...plain } = rest
  const merged = {
    ...plain,
    ...(env === undefined && both('env') === undefined ? {} : { env: both('env') }),
    ...(headers === undefined && both('headers') === undefined ? {} : { headers: both('headers') }),
    ...(cwd !== undefined ? { cwd } : cwdOf(first, folder)),
    ...(filter === undefined ? {} : { filter }),
    ...(key === first.name ? {} : { display_name: first.name }),
    ...(on.length > 0 ? {} : { enabled: false }),
  }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined))
}

const isWritten = (members: Readonly<Record<string, unknown>>): boolean =>
  Object.values(members).every((value) => !String(value).includes('${'))

const cwdOf = ({ draft, folder: project }: Importable, folder: string): { cwd?: string } =>
  draft['command'] === undefined || project === undefined || project === folder ? {} : { cwd: project }

interface Filter {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

/** A tool that is off in one host stays off: what one denies is denied, and allowed is what all allow. */
const mergeFilters = (group: readonly Importable[], key: string, warnings: string[]): Filter | undefined => {
  // Cast: the readers of host files write this member.
  const filters = group.map(({ draft }) => (draft['filter'] ?? {}) as Filter)
  const texts = new Set(filters.map((filter) => JSON.stringify(filter)))
  if (texts.size > 1)
    warnings.push(
      `${key}: its tools are not the same in ${group.map(({ place }) => place).join(', ')}; what is off in one stays off`,
    )
  const lists = filters.flatMap(({ allow }) => (allow === undefined ? [] : [allow]))
  const allow = lists[0]?.filter((name) => lists.every((list) => list.includes(name)))
  const deny = [...new Set(filters.flatMap(({ deny }) => deny ?? []))]
  return allow === undefined && deny.length === 0
    ? undefined
    : { ...(allow === undefined ? {} : { allow }), ...(deny.length === 0 ? {} : { deny }) }
}
