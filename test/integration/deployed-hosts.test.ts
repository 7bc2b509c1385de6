/** What deployed hosts write that is legal or common, letter for letter (BRIDGING 3.22, 5.1). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, legacySse, modernHttp } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { KEY, request } from '../support/fakes/messages.ts'
import { messageOf, send } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'
import { toolsetOf } from '../support/toolsets.ts'

const start = (setup: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: fake.offering('x') }, ...setup })
const LIST = request(1, 'tools/list')
const INITIALIZE = request(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })

describe('headers', () => {
  test.each([
    ['application/json; charset=utf-8', 'application/json, text/event-stream'],
    ['Application/JSON;charset=UTF-8', 'text/event-stream,application/json'],
    ['application/json', '*/*'],
    ['application/json', 'application/*, text/*'],
    ['application/json', 'APPLICATION/JSON;q=0.9, Text/Event-Stream; q=0.1'],
    ['application/json', 'application/json, text/event-stream, application/xml;q=0.5'],
  ])('Content-Type %s and Accept %s are taken', async (type, accept) => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    const reply = await send(gateway.url, { headers: { ...host.headers(), 'content-type': type, accept }, body: LIST })
    expect([reply.status, (await messageOf(reply)).result]).toEqual([
      200,
      expect.objectContaining({ tools: expect.any(Array) as unknown }),
    ])
  })

  test('names of headers are taken in any case', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    const { 'mcp-session-id': id } = host.headers()
    for (const name of ['MCP-SESSION-ID', 'Mcp-Session-Id'])
      expect(
        (await send(gateway.url, { headers: { [name]: id, 'Mcp-Protocol-Version': '2025-11-25' }, body: LIST })).status,
      ).toBe(200)
  })

  test('3.22 notifications/cancelled without a session and without a version is 202', async () => {
    await using gateway = await start()
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    const reply = await send(gateway.url, { body })
    expect([reply.status, await reply.body]).toEqual([202, ''])
  })
})

describe('methods', () => {
  test('HEAD, PUT and OPTIONS are answered without a hang', async () => {
    await using gateway = await start()
    for (const [method, status] of [
      ['HEAD', 405],
      ['PUT', 405],
      ['OPTIONS', 204],
    ] as const)
      expect([method, (await send(gateway.url, { method })).status]).toEqual([method, status])
  })
})

describe('ids', () => {
  test.each(['0', '-1', '1.5', '1e3', '9007199254740993', '123456789012345678901234567890', '""', '"ä💡\\u00e9"', '"1"'])(
    '%s comes back as it was written',
    async (id) => {
      await using gateway = await start()
      await using host = await connectHttp(gateway)
      const body = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"a__x","arguments":{}}}`
      const reply = await send(gateway.url, { headers: host.headers(), body })
      expect(await reply.body).toContain(`"id":${id},`)
    },
  )

  test('3.22 a request that is refused with an HTTP status is named by its id', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    const refusals: readonly (readonly [number, Record<string, string>])[] = [
      [400, { ...host.headers(), 'mcp-protocol-version': '1999-01-01' }],
      [400, {}],
    ]
    for (const [status, headers] of refusals) {
      const reply = await send(gateway.url, { headers, body: request('of-mine', 'tools/list') })
      expect([reply.status, (await messageOf(reply)).id]).toEqual([status, 'of-mine'])
    }
  })

  test('B198 an ended session is told with the body that hosts look for: error -32001 without an id', async () => {
    await using gateway = await start()
    await using host = await connectHttp(gateway)
    await send(gateway.url, { method: 'DELETE', headers: host.headers() })
    for (const [method, body] of [['POST', request('of-mine', 'tools/list')], ['GET'], ['DELETE']] as const) {
      const headers = { ...host.headers(), accept: 'application/json, text/event-stream' }
      const reply = await send(gateway.url, { method, headers, ...(body !== undefined && { body }) })
      expect([method, reply.status, await messageOf(reply)]).toEqual([
        method,
        404,
        {
          jsonrpc: '2.0',
          id: null,
          error: { code: -32001, message: expect.stringMatching(/^Session not found\b/) as string },
        },
      ])
    }
  })

  test('errors for what cannot be read carry id null', async () => {
    await using gateway = await start()
    for (const body of ['{', '[]', '1', '{"jsonrpc":"2.0"}'])
      expect(await messageOf(await send(gateway.url, { body }))).toMatchObject({
        id: null,
        error: { code: expect.any(Number) as number },
      })
  })
})

describe('what PHP writes for an empty object, which is []', () => {
  const rows = [legacyHttp, legacyPipe]
  test.each(rows)('over $name as arguments reaches the server as it is, and as _meta stands for none', async ({ connect }) => {
    await using gateway = await start()
    await using host = await connect(gateway)
    const body = `{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"a__x","arguments":[],"_meta":[]}}`
    expect(await host.sendRaw(body, 71).raw).toContain('"result":')
    expect(gateway.fake('a').all('tools/call').at(-1)?.params['arguments']).toEqual([])
  })
  test.each(rows)('over $name as params is refused, as by the official SDKs, with the place', async ({ connect }) => {
    await using gateway = await start()
    await using host = await connect(gateway)
    const body = `{"jsonrpc":"2.0","id":72,"method":"tools/list","params":[]}`
    expect(JSON.parse(await host.sendRaw(body, 72).raw)).toMatchObject({
      id: 72,
      error: { code: -32600, message: 'params must be an object' },
    })
  })
})

test('B171 requestState and inputResponses pass between legacy peers', async () => {
  await using gateway = await start()
  for (const connect of [legacyHttp, legacyPipe, legacySse]) {
    await using host = await connect.connect(gateway)
    const members = { requestState: 'opaque', inputResponses: { q: { action: 'accept' } } }
    await host.call('tools/call', { name: 'a__x', arguments: {}, ...members })
    expect(gateway.fake('a').all('tools/call').at(-1)?.params).toMatchObject(members)
  }
})

test('3.22 a legacy host that sets no level gets log messages of a modern server', async () => {
  const log = { level: 'info', data: 'said' }
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        kind: 'modern http',
        tools: ['x'],
        on: { 'tools/call': (turn) => (turn.notify('notifications/message', log), { content: [] }) },
      }),
    },
  })
  await using host = await legacyHttp.connect(gateway)
  const pending = host.begin('tools/call', { name: 'a__x' })
  await pending.response
  expect(pending.messages.entries.map(({ method, params }) => [method, params?.['data']])).toEqual([
    ['notifications/message', 'said'],
  ])
})

describe('3.22 names of endpoints', () => {
  test('each is told from the others by serverInfo, in both eras; the merged one keeps its name', async () => {
    await using gateway = await start({ gateway: { toolsets: [toolsetOf({}, { name: 'review' })] } })
    const infoAt = async (path: string): Promise<unknown> =>
      ((await messageOf(await send(new URL(path, gateway.url), { body: INITIALIZE }))).result as { serverInfo: unknown })
        .serverInfo
    expect(await infoAt('/mcp')).toMatchObject({ name: 'trunkline', title: 'Trunkline' })
    expect(await infoAt('/mcp/review')).toMatchObject({ name: 'review-trunkline', title: 'Trunkline: review' })
    await using toolset = await modernHttp.connect(gateway, { toolset: 'review' })
    expect((await toolset.call('tools/list'))['_meta']).toMatchObject({ [KEY.serverInfo]: { name: 'review-trunkline' } })
    await using host = await modernHttp.connect(gateway)
    expect((await host.call('tools/list'))['_meta']).toMatchObject({ [KEY.serverInfo]: { name: 'trunkline' } })
  })
})
