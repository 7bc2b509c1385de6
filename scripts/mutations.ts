/** The places of a source file that can be broken by one small change each, as in a typical mistake. */
import { parseAst } from 'rolldown/parseAst'

/** Means `text` instead of the characters `start` to `end` of `file`. */
export interface Mutation {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** The expression that changes, as a whole. */
  readonly start: number
  readonly end: number
  /** Stands instead of that expression. */
  readonly text: string
  /** What a reader is shown: the part that changes, before and after. */
  readonly before: string
  readonly after: string
  /** Runs once, while its module is loaded. */
  readonly isStatic: boolean
  /** Is a statement, whose value nobody reads. */
  readonly isStatement: boolean
}

/** A file and its content. */
export interface Source {
  readonly file: string
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
/** Types beside an expression that has an effect all the same. */
const TYPED = /^TS(?:As|Satisfies|NonNull)Expression$/
const LOGS = /^(?:this\.#?)?(?:#?log|events|feed)\b|\.(?:trace|debug|info|warn|error)\(/
const FUNCTION = /^(?:ArrowFunction|Function)/
/** Runs later than its module, or once for each object. */
const isLater = ({ type, ...node }: Node): boolean =>
  FUNCTION.test(type) || (type === 'PropertyDefinition' && node['static'] !== true)

const KEPT = /^super\(|^this\.#?(\w+) = \w+$/

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

type Change = Pick<Mutation, 'start' | 'end' | 'text' | 'before' | 'after' | 'isStatement'>

/** Every place in `source`, in the order of the file. Throws where the file does not parse. */
export const placesIn = (file: string, source: string): Mutation[] => {
  const found: Mutation[] = []
  const look = (node: Node, isStatic: boolean): void => {
    if (SKIPPED.test(node.type) && !TYPED.test(node.type)) return
    for (const change of changesOf(node, source))
      found.push({ ...change, file, line: source.slice(0, change.start).split('\n').length, isStatic })
    const isInside = isStatic && !isLater(node)
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) if (isNode(child)) look(child, isInside)
  }
  look(parseAst(source, { lang: 'ts', astType: 'ts' }) as unknown as Node, true)
  return found
}

/**
 * Draws a line of all files, each as likely as any other, and a place in the file of this line, `count` times: a folder is tried as much as
 * it is large. `next`: a number from 0 to 1. Returns all places if they are fewer than `count`.
 */
export const draw = (sources: readonly Source[], count: number, next: () => number): readonly Mutation[] => {
  const files = sources
    .map(({ file, text }) => ({ places: placesIn(file, text), lines: text.split('\n').length }))
    .filter(({ places }) => places.length > 0)
  const drawn: Mutation[] = []
  while (drawn.length < count && files.length > 0) {
    let line = next() * files.reduce((sum, { lines }) => sum + lines, 0)
    const at = files.findIndex(({ lines }) => (line -= lines) < 0)
    const { places } = files.at(at)!
    drawn.push(...places.splice(Math.floor(next() * places.length), 1))
    if (places.length === 0) files.splice(at, 1)
  }
  return drawn
}

const shown = (text: string): string => text.replaceAll(/\s+/g, ' ').slice(0, 80)

const changesOf = (node: Node, source: string): readonly Change[] => {
  const textOf = ({ start, end }: Node): string => source.slice(start, end)
  const change = ({ start, end }: Node, text: string, before = source.slice(start, end), after = text): Change[] => [
    { start, end, text, before: shown(before), after: shown(after), isStatement: false },
  ]
  if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') {
    const [left, right] = [node['left'] as Node, node['right'] as Node]
    const operator = node['operator'] as string
    const swapped = OPERATORS[operator]
    // Texts are joined by `+`, too; as a difference they would not compile.
    const isText =
      operator === '+' && [left, right].some(({ type, value }) => type === 'TemplateLiteral' || typeof value === 'string')
    return swapped === undefined || isText
      ? []
      : change(node, `(${textOf(left)}) ${swapped} (${textOf(right)})`, textOf(node), swapped)
  }
  if (node.type === 'IfStatement' || node.type === 'ConditionalExpression') {
    const test = node['test'] as Node
    return change(test, `!(${textOf(test)})`)
  }
  if (node.type === 'Literal' && typeof node['value'] === 'boolean') return change(node, String(!node['value']))
  if (node.type !== 'ExpressionStatement') return []
  const expression = node['expression'] as Node
  const isEffect = expression.type === 'CallExpression' || expression.type === 'AssignmentExpression'
  // Without what a constructor keeps nothing works at all: every test would notice, and the count would flatter.
  return isEffect && !LOGS.test(textOf(expression)) && !KEPT.test(textOf(expression))
    ? change(expression, 'void 0').map((one) => ({ ...one, isStatement: true }))
    : []
}

/**
 * `source` with a switch at each of `mutations`, all of this file: where `isOn(key)` is true for its key, that one stands there. `isOn` is
 * an expression. The lines stay where they are.
 */
export const withSwitches = (source: string, mutations: ReadonlyMap<number, Mutation>, isOn: string): string => {
  // Whatever contains another begins earlier or ends later.
  const all = [...mutations].sort(([, one], [, other]) => one.start - other.start || other.end - one.end)
  const render = (from: number, to: number, inside: readonly (readonly [number, Mutation])[]): string => {
    const [first, ...others] = inside
    if (first === undefined) return source.slice(from, to)
    const [key, { start, end, text, isStatement }] = first
    const within = others.filter((other) => other[1].end <= end)
    const after = others.filter((other) => other[1].end > end)
    const usual = render(start, end, within)
    // A statement that began with a bracket would go on with the line before.
    const changed = isStatement ? `void (${isOn}(${key}) ? 0 : (${usual}))` : `(${isOn}(${key}) ? (${text}) : (${usual}))`
    return source.slice(from, start) + changed + render(end, to, after)
  }
  return render(0, source.length, all)
}
