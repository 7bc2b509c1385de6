/**
 * Servers and tools that the user disabled outside of the entry: lists of servers in the same file (Gemini's `mcp.allowed` and
 * `mcp.excluded`, opencode's `tools`), and the files in which Claude Code and Gemini CLI store this. The rules of the host itself do not
 * apply to tools behind Trunkline, whose names differ.
 */
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { matchesGlob } from '../../catalog/glob.ts'
import { asError } from '../../values/as-error.ts'
import { isJsonObject, isList, memberOf } from '../../values/json-object.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import type { HostKind } from './host-entry.ts'
import { child, itemsOf, plain, treeOf } from '../syntax/tree.ts'
import type { MapTree, Tree } from '../syntax/tree.ts'

export interface Switches {
  /** Whether the server of this name is disabled. */
  readonly isOff: (name: string) => boolean
  /** Patterns of its disabled tools, their place, and warnings about rules that are not honoured. */
  readonly denied: (
    name: string,
  ) => { readonly patterns: readonly string[]; readonly at: Tree; readonly warnings: readonly string[] } | undefined
}

/** `files`: the further files that exist and are watched. */
export const readSwitches = async (
  tree: MapTree,
  kind: HostKind,
  file: string,
  home: string,
  warnings: string[],
): Promise<Switches & { readonly files: readonly string[] }> => {
  const beside = filesBeside(kind, file, home)
  const elsewhere = await Promise.all(beside.map(async (one) => ({ ...one, found: await readOff(one, warnings) })))
  const off = new Set(elsewhere.flatMap((one) => one.found?.off ?? []))
  const rules = elsewhere.flatMap((one) => one.found?.rules ?? [])
  const isGemini = kind === 'gemini'
  const allowed = isGemini ? namesOf(child(child(tree, 'mcp'), 'allowed') ?? child(tree, 'allowMCPServers')) : []
  const excluded = isGemini ? namesOf(child(child(tree, 'mcp'), 'excluded') ?? child(tree, 'excludeMCPServers')) : []
  return {
    files: elsewhere.filter(({ found, isWatched }) => isWatched && found !== undefined).map(({ path }) => path),
    isOff: (name) => {
      const folded = fold(name)
      const isLeftOut = allowed.length > 0 && !allowed.includes(folded) && !allowed.includes('*')
      return off.has(name) || excluded.includes(folded) || isLeftOut
    },
    denied: (name) => (kind === 'opencode' ? deniedByPattern(tree, name) : deniedByRules(rules, name)),
  }
}

type Read = (content: Record<string, unknown>) => unknown

interface Beside {
  readonly path: string
  /** The names of disabled servers. */
  readonly read: Read
  /** It has the permissions of Claude Code. */
  readonly hasRules?: true
  /** False: its host writes it often, for other reasons. */
  readonly isWatched: boolean
}

const filesBeside = (kind: HostKind, file: string, home: string): readonly Beside[] => {
  const folder = dirname(file)
  if (basename(file) === '.mcp.json') {
    const listed: Read = (content) => content['disabledMcpjsonServers']
    const ofProject: Read = ({ projects }) => {
      const project = memberOf(projects, folder)
      return ['disabledMcpjsonServers', 'disabledMcpServers'].flatMap((key) => memberOf(project, key) ?? [])
    }
    return [
      { path: join(folder, '.claude', 'settings.json'), read: listed, hasRules: true, isWatched: true },
      { path: join(folder, '.claude', 'settings.local.json'), read: listed, hasRules: true, isWatched: true },
      { path: join(home, '.claude', 'settings.json'), read: listed, hasRules: true, isWatched: true },
      { path: join(home, '.claude.json'), read: ofProject, isWatched: false },
    ]
  }
  if (basename(file) === '.claude.json')
    return [{ path: join(home, '.claude', 'settings.json'), read: () => [], hasRules: true, isWatched: true }]
  if (kind !== 'gemini') return []
  const disabled: Read = (content) =>
    Object.entries(content).flatMap(([name, value]) => (memberOf(value, 'enabled') === false ? [name] : []))
  return [{ path: join(home, '.gemini', 'mcp-server-enablement.json'), read: disabled, isWatched: true }]
}

/** A rule that denies tools: `mcp__server__tool`. */
interface Rule {
  readonly text: string
  readonly place: string
}

/** What the file disables; `undefined`: it does not exist. Warns of a file that cannot be read. */
const readOff = async (
  { path, read, hasRules }: Beside,
  warnings: string[],
): Promise<{ readonly off: readonly string[]; readonly rules: readonly Rule[] } | undefined> => {
  try {
    const text = decodeUtf8(await readFile(path)) ?? ''
    const content: unknown = JSON.parse(text)
    if (!isJsonObject(content)) throw new Error('not a JSON object')
    const rules = hasRules === true ? textsIn(memberOf(content['permissions'], 'deny')) : []
    const placed = rules.map((rule) => ({ text: rule, place: `${path}:${lineAndColumn(text, JSON.stringify(rule))}` }))
    return { off: textsIn(read(content)), rules: placed }
  } catch (error) {
    const { code, message } = asError(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    warnings.push(`${path}: cannot be read (${code ?? message}); servers that it disables are not known`)
    return { off: [], rules: [] }
  }
}

const textsIn = (list: unknown): readonly string[] =>
  isList(list) ? list.filter((item): item is string => typeof item === 'string') : []

/** The place of the first occurrence. */
const lineAndColumn = (text: string, part: string): string => {
  const before = text.slice(0, Math.max(0, text.indexOf(part))).split('\n')
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`
}

/** Claude Code names a tool `mcp__<server>__<tool>`; a rule without a tool denies all of the server. */
const deniedByRules = (rules: readonly Rule[], name: string): ReturnType<Switches['denied']> => {
  const server = name.replaceAll(/[^\w-]/g, '_')
  const found = rules.flatMap(({ text, place }) => {
    const [, rest] = /^mcp__(.+)$/.exec(text) ?? []
    if (rest === undefined) return []
    if (rest.startsWith(`${server}__`)) return [{ pattern: rest.slice(server.length + 2), place }]
    return matchesGlob(rest, server) ? [{ pattern: '*', place }] : []
  })
  const [first] = found
  const patterns = found.map(({ pattern }) => pattern)
  return first && { patterns, at: treeOf(null, first.place), warnings: [] }
}

/**
 * opencode names a tool `<server>_<tool>`: `"github_*": false`, `"permission": { "github_delete*": "deny" }`. The last rule that matches a
 * tool decides there. Here a disabled tool stays disabled, so a later rule that enables it again gives a warning.
 */
const deniedByPattern = (tree: MapTree, name: string): ReturnType<Switches['denied']> => {
  const prefix = `${name.replaceAll(/[^\w-]/g, '_')}_`
  const patterns: string[] = []
  const warnings: string[] = []
  const found: { readonly pattern: string; readonly at: Tree }[] = []
  for (const member of ['tools', 'permission']) {
    const section = child(tree, member)
    if (section?.kind !== 'map') continue
    for (const [pattern, value] of section.entries) {
      const word = value.kind === 'scalar' ? value.value : undefined
      const isDenied = word === false || word === 'deny'
      const rest = isDenied ? restOf(pattern, prefix) : undefined
      if (rest !== undefined) {
        patterns.push(rest)
        found.push({ pattern, at: value })
      } else if (!isDenied && pattern.startsWith(prefix)) {
        const denying = found.find((one) => matchesGlob(one.pattern, pattern))
        if (denying) warnings.push(`${value.place} ${value.path}: not honoured; ${JSON.stringify(denying.pattern)} disables it`)
      }
    }
  }
  const [first] = found
  return first && { patterns, at: first.at, warnings }
}

/** The part of the pattern that applies to names behind the prefix; `undefined`: it is for other servers. */
const restOf = (pattern: string, prefix: string): string | undefined => {
  if (pattern.startsWith(prefix)) return pattern.slice(prefix.length)
  const star = pattern.indexOf('*')
  return star >= 0 && prefix.startsWith(pattern.slice(0, star)) ? pattern.slice(star) : undefined
}

/** Gemini compares trimmed names without case. */
const fold = (name: string): string => name.trim().toLowerCase()
const namesOf = (tree: Tree | undefined): string[] => itemsOf(tree).map((item) => fold(String(plain(item))))
