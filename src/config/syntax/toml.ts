/** TOML to a tree with places, for Codex's `config.toml`. The parser reports no places, so a node has the place of its table or key. */
import { parse, TomlError } from 'smol-toml'
import type { ParsedText } from './document.ts'
import { childPath, treeOf } from './tree.ts'
import type { Tree } from './tree.ts'

/** `name`: of the file, for places. */
export const parseToml = (text: string, name: string): ParsedText => {
  const lines = text.split('\n')
  try {
    return { tree: placed(treeOf(parse(text), `${name}:1:1`), placesOf(lines, name)), problems: [], isEmpty: text.trim() === '' }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const place = `${name}:${error.line}:${error.column}`
    const [, message = 'cannot be read as TOML'] = /^Invalid TOML document: ([^\n]*)/.exec(error.message) ?? []
    return {
      tree: treeOf({}, `${name}:1:1`),
      problems: [{ place, path: '', message, remedy: 'correct the syntax here' }],
      isEmpty: false,
    }
  }
}

const HEADER = /^\s*\[\[?([^\]]*)/
const KEY = /^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=/
const STEP = /"([^"]*)"|'([^']*)'|[\w-]+/g

/** The place of each table and key, by its path. */
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
