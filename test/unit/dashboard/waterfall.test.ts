/** Where the time of a call went: as bars, and in sentences. */
import { describe, expect, test } from 'vitest'
import { layoutWaterfall } from '../../../src/dashboard/model/waterfall.ts'
import { explainCall } from '../../../src/dashboard/model/verdict.ts'
import type { CallDetail } from '../../../src/observe/capture/captured.ts'

const CALL: CallDetail = {
  id: 1,
  at: '2026-11-22T20:15:03.123Z',
  state: 'done',
  host: 'cursor 2',
  transport: 'http',
  era: 'modern',
  revision: '2026-07-28',
  principal: 'local',
  session: null,
  toolset: null,
  endpoint: null,
  method: 'tools/call',
  name: 'gh__x',
  server: 'gh',
  original: 'x',
  outcome: 'ok',
  error: null,
  ms: { total: 100, host: 0, gateway: 10, downstream: 90 },
  bytesIn: 1,
  bytesOut: 1,
  tokensOut: 1,
  rules: [],
  lanes: 1,
  replayOf: null,
  traceId: null,
  times: { received: 0, started: 1, slotted: 5, sent: 8, firstByte: 90, done: 98, answered: 99, written: 100 },
  hops: [
    {
      kind: 'call',
      server: 'gh',
      transport: 'http',
      era: 'legacy',
      revision: '2025-11-25',
      requestId: 41,
      sent: 8,
      firstByte: 90,
      done: 98,
      end: 'result',
    },
  ],
  asks: [],
  deviations: [],
  diff: null,
}
const call = (facts: Partial<CallDetail>): CallDetail => ({ ...CALL, ...facts })
const said = (facts: Partial<CallDetail>): string[] => explainCall(call(facts)).map(({ text }) => text)

describe('bars', () => {
  test('the gateway, each request to the server and the host have lanes of their own', () => {
    const { lanes, totalMs, ticks } = layoutWaterfall(CALL)
    expect(totalMs).toBe(100)
    expect(ticks).toEqual([0, 20, 40, 60, 80, 100])
    expect(lanes.map(({ label, bars }) => [label, bars.map(({ phase, from, to }) => [phase, from, to])])).toEqual([
      [
        'Trunkline',
        [
          ['gateway', 0, 1],
          ['queue', 1, 5],
          ['connect', 5, 8],
          ['gateway', 98, 99],
        ],
      ],
      [
        'gh',
        [
          ['wait', 8, 90],
          ['receive', 90, 98],
        ],
      ],
      ['cursor 2', [['host', 99, 100]]],
    ])
  })

  test('a retry is a lane, a question is one, and what has not ended lasts to the end', () => {
    const [hop] = CALL.hops as [CallDetail['hops'][0]]
    const { lanes } = layoutWaterfall(
      call({
        state: 'open',
        times: { ...CALL.times, firstByte: null, done: null, answered: null, written: null },
        hops: [
          { ...hop, end: 'lost' },
          { ...hop, kind: 'retry', sent: 60, firstByte: null, done: null, end: 'open' },
        ],
        asks: [{ method: 'elicitation/create', from: 70, to: null }],
      }),
    )
    expect(lanes.map(({ label, end }) => [label, end])).toEqual([
      ['Trunkline', ''],
      ['gh', 'lost'],
      ['gh', 'open'],
      ['cursor 2', 'open'],
    ])
    expect(lanes[2]?.bars).toEqual([{ phase: 'wait', label: 'until the first byte', from: 60, to: 100, isOpen: true }])
  })

  test('a call that never reached a server has no lane of one', () => {
    const none = {
      received: 0,
      started: null,
      slotted: null,
      sent: null,
      firstByte: null,
      done: null,
      answered: null,
      written: null,
    }
    expect(layoutWaterfall(call({ times: none, hops: [] })).lanes).toMatchObject([{ label: 'Trunkline', bars: [] }])
  })
})

describe('sentences', () => {
  test('name the part in which the time passed', () => {
    expect(said({})).toEqual(['90 ms of 100 ms (90 %) was spent at server gh, most of it before its first byte.'])
    expect(
      said({
        ms: { total: 2_000, host: 0, gateway: 1_990, downstream: 10 },
        times: { ...CALL.times, slotted: 1_900, sent: 1_950 },
      }),
    ).toEqual(['1.99 s of 2.00 s (100 %) was spent in Trunkline, 1.90 s of it in the queue (limits.concurrency, limits.rate).'])
    expect(
      said({
        ms: { total: 2_000, host: 1_900, gateway: 1, downstream: 99 },
        asks: [{ method: 'elicitation/create', from: 50, to: 1_950 }],
      }),
    ).toEqual([
      '1.90 s of 2.00 s (95 %) was spent at the host cursor 2, which answered a request of the server (elicitation/create).',
    ])
  })

  test('an expired sign-in comes first, with what can be done', () => {
    const [first] = explainCall(call({ outcome: 'failed', error: { kind: 'auth_required', code: null, message: null } }))
    expect(first).toMatchObject({ tone: 'trouble', action: { kind: 'sign-in', server: 'gh' } })
  })

  test('a pinned argument and a projection are told', () => {
    const change = {
      path: ['params', 'arguments', 'org'],
      change: 'added',
      from: null,
      to: '"acme"',
      fromAt: null,
      toAt: null,
      rule: 'tools.*.args',
      why: '',
    } as const
    expect(
      said({
        diff: { request: [change], response: [] },
        deviations: [{ rule: 'B107', feature: 'content', verdict: 'projected', reason: 'a link became text' }],
      }).slice(1),
    ).toEqual(['The configuration changed arguments: org = "acme" was added.', 'Translated (B107): a link became text'])
  })
})
