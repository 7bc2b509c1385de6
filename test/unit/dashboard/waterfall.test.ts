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
    expect(lanes[1]?.detail).toBe('call, http, 2025-11-25, request 41')
    expect(lanes[2]?.bars).toEqual([{ phase: 'wait', label: 'until the first byte', from: 60, to: 100, isOpen: true }])
  })

  test('a pipe is called stdio, and a lane has the name of its server', () => {
    const [hop] = CALL.hops as [CallDetail['hops'][0]]
    const lane = (facts: Partial<typeof hop>): unknown => layoutWaterfall(call({ hops: [{ ...hop, ...facts }] })).lanes[1]
    expect(lane({ transport: 'pipe', server: 'files' })).toMatchObject({
      label: 'files',
      detail: 'call, stdio, 2025-11-25, request 41',
    })
    expect(lane({ server: null })).toMatchObject({ label: 'gh' })
  })

  test('what took no time has no bar', () => {
    const { lanes } = layoutWaterfall(call({ times: { ...CALL.times, started: 0, slotted: 0, done: 99, answered: 99 } }))
    expect(lanes[0]?.bars.map(({ phase }) => phase)).toEqual(['connect'])
  })

  test.each([
    [7, [0, 2, 4, 6]],
    [40, [0, 10, 20, 30, 40]],
    [0.4, [0, 0.1, 0.2, 0.3, 0.4]],
    [60_000, [0, 20_000, 40_000, 60_000]],
  ])('an axis of %d ms is divided at round figures', (total, ticks) => {
    const [hop] = CALL.hops as [CallDetail['hops'][0]]
    const times = { ...CALL.times, done: null, answered: null, written: null }
    const ms = { ...CALL.ms, total }
    expect(layoutWaterfall(call({ ms, times, hops: [{ ...hop, done: null }] })).ticks).toEqual(ticks)
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

  const [HOP] = CALL.hops as [CallDetail['hops'][0]]
  const IN_TRUNKLINE = { total: 2_000, host: 0, gateway: 1_990, downstream: 10 }
  const AT_HOST = { total: 2_000, host: 1_900, gateway: 1, downstream: 99 }
  const inTrunkline = (times: Partial<CallDetail['times']>): string | undefined =>
    said({ ms: IN_TRUNKLINE, times: { ...CALL.times, ...times } })[0]

  test('a call of more than a second is a notice, and one whose time is not known has no sentence', () => {
    const toneOf = (total: number): unknown =>
      explainCall(call({ ms: { total, host: 0, gateway: 0, downstream: total } }))[0]?.tone
    expect([toneOf(100), toneOf(1_000), toneOf(1_001)]).toEqual(['plain', 'plain', 'notice'])
    expect(said({ ms: { total: 0, host: 0, gateway: 0, downstream: 0 } })).toEqual([])
  })

  test('the time at a server is told apart at its first byte, if there was one request and it has ended', () => {
    const atServer = (hops: CallDetail['hops']): string => said({ hops })[0]?.replace(/^.* at server gh/, '') ?? ''
    expect(atServer([{ ...HOP, sent: 20, firstByte: 60, done: 100 }])).toBe(', most of it before its first byte.')
    expect(atServer([{ ...HOP, sent: 20, firstByte: 59, done: 100 }])).toBe(', most of it while its answer was received.')
    expect(atServer([])).toBe('.')
    expect(atServer([{ ...HOP, firstByte: null }])).toBe('.')
    expect(atServer([{ ...HOP, done: null }])).toBe('.')
    expect(atServer([HOP, { ...HOP, kind: 'round' }])).toBe('.')
  })

  test('the time in Trunkline is told apart: the queue, or the connection, as far as they came', () => {
    expect(inTrunkline({ started: 100, slotted: 200, sent: 1_900 })).toMatch(/Trunkline, 1\.70 s of it to connect/)
    expect(inTrunkline({ started: 100, slotted: 1_900, sent: null })).toMatch(/Trunkline, 1\.80 s of it in the queue/)
    expect(inTrunkline({ started: 100, slotted: null, sent: null })).toMatch(/Trunkline\.$/)
    expect(inTrunkline({ started: null, slotted: 50, sent: 90 })).toMatch(/Trunkline, 40 ms of it to connect/)
    expect(inTrunkline({ started: 100, slotted: null, sent: 700 })).toMatch(/Trunkline\.$/)
    expect(inTrunkline({ started: 1, slotted: 1.5, sent: 2 })).toMatch(/Trunkline\.$/)
  })

  test('the time at the host is told apart: a request of the server, or the answer', () => {
    const atHost = (facts: Partial<CallDetail>): string | undefined =>
      said({ ms: AT_HOST, ...facts })[0]?.replace(/^.* at the host/, '')
    const asks = [{ method: 'roots/list', from: 50, to: 150 }]
    expect(atHost({ asks, times: { ...CALL.times, answered: 200, written: 1_900 } })).toBe(
      ' cursor 2, which read its answer slowly.',
    )
    expect(atHost({ asks, times: { ...CALL.times, answered: 200, written: 250 } })).toMatch(/roots\/list/)
    expect(atHost({ asks, times: { ...CALL.times, answered: 200, written: null } })).toMatch(/roots\/list/)
    expect(atHost({ asks, times: { ...CALL.times, answered: null, written: 400 } })).toMatch(/roots\/list/)
    // A request that is open has taken no time yet.
    expect(atHost({ asks: [{ method: 'roots/list', from: 50, to: null }], host: null })).toBe(', which read its answer slowly.')
  })

  test('what was sent again is told, with how often', () => {
    const again = (count: number): string | undefined =>
      said({ hops: [HOP, ...Array.from({ length: count }, () => ({ ...HOP, kind: 'retry' as const }))] })[1]
    expect(again(0)).toBeUndefined()
    expect(again(1)).toBe('It was sent once more, because a connection was lost.')
    expect(again(2)).toBe('It was sent 2 times more, because a connection was lost.')
  })

  test.each<[Partial<CallDetail>, string, string]>([
    [{ state: 'open' }, 'plain', 'The call is in progress.'],
    [{ outcome: 'tool_error' }, 'trouble', 'The tool itself reported an error; server gh and the connection worked.'],
    [
      { outcome: 'error', error: { kind: null, code: -32_602, message: 'no such tool' } },
      'trouble',
      'Server gh answered with an error: no such tool',
    ],
    [{ outcome: 'failed', server: null, error: null }, 'trouble', 'Trunkline got no valid answer from the server'],
    [
      { outcome: 'failed', error: { kind: 'timeout', code: null, message: null } },
      'trouble',
      'Trunkline got no valid answer from server gh',
    ],
    [
      { outcome: 'refused', error: { kind: 'denied', code: null, message: 'not allowed' } },
      'trouble',
      'Trunkline refused the call before it reached a server: not allowed',
    ],
    [{ outcome: 'cancelled' }, 'notice', 'The host cancelled the call.'],
    [{ outcome: 'input_required' }, 'plain', 'The server needs input from the user. The host sends it with a later call.'],
    [
      { outcome: 'failed', server: null, error: { kind: 'auth_required', code: null, message: 'sign in' } },
      'trouble',
      'Trunkline got no valid answer from the server: sign in',
    ],
  ])('%j: %s, %s', (facts, tone, text) => {
    expect(explainCall(call(facts))[0]).toMatchObject({ tone, text })
  })

  test('an expired sign-in comes first, with what can be done', () => {
    const [first] = explainCall(call({ outcome: 'failed', error: { kind: 'auth_required', code: null, message: null } }))
    expect(first).toMatchObject({ tone: 'trouble', signInAt: 'gh' })
    const textOf = (name: string | null): string | undefined =>
      said({ name, error: { kind: 'auth_required', code: null, message: null } })[0]
    expect(textOf('gh__x')).toMatch(/ gh__x was not executed\.$/)
    expect(textOf(null)).toMatch(/ The call was not executed\.$/)
  })

  test('every change of an argument is told in one sentence, long values cut', () => {
    const change = (name: string, facts: { change: 'replaced' | 'removed'; from: string; to: string | null }) =>
      ({ path: ['params', 'arguments', name], fromAt: null, toAt: null, rule: 'tools.*.args', why: '', ...facts }) as const
    const request = [
      change('a', { change: 'removed', from: '1', to: null }),
      change('b', { change: 'replaced', from: '1'.repeat(60), to: '2'.repeat(61) }),
      { ...change('c', { change: 'removed', from: '1', to: null }), rule: '4' },
    ]
    expect(said({ diff: { request, response: [] } })[1]).toBe(
      `The configuration changed arguments: a was removed; b changed from ${'1'.repeat(60)} to ${'2'.repeat(60)}….`,
    )
    const [, sentence] = said({ deviations: [{ rule: 'B1', feature: 'content', verdict: 'impossible', reason: 'too new' }] })
    expect(sentence).toBe('Could not be translated (B1): too new')
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
