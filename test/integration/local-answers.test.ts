/** What the gateway answers by itself, on either side, and what one era no longer has (BRIDGING 3.12; 8.5). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import {
  everyLegacyTransport,
  everyModernTransport,
  legacyHttp,
  legacyPipe,
  legacySse,
  modernHttp,
} from '../support/fake-host.ts'
import type { Pending } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'

const offer = { tools: ['x'], resources: ['file:///r'] }
const servers = { a: fake.of({ kind: 'legacy stdio', ...offer }), b: fake.of({ kind: 'modern http', ...offer }) }
const KEYS = Object.keys(servers)

test.each(everyLegacyTransport)(
  'B100 a ping of a host on $name is answered {} at once, also while its calls are open, and reaches no server',
  async ({ connect }) => {
    await using gateway = await startGateway({ servers })
    for (const key of KEYS) gateway.fake(key).on('tools/call', fake.never)
    await using host = await connect(gateway)
    expect(await host.call('ping')).toEqual({})
    const open: Pending[] = []
    for (const key of KEYS) {
      open.push(host.begin('tools/call', { name: `${key}__x` }))
      await gateway.fake(key).until('tools/call')
    }
    expect(await host.call('ping', { _meta: { progressToken: 1 } }, { id: 'ping' })).toEqual({})
    for (const key of KEYS) expect(gateway.fake(key).all('ping')).toEqual([])
    for (const pending of open) pending.cancel()
  },
)

test.each(everyLegacyTransport)(
  'B100 a ping of a host on $name is answered although its calls are refused',
  async ({ connect }) => {
    await using gateway = await startGateway({ servers, hostLimits: { maxInFlight: 1 } })
    gateway.fake('a').on('tools/call', fake.never)
    await using host = await connect(gateway)
    const open = host.begin('tools/call', { name: 'a__x' })
    await gateway.fake('a').until('tools/call')
    const refused = host.begin('tools/list').response.then((answer) => JSON.stringify(answer), String)
    if (connect !== legacySse.connect) expect(await refused).toContain('listen.limits.in_flight (1)')
    else expect(await refused).toContain('was not answered')
    expect(await host.call('ping')).toEqual({})
    open.cancel()
  },
)

describe.each(['legacy http', 'legacy stdio', 'legacy sse'] as const)('a %s server', (kind) => {
  test('B100 its ping is answered {} on every link, between calls and during one, and reaches no host', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
    await using http = await legacyHttp.connect(gateway)
    await using pipe = await legacyPipe.connect(gateway)
    gateway.fake('a').on('tools/call', async (turn) => {
      expect((await turn.ask('ping')).result).toEqual({})
      return { content: [] }
    })
    for (const host of [http, pipe]) expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [] })
    for (const connection of gateway.fake('a').connections) expect((await connection.ask('ping')).result).toEqual({})
    for (const host of [http, pipe]) {
      await host.call('ping')
      expect(host.heard.entries).toEqual([])
    }
    expect(gateway.fake('a').connections).toHaveLength(3)
  })
})

test.each(everyModernTransport)(
  'B101 ping, logging/setLevel and resources/subscribe of a host on $name are answered -32601 and reach no server',
  async ({ connect }) => {
    await using gateway = await startGateway({ servers })
    await using host = await connect(gateway)
    const uri = 'a+file:///r'
    for (const [method, params] of [
      ['ping', {}],
      ['logging/setLevel', { level: 'info' }],
      ['resources/subscribe', { uri }],
      ['resources/unsubscribe', { uri }],
    ] as const)
      await expect(host.call(method, params)).rejects.toMatchObject({ code: -32601 })
    for (const key of KEYS) expect(gateway.fake(key).received).toEqual([])
  },
)

test.each(['legacy http', 'modern http'] as const)(
  'B101 at the bridge of a %s server, too, they do not exist for a modern host, and reach no server',
  async (kind) => {
    const spec = fake.of({ kind, ...offer, capabilities: { tools: {}, resources: { subscribe: true }, logging: {} } })
    await using gateway = await startGateway({ servers: { a: spec, b: fake.offering('other') } })
    await using host = await modernHttp.connect(gateway, { path: '/servers/a/mcp' })
    await host.call('tools/call', { name: 'x' })
    gateway.fake('a').forget()
    for (const [method, params] of [
      ['ping', {}],
      ['initialize', { protocolVersion: '2025-11-25', capabilities: {} }],
      ['logging/setLevel', { level: 'info' }],
      ['resources/subscribe', { uri: 'file:///r' }],
      ['resources/unsubscribe', { uri: 'file:///r' }],
    ] as const)
      await expect(host.call(method, params)).rejects.toMatchObject({ code: -32601, status: 404 })
    expect(gateway.fake('a').received).toEqual([])
  },
)
