/**
 * Edits JSON with comments and trailing commas, the format of most hosts. jsonc-parser reads the text and returns the position of each node.
 * The text is changed here, because the edits of that package also reformat the text next to a change.
 */
import { findNodeAtLocation, parse, parseTree, printParseErrorCode } from 'jsonc-parser'
import type { Node, ParseError } from 'jsonc-parser'
import { EditError, nested, placeIn } from './text-format.ts'
import type { Steps, TextFormat } from './text-format.ts'

const TOLERANT = { allowTrailingComma: true, disallowComments: false, allowEmptyContent: true }

const parseJson = (text: string): unknown => {
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, TOLERANT)
  const [first] = errors
  if (first !== undefined)
    throw new EditError(`does not parse as JSON (${printParseErrorCode(first.error)} at ${placeIn(text, first.offset)})`)
  if (value !== undefined && (typeof value !== 'object' || value === null || Array.isArray(value)))
    throw new EditError('does not contain a JSON object')
  return value
}

const insert = (text: string, steps: Steps, value: unknown): string => {
  const tree = parseTree(text, [], TOLERANT)
  if (tree === undefined) return `${text}${JSON.stringify(nested(steps, value), null, 2)}\n`
  let depth = steps.length - 1
  while (depth > 0 && findNodeAtLocation(tree, steps.slice(0, depth)) === undefined) depth--
  const found = findNodeAtLocation(tree, steps.slice(0, depth)) ?? tree
  if (found.type !== 'object' && found.type !== 'array') {
    // `"mcpServers": null`
    const whole = JSON.stringify(nested(steps.slice(depth), value))
    return text.slice(0, found.offset) + whole + text.slice(endOf(found))
  }
  const step = steps[depth]
  const addition = nested(steps.slice(depth + 1), value)
  const layout = layoutOf(text, found)
  const key = typeof step === 'number' ? '' : `${JSON.stringify(step)}: `
  return layout.isInline
    ? insertInline(text, found, key + JSON.stringify(addition))
    : insertLines(text, found, key + printed(addition, layout), layout)
}

interface Layout {
  /** The container has members, and all of it is on one line. */
  readonly isInline: boolean
  /** Indentation of the members. */
  readonly indent: string
  /** One step of indentation. */
  readonly step: string
  readonly eol: string
}

const layoutOf = (text: string, container: Node): Layout => {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const indented = text.split('\n').find((line) => /^[ \t]/.test(line) && line.trim() !== '')
  const step = indented === undefined ? '  ' : indented.slice(0, indented.length - indented.trimStart().length)
  const first = container.children?.[0]
  const isInline = first !== undefined && !text.slice(container.offset, first.offset).includes('\n')
  const own = indentAt(text, container.offset)
  return { isInline, indent: first === undefined || isInline ? own + step : indentAt(text, first.offset), step, eol }
}

const indentAt = (text: string, offset: number): string => {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  return /^[ \t]*/.exec(text.slice(start))?.[0] ?? ''
}

const printed = (value: unknown, { indent, step, eol }: Layout): string =>
  JSON.stringify(value, null, step).replaceAll('\n', `${eol}${indent}`)

const insertInline = (text: string, container: Node, member: string): string => {
  // Cast: the container has members.
  const last = container.children!.at(-1)!
  const comma = commaAfter(text, last, endOf(container) - 1)
  if (comma !== undefined) return `${text.slice(0, comma + 1)} ${member}${text.slice(comma)}`
  return `${text.slice(0, endOf(last))}, ${member}${text.slice(endOf(last))}`
}

const insertLines = (text: string, container: Node, member: string, { indent, eol }: Layout): string => {
  const last = container.children?.at(-1)
  const close = endOf(container) - 1
  if (last === undefined) {
    // Comments in an empty container are kept.
    const inside = text.slice(container.offset + 1, close).trimEnd()
    const own = indentAt(text, container.offset)
    return `${text.slice(0, container.offset + 1)}${inside}${eol}${indent}${member}${eol}${own}${text.slice(close)}`
  }
  const comma = commaAfter(text, last, close)
  const at = comma === undefined ? endOf(last) : comma + 1
  const before = comma === undefined ? `${text.slice(0, at)},` : text.slice(0, at)
  // A comment after the last member stays there.
  const remark = /^[ \t]*(\/\/[^\r\n]*|(\/\*(?:(?!\*\/)[^\r\n])*\*\/[ \t]*)?)(?=\r?\n)/.exec(text.slice(at, close))?.[0]
  const behind = remark ?? ''
  return `${before}${behind}${eol}${indent}${member}${comma === undefined ? '' : ','}${text.slice(at + behind.length)}`
}

const remove = (text: string, steps: Steps): string => {
  const tree = parseTree(text, [], TOLERANT)
  const value = tree && findNodeAtLocation(tree, [...steps])
  const member = value?.parent?.type === 'property' ? value.parent : value
  const container = member?.parent
  if (member === undefined || container?.children === undefined) return text
  const at = container.children.indexOf(member)
  const [before, after] = [container.children[at - 1], container.children[at + 1]]
  const comma = commaAfter(text, member, endOf(container) - 1)
  const end = comma === undefined ? endOf(member) : comma + 1
  const start = text.lastIndexOf('\n', member.offset - 1) + 1
  const rest = /^[ \t]*(?:\/\/[^\r\n]*)?(\r?\n|$)/.exec(text.slice(end))
  const isOnItsLines = /^[ \t]*$/.test(text.slice(start, member.offset)) && rest !== null
  if (isOnItsLines) {
    const gone = text.slice(0, start) + text.slice(end + rest[0].length)
    if (comma !== undefined || before === undefined) return gone
    const last = commaAfter(text, before, member.offset)
    return last === undefined ? gone : gone.slice(0, last) + gone.slice(last + 1)
  }
  if (after !== undefined) return text.slice(0, member.offset) + text.slice(after.offset)
  if (before !== undefined) return text.slice(0, endOf(before)) + text.slice(comma === undefined ? endOf(member) : comma)
  return text.slice(0, member.offset) + text.slice(end)
}

const endOf = ({ offset, length }: Node): number => offset + length

/** The position of the comma after a node; comments are skipped. */
const commaAfter = (text: string, node: Node, limit: number): number | undefined => {
  const skipped = /^(?:\s|\/\/[^\n]*\n?|\/\*[^]*?\*\/)*/.exec(text.slice(endOf(node), limit))?.[0] ?? ''
  const at = endOf(node) + skipped.length
  return at < limit && text[at] === ',' ? at : undefined
}

/** Values of other members at the top of a file that are at least this long are left out. */
const LONG = 16 * 1024
const NOTHING = 'null'

/**
 * The text without values that are on none of the paths: those beside a path, and long ones at the top. Each is replaced by `null` and as
 * many line breaks and spaces, so that places stay; without the spaces where a file has all in one line. The same text if it is not JSON.
 */
export const onlyAt = (text: string, paths: readonly Steps[]): string => {
  const errors: ParseError[] = []
  const tree = parseTree(text, errors, TOLERANT)
  const gone: Node[] = []
  const look = (node: Node, below: readonly Steps[], least: number): void => {
    if (node.type !== 'object') return
    for (const { children: [key, value] = [] } of node.children ?? []) {
      const inner = below.filter(([step]) => step === key?.value).map(([, ...rest]) => rest)
      if (value === undefined || inner.some((rest) => rest.length === 0)) continue
      if (inner.length > 0) look(value, inner, NOTHING.length)
      else if (value.length >= least) gone.push(value)
    }
  }
  if (tree !== undefined && errors.length === 0) look(tree, paths, LONG)
  let kept = ''
  let at = 0
  for (const node of gone) {
    const lines = text.slice(node.offset, endOf(node)).split('\n')
    const spaces = (lines.pop()?.length ?? 0) - (lines.length === 0 ? NOTHING.length : 0)
    kept += text.slice(at, node.offset) + NOTHING + '\n'.repeat(lines.length) + ' '.repeat(spaces < LONG ? spaces : 0)
    at = endOf(node)
  }
  return kept + text.slice(at)
}

export const jsonFormat: TextFormat = { parse: parseJson, insert, remove }
