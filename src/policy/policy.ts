/**
 * Decides what a caller may do: the first rule that holds decides. A rule that cannot be evaluated denies.
 *
 * Rules are evaluated in two steps: once per caller and tool, without arguments and time, which decides most rules; the result
 * (`Remaining`) is cached. The remaining rules are evaluated per call. Their last verdict is cached as well if it does not depend on
 * values of arguments: the members that they read are missing, or longer than the constants. A list shows what could be allowed with
 * some arguments.
 */
import type { Entry } from '../catalog/inventory.ts'
import type { Caller } from '../rpc/call.ts'
import { decodeArguments, decodeMembers, RuleKeys, UnjudgedArguments, wholeOf } from './arguments.ts'
import type { ArgumentsJson, DecodedMembers, ReadMember } from './arguments.ts'
import { EvaluationFailed, Expressions } from './expression.ts'
import type { Expression, Fault } from './expression.ts'
import type { Decision, PolicyOptions, PolicyRule } from './options.ts'
import { PolicyCall, PolicyCaller, PolicyRequest, Unknown, UNKNOWN } from './subject.ts'
import type { Claims, Maybe, PolicyCallFacts, Subject } from './subject.ts'
import { attempt } from '../values/attempt.ts'

/** The subject of a decision: one call, or one entry of a list. */
export interface Judged extends Omit<PolicyCallFacts, 'arguments'> {
  readonly caller: Caller
  /** Names of the caller's toolsets, separated by blanks; `undefined`: none. */
  readonly toolset: string | undefined
  /** The entry of a listed tool: key of cached decisions. */
  readonly entry: Entry | undefined
}

export interface Verdict {
  readonly decision: Decision
  /** `policy.rules[2] (name)`, or `policy.default`. */
  readonly rule: string
  /** Text for the caller. */
  readonly reason: string | undefined
  /** Text for the operator only: why the rule could not be evaluated. */
  readonly detail?: string
}

interface Rule extends PolicyRule {
  readonly expression: Expression
}

/** The rules that may still decide, in order, and the verdict if none of them does. */
interface Remaining {
  readonly open: readonly Rule[]
  readonly last: Verdict
  /** The members of the arguments that those rules read; `undefined`: they may read any. */
  readonly members: ReadonlyMap<string, ReadMember> | undefined
  /** Whether the decision depends on these members alone. */
  readonly isByMembers: boolean
  /** One-entry cache: the verdict for arguments of one likeness. */
  latest: { readonly likeness: number; readonly verdict: Verdict } | undefined
}

type Decoded = Pick<DecodedMembers, 'likeness'> & { readonly value: unknown }

/** The remaining rules for one caller of a tool. */
interface Cached {
  readonly judged: Judged
  readonly remaining: Remaining
}

interface CachedOfTool {
  /** By `#keyOf`. */
  readonly byCaller: Map<string, Cached>
  /** One-entry cache: a caller often calls one tool several times in a row. */
  latest: Cached | undefined
}

/** Cached pairs of caller and tool; the cache is cleared above this. */
const MAX_CACHED = 20_000
/** Number of powers of two whose sum a double represents exactly. */
const MAX_BITS = 50
const NO_ARGUMENTS: Decoded = { value: Object.freeze({}), likeness: 0 }
const NO_CLAIMS: Claims = Object.freeze({})
const NO_SCOPES: readonly string[] = []

export class Policy {
  readonly #rules: readonly Rule[]
  readonly #default: Verdict
  readonly #options: PolicyOptions
  readonly #keys: RuleKeys
  readonly #readsClaims: boolean
  readonly #readsScopes: boolean
  readonly #readsHost: boolean
  readonly #readsAddress: boolean
  readonly #readsTime: boolean
  #cached = new WeakMap<Entry, CachedOfTool>()
  #cachedCount = 0

  /** Throws for an invalid expression; `faultsOf` finds these beforehand. */
  constructor(options: PolicyOptions) {
    this.#options = options
    const expressions = new Expressions()
    this.#rules = options.rules.map((rule) => {
      const expression = expressions.compile(rule.when)
      if ('fault' in expression) throw new Error(`${rule.id}: ${expression.fault}`)
      return { ...rule, expression }
    })
    const isOpen = options.otherwise === 'allow'
    this.#default = {
      decision: options.otherwise,
      rule: 'policy.default',
      reason: isOpen ? undefined : 'no rule of the policy allows it',
    }
    const reading = this.#rules.filter(({ expression: { fields } }) => fields.has('call.arguments') || fields.has('call'))
    this.#keys = new RuleKeys(reading.flatMap(({ expression }) => [...expression.names]))
    const fields = new Set(this.#rules.flatMap(({ expression }) => [...expression.fields]))
    const reads = (field: string): boolean => fields.has(field) || field.split('.', 1).some((root) => fields.has(root))
    this.#readsClaims = reads('caller.claims')
    this.#readsScopes = reads('caller.scopes')
    this.#readsHost = reads('request.host')
    this.#readsAddress = reads('request.address')
    this.#readsTime = reads('request.time')
  }

  /** The verdict if no rule holds: `allow` or `deny`. */
  get otherwise(): Verdict {
    return this.#default
  }

  /** Whether a rule, or the service, may ask for confirmation. */
  get confirms(): boolean {
    return this.#options.service !== undefined || this.#rules.some(({ decision }) => decision === 'confirm')
  }

  /** `args`: returns the JSON of the call's arguments, if any; called only if a rule reads them. */
  judge(judged: Judged, args: () => ArgumentsJson | undefined, time?: Date): Verdict {
    const left = this.#remaining(judged)
    if (left.open.length === 0) return left.last
    let decoded = left.isByMembers ? this.#tryDecode(args(), left) : undefined
    const likeness = decoded?.likeness
    if (likeness !== undefined && likeness === left.latest?.likeness) return left.latest.verdict
    const subject = subjectOf(
      judged,
      () => (decoded ??= this.#decode(args(), left)).value,
      () => time ?? new Date(),
    )
    const verdict = firstOf(left, subject)
    if (likeness !== undefined) left.latest = { likeness, verdict }
    return verdict
  }

  /** Drops cached decisions: servers and toolsets may give tools other hints now. */
  forget(): void {
    this.#cached = new WeakMap()
    this.#cachedCount = 0
  }

  /** Whether no rule decided. */
  isDefault({ rule }: Verdict): boolean {
    return rule === this.#default.rule
  }

  /** Throws `UnjudgedArguments` if two parsers could read the arguments differently, or if they are too large. */
  checkArguments(args: Buffer): void {
    this.#decode(wholeOf(args))
  }

  /** Whether a call with some arguments would be allowed or confirmed now; `default`: no rule decides. */
  mayAllow(judged: Judged): boolean | 'default' {
    const { open, last } = this.#remaining(judged)
    const subject = subjectOf(judged, UNKNOWN, () => new Date())
    for (const rule of open) {
      const verdict = this.#readsTime ? holds(rule, subject) : 'open'
      if (verdict === 'open' ? rule.decision !== 'deny' : verdict === true) return rule.decision !== 'deny'
      if (typeof verdict === 'object') return false
    }
    return this.isDefault(last) ? 'default' : last.decision !== 'deny'
  }

  /** `undefined`: the arguments are not valid for rules; a rule that reads them fails. */
  #tryDecode(args: ArgumentsJson | undefined, left: Remaining): Decoded | undefined {
    return attempt(() => this.#decode(args, left))
  }

  #decode(args: ArgumentsJson | undefined, left?: Remaining): Decoded {
    if (args === undefined) return NO_ARGUMENTS
    const { bytes, start, end } = args
    const { maxArgumentsBytes } = this.#options
    if (end - start > maxArgumentsBytes)
      throw new UnjudgedArguments(`the arguments exceed policy.max_arguments (${maxArgumentsBytes} bytes)`)
    if (left?.members !== undefined) return decodeMembers(args, left.members, this.#keys)
    return { value: decodeArguments(bytes.subarray(start, end), this.#keys), likeness: undefined }
  }

  #remaining(judged: Judged): Remaining {
    const { entry } = judged
    if (entry === undefined) return this.#reduce(judged)
    const ofTool = this.#cached.get(entry)
    const latest = ofTool?.latest
    if (latest !== undefined && this.#isSame(latest.judged, judged)) return latest.remaining
    const key = this.#keyOf(judged)
    const known = ofTool?.byCaller.get(key)
    if (ofTool !== undefined && known !== undefined && this.#isSame(known.judged, judged))
      return (ofTool.latest = known).remaining
    const reduced: Cached = { judged, remaining: this.#reduce(judged) }
    if (known === undefined && ++this.#cachedCount > MAX_CACHED) {
      this.#cachedCount = 1
      this.#cached = new WeakMap()
    }
    let cache = this.#cached.get(entry)
    if (cache === undefined) this.#cached.set(entry, (cache = { byCaller: new Map(), latest: undefined }))
    cache.byCaller.set(key, reduced)
    return reduced.remaining
  }

  /** Whether both have the same remaining rules. Claims are compared by identity: a verified token has one claims object. */
  #isSame(a: Judged, b: Judged): boolean {
    const { caller } = a
    const { caller: other } = b
    return (
      caller.principal === other.principal &&
      a.name === b.name &&
      a.toolset === b.toolset &&
      a.method === b.method &&
      caller.revision === other.revision &&
      (caller.facts === other.facts || this.#haveSameFacts(caller.facts, other.facts))
    )
  }

  #haveSameFacts(a: Caller['facts'], b: Caller['facts']): boolean {
    return (
      (!this.#readsClaims || a?.claims === b?.claims) &&
      (!this.#readsHost || a?.host === b?.host) &&
      (!this.#readsAddress || a?.address === b?.address) &&
      (!this.#readsScopes || a?.scopes === b?.scopes || a?.scopes.join(' ') === b?.scopes.join(' '))
    )
  }

  /** Everything that the remaining rules of a tool depend on, except the claims. */
  #keyOf({ caller, toolset = '', method, name }: Judged): string {
    const { principal, revision, facts } = caller
    let key = `${String(name)}\n${principal}\n${toolset}\n${method}\n${revision}`
    if (this.#readsHost) key += `\n${facts?.host}`
    if (this.#readsAddress) key += `\n${facts?.address}`
    if (this.#readsScopes) key += `\n${facts?.scopes.join(' ')}`
    return key
  }

  /** Evaluates the rules without arguments and time. */
  #reduce(judged: Judged): Remaining {
    const open: Rule[] = []
    const subject = subjectOf(judged, UNKNOWN, UNKNOWN)
    for (const rule of this.#rules) {
      const verdict = holds(rule, subject)
      if (verdict === true) return remaining(open, verdictOf(rule))
      if (verdict === 'open') open.push(rule)
      else if (verdict !== false) return remaining(open, verdict)
    }
    return remaining(open, this.#default)
  }
}

/** The faults of invalid expressions, by index in `texts`. */
export const faultsOf = (texts: readonly string[]): ReadonlyMap<number, Fault> => {
  const expressions = new Expressions()
  const faults = new Map<number, Fault>()
  for (const [at, text] of texts.entries()) {
    const compiled = expressions.compile(text)
    if ('fault' in compiled) faults.set(at, compiled)
  }
  return faults
}

const remaining = (open: readonly Rule[], last: Verdict): Remaining => {
  const members = membersReadBy(open)
  const readsTime = open.some(({ expression: { fields } }) => fields.has('request.time') || fields.has('request'))
  const isByMembers = !readsTime && members !== undefined && members.size <= MAX_BITS
  return { open, last, members, isByMembers, latest: undefined }
}

const membersReadBy = (rules: readonly Rule[]): ReadonlyMap<string, ReadMember> | undefined => {
  const read = new Map<string, ReadMember>()
  for (const { expression } of rules) {
    if (expression.members === undefined) return undefined
    for (const [name, chars] of expression.members) {
      const { maxChars, bit } = read.get(name) ?? { maxChars: 0, bit: 2 ** read.size }
      read.set(name, { maxChars: Math.max(chars, maxChars), bit })
    }
  }
  return read.has('__proto__') ? undefined : read
}

/** The verdict of the first remaining rule that holds. */
const firstOf = ({ open, last }: Remaining, subject: Subject): Verdict => {
  for (const rule of open) {
    const verdict = holds(rule, subject)
    // Where the name is unknown, a rule that does not allow applies to some name.
    if (verdict === true || (verdict === 'open' && rule.decision !== 'allow')) return verdictOf(rule)
    if (typeof verdict === 'object') return verdict
  }
  return last
}

const verdictOf = ({ decision, id, reason }: Rule): Verdict => ({ decision, rule: id, reason })

/** `open`: the result depends on an unknown field. A verdict: the rule cannot be evaluated. */
const holds = (rule: Rule, subject: Subject): boolean | 'open' | Verdict => {
  try {
    return rule.expression.evaluate(subject)
  } catch (error) {
    if (error instanceof Unknown) return 'open'
    if (!(error instanceof EvaluationFailed)) throw error
    const reason = error.told ?? `${rule.id} cannot be evaluated for this call`
    return { decision: 'deny', rule: rule.id, reason, detail: error.message }
  }
}

const subjectOf = (
  { caller, toolset = '', method, server, name, original, annotations }: Judged,
  args: Maybe<() => unknown>,
  time: Maybe<() => Date>,
): Subject => {
  const { claims = NO_CLAIMS, scopes = NO_SCOPES, host = '', address = '' } = caller.facts ?? {}
  return {
    caller: new PolicyCaller(caller.principal, claims, scopes, toolset),
    call: new PolicyCall({ method, server, name, original, annotations, arguments: args }),
    request: new PolicyRequest(caller.revision, host, address, time),
  }
}
