/** A server that speaks another era than before, while the gateway runs and between two runs (BRIDGING 5.2; B213, B268). */
import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { FakeKind, FakeSpec } from '../support/fake-downstream.ts'
import { everyLegacyTransport, everyModernTransport, everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import { MODERN } from '../support/fakes/messages.ts'
import type { Message } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { openFaultProxy } from '../support/fault-proxy.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const portOf = ({ address }: FakeDownstream): number => ('url' in address ? Number(address.url.port) : 0)
const eraOf = (gateway: TestGateway): string | undefined => gateway.running.fleet.get('a')?.link?.era
const said = (text: string) => ({ 'tools/call': () => ({ content: [{ type: 'text', text }] }) })
const KINDS: readonly (readonly [FakeKind, FakeKind])[] = [
  ['legacy http', 'modern http'],
  ['modern http', 'legacy http'],
]

/** Refuses what is not of its era, as the official SDKs do where they serve one era alone. */
const start = async (kind: FakeKind, spec: Omit<FakeSpec, 'kind'>): Promise<FakeDownstream> => {
  const downstream = await FakeDownstream.start(fake.of({ kind, ...spec }))
  downstream.intercept = (request, response, body) => {
    const isModern = request.headers['mcp-method'] !== undefined
    if (request.method !== 'POST' || isModern === kind.startsWith('modern') || request.headers['mcp-session-id'] !== undefined)
      return kind.startsWith('modern') && !isModern && refuse(response, 400, -32022, { supported: [MODERN] })
    if (/"method":"(initialize|notifications)/.test(body) && !kind.startsWith('modern')) return false
    return refuse(response, 400, -32000)
  }
  return downstream
}

const refuse = (response: ServerResponse, status: number, code: number, data?: unknown): boolean => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message: 'refused', data } }))
  return true
}

/** One URL, behind which `before` is, and `after` from `deploy` on. */
const openUrl = async (before: FakeDownstream, after: FakeDownstream) => {
  const proxy = await openFaultProxy(portOf(before))
  return {
    url: new URL(`http://127.0.0.1:${proxy.port}/mcp`),
    deploy: async ({ isRolling = false, to = after } = {}): Promise<void> => {
      proxy.target = portOf(to)
      if (isRolling) proxy.drain()
      else proxy.reset()
      // By then the gateway, in this process, has seen that its connections are gone.
      await fetch(`http://127.0.0.1:${proxy.port}/other`, { method: 'POST', headers: { connection: 'close' } })
    },
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  }
}

describe.each(KINDS)('a %s server that becomes a %s one', (before, after) => {
  test.each(everyTransport)('B268 is spoken to in its new era from the next call on, of a host on $name', async ({ connect }) => {
    await using old = await start(before, { tools: ['x'], on: said('old') })
    await using successor = await start(after, { tools: ['x'], on: said('new') })
    await using address = await openUrl(old, successor)
    await using gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', old]]),
      options: { a: { url: address.url } },
    })
    await using host = await connect(gateway)
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'old' }] })
    await address.deploy()
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'new' }] })
    expect(successor.all('tools/call')).toHaveLength(1)
    expect(eraOf(gateway)).toBe(after.split(' ')[0])
    await using other = await modernHttp.connect(gateway)
    expect(await other.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'new' }] })
  })

  test.each(everyTransport)(
    'B268 a call under way ends at the old one in a rolling deployment, of a host on $name',
    async ({ connect }) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      const slow = async () => {
        await released
        return { content: [{ type: 'text', text: 'slow' }] }
      }
      const on = { 'tools/call': (turn: Turn) => (turn.params['name'] === 'slow' ? slow() : said('old')['tools/call']()) }
      await using old = await start(before, { tools: ['slow', 'x'], on })
      await using successor = await start(after, { tools: ['slow', 'x'], on: said('new') })
      await using address = await openUrl(old, successor)
      await using gateway = await startGateway({
        servers: {},
        fakes: new Map([['a', old]]),
        options: { a: { url: address.url } },
      })
      await using host = await connect(gateway)
      const pending = host.begin('tools/call', { name: 'a__slow' })
      await old.until('tools/call')
      await address.deploy({ isRolling: true })
      expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'new' }] })
      expect(eraOf(gateway)).toBe(after.split(' ')[0])
      release()
      expect((await pending.response).result).toMatchObject({ content: [{ text: 'slow' }] })
      expect(successor.all('tools/call')).toHaveLength(1)
    },
  )

  test.each(everyTransport)(
    'B268 takes a subscription that is the first to find out, of a host on $name',
    async ({ connect }) => {
      await using old = await start(before, { resources: ['file:///r'] })
      await using successor = await start(after, { resources: ['file:///r'] })
      await using address = await openUrl(old, successor)
      await using gateway = await startGateway({
        servers: {},
        fakes: new Map([['a', old]]),
        options: { a: { url: address.url } },
      })
      await using host = await connect(gateway)
      await address.deploy()
      const uri = 'a+file:///r'
      let heard = host.heard
      if (host.era === 'legacy') expect(await host.call('resources/subscribe', { uri })).toEqual({})
      else {
        const { messages } = host.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
        const isAcknowledged = ({ method }: Message): boolean => method === 'notifications/subscriptions/acknowledged'
        heard = await Promise.race([messages, heard].map((journal) => journal.until(isAcknowledged).then(() => journal)))
        expect(heard.entries.find(isAcknowledged)?.params).toMatchObject({ notifications: { resourceSubscriptions: [uri] } })
      }
      if (successor.era === 'legacy') await successor.until('resources/subscribe')
      else
        await successor.until(
          'subscriptions/listen',
          ({ params }) => 'resourceSubscriptions' in (params['notifications'] as object),
        )
      successor.updated('file:///r')
      const update = await heard.until(({ method }) => method === 'notifications/resources/updated')
      expect(update.params?.['uri']).toBe(uri)
      expect(successor.all('resources/subscribe').length).toBeLessThanOrEqual(1)
    },
  )

  test.each(
    // Beside a modern main link the legacy one that a legacy host has found is a link to a server of both eras.
    before === 'legacy http' ? everyTransport : everyModernTransport,
  )('B268 is spoken to in its era again when it becomes the old one at once, of a host on $name', async ({ connect }) => {
    await using old = await start(before, { tools: ['x'], on: said('old') })
    await using successor = await start(after, { tools: ['x'], on: said('new') })
    await using address = await openUrl(old, successor)
    await using gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', old]]),
      options: { a: { url: address.url } },
    })
    await using host = await connect(gateway)
    await address.deploy()
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'new' }] })
    await address.deploy({ to: old })
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'old' }] })
    expect(eraOf(gateway)).toBe(before.split(' ')[0])
  })

  test.each(everyLegacyTransport)(
    'B108 B268 structured content has the form of the era that answered it, of a host on $name',
    async ({ connect }) => {
      const tools = [{ name: 'x', inputSchema: { type: 'object' }, outputSchema: { type: 'boolean' } }]
      const on = { 'tools/call': () => ({ content: [], structuredContent: false }) }
      await using old = await start(before, { tools, on })
      await using successor = await start(after, { tools, on })
      await using address = await openUrl(old, successor)
      await using gateway = await startGateway({
        servers: {},
        fakes: new Map([['a', old]]),
        options: { a: { url: address.url } },
      })
      await using host = await connect(gateway, { revision: '2025-06-18' })
      const formOf = ({ era }: FakeDownstream) => (era === 'modern' ? { result: false } : false)
      expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ structuredContent: formOf(old) })
      await address.deploy()
      expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ structuredContent: formOf(successor) })
    },
  )

  test('B268 is noticed without a call, by the lists', async () => {
    await using old = await start(before, { tools: ['x'] })
    await using successor = await start(after, { tools: ['x', 'y'] })
    await using address = await openUrl(old, successor)
    await using gateway = await startGateway({ servers: {}, fakes: new Map([['a', old]]), options: { a: { url: address.url } } })
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/list')
    await address.deploy()
    await gateway.running.fleet
      .get('a')
      ?.offered(false)
      .catch(() => undefined)
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect((await host.call('tools/list'))['tools']).toHaveLength(2)
    expect(eraOf(gateway)).toBe(after.split(' ')[0])
  })

  test('B213 is found out at once at the next start, whatever was remembered', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using old = await start(before, { tools: ['x'] })
    await using successor = await start(after, { tools: ['x'] })
    await using address = await openUrl(old, successor)
    const setup = { servers: {}, fakes: new Map([['a', old]]), options: { a: { url: address.url } }, stateDir }
    {
      await using gateway = await startGateway(setup)
      expect(eraOf(gateway)).toBe(before.split(' ')[0])
    }
    await address.deploy()
    // A second attempt would come after a minute.
    await using gateway = await startGateway({ ...setup, backoff: { firstMs: 60_000, maxMs: 60_000 } })
    expect(eraOf(gateway)).toBe(after.split(' ')[0])
    rmSync(stateDir, { recursive: true })
  })
})

test('B268 a call that is refused when the new era is known already is answered in it', async () => {
  await using old = await start('legacy http', { tools: ['x'], on: said('old') })
  await using successor = await start('modern http', { tools: ['x'], on: said('new') })
  await using address = await openUrl(old, successor)
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', old]]),
    options: { a: { url: address.url } },
  })
  await using host = await modernHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__x' })
  await address.deploy()
  const isKnown = Promise.withResolvers<void>()
  const wasSent = Promise.withResolvers<void>()
  const { intercept } = successor
  successor.intercept = (request, response, body) => {
    const isOfOldEra = request.headers['mcp-method'] === undefined
    if (!isOfOldEra || !body.includes('late')) return intercept?.(request, response, body) ?? false
    wasSent.resolve()
    void isKnown.promise.then(() => intercept?.(request, response, body))
    return true
  }
  const late = host.call('tools/call', { name: 'a__x', arguments: { late: true } })
  await wasSent.promise
  expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'new' }] })
  isKnown.resolve()
  expect(await late).toMatchObject({ content: [{ text: 'new' }] })
})

test.each([-32020, -32021, -32022])('B268 a legacy server may use %i for an error of its own: its link stays', async (code) => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy http', tools: ['x'], on: { 'tools/call': (turn) => turn.fail(code, 'my own') } }) },
  })
  await using host = await legacyHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__x' }).catch(() => undefined)
  await host.call('tools/call', { name: 'a__x' }).catch(() => undefined)
  const a = gateway.fake('a')
  expect(a.all('tools/call')).toHaveLength(2)
  expect(a.all('initialize')).toHaveLength(1)
  expect(a.connections.every(({ isOpen }) => isOpen)).toBe(true)
})

test('B268 a modern server may refuse a method it does not know: its link stays', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['x'], on: { 'tools/call': (turn) => turn.fail(-32601, 'no') } }) },
  })
  const { link } = gateway.running.fleet.get('a') ?? {}
  await using host = await modernHttp.connect(gateway)
  await host.call('tools/call', { name: 'a__x' }).catch(() => undefined)
  expect(gateway.running.fleet.get('a')?.link).toBe(link)
  expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
})
