/** The places of a source file that can be broken in one small way each, as a person might by mistake. */
import { parseAst } from 'rolldown/parseAst'

/** Replaces the characters `start` to `end` of `file` by `text`. */
export interface Mutation {
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly start: number
  readonly end: number
  /** What stands there now. */
  readonly before: string
  readonly text: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

/** Each operator and what it is taken for. */
const OPERATORS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '/',
  '&&': '||',
  '||': '&&',
  '??': '&&',
}

/** Types have no effect, and what a log says no test need read. */
const SKIPPED = /^TS|^Import|^Export(?!Named|Default)/
const LOGS = /^(?:this\.#?)?(?:#?log|events|feed)\b|\.(?:trace|debug|info|warn|error)\(/

const KEPT = /^super\(|^this\.#?(\w+) = \w+$/

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

/** Every place in `source`, in the order of the file. Throws where the file does not parse. */
export const placesIn = (file: string, source: string): Mutation[] => {
  const found: Mutation[] = []
  const replace = (start: number, end: number, text: string): void => {
    const before = source.slice(start, end).replaceAll(/\s+/g, ' ')
    found.push({ file, line: source.slice(0, start).split('\n').length, start, end, before: before.slice(0, 80), text })
  }
  const look = (node: Node): void => {
    if (SKIPPED.test(node.type)) return
    breakAt(node, source, replace)
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) if (isNode(child)) look(child)
  }
  look(parseAst(source, { lang: 'ts', astType: 'ts' }) as unknown as Node)
  return found
}

const breakAt = (node: Node, source: string, replace: (start: number, end: number, text: string) => void): void => {
  if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') {
    const [left, right] = [node['left'] as Node, node['right'] as Node]
    const operator = node['operator'] as string
    const at = source.indexOf(operator, left.end)
    const swapped = OPERATORS[operator]
    // Texts are joined by `+`, too; as a difference they would not compile.
    const isText =
      operator === '+' && [left, right].some(({ type, value }) => type === 'TemplateLiteral' || typeof value === 'string')
    if (swapped !== undefined && !isText && at < right.start) replace(at, at + operator.length, swapped)
  } else if (node.type === 'IfStatement' || node.type === 'ConditionalExpression') {
    const test = node['test'] as Node
    replace(test.start, test.end, `!(${source.slice(test.start, test.end)})`)
  } else if (node.type === 'Literal' && typeof node['value'] === 'boolean') {
    replace(node.start, node.end, String(!node['value']))
  } else if (node.type === 'ExpressionStatement') {
    const { type, start, end } = node['expression'] as Node
    const text = source.slice(start, end)
    const isEffect = type === 'CallExpression' || type === 'AssignmentExpression'
    // Without what a constructor keeps nothing works at all: every test would notice, and the count would flatter.
    if (isEffect && !LOGS.test(text) && !KEPT.test(text)) replace(start, end, 'void 0')
  }
}
