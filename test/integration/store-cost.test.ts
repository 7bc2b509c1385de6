/** What calls and sessions cost the shared store, counted by a real redis-server (RELIABILITY 6; docs/scale-out.md, What it costs). */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { GuardedStore } from '../../src/store/guarded-store.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { fake } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/programs.ts'
import { startRedis } from '../support/redis.ts'
import type { RedisServer } from '../support/redis.ts'
import { KEY } from '../support/replicas.ts'

const CALLS = 50
const CALL = { name: 'a__x', arguments: {} }
const PER_SESSION_BYTES = 300
/** So that no lease is renewed while something is counted. */
const QUIET_TIMES = { believedMs: 3_000, leaseMs: 600_000, renewMs: 300_000, lookMs: 500 }

describeWith(['redis-server'], 'the shared store', () => {
  let redis: RedisServer
  let admin: Redis
  let store: RedisStore
  beforeAll(async () => {
    redis = await startRedis()
    admin = new Redis(redis.port)
    const options = { urls: [redis.url], sentinel: undefined, isCluster: false, prefix: 'trunkline' }
    store = new RedisStore(options, { debug: () => undefined, warn: () => undefined })
    await store.connected
  })
  afterAll(async () => {
    await store[Symbol.asyncDispose]()
    admin.disconnect()
    await redis[Symbol.asyncDispose]()
  })
  const start = (more: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
    startGateway({
      servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) },
      store,
      stateKey: KEY,
      replicaUrl: 'http://127.0.0.1:1',
      replicaTimes: QUIET_TIMES,
      ...more,
    })
  /** Commands that clients other than this one have sent; those of scripts count with their script. */
  const commands = async (work: () => Promise<unknown>): Promise<number> => {
    await admin.config('RESETSTAT')
    await work()
    const stats = await admin.info('commandstats')
    return [...stats.matchAll(/^cmdstat_(eval|get|set|del|lrange|publish):calls=(\d+)/gm)].reduce(
      (sum, [, , count]) => sum + Number(count),
      0,
    )
  }
  const keys = (pattern: string): Promise<string[]> => admin.keys(`trunkline:${pattern}`)
  const bytesOf = async (pattern: string): Promise<number[]> =>
    Promise.all((await keys(pattern)).map(async (key) => Number(await admin.memory('USAGE', key))))

  test('a modern call asks it nothing', async () => {
    await using gateway = await start()
    await using host = await modernHttp.connect(gateway)
    const count = await commands(async () => {
      for (let at = 0; at < CALLS; at++) await host.call('tools/call', CALL)
    })
    expect(count).toBe(0)
  })

  test('a legacy call asks it nothing where its answer is JSON, and at most once, behind the answer, where it is a stream', async () => {
    await using gateway = await start()
    await using streaming = await start({ host: { streamAfterLegacyMs: 0 } })
    const counted = async (of: TestGateway): Promise<number> => {
      await using host = await legacyHttp.connect(of)
      return await commands(async () => {
        for (let at = 0; at < CALLS; at++) await host.call('tools/call', CALL)
      })
    }
    // The first event of its standalone stream, which the host opens when it likes.
    expect(await counted(gateway)).toBeLessThanOrEqual(1)
    const appended = await counted(streaming)
    expect(appended).toBeGreaterThan(0)
    expect(appended).toBeLessThanOrEqual(CALLS + 1)
  })

  test('a session at rest has no key; one that has ended, or was taken over, has one of at most 300 bytes', async () => {
    await admin.flushall()
    await using gateway = await start()
    const before = await admin.dbsize()
    const url = gateway.url
    const ids: string[] = []
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'h', version: '1' } }
    for (let at = 0; at < CALLS; at++) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
      const answer = await fetch(url, { method: 'POST', headers, body })
      await answer.text()
      ids.push(answer.headers.get('mcp-session-id') ?? '')
    }
    expect(await admin.dbsize()).toBe(before)
    for (const id of ids) await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': id } })
    const ended = await bytesOf('ended:*')
    expect(ended).toHaveLength(CALLS)
    expect(Math.max(...ended)).toBeLessThanOrEqual(PER_SESSION_BYTES)
    // As `Replicas` writes it, with a long URL.
    const guarded = new GuardedStore(store, { changed: () => undefined })
    await guarded.claim(
      `session:${'d'.repeat(22)}`,
      `${'i'.repeat(16)} http://trunkline-0.trunkline.a-name-space.svc.cluster.local:7420`,
      60_000,
    )
    expect(Math.max(...(await bytesOf('session:*')))).toBeLessThanOrEqual(PER_SESSION_BYTES)
  })
})
