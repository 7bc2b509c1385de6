/**
 * Servers and tools that the user disabled outside of the entry: lists of servers in the same file (Gemini's `mcp.allowed` and
 * `mcp.excluded`, opencode's `tools`), and the files in which Claude Code and Gemini CLI store this.
 */
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { matchesGlob } from '../../catalog/glob.ts'
import { asError } from '../../values/as-error.ts'
import { isJsonObject, isList, memberOf } from '../../values/json-object.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import type { HostKind } from './host-entry.ts'
import { child, itemsOf, plain } from '../syntax/tree.ts'
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
  const elsewhere = await Promise.all(beside.map(async (one) => ({ ...one, off: await readOff(one, warnings) })))
  const off = new Set(elsewhere.flatMap((one) => one.off ?? []))
  const isGemini = kind === 'gemini'
  const allowed = isGemini ? namesOf(child(child(tree, 'mcp'), 'allowed') ?? child(tree, 'allowMCPServers')) : []
  const excluded = isGemini ? namesOf(child(child(tree, 'mcp'), 'excluded') ?? child(tree, 'excludeMCPServers')) : []
  return {
    files: elsewhere.filter(({ off, isWatched }) => isWatched && off !== undefined).map(({ path }) => path),
    isOff: (name) => {
      const folded = fold(name)
      const isLeftOut = allowed.length > 0 && !allowed.includes(folded) && !allowed.includes('*')
      return off.has(name) || excluded.includes(folded) || isLeftOut
    },
    denied: (name) => (kind === 'opencode' ? deniedByPattern(tree, name) : undefined),
  }
}

type Read = (content: Record<string, unknown>) => unknown

interface Beside {
  readonly path: string
  readonly read: Read
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
      { path: join(folder, '.claude', 'settings.json'), read: listed, isWatched: true },
      { path: join(folder, '.claude', 'settings.local.json'), read: listed, isWatched: true },
      { path: join(home, '.claude', 'settings.json'), read: listed, isWatched: true },
      { path: join(home, '.claude.json'), read: ofProject, isWatched: false },
    ]
  }
  if (kind !== 'gemini') return []
  const disabled: Read = (content) =>
    Object.entries(content).flatMap(([name, value]) => (memberOf(value, 'enabled') === false ? [name] : []))
  return [{ path: join(home, '.gemini', 'mcp-server-enablement.json'), read: disabled, isWatched: true }]
}

/** The names of disabled servers; `undefined`: the file does not exist. Warns of a file that cannot be read. */
const readOff = async ({ path, read }: Beside, warnings: string[]): Promise<string[] | undefined> => {
  try {
    const content: unknown = JSON.parse(decodeUtf8(await readFile(path)) ?? '')
    if (!isJsonObject(content)) throw new Error('not a JSON object')
    const names = read(content)
    return isList(names) ? names.filter((name) => typeof name === 'string') : []
  } catch (error) {
    const { code, message } = asError(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    warnings.push(`${path}: cannot be read (${code ?? message}); servers that it disables are not known`)
    return []
  }
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
