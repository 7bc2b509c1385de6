/** What a reload changes also for what is already open: links, sessions, pipes and stored lists. */
import { expect, test } from 'vitest'
import type { Configuration } from '../../src/config/options.ts'
import { diffConfigurations } from '../../src/config/change/difference.ts'
import type { ServerLimits, ServerOptions } from '../../src/downstream/options.ts'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { limitHosts, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const reload = ({ running }: TestGateway, next: Partial<Configuration>): Promise<void> => {
  const after = { ...running.configuration, ...next }
  return running.apply(after, new Set(diffConfigurations(running.configuration, after).changed))
}
/** Changes the options of all servers. */
const reloadServers = (gateway: TestGateway, change: (server: ServerOptions) => Partial<ServerOptions>): Promise<void> =>
  reload(gateway, { servers: gateway.running.configuration.servers.map((server) => ({ ...server, ...change(server) })) })
const limitServers = (gateway: TestGateway, limits: Partial<ServerLimits>): Promise<void> =>
  reloadServers(gateway, (server) => ({ limits: { ...server.limits, ...limits } }))

const answer = (host: Host, args: JsonMap = {}): Promise<string> =>
  host.begin('tools/call', { name: 'a__t', arguments: args }).response.then((message) => JSON.stringify(message), String)
const LONG = 'x'.repeat(9_000)
const server = (more: FakeSpec): FakeSpec =>
  fake.of({ tools: ['t'], on: { 'tools/call': () => ({ content: [{ type: 'text', text: LONG }] }) }, ...more })

test.each(everyFakeKind)('limits.max_message changes for open connections to a %s server', async (kind) => {
  await using gateway = await startGateway({ servers: { a: server({ kind }) }, backoff: { firstMs: 600_000 } })
  await using host = await legacyHttp.connect(gateway)
  expect(await answer(host)).toContain(LONG)
  const links = gateway.fake('a').connections.length
  await limitServers(gateway, { maxMessageBytes: 4_000 })
  expect(await answer(host)).toContain('limits.max_message')
  await limitServers(gateway, { maxMessageBytes: 12_000 })
  expect(await answer(host)).toContain(LONG)
  expect(gateway.fake('a').connections).toHaveLength(links)
})

test('T-17 the policy for hidden characters applies to definitions that were read before', async () => {
  const tool = { name: 't', description: 'x\u200by', inputSchema: { type: 'object' } }
  await using gateway = await startGateway({ servers: { a: fake.of({ tools: [tool] }) } })
  await using host = await legacyHttp.connect(gateway)
  const descriptions = async () => {
    const { tools } = (await host.call('tools/list')) as { readonly tools: readonly { readonly description: string }[] }
    return tools.map(({ description }) => description)
  }
  const reads = gateway.fake('a').all('tools/list').length
  expect(await descriptions()).toEqual(['x\u200by'])
  await reloadServers(gateway, () => ({ hidden: 'strip' }))
  await expect.poll(descriptions).toEqual(['xy'])
  expect(gateway.fake('a').all('tools/list')).toHaveLength(reads)
})

test('F-12 limits.write_queue changes for an open pipe, and for requests that wait', async () => {
  const on = { 'tools/call': () => ({ content: [] }) }
  await using gateway = await startGateway({
    servers: { a: server({ kind: 'legacy stdio', on }) },
    options: { a: { limits: { maxWriteQueueBytes: 100_000 } } },
  })
  await using host = await modernHttp.connect(gateway)
  await answer(host)
  const pid = gateway.fake('a').connections.at(-1)?.pid ?? 0
  process.kill(pid, 'SIGSTOP')
  const calls = [1, 2].map(() => answer(host, { text: 'x'.repeat(600_000) }))
  await expect.poll(() => gateway.running.fleet.get('a')?.inFlight).toBe(2)
  await limitServers(gateway, { maxWriteQueueBytes: 2_000_000 })
  // Both are in the queue now: neither can be withdrawn any more.
  const third = host.begin('tools/call', { name: 'a__t', arguments: {} })
  await expect.poll(() => gateway.running.fleet.get('a')?.inFlight).toBe(3)
  third.cancel()
  process.kill(pid, 'SIGCONT')
  await Promise.all(calls)
  await gateway.fake('a').until('notifications/cancelled')
})

test('limits.stderr changes for a running process', async () => {
  await using gateway = await startGateway({ servers: { a: server({ kind: 'modern stdio' }) } })
  const counted = () => gateway.running.limits.all.map(({ option }) => option)
  const print = () => gateway.fake('a').connections.at(-1)?.stderr('some words\n'.repeat(20))
  const lines = () => gateway.running.fleet.get('a')?.dialer.stderrTail(1_000).length
  print()
  await expect.poll(lines).toBe(20)
  await limitServers(gateway, { maxStderrBytes: 300 })
  print()
  await expect.poll(counted).toContain('limits.stderr')
  expect(lines()).toBeLessThan(10)
})

test('limits of lists are applied at once, also to a server that announces changes', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['t', 'u'], on: {} }) },
    options: { a: { limits: { maxTools: 1 } } },
    gateway: { freshMs: 3_600_000 },
  })
  await using host = await modernHttp.connect(gateway)
  const names = async () => ((await host.call('tools/list'))['tools'] as { name: string }[]).map(({ name }) => name)
  expect(await names()).toEqual(['a__t'])
  await limitServers(gateway, { maxTools: 2 })
  await expect.poll(names).toEqual(['a__t', 'a__u'])
  await limitServers(gateway, { maxTools: 1 })
  await expect.poll(names).toEqual(['a__t'])
})

test('a lazy server is started once it is eager', async () => {
  await using first = await startGateway({ servers: { a: server({}) } })
  const { stateDir } = first.running.configuration
  await first.running.stop()
  await using gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', first.fake('a')]]),
    options: { a: { start: 'lazy' } },
    stateDir,
    early: true,
  })
  const { health$ } = gateway.running.fleet.get('a')!
  first.fake('a').forget()
  await using host = await modernHttp.connect(gateway)
  await host.call('tools/list')
  expect(first.fake('a').received).toEqual([])
  await reloadServers(gateway, () => ({ start: 'eager' }))
  await expect.poll(() => health$.value.state).toBe('healthy')
})

test('cache.legacy_ttl is applied to lists that are read later', async () => {
  await using gateway = await startGateway({
    servers: { a: server({ kind: 'legacy http', capabilities: { tools: { listChanged: true } } }) },
    gateway: { freshMs: 0 },
  })
  await using host = await modernHttp.connect(gateway)
  const ttlMs = async () => Number((await host.call('tools/list'))['ttlMs'])
  expect(await ttlMs()).toBe(60_000)
  const { gateway: options } = gateway.running.configuration
  await reload(gateway, { gateway: { ...options, legacyTtlMs: 7_000 } })
  await expect.poll(ttlMs).toBeLessThanOrEqual(7_000)
})

test('limits of resumable streams change for open sessions', async () => {
  const notifies: FakeSpec['on'] = {
    'tools/call': (turn) => {
      for (let at = 0; at < 5; at++) turn.notify('notifications/message', { level: 'error', data: at })
      return { content: [] }
    },
  }
  await using gateway = await startGateway({
    servers: { a: server({ kind: 'legacy http', on: notifies }) },
    host: { streamAfterLegacyMs: 0, streamAfterMs: 0 },
  })
  await using host = await legacyHttp.connect(gateway)
  const counted = () => gateway.running.limits.all.map(({ option }) => option)
  await answer(host)
  expect(counted()).not.toContain('listen.limits.events')
  await limitHosts(gateway, { maxEvents: 2 })
  await answer(host)
  expect(counted()).toContain('listen.limits.events')
})

test('listen.limits.max_body changes for a host on a pipe', async () => {
  await using gateway = await startGateway({ servers: { a: server({}) }, pipe: true })
  await using host = await legacyPipe.connect(gateway)
  await limitHosts(gateway, { maxBodyBytes: 2_000 })
  expect(await answer(host, { text: LONG })).toContain('listen.limits.max_body (2000 bytes)')
  await limitHosts(gateway, { maxBodyBytes: 20_000 })
  expect(await answer(host, { text: LONG })).toContain(LONG)
})

test('B056 dynamic_lists also reads the lists of links that are open', async () => {
  let main: unknown
  const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
  const list: FakeSpec['on'] = {
    'tools/list': ({ connection }) => {
      main ??= connection
      return { tools: ['t', ...(connection === main ? [] : ['own'])].map(tool) }
    },
    'tools/call': () => ({ content: [] }),
  }
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy http', tools: ['t'], on: list }) },
    gateway: { freshMs: 3_600_000 },
  })
  await using host = await legacyHttp.connect(gateway)
  const names = async () => ((await host.call('tools/list'))['tools'] as { name: string }[]).map(({ name }) => name)
  await answer(host)
  expect(await names()).toEqual(['a__t'])
  await reloadServers(gateway, () => ({ dynamicLists: true }))
  await expect.poll(names).toEqual(['a__t', 'a__own'])
})
