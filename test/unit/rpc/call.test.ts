/** What is said of calls in one place for all: their ends, errors of servers and of the gateway, and what is recorded. */
import { expect, test } from 'vitest'
import {
  complete,
  endpointKey,
  endpointServer,
  isBridge,
  isEndOf,
  isSameEndpoint,
  Refusal,
  ServerError,
  toolText,
} from '../../../src/rpc/call.ts'
import type { Outcome } from '../../../src/rpc/call.ts'
import { noteDenial, notePolicy, noteRoute } from '../../../src/rpc/record.ts'
import type { CallRecord } from '../../../src/rpc/record.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'

const DONE = complete(Payload.of({ content: [] }))
const ASKS: Outcome = { kind: 'input_required', result: Payload.of({}), state: undefined }

test.each<[method: string, params: object | undefined, isEnd: boolean, outcome: Outcome]>([
  ['tools/call', { name: 'x' }, true, DONE],
  ['tools/call', { name: 'x', task: {} }, false, DONE],
  ['tools/call', undefined, false, DONE],
  ['tools/call', { name: 'x' }, false, ASKS],
  ['prompts/get', { name: 'x' }, false, DONE],
])('%s with %j ends a call of a tool: %j', (method, params, isEnd, outcome) => {
  expect(isEndOf(method, params && Payload.of(params), outcome)).toBe(isEnd)
})

test('a text for a model is an error where that is said', () => {
  const of = (isError: boolean): unknown => JSON.parse(join(toolText('no', isError).result.parts()).toString())
  const content = [{ type: 'text', text: 'no' }]
  expect([of(true), of(false)]).toEqual([{ content, isError: true }, { content }])
})

test('an error of a server keeps what is known of it, and gets what is found out later', () => {
  const error = new ServerError(-5, 'no', Payload.of({ code: -5 }), { status: 404 })
  expect(error).toMatchObject({ name: 'ServerError', code: -5, message: 'no', status: 404, server: undefined, era: undefined })
  const at = error.at({ server: 'a', era: 'modern' })
  expect(at).toMatchObject({ code: -5, message: 'no', status: 404, server: 'a', era: 'modern' })
  expect(at.error).toBe(error.error)
})

test('a refusal is an answer with status 200 unless another one is said', () => {
  expect(new Refusal(-32_602, 'no')).toMatchObject({ name: 'Refusal', code: -32_602, message: 'no', status: 200 })
  expect(new Refusal(-1, 'no', { data: { a: 1 }, status: 403, scopes: ['s'] })).toMatchObject({
    data: { a: 1 },
    status: 403,
    scopes: ['s'],
  })
})

test('endpoints differ by server and toolset', () => {
  const keys = [{}, { server: 'a' }, { toolset: 'a' }, { server: 'a', toolset: 'a' }].map((scope) =>
    endpointKey({ server: undefined, ...scope }),
  )
  expect(new Set(keys).size).toBe(4)
})

test('a scope is that of one server, of all, or of the only one there is; a session stays at its endpoint', () => {
  const all = { server: undefined }
  const only = { server: 'a', isMerged: true } as const
  const one = { server: 'a' }
  expect([all, only, one].map(isBridge)).toEqual([false, true, true])
  expect([all, only, one].map(endpointServer)).toEqual([undefined, undefined, 'a'])
  expect([isSameEndpoint(all, only), isSameEndpoint(only, one), isSameEndpoint(one, { server: 'b' })]).toEqual([
    true,
    false,
    false,
  ])
  const ofTeam = { ...one, toolset: 'team' }
  expect([isSameEndpoint(one, ofTeam), isSameEndpoint(ofTeam, { ...ofTeam, granted: 'x' })]).toEqual([false, true])
})

test('the record of a call has its route, the decision of the policy and its denial; without a record nothing is kept', () => {
  const record: CallRecord = {}
  noteRoute({ record }, 'a', 'x')
  expect(record).toEqual({ server: 'a', original: 'x', isListed: false })
  noteRoute({ record }, 'a', 'x', true)
  notePolicy({ record }, { decision: 'deny', rule: 'r' })
  noteDenial({ record }, 'policy', 'r')
  expect(record).toEqual({
    server: 'a',
    original: 'x',
    isListed: true,
    policy: { decision: 'deny', rule: 'r' },
    denied: { reason: 'policy', rule: 'r' },
  })
  noteDenial({ record }, 'invalid')
  expect(record.denied).toEqual({ reason: 'invalid' })
  for (const none of [{}, { record: undefined }]) {
    noteRoute(none, 'a', 'x')
    notePolicy(none, { decision: 'deny', rule: 'r' })
    noteDenial(none, 'policy')
    expect(none.record).toBeUndefined()
  }
})
