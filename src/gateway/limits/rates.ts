/** Rate limits: per principal and toolset when a call arrives (a layer), per server and tool once it is routed (a check). */
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Call, Handler, Layer, Outcome, Scope } from '../../rpc/call.ts'
import { TokenBucket } from '../../rpc/rate.ts'
import type { Rate } from '../../rpc/rate.ts'
import { Failure } from '../../wire/message/failure.ts'
import { METHODS } from '../../wire/protocol/methods.ts'

/** One limit; `option`: its name in the configuration and in errors. */
export interface RateRule {
  readonly option: string
  readonly rate: Rate
  readonly of:
    | { readonly kind: 'principal' }
    | { readonly kind: 'toolset'; readonly toolset: string }
    | { readonly kind: 'server'; readonly server: string }
    /** `original`: original name. */
    | { readonly kind: 'tool'; readonly server: string; readonly original: string }
}

/** One limit as `ps` shows it. */
export interface RateCount {
  readonly option: string
  readonly rate: string
  /** Calls refused since the start. */
  readonly refused: number
}

/** Above this, buckets of idle principals are removed; they are full. */
const MAX_PRINCIPALS = 10_000

/** Tokens taken from one bucket; `key`: its principal, or empty. */
export interface Taken {
  readonly rule: RateRule
  readonly key: string
  readonly count: number
}

interface Limit {
  readonly rule: RateRule
  refused: number
  /** Tokens taken by bucket since the last call of `takenHere`; `undefined`: without replicas. */
  taken: Map<string, number> | undefined
  /** By principal; under the empty name for limits of other kinds. */
  readonly buckets: Map<string, TokenBucket>
}

export class Rates {
  readonly #clock: () => number
  readonly #toolsetOf: (scope: Scope) => string | undefined
  #isShared = false
  #limits: readonly Limit[] = []
  #perPrincipal: Limit | undefined
  #toolsets = new Map<string, Limit>()
  #servers = new Map<string, Limit>()
  #tools = new Map<string, Map<string, Limit>>()

  /** `toolsetOf`: the toolset of a scope; several names are separated by blanks. */
  constructor(
    rules: readonly RateRule[],
    toolsetOf: (scope: Scope) => string | undefined,
    clock: () => number = () => performance.now(),
  ) {
    this.#clock = clock
    this.#toolsetOf = toolsetOf
    this.apply(rules)
  }

  /** Replaces the limits. An unchanged limit keeps its current token count. */
  apply(rules: readonly RateRule[]): void {
    const before = new Map(this.#limits.map((limit) => [limit.rule.option, limit]))
    const limitOf = (rule: RateRule): Limit => {
      const same = before.get(rule.option)
      return same?.rule.rate.text === rule.rate.text
        ? same
        : { rule, refused: same?.refused ?? 0, taken: this.#isShared ? new Map() : undefined, buckets: new Map() }
    }
    this.#limits = rules.map(limitOf)
    this.#perPrincipal = this.#limits.find(({ rule }) => rule.of.kind === 'principal')
    this.#toolsets = new Map()
    this.#servers = new Map()
    this.#tools = new Map()
    for (const limit of this.#limits) {
      const { of } = limit.rule
      if (of.kind === 'toolset') this.#toolsets.set(of.toolset, limit)
      else if (of.kind === 'server') this.#servers.set(of.server, limit)
      else if (of.kind === 'tool') {
        const tools = this.#tools.get(of.server) ?? new Map<string, Limit>()
        this.#tools.set(of.server, tools.set(of.original, limit))
      }
    }
  }

  /** Starts counting taken tokens for other replicas. */
  share(): void {
    this.#isShared = true
    for (const limit of this.#limits) limit.taken ??= new Map()
  }

  /** Tokens taken here since the last call. */
  takenHere(): readonly Taken[] {
    return this.#limits.flatMap(({ rule, taken }) => {
      const all = [...(taken ?? [])].map(([key, count]) => ({ rule, key, count }))
      taken?.clear()
      return all
    })
  }

  /** Takes tokens that another replica has taken. */
  takenElsewhere({ rule, key, count }: Taken): void {
    const limit = this.#limits.find((each) => each.rule === rule)
    const nowMs = this.#clock()
    if (limit !== undefined) bucketOf(limit, key, nowMs).take(nowMs, count)
  }

  /** Whether `layer` is needed. */
  get limitsCallers(): boolean {
    return this.#perPrincipal !== undefined || this.#toolsets.size > 0
  }
  /** Whether `checkRoute` is needed. */
  get limitsRoutes(): boolean {
    return this.#servers.size > 0 || this.#tools.size > 0
  }

  get counts(): readonly RateCount[] {
    return this.#limits.map(({ rule, refused }) => ({ option: rule.option, rate: rule.rate.text, refused }))
  }

  /** Refuses calls whose principal or toolset has no token left. Lists and tasks take no token. */
  readonly layer: Layer = (inner) => (call) => this.#enter(inner, call)

  /** Takes a token of the server and of the tool. Throws `rate_limited` if one of them has none left. */
  checkRoute(call: Call, server: string, original: string): void {
    const tool = call.method === 'tools/call' ? this.#tools.get(server)?.get(original) : undefined
    this.#take([tool, this.#servers.get(server)], '')
  }

  #enter(inner: Handler, call: Call): Promise<Outcome> {
    if (METHODS[call.method]?.handling !== 'forward') return inner(call)
    const { principal, scope } = call.caller
    const names = this.#toolsets.size === 0 ? undefined : this.#toolsetOf(scope)
    const toolsets = names?.split(' ').map((name) => this.#toolsets.get(name)) ?? []
    const limits = [principal === SHARED_PRINCIPAL ? undefined : this.#perPrincipal, ...toolsets]
    try {
      this.#take(limits, principal)
    } catch (error) {
      return Promise.reject(error)
    }
    if (!this.limitsRoutes) return inner(call)
    return inner(call).catch((error: unknown) => {
      // A call takes one token of each limit, or none.
      if (this.#isOfRoute(error)) this.#count(limits, principal, -1)
      throw error
    })
  }

  /** Whether the error is the refusal of `checkRoute`. */
  #isOfRoute(error: unknown): boolean {
    if (!(error instanceof Failure) || error.kind !== 'rate_limited') return false
    const of = this.#limits.find(({ rule }) => rule.option === error.facts.limit)?.rule.of
    return of?.kind === 'server' || of?.kind === 'tool'
  }

  /** Takes one token of each limit, or throws and takes none. */
  #take(limits: readonly (Limit | undefined)[], principal: string): void {
    const nowMs = this.#clock()
    let longestMs = 0
    let reached: Limit | undefined
    for (const limit of limits) {
      const waitMs = limit === undefined ? 0 : bucketOf(limit, principal, nowMs).waitMs(nowMs)
      if (waitMs > longestMs) [longestMs, reached] = [waitMs, limit]
    }
    if (reached !== undefined) throw refuse(reached, longestMs)
    this.#count(limits, principal, 1)
  }

  /** `tokens`: -1 gives one back. */
  #count(limits: readonly (Limit | undefined)[], principal: string, tokens: 1 | -1): void {
    const nowMs = this.#clock()
    for (const limit of limits) {
      if (limit === undefined) continue
      bucketOf(limit, principal, nowMs).take(nowMs, tokens)
      if (limit.taken === undefined) continue
      const key = keyOf(limit, principal)
      // What other replicas were told stays taken there: their sum only grows.
      limit.taken.set(key, Math.max(0, (limit.taken.get(key) ?? 0) + tokens))
    }
  }
}

const keyOf = ({ rule }: Limit, principal: string): string => (rule.of.kind === 'principal' ? principal : '')

const bucketOf = (limit: Limit, principal: string, nowMs: number): TokenBucket => {
  const { buckets, rule } = limit
  const key = keyOf(limit, principal)
  let bucket = buckets.get(key)
  if (bucket !== undefined) return bucket
  if (buckets.size >= MAX_PRINCIPALS) for (const [name, idle] of buckets) if (idle.isFull(nowMs)) buckets.delete(name)
  bucket = new TokenBucket(rule.rate)
  buckets.set(key, bucket)
  return bucket
}

const refuse = (limit: Limit, waitMs: number): Failure => {
  const { option, rate } = limit.rule
  limit.refused++
  return new Failure('rate_limited', `${option} (${rate.text}) is reached`, {
    executed: 'no',
    retryable: true,
    retryAfterMs: Math.ceil(waitMs),
    limit: option,
  })
}
