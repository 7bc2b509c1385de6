/** What a replica that starts lists of servers, with what the others have read of them (RELIABILITY 6; BRIDGING 3.19). */
import { expect, test, vi } from 'vitest'
import { PER_USER, tokenOf, TWO_TOKENS } from '../support/credentials.ts'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { freePort } from '../support/free-port.ts'
import { KEY } from '../support/replicas.ts'

const CALL = { name: 'a__x', arguments: {} }
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'h', version: '1' },
}
const OTHER_KEY = 'fedcba9876543210'.repeat(4)
/** Knows the names of what was set. */
class NamedStore extends MemoryStore {
  readonly keys: string[] = []
  override set(key: string, value: string, ttlMs: number): Promise<void> {
    this.keys.push(key)
    return super.set(key, value, ttlMs)
  }
}
const setup = (store: NamedStore, more: Partial<GatewaySetup> = {}): GatewaySetup => ({
  servers: {},
  store,
  stateKey: KEY,
  replicaUrl: 'http://127.0.0.1:1',
  early: true,
  gateway: { listBudgetMs: 50 },
  ...more,
})
const namesOf = async (more: GatewaySetup, connect = modernHttp.connect, token?: () => string): Promise<unknown> => {
  await using gateway = await startGateway(more)
  await using host = await connect(gateway, token && { token })
  // Where nothing is known of the one server, the list is an error.
  const { tools } = await host.call('tools/list').catch(() => ({ tools: [] }))
  return (tools as { name: string }[]).map(({ name }) => name)
}
const goDown = (server: FakeDownstream): void => {
  server.intercept = (_, response) => {
    response.writeHead(503).end()
    return true
  }
}
const isStored = (store: NamedStore) =>
  vi.waitFor(() => expect(store.keys.filter((key) => key.startsWith('lists:'))).toHaveLength(1))

test.each([
  ['modern', modernHttp.connect],
  ['legacy', legacyHttp.connect],
])('B282 a replica that starts while a server is down lists to %s hosts what another one has read', async (_name, connect) => {
  const store = new NamedStore()
  await using a = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x', 'y'] }))
  const fakes = new Map([['a', a]])
  await using first = await startGateway(setup(store, { fakes, early: false }))
  await isStored(store)
  goDown(a)
  expect(await namesOf(setup(store, { fakes }), connect)).toEqual(['a__x', 'a__y'])
  // One that was defined otherwise, or knows another key, is another server.
  const headers = { 'x-other': '1' }
  expect(await namesOf(setup(store, { fakes, options: { a: { headers } } }), connect)).toEqual([])
  expect(await namesOf(setup(store, { fakes, stateKey: OTHER_KEY }), connect)).toEqual([])
  expect(first.running.store?.failures).toBe(0)
})

test('T-05 what a server lists to one principal alone is not stored, and no other replica lists it', async () => {
  const store = new NamedStore()
  await using a = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x'] }))
  const own = { fakes: new Map([['a', a]]), options: { a: { credential: PER_USER } }, host: { auth: TWO_TOKENS } }
  await using first = await startGateway(setup(store, { ...own, gateway: {} }))
  await using host = await modernHttp.connect(first, { token: () => tokenOf('A') })
  await vi.waitFor(async () => expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__x' }] }))
  expect(store.keys.filter((key) => key.startsWith('lists:'))).toEqual([])
  goDown(a)
  for (const principal of ['A', 'B'])
    expect(await namesOf(setup(store, own), modernHttp.connect, () => tokenOf(principal))).not.toContain('a__x')
})

test('what was changed in the store by another program is not listed', async () => {
  const store = new NamedStore()
  await using a = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x'] }))
  const fakes = new Map([['a', a]])
  await using _ = await startGateway(setup(store, { fakes, early: false }))
  await isStored(store)
  const [key = ''] = store.keys.filter((name) => name.startsWith('lists:'))
  await store.set(key, `${await store.get(key)}x`, 60_000)
  goDown(a)
  expect(await namesOf(setup(store, { fakes }))).toEqual([])
})

test('B279 a call that comes while a starting replica waits for its store is served, and no tool is unknown', async () => {
  const store = new NamedStore()
  store.set = () => new Promise(() => undefined)
  await using a = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x'] }))
  const port = await freePort()
  const host = { addresses: [{ host: '127.0.0.1', port }] }
  const starting = startGateway(setup(store, { fakes: new Map([['a', a]]), host }))
  const isUp = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      () => true,
      () => false,
    )
  while (!(await isUp()));
  const answer = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': CALL.name,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...CALL, _meta: META } }),
  })
  expect(await answer.json()).toMatchObject({ result: { content: [{ type: 'text' }] } })
  await using _ = await starting
})
