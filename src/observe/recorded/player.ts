/**
 * Answers requests from a recording. Lenient: with the recorded answer for the same arguments (in turn if there are several), else with the
 * latest answer of the same tool. Strict: exactly the recorded calls, in their order.
 */
import { isDeepStrictEqual } from 'node:util'
import { META } from '../../wire/protocol/meta.ts'
import { LATEST_LEGACY, LEGACY_REVISIONS, MODERN } from '../../wire/protocol/revisions.ts'
import { jsonObject, memberOf, parseJson } from '../../values/json-object.ts'
import type { Recorded, RecordedCall } from './recorded-file.ts'

type Answer = { readonly result: unknown } | { readonly error: unknown }

const SERVER_INFO = { name: 'trunkline-mock', version: '1' }
const CAPABILITIES = { tools: {}, prompts: {}, resources: {} }

export class Player {
  readonly #recorded: Recorded
  /** All calls except lists, which may be requested at any time. */
  readonly #ordered: readonly RecordedCall[]
  readonly #isStrict: boolean
  /** Strict: index of the next expected call. */
  #next = 0
  /** Lenient: calls whose answers were used. */
  readonly #used = new Set<RecordedCall>()

  constructor(recorded: Recorded, isStrict: boolean) {
    this.#recorded = recorded
    this.#ordered = recorded.calls.filter(({ method }) => !Object.hasOwn(LISTS, method))
    this.#isStrict = isStrict
  }

  /** Number of recorded calls that were not requested; lists do not count. */
  get left(): number {
    return this.#ordered.length - this.#next
  }

  /** Returns the answer to one line; `undefined`: the line needs none. */
  answer(line: string): string | undefined {
    const request = parseJson(line)
    if (request === undefined)
      return JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'the message is no JSON' } })
    const { id, method, params } = jsonObject(request) ?? {}
    if (typeof method !== 'string' || id === undefined) return undefined
    const { _meta: meta, ...rest } = jsonObject(params) ?? {}
    const isModern = memberOf(meta, META.version) !== undefined
    const answer = this.#answer(method, rest)
    return JSON.stringify({ jsonrpc: '2.0', id, ...(isModern ? forModern(answer) : answer) })
  }

  #answer(method: string, params: Readonly<Record<string, unknown>>): Answer {
    if (method === 'initialize') {
      const revision = LEGACY_REVISIONS.find((known) => known === params['protocolVersion']) ?? LATEST_LEGACY
      return { result: { protocolVersion: revision, capabilities: CAPABILITIES, serverInfo: SERVER_INFO } }
    }
    if (method === 'server/discover')
      return { result: { supportedVersions: [MODERN], capabilities: CAPABILITIES, ttlMs: 0, cacheScope: 'private' } }
    if (method === 'ping' || method === 'logging/setLevel') return { result: {} }
    if (method === 'tools/list') return { result: { tools: this.#recorded.tools } }
    const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined
    if (list !== undefined) return this.#last(method) ?? { result: { [list]: [] } }
    return this.#isStrict ? this.#expected(method, params) : this.#similar(method, params)
  }

  #expected(method: string, params: Readonly<Record<string, unknown>>): Answer {
    const call = this.#ordered[this.#next]
    if (call === undefined) return refused(`the recording has ended: ${method} was not recorded`)
    if (call.method !== method || !isDeepStrictEqual(call.params, params))
      return refused(`call ${this.#next + 1} of the recording is ${call.method} ${JSON.stringify(call.params)}`)
    this.#next++
    return answerOf(call)
  }

  #similar(method: string, params: Readonly<Record<string, unknown>>): Answer {
    const same = this.#recorded.calls.filter((call) => call.method === method && isDeepStrictEqual(call.params, params))
    // Several answers are used once each, then the latest again.
    const found = same.find((call) => !this.#used.has(call)) ?? same.at(-1)
    const named = (call: RecordedCall): unknown => call.params['name'] ?? call.params['uri']
    const wanted = params['name'] ?? params['uri']
    const call = found ?? this.#recorded.calls.findLast((one) => one.method === method && named(one) === wanted)
    if (call === undefined) return refused(`${method} of ${JSON.stringify(wanted)} was not recorded`)
    this.#used.add(call)
    return answerOf(call)
  }

  #last(method: string): Answer | undefined {
    const call = this.#recorded.calls.findLast((one) => one.method === method)
    return call && answerOf(call)
  }
}

const LISTS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
}

const refused = (message: string): Answer => ({ error: { code: -32602, message } })

const answerOf = ({ result, error }: RecordedCall): Answer => (error === undefined ? { result } : { error })

/** Adds the members of 2026-07-28 results: `resultType` and caching. */
const forModern = (answer: Answer): Answer => {
  if (!('result' in answer) || typeof answer.result !== 'object') return answer
  return { result: { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...answer.result } }
}
