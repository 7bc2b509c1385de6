/** What the fast-path connections of a listener share, with plain values: a test gives what it watches. */
import { BodyPool } from '../../src/transport/body-pool.ts'
import type { FastShared } from '../../src/transport/http1/server/fast/fast-connection.ts'
import { WriteBuffer } from '../../src/transport/http1/server/fast/write-buffer.ts'
import { WriteBatch } from '../../src/transport/http1/write-batch.ts'

export const fastShared = (watched: Partial<FastShared>): FastShared => ({
  caps: { proven: () => undefined },
  batch: new WriteBatch(),
  writeBuffer: new WriteBuffer(1_024),
  bodies: new BodyPool(),
  readBuffer: undefined,
  writeStallMs: 1_000,
  keepAliveTimeoutMs: 1_000,
  requestTimeoutMs: 1_000,
  maxUnreadBytes: 1_000_000,
  maxHeaderBytes: 16_384,
  maxHeaderLines: 100,
  nowMs: 0,
  date: '',
  ending: { isEnding: false },
  addressOf: () => undefined,
  clientOf: () => undefined,
  events: { request: () => undefined, trouble: () => undefined, reached: () => undefined },
  handOver: () => undefined,
  closed: () => undefined,
  refuseSlow: () => undefined,
  ...watched,
})
