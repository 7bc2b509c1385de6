/** The end of a gateway behind proxies: what probes see, and what becomes of calls that are still sent to it (F-22). */
import { Agent } from 'node:http'
import { expect, test } from 'vitest'
import { fake } from '../../support/fake-downstream.ts'
import { modernHttp } from '../../support/fake-host.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { exchangeRaw } from '../../support/fakes/raw-tcp.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

const start = (lameDuckMs: number | undefined, drainMs = 20_000): Promise<TestGateway> =>
  startGateway({
    servers: { a: fake.of({ tools: ['echo'], on: { 'tools/call': () => ({ content: [] }) } }) },
    host: { lameDuckMs, drainMs },
  })
const readyz = async (gateway: TestGateway): Promise<number | undefined> =>
  (await send(new URL('/readyz', gateway.url), { method: 'GET' })).status
const isRefused = (gateway: TestGateway): Promise<boolean> =>
  send(new URL('/healthz', gateway.url), { method: 'GET' }).then(
    () => false,
    () => true,
  )

test('F-22 while it is not ready it takes connections and calls, each answer the last on its connection', async () => {
  await using gateway = await start(60_000, 12_000)
  const stopped = gateway.running.stop()
  expect(await readyz(gateway)).toBe(503)
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', { name: 'a__echo' })).toMatchObject({ content: [] })
  const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
  for (const head of ['POST /mcp HTTP/1.1\r\nHost: localhost\r\n', 'GET /healthz HTTP/1.1\r\nhost:localhost\r\n']) {
    const body = head.startsWith('POST') ? list : ''
    const type = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n'
    const answer = await exchangeRaw(gateway.url, `${head}${type}Content-Length: ${body.length}\r\n\r\n${body}`)
    expect(answer).toMatch(/\r\nConnection: close\r\n/i)
  }
  // Within the drain, of which the servers' processes have the last 6 s.
  await stopped
  expect(await isRefused(gateway)).toBe(true)
}, 30_000)

test('F-22 without a probe of /readyz it does not serve on, and with one it does', async () => {
  await using unprobed = await start(undefined)
  await unprobed.running.stop()
  expect(unprobed.log.entries.filter(({ text }) => text.includes('reload.lame_duck'))).toEqual([])
  await using probed = await start(undefined)
  expect(await readyz(probed)).toBe(200)
  const stopped = probed.running.stop()
  await probed.log.until(({ text }) => text.includes('reload.lame_duck'))
  for (let probe = 0; probe < 3; probe++) expect(await readyz(probed)).toBe(503)
  await stopped
}, 30_000)

test('F-22 a request on a connection that was idle when the listener closed is answered, and its connection then closed', async () => {
  await using gateway = await start(0)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = () => send(new URL('/healthz', gateway.url), { method: 'GET', agent })
  expect((await ask()).status).toBe(200)
  const stopped = gateway.running.stop()
  // The listener closes as soon as the kernel's queue is empty.
  while (!(await isRefused(gateway)));
  const last = await ask()
  expect([last.status, last.headers['connection']]).toEqual([200, 'close'])
  await stopped
  agent.destroy()
})
