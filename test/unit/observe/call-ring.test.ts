/** What is kept of ended calls: every fact, for as long as there is room, and the memory of their messages after that for others. */
import { describe, expect, test } from 'vitest'
import type { CallFacts } from '../../../src/observe/capture/call-facts.ts'
import { CallRing } from '../../../src/observe/capture/call-ring.ts'
import { ruleFor } from '../../../src/observe/capture/change-rules.ts'
import { diffMessages } from '../../../src/observe/capture/diff.ts'
import { EndsCollector, MARGIN, MessageMemory } from '../../../src/observe/capture/message-memory.ts'
import { collector } from '../../support/garbage-collector.ts'
import { factsOf, laneOf } from './call-facts.ts'

const memory = new MessageMemory()
const message = (text: string) => memory.copy([Buffer.from(text)], 1_000)
const as = (text: string) => text
const ROOMY = { maxBytes: 1e9, maxAgeMs: 1e9 }

const WHOLE = factsOf({
  id: 7,
  method: 'prompts/get',
  principal: 'ann',
  scope: { server: 'one' },
  revision: '2025-06-18',
  sessionId: 'S',
  clientInfo: { name: 'h' },
  transport: 'sse',
  name: 'one__a',
  server: 'one',
  original: 'a',
  traceId: 'T',
  atMs: 1,
  receivedMs: 2,
  startedMs: 3,
  slottedMs: 4,
  answeredMs: 5,
  writtenMs: 6,
  bytesIn: 8,
  bytesOut: 9,
  end: { outcome: 'ok' },
})
const LANE = { ...laneOf(11, 13), firstMs: 12, id: 10 }

const ASK = { method: 'm', fromMs: 1, toMs: 2 }
const CALLS: Readonly<Record<string, CallFacts>> = {
  'plain facts': WHOLE,
  'one lane': { ...WHOLE, lanes: [LANE] },
  'a lane that is lost': { ...WHOLE, lanes: [{ ...LANE, id: 0, end: 'lost' }] },
  'a lane with an error': { ...WHOLE, lanes: [{ ...LANE, end: 'error' }] },
  'an open lane': { ...WHOLE, lanes: [{ ...LANE, end: 'open' }] },
  'two lanes': { ...WHOLE, lanes: [LANE, { ...LANE, kind: 'retry', id: 20 }] },
  'a lane with its request': { ...WHOLE, lanes: [{ ...LANE, request: message('a') }] },
  'a lane with its response': { ...WHOLE, lanes: [{ ...LANE, response: message('b') }] },
  'its request': { ...WHOLE, request: message('c') },
  'its response': { ...WHOLE, response: message('d'), lanes: [LANE] },
  'a question': { ...WHOLE, asks: [{ method: 'm', fromMs: 1, toMs: 2 }] },
  'a deviation': { ...WHOLE, deviations: [{ feature: 'f', rule: 'B1', verdict: 'projected', reason: 'r' }] },
  'a replay': { ...WHOLE, replayOf: 3 },
  'a sign-in': { ...WHOLE, needsSignIn: true },
  nothing: factsOf(),
}

test('every fact of a call is kept, whatever stands beside it', () => {
  const ring = new CallRing(() => ROOMY)
  const places = Object.values(CALLS).map((call, at) => ring.add({ ...call, id: at }, 100 + at))
  for (const [at, [what, call]] of Object.entries(CALLS).entries()) {
    const place = places[at]!
    expect(ring.at(place), what).toEqual({ ...call, id: at })
    expect(ring.find(at), what).toEqual({ ...call, id: at })
    expect([ring.idAt(place), ring.atMs(place), ring.keptMs(place), ring.principalAt(place)], what).toEqual([
      at,
      call.atMs,
      100 + at,
      call.principal,
    ])
    const ofLanes = call.lanes.flatMap((lane) => [lane.request, lane.response])
    const messages = [call.request, call.response, ...ofLanes].filter((one) => one !== undefined)
    expect(ring.messagesAt(place), what).toEqual(messages)
  }
  ring.written(places[0]!, 77)
  expect([ring.at(places[0]!).writtenMs, ring.at(places[1]!).writtenMs]).toEqual([77, 6])
})

test.each<[what: string, call: CallFacts, bytes: number]>([
  ['nothing', factsOf(), 1_024],
  ['a name and a reason', factsOf({ name: 'abc', end: { outcome: 'failed', detail: '12345' } }), 1_024 + 8],
  ['one plain lane', factsOf({ lanes: [LANE] }), 1_024],
  ['two lanes', factsOf({ lanes: [LANE, LANE] }), 1_024 + 2 * 256],
  ['the name of its server', factsOf({ name: 'abc', original: '12345' }), 1_024 + 8],
  ['questions', factsOf({ asks: [ASK, ASK] }), 1_024 + 2 * 128],
  ['messages', factsOf({ request: message('1234'), lanes: [{ ...LANE, response: message('12') }] }), 1_024 + 256 + 2 * 128 + 6],
])('a call with %s counts its bytes', (_what, call, bytes) => {
  const ring = new CallRing(() => ({ ...ROOMY, maxBytes: bytes }))
  ring.add(call, 0)
  expect([ring.bytes, ring.size]).toEqual([bytes, 1])
  ring.add(factsOf(), 0)
  expect(ring.at(ring.first)).toMatchObject({ lanes: [], request: undefined })
  expect(ring.size).toBe(1)
})

test('over several blocks, calls are read where they were written, and removed ones not at all', () => {
  const ring = new CallRing(() => ({ ...ROOMY, maxBytes: 300 * 1_024 }))
  for (let id = 0; id < 1_500; id++) ring.add(factsOf({ id }), id)
  expect([ring.size, ring.first, ring.next, ring.bytes]).toEqual([300, 1_200, 1_500, 300 * 1_024])
  expect([...ring.places()].map((place) => ring.at(place).id)).toEqual(Array.from({ length: 300 }, (_, at) => 1_200 + at))
  expect([ring.find(1_199), ring.find(1_200)?.id]).toEqual([undefined, 1_200])
  ring.written(3, 5)
  expect(ring.at(1_283).writtenMs).toBeNaN()
})

test('what removed calls held is kept no longer, a block of them at a time', async () => {
  const collect = collector()
  const ring = new CallRing(() => ({ ...ROOMY, maxBytes: 300 * 1_024 }))
  const add = (id: number): WeakRef<object> => {
    const scope = { server: undefined, toolset: `t${id}` }
    ring.add(factsOf({ id, scope }), id)
    return new WeakRef(scope)
  }
  const held = Array.from({ length: 1_500 }, (_, id) => add(id))
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  const isKept = held.map((client) => client.deref() !== undefined)
  // The first of those that are still kept is the 1,201st, in the block that begins with the 1,025th.
  expect([isKept.indexOf(true), isKept.lastIndexOf(false)]).toEqual([1_024, 1_023])
})

test('memory of messages is released with their calls', () => {
  const own = new MessageMemory()
  const ring = new CallRing(() => ({ ...ROOMY, maxBytes: 1_000_000 }))
  for (let id = 0; id < 100; id++)
    ring.add(
      factsOf({
        id,
        request: own.copy([Buffer.alloc(100_000)], 200_000),
        lanes: [{ ...LANE, response: own.copy([Buffer.alloc(100_000)], 200_000) }],
      }),
      id,
    )
  expect(ring.size).toBe(4)
  expect(own.segments).toBeLessThanOrEqual(3)
})

describe('memory', () => {
  const SOME = 600 * 1024

  test('of a released message is not written again while another of its segment is kept', () => {
    const own = new MessageMemory()
    const [a, b] = ['aaa', 'bbb'].map((text) => own.copy([Buffer.from(text)], 100))
    a!.release()
    const c = own.copy([Buffer.from('ccc')], 100)
    expect([a, b, c].map((one) => one!.shown(as).text)).toEqual(['', 'bbb', 'ccc'])
    a!.release()
    expect(own.copy([Buffer.from('ddd')], 100).shown(as).text).toBe('ddd')
    expect(b!.shown(as).text).toBe('bbb')
  })

  test('that is free is used again, and of much that is free three segments are kept', () => {
    const own = new MessageMemory()
    for (let at = 0; at < 5; at++) own.copy([Buffer.alloc(SOME)], 2 * SOME).release()
    expect(own.segments).toBe(1)
    const fill = (count: number) => Array.from({ length: count }, (_, at) => own.copy([Buffer.alloc(SOME, at)], 2 * SOME))
    for (const count of [6, 3]) {
      const kept = fill(count)
      expect(own.segments).toBe(count)
      for (const one of kept) one.release()
      expect(own.segments).toBe(3)
    }
    const large = own.copy([Buffer.alloc(3 * SOME, 7)], 4 * SOME)
    expect(own.segments).toBe(3)
    const [after] = fill(1)
    large.release()
    expect([own.segments, after!.shown(as).text?.length]).toEqual([2, SOME])
  })

  test('has room for both ends of every message', () => {
    const own = new MessageMemory()
    const text = `a${'x'.repeat(100_000)}b`
    for (let at = 0; at < 300; at++) {
      const kept = own.copy([Buffer.from(text)], 100)
      expect([kept.size, kept.shown(as).head?.[0], kept.shown(as).tail?.at(-1)]).toEqual([128 + 2 * (50 + MARGIN), 'a', 'b'])
      const collector = new EndsCollector(100)
      collector.push(Buffer.from(text))
      expect(collector.captured(own).shown(as)).toMatchObject({ head: text.slice(0, 50), tail: text.slice(-50) })
    }
  })
})

describe('a body', () => {
  const shown = (text: string, maxBytes: number) => new MessageMemory().copy([Buffer.from(text)], maxBytes).shown(as)

  test('is kept whole up to the limit, and its ends beyond it', () => {
    expect(shown('x'.repeat(100), 100)).toEqual({ bytes: 100, text: 'x'.repeat(100) })
    expect(shown(`${'a'.repeat(50)}x${'b'.repeat(50)}`, 100)).toEqual({
      bytes: 101,
      head: 'a'.repeat(50),
      tail: 'b'.repeat(50),
      omitted: 1,
    })
  })

  test('is kept of its parts, wherever they are cut', () => {
    const text = Array.from({ length: 3 * MARGIN }, (_, at) => String.fromCharCode(97 + (at % 26))).join('')
    for (const cut of [1, 50, MARGIN, MARGIN + 50, 2 * MARGIN, text.length - 50]) {
      const parts = [text.slice(0, cut), text.slice(cut)].map((part) => Buffer.from(part))
      expect(new MessageMemory().copy(parts, 100).shown(as), String(cut)).toEqual({
        bytes: text.length,
        head: text.slice(0, 50),
        tail: text.slice(-50),
        omitted: text.length - 100,
      })
    }
  })

  test('that passes on while it comes needs no more memory than its ends', () => {
    for (const step of [1, 1_000, 10_000]) {
      const collector = new EndsCollector(100)
      for (let at = 0; at < 20_000; at += step) collector.push(Buffer.alloc(step))
      const lengths: number[] = []
      const lengthOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, { length }) => sum + length, 0)
      // Cast: only this is used.
      collector.captured({ copyEnds: (...ends: Uint8Array[][]) => lengths.push(lengthOf(ends[0]!), lengthOf(ends[1]!)) } as never)
      expect(lengths[0], String(step)).toBe(50 + MARGIN)
      expect(lengths[1], String(step)).toBeGreaterThanOrEqual(50 + MARGIN)
      expect(lengths[1], String(step)).toBeLessThan(50 + MARGIN + Math.min(step, 50 + MARGIN))
    }
  })

  test('T-14 in which one end had a secret is hidden again, and the memory of both is free', () => {
    const text = `planted${'x'.repeat(3 * MARGIN)}other`
    const own = new MessageMemory()
    for (const secret of ['planted', 'other']) {
      const kept = own.copy([Buffer.from(text)], 100)
      expect(JSON.stringify(kept.shown((part) => part.replaceAll(secret, '***')))).not.toContain(secret)
      expect(JSON.stringify(kept.shown(as))).not.toContain(secret)
      expect([kept.shown(as).head, kept.shown(as).tail].join('')).toContain('x')
      expect(JSON.stringify(kept.shown((part) => part.replaceAll('x', 'y')))).not.toContain('x')
    }
    // A message as large as a segment has one of its own, which is free with it.
    const large = own.copy([Buffer.from(`planted${'x'.repeat(1_100_000)}`)], 2_000_000)
    const { segments } = own
    large.search((part) => part.replaceAll('planted', '***'))
    own.copy([Buffer.alloc(10)], 100)
    expect(own.segments).toBeLessThanOrEqual(segments)
  })

  test('that is larger than a segment has one of its own, which is not kept', () => {
    const own = new MessageMemory()
    for (let at = 0; at < 5; at++) own.copy([Buffer.alloc(2_000_000)], 4_000_000).release()
    const exact = own.copy([Buffer.alloc(1024 * 1024)], 4_000_000)
    expect(own.segments).toBeLessThanOrEqual(2)
    exact.release()
    expect(own.copy([Buffer.from('x')], 100).shown(as).text).toBe('x')
  })
})

test.each<[direction: 'down' | 'up', path: readonly (string | number)[], rule: string]>([
  ['down', ['id'], '4'],
  ['down', ['params', 'name'], '4.2'],
  ['down', ['params', 'arguments'], ''],
  ['down', ['params', 'arguments', 'a', 0], 'tools.*.args'],
  ['down', ['params', '_meta'], '2.5'],
  ['down', ['params', '_meta', 'progressToken'], 'B136'],
  ['down', ['params', '_meta', 'own'], '2.5'],
  ['down', ['result', 'ttlMs'], ''],
  ['up', ['result', 'ttlMs'], 'B106'],
  ['up', ['result', 'content', 3, 'uri'], '4.4'],
  ['up', ['result', 'content', 3, 'resource', 'uri'], '4.4'],
  ['up', ['result', 'content', 3, 'text'], 'B107'],
  ['up', ['result', 'other'], ''],
  ['up', ['result'], '7'],
  ['up', ['params', 'name'], ''],
])('%s, a change at %j is explained by %s', (direction, path, rule) => {
  expect(ruleFor(direction, path).rule).toBe(rule)
})

test('values are compared down to 24 levels, and below them as a whole', () => {
  const nested = (levels: number, value: number): string => `${'{"k":'.repeat(levels)}${value}${'}'.repeat(levels)}`
  const changesAt = (levels: number): unknown[] =>
    diffMessages(nested(levels, 1), nested(levels, 2), 'down').map(({ path, change, from }) => [path.length, change, from])
  expect([24, 25].map(changesAt)).toEqual([[[24, 'replaced', '1']], [[24, 'replaced', '{"k":1}']]])
})

test.each<[from: string, to: string, changes: readonly unknown[]]>([
  ['{"a":1}', '{"a":1,"b":2}', [['b', 'added', null, '2']]],
  [
    '{"a":[1,{"b":2}]}',
    '{"a":[1,{"b":3},4]}',
    [
      ['a.1.b', 'replaced', '2', '3'],
      ['a.2', 'added', null, '4'],
    ],
  ],
  ['{"a":{}}', '{"a":[]}', [['a', 'replaced', '{}', '[]']]],
  ['{"a":1}', '{"a":1}', []],
])('from %s to %s the changes are %j', (from, to, changes) => {
  expect(diffMessages(from, to, 'down').map(({ path, change, ...both }) => [path.join('.'), change, both.from, both.to])).toEqual(
    changes,
  )
})
