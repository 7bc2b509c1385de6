/** What every limit is where the configuration says nothing (RELIABILITY 7). The options and what is generated from them change together. */
import { expect, test } from 'vitest'
import { DEFAULT_SAFE_FETCH } from '../../../src/auth/fetch/safe-fetch.ts'
import { DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'
import { DEFAULT_SSE } from '../../../src/transport/channel/sse-channel.ts'
import { DEFAULT_STREAMABLE } from '../../../src/transport/channel/streamable-channel.ts'
import { DEFAULT_HOST_PIPE } from '../../../src/transport/pipe/stdio-host.ts'
import { DEFAULT_CHILD_PROCESS } from '../../../src/transport/process/child-process.ts'
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

test('F-01 F-03 F-06 F-12 the times of pipes, which no option sets', () => {
  expect(DEFAULT_CHILD_PROCESS).toEqual({
    maxMessageBytes: 16 * MIB,
    unclaimedMs: 5_000,
    maxQueuedBytes: 4 * MIB,
    queueWaitMs: 10_000,
    slowBytes: MIB,
    stallMs: 30_000,
    drainMs: 200,
    exitMs: 1_000,
  })
  expect(DEFAULT_HOST_PIPE).toMatchObject({ maxLineBytes: 4 * MIB, stallMs: 10_000 })
})

test('B216 B223 F-18 the times of HTTP to servers, which no option sets', () => {
  const reconnect = { backoffMs: 1_000, maxBackoffMs: 30_000, maxResumes: 5 }
  expect(DEFAULT_STREAMABLE).toMatchObject({ ...reconnect, maxMessageBytes: 16 * MIB, closeTimeoutMs: 2_000, expiryMs: 5_000 })
  expect(DEFAULT_SSE).toMatchObject({ maxMessageBytes: 16 * MIB, endpointTimeoutMs: 10_000, unclaimedMs: 5_000 })
})

test('F-04 the delays between attempts to connect, which no option sets', () => {
  expect(DEFAULT_BACKOFF).toEqual({
    firstMs: 500,
    maxMs: 30_000,
    maxCrashes: 5,
    windowMs: 2 * MINUTE_MS,
    crashLoopMs: 5 * MINUTE_MS,
    resetAfterMs: MINUTE_MS,
    minRetryMs: 2_000,
  })
})

test('T-09 the limits of what an authorization server answers, which no option sets', () => {
  expect(DEFAULT_SAFE_FETCH).toMatchObject({ timeoutMs: 5_000, maxBytes: 256 * KIB })
})
