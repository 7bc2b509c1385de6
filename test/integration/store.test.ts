/** The store that replicas share: one suite for the one in memory and for a real redis-server, and what happens when it is sick (F-28). */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openStore as startWithStore } from '../../src/app/open-store.ts'
import { GuardedStore } from '../../src/store/guarded-store.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { StoreOptions } from '../../src/store/store-options.ts'
import { describeWith } from '../support/programs.ts'
import { makeCertificates } from '../support/certificates.ts'
import type { Certificates } from '../support/certificates.ts'
import { openFaultProxy } from '../support/fault-proxy.ts'
import { freePort } from '../support/free-port.ts'
import { startClusterNode, startRedis, startSentinel } from '../support/redis.ts'
import type { RedisServer } from '../support/redis.ts'

const quiet = { debug: () => undefined, warn: () => undefined }
const optionsOf = (url: string | readonly string[], more: Partial<StoreOptions> = {}): StoreOptions => ({
  urls: [url].flat(),
  sentinel: undefined,
  isCluster: false,
  prefix: 'test',
  ...more,
})
const PAGE = readFileSync(new URL('../../docs/scale-out.md', import.meta.url), 'utf8')
/** What the page names. */
const RIGHTS = (/^user trunkline (.*)$/m.exec(PAGE)?.[1] ?? '').split(' ').filter((word) => word.startsWith('+'))
const SENTINEL_RIGHTS = /^user trunkline \S+ \S+ (allchannels .*)$/m.exec(PAGE)?.[1] ?? ''
/** Of a sentinel. */
const SENTINEL_USER = `user asking on >of@sentinel ${SENTINEL_RIGHTS}`
const closing = async (redis: Redis): Promise<{ readonly redis: Redis } & AsyncDisposable> => ({
  redis,
  [Symbol.asyncDispose]: async () => redis.disconnect(),
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

  test('a key is a text or a list: the latest of both; one is none of the other', async () => {
    await store.set('kind', 'text', 60_000)
    expect(await store.range('kind')).toEqual([])
    await store.append('kind', ['1'], 3, 60_000)
    expect([await store.range('kind'), await store.get('kind'), await store.getAll(['kind'])]).toEqual([
      ['1'],
      undefined,
      [undefined],
    ])
    expect([await store.release('kind', '1'), await store.claim('kind', 'mine', 60_000)]).toEqual([false, 'mine'])
    expect(await store.get('kind')).toBe('mine')
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
  let certificates: Certificates
  beforeAll(() => {
    certificates = makeCertificates('localhost')
  })
  afterAll(() => certificates[Symbol.dispose]())
  const ownTls = () => ({
    ca: certificates.text('ca'),
    cert: certificates.text('client'),
    key: certificates.text('client.key'),
  })
  /** Arguments of a server that speaks TLS at this port alone. */
  const withTls = (port: number): readonly string[] => [
    '--port',
    '0',
    '--tls-port',
    String(port),
    '--tls-ca-cert-file',
    certificates.path('ca'),
    '--tls-cert-file',
    certificates.path('server'),
    '--tls-key-file',
    certificates.path('server.key'),
  ]
  /** How the tests themselves reach a server. */
  const asOperator = (isSecure: boolean) => ({
    host: '127.0.0.1',
    ...(isSecure && { tls: { ...ownTls(), servername: 'localhost' } }),
  })
  const start = async (more: readonly string[] = [], port?: number): Promise<RedisServer> => {
    const server = await startRedis(more, port)
    servers.push(server)
    return server
  }
  const startTls = async (): Promise<RedisServer> => {
    const port = await freePort()
    return start(withTls(port), port)
  }
  afterAll(async () => {
    for (const server of servers) await server[Symbol.asyncDispose]()
  })

  describe('alone', () => suite(async () => openStore(optionsOf((await start()).url))))

  describe('with a user that may do no more than the documentation says', () =>
    suite(async () => {
      const { port } = await start(['--user', 'tl', 'on', '>p@ss:w0rd', '~test:*', '&test:*', '-@all', ...RIGHTS])
      return openStore(optionsOf(`redis://tl:p%40ss%3Aw0rd@127.0.0.1:${port}`))
    }))

  test('a user that may not subscribe is told in the log with the remedy, once for each channel', async () => {
    const { port } = await start(['--user', 'tl', 'on', '>secret', '~test:*', 'resetchannels', '-@all', ...RIGHTS])
    const warn = vi.fn()
    await using store = new RedisStore(optionsOf(`redis://tl:secret@127.0.0.1:${port}`), { ...quiet, warn })
    await store.connected
    store.subscribe('wake', () => undefined)
    await vi.waitFor(() => expect(warn).toHaveBeenCalledOnce())
    expect(warn.mock.calls[0]).toEqual([
      { channel: 'test:wake', error: expect.stringContaining('NOPERM') as string },
      expect.stringContaining('its user needs &test:* and +subscribe') as string,
    ])
  })

  describe('over TLS with an authority of its own, which asks for a certificate', () =>
    suite(async () => {
      const { port } = await startTls()
      return openStore(optionsOf(`rediss://localhost:${port}`, { tls: { ...ownTls(), serverName: undefined } }))
    }))

  describe.each([
    ['without TLS', false],
    ['over TLS', true],
  ])('of a cluster of three %s, with such a user', (_name, isSecure) =>
    suite(async () => {
      const user = ['--user', 'tl', 'on', '>secret', '~test:*', '&test:*', '-@all', ...RIGHTS, '+cluster|slots', '+cluster|info']
      const nodes = await Promise.all(
        [0, 1, 2].map(async () => {
          const port = await freePort()
          return startClusterNode([...(isSecure ? [...withTls(port), '--tls-cluster', 'yes'] : []), ...user], port)
        }),
      )
      servers.push(...nodes)
      const tls = isSecure ? { tls: { ...ownTls(), serverName: 'localhost' } } : {}
      const plain = nodes.map(({ port }) => new Redis({ ...asOperator(isSecure), port }))
      const ranges = [
        [0, 5_460],
        [5_461, 10_922],
        [10_923, 16_383],
      ] as const
      for (const [at, node] of plain.entries()) await node.call('CLUSTER', 'ADDSLOTSRANGE', ...(ranges[at] ?? []))
      for (const [at, { port, busPort }] of nodes.entries())
        if (at > 0) await plain[0]?.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort)
      await vi.waitFor(async () => {
        for (const node of plain) expect(await node.call('CLUSTER', 'INFO')).toMatch(/cluster_state:ok[^]*cluster_known_nodes:3/)
      }, 20_000)
      for (const node of plain) node.disconnect()
      const scheme = isSecure ? 'rediss' : 'redis'
      return openStore(optionsOf(`${scheme}://tl:secret@127.0.0.1:${nodes[0]?.port}`, { isCluster: true, ...tls }))
    }),
  )

  /** Where the store's servers and their sentinels ask for passwords, they are three: of operators, of the store's user, of sentinels. */
  test.each([
    ['', false, false],
    [', with a user of the store and a user of the sentinels', true, false],
    [', with such users over TLS', true, true],
  ])(
    'found through a sentinel%s, and found again after it has made another server the primary',
    async (_name, hasUsers, isSecure) => {
      const users = hasUsers
        ? [
            '--requirepass',
            'operator',
            '--masterauth',
            'operator',
            '--user',
            'tl',
            'on',
            '>of@store',
            '~test:*',
            '&test:*',
            '-@all',
          ]
        : []
      const replicating = isSecure ? ['--tls-replication', 'yes'] : []
      const startServer = async (...more: readonly string[]): Promise<RedisServer> => {
        const port = await freePort()
        const rights = hasUsers ? [...users, ...RIGHTS] : []
        return start([...(isSecure ? withTls(port) : []), ...replicating, ...rights, ...more], port)
      }
      const primary = await startServer()
      const standby = await startServer('--replicaof', `127.0.0.1 ${primary.port}`, '--repl-diskless-sync-delay', '0')
      const sentinelPort = await freePort()
      const asking = [
        'sentinel auth-pass main operator',
        'user default off',
        'user operator on >operator allchannels +@all',
        SENTINEL_USER,
      ]
      const secured = [...withTls(sentinelPort), ...replicating]
        .join(' ')
        .split(' --')
        .map((line) => line.replace(/^--/, ''))
      const sentinel = await startSentinel(
        'main',
        primary.port,
        [...(hasUsers ? asking : []), ...(isSecure ? secured : [])],
        sentinelPort,
      )
      servers.push(sentinel)
      await using store = await openStore(
        optionsOf(`${isSecure ? 'rediss' : 'redis'}://${hasUsers ? 'tl:of%40store@' : ''}127.0.0.1:${sentinel.port}`, {
          sentinel: 'main',
          ...(hasUsers && { sentinelLogin: { user: 'asking', password: 'of@sentinel' } }),
          ...(isSecure && { tls: { ...ownTls(), serverName: 'localhost' } }),
        }),
      )
      await store.set('a', '1', 60_000)
      const operator = { ...asOperator(isSecure), ...(hasUsers && { password: 'operator' }) }
      await using watcher = await closing(
        new Redis({ ...operator, ...(hasUsers && { username: 'operator' }), port: sentinel.port }),
      )
      await vi.waitFor(async () => expect(await watcher.redis.call('SENTINEL', 'REPLICAS', 'main')).toHaveLength(1), 20_000)
      await using follower = await closing(new Redis({ ...operator, port: standby.port }))
      await vi.waitFor(async () => expect(await follower.redis.get('test:a')).toBe('1'), 20_000)
      primary.process.kill('SIGKILL')
      await vi.waitFor(() => store.set('b', '2', 60_000), { timeout: 25_000, interval: 100 })
      expect(await store.getAll(['a', 'b'])).toEqual(['1', '2'])
    },
    60_000,
  )

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

  test('F-28 is waited for at the start, though not for long: one that is away is said to be', async () => {
    const said: string[] = []
    const log = {
      debug: () => undefined,
      info: () => undefined,
      error: () => undefined,
      warn: (_: object, text: string) => said.push(text),
    }
    const server = await start()
    await using there = await startWithStore(optionsOf(server.url), undefined, log)
    expect([await there?.get('a'), said]).toEqual([undefined, []])
    await using away = await startWithStore(optionsOf(`redis://127.0.0.1:${await freePort()}`), undefined, log)
    expect(said).toEqual(['the shared store does not answer: starting without (store)'])
    await expect(away?.get('a')).rejects.toThrow('store')
  })

  test('F-28 that takes no writes, as a replica of another one, refuses and is not waited for', async () => {
    const server = await start()
    await using store = await openStore(optionsOf(server.url))
    const plain = new Redis(server.port)
    await plain.call('REPLICAOF', '127.0.0.1', '1')
    await expect(store.set('a', '1', 60_000)).rejects.toThrow('READONLY')
    plain.disconnect()
  })

  test.each<[string, RegExp, (server: RedisServer) => StoreOptions, readonly string[]]>([
    ['asks for a password', /^NOAUTH.*redis:\/\/user:password@host/, ({ url }) => optionsOf(url), ['--requirepass', 'secret']],
    [
      'has another password',
      /^WRONGPASS.*redis:\/\/user:password@host/,
      ({ port }) => optionsOf(`redis://:wrong@127.0.0.1:${port}`),
      ['--requirepass', 'secret'],
    ],
    // Not database 0 instead.
    ['has no such database', /^ERR DB index is out of range; .*redis:\/\/host\/0/, ({ url }) => optionsOf(`${url}/99`), []],
    ['is no cluster', /cluster support disabled; .*remove store\.cluster/, ({ url }) => optionsOf(url, { isCluster: true }), []],
    ['is no sentinel', /'sentinel'; .*remove store\.sentinel/, ({ url }) => optionsOf(url, { sentinel: 'main' }), []],
  ])('that cannot be used, since it %s: the log and every operation name the reason', async (_name, reason, options, more) => {
    const server = await start(more)
    const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() }
    await using store = await startWithStore(options(server), undefined, log)
    const [facts, text] = log.warn.mock.calls[0] ?? []
    expect(facts).toEqual({ reason: expect.stringMatching(reason) as string })
    expect(text).toBe('the shared store does not answer: starting without (store)')
    for (let at = 0; at < 5; at++) await expect(store?.set('a', '1', 60_000)).rejects.toThrow(/\(store\): (?!Stream|Cluster)/)
    expect(log.warn.mock.lastCall).toEqual([
      { reason: expect.stringMatching(reason) as string },
      'the shared store is not reachable: sessions stay at their replicas (store)',
    ])
  })

  test.each<[string, RegExp, () => Promise<string>]>([
    [
      'a user without scripts',
      /^NOPERM.*docs\/scale-out\.md/,
      async () => {
        const { port } = await start(['--user', 'tl', 'on', '>secret', '~test:*', '&test:*', '-@all', '+get', '+set', '+info'])
        return `redis://tl:secret@127.0.0.1:${port}`
      },
    ],
    [
      'a sentinel',
      /^ERR unknown command 'eval'; .*\{ url, sentinel: name-of-the-primary \}/,
      async () => {
        const sentinel = await startSentinel('main', await freePort())
        servers.push(sentinel)
        return sentinel.url
      },
    ],
    [
      'a node of a cluster',
      /^CLUSTERDOWN.*\{ url, cluster: true \}/,
      async () => {
        const node = await startClusterNode()
        servers.push(node)
        return node.url
      },
    ],
  ])('that refuses operations, as %s does: the log says once why, and what to do', async (_name, reason, urlOf) => {
    const warn = vi.fn()
    await using store = new RedisStore(optionsOf(await urlOf()), { ...quiet, warn })
    await store.connected
    for (let at = 0; at < 3; at++) await expect(store.claim('a', '1', 60_000)).rejects.toThrow(reason)
    expect(warn.mock.calls).toEqual([
      [{ error: expect.stringMatching(reason) as string }, 'the shared store refuses an operation (store)'],
    ])
  })

  test.each([
    ['allkeys-lru', '100mb', 1],
    ['volatile-ttl', '100mb', 1],
    ['noeviction', '100mb', 0],
    ['allkeys-lru', '0', 0],
  ])('that removes keys when it is full is a warning: %s with maxmemory %s', async (policy, maxmemory, count) => {
    const server = await start(['--maxmemory', maxmemory, '--maxmemory-policy', policy])
    const warn = vi.fn()
    await using store = new RedisStore(optionsOf(server.url), { ...quiet, warn })
    await store.connected
    // Sent after the question, and answered after it.
    await store.get('a')
    await vi.waitFor(() => expect(warn).toHaveBeenCalledTimes(count))
    if (count > 0)
      expect(warn).toHaveBeenCalledWith(
        { 'maxmemory-policy': policy },
        expect.stringContaining('set maxmemory-policy noeviction'),
      )
  })

  /** An address that leads to a server, and to another one after a failover. */
  const openAddress = async () => {
    const [server, other] = await Promise.all([start(), start()])
    return { server, other, address: await openFaultProxy(server.port) }
  }
  const SOON = { timeout: 20_000, interval: 100 }

  test('F-28 whose address leads to another server now, since this one became its replica, is found there', async () => {
    const { server, other, address } = await openAddress()
    await using proxy = address
    await using store = await openStore(optionsOf(`redis://127.0.0.1:${proxy.port}`))
    await store.set('a', '1', 60_000)
    proxy.target = other.port
    await using plain = await closing(new Redis(server.port))
    await plain.redis.call('REPLICAOF', '127.0.0.1', String(other.port))
    await vi.waitFor(() => store.set('a', '2', 60_000), SOON)
    await vi.waitFor(() => store.claim('b', '3', 60_000), SOON)
  })

  test('F-28 that hangs, with its connections open, is left for the server at its address', async () => {
    const { server, other, address } = await openAddress()
    await using proxy = address
    await using store = await openStore(optionsOf(`redis://127.0.0.1:${proxy.port}`))
    const receive = vi.fn<(message: string) => void>()
    store.subscribe('news', receive)
    await store.set('a', '1', 60_000)
    await using guarded = new GuardedStore(store, { changed: () => undefined })
    proxy.target = other.port
    server.process.kill('SIGSTOP')
    await vi.waitFor(() => guarded.set('a', '2', 60_000), SOON)
    await vi.waitFor(async () => {
      await guarded.publish('news', 'now')
      expect(receive).toHaveBeenCalledWith('now')
    }, SOON)
  })

  test('F-28 a subscription that was under way when its connection broke is made again', async () => {
    const { server, address } = await openAddress()
    await using proxy = address
    await using store = await openStore(optionsOf(`redis://127.0.0.1:${proxy.port}`))
    await using plain = await closing(new Redis(server.port))
    // Both connections.
    await vi.waitFor(async () => expect(await plain.redis.client('LIST')).toContain('name=trunkline-wakes'))
    const receive = vi.fn<(message: string) => void>()
    store.subscribe('news', receive)
    proxy.reset()
    await vi.waitFor(async () => {
      await plain.redis.publish('test:news', 'now')
      expect(receive).toHaveBeenCalledWith('now')
    }, SOON)
  })
})
