/** MCP Apps: hosts that run them see what servers show to such hosts, and nobody else does (BRIDGING 3.16). */
import { describe, expect, test } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeKind, FakeSpec } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp, toolNames } from '../support/fake-host.ts'
import { KEY, metaOf } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import type { Received } from '../support/fakes/turn.ts'
import { startGateway } from '../support/gateway.ts'

const UI = 'io.modelcontextprotocol/ui'
const able = { capabilities: { extensions: { [UI]: { mimeTypes: ['text/html;profile=mcp-app'] } } } }

const hasUi = ({ message, connection }: Received): boolean => {
  const declared = connection.era === 'modern' ? (metaOf(message)[KEY.capabilities] as JsonMap) : connection.declared
  return (declared?.['extensions'] as JsonMap | undefined)?.[UI] !== undefined
}

/** Lists `panel` with its template to hosts that run apps, and `table` to all others. */
const appServer = (kind: FakeKind, capabilities: JsonMap = { tools: { listChanged: true } }): FakeSpec => {
  const text = { name: 'table', inputSchema: { type: 'object' } }
  const panel = { ...text, name: 'panel', _meta: { ui: { resourceUri: 'ui://panel', visibility: ['model', 'app'] } } }
  return fake.of({
    kind,
    capabilities,
    on: {
      'tools/list': (turn) => ({
        tools: [hasUi(turn) ? panel : text],
        ...(kind.startsWith('modern') && { ttlMs: 0, cacheScope: 'private' }),
      }),
      'tools/call': (turn) => ({ content: [{ type: 'text', text: `${String(turn.params['name'])} ${hasUi(turn)}` }] }),
    },
  })
}

test('B131 an update that a legacy server reports on every link reaches a host once, also while another host runs apps', async () => {
  const spec = appServer('legacy http', { tools: { listChanged: true }, resources: { subscribe: true } })
  await using gateway = await startGateway({ servers: { a: { ...spec, resources: ['file:///r'] } } })
  const server = gateway.fake('a')
  await using modern = await modernHttp.connect(gateway)
  const uri = 'a+file:///r'
  const { messages } = modern.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
  await messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
  await using host = await legacyHttp.connect(gateway, able)
  expect(await toolNames(host)).toEqual(['a__panel'])
  const link = server.connections.find(({ declared }) => declared?.['extensions'] !== undefined)
  server.on('tools/list', () => ({ tools: [{ name: 'later', inputSchema: { type: 'object' } }] }))
  host.heard.clear()
  link?.notify('notifications/resources/updated', { uri: 'file:///r' })
  link?.notify('notifications/tools/list_changed')
  await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
  server.connections[0]?.notify('notifications/resources/updated', { uri: 'file:///r' })
  const isUpdate = ({ method }: { method?: string }): boolean => method === 'notifications/resources/updated'
  await messages.until(isUpdate)
  await modern.call('tools/list')
  expect(messages.entries.filter(isUpdate)).toMatchObject([{ params: { uri } }])
})

describe.each(everyFakeKind)('a server on %s', (kind) => {
  test.each(everyTransport)('B044 shows its apps to a host on $name that runs apps, and to no other', async ({ connect }) => {
    await using gateway = await startGateway({ servers: { a: appServer(kind) } })
    await using plain = await connect(gateway)
    expect(await toolNames(plain)).toEqual(['a__table'])
    expect(gateway.running.fleet.downstreams$.value[0]?.linkCount).toBe(1)
    await using host = await connect(gateway, able)
    expect(await toolNames(host)).toEqual(['a__panel'])
    expect(await toolNames(plain)).toEqual(['a__table'])
    const { content } = await host.call('tools/call', { name: 'panel' })
    expect(content).toMatchObject([{ text: 'panel true' }])
    expect(gateway.log.entries.map(({ facts }) => facts)).toContainEqual(
      expect.objectContaining({ rule: 'B171', server: 'a', name: 'panel', exposed: 'a__panel' }),
    )
  })

  test('its changed list reaches hosts that run apps, whichever link it is told on', async () => {
    await using gateway = await startGateway({ servers: { a: appServer(kind) } })
    await using host = await legacyHttp.connect(gateway, able)
    expect(await toolNames(host)).toEqual(['a__panel'])
    gateway.fake('a').on('tools/list', () => ({ tools: [{ name: 'later', inputSchema: { type: 'object' } }] }))
    host.heard.clear()
    gateway.fake('a').changed('tools')
    for (let names: unknown[] = []; !names.includes('a__later'); names = await toolNames(host))
      await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(await toolNames(host)).toEqual(['a__later'])
  })

  test('with apps switched off nobody is told of any, the server included', async () => {
    await using gateway = await startGateway({ servers: { a: appServer(kind) }, options: { a: { apps: false } } })
    for (const { connect } of [legacyHttp, modernHttp]) {
      await using host = await connect(gateway, able)
      expect(await toolNames(host)).toEqual(['a__table'])
      expect((await host.call('tools/call', { name: 'a__table' }))['content']).toMatchObject([{ text: 'table false' }])
      expect(JSON.stringify(host.welcome)).not.toContain(UI)
    }
  })
})

const settings = { mimeTypes: ['text/html;profile=mcp-app'], 'x/y': 1 }
const declaring = (kind: FakeKind): FakeSpec => appServer(kind, { tools: {}, extensions: { [UI]: settings } })
const template = fake.offering({ name: 't', inputSchema: { type: 'object' }, _meta: { 'ui/resourceUri': 'ui://t' } })

test.each([
  ['the settings of the one server that declares it', { a: declaring('legacy http'), b: fake.offering('x') }, settings],
  ['the same of a modern server', { a: declaring('modern http') }, settings],
  ['no settings where several do', { a: declaring('legacy http'), b: declaring('modern http') }, {}],
  ['no settings where a tool has a template', { a: template }, {}],
  ['nothing where there are no apps', { a: fake.offering('x') }, undefined],
])('B043 the extension is declared to hosts with %s', async (_, servers, expected) => {
  await using gateway = await startGateway({ servers })
  for (const { connect } of everyTransport) {
    await using host = await connect(gateway)
    const { extensions } = host.welcome['capabilities'] as { extensions?: JsonMap }
    expect(extensions?.[UI]).toEqual(expected)
  }
})
