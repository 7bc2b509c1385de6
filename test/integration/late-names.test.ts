/** Names of servers of which nothing is known yet: what a call of them waits for, and what it is told (BRIDGING 7.2; B279). */
import { describe, expect, test } from 'vitest'
import { FakeDownstream, fake } from '../support/fake-downstream.ts'
import { everyTransport, modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import { toolsetOf } from '../support/toolsets.ts'

const CALL = { name: 'a__t', arguments: {} }
const HOUR_MS = 3_600_000
const UNKNOWN = { code: -32602, message: 'Unknown tool: a__t' }

describe.each(everyTransport)('over $name', ({ connect }) => {
  test('B279 a call of a tool of a server that is still starting waits for it', async () => {
    await using a = await FakeDownstream.start({ kind: 'modern http', tools: ['t'] })
    const held: (() => void)[] = []
    const asked = Promise.withResolvers<void>()
    a.on('tools/list', async () => {
      asked.resolve()
      await new Promise<void>((resolve) => held.push(resolve))
      return { tools: [{ name: 't', inputSchema: { type: 'object' } }], ttlMs: 0, cacheScope: 'private' }
    })
    await using gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', a]]),
      gateway: { listBudgetMs: 1 },
      early: true,
    })
    await using host = await connect(gateway)
    await asked.promise
    const called = host.call('tools/call', CALL)
    const first = await Promise.race([called, new Promise((resolve) => setTimeout(resolve, 50, 'nothing yet'))])
    expect(first).toBe('nothing yet')
    for (const release of held) release()
    expect(await called).toMatchObject({ content: [{ text: '{}' }] })
  })

  test('B279 one that cannot be reached is told with its reason, and with when it is tried again', async () => {
    await using a = await FakeDownstream.start({ kind: 'modern http', tools: ['t'] })
    a.intercept = (_, response) => {
      response.writeHead(503).end()
      return true
    }
    await using gateway = await startGateway({ servers: {}, fakes: new Map([['a', a]]), early: true })
    await using host = await connect(gateway)
    expect(await host.call('tools/call', CALL)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^A failed \(HTTP 503\); the next attempt is in \d+ s \(operator: /) as string }],
      _meta: { 'dev.trunkline/gateway': { downstream: 'a', kind: 'downstream_error', executed: 'no' } },
    })
    await expect(host.call('prompts/get', { name: 'a__p' })).rejects.toMatchObject({ code: -32603 })
  })
})

test('B279 a server that hangs is reported as starting after timeouts.wait', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', on: { 'server/discover': fake.never, initialize: fake.never } }) },
    options: { a: { timeouts: { connectTimeoutMs: 100 } } },
    early: true,
  })
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', CALL)).toMatchObject({
    isError: true,
    _meta: { 'dev.trunkline/gateway': { downstream: 'a', kind: 'starting', executed: 'no' } },
  })
})

test('B279 F-24 a server that waits for its turn is started at once for a call, before those that stand before it', async () => {
  const hanging = fake.of({ kind: 'legacy stdio', on: { 'server/discover': fake.never, initialize: fake.never } })
  const before = Array.from({ length: 8 }, (_, at) => `hangs${at}`)
  await using gateway = await startGateway({
    servers: { ...Object.fromEntries(before.map((key) => [key, hanging])), a: fake.of({ kind: 'legacy stdio', tools: ['t'] }) },
    gateway: { maxStarts: 1, listBudgetMs: 1 },
    options: Object.fromEntries(before.map((key) => [key, { timeouts: { startMs: HOUR_MS } }])),
    early: true,
  })
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', CALL)).toMatchObject({ content: [{ text: '{}' }] })
  expect(gateway.fake('hangs7').connections).toEqual([])
})

test('what no configured server can have is unknown at once, and so is what a toolset leaves out', async () => {
  await using a = await FakeDownstream.start({ kind: 'modern http', tools: ['t'] })
  a.intercept = () => true
  await using gateway = await startGateway({
    servers: { b: fake.offering('t') },
    fakes: new Map([['a', a]]),
    gateway: { listBudgetMs: 1, toolsets: [toolsetOf({ servers: ['b'] }, { name: 'default' })] },
    early: true,
  })
  await using host = await modernHttp.connect(gateway)
  await expect(host.call('tools/call', CALL)).rejects.toMatchObject(UNKNOWN)
  await expect(host.call('tools/call', { name: 'c__t' })).rejects.toMatchObject({ message: 'Unknown tool: c__t' })
})
