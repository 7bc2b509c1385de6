/** Three replicas behind a balancer without stickiness: what belongs to one is passed on to it, once (RELIABILITY 6). */
import { describe, expect, test, vi } from 'vitest'
import { Browser } from '../support/browser.ts'
import { bearer, PER_USER, tokenOf, TWO_TOKENS } from '../support/credentials.ts'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import { FakeIssuer, protect } from '../support/fake-issuer.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { legacyHttp, legacySse, modernHttp } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import type { Turn } from '../support/fakes/turn.ts'
import type { GatewaySetup } from '../support/gateway.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { startReplicas, TIMES } from '../support/replicas.ts'
import type { Replica, ReplicaSet } from '../support/replicas.ts'
import { toolsetOf } from '../support/toolsets.ts'

const elicits = async (turn: Turn): Promise<JsonMap> => {
  const { result } = await turn.ask('elicitation/create', {
    message: 'Which queue?',
    requestedSchema: { type: 'object', properties: { queue: { type: 'string' } } },
  })
  return { content: [{ type: 'text', text: JSON.stringify(result) }] }
}
const ACCEPT = { action: 'accept', content: { queue: 'it' } }
const ANSWERED = { content: [{ type: 'text', text: JSON.stringify(ACCEPT) }] }
const CALL = { name: 'a__x', arguments: { n: 1 } }
const able = { capabilities: { elicitation: { form: {} } } }
const start = (more: Partial<GatewaySetup> = {}, kind: FakeKind = 'legacy http') =>
  startReplicas(3, { servers: { a: fake.of({ kind, tools: ['x', 'slow'] }) }, ...more })

/** Begins the end of a replica; resolves when it is not ready, the others no longer believe that it serves, and new requests go to them. */
const stopOne = async ({ all, balancer }: ReplicaSet, one: Replica): Promise<{ end: Promise<void> }> => {
  const end = one.gateway.running.stop()
  const probe = async () => (await fetch(new URL('/readyz', one.gateway.url))).status
  await expect.poll(() => probe().catch(() => 'closed')).not.toBe(200)
  await new Promise((resolve) => setTimeout(resolve, 3 * TIMES.believedMs))
  balancer.targets = all.filter((each) => each !== one).map(({ gateway }) => Number(gateway.url.port))
  return { end }
}

describe.each([legacyHttp, legacySse])('a host over $name', ({ connect }) => {
  test('B274 an elicitation asked at one replica is answered at another, and the call runs once', async () => {
    await using replicas = await start()
    replicas.fake('a').on('tools/call', elicits)
    await using host = await connect(replicas.front, able)
    host.answer('elicitation/create', () => ACCEPT)
    for (let round = 0; round < 3; round++) expect(await host.call('tools/call', CALL)).toMatchObject(ANSWERED)
    expect(replicas.fake('a').all('tools/call')).toHaveLength(3)
  })

  test('F-22 a question of a call is answered while its replica stops, and the call is answered', async () => {
    await using replicas = await start({ host: { drainMs: 25_000, lameDuckMs: 0 } })
    replicas.fake('a').on('tools/call', elicits)
    await using host = await connect(replicas.front, able)
    const asked = Promise.withResolvers<undefined>()
    const stopping = Promise.withResolvers<undefined>()
    host.answer('elicitation/create', async () => {
      asked.resolve(undefined)
      await stopping.promise
      return ACCEPT
    })
    const { response } = host.begin('tools/call', CALL)
    await asked.promise
    const stopped = await stopOne(replicas, replicas.all[0]!)
    stopping.resolve(undefined)
    expect(await response).toMatchObject({ result: ANSWERED })
    await stopped.end
  })

  test('B141 a cancellation reaches the call at the replica that runs it', async () => {
    await using replicas = await start()
    const a = replicas.fake('a')
    a.on('tools/call', () => new Promise(() => undefined))
    await using host = await connect(replicas.front, able)
    const pending = host.begin('tools/call', CALL)
    pending.response.catch(() => undefined)
    await a.until('tools/call')
    pending.cancel()
    await a.until('notifications/cancelled')
  })
})

test('B058 a modern host answers at one replica what a call at another waits for; without the state it is a call of its own', async () => {
  await using replicas = await start()
  replicas.fake('a').on('tools/call', elicits)
  await using host = await modernHttp.connect(replicas.front, able)
  for (let round = 0; round < 3; round++) {
    const first = await host.call('tools/call', CALL)
    expect(first).toMatchObject({ resultType: 'input_required' })
    const [key = ''] = Object.keys(first['inputRequests'] as JsonMap)
    const retry = { ...CALL, inputResponses: { [key]: ACCEPT }, requestState: first['requestState'] }
    expect(await host.call('tools/call', retry)).toMatchObject({ resultType: 'complete', ...ANSWERED })
  }
  expect(replicas.fake('a').all('tools/call')).toHaveLength(3)
  expect(replicas.all.reduce((sum, { gateway }) => sum + (gateway.running.replicas?.counts.forwarded ?? 0), 0)).toBeGreaterThan(0)
})

test('F-22 a modern host answers what a call waits for while its replica stops, and the call is answered', async () => {
  await using replicas = await start({ host: { drainMs: 25_000, lameDuckMs: 0 } })
  replicas.fake('a').on('tools/call', elicits)
  await using host = await modernHttp.connect(replicas.front, able)
  const first = await host.call('tools/call', CALL)
  const [key = ''] = Object.keys(first['inputRequests'] as JsonMap)
  const holder = replicas.all.find(({ gateway }) => gateway.running.gateway.parking.size > 0)
  const stopped = await stopOne(replicas, holder!)
  const retry = { ...CALL, inputResponses: { [key]: ACCEPT }, requestState: first['requestState'] }
  expect(await host.call('tools/call', retry)).toMatchObject({ resultType: 'complete', ...ANSWERED })
  await stopped.end
})

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const request = (method: string, params: JsonMap = {}, id: number | undefined = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), method, params })
const INITIALIZE = request('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: { elicitation: {} },
  clientInfo: { name: 'h', version: '1' },
})
type Set = Awaited<ReturnType<typeof start>>

/** To one replica, as a balancer would send it. */
const to = (set: Set, at: number, method: string, id: string | undefined, body?: string, more: Record<string, string> = {}) =>
  fetch(set.all[at]?.gateway.url ?? '', {
    method,
    headers: { ...HEADERS, ...(id !== undefined && { 'mcp-session-id': id }), ...more },
    ...(body !== undefined && { body }),
  })
const open = async (set: Set, at = 0, more: Record<string, string> = {}): Promise<string> => {
  const answer = await to(set, at, 'POST', undefined, INITIALIZE, more)
  await answer.text()
  const id = answer.headers.get('mcp-session-id') ?? ''
  await to(set, at, 'POST', id, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), more)
  return id
}
const statusOf = async (set: Set, at: number, id: string, more: Record<string, string> = {}): Promise<number> => {
  const answer = await to(set, at, 'POST', id, request('tools/call', CALL), more)
  await answer.text()
  return answer.status
}

describe('a session of a legacy host', () => {
  test('B202 a stream that broke at one replica is resumed at another, without a gap and without a second call', async () => {
    await using set = await start({ host: { streamAfterLegacyMs: 0 } })
    const a = set.fake('a')
    const go = Promise.withResolvers<void>()
    a.on('tools/call', async (turn) => {
      turn.progress(1)
      await go.promise
      return { content: [{ type: 'text', text: 'late' }] }
    })
    const id = await open(set)
    const abort = new AbortController()
    const body = request('tools/call', { ...CALL, _meta: { progressToken: 'p' } })
    const broken = await fetch(set.all[1]?.gateway.url ?? '', {
      method: 'POST',
      headers: { ...HEADERS, 'mcp-session-id': id },
      body,
      signal: abort.signal,
    })
    let seen = ''
    const reader = broken.body!.pipeThrough(new TextDecoderStream()).getReader()
    while (!seen.includes('notifications/progress')) seen += (await reader.read()).value ?? ''
    const last = [...seen.matchAll(/^id: ?(\S+)$/gm)].at(-1)?.[1] ?? ''
    abort.abort()
    const resumed = to(set, 2, 'GET', id, undefined, { accept: 'text/event-stream', 'last-event-id': last })
    go.resolve()
    const text = await (await resumed).text()
    expect(text).toContain('"late"')
    expect(text).not.toContain('notifications/progress')
    expect(a.all('tools/call')).toHaveLength(1)
  })

  test('B276 goes on at any replica after all of them were restarted', async () => {
    await using set = await start()
    const id = await open(set)
    for (const at of [0, 1, 2]) await set.restart(at)
    for (const at of [2, 1, 0, 2]) expect(await statusOf(set, at, id)).toBe(200)
    // One of them has taken it over; the others pass on to that one.
    expect(set.all.map(({ gateway }) => gateway.running.front.sessionCount)).toEqual([0, 0, 1])
  })

  test('B276 B147 keeps the level that its host has set, wherever it is taken over, also one that was set there', async () => {
    await using set = await start()
    set.fake('a').on('tools/call', (turn) => {
      for (const level of ['info', 'error', 'alert']) turn.notify('notifications/message', { level, data: level })
      return { content: [] }
    })
    const id = await open(set)
    const levels = async (at: number): Promise<string[]> => {
      const text = await (await to(set, at, 'POST', id, request('tools/call', CALL))).text()
      return [...text.matchAll(/"level":"(\w+)"/g)].map(([, level = '']) => level)
    }
    const setLevel = async (at: number, level: string): Promise<string> =>
      (await to(set, at, 'POST', id, request('logging/setLevel', { level }))).text()
    await setLevel(0, 'error')
    await set.restart(0)
    expect(await levels(1)).toEqual(['error', 'alert'])
    await setLevel(2, 'alert')
    for (const at of [1, 2]) await set.restart(at)
    expect(await levels(0)).toEqual(['alert'])
    await setLevel(0, 'info')
    await set.restart(0)
    expect(await levels(2)).toEqual(['info', 'error', 'alert'])
  })

  test('B275 B147 keeps its level where its HTTP+SSE stream is opened again at another replica', async () => {
    await using set = await start()
    set.fake('a').on('tools/call', (turn) => {
      for (const level of ['info', 'error']) turn.notify('notifications/message', { level, data: level })
      return { content: [] }
    })
    const connect = async (at: number, more: Record<string, string> = {}) => {
      const url = new URL('/sse', set.all[at]?.gateway.url)
      const stream = await send(url, { method: 'GET', headers: { accept: 'text/event-stream', ...more } })
      const { data } = await stream.events.until(({ event }) => event === 'endpoint')
      let next = 1
      const say = async (body: string): Promise<string | undefined> => {
        const from = next
        await (
          await send(new URL(data, url), { body })
        ).body
        const { id } = await stream.events.when(() =>
          stream.events.entries.slice(from).find((event) => event.data.includes('"id":1')),
        )
        next = stream.events.entries.length
        return id
      }
      return { stream, say }
    }
    const first = await connect(0)
    const id = (await first.say(INITIALIZE)) ?? ''
    await first.say(request('logging/setLevel', { level: 'error' }))
    first.stream.close()
    const second = await connect(1, { 'last-event-id': id })
    await second.say(request('tools/call', CALL))
    expect([...second.stream.text.matchAll(/"level":"(\w+)"/g)].map(([, level]) => level)).toEqual(['error'])
    second.stream.close()
  })

  test('is taken over by one replica alone when its own is gone, and by one more when that is gone, too', async () => {
    await using set = await start()
    const id = await open(set)
    await set.restart(0)
    expect(await Promise.all([1, 2, 0, 1, 2, 0].map((at) => statusOf(set, at, id)))).toEqual(Array(6).fill(200))
    const counts = set.all.map(({ gateway }) => gateway.running.front.sessionCount)
    expect(counts.toSorted()).toEqual([0, 0, 1])
    await set.restart(counts.indexOf(1))
    expect(await Promise.all([1, 2, 0, 1, 2, 0].map((at) => statusOf(set, at, id)))).toEqual(Array(6).fill(200))
    expect(set.all.map(({ gateway }) => gateway.running.front.sessionCount).toSorted()).toEqual([0, 0, 1])
  })

  test('B202 its replica is gone: what was sent is resumed at another one, and the call without an answer ends as lost', async () => {
    await using set = await start({ host: { streamAfterLegacyMs: 0 } })
    const a = set.fake('a')
    a.on('tools/call', (turn) => {
      turn.progress(1)
      turn.progress(2)
      return new Promise(() => undefined)
    })
    const id = await open(set)
    const abort = new AbortController()
    const broken = await fetch(set.all[0]?.gateway.url ?? '', {
      method: 'POST',
      headers: { ...HEADERS, 'mcp-session-id': id },
      body: request('tools/call', { ...CALL, _meta: { progressToken: 'p' } }, 7),
      signal: abort.signal,
    })
    let seen = ''
    const reader = broken.body!.pipeThrough(new TextDecoderStream()).getReader()
    while (!seen.includes('"progress":2')) seen += (await reader.read()).value ?? ''
    const [, first = ''] = [...seen.matchAll(/^id: ?(\S+)$/gm)].map(([, event]) => event)
    abort.abort()
    await vi.waitFor(async () => expect((await set.stored()).join('')).toContain('progress'))
    set.all[0]?.wire.set({ type: 'swallow' })
    if (set.all[0] !== undefined) set.all[0].link.isCut = true
    const resumed = await to(set, 1, 'GET', id, undefined, { accept: 'text/event-stream', 'last-event-id': first })
    const messages = [...(await resumed.text()).matchAll(/^data: ?(.+)$/gm)].map(([, data]) => JSON.parse(data ?? '') as JsonMap)
    expect(messages).toMatchObject([
      { method: 'notifications/progress', params: { progress: 2 } },
      { id: 7, result: { isError: true, _meta: { 'dev.trunkline/gateway': { kind: 'lost', executed: 'unknown' } } } },
    ])
    expect(a.all('tools/call')).toHaveLength(1)
  })

  test('B206 its replica ends while it serves a batch of another one: every request of it is answered as lost, and none is to be repeated', async () => {
    await using set = await start()
    const a = set.fake('a')
    a.on('tools/call', () => new Promise(() => undefined))
    const initialize = request('initialize', {
      protocolVersion: '2025-03-26',
      capabilities: {},
      clientInfo: { name: 'h', version: '1' },
    })
    const opened = await to(set, 0, 'POST', undefined, initialize)
    await opened.text()
    const id = opened.headers.get('mcp-session-id') ?? ''
    const ping = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    const answer = to(set, 1, 'POST', id, `[${request('tools/call', CALL, 7)},${ping},${request('prompts/list', {}, 8)}]`)
    await a.until('tools/call')
    set.all[0]?.wire.reset()
    const { status, headers } = await answer
    expect([status, headers.get('retry-after')]).toEqual([200, null])
    const LOST = { 'dev.trunkline/gateway': { kind: 'lost', executed: 'unknown', retryable: false } }
    expect(await (await answer).json()).toMatchObject([
      { id: 7, result: { isError: true, _meta: LOST } },
      { id: 8, error: { code: -32603, data: LOST } },
    ])
  })

  test('stays where it is while its replica is cut off from the others alone: they answer 503', async () => {
    await using set = await start()
    const id = await open(set)
    set.all[0]?.wire.set({ type: 'swallow' })
    expect(await statusOf(set, 1, id)).toBe(503)
    expect(await statusOf(set, 0, id)).toBe(200)
    set.all[0]?.wire.set({ type: 'none' })
    set.all[0]?.wire.reset()
    expect(await statusOf(set, 1, id)).toBe(200)
    expect(set.all.map(({ gateway }) => gateway.running.front.sessionCount)).toEqual([1, 0, 0])
  })

  test('F-28 is taken over from a replica that is cut off from the store, too, which gives it up when it is back', async () => {
    await using set = await start()
    // It finds the others at its start.
    await set.restart(0)
    const id = await open(set)
    const [first, second] = set.all
    if (first === undefined || second === undefined) throw new Error('no replicas')
    first.wire.set({ type: 'swallow' })
    first.link.isCut = true
    expect(await statusOf(set, 1, id)).toBe(200)
    expect(second.gateway.running.front.sessionCount).toBe(1)
    // It knows that its lease has ended, and that others reach the store.
    expect(await statusOf(set, 0, id)).toBe(503)
    first.link.isCut = false
    first.wire.set({ type: 'none' })
    first.wire.reset()
    await vi.waitFor(() => expect(first.gateway.running.front.sessionCount).toBe(0))
    // The third one knows nothing of all this, and asks the first one.
    for (const at of [2, 0, 1]) expect(await statusOf(set, at, id)).toBe(200)
    expect(set.all.map(({ gateway }) => gateway.running.front.sessionCount)).toEqual([0, 1, 0])
  })

  test('F-28 the store has lost all its data: a session stays at the replica that took it over', async () => {
    const store = new MemoryStore()
    await using set = await start({ store })
    const id = await open(set)
    await set.restart(0)
    expect(await statusOf(set, 1, id)).toBe(200)
    await store[Symbol.asyncDispose]()
    // Knows only that the first one has ended. On a busy machine the others may write again who they are later than a request waits: then it is 503.
    await vi.waitFor(async () => expect(await statusOf(set, 2, id)).toBe(200))
    expect(await statusOf(set, 0, id)).toBe(200)
    expect(set.all.map(({ gateway }) => gateway.running.front.sessionCount)).toEqual([0, 1, 0])
  })

  test('F-28 the store is away: modern hosts and sessions at their replicas are served, what needs it is refused with a reason', async () => {
    await using set = await start()
    const [mine, orphan] = [await open(set, 1), await open(set, 0)]
    for (const { link } of set.all) link.isCut = true
    await using host = await modernHttp.connect(set.front)
    for (let round = 0; round < 6; round++) expect(await host.call('tools/call', CALL)).toMatchObject({ resultType: 'complete' })
    for (const at of [0, 1, 2]) expect(await statusOf(set, at, mine)).toBe(200)
    expect(await statusOf(set, 2, await open(set, 2))).toBe(200)
    await set.restart(0)
    const answer = await to(set, 1, 'POST', orphan, request('tools/call', CALL))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await answer.json()).toMatchObject({
      error: { data: { 'dev.trunkline/gateway': { kind: 'store_unavailable', executed: 'no', retryable: true } } },
    })
    for (const { link } of set.all) link.isCut = false
    await vi.waitFor(async () => expect(await statusOf(set, 1, orphan)).toBe(200))
  })

  test('F-28 is taken over though the store fails once', async () => {
    const store = new MemoryStore()
    const claim = store.claim.bind(store)
    let failures = 0
    store.claim = (key, ...rest) =>
      key.startsWith('session:') && failures++ === 0 ? Promise.reject(new Error('LOADING')) : claim(key, ...rest)
    await using set = await start({ store })
    const id = await open(set)
    await set.restart(0)
    expect(await statusOf(set, 1, id)).toBe(200)
    expect(failures).toBe(2)
  })

  test('DELETE at one replica ends it at all, also where its own is gone by then', async () => {
    await using set = await start()
    const [one, other] = [await open(set), await open(set)]
    expect((await to(set, 1, 'DELETE', one)).status).toBe(200)
    for (const at of [0, 1, 2]) expect(await statusOf(set, at, one)).toBe(404)
    expect((await to(set, 2, 'DELETE', other)).status).toBe(200)
    await set.restart(0)
    for (const at of [0, 1, 2]) expect(await statusOf(set, at, other)).toBe(404)
  })

  test('T-05 a session of another principal is not found at any replica', async () => {
    await using set = await start({ host: { auth: TWO_TOKENS } })
    const [mine, foreign] = [bearer(tokenOf('A')), bearer(tokenOf('B'))]
    const id = await open(set, 0, mine)
    for (const at of [0, 1, 2]) {
      expect(await statusOf(set, at, id, mine)).toBe(200)
      expect(await statusOf(set, at, id, foreign)).toBe(404)
      expect(await statusOf(set, at, id, {})).toBe(401)
    }
  })

  test('B276 a host that says more of itself than an id holds is served at any replica, as long as its own runs', async () => {
    await using set = await start()
    const capabilities = { experimental: { big: 'x'.repeat(2_000) } }
    const body = request('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'h', version: '1' } })
    const answer = await to(set, 0, 'POST', undefined, body)
    await answer.text()
    const id = answer.headers.get('mcp-session-id') ?? ''
    expect(id.length).toBeLessThanOrEqual(1024)
    for (const at of [0, 1, 2]) expect(await statusOf(set, at, id)).toBe(200)
    await set.restart(0)
    expect(await statusOf(set, 1, id)).toBe(404)
  })

  test('ps --all names the replicas that run, with their sessions', async () => {
    await using set = await start()
    await open(set, 1)
    await set.restart(2)
    await vi.waitFor(async () => {
      const listed = await set.all[2]?.gateway.running.replicas?.list()
      expect(listed?.map(({ sessions, isSelf }) => [sessions, isSelf])).toEqual([
        [0, false],
        [1, false],
        [0, true],
      ])
    })
  })

  test('T-21 a host cannot pass for a replica: its header changes nothing', async () => {
    await using set = await start()
    const id = await open(set)
    const forged = { 'trunkline-hop': `v1 x y ${Date.now()} n AAAAAAAAAAAAAAAAAAAAAA` }
    expect(await statusOf(set, 1, id, forged)).toBe(200)
    expect((await to(set, 1, 'POST', id, request('ping'))).headers.get('trunkline-hop')).toBeNull()
    const probe = await fetch(new URL('/replica', set.all[0]?.gateway.url), { headers: forged })
    expect([probe.status, probe.headers.get('trunkline-hop')]).toEqual([404, null])
  })
})

test('T-08 F-17 a person signs in through three replicas, once, and all of them have the token', async () => {
  await using issuer = await FakeIssuer.start()
  await using server = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['echo'] }))
  protect(server, issuer)
  await using set = await startReplicas(3, {
    servers: {},
    fakes: new Map([['a', server]]),
    options: { a: { credential: PER_USER } },
  })
  const host = { capabilities: { elicitation: { form: {}, url: {} } } }
  await using first = await modernHttp.connect(set.front, host)
  const asked = await first.call('tools/call', { name: 'a__sign_in' })
  const { 'sign-in': question } = asked['inputRequests'] as Record<string, { params: { url: string } }>
  expect((await new Browser().signIn(question?.params.url ?? '')).text).toContain('Signed in to A')
  // The next three calls go to the three replicas in turn.
  for (let at = 0; at < 3; at++)
    await vi.waitFor(async () => {
      set.balancer.next = at
      expect(await first.call('tools/call', { name: 'a__echo', arguments: {} })).toMatchObject({ resultType: 'complete' })
    })
  expect(issuer.grants).toEqual(['authorization_code'])
})

describe('a confirmation', () => {
  const OPS = toolsetOf({}, { name: 'ops', confirm: ['a__x'] })
  const options = { ...able, toolset: 'ops' }
  const confirmed = (asked: JsonMap): JsonMap => ({
    ...CALL,
    requestState: asked['requestState'],
    inputResponses: { confirm: { action: 'accept' } },
  })

  test('is used once by all replicas', async () => {
    await using set = await start({ gateway: { toolsets: [OPS] } })
    await using host = await modernHttp.connect(set.front, options)
    const retry = confirmed(await host.call('tools/call', CALL))
    expect(await host.call('tools/call', retry)).toMatchObject({ resultType: 'complete' })
    for (let at = 0; at < 3; at++)
      await expect(host.call('tools/call', retry)).rejects.toMatchObject({ code: -32602, message: 'requestState already used' })
    expect(set.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('F-28 is asked for again while the store is away, and the call is not sent', async () => {
    await using set = await start({ gateway: { toolsets: [OPS] } })
    await using host = await modernHttp.connect(set.front, options)
    const first = await host.call('tools/call', CALL)
    for (const { link } of set.all) link.isCut = true
    const again = await host.call('tools/call', confirmed(first))
    expect(again).toMatchObject({ resultType: 'input_required' })
    expect(set.fake('a').all('tools/call')).toEqual([])
    for (const { link } of set.all) link.isCut = false
    await vi.waitFor(async () =>
      expect(await host.call('tools/call', confirmed(await host.call('tools/call', CALL)))).toMatchObject({
        resultType: 'complete',
      }),
    )
    expect(set.fake('a').all('tools/call')).toHaveLength(1)
  })
})
