/**
 * Answers requests from a recording. Lenient: with the recorded answer for the same arguments (in turn if there are several), else with the
 * latest answer of the same tool. Strict: exactly the recorded calls, in their order.
 */
import { isDeepStrictEqual } from 'node:util'
import { META } from '../../wire/protocol/meta.ts'
import { LATEST_LEGACY, LEGACY_REVISIONS, MODERN } from '../../wire/protocol/revisions.ts'
import { attempt } from '../../values/attempt.ts'
import { jsonObject, memberOf, parseJson } from '../../values/json-object.ts'
import { memberIn, readJson, writeJson } from '../../values/json-tree.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { Recorded, RecordedCall } from './recorded-file.ts'
import { ownValue } from '../../values/own-value.ts'

/** As JSON text. */
type Answer = { readonly result: string } | { readonly error: string }

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
    // Numbers keep their spelling, also that of the id.
    const ownId = attempt(() => Payload.at(Buffer.from(line)).raw('id')?.toString()) ?? JSON.stringify(id)
    const [member] = Object.entries(isModern ? forModern(answer) : answer).map(([name, json]) => `"${name}":${json}`)
    return `{"jsonrpc":"2.0","id":${ownId},${member}}`
  }

  #answer(method: string, params: Readonly<Record<string, unknown>>): Answer {
    if (method === 'initialize') {
      const revision = LEGACY_REVISIONS.find((known) => known === params['protocolVersion']) ?? LATEST_LEGACY
      return resultOf({ protocolVersion: revision, capabilities: CAPABILITIES, serverInfo: SERVER_INFO })
    }
    if (method === 'server/discover')
      return resultOf({ supportedVersions: [MODERN], capabilities: CAPABILITIES, ttlMs: 0, cacheScope: 'private' })
    if (method === 'ping' || method === 'logging/setLevel') return resultOf({})
    if (method === 'tools/list') return resultOf({ tools: this.#recorded.tools })
    const list = ownValue(LISTS, method)
    if (list !== undefined) return this.#last(method) ?? resultOf({ [list]: [] })
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

const resultOf = (result: object): Answer => ({ result: JSON.stringify(result) })

const refused = (message: string): Answer => ({ error: JSON.stringify({ code: -32602, message }) })

const answerOf = ({ result, error }: RecordedCall): Answer => (error === undefined ? { result: result ?? '{}' } : { error })

const ADDED = [
  ['resultType', { kind: 'literal', raw: '"complete"' }],
  ['ttlMs', { kind: 'literal', raw: '0' }],
  ['cacheScope', { kind: 'literal', raw: '"private"' }],
] as const

/** Adds the members of 2026-07-28 results: `resultType` and caching. */
const forModern = (answer: Answer): Answer => {
  const result = 'result' in answer ? readJson(answer.result) : undefined
  if (result?.kind !== 'object') return answer
  const missing = ADDED.filter(([name]) => memberIn(result, name) === undefined)
  return { result: writeJson({ kind: 'object', members: [...missing, ...result.members] }) }
}
