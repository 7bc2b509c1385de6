/** What the gateway answers by itself, on either side, and what one era no longer has (BRIDGING 3.12; 8.5). */
import { describe, expect, test } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import { everyLegacyTransport, everyModernTransport, legacyHttp, legacyPipe } from '../support/fake-host.ts'
import type { Pending } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'

const everyKind = Object.fromEntries(
  everyFakeKind.map((kind, at) => [`s${at}`, fake.of({ kind, tools: ['x'], resources: ['file:///r'] })]),
)

test.each(everyLegacyTransport)(
  'B100 a ping of a host on $name is answered {} at once, also while its call is open and servers hang, and reaches no server',
  async ({ connect }) => {
    await using gateway = await startGateway({ servers: { ...everyKind, hung: fake.offering('x') }, early: true })
    for (const key of Object.keys(everyKind)) gateway.fake(key).on('tools/call', fake.never)
    gateway.fake('hung').on('initialize', fake.never)
    await using host = await connect(gateway)
    expect(await host.call('ping')).toEqual({})
    const open: Pending[] = []
    for (const key of Object.keys(everyKind)) {
      open.push(host.begin('tools/call', { name: `${key}__x` }))
      await gateway.fake(key).until('tools/call')
    }
    expect(await host.call('ping', { _meta: { progressToken: 1 } }, { id: 'ping' })).toEqual({})
    for (const key of [...Object.keys(everyKind), 'hung']) expect(gateway.fake(key).all('ping')).toEqual([])
    for (const pending of open) pending.cancel()
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
    await using gateway = await startGateway({ servers: everyKind })
    await using host = await connect(gateway)
    const uri = 's0+file:///r'
    for (const [method, params] of [
      ['ping', {}],
      ['logging/setLevel', { level: 'info' }],
      ['resources/subscribe', { uri }],
      ['resources/unsubscribe', { uri }],
    ] as const)
      await expect(host.call(method, params)).rejects.toMatchObject({ code: -32601 })
    for (const key of Object.keys(everyKind)) expect(gateway.fake(key).received).toEqual([])
  },
)
