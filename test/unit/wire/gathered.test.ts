import { expect, test } from 'vitest'
import { Gathered } from '../../../src/wire/framing/gathered.ts'

/** Memory that is overwritten as soon as it is given back. */
const watched = () => {
  const leased: number[] = []
  let out = 0
  return {
    leased,
    isOut: () => out,
    memory: {
      lease: (bytes: number) => {
        leased.push(bytes)
        out++
        return Buffer.alloc(bytes, '?')
      },
      giveBack: (room: Buffer) => {
        out--
        room.fill('!')
      },
    },
  }
}

test('one piece is not copied, several are one, and each whole is its receiver’s', () => {
  const { memory, leased, isOut } = watched()
  const gathered = new Gathered(memory)
  const alone = Buffer.from('alone')
  gathered.add(alone)
  expect(gathered.take()).toBe(alone)
  expect(leased).toEqual([])
  for (const piece of ['a', '', 'bc', 'd']) gathered.add(Buffer.from(piece))
  expect([gathered.length, gathered.bytes.toString()]).toEqual([4, 'abcd'])
  const whole = gathered.take()
  expect(gathered.length).toBe(0)
  for (const piece of ['x', 'y']) gathered.add(Buffer.from(piece))
  expect([whole.toString(), gathered.take().toString()]).toEqual(['abcd', 'xy'])
  expect(isOut()).toBe(2)
})

test('a piece whose memory its owner uses again is copied', () => {
  const gathered = new Gathered()
  const chunk = Buffer.from('one')
  gathered.add(chunk, true)
  chunk.fill('x')
  expect(gathered.take().toString()).toBe('one')
})

test('what grows doubles, gives back what it has left, and the next of its size needs one room', () => {
  const { memory, leased, isOut } = watched()
  const gathered = new Gathered(memory)
  const fill = (): string => {
    for (let piece = 0; piece < 100; piece++) gathered.add(Buffer.alloc(1_000, String.fromCharCode(65 + (piece % 26))))
    return gathered.take().toString()
  }
  const first = fill()
  expect(leased).toEqual([4_096, 8_192, 16_384, 32_768, 65_536, 131_072])
  expect(isOut()).toBe(1)
  expect(fill()).toBe(first)
  expect(leased.slice(6)).toEqual([131_072])
})

test('what is dropped is given back', () => {
  const { memory, isOut } = watched()
  const gathered = new Gathered(memory)
  gathered.add(Buffer.from('a'))
  gathered.add(Buffer.from('b'))
  gathered.drop()
  expect([isOut(), gathered.length, gathered.take().length]).toEqual([0, 0, 0])
})

test('streams that share an expected size need less memory each time, and a stalled one gets four times the bytes it sent', () => {
  const { memory, leased } = watched()
  const expected = { bytes: 0, maxTimes: 4 }
  const fill = (pieces: number): void => {
    const gathered = new Gathered(memory, expected)
    for (let piece = 0; piece < pieces; piece++) gathered.add(Buffer.alloc(1_000))
    if (pieces === 100) gathered.take()
  }
  fill(100)
  expect(leased.splice(0)).toEqual([4_096, 8_192, 16_384, 32_768, 65_536, 131_072])
  fill(100)
  expect(leased.splice(0)).toEqual([8_192, 65_536, 131_072])
  fill(3)
  expect(leased).toEqual([8_192])
})
