/** A call as it is shown: what its facts become in a row, and how its time is split. */
import { expect, test } from 'vitest'
import { NEVER } from '../../../src/observe/capture/call-facts.ts'
import type { CallFacts } from '../../../src/observe/capture/call-facts.ts'
import { MessageMemory } from '../../../src/observe/capture/message-memory.ts'
import { detailOf, rowOf } from '../../../src/observe/capture/call-view.ts'
import { factsOf, HOP, laneOf } from './call-facts.ts'

const OPTIONS = { nowMs: () => 200, toolsetOf: () => undefined, hide: (text: string) => text }
const row = (more: Partial<CallFacts>) => rowOf(factsOf(more), OPTIONS)

test.each<[clientInfo: unknown, host: string | null]>([
  [undefined, null],
  [{ version: '1' }, null],
  [{ name: 'zed' }, 'zed'],
  [{ name: 'zed', version: '1' }, 'zed 1'],
  [{ name: 'zed', version: 1 }, 'zed'],
  [{ name: 'x'.repeat(200) }, 'x'.repeat(100)],
])('a host that says %j is shown as %j', (clientInfo, host) => {
  expect(row({ clientInfo }).host).toBe(host)
})

test.each<[end: Partial<CallFacts>, error: unknown]>([
  [{}, null],
  [{ end: { outcome: 'ok' } }, null],
  [
    { end: { outcome: 'failed', kind: 'timeout', reason: 'x', detail: 'late' } },
    { kind: 'timeout', code: null, message: 'late' },
  ],
  [{ end: { outcome: 'refused', reason: 'policy', code: 5 } }, { kind: 'policy', code: 5, message: null }],
  [
    { end: { outcome: 'failed' }, needsSignIn: true },
    { kind: 'auth_required', code: null, message: null },
  ],
  [{ end: { outcome: 'failed' } }, { kind: null, code: null, message: null }],
] as never)('of a call that ended as %j the error is %j', (end, error) => {
  expect(row(end).error).toEqual(error)
})

test.each<[what: string, facts: Partial<CallFacts>, ms: object]>([
  ['is under way in the gateway', {}, { total: 100, host: 0, gateway: 100, downstream: 0 }],
  ['is under way at the server', { lanes: [laneOf(130, NEVER)] }, { total: 100, host: 0, gateway: 30, downstream: 70 }],
  ['is answered', { answeredMs: 160, lanes: [laneOf(130, 150)] }, { total: 100, host: 40, gateway: 40, downstream: 20 }],
  [
    'is written',
    { answeredMs: 160, writtenMs: 170, lanes: [laneOf(130, 150)] },
    { total: 70, host: 10, gateway: 40, downstream: 20 },
  ],
  [
    'asks its host within a lane, between two and until now',
    {
      lanes: [laneOf(110, 140), laneOf(160, NEVER)],
      asks: [
        { method: 'a', fromMs: 120, toMs: 130 },
        { method: 'b', fromMs: 140, toMs: 150 },
        { method: 'c', fromMs: 190, toMs: NEVER },
      ],
    },
    { total: 100, host: 30, gateway: 20, downstream: 50 },
  ],
  [
    'asks its host two things at once',
    {
      lanes: [laneOf(110, NEVER)],
      asks: [
        { method: 'a', fromMs: 120, toMs: 180 },
        { method: 'b', fromMs: 125, toMs: 170 },
        { method: 'c', fromMs: 175, toMs: NEVER },
      ],
    },
    { total: 100, host: 80, gateway: 10, downstream: 10 },
  ],
])('the time of a call that %s is split', (_what, more, ms) => {
  expect(row(more).ms).toEqual(ms)
})

test('T-14 the message of an error is shown without secrets, in rows as in details', () => {
  const facts = factsOf({ end: { outcome: 'error', code: 5, detail: 'no key hush' } })
  const options = { ...OPTIONS, hide: (text: string) => text.replaceAll('hush', '***') }
  expect([rowOf(facts, options).error?.message, detailOf(facts, options).error?.message]).toEqual(['no key ***', 'no key ***'])
})

test('T-14 a secret in the URI of a resource, or in a name, is in no row and no details', () => {
  const facts = factsOf({ name: 'db+postgres://me:hush@db/table', original: 'postgres://me:hush@db/table' })
  const options = { ...OPTIONS, hide: (text: string) => text.replaceAll('hush', '***') }
  for (const shown of [rowOf(facts, options), detailOf(facts, options)])
    expect([shown.name, shown.original]).toEqual(['db+postgres://me:***@db/table', 'postgres://me:***@db/table'])
})

test('times count from the receipt of the call, and what did not happen is null', () => {
  expect(detailOf(factsOf(), OPTIONS)).toMatchObject({
    times: { received: 0, started: null, slotted: null, sent: null, firstByte: null, done: null, answered: null, written: null },
    hops: [],
    asks: [],
    diff: null,
  })
  const some = {
    startedMs: 101,
    answeredMs: 104.006,
    lanes: [laneOf(102, 103)],
    asks: [{ method: 'a', fromMs: 102, toMs: NEVER }],
  }
  expect(detailOf(factsOf({ ...some, server: 'a' }), OPTIONS)).toMatchObject({
    times: { started: 1, slotted: null, sent: 2, firstByte: 3, done: 3, answered: 4.01, written: null },
    hops: [{ server: 'a', sent: 2, firstByte: 3, done: 3, requestId: 1, ...HOP }],
    asks: [{ method: 'a', from: 2, to: null }],
  })
})

test('what is known of a call is shown', () => {
  const known = { transport: 'http', server: 'a', original: 'o', replayOf: 3, traceId: 'T', name: 'n' } as const
  expect(row(known)).toMatchObject(known)
})

test('messages are compared where both sides were kept whole', () => {
  const memory = new MessageMemory()
  const message = (text: string) => memory.copy([Buffer.from(text)], 100)
  const diffOf = (more: Partial<CallFacts>) => {
    const { diff } = detailOf(factsOf(more), OPTIONS)
    return diff && [diff.request.length, diff.response.length]
  }
  const [request, response] = [message('{"id":1}'), message('{"id":2}')]
  const sides = { request: message('{"id":3}'), response: message('{"id":4}') }
  const lanes = (more: object) => [{ ...laneOf(1, 2), ...more }]
  expect(diffOf({ request, response, lanes: lanes(sides) })).toEqual([1, 1])
  expect(diffOf({ request, response, lanes: lanes({ request: sides.request }) })).toEqual([1, 0])
  expect(diffOf({ request, response, lanes: lanes({ response: sides.response }) })).toEqual([0, 1])
  expect(diffOf({ response, lanes: lanes(sides) })).toEqual([0, 1])
  expect(diffOf({ request, lanes: lanes(sides) })).toEqual([1, 0])
  expect([
    diffOf({ request, response }),
    diffOf({ lanes: lanes(sides) }),
    diffOf({ request: memory.copy([Buffer.alloc(200)], 100), lanes: lanes(sides) }),
  ]).toEqual([null, null, null])
})

test('rules are told once each, and four bytes count as a token', () => {
  const deviation = (rule: string) => ({ rule }) as CallFacts['deviations'][number]
  expect(row({ deviations: ['B1', 'B2', 'B1'].map(deviation), bytesOut: 9 })).toMatchObject({ rules: ['B1', 'B2'], tokensOut: 3 })
})
