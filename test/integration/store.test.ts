/** The store that replicas share: one suite for the one in memory and for a real redis-server, and what happens when it is sick (F-28). */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { GuardedStore } from '../../src/store/guarded-store.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { StoreOptions } from '../../src/store/store-options.ts'
import { describeWith } from '../support/programs.ts'
import { startRedis } from '../support/redis.ts'
import type { RedisServer } from '../support/redis.ts'

const quiet = { debug: () => undefined }
const optionsOf = (url: string | readonly string[], more: Partial<StoreOptions> = {}): StoreOptions => ({
  urls: [url].flat(),
  sentinel: undefined,
  isCluster: false,
  prefix: 'test',
  ...more,
})
const openStore = async (options: StoreOptions): Promise<RedisStore> => {
  const store = new RedisStore(options, quiet)
  await store.connected
  return store
}

/** What every store does. */
const suite = (open: () => Promise<Store>): void => {
  let store: Store
  beforeAll(async () => {
    store = await open()
  })
  afterAll(() => store[Symbol.asyncDispose]())

  test('keeps a value until its end, or until it is removed', async () => {
    await store.set('a', 'é\0 1', 60_000)
    await store.set('short', 'x', 1)
    expect(await store.getAll(['a', 'none'])).toEqual(['é\0 1', undefined])
    await store.delete('a')
    expect(await store.get('a')).toBeUndefined()
    await vi.waitFor(async () => expect(await store.get('short')).toBeUndefined())
  })

  test('a claim has one winner, who renews it; another value replaces the one it names alone', async () => {
    const held = await Promise.all(['1', '2', '3'].map((value) => store.claim('lease', value, 60_000)))
    expect(new Set(held).size).toBe(1)
    const [winner = ''] = held
    expect(await store.claim('lease', winner, 60_000)).toBe(winner)
    expect(await store.claim('lease', 'other', 60_000, 'wrong')).toBe(winner)
    expect(await store.claim('lease', 'other', 60_000, winner)).toBe('other')
    expect([await store.release('lease', winner), await store.release('lease', 'other')]).toEqual([false, true])
    expect(await store.get('lease')).toBeUndefined()
  })

  test('a list keeps its latest values in order; a number adds up', async () => {
    await store.append('list', ['1', '2'], 3, 60_000)
    await store.append('list', ['3', '4'], 3, 60_000)
    expect(await store.range('list')).toEqual(['2', '3', '4'])
    expect(await store.range('none')).toEqual([])
    expect([await store.add('sum', 2, 60_000), await store.add('sum', -3, 60_000)]).toEqual([2, -1])
  })

  test('a message wakes the subscribers of its channel', async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const end = store.subscribe('news', resolve)
    // A subscription has no acknowledgement: data is always in a key.
    const timer = setInterval(() => void store.publish('news', 'now'), 10)
    expect(await promise).toBe('now')
    clearInterval(timer)
    end()
  })
}

describe('a store in memory', () => suite(async () => new MemoryStore()))

describeWith(['redis-server'], 'a store at redis-server', () => {
  const servers: RedisServer[] = []
  const start = async (more: readonly string[] = [], port?: number): Promise<RedisServer> => {
    const server = await startRedis(more, port)
    servers.push(server)
    return server
  }
  afterAll(async () => {
    for (const server of servers) await server[Symbol.asyncDispose]()
  })

  describe('alone', () => suite(async () => openStore(optionsOf((await start()).url))))

  describe('with a user whose ACL knows our prefix alone', () =>
    suite(async () => {
      const acl = 'user tl on >p@ss:w0rd ~test:* &test:* -@all +@read +@write +@scripting +@pubsub +@connection +info'
      const { port } = await start(['--user', ...acl.split(' ').slice(1)])
      return openStore(optionsOf(`redis://tl:p%40ss%3Aw0rd@127.0.0.1:${port}`))
    }))

  describe('of a cluster', () =>
    suite(async () => {
      const { url, port } = await start([
        '--cluster-enabled',
        'yes',
        '--cluster-config-file',
        'nodes.conf',
        '--cluster-announce-ip',
        '127.0.0.1',
      ])
      const plain = new (await import('ioredis')).Redis(port)
      await plain.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      await vi.waitFor(async () => expect(await plain.call('CLUSTER', 'INFO')).toContain('cluster_state:ok'), 5_000)
      plain.disconnect()
      return openStore(optionsOf(url, { isCluster: true }))
    }))

  test('F-28 that is paused fails within its time and then at once, and is used again when it is back', async () => {
    const server = await start()
    const changes: boolean[] = []
    await using store = new GuardedStore(await openStore(optionsOf(server.url)), { changed: (isDown) => changes.push(isDown) })
    await store.set('a', '1', 60_000)
    server.process.kill('SIGSTOP')
    for (let at = 0; at < 5; at++) await expect(store.get('a')).rejects.toThrow('store')
    expect([store.state.isDown, changes]).toEqual([true, [true]])
    const { operations } = store.state
    await expect(store.get('a')).rejects.toThrow('not available')
    expect(store.state.operations).toBe(operations)
    server.process.kill('SIGCONT')
    await vi.waitFor(async () => expect(await store.get('a')).toBe('1'), { timeout: 5_000, interval: 50 })
    expect(changes).toEqual([true, false])
  })

  test('F-28 that is killed or has no memory left fails each operation, and one that is started again is found', async () => {
    const server = await start(['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
    await using store = await openStore(optionsOf(server.url))
    await expect(store.set('a', '1', 60_000)).rejects.toThrow('OOM')
    server.process.kill('SIGKILL')
    await once(server.process, 'exit')
    await expect(store.set('a', '1', 60_000)).rejects.toThrow()
    await start([], server.port)
    await vi.waitFor(() => store.set('a', '1', 60_000), { timeout: 5_000, interval: 50 })
  })

  test('F-28 that takes no writes, as a replica of another one, refuses and is not waited for', async () => {
    const server = await start()
    await using store = await openStore(optionsOf(server.url))
    const plain = new (await import('ioredis')).Redis(server.port)
    await plain.call('REPLICAOF', '127.0.0.1', '1')
    await expect(store.set('a', '1', 60_000)).rejects.toThrow('READONLY')
    plain.disconnect()
  })
})
