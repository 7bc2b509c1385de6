/** What a host is told of a failure: text, code, facts and HTTP status (BRIDGING 7.1 to 7.3). */
import { describe, expect, test, vi } from 'vitest'
import { errorReply } from '../../../src/host/response/respond.ts'
import type { Failed } from '../../../src/host/response/respond.ts'
import { Refusal, ServerError } from '../../../src/rpc/call.ts'
import type { ServerErrorFacts } from '../../../src/rpc/call.ts'
import { ScanError } from '../../../src/wire/json/scan-error.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import type { FailureFacts, FailureKind } from '../../../src/wire/message/failure.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'

const GATEWAY = 'dev.trunkline/gateway'
const server = { key: 'a', displayName: 'Alpha' }

interface Answer {
  readonly id: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Readonly<Record<string, unknown>> }
  readonly result?: Readonly<Record<string, unknown>>
}

/** The reply to a failed request: of a modern host for `resources/read` where `failed` says nothing else. */
const replyTo = (error: unknown, failed: Partial<Failed> = {}, hideJson = (json: string) => json) => {
  const hit = vi.fn<(option: string, server?: string) => void>()
  const report = vi.fn<(error: unknown, facts: object, message: string) => void>()
  const context = { limits: { hit }, unexpected: { report }, hideJson, command: (...words: readonly string[]) => words.join(' ') }
  const { status, message, scopes } = errorReply(
    error,
    { id: '7', era: 'modern', method: 'resources/read', ref: 3, ...failed },
    context,
  )
  return { status, scopes, hit, report, answer: JSON.parse(join(message).toString()) as Answer }
}
const textOf = (kind: FailureKind, facts: FailureFacts = {}, message = 'in detail'): string | undefined =>
  replyTo(new Failure(kind, message, facts)).answer.error?.message

describe('the text of a failure', () => {
  test.each<[FailureKind, FailureFacts, string]>([
    ['starting', {}, 'the server is still starting; try again in a moment'],
    ['starting', { server }, 'Alpha is still starting; try again in a moment'],
    ['exited', { server }, 'Alpha stopped while working; the action may or may not have happened'],
    ['exited', { server, executed: 'no' }, 'Alpha is not running; it is being restarted'],
    ['shutting_down', {}, 'the gateway is shutting down'],
    ['shutting_down', { server, executed: 'no' }, 'Alpha is being stopped; try again in a moment'],
    ['shutting_down', { server }, 'Alpha was stopped; the action may or may not have happened'],
    ['timeout', { server, amount: 9 }, 'Alpha did not answer within 9 s; the action may still complete'],
    ['timeout', { server }, 'Alpha did not answer within ? s; the action may still complete'],
    ['timeout', { server, amount: 9, limit: 'a.b' }, 'Alpha did not answer within 9 s; the action may still complete (a.b)'],
    ['too_large', { server, amount: 4, limit: 'limits.max_message' }, 'the answer of Alpha exceeds 4 MiB (limits.max_message)'],
    ['too_large', { server, status: 413 }, 'the request is too large for Alpha'],
    ['too_large', { server, status: 400 }, 'the request is too large for Alpha'],
    ['too_large', { server, status: 200, amount: 4 }, 'the answer of Alpha exceeds 4 MiB (limits.max_message)'],
    ['bad_response', { server }, 'Alpha sent an unreadable answer'],
    ['bad_response', { server, status: 299 }, 'Alpha sent an unreadable answer'],
    ['bad_response', { server, status: 300 }, 'Alpha refused the request'],
    ['rate_limited', { server }, 'Alpha is rate limiting; retry later'],
    ['rate_limited', { server, retryAfterMs: 1_001 }, 'Alpha is rate limiting; retry after 2 s'],
    ['rate_limited', { limit: 'limits.rate' }, 'in detail (limits.rate)'],
    ['rate_limited', { limit: 'limits.rate', retryAfterMs: 2_000 }, 'in detail; retry after 2 s (limits.rate)'],
    ['store_unavailable', {}, 'the shared store is not available'],
    ['store_unavailable', { limit: 'store' }, 'in detail (store)'],
    ['downstream_error', { server }, 'Alpha failed'],
    ['downstream_error', { server, status: 503 }, 'Alpha failed (HTTP 503)'],
    ['overloaded', { server }, 'gateway is busy: in detail'],
    ['auth_required', { told: 'sign in at https://a.test/' }, 'sign in at https://a.test/'],
    ['unreachable', { server, injected: 'rule' }, 'Alpha is not reachable (injected on purpose: rule)'],
  ])('%s with %j', (kind, facts, text) => {
    expect(textOf(kind, facts)).toBe(text)
  })

  test.each<[FailureKind, FailureFacts, string]>([
    [
      'exited',
      { server, state: 'down', retryAfterMs: 1_001 },
      'Alpha is not running; the next attempt is in 2 s (operator: ps, restart a)',
    ],
    ['exited', { state: 'down' }, 'the server is not running; the next attempt is in 0 s (operator: ps, restart SERVER)'],
    [
      'spawn_failed',
      { server, state: 'failed' },
      'Alpha could not be started; it is not tried again by itself (operator: ps, restart a)',
    ],
    ['auth_required', { server, state: 'failed', signIn: true }, 'sign-in to Alpha is needed'],
  ])('of a server that is not up names what happens next: %s with %j', (kind, facts, text) => {
    expect(textOf(kind, facts)).toBe(text)
  })

  test('names the option of a limit once, and the limit is counted', () => {
    const { answer, hit } = replyTo(new Failure('overloaded', 'limits.queue is full', { server, limit: 'limits.queue' }))
    expect([answer.error?.message, hit.mock.calls]).toEqual(['gateway is busy: limits.queue is full', [['limits.queue', 'a']]])
    expect(replyTo(new Failure('overloaded', 'full', { server })).hit).not.toHaveBeenCalled()
  })
})

describe('the form of a failure', () => {
  const failure = new Failure('rate_limited', 'HTTP 429', {
    server,
    executed: 'no',
    retryable: true,
    retryAfterMs: 2_000,
    injected: 'x',
  })
  const text = 'Alpha is rate limiting; retry after 2 s (injected on purpose: x)'
  const data = {
    downstream: 'a',
    kind: 'rate_limited',
    executed: 'no',
    retryable: true,
    retryAfterMs: 2_000,
    injected: 'x',
    ref: '3',
  }

  test('B251 a tool has failed; any other request ends with an error', () => {
    expect(replyTo(failure, { method: 'tools/call' })).toMatchObject({
      status: 200,
      answer: { id: 7, result: { content: [{ type: 'text', text }], isError: true, _meta: { [GATEWAY]: data } } },
    })
    const others = ['resources/read', 'prompts/get', 'completion/complete', 'tools/list', 'tasks/get', 'tasks/result', 'vendor/x']
    for (const method of others)
      expect(replyTo(failure, { method }), method).toMatchObject({
        status: 200,
        answer: { id: 7, error: { code: -32603, message: text, data: { [GATEWAY]: data } } },
      })
  })

  test('has the members of every result where the host expects them', () => {
    const encode: Failed['encode'] = (result) => (result.set('resultType', '"complete"'), result)
    const { answer } = replyTo(failure, { method: 'tools/call', encode, id: undefined })
    expect([answer.id, answer.result?.['resultType'], answer.result?.['isError']]).toEqual([null, 'complete', true])
  })

  test('facts that are not known are said to be so, or left out', () => {
    const { answer } = replyTo(new Failure('lost', 'gone'))
    expect(answer.error?.data).toEqual({ [GATEWAY]: { kind: 'lost', executed: 'unknown', retryable: false, ref: '3' } })
  })

  test.each<FailureKind>(['unknown', 'denied', 'state'])('%s is the fault of the host, for a tool, too', (kind) => {
    const { answer, status } = replyTo(new Failure(kind, 'hidden detail'), { method: 'tools/call' })
    expect([status, answer.error?.code, answer.error?.data]).toEqual([200, -32602, undefined])
    expect(answer.error?.message).not.toContain('detail')
  })

  test('T-14 secrets are hidden in it, but not in a refusal, which is ours', () => {
    const hide = (json: string) => json.replaceAll('Alpha', '***')
    expect(replyTo(new Failure('lost', 'x', { server }), {}, hide).answer.error?.message).toBe(
      'connection to *** was lost; outcome unknown',
    )
    expect(replyTo(new Refusal(-32602, 'Alpha'), {}, hide).answer.error?.message).toBe('Alpha')
  })
})

test.each<[Partial<Failed>, ConstructorParameters<typeof Refusal>[2], number]>([
  [{ era: 'modern' }, { status: 400 }, 400],
  [{ era: 'modern' }, {}, 200],
  [{ era: 'legacy' }, { status: 400 }, 200],
  [{ era: 'legacy' }, { status: 403, scopes: ['a'] }, 403],
])('a refusal to %j with %j has HTTP %i', (failed, options, status) => {
  const reply = replyTo(new Refusal(-32020, 'headers', { ...options, data: { a: 1 } }), failed)
  expect(reply).toMatchObject({ status, answer: { id: 7, error: { code: -32020, message: 'headers', data: { a: 1 } } } })
  expect(reply.scopes).toEqual(options?.scopes)
})

test('an unexpected error is reported, and told as nothing but that', () => {
  const error = new TypeError('secret')
  const { answer, report, status } = replyTo(error, { method: 'tools/call' })
  const facts = { kind: 'protocol', executed: 'unknown', retryable: false, ref: '3' }
  expect([status, answer.error]).toEqual([200, { code: -32603, message: 'internal error', data: { [GATEWAY]: facts } }])
  expect(report.mock.calls).toEqual([[error, { ref: 3, method: 'tools/call' }, expect.any(String)]])
})

test('an unreadable value of a server is its failure', () => {
  const { answer, report } = replyTo(new ScanError('limit', 'too deep', 0))
  expect([answer.error?.message, report.mock.calls]).toEqual(['the server sent an unreadable answer', []])
})

describe('an error of a server', () => {
  const errorOf = (code: number, facts: ServerErrorFacts = {}, data?: object): ServerError =>
    new ServerError(code, 'no', Payload.of({ code, message: 'no', ...(data !== undefined && { data }) }), facts)
  const NOT_RELAYED = -32603

  test.each([
    [-32700, NOT_RELAYED, NOT_RELAYED],
    [-32600, NOT_RELAYED, NOT_RELAYED],
    [-32601, NOT_RELAYED, NOT_RELAYED],
    [-32602, -32602, -32602],
    [-32603, -32603, -32603],
    [-31999, -31999, -31999],
    [-32000, -32000, NOT_RELAYED],
    [-32001, -32001, NOT_RELAYED],
    [-32002, -32002, -32602],
    [-32019, -32019, NOT_RELAYED],
    [-32020, NOT_RELAYED, NOT_RELAYED],
    [-32022, NOT_RELAYED, NOT_RELAYED],
    [-32023, NOT_RELAYED, NOT_RELAYED],
    [-32042, -32042, NOT_RELAYED],
    [-32099, NOT_RELAYED, NOT_RELAYED],
    [-32100, -32100, -32100],
    [5, 5, 5],
  ])('B272 with code %i reaches a legacy host as %i and a modern one as %i', (code, legacy, modern) => {
    for (const [era, expected] of [
      ['legacy', legacy],
      ['modern', modern],
    ] as const) {
      const { answer, status } = replyTo(errorOf(code, { server: 'a' }, { b: 1 }), { era })
      expect([status, answer.error?.code, answer.error?.message]).toEqual([200, expected, 'no'])
      const original = { code, message: 'no', data: { b: 1 } }
      const facts = { downstream: 'a', kind: 'protocol', executed: 'unknown', retryable: false, ref: '3' }
      if (expected === code) expect(answer.error?.data).toEqual({ b: 1 })
      else if (expected === NOT_RELAYED) expect(answer.error?.data).toEqual({ [GATEWAY]: facts, original })
      else expect(answer.error?.data).toEqual({ b: 1, original })
    }
  })

  test.each(['tools/call', 'prompts/get', 'completion/complete'])(
    'B007 with code -32002 in answer to %s reaches a modern host as -32602',
    (method) => {
      const { answer } = replyTo(errorOf(-32002, {}, { b: 1 }), { method })
      expect(answer.error).toMatchObject({ code: -32602, data: { b: 1, original: { code: -32002 } } })
    },
  )

  test.each([-32000, -32002])('B272 with code %i is kept as the server sent it, not with the URI that is exposed', (code) => {
    const error = errorOf(code, {}, { uri: 'x://1' })
    error.error.setIn('data', 'uri', '"a+x://1"')
    expect(replyTo(error).answer.error?.data?.['original']).toEqual({ code, message: 'no', data: { uri: 'x://1' } })
  })

  test.each([
    ['legacy', 'resources/read', { uri: 'a' }, -32002],
    ['legacy', 'resources/read', { other: 'a' }, -32602],
    ['legacy', 'resources/read', undefined, -32602],
    ['legacy', 'prompts/get', { uri: 'a' }, -32602],
    ['modern', 'resources/read', { uri: 'a' }, -32602],
  ] as const)('B103 a resource that is missing: to a %s host for %s with %j', (era, method, data, code) => {
    expect(replyTo(errorOf(-32602, {}, data), { era, method }).answer.error?.code).toBe(code)
  })

  test('without a message and of no known server is told all the same', () => {
    const { answer } = replyTo(new ServerError(-32700, '', Payload.of({ code: -32700 })))
    expect(answer.error).toMatchObject({ code: -32603, message: '', data: { original: { code: -32700 } } })
    expect(answer.error?.data?.[GATEWAY]).not.toHaveProperty('downstream')
  })

  const required = { requiredCapabilities: { sampling: {}, roots: {} } }
  test('B196 that needs a capability tells a modern host which, with HTTP 400, or is not relayed', () => {
    expect(replyTo(errorOf(-32021, {}, required))).toMatchObject({
      status: 400,
      answer: { error: { code: -32021, data: required } },
    })
    expect(replyTo(errorOf(-32021))).toMatchObject({ status: 200, answer: { error: { code: NOT_RELAYED, message: 'no' } } })
  })

  test.each([
    [required, 'this action needs a client with sampling, roots'],
    [undefined, 'this action needs a client with more capabilities'],
  ])('that needs a capability is a text to a legacy host: %j', (data, text) => {
    const error = () => errorOf(-32021, { server: 'a' }, data)
    expect(replyTo(error(), { era: 'legacy' }).answer.error).toMatchObject({ code: NOT_RELAYED, message: text })
    expect(replyTo(error(), { era: 'legacy', method: 'tools/call' }).answer.result).toMatchObject({
      content: [{ type: 'text', text }],
      isError: true,
      _meta: { [GATEWAY]: { downstream: 'a', kind: 'protocol' }, original: { code: -32021 } },
    })
  })

  test.each<[code: number, facts: ServerErrorFacts, era: Failed['era'], status: number, kept: boolean]>([
    [-32601, { era: 'modern', status: 404 }, 'modern', 404, true],
    [-32601, { era: 'modern', status: 200 }, 'modern', 200, true],
    [-32601, { era: 'modern' }, 'modern', 404, true],
    [-32020, { era: 'modern', status: 500 }, 'modern', 400, true],
    [-32022, { era: 'modern' }, 'modern', 400, true],
    [-32021, { era: 'modern' }, 'modern', 400, true],
    [-32000, { era: 'modern', status: 503 }, 'modern', 200, true],
    [-32000, { era: 'modern', status: 400 }, 'modern', 400, true],
    [-32601, { era: 'legacy', status: 404 }, 'legacy', 200, true],
    [-32601, { era: 'legacy', status: 404 }, 'modern', 404, true],
    [-32601, { era: 'legacy', status: 200 }, 'modern', 200, false],
    [-32600, { era: 'legacy', status: 404 }, 'modern', 200, false],
  ])('B277 at a bridge: code %i of %j to a %s host has HTTP %i, and is kept: %s', (code, facts, era, status, kept) => {
    const reply = replyTo(errorOf(code, facts), { era, isBridge: true })
    expect([reply.status, reply.answer.error?.code]).toEqual([status, kept ? code : NOT_RELAYED])
    // Elsewhere nothing of it is passed on unchanged.
    if (code === -32601) expect(replyTo(errorOf(code, facts), { era }).answer.error?.code).toBe(NOT_RELAYED)
  })

  test('F-31 whose data cannot be read is an unreadable answer', () => {
    const data = String.raw`{"requiredCapabilities":{"${'x'.repeat(60)}\q":{}}}`
    const error = Payload.at(Buffer.from(`{"code":-32021,"message":"no","data":${data}}`))
    const { answer, report } = replyTo(new ServerError(-32021, 'no', error), { era: 'legacy' })
    expect([answer.error?.message, report.mock.calls.length]).toEqual(['the server sent an unreadable answer', 0])
  })
})
