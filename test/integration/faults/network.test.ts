/** Connections that break, stall or go half: above the gateway and below it. */
import { describe, expect, test } from 'vitest'
import { FakeDownstream, fake } from '../../support/fake-downstream.ts'
import type { FakeSpec } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { connectHttp } from '../../support/fakes/http-hosts.ts'
import { request } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import type { RawEvent } from '../../support/fakes/raw-http.ts'
import { openFaultProxy } from '../../support/fault-proxy.ts'
import type { FaultProxy } from '../../support/fault-proxy.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'
import { play, refereed } from '../../support/refereed.ts'
import { Referee } from '../../support/referee.ts'

interface Proxied extends AsyncDisposable {
  readonly gateway: TestGateway
  readonly a: FakeDownstream
  readonly proxy: FaultProxy
}

/** A gateway that reaches its server `a` through a proxy. */
const behindProxy = async (spec: FakeSpec, setup: Partial<GatewaySetup> = {}): Promise<Proxied> => {
  await using stack = new AsyncDisposableStack()
  const a = stack.use(await FakeDownstream.start(spec))
  const port = 'url' in a.address ? Number(a.address.url.port) : 0
  const proxy = stack.use(await openFaultProxy(port))
  const url = new URL(`http://127.0.0.1:${proxy.port}/mcp`)
  const options = { a: { url, ...setup.options?.['a'] } }
  const gateway = stack.use(await startGateway({ servers: {}, ...setup, fakes: new Map([['a', a]]), options }))
  const owned = stack.move()
  return { gateway, a, proxy, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** The same gateway as hosts see it that come through a proxy. */
const throughProxy = async (gateway: TestGateway): Promise<{ proxy: FaultProxy; seen: TestGateway }> => {
  const proxy = await openFaultProxy(Number(gateway.url.port))
  return { proxy, seen: { ...gateway, url: new URL(`http://127.0.0.1:${proxy.port}/mcp`) } }
}

describe.each(['legacy http', 'legacy sse', 'modern http'] as const)('the connection to a %s server', (kind) => {
  test('F-18 that is cut after so many bytes: the call ends once, and was sent once; the next is answered', async () => {
    const referee = new Referee()
    const spec = fake.of({ kind, tools: ['t'], on: { 'tools/call': refereed(referee, (turn) => turn.progress(1)) } })
    await using setup = await behindProxy(spec)
    const { gateway, proxy } = setup
    await using host = await modernHttp.connect(gateway)
    for (let after = 1; after <= 400; after += 57) {
      const before = gateway.log.entries.length
      proxy.set({ type: 'cut', after })
      const cut = play(host, referee, 'a__t')
      // A call that came when the link was already cut waits for the next one, and none is made as long as all are cut.
      await Promise.race([cut, gateway.log.when(() => (gateway.log.entries.length > before ? true : undefined))])
      proxy.set({ type: 'none' })
      proxy.reset()
      await cut
      for (let end = await play(host, referee, 'a__t'); end.type !== 'answered'; end = await play(host, referee, 'a__t'))
        expect(end).toMatchObject({ type: 'failed' })
    }
    expect(referee.findings).toEqual([])
  })

  test('F-14 that is half-open: a call ends by the idle limit, others go their way when the network is back', async () => {
    const referee = new Referee()
    const spec = fake.of({ kind, tools: ['t'], on: { 'tools/call': refereed(referee) } })
    await using setup = await behindProxy(spec, { options: { a: { timeouts: { idleMs: 1_500 } } } })
    const { gateway, proxy } = setup
    await using host = await modernHttp.connect(gateway)
    expect(await play(host, referee, 'a__t')).toMatchObject({ type: 'answered' })
    proxy.set({ type: 'swallow' })
    expect(await play(host, referee, 'a__t')).toMatchObject({ type: 'failed', kind: 'timeout', executed: 'unknown' })
    proxy.set({ type: 'none' })
    proxy.reset()
    for (let end = await play(host, referee, 'a__t'); end.type !== 'answered'; end = await play(host, referee, 'a__t'))
      expect(end).toMatchObject({ type: 'failed' })
    expect(referee.findings).toEqual([])
  })
})

test.each(['legacy http', 'legacy sse'] as const)(
  'F-14 a %s server whose connection is half-open while nothing is pending is connected to anew, and not while it answers',
  async (kind) => {
    const spec = fake.of({ kind, tools: ['t'] })
    await using setup = await behindProxy(spec, { options: { a: { timeouts: { pingMs: 1_000 } } } })
    const { gateway, a, proxy } = setup
    await a.journal.when(() => (a.all('ping').length >= 2 ? true : undefined))
    expect(a.all('initialize')).toEqual([])
    gateway.log.clear()
    proxy.set({ type: 'swallow' })
    await gateway.log.until(({ facts }) => facts['server'] === 'a')
    proxy.set({ type: 'none' })
    proxy.reset()
    await a.until('initialize')
  },
)

test('F-20 of a thousand modern hosts that leave in the middle of their calls every call is cancelled and every slot is free', async () => {
  const calls = fake.of({ kind: 'modern http', tools: ['t'], on: { 'tools/call': fake.never } })
  await using gateway = await startGateway({ servers: { a: calls } })
  await using host = await modernHttp.connect(gateway)
  const a = gateway.fake('a')
  for (let round = 0; round < 10; round++) {
    a.forget()
    const pending = Array.from({ length: 100 }, () => host.begin('tools/call', { name: 'a__t', arguments: {} }))
    await a.journal.when(() => (a.all('tools/call').length === 100 ? true : undefined))
    expect(gateway.running.fleet.get('a')?.inFlight).toBe(100)
    for (const call of pending) call.cancel()
    await Promise.all(a.all('tools/call').map(({ closed }) => closed))
  }
  expect(gateway.running.fleet.get('a')?.inFlight).toBe(0)
  expect(gateway.running.front.inFlight).toBe(0)
})

describe('a host', () => {
  test('F-19 whose stream is cut after so many bytes gets the answer exactly once when it comes back', async () => {
    const go = { release: (): void => undefined }
    const spec = fake.of({
      kind: 'legacy http',
      tools: ['t'],
      on: {
        'tools/call': async (turn) => {
          turn.progress(1, { message: 'x'.repeat(100) })
          await new Promise<void>((resolve) => (go.release = resolve))
          return { content: [{ type: 'text', text: 'done' }] }
        },
      },
    })
    await using gateway = await startGateway({ servers: { a: spec } })
    const { proxy, seen } = await throughProxy(gateway)
    await using _proxy = proxy
    await using host = await connectHttp(seen, { deaf: true })
    const call = request(1, 'tools/call', { name: 'a__t', arguments: {}, _meta: { progressToken: 'p' } })
    let resumptions = 0
    for (let after = 150; after < 700; after += 50) {
      gateway.fake('a').forget()
      proxy.reset()
      proxy.set({ type: 'cut', after })
      const cut = send(seen.url, { headers: host.headers(), body: call }).catch(() => undefined)
      await gateway.fake('a').until('tools/call')
      go.release()
      const reply = await cut
      await reply?.closed
      proxy.set({ type: 'none' })
      // The priming event comes first, and with it the name to come back by; who has not got it has no way back.
      const last = reply?.events.entries.findLast(({ id }) => id !== undefined)?.id
      const answers = (events: readonly RawEvent[] = []): number => events.filter(({ data }) => data.includes('"result"')).length
      const before = answers(reply?.events.entries)
      if (last === undefined) continue
      const rest = await send(seen.url, {
        method: 'GET',
        headers: { ...host.headers(), accept: 'text/event-stream', 'last-event-id': last },
      })
      await rest.body
      expect(before + answers(rest.events.entries)).toBe(1)
      resumptions++
    }
    expect(resumptions).toBeGreaterThan(3)
    expect(gateway.fake('a').all('notifications/cancelled')).toEqual([])
  })

  test('F-13 whose machine stands still loses its stream, then its session, and with it the process', async () => {
    const spec = fake.of({ kind: 'legacy stdio', tools: ['t'] })
    const hostLimits = { writeStallMs: 300, sessionIdleMs: 300 }
    await using gateway = await startGateway({ servers: { a: spec }, hostLimits })
    const { proxy, seen } = await throughProxy(gateway)
    await using _proxy = proxy
    const host = await legacyHttp.connect(seen)
    await host.call('tools/call', { name: 'a__t', arguments: {} })
    const link = gateway.fake('a').connections.at(-1)
    proxy.set({ type: 'stall' })
    const data = 'x'.repeat(200_000)
    const isUp = (): boolean => link?.isOpen === true
    while (isUp()) {
      link?.notify('notifications/message', { level: 'info', data })
      await new Promise(setImmediate)
    }
    expect(gateway.running.front.sessionCount).toBe(0)
    proxy.reset()
    await host[Symbol.asyncDispose]()
  })

  test('F-21 that never reads its answers is cut off, and a hundred others beside it are answered', async () => {
    const big = 'x'.repeat(8_000_000)
    const text = ({ params }: { params: JsonMap }): string => String((params['arguments'] as { nonce: number }).nonce)
    const spec = fake.of({
      kind: 'modern http',
      tools: ['t', 'big'],
      on: {
        'tools/call': (turn) => ({ content: [{ type: 'text', text: turn.params['name'] === 'big' ? big : text(turn) }] }),
      },
    })
    await using gateway = await startGateway({ servers: { a: spec }, hostLimits: { writeStallMs: 500 } })
    const { proxy, seen } = await throughProxy(gateway)
    await using _proxy = proxy
    await using stalled = await modernHttp.connect(seen)
    await using well = await modernHttp.connect(gateway)
    const a = gateway.fake('a')
    const pending = Array.from({ length: 4 }, () => stalled.begin('tools/call', { name: 'a__big', arguments: {} }))
    await a.journal.when(() => (a.all('tools/call').length === 4 ? true : undefined))
    proxy.set({ type: 'stall' })
    const answers = Array.from({ length: 100 }, (_, nonce) => well.call('tools/call', { name: 'a__t', arguments: { nonce } }))
    const texts = (await Promise.all(answers)).map((result) => (result['content'] as { text: string }[])[0]!.text)
    expect(texts).toEqual(answers.map((_, nonce) => String(nonce)))
    await gateway.log.until(({ facts }) => /read nothing of its answer for 500 ms/.test(String(facts['error'])))
    proxy.set({ type: 'none' })
    const ends = await Promise.all(pending.map(({ response }) => response.catch(() => 'cut off')))
    expect(ends).toContain('cut off')
  })
})
