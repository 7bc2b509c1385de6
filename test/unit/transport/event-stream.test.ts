/** How the events of a stream are written to the connection of their host. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import type { EventStream } from '../../../src/transport/http1/server/request/event-stream.ts'
import { BodyPool } from '../../../src/transport/body-pool.ts'
import { FastConnection } from '../../../src/transport/http1/server/fast/fast-connection.ts'
import { fastShared } from '../../support/fast-shared.ts'

/** A new stream whose host takes what is written only if `takes`; `seen`: each write. */
const begin = (takes = true) => {
  const seen: string[] = []
  const streams: EventStream[] = []
  const finishing: EventStream[] = []
  const handle = { bytesWritten: 0, writeQueueSize: 0 }
  const bodies = new BodyPool()
  const shared = fastShared({
    listener: {
      bodies,
      events: {
        request: (request) => void streams.push(request.openEvents({})),
        trouble: () => undefined,
        reached: () => undefined,
        finishing: (stream) => void finishing.push(stream),
      },
    },
  })
  const duplex = new Duplex({
    read: () => undefined,
    write: (piece: Buffer, _encoding, done) => {
      seen.push(piece.toString())
      if (takes) done()
    },
    writev: (pieces, done) => {
      seen.push(Buffer.concat(pieces.map(({ chunk }) => chunk as Buffer)).toString())
      if (takes) done()
    },
  })
  Object.assign(duplex, { setTimeout: () => duplex, destroySoon: () => void seen.push('closed') })
  const connection = new FastConnection(duplex as Socket, shared)
  duplex.emit('data', Buffer.from('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'))
  const [stream] = streams
  if (stream === undefined || connection.isIdle) throw new Error('no stream')
  return {
    stream,
    seen,
    finishing,
    bodies,
    flush: () => shared.listener.batch.flush(),
    knowsTaken: () => Object.assign(duplex, { _handle: handle })._handle,
  }
}

/** A stream whose head was written in a turn before. */
const open = (takes = true) => {
  const opened = begin(takes)
  opened.flush()
  opened.seen.length = 0
  return opened
}

const json = (text: string): Buffer[] => [Buffer.from(text)]
const event = (text: string): string => `event: message\ndata: ${text}\n\n`
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const BIG = `"${'x'.repeat(70_000)}"`

test('the head is written with the events of its turn', () => {
  const { stream, seen, flush } = begin()
  stream.message(json('1'))
  expect(seen).toEqual([])
  flush()
  expect(seen).toEqual([expect.stringMatching(/^HTTP\/1\.1 200 OK\r\n/)])
  expect(seen[0]?.split('\r\n\r\n', 2)[1]).toBe(chunk(event('1')))
})

test('a head without events is written at the end of its turn', () => {
  const { stream, seen, flush } = begin()
  flush()
  expect(seen).toEqual([expect.stringMatching(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/)])
  flush()
  stream.message(json('1'))
  flush()
  expect(seen.slice(1)).toEqual([chunk(event('1'))])
})

test('the events of one turn are one chunk, in one write at its end', () => {
  const { stream, seen, flush } = open()
  for (const text of ['1', '2', '3']) stream.message(json(text))
  expect(seen).toEqual([])
  flush()
  flush()
  expect(seen).toEqual([chunk(event('1') + event('2') + event('3'))])
})

test('a big event keeps its place among small ones', () => {
  const { stream, seen, flush } = open()
  for (const text of ['1', BIG, '2']) stream.message(json(text))
  flush()
  expect(seen).toEqual([chunk(event('1')), chunk(event(BIG)), chunk(event('2'))])
})

test('T-23 small events of one turn wait up to 64 KiB', () => {
  const { stream, seen, flush } = open()
  const text = `"${'x'.repeat(30_000)}"`
  for (let count = 0; count < 3; count++) stream.message(json(text))
  expect(seen).toEqual([chunk(event(text).repeat(2))])
  flush()
  expect(seen).toEqual([chunk(event(text).repeat(2)), chunk(event(text))])
})

test('the last events and the end are one write', () => {
  const { stream, seen, flush } = open()
  stream.message(json('1'))
  stream.end()
  flush()
  stream.message(json('2'))
  flush()
  expect(seen).toEqual([`${chunk(event('1'))}0\r\n\r\n`])
})

test('a stream that is broken off says first what it was given', () => {
  const { stream, seen } = open()
  stream.message(json('1'))
  stream.breakOff()
  expect(seen).toEqual([chunk(event('1')), 'closed'])
})

test('F-21 events that a host does not take are not written over', () => {
  const { stream, seen, flush } = open(false)
  for (let count = 0; count < 6; count++) {
    stream.message(json(BIG))
    stream.message(json(String(count)))
    flush()
  }
  expect(stream.isStalled).toBe(true)
  expect(stream.sweep({ keepAliveMs: 60_000, stallMs: 0, maxQueuedBytes: 1_000_000 })).toBeUndefined()
  expect(stream.sweep({ keepAliveMs: 60_000, stallMs: 0, maxQueuedBytes: 200_000 })).toBe('listen.limits.max_queued')
  expect(seen).toEqual([])
})

describe('F-21 what waits for a host', () => {
  const limits = { keepAliveMs: 60_000, stallMs: 10_000, maxQueuedBytes: 200_000 }

  /** A stream with `count` big events waiting; `sweepAfter`: sweeps later, when the host has taken some more bytes. */
  const waiting = (kind: 'answer' | 'message', count: number) => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout', 'setImmediate'] })
    const opened = open(false)
    const { stream, knowsTaken } = opened
    const handle = knowsTaken()
    const send = (times: number): void => {
      for (let at = 0; at < times; at++) stream[kind](json(BIG))
    }
    send(count)
    const sweepAfter = (ms: number, taken: number): string | undefined => {
      vi.advanceTimersByTime(ms)
      handle.bytesWritten += taken
      return stream.sweep(limits)
    }
    return { ...opened, send, sweepAfter }
  }

  test('answers do not count while it takes some of them, however slowly', () => {
    const stream = waiting('answer', 50)
    for (let second = 0; second < 30; second++) expect(stream.sweepAfter(1_000, 1_000)).toBeUndefined()
  })

  test('answers count when it takes nothing', () => {
    const stream = waiting('answer', 50)
    expect(stream.sweepAfter(2_400, 0)).toBeUndefined()
    expect(stream.sweepAfter(100, 0)).toBe('listen.limits.max_queued')
  })

  test('one answer alone never counts', () => {
    const stream = waiting('answer', 1)
    expect(stream.sweepAfter(0, 0)).toBeUndefined()
    expect(stream.sweepAfter(9_000, 0)).toBeUndefined()
    // What was read during a pause of this process is seen after the timers.
    expect(stream.sweepAfter(1_001, 0)).toBe('listen.limits.write_stall')
  })

  test('a burst of other events does not count if it takes them within a second', () => {
    const stream = waiting('message', 50)
    expect(stream.sweepAfter(100, 0)).toBeUndefined()
    expect(stream.sweepAfter(800, 48 * 70_050)).toBeUndefined()
    stream.send(10)
    expect(stream.sweepAfter(200, 2 * 70_050)).toBeUndefined()
    expect(stream.sweepAfter(900, 0)).toBeUndefined()
  })

  test('other events count when they have waited for a second, although it takes some', () => {
    const stream = waiting('message', 50)
    expect(stream.sweepAfter(1_000, 70_000)).toBeUndefined()
    expect(stream.sweepAfter(900, 70_000)).toBeUndefined()
    expect(stream.sweepAfter(100, 70_000)).toBe('listen.limits.max_queued')
  })

  test('other events count at once while memory is full', () => {
    const stream = waiting('message', 50)
    stream.bodies.held.max = 1_000
    expect(stream.sweepAfter(100, 70_000)).toBe('listen.limits.max_queued')
  })

  test('memory is released as it is taken, before all of it is', () => {
    const stream = waiting('answer', 50)
    const { bytes } = stream.bodies.held
    expect(bytes).toBeGreaterThan(50 * 70_000)
    stream.sweepAfter(100, 1_000_000)
    expect(stream.bodies.held.bytes).toBe(bytes - 1_000_000)
    stream.stream.sweep(limits)
    expect(stream.bodies.held.bytes).toBe(bytes - 1_000_000)
  })

  test('F-21 a stream that is broken off is reported, too', () => {
    const stream = waiting('answer', 50)
    stream.stream.breakOff()
    expect(stream.finishing).toEqual([stream.stream])
  })

  test('an ended stream is reported, so that it is swept until its host has read it', () => {
    const stream = waiting('answer', 50)
    stream.stream.end()
    expect(stream.finishing).toEqual([stream.stream])
    expect(stream.sweepAfter(2_500, 0)).toBe('listen.limits.max_queued')
  })
})
