/** Near our own limits new work is refused in two steps, and what is under way goes on. */
import { describe, expect, test } from 'vitest'
import type { Shedding } from '../../../src/host/limits/overload.ts'
import { fake } from '../../support/fake-downstream.ts'
import { everyLegacyTransport, legacyHttp, legacySse, modernHttp } from '../../support/fake-host.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startGateway } from '../../support/gateway.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { overloaded } from '../../support/overloaded.ts'

const shed = ({ running }: TestGateway, shedding: Shedding): void => {
  overloaded(running.context.overload, { shedding, reason: 'a test' })
}
const answering = fake.of({ kind: 'modern http', tools: ['echo'] })
const call = { name: 'a__echo', arguments: {} }

describe('F-30 while new sessions are refused', () => {
  test.each([legacyHttp, legacySse])('over $name none is opened, and those that are there are served', async ({ connect }) => {
    await using gateway = await startGateway({ servers: { a: answering } })
    await using host = await connect(gateway)
    shed(gateway, 1)
    const path = connect === legacySse.connect ? '/sse' : '/mcp'
    const refused = await send(new URL(path, gateway.url), {
      method: path === '/sse' ? 'GET' : 'POST',
      headers: { accept: 'application/json, text/event-stream' },
      body: path === '/sse' ? undefined : JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }),
    })
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1'])
    expect(await host.call('tools/call', call)).toMatchObject({ content: [{ text: '{}' }] })
  })

  test('modern hosts, which have none, are served', async () => {
    await using gateway = await startGateway({ servers: { a: answering } })
    shed(gateway, 1)
    await using host = await modernHttp.connect(gateway)
    expect(await host.call('tools/call', call)).toMatchObject({ content: [{ text: '{}' }] })
  })
})

describe('F-30 while new calls are refused', () => {
  test.each([...everyLegacyTransport.filter(({ name }) => name !== 'legacy stdio'), modernHttp])(
    'over $name a call ends with 503 and reaches no server; the one under way is answered; /healthz is well',
    async ({ connect, name }) => {
      const release = Promise.withResolvers<void>()
      const held = fake.of({
        kind: 'modern http',
        tools: ['echo'],
        on: { 'tools/call': async () => (await release.promise, { content: [] }) },
      })
      await using gateway = await startGateway({ servers: { a: held } })
      await using host = await connect(gateway)
      const before = host.begin('tools/call', call)
      await gateway.fake('a').until('tools/call')
      shed(gateway, 2)
      const after = host.begin('tools/call', call)
      if (name !== 'HTTP+SSE') {
        await after.over
        expect(after).toMatchObject({ status: 503 })
      }
      expect((await send(new URL('/healthz', gateway.url), { method: 'GET' })).status).toBe(200)
      release.resolve()
      expect(await before.response).toMatchObject({ result: { content: [] } })
      expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
      shed(gateway, 0)
      expect(await host.call('tools/call', call)).toMatchObject({ content: [] })
    },
  )
})
