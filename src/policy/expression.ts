/**
 * Compiles and evaluates CEL expressions in bounded time.
 *
 * The library bounds neither loops nor regular expressions. The expression is therefore rewritten before evaluation: the body of each
 * loop counts its rounds, and `matches` uses RE2, whose time is linear in its input.
 */
import { Environment } from '@marcbachmann/cel-js'
import type { ASTNode } from '@marcbachmann/cel-js'
import { RE2JS } from 're2js'
import { asError } from '../values/as-error.ts'
import { isInteger, isJsonObject, memberOf } from '../values/json-object.ts'
import { ANY_CHARS, UnjudgedArguments } from './arguments.ts'
import type { ReadPath, ScalarKind } from './arguments.ts'
import { MAX_EXPRESSION_CHARS } from './options.ts'
import { PolicyAnnotations, PolicyCall, PolicyCaller, PolicyRequest, Unknown } from './subject.ts'
import type { Subject } from './subject.ts'

const MAX_NODES = 500
const MAX_DEPTH = 40
/** Levels of nested loops. */
const MAX_LOOP_DEPTH = 3
/** Rounds of all loops in one evaluation. */
const MAX_ROUNDS = 100_000
/** Time of all loops in one evaluation, measured every `ROUNDS_PER_LOOK` rounds. */
const MAX_LOOP_MS = 250
const ROUNDS_PER_LOOK = 16
const TOO_LONG = `its loops take more than ${MAX_ROUNDS} rounds or ${MAX_LOOP_MS} ms for what this call brings`
/** Cached patterns that come from calls. */
export const MAX_PATTERNS = 100
const MAX_PATTERN_CHARS = 1_000

const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map'])
const ROUND = '__round'
const MATCHES = '__matches'
const OWN = /\b__(?:round|matches)\b/
const VARIABLES: ReadonlySet<string> = new Set(['caller', 'call', 'request'])

export interface Expression {
  /** Fields that it reads: `call.arguments`, or `call` if it uses the whole of it. */
  readonly fields: ReadonlySet<string>
  /** All names that it may look up in arguments. */
  readonly names: ReadonlySet<string>
  /**
   * The members of the arguments that it reads, each with the length above which all texts give the same result, since they are
   * compared with shorter constants; `undefined`: it may read any member.
   */
  readonly members: ReadonlyMap<string, number> | undefined
  /** Throws `Unknown` if the result depends on an unknown field, and `EvaluationFailed` for any other error. */
  evaluate(subject: Subject): boolean
}

/** The reason why a text is not a valid expression. `at`: offset in the text. */
export interface Fault {
  readonly fault: string
  readonly at: number
}

/** An expression could not be evaluated for a call. */
export class EvaluationFailed extends Error {
  /** Text for the caller about what it can correct. */
  get told(): string | undefined {
    return this.cause instanceof UnjudgedArguments ? this.cause.message : undefined
  }
}

/** Compiles and evaluates the expressions of one policy. */
export class Expressions {
  /** Patterns that are constants of expressions; calls cannot displace them. */
  readonly #constants = new Map<string, RE2JS>()
  readonly #patterns = new Map<string, RE2JS>()
  readonly #written: Environment
  readonly #evaluated: Environment
  #rounds = 0
  #deadlineMs = 0
  #isOver = false
  readonly #over = new EvaluationFailed(TOO_LONG)

  constructor() {
    this.#written = declared()
    this.#evaluated = declared()
      .registerFunction(`${ROUND}(): bool`, () => this.#round())
      .registerFunction(`string.${MATCHES}(string): bool`, (text: string, pattern: string) => this.#pattern(pattern).test(text))
  }

  compile(text: string): Expression | Fault {
    if (text.length > MAX_EXPRESSION_CHARS)
      return { fault: `is longer than ${MAX_EXPRESSION_CHARS} characters`, at: MAX_EXPRESSION_CHARS }
    const own = OWN.exec(text)
    if (own !== null) return { fault: `${own[0]} is no name for an expression`, at: own.index }
    let tree: ASTNode
    try {
      const parsed = this.#written.parse(text)
      tree = parsed.ast
      const { valid, type, error } = parsed.check()
      if (!valid) return faultOf(error)
      if (type !== 'bool' && type !== 'dyn') return { fault: `is of type ${type}, and a rule takes bool`, at: 0 }
    } catch (error) {
      return faultOf(error)
    }
    const found = survey(tree, text)
    if (found.loopDepth > MAX_LOOP_DEPTH)
      return { fault: `has loops inside of loops, ${found.loopDepth} deep (at most ${MAX_LOOP_DEPTH})`, at: 0 }
    for (const { pattern, at } of found.patterns) {
      const compiled = compiledPattern(pattern)
      if (typeof compiled === 'string') return { fault: compiled, at }
      this.#constants.set(pattern, compiled)
    }
    const paths = withAllKinds(found.paths)
    const run = this.#evaluated.parse(bounded(found))
    if (!isBounded(run.ast) || !run.check().valid) return { fault: 'is written in a form that cannot be bounded', at: 0 }
    return {
      fields: found.fields,
      names: found.names,
      members: found.readsWhole ? undefined : found.members,
      evaluate: (subject) => this.#evaluate(run, subject, paths),
    }
  }

  #evaluate(run: (subject: object) => unknown, subject: Subject, paths: readonly ReadPath[]): boolean {
    this.#rounds = 0
    this.#isOver = false
    subject.call.hasMissed = false
    subject.call.paths = paths
    subject.request.hasMissed = false
    let value: unknown
    try {
      value = run(subject)
    } catch (error) {
      // Checked first, since loops absorb errors of their rounds.
      if (this.#isOver) throw new EvaluationFailed(TOO_LONG)
      if (subject.call.hasMissed || subject.request.hasMissed) throw new Unknown()
      throw new EvaluationFailed(summaryOf(error), { cause: error })
    }
    if (this.#isOver) throw new EvaluationFailed(TOO_LONG)
    if (typeof value !== 'boolean') throw new EvaluationFailed(`the rule yields ${typeof value}, not bool`)
    return value
  }

  #round(): true {
    this.#rounds++
    if (this.#rounds % ROUNDS_PER_LOOK === 0) {
      const nowMs = performance.now()
      if (this.#rounds === ROUNDS_PER_LOOK) this.#deadlineMs = nowMs + MAX_LOOP_MS
      this.#isOver ||= nowMs > this.#deadlineMs
    }
    this.#isOver ||= this.#rounds > MAX_ROUNDS
    // One error object, since it may be thrown for each remaining element.
    if (this.#isOver) throw this.#over
    return true
  }

  #pattern(pattern: string): RE2JS {
    const known = this.#constants.get(pattern) ?? this.#patterns.get(pattern)
    if (known !== undefined) return known
    const compiled = compiledPattern(pattern)
    if (typeof compiled === 'string') throw new EvaluationFailed(compiled)
    if (this.#patterns.size >= MAX_PATTERNS) this.#patterns.clear()
    this.#patterns.set(pattern, compiled)
    return compiled
  }
}

/** The compiled pattern, or the reason why it is invalid. */
const compiledPattern = (pattern: string): RE2JS | string => {
  if (pattern.length > MAX_PATTERN_CHARS) return `a regular expression is longer than ${MAX_PATTERN_CHARS} characters`
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    return `${JSON.stringify(pattern)} is no regular expression of RE2 (${asError(error).message})`
  }
}

const declared = (): Environment =>
  new Environment({
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: MAX_NODES, maxDepth: MAX_DEPTH, maxListElements: 500, maxMapEntries: 500 },
  })
    .registerType('Annotations', {
      ctor: PolicyAnnotations,
      fields: { readOnlyHint: 'bool', destructiveHint: 'bool', idempotentHint: 'bool', openWorldHint: 'bool' },
    })
    .registerType('Caller', {
      ctor: PolicyCaller,
      fields: { principal: 'string', claims: 'map<string, dyn>', scopes: 'list<string>', toolset: 'string' },
    })
    .registerType('Call', {
      ctor: PolicyCall,
      fields: {
        method: 'string',
        server: 'string',
        name: 'string',
        original: 'string',
        arguments: 'map<string, dyn>',
        annotations: 'Annotations',
      },
    })
    .registerType('Request', {
      ctor: PolicyRequest,
      fields: { revision: 'string', host: 'string', address: 'string', time: 'google.protobuf.Timestamp' },
    })
    .registerVariable('caller', 'Caller')
    .registerVariable('call', 'Call')
    .registerVariable('request', 'Request')

/** The first line of the library's message; the others show the place in the text. */
const summaryOf = (error: unknown): string => {
  const summary = memberOf(error, 'summary')
  const [line = ''] = (typeof summary === 'string' ? summary : asError(error).message).split('\n', 1)
  return line
}

const faultOf = (error: unknown): Fault => {
  const start = memberOf(memberOf(error, 'range'), 'start')
  return { fault: summaryOf(error), at: isInteger(start) ? start : 0 }
}

interface Survey {
  readonly text: string
  readonly fields: Set<string>
  readonly names: Set<string>
  readonly members: Map<string, number>
  readonly paths: ReadPath[]
  /** Whether it reads `call` or `call.arguments` as a whole. */
  readsWhole: boolean
  readonly patterns: { readonly pattern: string; readonly at: number }[]
  /** Replacements of parts of the text. */
  readonly edits: { readonly start: number; readonly end: number; readonly text: string }[]
  loopDepth: number
}

/** Collects the properties of an expression. */
const survey = (tree: ASTNode, text: string): Survey => {
  const found: Survey = {
    text,
    fields: new Set(),
    names: new Set(),
    members: new Map(),
    paths: [],
    readsWhole: false,
    patterns: [],
    edits: [],
    loopDepth: 0,
  }
  visit(tree, found, 0)
  return found
}

const visit = (node: ASTNode, found: Survey, loops: number): void => {
  found.loopDepth = Math.max(found.loopDepth, loops)
  switch (node.op) {
    case 'value':
      if (typeof node.args === 'string') found.names.add(node.args)
      return
    case 'id':
      if (VARIABLES.has(node.args)) found.fields.add(node.args)
      if (node.args === 'call') found.readsWhole = true
      return
    case '.':
    case '.?': {
      const [of, name] = node.args
      notePath(node, [], found)
      if (isArguments(of)) readMember(name, found, ANY_CHARS)
      else if (of.op === 'id' && VARIABLES.has(of.args)) {
        found.fields.add(`${of.args}.${name}`)
        if (isArguments(node)) found.readsWhole = true
      } else {
        if (!isOfCaller(of)) found.names.add(name)
        visit(of, found, loops)
      }
      return
    }
    case '[]':
    case '[?]': {
      const [of, key] = node.args
      notePath(node, [], found)
      if (isArguments(of) && key.op === 'value' && typeof key.args === 'string') readMember(key.args, found, ANY_CHARS)
      else for (const child of childrenOf(node.args)) visit(child, found, loops)
      return
    }
    case 'rcall': {
      const [name, receiver, args] = node.args
      visit(receiver, found, loops)
      const loop = loopOf(name, args)
      for (const arg of loop ?? args) visit(arg, found, loop === undefined ? loops : loops + 1)
      if (loop !== undefined) countRounds(node, args, found)
      if (name === 'matches') useRe2(receiver, args, found)
      return
    }
    case '==':
    case '!=':
    case 'in': {
      const [left, right] = node.args
      notePath(left, kindsOf(right), found)
      if (node.op !== 'in') notePath(right, kindsOf(left), found)
      if (isComparison(left, right, found) || (node.op !== 'in' && isComparison(right, left, found))) return
      visit(left, found, loops)
      visit(right, found, loops)
      return
    }
    default:
      for (const child of childrenOf(node.args)) visit(child, found, loops)
  }
}

/** Whether a member of the arguments is compared with constant texts only, so that the content of a longer text does not matter. */
const isComparison = (read: ASTNode, constant: ASTNode, found: Survey): boolean => {
  const name = comparableMember(read)
  const chars = charsOf(constant)
  if (name === undefined || chars === undefined) return false
  readMember(name, found, chars)
  for (const node of [constant, ...(read.op === 'rcall' ? read.args[2] : [])]) visit(node, found, 0)
  return true
}

/** `call.arguments.NAME`, or `call.arguments.?NAME.orValue(TEXT)`. */
const comparableMember = (node: ASTNode): string | undefined => {
  if (node.op === '.' || node.op === '[]') return memberOfArguments(node)
  if (node.op !== 'rcall' || node.args[0] !== 'orValue') return undefined
  const [, optional, [otherwise]] = node.args
  const isText = otherwise?.op === 'value' && typeof otherwise.args === 'string'
  return isText && (optional.op === '.?' || optional.op === '[?]') ? memberOfArguments(optional) : undefined
}

const memberOfArguments = ({ args }: Extract<ASTNode, { op: '.' | '.?' | '[]' | '[?]' }>): string | undefined => {
  const [of, key] = args
  const name = typeof key === 'string' || key.op !== 'value' ? key : key.args
  return isArguments(of) && typeof name === 'string' ? name : undefined
}

/** Each path once, with the types of all constants it is compared with. */
const withAllKinds = (paths: readonly ReadPath[]): readonly ReadPath[] =>
  [...Map.groupBy(paths, ({ path }) => JSON.stringify(path)).values()].flatMap((some) =>
    some.slice(0, 1).map(({ path }) => ({ path, kinds: new Set(some.flatMap(({ kinds }) => [...kinds])) })),
  )

/** Notes a member of the arguments, and the types of the constants it is compared with; `undefined`: it is not compared with constants. */
const notePath = (node: ASTNode, kinds: readonly ScalarKind[] | undefined, { paths }: Survey): void => {
  const path = kinds && pathOf(node)
  if (path !== undefined && path.length > 0) paths.push({ path, kinds: new Set(kinds) })
}

/** `[a, b]` of `call.arguments.a.b`, also with `.?`, brackets, `orValue` and `value`. */
const pathOf = (node: ASTNode): readonly string[] | undefined => {
  if (isArguments(node)) return []
  if (node.op === 'rcall') return node.args[0] === 'orValue' || node.args[0] === 'value' ? pathOf(node.args[1]) : undefined
  if (node.op !== '.' && node.op !== '.?' && node.op !== '[]' && node.op !== '[?]') return undefined
  const [of, key] = node.args
  const name = typeof key === 'string' || key.op !== 'value' ? key : key.args
  const path = typeof name === 'string' ? pathOf(of) : undefined
  return path && typeof name === 'string' ? [...path, name] : undefined
}

/** The types of a constant, or of those in a constant list; `undefined`: another expression. */
const kindsOf = (node: ASTNode): readonly ScalarKind[] | undefined => {
  if (node.op === '-_') return kindsOf(node.args)
  if (node.op === 'list') {
    const kinds = node.args.map(kindsOf)
    return kinds.includes(undefined) ? undefined : kinds.flatMap((some) => some ?? [])
  }
  if (node.op !== 'value') return undefined
  if (typeof node.args === 'string') return ['text']
  if (typeof node.args === 'boolean') return ['bool']
  return typeof node.args === 'number' || typeof node.args === 'bigint' ? ['number'] : undefined
}

/** Length of a constant text, or of the longest one of a constant list; `undefined`: another expression. */
const charsOf = (node: ASTNode): number | undefined => {
  if (node.op === 'value') return typeof node.args === 'string' ? node.args.length : undefined
  if (node.op !== 'list') return undefined
  const lengths = node.args.map(charsOf)
  return lengths.includes(undefined) ? undefined : Math.max(0, ...lengths.filter((length) => length !== undefined))
}

const isArguments = (node: ASTNode): boolean =>
  (node.op === '.' || node.op === '.?') &&
  node.args[0].op === 'id' &&
  node.args[0].args === 'call' &&
  node.args[1] === 'arguments'

const readMember = (name: string, { fields, names, members }: Survey, chars: number): void => {
  fields.add('call.arguments')
  names.add(name)
  members.set(name, Math.max(chars, members.get(name) ?? 0))
}

/** The arguments of a loop after its variable; `undefined`: the call is not a loop. */
const loopOf = (name: string, [variable, ...body]: readonly ASTNode[]): readonly [ASTNode, ...ASTNode[]] | undefined => {
  const [first, ...rest] = body
  return LOOPS.has(name) && variable?.op === 'id' && first !== undefined ? [first, ...rest] : undefined
}

/** Whether the expression reads from `caller`. */
const isOfCaller = (node: ASTNode): boolean => {
  if (node.op === 'id') return node.args === 'caller'
  return (node.op === '.' || node.op === '.?' || node.op === '[]' || node.op === '[?]') && isOfCaller(node.args[0])
}

const childrenOf = (args: unknown): readonly ASTNode[] => {
  if (Array.isArray(args)) return args.flatMap(childrenOf)
  return isNode(args) ? [args] : []
}

const isNode = (value: unknown): value is ASTNode => isJsonObject(value) && 'op' in value

/** `list.all(x, BODY)` becomes `list.all(x, __round() ? (BODY) : false)`; of `map` with a filter, the filter is rewritten. */
const countRounds = (node: ASTNode, [variable, , third]: readonly ASTNode[], found: Survey): void => {
  const { text, edits } = found
  const first = text.indexOf(',', variable?.range.end) + 1
  const end = third === undefined ? node.range.end - 1 : text.lastIndexOf(',', third.range.start)
  const isMap = node.op === 'rcall' && node.args[0] === 'map' && third === undefined
  edits.push({ start: first, end: first, text: `${ROUND}() ? (` })
  edits.push({ start: end, end, text: isMap ? ') : dyn(null)' : ') : false' })
}

/** Renames `matches`; receiver and argument are separated only by its name, points, brackets and blanks. */
const useRe2 = (receiver: ASTNode, [pattern]: readonly ASTNode[], found: Survey): void => {
  if (pattern?.op === 'value' && typeof pattern.args === 'string')
    found.patterns.push({ pattern: pattern.args, at: pattern.range.start })
  const start = found.text.indexOf('.', receiver.range.end)
  found.edits.push({ start, end: found.text.indexOf('(', start), text: `.${MATCHES}` })
}

/** Verifies the work of `bounded`: every loop counts its rounds, and every regular expression uses RE2. */
const isBounded = (node: ASTNode): boolean => {
  if (node.op === 'rcall') {
    const [name, receiver, args] = node.args
    const loop = loopOf(name, args)
    if (name === 'matches' || (loop !== undefined && !isCounted(loop[0]))) return false
    return [receiver, ...args].every(isBounded)
  }
  return childrenOf(node.args).every(isBounded)
}

const isCounted = (node: ASTNode): boolean => node.op === '?:' && node.args[0].op === 'call' && node.args[0].args[0] === ROUND

/** The rewritten text. */
const bounded = ({ text, edits }: Survey): string => {
  let result = text
  for (const { start, end, text: added } of edits.sort((a, b) => b.start - a.start))
    result = result.slice(0, start) + added + result.slice(end)
  return result
}
