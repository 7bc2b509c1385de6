/** TOML to a tree with places, for Codex's `config.toml`. The parser tells no places, so a node stands where its table or key is written. */
import { parse, TomlError } from 'smol-toml'
import type { Problem } from './problems.ts'
import { childPath, plantValue } from './tree.ts'
import type { MapTree, Tree } from './tree.ts'

/** `name` is how the file is called in places. */
export const parseToml = (text: string, name: string): { tree: MapTree; problems: readonly Problem[]; isEmpty: boolean } => {
  const lines = text.split('\n')
  try {
    const tree = placed(plantValue(parse(text), `${name}:1:1`), placesOf(lines, name))
    // Cast: a TOML document is a table.
    return { tree: tree as MapTree, problems: [], isEmpty: text.trim() === '' }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const place = `${name}:${error.line}:${error.column}`
    const [, message = 'cannot be read as TOML'] = /^Invalid TOML document: ([^\n]*)/.exec(error.message) ?? []
    const tree: MapTree = { kind: 'map', entries: new Map(), path: '', place: `${name}:1:1` }
    return { tree, problems: [{ place, path: '', message, remedy: 'correct the syntax here' }], isEmpty: false }
  }
}

const HEADER = /^\s*\[\[?([^\]]*)/
const KEY = /^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=/
const STEP = /"([^"]*)"|'([^']*)'|[\w-]+/g

/** Where each table and key is written, by its path. */
const placesOf = (lines: readonly string[], name: string): ReadonlyMap<string, string> => {
  const places = new Map<string, string>()
  let table: readonly string[] = []
  for (const [at, line] of lines.entries()) {
    const header = HEADER.exec(line)?.[1]
    const written = header ?? KEY.exec(line)?.[1]
    if (written === undefined) continue
    const steps = [...written.matchAll(STEP)].map(([bare, double, single]) => double ?? single ?? bare)
    const whole = header === undefined ? [...table, ...steps] : steps
    if (header !== undefined) table = steps
    const path = whole.reduce(childPath, '')
    if (!places.has(path)) places.set(path, `${name}:${at + 1}:${line.search(/\S/) + 1}`)
  }
  return places
}

const placed = (tree: Tree, places: ReadonlyMap<string, string>, above = tree.place): Tree => {
  const place = places.get(tree.path) ?? above
  if (tree.kind === 'scalar') return { ...tree, place }
  if (tree.kind === 'list') return { ...tree, place, items: tree.items.map((item) => placed(item, places, place)) }
  return { ...tree, place, entries: new Map([...tree.entries].map(([key, child]) => [key, placed(child, places, place)])) }
}
