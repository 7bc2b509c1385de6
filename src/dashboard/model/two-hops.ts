/** One message on both hops, side by side, with each change and its rule. */
import type { Change } from '../../observe/capture/diff.ts'
import { childrenOf, keyOf, linesOf, MOST_IN_TREE, readJson, writeJson } from '../../values/json-tree.ts'
import type { JsonLine, JsonNode } from '../../values/json-tree.ts'

export interface HopLine {
  /** Indent and text; `undefined`: this side has no such line. */
  readonly from: JsonLine | undefined
  readonly to: JsonLine | undefined
  /** The change at this line. */
  readonly change: Change | undefined
}

/** Equal lines far from every change, which are not shown. */
export interface Fold {
  readonly folded: readonly HopLine[]
}

/** `undefined`: one of the sides is not JSON, or too long for a tree. */
export const compareHops = (from: string, to: string, changes: readonly Change[]): readonly HopLine[] | undefined => {
  if (Math.max(from.length, to.length) > MOST_IN_TREE) return undefined
  const [before, after] = [readJson(from), readJson(to)]
  if (before === undefined || after === undefined) return undefined
  const byPath = new Map(changes.map((change) => [keyOfPath(change.path), change]))
  return pair(before, after, { path: [], depth: 0, key: '', last: [true, true] }, byPath)
}

/** The differences between two JSON texts, member by member, without rules. */
export const changesBetween = (from: string, to: string): readonly Change[] => {
  if (Math.max(from.length, to.length) > MOST_IN_TREE) return []
  const [before, after] = [readJson(from), readJson(to)]
  return before === undefined || after === undefined ? [] : differences(before, after, [])
}

const differences = (from: JsonNode, to: JsonNode, path: readonly (string | number)[]): Change[] => {
  const [was, is] = [writeJson(from), writeJson(to)]
  if (was === is) return []
  if (from.kind !== to.kind || from.kind === 'literal') return [changeOf(path, was, is)]
  const [before, after] = [new Map(childrenOf(from)), new Map(childrenOf(to))]
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [a, b] = [before.get(name), after.get(name)]
    if (a !== undefined && b !== undefined) return differences(a, b, [...path, name])
    return [changeOf([...path, name], a === undefined ? null : writeJson(a), b === undefined ? null : writeJson(b))]
  })
}

const changeOf = (path: readonly (string | number)[], from: string | null, to: string | null): Change => {
  const change = from === null ? 'added' : to === null ? 'removed' : 'replaced'
  return { path, change, from, to, fromAt: null, toAt: null, rule: '', why: '' }
}

const keyOfPath = (path: readonly (string | number)[]): string => JSON.stringify(path.map(String))

interface Place {
  readonly path: readonly (string | number)[]
  readonly depth: number
  readonly key: string
  /** Nothing follows on this side. */
  readonly last: readonly [from: boolean, to: boolean]
}

const comma = (isLast: boolean): string => (isLast ? '' : ',')

const pair = (from: JsonNode, to: JsonNode, place: Place, changes: ReadonlyMap<string, Change>): HopLine[] => {
  const { path, depth, key, last } = place
  const [afterFrom, afterTo] = [comma(last[0]), comma(last[1])]
  const change = changes.get(keyOfPath(path))
  const [before, after] = [childrenOf(from), childrenOf(to)]
  const isOpened = change === undefined && from.kind === to.kind && from.kind !== 'literal' && before.length + after.length > 0
  if (!isOpened) return beside(linesOf(from, path, depth, key, afterFrom), linesOf(to, path, depth, key, afterTo), change)
  const [open, close] = from.kind === 'object' ? '{}' : '[]'
  const line = (text: string): JsonLine => ({ depth, text, path })
  const known = new Map(after)
  const names = new Set(before.map(([name]) => name))
  const lastFrom = before.at(-1)?.[0]
  const added = after.filter(([name]) => !names.has(name))
  // Members of both sides are in the order of the first side.
  const lastTo = (added.at(-1) ?? before.findLast(([name]) => known.has(name)))?.[0]
  const inner = [...before, ...added].flatMap(([name, child]) => {
    const below = [...path, name]
    const at = { path: below, depth: depth + 1, key: keyOf(name), last: [name === lastFrom, name === lastTo] } as const
    const other = known.get(name)
    if (names.has(name) && other !== undefined) return pair(child, other, at, changes)
    const isFrom = names.has(name)
    const lines = linesOf(child, below, depth + 1, at.key, comma(at.last[isFrom ? 0 : 1]))
    const found = changes.get(keyOfPath(below))
    return lines.map((one): HopLine => ({ from: isFrom ? one : undefined, to: isFrom ? undefined : one, change: found }))
  })
  return [
    { from: line(`${key}${open}`), to: line(`${key}${open}`), change: undefined },
    ...inner,
    { from: line(`${close}${afterFrom}`), to: line(`${close}${afterTo}`), change: undefined },
  ]
}

const beside = (from: readonly JsonLine[], to: readonly JsonLine[], change: Change | undefined): HopLine[] =>
  Array.from({ length: Math.max(from.length, to.length) }, (_, at) => ({ from: from[at], to: to[at], change }))

/** Lines of context around each change. */
const CONTEXT = 2

/** Replaces long runs of equal lines far from every change by one line. */
export const foldLines = (lines: readonly HopLine[]): readonly (HopLine | Fold)[] => {
  const isShown = lines.map(() => false)
  for (const [at, { change }] of lines.entries())
    if (change !== undefined)
      for (let near = Math.max(0, at - CONTEXT); near <= Math.min(lines.length - 1, at + CONTEXT); near++) isShown[near] = true
  const folded: (HopLine | Fold)[] = []
  for (let at = 0; at < lines.length;) {
    let end = at
    while (end < lines.length && !isShown[end]) end++
    const hidden = lines.slice(at, end)
    if (hidden.length > CONTEXT) folded.push({ folded: hidden })
    else folded.push(...hidden)
    folded.push(...lines.slice(end, end + 1))
    at = end + 1
  }
  return folded
}

/** The path of a change in JavaScript notation: `params.arguments.org`, `content[0].uri`. */
export const formatPath = (path: readonly (string | number)[]): string =>
  path
    .map((key, at) =>
      typeof key === 'number' ? `[${key}]` : /^[\w$-]+$/.test(key) ? `${at === 0 ? '' : '.'}${key}` : `[${JSON.stringify(key)}]`,
    )
    .join('')
