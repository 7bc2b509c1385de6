import { Writable } from 'node:stream'
import { beforeEach, expect, test, vi } from 'vitest'
import { LineWriter } from '../../../src/transport/pipe/line-writer.ts'

const STALL_MS = 1_000
const BIG = 1_000_000

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))

/** A writer whose peer takes as much as the test says; `isSocket`: the system tells how much of a write is left. */
const open = (isSocket = true) => {
  const handle = { bytesWritten: 0, writeQueueSize: 0 }
  const pending: { left: number; done: () => void }[] = []
  const start = (bytes: number, done: () => void): void => {
    handle.bytesWritten += bytes
    handle.writeQueueSize = bytes
    pending.push({ left: bytes, done })
  }
  const stream = new Writable({
    write: (piece: Buffer, _encoding, done) => start(piece.length, done),
    writev: (pieces, done) =>
      start(
        pieces.reduce((sum, { chunk }) => sum + (chunk as Buffer).length, 0),
        done,
      ),
  })
  if (isSocket) Object.assign(stream, { _handle: handle })
  let stalls = 0
  const writer = new LineWriter(stream, {
    maxQueuedBytes: 10 * BIG,
    slowBytes: 10 * BIG,
    stallMs: STALL_MS,
    onStall: () => void stalls++,
  })
  return {
    /** Writes a message of one megabyte. */
    write: () => {
      writer.write([Buffer.alloc(BIG - 1, 'x')])
      writer.flush()
    },
    take: (bytes: number) => {
      const current = pending[0]
      if (current === undefined) throw new Error('nothing was written')
      current.left = handle.writeQueueSize = current.left - bytes
      if (current.left > 0) return
      pending.shift()
      current.done()
    },
    pass: async (ms: number) => {
      vi.advanceTimersByTime(ms)
      await new Promise(setImmediate)
    },
    stalls: () => stalls,
    writer,
  }
}

test('F-21 a peer that takes nothing has stalled after the time, not before', async () => {
  const { write, pass, stalls } = open()
  write()
  await pass(STALL_MS - 1)
  expect(stalls()).toBe(0)
  await pass(1)
  expect(stalls()).toBe(1)
})

test('F-21 a peer that takes one big message slowly has not stalled', async () => {
  const { write, take, pass, stalls } = open()
  write()
  for (let at = 0; at < 100; at++) {
    await pass(STALL_MS / 2)
    take(BIG / 100)
  }
  expect(stalls()).toBe(0)
  await pass(100 * STALL_MS)
  expect(stalls()).toBe(0)
})

test('F-21 a peer that stops in the middle of a message has stalled', async () => {
  const { write, take, pass, stalls } = open()
  write()
  await pass(STALL_MS / 2)
  take(BIG / 2)
  await pass(STALL_MS / 2)
  await pass(STALL_MS - 1)
  expect(stalls()).toBe(0)
  await pass(1)
  expect(stalls()).toBe(1)
})

test('F-21 a peer that takes whole messages has not stalled, and the time begins again with each', async () => {
  const { write, take, pass, stalls } = open()
  for (let at = 0; at < 3; at++) write()
  take(BIG)
  await pass(STALL_MS - 1)
  take(2 * BIG)
  await pass(100 * STALL_MS)
  expect(stalls()).toBe(0)
  write()
  write()
  take(BIG)
  await pass(STALL_MS - 1)
  expect(stalls()).toBe(0)
  await pass(1)
  expect(stalls()).toBe(1)
})

test('F-21 of a stream in memory only whole writes are known', async () => {
  const { write, take, pass, stalls } = open(false)
  write()
  await pass(STALL_MS / 2)
  take(BIG / 2)
  await pass(STALL_MS / 2)
  expect(stalls()).toBe(1)
})

test('a writer that is disposed of reports no stall', async () => {
  const { write, pass, stalls, writer } = open()
  write()
  writer.dispose()
  await pass(100 * STALL_MS)
  expect(stalls()).toBe(0)
})
