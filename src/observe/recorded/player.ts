/**
 * Answers requests out of a recording. Lenient: the answer recorded for the same arguments, the next one where there are several, else
 * the latest one of the same tool. Strict: exactly the recorded calls, in their order.
 */
import { isDeepStrictEqual } from 'node:util'
import { LATEST_LEGACY, LEGACY_REVISIONS, MODERN } from '../../wire/protocol/revisions.ts'
import { jsonObject, memberOf } from '../../values/json-object.ts'
import type { Recorded, RecordedCall } from './recorded-file.ts'

type Answer = { readonly result: unknown } | { readonly error: unknown }

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'
const SERVER_INFO = { name: 'trunkline-mock', version: '1' }
const CAPABILITIES = { tools: {}, prompts: {}, resources: {} }

export class Player {
  readonly #recorded: Recorded
  readonly #isStrict: boolean
  /** Strict: calls before it were made. */
  #next = 0
  /** Lenient: how often each call was answered. */
  readonly #used = new Map<RecordedCall, number>()

  constructor(recorded: Recorded, isStrict: boolean) {
    this.#recorded = recorded
    this.#isStrict = isStrict
  }

  /** Recorded calls that were not made, as far as order matters. */
  get left(): number {
    return this.#recorded.calls.filter(({ method }) => !isList(method)).length - this.#next
  }

  /** The answer to one line; `undefined`: it takes none. */
  answer(line: string): string | undefined {
    let request: unknown
    try {
      request = JSON.parse(line)
    } catch {
      return JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'the message is no JSON' } })
    }
    const { id, method, params } = jsonObject(request) ?? {}
    if (typeof method !== 'string' || id === undefined) return undefined
    const { _meta: meta, ...rest } = jsonObject(params) ?? {}
    const isModern = memberOf(meta, VERSION_KEY) !== undefined
    const answer = this.#answer(method, rest)
    return JSON.stringify({ jsonrpc: '2.0', id, ...(isModern ? forModern(answer) : answer) })
  }

  #answer(method: string, params: Readonly<Record<string, unknown>>): Answer {
    if (method === 'initialize') {
      const asked = LEGACY_REVISIONS.find((revision) => revision === params['protocolVersion']) ?? LATEST_LEGACY
      return { result: { protocolVersion: asked, capabilities: CAPABILITIES, serverInfo: SERVER_INFO } }
    }
    if (method === 'server/discover')
      return { result: { supportedVersions: [MODERN], capabilities: CAPABILITIES, ttlMs: 0, cacheScope: 'private' } }
    if (method === 'ping' || method === 'logging/setLevel') return { result: {} }
    if (method === 'tools/list') return { result: { tools: this.#recorded.tools } }
    if (isList(method)) return this.#last(method) ?? { result: { [listed(method)]: [] } }
    return this.#isStrict ? this.#expected(method, params) : this.#similar(method, params)
  }

  #expected(method: string, params: Readonly<Record<string, unknown>>): Answer {
    const call = this.#recorded.calls.filter((one) => !isList(one.method))[this.#next]
    if (call === undefined) return refused(`the recording has ended: ${method} was not recorded`)
    if (call.method !== method || !isDeepStrictEqual(call.params, params))
      return refused(`call ${this.#next + 1} of the recording is ${call.method} ${JSON.stringify(call.params)}`)
    this.#next++
    return answerOf(call)
  }

  #similar(method: string, params: Readonly<Record<string, unknown>>): Answer {
    const same = this.#recorded.calls.filter((call) => call.method === method && isDeepStrictEqual(call.params, params))
    // Each answer of several once, then the latest again.
    const found = same.find((call) => !this.#used.has(call)) ?? same.at(-1)
    const named = (call: RecordedCall): unknown => call.params['name'] ?? call.params['uri']
    const wanted = params['name'] ?? params['uri']
    const call = found ?? this.#recorded.calls.findLast((one) => one.method === method && named(one) === wanted)
    if (call === undefined) return refused(`${method} of ${JSON.stringify(wanted)} was not recorded`)
    this.#used.set(call, (this.#used.get(call) ?? 0) + 1)
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

const isList = (method: string): boolean => Object.hasOwn(LISTS, method)
const listed = (method: string): string => LISTS[method] ?? ''

const refused = (message: string): Answer => ({ error: { code: -32602, message } })

const answerOf = ({ result, error }: RecordedCall): Answer => (error === undefined ? { result } : { error })

/** Results of 2026-07-28 say that they are complete, and how long lists hold. */
const forModern = (answer: Answer): Answer => {
  if (!('result' in answer) || typeof answer.result !== 'object') return answer
  return { result: { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...answer.result } }
}
