/** Questions of legacy servers to legacy hosts, relayed on the stream of the call they belong to (BRIDGING 3.13–3.15; 8.5). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind, Handle } from '../support/fake-downstream.ts'
import { everyLegacyTransport, legacyHttp, legacyPipe, legacySse } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap, RpcError } from '../support/fakes/messages.ts'
import { PipeHost } from '../support/fakes/pipe-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'

const KINDS = ['legacy http', 'legacy stdio', 'legacy sse'] as const
const all = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: { listChanged: true } }
const CALL = { name: 'a__x' }
const visit = { mode: 'url', message: 'Go', url: 'https://127.0.0.1:1/%7euser/?a=%20b#x', elicitationId: '1' }
const said = (value: unknown): JsonMap => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })

/** A server whose tool asks one question and tells what it was answered. */
const asking =
  (method: string, params: JsonMap): Handle =>
  async (turn) => {
    const { result, error } = await turn.ask(method, params)
    return said(result ?? error)
  }
const start = (kind: FakeKind, handle: Handle, more: Partial<GatewaySetup> = {}) =>
  startGateway({ servers: { a: fake.of({ kind, tools: ['x', 'y'], on: { 'tools/call': handle } }) }, ...more })
const of = (host: Host, method: string): JsonMap[] =>
  host.heard.entries.filter((message) => message.method === method).map(({ params }) => params ?? {})

describe.each(KINDS)('a %s server', (kind) => {
  test.each(everyLegacyTransport)('B082 B083 B092 asks a host on $name on the stream of its call', async ({ connect, name }) => {
    const question = { message: 'm', requestedSchema: { type: 'object', properties: { n: { type: 'integer', minimum: 1 } } } }
    const answer = { action: 'accept', content: { n: 9_007_199_254_740_991 }, _meta: { k: 1 } }
    await using gateway = await start(kind, asking('elicitation/create', question))
    await using host = await connect(gateway, { capabilities: all })
    host.answer('elicitation/create', () => answer)
    const pending = host.begin('tools/call', CALL)
    expect((await pending.response).result).toEqual(said(answer))
    const isOwnStream = name === legacyHttp.name
    expect((isOwnStream ? pending.messages : host.heard).entries.map(({ params }) => params)).toEqual([
      { mode: 'form', ...question },
    ])
    expect((isOwnStream ? host.heard : pending.messages).entries).toEqual([])
  })

  test('B087 B088 B091 each session visits under an id of its own, and hears when its own visit is done', async () => {
    // Processes number from 1, so different sessions are asked under one id of the server.
    await using gateway = await start(kind, asking('elicitation/create', visit))
    const hosts = await Promise.all(
      [legacyHttp, legacyPipe, legacySse].map(({ connect }) => connect(gateway, { capabilities: all })),
    )
    const asked = new Map<Host, JsonMap>()
    for (const host of hosts) {
      host.answer('elicitation/create', (params) => {
        asked.set(host, params)
        return { action: 'accept' }
      })
      await host.call('tools/call', CALL)
    }
    const ids = hosts.map((host) => asked.get(host)?.['elicitationId'])
    expect(new Set([...ids, '1']).size).toBe(4)
    for (const host of hosts) expect(asked.get(host)).toMatchObject({ mode: 'url', message: 'Go', url: visit.url })
    const links = gateway
      .fake('a')
      .all('tools/call')
      .map(({ connection }) => connection)
    for (const [at, host] of hosts.entries()) {
      links[at]?.notify('notifications/elicitation/complete', { elicitationId: '1' })
      await host.heard.until(({ method }) => method === 'notifications/elicitation/complete')
      expect(hosts.map((each) => of(each, 'notifications/elicitation/complete'))).toEqual(
        hosts.map((_, of) => (of <= at ? [{ elicitationId: ids[of] }] : [])),
      )
    }
    for (const host of hosts) await host[Symbol.asyncDispose]()
  })

  test('B087 B088 B089 what -32042 asks a session to visit is known to it by ids of its own', async () => {
    await using gateway = await start(kind, (turn) => turn.fail(-32042, 'visit first', { elicitations: [visit], more: 1 }))
    await using host = await legacyHttp.connect(gateway, { capabilities: all })
    await using other = await legacyPipe.connect(gateway, { capabilities: all })
    const refused = (await host.call('tools/call', CALL).catch((error: unknown) => error)) as RpcError
    expect(refused).toMatchObject({
      code: -32042,
      message: 'visit first',
      data: { more: 1, elicitations: [{ ...visit, elicitationId: expect.stringMatching(/^[\w-]{22}$/) }] },
    })
    const { elicitations } = refused.data as { elicitations: [JsonMap] }
    const [{ elicitationId }] = elicitations
    await other.call('tools/call', { name: 'a__y' }).catch(() => undefined)
    gateway.fake('a').all('tools/call')[0]?.connection.notify('notifications/elicitation/complete', { elicitationId: '1' })
    await host.heard.until(({ method }) => method === 'notifications/elicitation/complete')
    expect(of(host, 'notifications/elicitation/complete')).toEqual([{ elicitationId }])
    expect(of(other, 'notifications/elicitation/complete')).toEqual([])
  })

  test.each([
    ['2025-11-25', { elicitation: {} }],
    ['2025-06-18', { elicitation: {} }],
  ])('B089 a host of %s that visits no URLs is told in words where to look, and gets no URL', async (revision, capabilities) => {
    await using gateway = await start(kind, (turn) => turn.fail(-32042, 'visit first', { elicitations: [visit] }))
    await using host = await legacyHttp.connect(gateway, { revision, capabilities })
    const result = await host.call('tools/call', CALL)
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('Go') }] })
    expect(JSON.stringify(result)).not.toContain(visit.url)
  })

  test('B099 changed roots are announced on the links of that session alone', async () => {
    await using gateway = await start(kind, () => said('ok'))
    await using one = await legacyHttp.connect(gateway, { capabilities: all })
    await using two = await legacyPipe.connect(gateway, { capabilities: all })
    for (const host of [one, two]) await host.call('tools/call', CALL)
    const links = gateway
      .fake('a')
      .all('tools/call')
      .map(({ connection }) => connection)
    for (const [at, host] of [one, two].entries()) {
      host.notify('notifications/roots/list_changed')
      const told = await gateway.fake('a').until('notifications/roots/list_changed')
      expect(told.connection).toBe(links[at])
      await host.call('tools/call', CALL)
      expect(gateway.fake('a').all('notifications/roots/list_changed')).toHaveLength(1)
      gateway.fake('a').forget()
    }
  })

  test('B028 B099 the one host of a pipe is asked for roots once it is initialized, and its changes are announced', async () => {
    await using gateway = await start(kind, () => said('ok'), { pipe: true })
    const answered = Promise.withResolvers<unknown>()
    gateway.fake('a').on('notifications/initialized', ({ connection }) => {
      void connection.ask('roots/list').then(({ result }) => answered.resolve(result))
    })
    const roots = { roots: [{ uri: 'file:///w' }] }
    await using host = new PipeHost('legacy', gateway.openPipe())
    host.answer('roots/list', () => roots)
    await host.call('initialize', { protocolVersion: '2025-11-25', capabilities: all })
    await gateway.fake('a').until('notifications/initialized')
    await gateway.ready()
    expect(host.heard.entries).toEqual([])
    host.notify('notifications/initialized')
    await host.heard.until(({ method }) => method === 'roots/list')
    await host.call('tools/call', CALL)
    expect(await answered.promise).toEqual(roots)
    host.notify('notifications/roots/list_changed')
    const { connection } = await gateway.fake('a').until('notifications/roots/list_changed')
    expect(connection).toBe(gateway.fake('a').all('tools/call')[0]?.connection)
  })
})
