/** What apps name without its server, and what of them must not change on the way (BRIDGING 3.16; 8.10). */
import { describe, expect, test } from 'vitest'
import { describes, fake } from '../support/fake-downstream.ts'
import type { FakeKind, FakeSpec } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import { KEY } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

const UI = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'], own: 1 } }
const NAMING = ['tools/call', 'resources/read']
const able = { capabilities: { extensions: UI } }
const META = '{"ui" : {"csp":{"connectDomains":["https://a.example","ui://panel"]}, "prefersBorder":true,"n":1.0}}'
const HTML = '"<a href=\\u0027ui://panel\\u0027>a+file:///r<\\/a>\\n<script>call(\\"refresh\\")</script>"'
const OPEN =
  '{"name":"open","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://panel" ,"visibility":["model","app"],"x":1.0}}}'

const app = (kind: FakeKind = 'legacy http'): FakeSpec =>
  fake.of({
    kind,
    tools: [JSON.parse(OPEN) as JsonMap, { name: 'refresh', inputSchema: {}, _meta: { ui: { visibility: ['app'] } } }],
    resources: [],
    on: {
      'resources/read': (turn) => {
        const complete = kind.startsWith('modern') ? '"resultType":"complete","ttlMs":0,"cacheScope":"private",' : ''
        const content = `{"uri":${JSON.stringify(turn.params['uri'])},"mimeType":"text/html;profile=mcp-app","text":${HTML},"_meta":${META}}`
        turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":{${complete}"contents":[${content}]}}`)
      },
      'tools/list': (turn) => {
        const complete = kind.startsWith('modern') ? ',"resultType":"complete","ttlMs":0,"cacheScope":"private"' : ''
        const refresh = '{"name":"refresh","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}'
        turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":{"tools":[${OPEN},${refresh}]${complete}}}`)
      },
    },
  })

describe.each(everyTransport)('over $name', ({ connect }) => {
  test.each(['legacy http', 'modern stdio'] as const)(
    'B169 B170 a template of a %s server that no list holds is read as it is, HTML and _meta.ui',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: app(kind), b: fake.offering('x') } })
      await using host = await connect(gateway, able)
      const listed = await host.begin('tools/list').raw
      expect(listed).toContain(OPEN.replace('"open"', '"a__open"').replace('ui://panel', 'ui://~a/panel'))
      expect((await host.call('resources/list'))['resources']).toEqual([])
      for (const uri of ['ui://~a/panel', 'ui://panel', 'ui://~a/never/named']) {
        const read = await host.begin('resources/read', { uri }).raw
        expect(read).toContain(
          `"contents":[{"uri":"${uri}","mimeType":"text/html;profile=mcp-app","text":${HTML},"_meta":${META}}]`,
        )
      }
      const uris = gateway
        .fake('a')
        .all('resources/read')
        .map(({ params }) => params['uri'])
      expect(uris).toEqual(['ui://panel', 'ui://panel', 'ui://never/named'])
    },
  )

  test('B171 a bare name is called where one server alone has it for its apps, and by hosts with apps alone', async () => {
    await using gateway = await startGateway({ servers: { a: app(), b: fake.offering('refresh') } })
    await using host = await connect(gateway, able)
    await using plain = await connect(gateway)
    await host.call('tools/call', { name: 'refresh', arguments: { n: 1 } })
    expect((await gateway.fake('a').until('tools/call')).params).toMatchObject({ name: 'refresh', arguments: { n: 1 } })
    for (const [from, params] of [
      [plain, { name: 'refresh' }],
      [host, { name: 'a_refresh' }],
    ] as const)
      await expect(from.call('tools/call', params)).rejects.toMatchObject({ code: -32602 })
    await expect(plain.call('resources/read', { uri: 'ui://panel' })).rejects.toMatchObject({ data: { uri: 'ui://panel' } })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
    for (const method of NAMING) expect(gateway.fake('b').all(method)).toEqual([])
  })

  test('B171 a bare name that two servers have for their apps is unknown', async () => {
    await using gateway = await startGateway({ servers: { a: app(), b: app() } })
    await using host = await connect(gateway, able)
    await expect(host.call('tools/call', { name: 'refresh' })).rejects.toMatchObject({ code: -32602 })
    for (const key of ['a', 'b']) expect(gateway.fake(key).all('tools/call')).toEqual([])
  })
})

test.each([legacyHttp, modernHttp])(
  'B265 over $name a bare name or URI leads to no server outside the view',
  async ({ connect }) => {
    await using gateway = await startGateway({ servers: { a: app(), b: fake.of({ tools: ['x'], resources: [] }) } })
    await using host = await connect(gateway, { ...able, path: '/servers/b/mcp' })
    gateway.fake('b').on('resources/read', (turn) => turn.fail(-32002, 'no'))
    gateway.fake('b').on('tools/call', (turn) => turn.fail(-32602, 'no'))
    await expect(host.call('tools/call', { name: 'refresh' })).rejects.toMatchObject({ code: -32602 })
    await expect(host.call('resources/read', { uri: 'ui://panel' })).rejects.toBeDefined()
    for (const method of NAMING) expect(gateway.fake('a').all(method)).toEqual([])
  },
)

describe.each([legacyHttp, modernHttp])('B044 the apps extension of a host over $name', ({ connect, era }) => {
  test.each(['legacy http', 'legacy stdio'] as const)(
    'is declared to a %s server, others only between legacy peers',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: app(kind) } })
      await using host = await connect(gateway, { capabilities: { roots: {}, extensions: { ...UI, 'example.com/own': {} } } })
      await host.call('tools/call', { name: 'a__open' })
      expect((await gateway.fake('a').until('tools/call')).connection.declared).toEqual({
        roots: {},
        extensions: era === 'legacy' ? { ...UI, 'example.com/own': {} } : UI,
      })
    },
  )
  test('is declared to a modern server', async () => {
    await using gateway = await startGateway({ servers: { a: app('modern http') } })
    await using host = await connect(gateway, able)
    await host.call('tools/call', { name: 'a__open' })
    expect(describes(await gateway.fake('a').until('tools/call'))[KEY.capabilities]).toEqual({ extensions: UI })
  })
})
