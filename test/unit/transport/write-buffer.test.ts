import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { WriteBuffer } from '../../../src/transport/http1/server/fast/write-buffer.ts'

/** A socket that is written to and takes the bytes when it is told to; what it was given stays where it was until then. */
const socket = () => {
  const given: Buffer[] = []
  /** Of the memory behind each piece. */
  const sizes: number[] = []
  const waiting: (() => void)[] = []
  let taken = ''
  const take = (): void => {
    for (const bytes of given.splice(0)) taken += bytes.toString('latin1')
    for (const done of waiting.splice(0)) done()
  }
  const duplex = new Duplex({
    read: () => undefined,
    write: (bytes: Buffer, _encoding, done) => {
      given.push(bytes)
      sizes.push(bytes.buffer.byteLength)
      waiting.push(done)
    },
  })
  return { socket: duplex as unknown as Socket, take, given, sizes, taken: () => taken }
}

const body = (text: string): Buffer[] => [Buffer.from(text)]

test('what the kernel has not taken is not written over', () => {
  const [slow, fast] = [socket(), socket()]
  const room = new WriteBuffer(64)
  room.write(slow.socket, 'head ', body('first'), 5)
  room.write(fast.socket, 'HEAD ', body('SECOND'), 6)
  room.write(slow.socket, 'head ', body('third'), 5)
  slow.take()
  slow.take()
  fast.take()
  expect(slow.taken()).toBe('head firsthead third')
  expect(fast.taken()).toBe('HEAD SECOND')
})

test('what has been taken makes room for the next', () => {
  const taking: Buffer[] = []
  const duplex = new Duplex({
    read: () => undefined,
    write: (bytes: Buffer, _encoding, done) => {
      taking.push(bytes)
      done()
    },
  })
  const room = new WriteBuffer(64)
  for (const text of ['one', 'two']) room.write(duplex as unknown as Socket, 'caf\u00e9 ', body(text), 3)
  expect(taking[0]?.buffer).toBe(taking[1]?.buffer)
  expect(taking[1]?.toString('latin1')).toBe('caf\u00e9 two')
})

test('T-23 a host that is slow holds one room at most, and the bytes of its answers', () => {
  const slow = socket()
  const room = new WriteBuffer(1_024 * 1_024)
  for (const text of ['one', 'two', 'six']) room.write(slow.socket, '', body(text), 3)
  slow.take()
  slow.take()
  slow.take()
  expect(slow.sizes.map((size) => size > 65_536)).toEqual([true, false, false])
  expect(slow.taken()).toBe('onetwosix')
})

test('an answer longer than the room goes out by itself', () => {
  const { socket: into, take, taken } = socket()
  new WriteBuffer(8).write(into, 'head ', [...body('0123456789'), ...body('ab')], 12)
  take()
  expect(taken()).toBe('head 0123456789ab')
})
