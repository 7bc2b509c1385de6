import { describe, expect, test } from 'vitest'
import { DEFAULT_GATEWAY } from '../../../src/gateway/options.ts'
import { DEFAULT_HOST } from '../../../src/host/options.ts'
import { workspace, yaml } from './workspace.ts'

describe('what a configuration says beside its servers', () => {
  test('nothing said: loopback of both families, and the defaults of every room', async () => {
    await using files = await yaml('servers: {}\n')
    const { host, gateway, log, watch } = await files.load()
    expect(host).toEqual(DEFAULT_HOST)
    expect(host.addresses).toEqual([
      { host: '127.0.0.1', port: 7420 },
      { host: '::1', port: 7420 },
    ])
    expect(gateway).toEqual(DEFAULT_GATEWAY)
    expect({ log, watch }).toEqual({ log: { level: 'info', format: 'auto' }, watch: true })
  })

  test.each(['0660', '"0660"', '660', '0o660', '"0o660"'])('unix_mode: %s gives these permissions', async (mode) => {
    await using files = await yaml(`listen: { unix: ./x.sock, unix_mode: ${mode} }\nservers: {}\n`)
    expect((await files.load()).host.unix?.mode).toBe(0o660)
  })

  test('everything said arrives under its name in code', async () => {
    await using files = await yaml(`
version: 1
listen:
  http: { bind: [localhost:1, "[::1]:0"], path: /a/mcp, allowed_hosts: [gw.test], allowed_origins: ["https://app.test"], server: node, sse: false }
  revisions: { min: 2025-03-26, max: "2025-11-25" }
  stream_after: { legacy: 0s, modern: 1s }
  poll_after: 2s
  orphan: 3s
  limits:
    { max_body: 1KiB, max_header: 2KiB, max_batch: 3, max_depth: 4, max_values: 5, max_keys: 6, connections: 7, sessions: 8,
      in_flight: 9, in_flight_per_session: 10, headers_timeout: 11s, request_timeout: 12s, keep_alive: 13s, session_idle: 14s,
      session_max: 15s, sse_keep_alive: 16s, write_stall: 17s, max_queued: 18KiB,
      sessions_per_principal: 19, events: 20, event_bytes: 21KiB, session_event_bytes: 22KiB, event_age: 23s, unread_body: 30KiB }
limits: { park_ttl: 24s, parked: 25, parked_per_principal: 26, subscriptions: 27, personal_catalogs: 29, rate_per_principal: 28/m }
naming: { prefix: never, max_length: 64, collision: error }
timeouts: { list_budget: 1s, handshake_budget: 31s }
cache: { legacy_ttl: 1m, list_ttl: 2m, page_items: 3 }
telemetry: { log: { level: debug, format: json } }
reload: { watch: false, drain: 1s, lame_duck: 2s }
state: { dir: ./state }
`)
    const { host, gateway, log, watch, stateDir, id } = await files.load()
    expect(host).toEqual({
      tls: undefined,
      unix: undefined,
      inherited: [],
      trustedProxies: [],
      takesProxyHeader: false,
      forwarded: 'x-forwarded-for',
      addresses: [
        { host: 'localhost', port: 1 },
        { host: '::1', port: 0 },
      ],
      path: '/a/mcp',
      httpServer: 'node',
      sse: false,
      allowedHosts: ['gw.test'],
      allowedOrigins: ['https://app.test'],
      auth: undefined,
      allowUnauthenticatedNetwork: false,
      revisions: { min: '2025-03-26', max: '2025-11-25' },
      streamAfterLegacyMs: 0,
      streamAfterMs: 1000,
      pollAfterMs: 2000,
      drainMs: 1000,
      lameDuckMs: 2000,
      limits: {
        ...DEFAULT_HOST.limits,
        maxBodyBytes: 1024,
        maxHeaderBytes: 2048,
        maxBatch: 3,
        maxDepth: 4,
        maxValues: 5,
        maxKeysPerObject: 6,
        maxConnections: 7,
        maxSessions: 8,
        maxInFlight: 9,
        maxInFlightPerSession: 10,
        headersTimeoutMs: 11_000,
        requestTimeoutMs: 12_000,
        keepAliveTimeoutMs: 13_000,
        sessionIdleMs: 14_000,
        sessionMaxMs: 15_000,
        sseKeepAliveMs: 16_000,
        writeStallMs: 17_000,
        maxQueuedBytes: 18 * 1024,
        maxSessionsPerPrincipal: 19,
        maxEvents: 20,
        maxEventBytes: 21 * 1024,
        maxSessionEventBytes: 22 * 1024,
        maxEventAgeMs: 23_000,
        maxUnreadBytes: 30 * 1024,
        orphanMs: 3_000,
      },
    })
    expect(gateway).toEqual({
      ...DEFAULT_GATEWAY,
      prefix: 'never',
      maxNameLength: 64,
      collision: 'error',
      listBudgetMs: 1000,
      handshakeBudgetMs: 31_000,
      legacyTtlMs: 60_000,
      listTtlCapMs: 120_000,
      pageMaxItems: 3,
      parking: { ...DEFAULT_GATEWAY.parking, ttlMs: 24_000, maxParked: 25, maxPerPrincipal: 26 },
      maxSubscriptions: 27,
      maxPersonalCatalogs: 29,
      rates: [
        { option: 'limits.rate_per_principal', rate: { amount: 28, periodMs: 60_000, text: '28/m' }, of: { kind: 'principal' } },
      ],
    })
    expect({ log, watch, stateDir }).toEqual({
      log: { level: 'debug', format: 'json' },
      watch: false,
      stateDir: files.path(`state/${id}`),
    })
  })

  test('timeouts.handshake_budget may be 0s: the handshake waits for no server', async () => {
    await using files = await yaml('timeouts: { handshake_budget: 0s }\nservers: {}\n')
    expect((await files.load()).gateway).toMatchObject({ handshakeBudgetMs: 0 })
  })

  test('--listen replaces the addresses of the file, --state its folder', async () => {
    await using files = await workspace({
      'trunkline.yaml': 'listen: { http: { bind: 127.0.0.1:1, path: /x } }\nstate: { dir: a }\n',
    })
    const overrides = { listen: '127.0.0.1:0, [::1]:8', state: 'b' }
    const { host, stateDir, id } = await files.load(undefined, { overrides })
    expect(host).toMatchObject({
      addresses: [
        { host: '127.0.0.1', port: 0 },
        { host: '::1', port: 8 },
      ],
      path: '/x',
    })
    expect(stateDir).toBe(files.path(`b/${id}`))
  })

  test.each([
    ['7420', 'expected an address such as 127.0.0.1:7420, got "7420"; separate several with commas'],
    ['127.0.0.1:99999', 'expected an address such as 127.0.0.1:7420, got "127.0.0.1:99999"; separate several with commas'],
    [
      '0.0.0.0:1',
      '0.0.0.0:1 can be reached from the network, and hosts are not authenticated; configure auth, bind 127.0.0.1, or start with --allow-unauthenticated-network',
    ],
  ])('--listen %s is refused', async (listen, message) => {
    await using files = await yaml('servers: {}\n')
    expect(await files.errors(undefined, { overrides: { listen } })).toEqual([`--listen: ${message}`])
  })

  test('the network is bound only when that is asked for', async () => {
    await using files = await yaml('listen: { http: { bind: 0.0.0.0:7420 } }\n')
    const { host } = await files.load(undefined, { overrides: { allowUnauthenticatedNetwork: true } })
    expect(host).toMatchObject({ addresses: [{ host: '0.0.0.0', port: 7420 }], allowUnauthenticatedNetwork: true })
  })
})

test('what becomes of calls that the audit log cannot take is said beside it', async () => {
  for (const [said, onFailure] of [
    ['', 'refuse'],
    [', audit_on_failure: drop', 'drop'],
  ]) {
    await using files = await yaml(`telemetry: { log: { audit: ./audit.ndjson${said} } }\nservers: {}\n`)
    expect((await files.load()).audit).toMatchObject({ onFailure })
  }
})
