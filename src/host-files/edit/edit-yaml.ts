/**
 * Edits YAML by lines. New members are added after the last one of their block, with its indentation. Removed lines change no other line. In
 * flow style (`{ a: 1 }`) members are added after the last one and removed with their comma. Other forms are edited by the document API of the
 * yaml package, which keeps comments but prints the whole file in its own layout.
 */
import { isMap, isNode, isPair, isScalar, isSeq, parseDocument, stringify } from 'yaml'
import type { Document, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { syntaxMessage } from '../../config/syntax/document.ts'
import { asError } from '../../values/as-error.ts'
import { EditError, nested, placeIn } from './text-format.ts'
import type { Steps, TextFormat } from './text-format.ts'

/** Values behind aliases; as many as a configuration may have. */
const MAX_ALIASED = 100_000

const open = (text: string): Document.Parsed => {
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'error' })
  const [first] = document.errors
  if (first !== undefined)
    throw new EditError(`does not parse as YAML (${syntaxMessage(first)} at ${placeIn(text, first.pos[0])})`)
  if (
    document.contents !== null &&
    !isMap(document.contents) &&
    !(isScalar(document.contents) && document.contents.value === null)
  )
    throw new EditError('does not hold a mapping')
  return document
}

const parseYaml = (text: string): unknown => {
  const document = open(text)
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASED })
  } catch (cause) {
    // An alias without its anchor, or too many aliases.
    throw new EditError(`does not parse as YAML (${asError(cause).message})`, { cause })
  }
}

/** In a parsed document, keys and items are nodes. */
type Item = Pair<Node> | Node
type Block = YAMLMap<Node> | YAMLSeq<Item>

const isBlock = (node: unknown): node is Block => isMap(node) || isSeq(node)

/** The member of a container under `step`. */
const memberOf = (container: Block, step: string | number): Item | undefined =>
  isMap(container)
    ? container.items.find(({ key }) => (isScalar(key) ? String(key.value) : key) === step)
    : container.items[Number(step)]

const valueOf = (member: Item | undefined): Node | undefined => {
  const value = isPair(member) ? member.value : member
  return isNode(value) ? value : undefined
}

/** The end of a node, without comments and line ends after it. */
const endOf = (node: Item): number => {
  if (isPair(node)) {
    const value = valueOf(node)
    const isNothing = value === undefined || (isScalar(value) && value.value === null && value.range?.[0] === value.range?.[1])
    return isNothing ? (node.key.range?.[1] ?? 0) + 1 : endOf(value)
  }
  if (isBlock(node) && node.flow !== true) {
    const last = node.items.at(-1)
    if (last !== undefined) return endOf(last)
  }
  return node.range?.[1] ?? 0
}

/** The beginning of the line after `offset`. */
const nextLine = (text: string, offset: number): number => {
  if (offset > 0 && text[offset - 1] === '\n') return offset
  const end = text.indexOf('\n', offset)
  return end < 0 ? text.length : end + 1
}
const lineStart = (text: string, offset: number): number => text.lastIndexOf('\n', offset - 1) + 1

const startOf = (text: string, member: Item): number => {
  const at = beginningOf(member)
  // An item of a list begins with its dash.
  return isPair(member) ? at : text.lastIndexOf('-', at)
}

/** Where a member or an item begins, without the dash of an item. */
const beginningOf = (item: Item): number => (isPair(item) ? item.key : item).range?.[0] ?? 0

const render = (value: unknown, indent: number, eol: string): string =>
  stringify(value, { lineWidth: 0, indent: 2, indentSeq: true })
    .trimEnd()
    .split('\n')
    .map((line) => (line === '' ? '' : ' '.repeat(indent) + line) + eol)
    .join('')

const insert = (text: string, steps: Steps, value: unknown): string => {
  const document = open(text)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const withEnd = (before: string): string => (before === '' || before.endsWith('\n') ? before : before + eol)
  let container: Node | null = document.contents
  let rest = steps
  let above: Pair<Node> | undefined
  while (rest.length > 1 && isBlock(container) && container.flow !== true) {
    // Cast: it has steps.
    const member = memberOf(container, rest[0]!)
    if (member === undefined) break
    above = isPair(member) ? member : undefined
    container = valueOf(member) ?? null
    rest = rest.slice(1)
  }
  const addition = nested(rest, value)
  if (isBlock(container) && container.flow === true && container.items.length > 0)
    return insertInFlow(text, container, rest, value) ?? byDocument(document, steps, value, eol)
  if (isBlock(container) && container.flow !== true && container.items.length > 0) {
    const { items } = container
    // Cast: it has items.
    const first = startOf(text, items[0]!)
    const indent = first - lineStart(text, first)
    if (/\S/.test(text.slice(lineStart(text, first), first))) return byDocument(document, steps, value, eol)
    // Cast: it has items.
    const at = nextLine(text, endOf(items.at(-1)!))
    return withEnd(text.slice(0, at)) + render(addition, indent, eol) + text.slice(at)
  }
  const isNothing = container === null || (isScalar(container) && container.value === null)
  if (isNothing && above === undefined) return insertAtEnd(text, addition, eol)
  const [from = 0, to = 0] = container?.range ?? []
  // `{}`, `[]`, `~` or `null`.
  const isWritten = to > from
  if (above === undefined || !(isNothing || (isBlock(container) && container.items.length === 0)))
    return byDocument(document, steps, value, eol)
  const { key } = above
  const start = key.range?.[0] ?? 0
  const indent = start - lineStart(text, start) + 2
  if (isWritten) {
    const line = nextLine(text, to)
    const kept = text.slice(0, from).trimEnd() + text.slice(to, line)
    return withEnd(kept) + render(addition, indent, eol) + text.slice(line)
  }
  const line = nextLine(text, key.range?.[1] ?? 0)
  return withEnd(text.slice(0, line)) + render(addition, indent, eol) + text.slice(line)
}

/** A document without content; it may have comments and markers. */
const insertAtEnd = (text: string, addition: unknown, eol: string): string =>
  `${text === '' || text.endsWith('\n') ? text : text + eol}${render(addition, 0, eol)}`

/** Inserts after the last member of `{ … }` or `[ … ]`, which may be nested; `undefined`: the text has another form. */
const insertInFlow = (text: string, container: Block, [step, ...rest]: Steps, value: unknown): string | undefined => {
  // The last step is an unused key, or the position after the last item of a list.
  const member = step === undefined || rest.length === 0 ? undefined : memberOf(container, step)
  if (member !== undefined) {
    const inner = valueOf(member)
    return isBlock(inner) ? insertInFlow(text, inner, rest, value) : undefined
  }
  const addition = nested(rest, value)
  const shown = isSeq(container) ? flowText(addition) : flowMembers({ [step ?? '']: addition }).join(', ')
  const last = container.items.at(-1)
  const at = last === undefined ? (container.range?.[0] ?? 0) + 1 : endOf(last)
  return `${text.slice(0, at)}${last === undefined ? '' : ', '}${shown}${text.slice(at)}`
}

const flowMembers = (value: object): readonly string[] =>
  Object.entries(value).map(([key, member]) => `${/^[a-z_][\w-]*$/i.test(key) ? key : JSON.stringify(key)}: ${flowText(member)}`)

const flowText = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(flowText).join(', ')}]`
  return typeof value === 'object' && value !== null ? `{ ${flowMembers(value).join(', ')} }` : JSON.stringify(value)
}

const byDocument = (document: Document.Parsed, steps: Steps, value: unknown, eol: string): string => {
  const at = steps.map((step, index) => {
    if (typeof step !== 'number') return step
    const list = document.getIn(steps.slice(0, index), true)
    return isSeq(list) ? list.items.length : 0
  })
  try {
    document.setIn(at, document.createNode(value))
  } catch (cause) {
    throw new EditError('is written in a form that cannot be changed without damage', { cause })
  }
  return printed(document, eol)
}

const printed = (document: Document.Parsed, eol: string): string => document.toString({ lineWidth: 0 }).replaceAll('\n', eol)

const remove = (text: string, steps: Steps): string => {
  const document = open(text)
  let container: Node | null = document.contents
  let above: Item | undefined
  for (const step of steps.slice(0, -1)) {
    if (!isBlock(container)) return text
    above = memberOf(container, step)
    container = valueOf(above) ?? null
  }
  // Cast: only members are removed.
  const last = steps.at(-1)!
  if (!isBlock(container)) return text
  const member = memberOf(container, last)
  if (member === undefined) return text
  if (container.flow === true) return removeFromFlow(text, container, member)
  const start = startOf(text, member)
  if (/\S/.test(text.slice(lineStart(text, start), start))) {
    document.deleteIn([...steps])
    return printed(document, text.includes('\r\n') ? '\r\n' : '\n')
  }
  const before = text.slice(0, lineStart(text, start))
  const isLast = container.items.length === 1 && container.anchor === undefined && container.tag === undefined
  const kept = isLast && isPair(above) ? withNothing(before, above, container) : before
  return kept + text.slice(nextLine(text, endOf(member)))
}

/** The text with `{}` or `[]` behind a key. Without a value, hosts refuse it where they expect servers. */
const withNothing = (text: string, { key }: Pair<Node>, container: Block): string => {
  const at = text.indexOf(':', key.range?.[1] ?? 0) + 1
  return `${text.slice(0, at)} ${isSeq(container) ? '[]' : '{}'}${text.slice(at)}`
}

/** Removes a member with the comma after it, or before it. */
const removeFromFlow = (text: string, { items }: Block, member: Item): string => {
  const all: readonly Item[] = items
  const index = all.indexOf(member)
  const next = all[index + 1]
  const before = all[index - 1]
  const start = next === undefined && before !== undefined ? endOf(before) : beginningOf(member)
  return text.slice(0, start) + text.slice(next === undefined ? endOf(member) : beginningOf(next))
}

/** The scalar at `steps`, and its place; `undefined`: there is none, or it has several lines. */
const scalarAt = (
  text: string,
  steps: Steps,
): { readonly node: Scalar; readonly start: number; readonly end: number } | undefined => {
  let node: Node | null | undefined = open(text).contents
  for (const step of steps) node = isBlock(node) ? valueOf(memberOf(node, step)) : undefined
  if (!isScalar(node)) return undefined
  const [start = 0, end = 0] = node.range ?? []
  return end <= start || text.slice(start, end).includes('\n') ? undefined : { node, start, end }
}

/** Replaces a text of one line; `undefined`: any other value. */
const replace = (text: string, steps: Steps, value: unknown): string | undefined => {
  const found = scalarAt(text, steps)
  if (found === undefined || typeof value !== 'string') return undefined
  if (typeof steps.at(-1) === 'number' || found.node.anchor !== undefined) return undefined
  const shown = /^[a-z][\w -]*\.?$/i.test(value) && !value.endsWith(' ') && isPlain(value) ? value : JSON.stringify(value)
  return text.slice(0, found.start) + shown + text.slice(found.end)
}

/** Whether the text needs no quotes. */
const isPlain = (value: string): boolean => parseDocument(value, { logLevel: 'silent' }).toJS() === value

/** Returns the text with another value for a scalar of one line. Throws `EditError` if there is no such scalar. */
export const replaceScalar = (text: string, steps: Steps, value: string): string => {
  const found = scalarAt(text, steps)
  if (found === undefined) throw new EditError(`holds no one-line value at ${steps.join('.')}`)
  // In flow style an unquoted scalar ends at a comma or a bracket. Quotes are valid everywhere.
  const shown = /^[\w./-]+$/.test(value) ? value : JSON.stringify(value)
  return text.slice(0, found.start) + shown + text.slice(found.end)
}

export const yamlFormat: TextFormat = { parse: parseYaml, insert, replace, remove }
