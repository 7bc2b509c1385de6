/** What the fast-path connections of a listener share, with simple values. A test replaces the parts that it watches. */
import { BodyPool } from '../../src/transport/body-pool.ts'
import type { FastShared } from '../../src/transport/http1/server/fast/fast-connection.ts'
import { WriteBuffer } from '../../src/transport/http1/server/fast/write-buffer.ts'
import { WriteBatch } from '../../src/transport/http1/write-batch.ts'

interface Watched extends Partial<Omit<FastShared, 'listener' | 'limits'>> {
  readonly listener?: Partial<FastShared['listener']>
  readonly limits?: Partial<FastShared['limits']>
}

export const fastShared = ({ listener, limits, ...watched }: Watched): FastShared => ({
  listener: {
    caps: { proven: () => undefined },
    batch: new WriteBatch(),
    bodies: new BodyPool(),
    writeStallMs: 1_000,
    ending: { isEnding: false },
    addressOf: () => undefined,
    clientOf: () => undefined,
    events: { request: () => undefined, trouble: () => undefined, reached: () => undefined },
    ...listener,
  },
  limits: {
    keepAliveTimeoutMs: 1_000,
    requestTimeoutMs: 1_000,
    maxUnreadBytes: 1_000_000,
    maxHeaderBytes: 16_384,
    maxHeaderLines: 100,
    ...limits,
  },
  writeBuffer: new WriteBuffer(1_024),
  readBuffer: undefined,
  nowMs: 0,
  date: '',
  handOver: () => undefined,
  closed: () => undefined,
  refuseSlow: () => undefined,
  ...watched,
})
