/** Reads into memory that is used again: connections that came in, pipes of a child, and what is kept of them. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import * as fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import { BodyPool } from '../../../src/transport/body-pool.ts'
import { readInPlace } from '../../../src/transport/read-in-place.ts'
import { isNodes, openDoor, taken } from '../../support/http-door.ts'

/** Both ends of a connection; `near` came in. */
const pair = async () => {
  const server = createServer({ allowHalfOpen: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [near] = (await once(server, 'connection')) as [Socket]
  server.close()
  return {
    near,
    far,
    [Symbol.dispose]: () => {
      near.destroy()
      far.destroy()
    },
  }
}

test('a connection that came in is read into the memory given, no byte by its stream, until it is given back', async () => {
  using ends = await pair()
  const { near, far } = ends
  const memory = Buffer.alloc(16)
  const [inPlace, byStream]: [string[], string[]] = [[], []]
  const places = new Set<ArrayBufferLike>()
  const giveBack = readInPlace(near, memory, (bytes) => {
    places.add(bytes.buffer)
    inPlace.push(bytes.toString())
  })
  expect(giveBack, 'this release of Node keeps it elsewhere').toBeTypeOf('function')
  near.on('data', (bytes: Buffer) => byStream.push(bytes.toString()))
  far.write('more than sixteen bytes')
  await vi.waitUntil(() => inPlace.join('') === 'more than sixteen bytes')
  expect([...places], 'its own memory').toEqual([memory.buffer])
  expect(byStream).toEqual([])
  giveBack?.()
  far.write('and the rest of it, longer than the memory')
  await vi.waitUntil(() => byStream.join('') === 'and the rest of it, longer than the memory')
  expect(inPlace.join('')).toBe('more than sixteen bytes')
})

test('a connection that is paused is not read, and ends once all has been read', async () => {
  using ends = await pair()
  const { near, far } = ends
  let text = ''
  let hasEnded = false
  readInPlace(near, Buffer.alloc(64), (bytes) => (text += bytes.toString()))
  near.on('end', () => (hasEnded = true))
  near.pause()
  far.end('said while nobody listened')
  await pause(50)
  expect([text, hasEnded]).toEqual(['', false])
  near.resume()
  await vi.waitUntil(() => hasEnded)
  expect(text).toBe('said while nobody listened')
})

test('what is no socket, or has bytes that were read before, is left as it is', async () => {
  using ends = await pair()
  const { near } = ends
  near.pause()
  near.unshift(Buffer.from('read before'))
  const stream = new PassThrough()
  for (const source of [near, stream]) expect(readInPlace(source, Buffer.alloc(16), () => undefined)).toBeUndefined()
  expect((near.read() as Buffer).toString()).toBe('read before')
})

test('the stdout of a child is read in place, to its end', async () => {
  const child = spawn(process.execPath, ['-e', 'process.stdout.write("x".repeat(3_000_000) + "end")'])
  let length = 0
  let last = ''
  const ended = once(child.stdout, 'end')
  const isDone = readInPlace(child.stdout, new BodyPool().reads, (bytes) => {
    length += bytes.length
    last = bytes.subarray(-3).toString()
  })
  expect(isDone).toBeTypeOf('function')
  await ended
  expect([length, last]).toEqual([3_000_003, 'end'])
})

const MAX_PIECES = 200

const digest = (body: Buffer | string): string => createHash('sha256').update(body).digest('hex')

test('T-23 requests of many connections that come in pieces, in turns, through one memory: each has its own bytes', async () => {
  const answered: Promise<void>[] = []
  /** Every body is looked at long after others have come through the same memory. */
  const serve = (request: HttpRequest): void =>
    request.readBody(4_000_000, (body) => {
      const done = pause(5).then(() => request.reply(200, {}, [Buffer.from(Buffer.isBuffer(body) ? digest(body) : body)]))
      answered.push(done)
    })
  await using door = await openDoor('own', serve)
  const size = fc.oneof(
    fc.nat(200),
    fc.integer({ min: 8_000, max: 20_000 }),
    fc.integer({ min: 60_000, max: 140_000 }),
    fc.nat(900_000),
  )
  const host = fc.record({
    bodies: fc.array(fc.tuple(size, fc.nat(255)), { minLength: 1, maxLength: 4 }),
    cuts: fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 6 }),
    chunked: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(host, { minLength: 2, maxLength: 6 }), async (hosts) => {
      await Promise.all(
        hosts.map(async ({ bodies, cuts, chunked }) => {
          const wire = door.open()
          for (const [index, [length, seed]] of bodies.entries()) {
            const body = Buffer.alloc(
              length,
              Uint8Array.from({ length: 251 }, (_, at) => (at * 7 + seed) & 0xff),
            )
            const isChunked = chunked && length > 0
            const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
            const framed = isChunked ? [Buffer.from(`${length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')] : [body]
            const bytes = Buffer.concat([Buffer.from(`POST /${index} HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`), ...framed])
            for (let at = 0, turn = 0; at < bytes.length; turn++) {
              // Each piece takes a turn of the event loop: cuts of one byte would take a million of them.
              const cut = turn < MAX_PIECES ? (cuts[turn % cuts.length] ?? 1) : bytes.length
              const piece = bytes.subarray(at, (at += cut))
              wire.socket.write(piece)
              await new Promise((resolve) => setImmediate(resolve))
            }
            await vi.waitUntil(() => wire.text.split('HTTP/1.1 200').length === index + 2, { timeout: 5_000, interval: 1 })
            expect(wire.text.endsWith(digest(body))).toBe(true)
          }
          wire.socket.destroy()
        }),
      )
    }),
    { numRuns: 25 },
  )
  await Promise.all(answered)
})

test('what came in place before a request that node:http must read is read by it, and what comes then', async () => {
  const serve = (request: HttpRequest): void =>
    request.readBody(4_000_000, (body) => request.reply(200, {}, [Buffer.from(Buffer.isBuffer(body) ? digest(body) : body)]))
  await using door = await openDoor('own', serve)
  const [one, two, three] = ['a'.repeat(300_000), 'b'.repeat(700), 'c'.repeat(200_000)]
  const post = (body: string, header = ''): string =>
    `POST / HTTP/1.1\r\nHost: a\r\n${header}Content-Length: ${body.length}\r\n\r\n${body}`
  const wire = door.open(post(one))
  await vi.waitUntil(() => wire.text.endsWith(digest(one)))
  // A header twice: no plain request.
  wire.send(post(two, 'X-A: 1\r\nX-A: 2\r\n'))
  await vi.waitUntil(() => wire.text.endsWith(digest(two)))
  expect(isNodes(door.sockets.entries[0]!)).toBe(true)
  wire.send(post(three))
  await vi.waitUntil(() => wire.text.endsWith(digest(three)))
  expect(door.requests.entries).toHaveLength(3)
})

test('two requests in one piece, and one behind a body that is still read: all are answered, in their order', async () => {
  const serve = (request: HttpRequest): void =>
    request.readBody(4_000_000, (body) => {
      setTimeout(
        () => request.reply(200, {}, [Buffer.from(Buffer.isBuffer(body) ? `[${body.toString().slice(0, 8)}]` : body)]),
        5,
      )
    })
  await using door = await openDoor('own', serve)
  const post = (body: string): string => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const wire = door.open(`${post('first')}${post('second')}`)
  const other = door.open(post(`other   ${'x'.repeat(100_000)}`))
  await vi.waitUntil(() => wire.text.includes('[second]') && other.text.includes('[other   ]'))
  expect(wire.text.indexOf('[first]')).toBeLessThan(wire.text.indexOf('[second]'))
  const long = door.open(`${post(`long    ${'y'.repeat(500_000)}`)}${post('behind')}`)
  await vi.waitUntil(() => long.text.includes('[behind]'))
  expect(long.text.indexOf('[long    ]')).toBeLessThan(long.text.indexOf('[behind]'))
})

test('T-05 a stated length takes no memory: what a body that has begun holds is a few times what came of it', async () => {
  const bodies: (Buffer | string)[] = []
  await using door = await openDoor('own', (request) => request.readBody(8_000_000, (body) => bodies.push(body)))
  const lease = vi.spyOn(door.bodies, 'leaseRequest')
  const grown = vi.spyOn(door.bodies, 'lease')
  const wire = door.open(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n${'x'.repeat(1_000)}`)
  await taken(await door.sockets.until(() => true), 1_000)
  await vi.waitUntil(() => grown.mock.calls.length > 0)
  expect(Math.max(...[...lease.mock.calls, ...grown.mock.calls].map(([size]) => size))).toBeLessThanOrEqual(4_096)
  wire.send('x'.repeat(3_999_000))
  await vi.waitUntil(() => bodies.length === 1)
  expect(bodies[0]).toHaveLength(4_000_000)
})

test('long bodies that come in turns lie apart while they grow', async () => {
  await using door = await openDoor('own', (request) =>
    request.readBody(4_000_000, (body) => request.reply(200, {}, [Buffer.from(Buffer.isBuffer(body) ? digest(body) : body)])),
  )
  const bodies = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(1_000_000))
  const wires = bodies.map((body) => door.open(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`))
  await vi.waitUntil(() => door.requests.entries.length === wires.length)
  for (let at = 0; at < 1_000_000; at += 20_000) {
    for (const [index, wire] of wires.entries()) {
      wire.send(bodies[index]!.slice(at, at + 20_000))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  for (const [index, wire] of wires.entries()) {
    await vi.waitUntil(() => wire.text.includes('\r\n\r\n'))
    expect(wire.text.endsWith(digest(bodies[index]!))).toBe(true)
  }
})
