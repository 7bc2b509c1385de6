/**
 * One server alone is a bridge (BRIDGING 3.21): each scenario is played once by a host that is connected to the server itself and once
 * through `/servers/<key>/mcp`; both peers must have seen the same.
 */
import { describe, expect, test } from 'vitest'
import { FakeDownstream, fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host, HostOptions, TransportRow } from '../support/fake-host.ts'
import { KEY, RpcError } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

interface Scene {
  readonly host: Host
  readonly server: FakeDownstream
}

interface Scenario {
  readonly name: string
  readonly rows: readonly TransportRow[]
  readonly spec?: FakeSpec
  readonly host?: HostOptions
  /** What the host saw, and what of the server is compared. */
  readonly play: (scene: Scene) => Promise<unknown>
}

const BOTH = [legacyHttp, modernHttp]
const RICH: FakeSpec = {
  tools: [{ name: 'zeta', description: 'last first', inputSchema: { type: 'object' }, 'x-vendor': { n: 1 } }, 'alpha'],
  prompts: ['greet'],
  resources: ['file:///a', 'note://b'],
  templates: ['file:///{path}'],
  instructions: 'Use zeta before alpha.',
}

/** The result of a request, or its error: what a host makes of it. */
const outcome = async (host: Host, method: string, params?: JsonMap): Promise<unknown> => {
  const { result, error } = await host.begin(method, params).response
  return withoutOwn(result ?? { error })
}

/** Without what every gateway may add: its place in `_meta` of results. */
const withoutOwn = (value: JsonMap): unknown => {
  const { _meta, ...rest } = value
  const kept = Object.entries((_meta ?? {}) as JsonMap).filter(([key]) => !key.startsWith('dev.trunkline/'))
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) }
}

/** What reached the server: ids and progress tokens are each link's own. */
const seen = ({ message }: { message: Message }): unknown => {
  const { _meta, ...params } = message.params ?? {}
  return { method: message.method, params, meta: Object.keys(_meta ?? {}).includes('com.example/trace') }
}

const scenarios: readonly Scenario[] = [
  {
    name: 'the server introduces itself: identity, instructions, capabilities and what is not among them',
    rows: BOTH,
    spec: { tools: ['only'], capabilities: { tools: {}, experimental: { 'com.example/x': { y: 1 } } }, instructions: 'Alone.' },
    // How long the answer may be kept, and by whom, is the gateway's to say: it knows who asks.
    play: ({ host: { welcome } }) => Promise.resolve(withoutOwn({ ...welcome, ttlMs: 0, cacheScope: 'private' })),
  },
  {
    name: 'lists come as the server writes them, in its order and with its own pages',
    rows: BOTH,
    spec: {
      ...RICH,
      on: {
        'tools/list': ({ params }) =>
          params['cursor'] === 'page 2'
            ? { tools: [{ name: 'beta', inputSchema: { type: 'object' } }], ttlMs: 5, cacheScope: 'private' }
            : {
                tools: [{ name: 'zeta', inputSchema: { type: 'object' } }],
                nextCursor: 'page 2',
                ttlMs: 5,
                cacheScope: 'private',
              },
      },
    },
    play: async ({ host }) => [
      await outcome(host, 'tools/list'),
      await outcome(host, 'tools/list', { cursor: 'page 2' }),
      await outcome(host, 'resources/list'),
      await outcome(host, 'resources/templates/list'),
      await outcome(host, 'prompts/list'),
    ],
  },
  {
    name: 'a list that the server does not have is refused by the server',
    rows: BOTH,
    spec: {
      tools: ['only'],
      capabilities: { tools: {} },
      on: {
        'prompts/list': () => {
          throw new RpcError({ code: -32601, message: 'no prompts here', data: { at: 'server' } })
        },
      },
    },
    play: ({ host }) => outcome(host, 'prompts/list'),
  },
  {
    name: 'names that no list shows are the server’s to answer',
    rows: BOTH,
    spec: {
      ...RICH,
      on: {
        'tools/call': ({ params }) => {
          if (params['name'] === 'hidden') return { content: [{ type: 'text', text: 'found' }] }
          throw new RpcError({ code: -32602, message: `no tool ${String(params['name'])}` })
        },
        'prompts/get': () => {
          throw new RpcError({ code: -32602, message: 'no such prompt' })
        },
        'resources/read': () => {
          throw new RpcError({ code: 4711, message: 'not here', data: { uri: 'nowhere://x' } })
        },
      },
    },
    play: async ({ host }) => [
      await outcome(host, 'tools/call', { name: 'hidden' }),
      await outcome(host, 'tools/call', { name: 'unknown', arguments: { a: 1 } }),
      await outcome(host, 'prompts/get', { name: 'unknown' }),
      await outcome(host, 'resources/read', { uri: 'nowhere://x' }),
    ],
  },
  {
    name: 'methods of a vendor reach the server, and its answers the host',
    rows: BOTH,
    spec: {
      ...RICH,
      on: {
        'com.example/sum': ({ params }) => ({ sum: 3, of: params['of'] }),
        'com.example/fail': () => {
          throw new RpcError({ code: -32050, message: 'vendor error', data: { why: 'because' } })
        },
      },
    },
    play: async ({ host, server }) => [
      await outcome(host, 'com.example/sum', { of: [1, 2] }),
      await outcome(host, 'com.example/fail'),
      server.all('com.example/sum').map(seen),
    ],
  },
  {
    name: 'errors keep their code, words and data',
    rows: BOTH,
    spec: {
      ...RICH,
      on: {
        'tools/call': ({ params }) => {
          const { code } = params['arguments'] as { code: number }
          throw new RpcError({ code, message: `error ${code}`, data: { code } })
        },
      },
    },
    play: ({ host }) =>
      Promise.all(
        [-32600, -32601, -32602, -32603, -32000, -32001, -1, 17].map((code) =>
          outcome(host, 'tools/call', { name: 'alpha', arguments: { code } }),
        ),
      ),
  },
  {
    name: 'notifications of a vendor pass in both directions',
    rows: BOTH,
    spec: { ...RICH, on: { 'tools/call': (turn) => (turn.notify('com.example/told', { n: 1 }), { content: [] }) } },
    play: async ({ host, server }) => {
      host.notify('notifications/com.example/hello', { from: 'host' })
      const arrived = await server.until('notifications/com.example/hello')
      const pending = host.begin('tools/call', { name: 'alpha' })
      await pending.response
      return [seen(arrived), pending.messages.entries.map(({ method, params }) => ({ method, params }))]
    },
  },
  {
    name: 'requests of a vendor reach the host, and its answers the server',
    rows: [legacyHttp],
    spec: {
      ...RICH,
      on: {
        'tools/call': async (turn) => {
          const { result } = await turn.ask('com.example/ask', { q: 1 })
          return { content: [], structuredContent: { answered: result } }
        },
      },
    },
    play: async ({ host }) => {
      host.answer('com.example/ask', (params) => ({ a: 2, params }))
      return outcome(host, 'tools/call', { name: 'alpha' })
    },
  },
  {
    name: 'log messages keep their logger, elicitations their words and members',
    rows: [legacyHttp],
    host: { capabilities: { elicitation: {} } },
    spec: {
      ...RICH,
      on: {
        'tools/call': async (turn) => {
          turn.notify('notifications/message', { level: 'error', logger: 'db', data: { n: 1 } })
          const { result } = await turn.ask('elicitation/create', {
            message: 'Which?',
            requestedSchema: { type: 'object', properties: {} },
          })
          return { content: [], structuredContent: { result } }
        },
      },
    },
    play: async ({ host }) => {
      host.answer('elicitation/create', (params) => ({ action: 'accept', content: {}, params }))
      const pending = host.begin('tools/call', { name: 'alpha' })
      const { result } = await pending.response
      return [withoutOwn(result ?? {}), pending.messages.entries.map(({ method, params }) => ({ method, params }))]
    },
  },
  {
    name: 'a host that declared nothing is asked all the same, and answers for itself',
    rows: [legacyHttp],
    spec: {
      ...RICH,
      on: {
        'tools/call': async (turn) => {
          const { result } = await turn.ask('roots/list', {})
          return { content: [], structuredContent: { result } }
        },
      },
    },
    play: ({ host }) => {
      host.answer('roots/list', () => ({ roots: [{ uri: 'file:///home' }] }))
      return outcome(host, 'tools/call', { name: 'alpha' })
    },
  },
  {
    name: 'the log level is the server’s to take or to refuse',
    rows: [legacyHttp],
    spec: {
      ...RICH,
      on: {
        'logging/setLevel': ({ params }) => {
          if (params['level'] === 'debug') throw new RpcError({ code: -32602, message: 'not so loud' })
          return {}
        },
      },
    },
    play: async ({ host, server }) => [
      await outcome(host, 'logging/setLevel', { level: 'debug' }),
      await outcome(host, 'logging/setLevel', { level: 'error' }),
      server.all('logging/setLevel').map(seen),
    ],
  },
  {
    name: 'list changes are told as the server announces them, whether the list differs or not',
    rows: [legacyHttp],
    spec: {
      ...RICH,
      on: { 'tools/call': (turn) => (turn.connection.notify('notifications/tools/list_changed'), { content: [] }) },
    },
    play: async ({ host }) => {
      await outcome(host, 'tools/call', { name: 'alpha' })
      const { method } = await host.heard.until((message) => message.method === 'notifications/tools/list_changed')
      return method
    },
  },
  {
    name: 'the host is who the server meets',
    rows: BOTH,
    spec: { ...RICH, on: { 'tools/call': () => ({ content: [] }) } },
    play: async ({ host, server }) => {
      await outcome(host, 'tools/call', { name: 'alpha', _meta: { 'com.example/trace': 1 } })
      const call = server.all('tools/call')[0]
      const meta = (call?.params['_meta'] ?? {}) as JsonMap
      const own = server.all('initialize').map(({ params }) => params['clientInfo'])
      return [own.length === 0 ? meta[KEY.clientInfo] : own.at(-1), call && seen(call)]
    },
  },
  {
    name: 'changed roots, cancellations with their reasons and progress reach the server',
    rows: [legacyHttp],
    host: { capabilities: { roots: { listChanged: true } } },
    // What it says opens the stream of a call that is never answered.
    spec: { ...RICH, on: { 'tools/call': (turn) => turn.notify('notifications/message', { level: 'info', data: 'working' }) } },
    play: async ({ host, server }) => {
      host.notify('notifications/roots/list_changed')
      await server.until('notifications/roots/list_changed')
      const pending = host.begin('tools/call', { name: 'alpha' })
      await server.until('tools/call')
      host.notify('notifications/cancelled', { requestId: pending.id, reason: 'tired', _meta: { 'com.example/trace': 1 } })
      const { params } = await server.until('notifications/cancelled')
      return [params['reason'], params['_meta']]
    },
  },
]

const cases = scenarios.flatMap((scenario) =>
  scenario.rows.map((row) => ({ ...scenario, row, title: `${row.name}: ${scenario.name}` })),
)

const directly = (server: FakeDownstream): TestGateway => {
  const { address } = server
  if (!('url' in address)) throw new Error('only servers over HTTP are met directly')
  return { url: address.url } as TestGateway
}

describe('B277 a bridge', () => {
  test.each(cases)('$title', async ({ row, spec = RICH, host: options = {}, play }) => {
    const kind = row.era === 'modern' ? ('modern http' as const) : ('legacy http' as const)
    const met = await (async () => {
      await using server = await FakeDownstream.start(fake.of({ ...spec, kind }))
      await using host = await row.connect(directly(server), options)
      return await play({ host, server })
    })()
    await using gateway = await startGateway({ servers: { a: fake.of({ ...spec, kind }), b: fake.offering('other') } })
    await using host = await row.connect(gateway, { ...options, path: '/servers/a/mcp' })
    const bridged = await play({ host, server: gateway.fake('a') })
    expect(bridged).toEqual(met)
  })
})

describe('what a server is told of who asks', () => {
  const HTTP_KINDS = ['legacy http', 'legacy sse', 'modern http'] as const
  const spec = (kind: (typeof HTTP_KINDS)[number]): FakeSpec =>
    fake.of({ kind, tools: ['x'], on: { 'tools/call': () => ({ content: [] }) } })
  /** Who called the tool, as the server was told in its handshake or with the call, and who stood between. */
  const introductionOf = async (server: FakeDownstream): Promise<unknown> => {
    const { connection, params } = await server.until('tools/call')
    // A modern server is told with the call; it was only asked for its other era, which it refused.
    const handshake =
      server.era === 'legacy' ? server.all('initialize').find((turn) => turn.connection === connection) : undefined
    const meta = ((handshake ?? { params }).params['_meta'] ?? {}) as JsonMap
    return { client: handshake?.params['clientInfo'] ?? meta[KEY.clientInfo], via: meta['dev.trunkline/via'] }
  }
  const OURS: unknown = expect.objectContaining({ name: 'trunkline', version: expect.any(String) as string })

  test.each(HTTP_KINDS.flatMap((kind) => [legacyHttp, modernHttp].map((row) => ({ kind, row, name: row.name }))))(
    'B277 a $kind server at a bridge meets the host of $name, and Trunkline in _meta and User-Agent',
    async ({ kind, row }) => {
      await using gateway = await startGateway({ servers: { a: spec(kind), b: fake.offering('other') } })
      await using host = await row.connect(gateway, { path: '/servers/a/mcp' })
      await host.call('tools/call', { name: 'x' })
      expect(await introductionOf(gateway.fake('a'))).toEqual({ client: { name: 'fake-host', version: '1' }, via: OURS })
      expect((await gateway.fake('a').until('tools/call')).headers['user-agent']).toMatch(/^trunkline\/\d/)
    },
  )

  test.each(HTTP_KINDS)('B277 a %s server at the merged endpoint meets Trunkline alone', async (kind) => {
    await using gateway = await startGateway({ servers: { a: spec(kind), b: fake.offering('other') } })
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__x' })
    const { client, via } = (await introductionOf(gateway.fake('a'))) as JsonMap
    expect(client).toEqual(OURS)
    expect(via).toBeUndefined()
    const agents = gateway.fake('a').received.map(({ headers }) => headers['user-agent'])
    expect(agents.length).toBeGreaterThan(0)
    for (const agent of agents) expect(agent).toMatch(/^trunkline\/\d/)
  })

  test('B277 a configured User-Agent wins, however it is spelled', async () => {
    const options = { a: { headers: { 'User-Agent': 'mine/1' } } }
    await using gateway = await startGateway({ servers: { a: spec('modern http'), b: fake.offering('other') }, options })
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__x' })
    expect((await gateway.fake('a').until('tools/call')).headers['user-agent']).toBe('mine/1')
  })
})

test.each(['modern http', 'modern stdio'] as const)(
  'B106 B277 a legacy host that is the first at the bridge of a %s server gets lists in the words of its era',
  async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }), b: fake.offering('other') } })
    await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
    expect(Object.keys(await host.call('tools/list'))).toEqual(['tools'])
  },
)

test('B087 B277 a person is sent to a URL at the bridge of a modern server under an id of ours, which the server does not know', async () => {
  const on: FakeSpec['on'] = {
    'tools/call': ({ params }) =>
      params['inputResponses'] === undefined
        ? {
            resultType: 'input_required',
            inputRequests: {
              k: { method: 'elicitation/create', params: { mode: 'url', message: 'm', url: 'https://x.example' } },
            },
            requestState: 's',
          }
        : { content: [] },
  }
  const servers = { a: fake.of({ kind: 'modern http', tools: ['x'], on }), b: fake.offering('other') }
  await using gateway = await startGateway({ servers })
  await using host = await legacyHttp.connect(gateway, {
    path: '/servers/a/mcp',
    capabilities: { elicitation: { form: {}, url: {} } },
  })
  const asked: JsonMap[] = []
  host.answer('elicitation/create', (params) => {
    asked.push(params)
    return { action: 'accept' }
  })
  expect(await host.call('tools/call', { name: 'x' })).toEqual({ content: [] })
  expect(asked).toEqual([
    { mode: 'url', message: 'm', url: 'https://x.example', elicitationId: expect.stringMatching(/./) as string },
  ])
})

test.each(['server/discover', 'subscriptions/listen', 'tasks/update'])(
  'B189 %s does not exist for a legacy host at a bridge',
  async (method) => {
    for (const kind of ['legacy http', 'modern http'] as const) {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }), b: fake.offering('other') } })
      await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
      await expect(host.call(method, { notifications: {} })).rejects.toMatchObject({
        code: -32601,
        message: `Method not found: ${method}`,
      })
    }
  },
)

test.each([{}, { elicitation: {} }])(
  'B277 a host at a bridge that declares %j gets the log messages that its server sends unasked',
  async (capabilities) => {
    const on: FakeSpec['on'] = {
      'tools/call': (turn) => {
        turn.notify('notifications/message', { level: 'debug', data: 'unasked' })
        return { content: [] }
      },
    }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: ['x'], on }), b: fake.offering('other') },
    })
    await using host = await modernHttp.connect(gateway, { path: '/servers/a/mcp', capabilities })
    const { messages, response } = host.begin('tools/call', { name: 'x' })
    await response
    expect(messages.entries).toMatchObject([{ method: 'notifications/message', params: { level: 'debug', data: 'unasked' } }])
  },
)

test.each([
  [-32601, 404, 404],
  // The method is known, and the name in it is not.
  [-32601, 200, 200],
  [-32602, 400, 400],
  [-32602, 200, 200],
  // Says something about an HTTP server, which the gateway is not.
  [-32602, 500, 200],
])('an error %i that a modern server sends with HTTP %i has status %i for a modern host', async (code, sent, status) => {
  const server = fake.of({
    kind: 'modern http',
    tools: ['x'],
    on: {
      'tools/call': ({ id, response }) => {
        const error = { code, message: 'no' }
        response?.writeHead(sent, { 'content-type': 'application/json' })
        response?.end(JSON.stringify({ jsonrpc: '2.0', id, error }))
        return undefined
      },
    },
  })
  await using gateway = await startGateway({ servers: { a: server } })
  await using host = await modernHttp.connect(gateway, { path: '/servers/a/mcp' })
  await expect(host.call('tools/call', { name: 'x' })).rejects.toMatchObject({ code, status })
})
