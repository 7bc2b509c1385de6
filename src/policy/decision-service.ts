/**
 * Decisions of an external service with the data API of Open Policy Agent, requested if no rule decides.
 *
 *     POST {"input":{"caller":{…},"call":{…},"request":{…}}}   →   {"result":{"decision":"allow"}}
 *
 * After a failure `policy.service.on_failure` decides.
 */
import { createHash } from 'node:crypto'
import { asError } from '../values/as-error.ts'
import type { Caller } from '../rpc/call.ts'
import { isJsonObject, parseJson } from '../values/json-object.ts'
import { Payload } from '../wire/message/payload.ts'
import { cleanMessage } from '../wire/protocol/label.ts'
import type { Decision, ServiceOptions } from './options.ts'
import type { Judged, Verdict } from './policy.ts'
import { setBounded } from '../values/bounded-map.ts'

/** Sends one request; rejects without an answer. */
export interface Poster {
  post(body: string): Promise<string>
}

/** The decision of the service on a call. */
export interface ServiceAnswer {
  /** `undefined`: the service does not decide. */
  readonly verdict: Verdict | undefined
  /** JSON object that replaces the call's arguments. */
  readonly arguments?: Buffer | undefined
  /** JSON array of content blocks that replaces the content of the result. */
  readonly content?: Buffer | undefined
}

export interface ServiceWatch {
  /** A request failed; the message names the service and the reason. */
  failed(message: string): void
}

const RULE = 'policy.service'
const MAX_REASON_CHARS = 1_000
const MAX_CACHED = 10_000
const MAX_TTL_S = 3_600
const DECISIONS: ReadonlySet<unknown> = new Set<Decision>(['allow', 'deny', 'confirm'])

interface Cached {
  readonly answer: ServiceAnswer
  /** Monotonic milliseconds. */
  readonly untilMs: number
}

/** The service sent an invalid answer. */
class InvalidAnswer extends Error {}

export class DecisionService {
  readonly options: ServiceOptions
  readonly #poster: Poster
  readonly #watch: ServiceWatch
  /** By digest of the request without its time; the oldest first. */
  readonly #cached = new Map<string, Cached>()
  readonly #visible = new Map<string, { readonly names: ReadonlySet<string> | undefined; readonly untilMs: number }>()

  constructor(options: ServiceOptions, poster: Poster, watch: ServiceWatch) {
    this.options = options
    this.#poster = poster
    this.#watch = watch
  }

  /** `args`: JSON of the call's arguments. `result`: JSON of its result, for a decision on the result. */
  async decide(judged: Judged, args: Buffer | undefined, result?: Buffer): Promise<ServiceAnswer> {
    const call = `${callOf(judged)},"arguments":${args?.toString() ?? '{}'}`
    const about = `${callerOf(judged)},"call":{${call}}${result === undefined ? '' : `,"result":${result.toString()}`}`
    const key = digestOf(about, judged.caller)
    const cached = this.#cached.get(key)
    if (cached !== undefined && cached.untilMs > performance.now()) return cached.answer
    try {
      const { answer, ttlMs } = this.#read(await this.#poster.post(question(about, judged.caller)))
      if (ttlMs > 0) setBounded(this.#cached, key, { answer, untilMs: performance.now() + ttlMs }, MAX_CACHED)
      return answer
    } catch (error) {
      return { verdict: this.#failed(error) }
    }
  }

  /** The names that the service shows to this caller, of the entries of one list; `undefined`: it does not decide. */
  async visible(entries: readonly Judged[]): Promise<ReadonlySet<string> | undefined> {
    const [first] = entries
    if (first === undefined) return undefined
    const list = entries.map((entry) => `{${callOf(entry)}}`).join(',')
    const about = `${callerOf(first)},"list":[${list}]`
    const key = digestOf(about, first.caller)
    const cached = this.#visible.get(key)
    if (cached !== undefined && cached.untilMs > performance.now()) return cached.names
    try {
      const result = resultOf(await this.#poster.post(question(about, first.caller)))
      const given = typeof result === 'object' ? result['visible'] : undefined
      if (given !== undefined && !Array.isArray(given)) throw new InvalidAnswer('"visible" is not a list of names')
      const names = given && new Set(given.filter((name) => typeof name === 'string'))
      const ttlMs = typeof result === 'object' ? ttlOf(result) : 0
      if (ttlMs > 0) setBounded(this.#visible, key, { names, untilMs: performance.now() + ttlMs }, MAX_CACHED)
      return names
    } catch (error) {
      return this.#failed(error).decision === 'allow' ? undefined : new Set()
    }
  }

  #failed(error: unknown): Verdict {
    const message = asError(error).message
    this.#watch.failed(message)
    const decision = this.options.onFailure
    return { decision, rule: `${RULE}.on_failure`, reason: 'the policy service does not answer', detail: message }
  }

  #read(text: string): { readonly answer: ServiceAnswer; readonly ttlMs: number } {
    const result = resultOf(text)
    if (result === undefined) return { answer: { verdict: undefined }, ttlMs: 0 }
    if (typeof result === 'boolean') return { answer: { verdict: verdictOf(result ? 'allow' : 'deny', {}) }, ttlMs: 0 }
    const { decision = result['allow'] } = result
    const decided = decision === true ? 'allow' : decision === false ? 'deny' : decision
    if (decided === undefined) return { answer: { verdict: undefined }, ttlMs: 0 }
    if (!isDecision(decided)) throw new InvalidAnswer('"decision" is not allow, deny or confirm')
    const replaced = this.#replaced(text, result)
    const isReplaced = replaced.arguments !== undefined || replaced.content !== undefined
    const answer = { verdict: verdictOf(decided, result), ...replaced }
    return { answer, ttlMs: isReplaced ? 0 : ttlOf(result) }
  }

  /** The replacements, as bytes of the answer. */
  #replaced(text: string, result: Readonly<Record<string, unknown>>): Pick<ServiceAnswer, 'arguments' | 'content'> {
    const { arguments: args, content } = result
    if (args === undefined && content === undefined) return {}
    const given = Payload.at(Buffer.from(text)).object('result')
    const { replaces } = this.options
    if (args !== undefined && (!replaces.includes('arguments') || !isJsonObject(args)))
      throw new InvalidAnswer('"arguments" are replaced by an object, where policy.service.replaces holds arguments')
    if (content !== undefined && (!replaces.includes('results') || !Array.isArray(content)))
      throw new InvalidAnswer('"content" is replaced by a list, where policy.service.replaces holds results')
    return { arguments: given?.raw('arguments'), content: given?.raw('content') }
  }
}

const resultOf = (text: string): Readonly<Record<string, unknown>> | boolean | undefined => {
  const answer = parseJson(text)
  if (answer === undefined) throw new InvalidAnswer('the policy service answered with something else than JSON')
  const result = isJsonObject(answer) ? answer['result'] : null
  if (result === undefined || typeof result === 'boolean') return result
  if (isJsonObject(result)) return result
  throw new InvalidAnswer('the policy service answered without "result"')
}

const isDecision = (value: unknown): value is Decision => DECISIONS.has(value)

const verdictOf = (decision: Decision, { reason, rule }: Readonly<Record<string, unknown>>): Verdict => {
  const text = typeof reason === 'string' ? cleanMessage(reason).slice(0, MAX_REASON_CHARS) : DEFAULT_REASONS[decision]
  const named = typeof rule === 'string' ? `${RULE} (${cleanMessage(rule).slice(0, MAX_REASON_CHARS)})` : RULE
  return { decision, rule: named, reason: text }
}

const DEFAULT_REASONS: Readonly<Record<Decision, string | undefined>> = {
  allow: undefined,
  deny: 'the policy service denies it',
  confirm: 'The policy service asks.',
}

const ttlOf = ({ ttl_seconds: ttl }: Readonly<Record<string, unknown>>): number =>
  typeof ttl === 'number' && ttl > 0 ? Math.min(ttl, MAX_TTL_S) * 1_000 : 0

const callerOf = ({ caller: { principal, facts }, toolset = '' }: Judged): string =>
  `"caller":${JSON.stringify({ principal, toolset, claims: facts?.claims ?? {}, scopes: facts?.scopes ?? [] })}`

/** Members of `call` except `arguments`, without braces. */
const callOf = ({ method, server, name, original, annotations }: Judged): string =>
  JSON.stringify({
    method,
    server,
    ...(typeof name === 'string' && { name }),
    ...(typeof original === 'string' && { original }),
    annotations: annotations(),
  }).slice(1, -1)

const requestOf = ({ revision, facts }: Caller): object => ({
  revision,
  host: facts?.host ?? '',
  address: facts?.address ?? '',
})

const question = (about: string, caller: Caller): string =>
  `{"input":{${about},"request":${JSON.stringify({ ...requestOf(caller), time: new Date().toISOString() })}}}`

const digestOf = (about: string, caller: Caller): string =>
  createHash('sha256')
    .update(about)
    .update(JSON.stringify(requestOf(caller)))
    .digest('base64url')
