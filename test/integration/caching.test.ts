/** What is kept, for whom and how long, and what hosts are told of it (BRIDGING 3.19; 8.8). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { AuthOptions } from '../../src/auth/inbound/verify/inbound-options.ts'
import { PER_USER, tokenOf, TWO_TOKENS } from '../support/credentials.ts'
import { FakeDownstream, fake } from '../support/fake-downstream.ts'
import type { FakeKind, FakeSpec } from '../support/fake-downstream.ts'
import { everyModernTransport, modernHttp, toolNames } from '../support/fake-host.ts'
import { KEY, metaOf } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

const URI = 'm:///r'
const HINTS = { ttlMs: 60_000, cacheScope: 'public' }
const ASK = { method: 'roots/list' }

describe.each(everyModernTransport)('over $name', ({ connect }) => {
  test('B150 what asks for input says nothing of how long it holds, whatever the server said', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', resources: [URI] }) } })
    await using host = await connect(gateway, { capabilities: { roots: {} } })
    gateway.fake('a').on('resources/read', () => ({ ...HINTS, resultType: 'input_required', inputRequests: { q: ASK } }))
    const asked = await host.call('resources/read', { uri: `a+${URI}` })
    expect(asked).toMatchObject({ resultType: 'input_required', inputRequests: { q: ASK } })
    for (const hint of Object.keys(HINTS)) expect(asked).not.toHaveProperty(hint)
  })

  test('B151 a retry with answers is never answered from memory, nor is a later request from the retry', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', resources: [URI] }) } })
    await using host = await connect(gateway, { capabilities: { roots: {} } })
    let results = 0
    gateway
      .fake('a')
      .on('resources/read', ({ params }) =>
        params['inputResponses'] === undefined
          ? { resultType: 'input_required', inputRequests: { q: ASK }, requestState: 's' }
          : { ...HINTS, contents: [{ uri: URI, text: String(++results) }] },
      )
    const read = (more: JsonMap = {}): Promise<JsonMap> => host.call('resources/read', { uri: `a+${URI}`, ...more })
    const { requestState } = await read()
    const retry = { requestState, inputResponses: { q: { roots: [] } } }
    for (const text of ['1', '2']) expect(await read(retry)).toMatchObject({ contents: [{ text }] })
    expect(await read()).toMatchObject({ resultType: 'input_required' })
    expect(gateway.fake('a').all('resources/read')).toHaveLength(4)
  })
})

test('B155 what a server says all may keep is for its caller alone, where callers bring credentials', async () => {
  const readBy = async (auth: AuthOptions | undefined, token: string | undefined) => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', resources: [URI] }) },
      ...(auth !== undefined && { host: { auth } }),
    })
    gateway.fake('a').on('resources/read', () => ({ ...HINTS, contents: [{ uri: URI, text: 'x' }] }))
    await using host = await modernHttp.connect(gateway, token === undefined ? {} : { token: () => token })
    return await host.call('resources/read', { uri: `a+${URI}` })
  }
  expect(await readBy(undefined, undefined)).toMatchObject(HINTS)
  expect(await readBy(TWO_TOKENS, tokenOf('A'))).toMatchObject({ ttlMs: 60_000, cacheScope: 'private' })
})

test('B155 the same at a bridge, for a resource and for the lists', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', resources: [URI] }) },
    host: { auth: TWO_TOKENS },
  })
  gateway.fake('a').on('resources/read', () => ({ ...HINTS, contents: [{ uri: URI, text: 'x' }] }))
  await using host = await modernHttp.connect(gateway, { token: () => tokenOf('A'), path: '/servers/a/mcp' })
  expect(await host.call('resources/read', { uri: URI })).toMatchObject({ ttlMs: 60_000, cacheScope: 'private' })
  expect(await host.call('resources/list')).toMatchObject({ cacheScope: 'private' })
})

test('B149 at a bridge, too, each cacheable result has hints where the server gives none, and no other result', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['t'], prompts: ['p'], resources: [URI] }), b: fake.offering('other') },
  })
  const bare = {
    'tools/list': { tools: [] },
    'prompts/list': { prompts: [] },
    'resources/list': { resources: [] },
    'resources/templates/list': { resourceTemplates: [] },
    'resources/read': { contents: [] },
  }
  for (const [method, result] of Object.entries(bare)) gateway.fake('a').on(method, () => result)
  gateway.fake('a').on('prompts/get', () => ({ messages: [] }))
  await using host = await modernHttp.connect(gateway, { path: '/servers/a/mcp' })
  for (const [method, result] of Object.entries(bare))
    expect(await host.call(method, { uri: URI })).toMatchObject({ ...result, ttlMs: 0, cacheScope: 'private' })
  expect(await host.call('server/discover')).toMatchObject({
    ttlMs: expect.any(Number) as number,
    cacheScope: 'private',
  })
  const got = await host.call('prompts/get', { name: 'p' })
  expect([got['ttlMs'], got['cacheScope']]).toEqual([undefined, undefined])
})

test.each([
  ['the merged endpoint', {}, 'a+'],
  ['a bridge', { path: '/servers/a/mcp' }, ''],
])('B155 the same at %s where callers have credentials of their own at the server alone', async (_, options, prefix) => {
  const on: FakeSpec['on'] = {
    'resources/list': () => ({ ...HINTS, resources: [{ uri: URI, name: 'r' }] }),
    'resources/read': () => ({ ...HINTS, contents: [{ uri: URI, text: 'x' }] }),
  }
  const spec = fake.of({ kind: 'modern http', resources: [], on })
  await using gateway = await startGateway({ servers: { a: spec, b: spec }, options: { a: { credential: PER_USER } } })
  await using host = await modernHttp.connect(gateway, options)
  expect(await host.call('resources/list')).toMatchObject({ cacheScope: 'private' })
  expect(await host.call('resources/read', { uri: `${prefix}${URI}` })).toMatchObject({ contents: [{}], cacheScope: 'private' })
})

test('B155 the same for callers without credentials where a policy decides by what else is known of them', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', resources: [URI] }) },
    policy: { otherwise: 'allow' },
  })
  gateway.fake('a').on('resources/read', () => ({ ...HINTS, contents: [{ uri: URI, text: 'x' }] }))
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('resources/read', { uri: `a+${URI}` })).toMatchObject({ ttlMs: 60_000, cacheScope: 'private' })
})

test('B152 what was read with one credential is shown to nobody who comes with another', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
  const lists = { 'tools/list': () => ({ tools: [{ name: 'mine', inputSchema: {} }], ttlMs: 60_000, cacheScope: 'private' }) }
  await using a = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: [], on: lists }))
  const start = (token: string, early: boolean) =>
    startGateway({
      servers: {},
      fakes: new Map([['a', a]]),
      options: { a: { headers: { authorization: token } } },
      gateway: { listBudgetMs: 100 },
      stateDir,
      early,
    })
  {
    await using gateway = await start('Bearer one', false)
    await using host = await modernHttp.connect(gateway)
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__mine' }], cacheScope: 'private' })
  }
  a.on('server/discover', fake.never)
  for (const [token, expected] of [
    ['Bearer one', ['a__mine']],
    ['Bearer two', []],
  ] as const) {
    await using gateway = await start(token, true)
    await using host = await modernHttp.connect(gateway)
    expect(await toolNames(host)).toEqual(expected)
  }
  rmSync(stateDir, { recursive: true })
})

describe.each<FakeKind>(['modern stdio', 'legacy stdio'])('a %s server', (kind) => {
  test('B156 that announces a change outdates its list at once, until it has been read again', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['one'], prompts: ['p'] }) } })
    await using host = await modernHttp.connect(gateway)
    const a = gateway.fake('a')
    const released = Promise.withResolvers<void>()
    expect((await host.call('tools/list'))['ttlMs']).toBeGreaterThan(0)
    a.on('tools/list', async () => (await released.promise, { tools: a.offers.tools, ttlMs: 60_000, cacheScope: 'public' }))
    // What one pipe carries arrives in order: whoever has the completion knows of the change.
    a.on('completion/complete', () => {
      a.changed('tools')
      return { completion: { values: [] } }
    })
    const listen = host.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await listen.messages.until(() => true)
    await host.call('completion/complete', { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } })
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__one' }], ttlMs: 0 })
    a.offers.tools.push({ name: 'two', inputSchema: { type: 'object' } })
    released.resolve()
    await listen.messages.until(({ method }) => method === 'notifications/tools/list_changed')
    const list = await host.call('tools/list')
    expect(list['tools']).toHaveLength(2)
    expect(list['ttlMs']).toBeGreaterThan(0)
  })

  test('B156 a change that is announced while the list is read outdates what is read then', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['one'], prompts: ['p'] }) } })
    await using host = await modernHttp.connect(gateway)
    const a = gateway.fake('a')
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let reads = 0
    a.on('tools/list', async () => {
      await gates[reads++]?.promise
      return { tools: [{ name: `read${reads}`, inputSchema: { type: 'object' } }], ttlMs: 60_000, cacheScope: 'public' }
    })
    a.on('completion/complete', () => {
      a.changed('tools')
      return { completion: { values: [] } }
    })
    const change = () =>
      host.call('completion/complete', { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } })
    const listen = host.begin('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await listen.messages.until(() => true)
    await change()
    await vi.waitFor(() => expect(reads).toBe(1))
    await change()
    gates[0]!.resolve()
    const isChanged = ({ method }: Message): boolean => method === 'notifications/tools/list_changed'
    const first = await listen.messages.until(isChanged)
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__read1' }], ttlMs: 0 })
    gates[1]!.resolve()
    await listen.messages.until((message) => isChanged(message) && message !== first)
    const list = await host.call('tools/list')
    expect(list).toMatchObject({ tools: [{ name: 'a__read2' }] })
    expect(list['ttlMs']).toBeGreaterThan(0)
  })

  test('B154 B156 the same to hosts that run apps, whose lists have a lifetime of their own', async () => {
    const ui = 'io.modelcontextprotocol/ui'
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['one'], prompts: ['p'] }) } })
    const a = gateway.fake('a')
    let released = Promise.resolve()
    const hints = { ttlMs: 60_000, cacheScope: 'public' }
    a.on('tools/list', async ({ connection, message }) => {
      const declared = kind === 'modern stdio' ? metaOf(message)[KEY.capabilities] : connection.declared
      const isApps = JSON.stringify(declared).includes(ui)
      if (isApps) await released
      return { tools: [{ name: isApps ? 'panel' : 'text', inputSchema: { type: 'object' } }], ...hints }
    })
    await using host = await modernHttp.connect(gateway, { capabilities: { extensions: { [ui]: {} } } })
    const ttlMs = async (): Promise<unknown> => {
      const list = await host.call('tools/list')
      expect(list['tools']).toMatchObject([{ name: 'a__panel' }])
      return list['ttlMs']
    }
    expect(await ttlMs()).toBeGreaterThan(0)
    const gate = Promise.withResolvers<void>()
    released = gate.promise
    a.on('completion/complete', () => {
      a.changed('tools')
      return { completion: { values: [] } }
    })
    await host.call('completion/complete', { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } })
    expect(await ttlMs()).toBe(0)
    gate.resolve()
    await vi.waitFor(async () => expect(await ttlMs()).toBeGreaterThan(0), { timeout: 20_000, interval: 20 })
  })
})
