/** What every limit is where the configuration says nothing (RELIABILITY 7). The options and what is generated from them change together. */
import { expect, test } from 'vitest'
import { yaml } from './workspace.ts'

const KIB = 1024
const MIB = 1024 * KIB
const MINUTE_MS = 60_000

test('the limits of listeners', async () => {
  await using files = await yaml('servers: {}\n')
  const { host, gateway } = await files.load()
  expect(host.limits).toEqual({
    maxBodyBytes: 4 * MIB,
    maxBatch: 100,
    maxDepth: 128,
    maxValues: 250_000,
    maxKeysPerObject: 20_000,
    maxInFlightBytes: 256 * MIB,
    maxHeaderBytes: 16 * KIB,
    maxHeaderLines: 100,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 30_000,
    maxUnreadBytes: 64 * MIB,
    keepAliveTimeoutMs: 65_000,
    maxConnections: 10_000,
    maxConnectionsPerAddress: 256,
    maxConnectionsPerLoopback: Infinity,
    maxSessions: 10_000,
    maxSessionsPerPrincipal: 100,
    sessionIdleMs: 30 * MINUTE_MS,
    sessionMaxMs: 24 * 60 * MINUTE_MS,
    maxInFlight: 10_000,
    maxInFlightPerPrincipal: 1_000,
    maxInFlightPerSession: 64,
    sseKeepAliveMs: 15_000,
    writeStallMs: 10_000,
    maxQueuedBytes: MIB,
    maxLoopLagMs: 200,
    maxEvents: 256,
    maxEventBytes: MIB,
    maxSessionEventBytes: 4 * MIB,
    maxTotalEventBytes: 256 * MIB,
    maxEventAgeMs: 5 * MINUTE_MS,
    orphanMs: 5 * MINUTE_MS,
  })
  expect(host).toMatchObject({ drainMs: 25_000, allowUnauthenticatedNetwork: false, allowedOrigins: [], auth: undefined })
  expect(gateway).toMatchObject({ maxSubscriptions: 256, maxStarts: 4, retryPercent: 10 })
})

test('the limits of servers', async () => {
  await using files = await yaml('servers: { a: { command: x } }\n')
  const [server] = (await files.load()).servers
  expect(server?.limits).toEqual({
    maxMessageBytes: 16 * MIB,
    maxTools: 2_048,
    maxEntries: 10_000,
    maxTextBytes: 16 * KIB,
    maxSchemaBytes: 256 * KIB,
    maxSchemaDepth: 128,
    maxPages: 1_000,
    maxConcurrent: 256,
    maxQueued: 256,
    maxWriteQueueBytes: 4 * MIB,
    maxLinks: 16,
    maxRestarts: 10,
    maxStderrBytes: 64 * KIB,
    maxLogMessages: expect.objectContaining({ amount: 500, periodMs: 1_000 }) as object,
    rate: undefined,
  })
  expect(server?.timeouts).toEqual({
    startMs: MINUTE_MS,
    probeMs: 5_000,
    connectTimeoutMs: 30_000,
    idleMs: 5 * MINUTE_MS,
    totalMs: 60 * MINUTE_MS,
    pingMs: 30_000,
    graceMs: 30_000,
  })
})
