/** One call as it is recorded: times, lanes, what is kept of messages, and what differs between its two sides. */
import { describe, expect, test } from 'vitest'
import { followCalls } from '../../../src/admin/calls/calls.ts'
import type { FeedMessage } from '../../../src/admin/calls/calls.ts'
import { CallRing } from '../../../src/observe/capture/call-ring.ts'
import { diffMessages } from '../../../src/observe/capture/diff.ts'
import { EndsCollector, MessageMemory } from '../../../src/observe/capture/message-memory.ts'
import { Observer } from '../../../src/observe/observer.ts'
import { DEFAULT_OBSERVE } from '../../../src/observe/options.ts'
import type { CapturedBodies } from '../../../src/observe/options.ts'
import { complete, Refusal } from '../../../src/rpc/call.ts'
import type { Call } from '../../../src/rpc/call.ts'
import type { Hop } from '../../../src/rpc/record.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { factsOf } from './call-facts.ts'
import { callOf as sharedCall } from '../../support/calls.ts'
import type { CallFacts } from '../../support/calls.ts'

const PIPE = { era: 'legacy', revision: '2025-11-25', transport: 'pipe' } as const
const OPERATOR = { principal: 'local', isOperator: true }

const observing = (bodies: CapturedBodies = 'all', hide: (text: string) => string = (text) => text) => {
  const clock = { ms: 1_000 }
  let ref = 0
  const observer = new Observer({
    options: () => ({ ...DEFAULT_OBSERVE, capture: { ...DEFAULT_OBSERVE.capture, bodies } }),
    hide,
    toolsetOf: () => undefined,
    passed: () => undefined,
    nextRef: () => ++ref,
    nowMs: () => clock.ms,
    wallMs: () => 1_700_000_000_000 + clock.ms,
  })
  return { observer, clock }
}

const callOf = (facts: CallFacts = {}): Call => sharedCall({ ref: 0, target: 'a__t', caller: { principal: 'p' }, ...facts })

const answerOf = (id: number, member = '"result":{}') => readServerMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},${member}}`))

test('B277 a method that a bridge relays, of any length, takes no memory of the ring', async () => {
  const { observer } = observing('off')
  await observer.layer(async () => complete(Payload.of({})))(callOf({ method: 'x'.repeat(4_000_000), target: undefined }))
  const [row] = observer.page(OPERATOR, () => true, 1).calls
  expect(row?.method).toBe('x'.repeat(100))
})

describe('time', () => {
  test('is split between host, gateway and server, also where the server asks the host meanwhile', async () => {
    const { observer, clock } = observing()
    const handle = observer.layer(async (call) => {
      clock.ms += 5
      call.record?.slotted?.()
      clock.ms += 10
      call.record?.sent?.([Buffer.from('{}')], 1, PIPE)
      clock.ms += 100
      await call.ask?.({ method: 'elicitation/create', params: undefined })
      clock.ms += 50
      call.record?.received?.(answerOf(1))
      clock.ms += 2
      return complete(Payload.of({}))
    })
    await handle(
      callOf({
        ask: async () => {
          clock.ms += 3_000
          return { result: Payload.of({}) }
        },
      }),
    )
    const detail = observer.find(1, OPERATOR)
    expect(detail?.ms).toEqual({ total: 3_167, host: 3_000, gateway: 17, downstream: 150 })
    expect(detail?.times).toMatchObject({ started: 0, slotted: 5, sent: 15, firstByte: 3_165, done: 3_165, answered: 3_167 })
    expect(detail?.asks).toEqual([{ method: 'elicitation/create', from: 115, to: 3_115 }])
  })
})

test.each(['a', undefined])('a call is shown with the server whose endpoint it came to: %s', async (server) => {
  const { observer } = observing()
  const handle = observer.layer(async () => complete(Payload.of({})))
  await handle(callOf({ caller: { principal: 'p', scope: { server } } }))
  expect(observer.find(1, OPERATOR)?.endpoint).toBe(server ?? null)
})

test('the time in which a host takes its answer is the host’s', () => {
  const { observer, clock } = observing()
  const { caller } = callOf()
  const begun = {
    ...caller,
    ref: 7,
    method: 'tools/call',
    clientInfo: { name: 'slow', version: '1' },
    transport: 'http',
  } as const
  const recording = observer.begin({ ...begun, message: Buffer.from('{}') })
  clock.ms += 10
  recording.answered([Buffer.from('{"result":{}}')])
  clock.ms += 5_000
  recording.written()
  clock.ms += 60_000
  expect(observer.find(7, OPERATOR)).toMatchObject({
    host: 'slow 1',
    ms: { total: 5_010, host: 5_000, gateway: 10, downstream: 0 },
    times: { answered: 10, written: 5_010 },
  })
})

test('a call that its listener has begun to record is recorded once, with its start and its target', async () => {
  const { observer, clock } = observing()
  const { caller, params } = callOf()
  const begun = { ...caller, ref: 7, method: 'tools/call', clientInfo: undefined, transport: 'http', message: undefined } as const
  const recording = observer.begin(begun)
  clock.ms += 3
  const outcome = complete(Payload.of({}))
  expect(await observer.layer(async () => outcome)(callOf({ record: recording }))).toBe(outcome)
  recording.answered(undefined)
  expect(observer.page(OPERATOR, () => true, 10).calls.map(({ id }) => id)).toEqual([7])
  expect(observer.find(7, OPERATOR)).toMatchObject({ name: 'a__t', times: { started: 3 }, bytesIn: params.end - params.start })
})

describe('lanes', () => {
  test('a request that is sent again is a retry, one with answers of a person a round', async () => {
    const { observer } = observing()
    const handle = observer.layer(async ({ record }) => {
      record?.sent?.([Buffer.from('{"first":1}')], 1, PIPE)
      record?.sent?.([Buffer.from('{"second":1}')], 2, PIPE)
      record?.received?.(answerOf(2))
      record?.sent?.([Buffer.from('{"third":1}')], 3, PIPE)
      record?.received?.(answerOf(3, '"error":{"code":1,"message":"m"}'))
      return complete(Payload.of({}))
    })
    await handle(callOf())
    const hops = observer.find(1, OPERATOR)?.hops.map(({ kind, end, requestId }) => [kind, end, requestId])
    expect(hops).toEqual([
      ['call', 'lost', 1],
      ['retry', 'result', 2],
      ['round', 'error', 3],
    ])
  })

  test('what is under way when the call is given up is lost', async () => {
    const { observer } = observing()
    const handle = observer.layer(async ({ record }) => {
      record?.sent?.([Buffer.from('{}')], 1, PIPE)
      throw new Refusal(-32602, 'no')
    })
    await expect(handle(callOf())).rejects.toThrow('no')
    expect(observer.find(1, OPERATOR)).toMatchObject({ outcome: 'refused', error: { code: -32602 }, hops: [{ end: 'lost' }] })
  })
})

test('nothing of a message is kept where bodies are off, and of a good call none where they are errors', async () => {
  for (const bodies of ['off', 'errors'] as const) {
    const { observer } = observing(bodies)
    const handle = observer.layer(async ({ record }) => {
      record?.sent?.([Buffer.from('{"secret":1}')], 1, PIPE)
      record?.received?.(answerOf(1))
      return complete(Payload.of({}))
    })
    await handle(callOf())
    const detail = observer.find(1, OPERATOR)
    expect([detail?.request, detail?.response, detail?.hops[0]?.request, detail?.diff], bodies).toEqual([
      undefined,
      undefined,
      undefined,
      null,
    ])
  }
})

describe('a body', () => {
  const maxBytes = 100
  const hide = (text: string): string => text.replaceAll('planted', '***')
  const all = (text: string): string => text

  test('over its limit has its beginning and its end, and a secret across the cut is found', () => {
    const text = `${'a'.repeat(46)}planted${'b'.repeat(500)}planted${'c'.repeat(46)}`
    const parts = [Buffer.from(text.slice(0, 300)), Buffer.from(text.slice(300))]
    const kept = new MessageMemory().copy(parts, maxBytes).shown(hide)
    expect(kept).toMatchObject({ bytes: text.length, omitted: text.length - 100 })
    expect([kept.head, kept.tail]).toEqual([`${'a'.repeat(46)}***b`, `b***${'c'.repeat(46)}`])
  })

  test('T-14 of long characters is cut by its bytes, and shows no part of a secret at the end of what is kept', () => {
    const most = 65_536
    // The kept beginning and end have 36,864 bytes, so each begins or ends within a secret.
    const edge = '語'.repeat(12_287)
    for (const text of [`${edge}planted${'語'.repeat(80_000)}planted${edge}`, '語'.repeat(25_000)]) {
      const { bytes, head, tail, omitted = 0 } = new MessageMemory().copy([Buffer.from(text)], most).shown(hide)
      expect(bytes).toBe(Buffer.byteLength(text))
      expect(`${head}${tail}`.replaceAll('語', '')).toBe('')
      expect(Math.ceil((Buffer.byteLength(`${head}${tail}`) + omitted) / 10)).toBe(Math.ceil(bytes / 10))
    }
  })

  test('T-14 with secrets longer than what is kept around a cut shows no part of another one', () => {
    const most = 20_000
    const hidden = `"password":"${'p'.repeat(6_000)}"`
    const start = `{${hidden},`.padEnd(most / 2 + 4_096 - 3, '.')
    const end = `,${hidden}}`.padStart(most / 2 + 4_096 - 3, '.')
    const kept = new MessageMemory().copy([Buffer.from(`${start}planted${'.'.repeat(30_000)}planted${end}`)], most).shown(hide)
    expect([kept.head, kept.tail].join('').replaceAll('.', '')).toBe('{"password":"***",,"password":"***"}')
  })

  test('loses the values of members that are named like secrets', () => {
    const json =
      '{"password":"a\\"b","Authorization":"Bearer x","x-api-key": "k","client_secret":"s","tokens":5,"passwordless":"y","note":"password"}'
    expect(new MessageMemory().copy([Buffer.from(json)], 1_000).shown(hide).text).toBe(
      '{"password":"***","Authorization":"***","x-api-key": "***","client_secret":"***","tokens":5,"passwordless":"y","note":"password"}',
    )
  })

  test('that passes on while it comes has its beginning and its end, whatever its pieces', () => {
    const text = Array.from({ length: 4_000 }, (_, at) => `${at},`).join('')
    for (const step of [1, 7, 1_000, 50_000]) {
      const collector = new EndsCollector(100)
      for (let at = 0; at < text.length; at += step) collector.push(Buffer.from(text.slice(at, at + step)))
      const kept = collector.captured(new MessageMemory()).shown(hide)
      expect([kept.head, kept.tail, kept.bytes, kept.streamed], String(step)).toEqual([
        text.slice(0, 50),
        text.slice(-50),
        text.length,
        true,
      ])
    }
  })

  test('that is a little longer than its limit and passes on while it comes loses nothing of its ends', () => {
    const text = 'x'.repeat(60) + 'y'.repeat(60)
    const collector = new EndsCollector(100)
    collector.push(Buffer.from(text))
    expect(collector.captured(new MessageMemory()).shown(hide)).toEqual({
      bytes: 120,
      head: 'x'.repeat(50),
      tail: 'y'.repeat(50),
      omitted: 20,
      streamed: true,
    })
  })

  test('T-14 is overwritten once a secret was found in it, and stays as it came where there is none', () => {
    const memory = new MessageMemory()
    const [guilty, innocent] = [
      memory.copy([Buffer.from('{"a":"planted"}')], maxBytes),
      memory.copy([Buffer.from('{}')], maxBytes),
    ]
    guilty.search(hide)
    innocent.search(hide)
    expect([guilty.shown(all).text, innocent.shown(all).text]).toEqual(['{"a":"***"}', '{}'])
  })

  test('T-14 is searched for what has become a secret since', () => {
    const message = new MessageMemory().copy([Buffer.from('{"a":"planted","b":"later"}')], maxBytes)
    message.search(hide)
    expect(message.shown((text) => text.replaceAll('later', '+++')).text).toBe('{"a":"***","b":"+++"}')
  })

  test('T-14 is searched soon after its call, and not only when it is shown', async () => {
    const searched = Promise.withResolvers<string>()
    const { observer } = observing('all', (text) => {
      searched.resolve(text)
      return text
    })
    await observer.layer(async () => complete(Payload.of({})))(callOf({ params: Payload.of({ name: 'a__t' }) }))
    expect(await searched.promise).toContain('a__t')
    observer[Symbol.dispose]()
  })

  test('takes memory that is used again: segments do not become more with the calls', () => {
    const memory = new MessageMemory()
    const kept: { release: () => void }[] = []
    for (let at = 0; at < 2_000; at++) {
      kept.push(memory.copy([Buffer.alloc(10_000)], 20_000))
      if (kept.length > 150) kept.shift()?.release()
    }
    expect(memory.segments).toBeLessThan(6)
    for (const message of kept) message.release()
    expect(memory.segments).toBeLessThan(4)
  })
})

describe('a difference', () => {
  test('is told to the byte: a number that is spelled otherwise is one, an order of members is none', () => {
    const changes = diffMessages('{"params":{"a":1.0,"b":[1,2],"c":3}}', '{"params":{"c":3,"b":[1],"a":1}}', 'down')
    expect(changes.map(({ path, change, from, to }) => [path.join('.'), change, from, to])).toEqual([
      ['params.a', 'replaced', '1.0', '1'],
      ['params.b.1', 'removed', '2', null],
    ])
    expect(changes[0]).toMatchObject({ fromAt: [15, 18], toAt: [29, 30] })
  })

  test('of hostile messages ends: no JSON, many members, deep ones', () => {
    expect(diffMessages('{"a":', '{"a":1}', 'up')).toEqual([])
    const many = `{${Array.from({ length: 5_000 }, (_, at) => `"k${at}":${at}`).join(',')}}`
    expect(diffMessages(many, '{}', 'up')).toHaveLength(200)
    expect(diffMessages(many, many.replaceAll(':', ':1'), 'up')).toHaveLength(200)
    const deep = (value: number): string => `${'{"a":'.repeat(2_000)}${value}${'}'.repeat(2_000)}`
    expect(diffMessages(deep(1), deep(2), 'up')).toHaveLength(1)
  })
})

describe('the ring', () => {
  const { observer } = observing('off')
  const ended = (id: number) => {
    const { caller } = callOf()
    const recording = observer.begin({
      ...caller,
      ref: id,
      method: 'tools/call',
      clientInfo: undefined,
      transport: 'http',
      message: undefined,
    })
    recording.answered(undefined)
    return recording
  }

  test('stays within its bytes and its age, the oldest being removed first', () => {
    const evicted: string[] = []
    const ring = new CallRing(
      () => ({ maxBytes: 2_500, maxAgeMs: 50 }),
      (reason) => evicted.push(reason),
    )
    for (let id = 1; id <= 5; id++) ring.add(ended(id), id)
    const ids = [...ring.places()].map((place) => ring.idAt(place))
    expect([ids, ring.bytes, evicted]).toEqual([[4, 5], 2_048, ['bytes', 'bytes', 'bytes']])
    ring.add(ended(6), 54)
    expect([ring.size, evicted.at(-1)]).toEqual([2, 'age'])
    ring.expire(104)
    expect([ring.size, ring.bytes]).toEqual([0, 0])
  })

  test('holds of what a host says about itself what is shown, not all of it', () => {
    const ring = new CallRing(() => ({ maxBytes: 1e6, maxAgeMs: 1e9 }))
    const kept = (clientInfo: unknown): unknown => ring.at(ring.add(factsOf({ clientInfo }), 1)).clientInfo
    const huge = { name: 'n'.repeat(1_000_000), version: '1', icons: ['i'.repeat(1_000_000)] }
    for (let times = 0; times < 2; times++) expect(kept(huge)).toEqual({ name: 'n'.repeat(100), version: '1' })
    expect(kept({ name: 5, title: 'x' })).toEqual({})
    expect(kept(undefined)).toBeUndefined()
  })

  test('returns what was put in, however often its memory was used again', () => {
    const ring = new CallRing(() => ({ maxBytes: 700 * 1_024, maxAgeMs: 1e9 }))
    for (let id = 1; id <= 5_000; id++) {
      const recording = ended(id)
      recording.name = `t${id}`
      if (id % 3 === 0) recording.sent([], id, PIPE)
      ring.add(recording, id)
    }
    const calls = [...ring.places()].map((place) => ring.at(place))
    expect(calls.at(-1)).toMatchObject({ id: 5_000, name: 't5000', transport: 'http', lanes: [] })
    expect(calls.every(({ id, name, lanes }) => name === `t${id}` && lanes.length === (id % 3 === 0 ? 1 : 0))).toBe(true)
    expect(ring.find(4_800)).toMatchObject({ id: 4_800, lanes: [{ id: 4_800, kind: 'call', hop: PIPE }] })
    expect(ring.find(1)).toBeUndefined()
  })

  test('holds one object for equal hops, and the hop of each call where they differ', () => {
    const ring = new CallRing(() => ({ maxBytes: 1e6, maxAgeMs: 1e9 }))
    const hops: readonly Hop[] = [
      PIPE,
      { ...PIPE, era: 'modern' },
      { ...PIPE, revision: '2025-06-18' },
      { ...PIPE, transport: 'http' },
    ]
    const read = hops.concat(hops.map((hop) => ({ ...hop }))).map((hop, id) => {
      const recording = ended(id)
      recording.sent([], id, hop)
      return ring.at(ring.add(recording, 1)).lanes[0]?.hop
    })
    expect(read).toEqual([...hops, ...hops])
    expect(new Set(read).size).toBe(hops.length)
  })
})

test('a reader that takes nothing is sent no rows, and the number of those once it reads again', async () => {
  const { observer } = observing()
  const sent: FeedMessage[] = []
  const sink = { isStalled: false, send: (message: FeedMessage) => sent.push(message) }
  const stop = followCalls(observer, { viewer: OPERATOR, filter: '', after: undefined, isWhole: false }, sink)
  const call = observer.layer(async () => complete(Payload.of({})))
  const told = (): Promise<void> =>
    new Promise((resolve) => {
      const end = observer.feed.subscribe(() => {
        end()
        resolve()
      })
    })
  sink.isStalled = true
  for (let at = 0; at < 3; at++) await call(callOf())
  await told()
  expect(sent.map(({ type }) => type)).toEqual(['hello'])
  sink.isStalled = false
  await call(callOf())
  await told()
  expect(sent.slice(1)).toMatchObject([
    { type: 'gap', missed: 3 },
    { type: 'calls', calls: [{ id: 4 }] },
  ])
  stop()
})
