/** A server that speaks another era than before, while the gateway runs and between two runs (BRIDGING 5.2; B213, B268). */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { FakeKind, FakeSpec } from '../support/fake-downstream.ts'
import { everyLegacyTransport, everyModernTransport, everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import { MODERN } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { openFaultProxy } from '../support/fault-proxy.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'
import type { HostSession } from '../../src/rpc/call.ts'

const portOf = ({ address }: FakeDownstream): number => ('url' in address ? Number(address.url.port) : 0)
const eraOf = (gateway: TestGateway): string | undefined => gateway.running.fleet.get('a')?.link?.era
// Cast: only whether there is one counts.
const ANY_SESSION = {} as HostSession
const namesOf = (listed: JsonMap): unknown[] => (listed['tools'] as JsonMap[]).map(({ name }) => name)
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

/** A modern server whose URL a legacy one serves for a moment: what its own legacy link is told then is no more true afterwards. */
describe('a modern server that is a legacy one for a moment', () => {
  /** It announces nothing, so that no stream of the main link breaks and finds out. */
  const QUIET: FakeSpec['capabilities'] = { tools: {}, prompts: {}, completions: {} }
  const QUESTION = { message: 'sure?', requestedSchema: { type: 'object', properties: {} } }
  const MODERN_SIDE: Omit<FakeSpec, 'kind'> = {
    capabilities: QUIET,
    tools: ['x', 'new'],
    prompts: ['p'],
    on: {
      'tools/call': ({ params }) =>
        params['name'] === 'x' || params['inputResponses'] !== undefined
          ? { content: [{ type: 'text', text: `modern ${JSON.stringify(params['inputResponses'] ?? '')}` }] }
          : {
              resultType: 'input_required',
              inputRequests: { k: { method: 'elicitation/create', params: { mode: 'form', ...QUESTION } } },
            },
    },
  }
  const LEGACY_SIDE: Omit<FakeSpec, 'kind'> = { on: said('legacy'), capabilities: QUIET, tools: ['x', 'old'], prompts: ['p'] }
  const PLACES = ['merged', 'bridge'] as const

  /** Until `back`, the URL is served by the legacy program. Nothing but legacy hosts meets that, so that the main link stays as it was. */
  const open = async (setup: Partial<GatewaySetup> = {}) => {
    const modern = await start('modern http', MODERN_SIDE)
    const legacy = await start('legacy http', LEGACY_SIDE)
    const address = await openUrl(modern, legacy)
    const gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', modern]]),
      options: { a: { url: address.url } },
      ...setup,
    })
    const server = gateway.running.fleet.get('a')
    const { link } = server ?? {}
    let asked = 0
    const { intercept } = modern
    modern.intercept = (request, response, body) => {
      if (body.includes('"initialize"')) asked++
      return intercept(request, response, body)
    }
    await address.deploy()
    return {
      modern,
      legacy,
      gateway,
      server,
      asked: () => asked,
      url: address.url,
      back: async (): Promise<void> => {
        await address.deploy({ to: modern })
        expect(server?.link).toBe(link)
        expect(server?.eras.eraFor({ session: ANY_SESSION })).toBe('legacy')
      },
      [Symbol.asyncDispose]: async () => {
        await gateway[Symbol.asyncDispose]()
        for (const each of [address, modern, legacy]) await each[Symbol.asyncDispose]()
      },
    }
  }
  const at = (place: (typeof PLACES)[number]) => ({
    setup: place === 'bridge' ? { gateway: { prefix: 'never' as const } } : {},
    name: (original: string): string => (place === 'bridge' ? original : `a__${original}`),
  })
  const ROWS = PLACES.flatMap((place) => everyLegacyTransport.map(({ name, connect }) => ({ place, host: name, connect })))

  test.each(ROWS)(
    'B268 serves a host on $host, at the $place endpoint, over its modern link again',
    async ({ place, connect }) => {
      const { setup, name } = at(place)
      await using scene = await open(setup)
      await using host = await connect(scene.gateway, { capabilities: { elicitation: {} } })
      host.answer('elicitation/create', ({ message }) => ({ action: 'accept', content: { message } }))
      const ref = { type: 'ref/prompt', name: name('p') }
      const complete = (): Promise<JsonMap> => host.call('completion/complete', { ref, argument: { name: 'n', value: '' } })
      expect(await host.call('tools/call', { name: name('x') })).toMatchObject({ content: [{ text: 'legacy' }] })
      expect(namesOf(await host.call('tools/list'))).toEqual(['x', 'old'].map(name))
      await complete()
      await scene.back()
      const both = await Promise.all([complete(), host.call('tools/call', { name: name('x') })])
      expect(both).toMatchObject([{ completion: { values: ['one', 'two'] } }, { content: [{ text: 'modern ""' }] }])
      expect(Object.keys(both[1])).toEqual(['content'])
      await expect.poll(async () => namesOf(await host.call('tools/list'))).toEqual(['x', 'new'].map(name))
      const answer = { k: { action: 'accept', content: { message: expect.stringContaining('sure?') as string } } }
      const [block] = (await host.call('tools/call', { name: name('new') }))['content'] as JsonMap[]
      expect(JSON.parse(String(block?.['text']).replace('modern ', ''))).toEqual(answer)
      expect(scene.modern.all('tools/call')).toHaveLength(3)
      expect(scene.legacy.all('tools/call')).toHaveLength(1)
      // Once, however many calls were refused; and nothing is left that could be.
      expect(scene.asked()).toBe(1)
      expect(scene.server?.linkCount).toBe(1)
    },
  )

  test.each(PLACES)('B128 B129 B268 tells hosts at the %s endpoint once of what they are listed then', async (place) => {
    const { setup, name } = at(place)
    const isListed = Promise.withResolvers<void>()
    await using scene = await open(setup)
    await using host = await legacyHttp.connect(scene.gateway)
    await host.call('tools/call', { name: name('x') })
    expect(namesOf(await host.call('tools/list'))).toEqual(['x', 'old'].map(name))
    // The modern one has changed as well, which only reading it again shows.
    scene.modern.offers.tools.push({ name: 'newer', inputSchema: { type: 'object' } })
    scene.modern.on('tools/list', async () => {
      await isListed.promise
      return { tools: scene.modern.offers.tools, ttlMs: 60_000, cacheScope: 'public' }
    })
    await scene.back()
    const isTold = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'
    const before = host.heard.entries.filter(isTold).length
    await host.call('tools/call', { name: name('x') })
    await scene.modern.until('tools/list')
    isListed.resolve()
    await expect.poll(() => host.heard.entries.filter(isTold)).toHaveLength(before + 1)
    expect(namesOf(await host.call('tools/list'))).toEqual(['x', 'new', 'newer'].map(name))
    await host.call('tools/call', { name: name('x') })
    expect(host.heard.entries.filter(isTold)).toHaveLength(before + 1)
  })

  test('B268 is noticed without a call, by the lists of its legacy side', async () => {
    await using scene = await open()
    await using host = await legacyHttp.connect(scene.gateway)
    await host.call('tools/list')
    await scene.back()
    host.heard.clear()
    await scene.server?.offered(false)
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(namesOf(await host.call('tools/list'))).toEqual(['a__x', 'a__new'])
  })

  test('B268 has no stored lists of a legacy side afterwards', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    const stored = (): unknown => JSON.parse(readFileSync(join(stateDir, 'server-a.json'), 'utf8'))
    {
      await using scene = await open({ stateDir })
      await using host = await legacyHttp.connect(scene.gateway)
      await host.call('tools/list')
      expect(stored()).toHaveProperty('legacyInventory')
      await scene.back()
      await host.call('tools/call', { name: 'a__x' })
      await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    }
    expect(stored()).not.toHaveProperty('legacyInventory')
    expect(stored()).toMatchObject({ verdict: { era: 'modern', takesInitialize: false } })
    rmSync(stateDir, { recursive: true })
  })

  test('B267 B268 is listed as it is, and not as an earlier run met its legacy side, where it stays a legacy one', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using scene = await open({ stateDir })
    {
      await using host = await legacyHttp.connect(scene.gateway)
      expect(namesOf(await host.call('tools/list'))).toEqual(['a__x', 'a__old'])
    }
    await scene.gateway[Symbol.asyncDispose]()
    scene.legacy.offers.tools.push({ name: 'newer', inputSchema: { type: 'object' } })
    const options = { a: { url: scene.url } }
    await using gateway = await startGateway({ servers: {}, fakes: new Map([['a', scene.legacy]]), options, stateDir })
    await using host = await legacyHttp.connect(gateway)
    await expect.poll(async () => namesOf(await host.call('tools/list'))).toEqual(['a__x', 'a__old', 'a__newer'])
    rmSync(stateDir, { recursive: true, maxRetries: 20, retryDelay: 100 })
  })

  test('B268 forgets its legacy side as well where it knows the session no more, and refuses the next', async () => {
    await using scene = await open()
    await using host = await legacyHttp.connect(scene.gateway)
    await host.call('tools/list')
    await host.call('tools/call', { name: 'a__x' })
    const { intercept } = scene.modern
    scene.modern.intercept = (request, response, body) => {
      if (request.headers['mcp-session-id'] === undefined) return intercept(request, response, body)
      response.writeHead(404).end()
      return true
    }
    await scene.back()
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ content: [{ text: 'modern ""' }] })
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(namesOf(await host.call('tools/list'))).toEqual(['a__x', 'a__new'])
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
