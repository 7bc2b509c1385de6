import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LineFramer, toLine } from '../../../src/wire/framing/lines.ts'
import { join } from '../../../src/wire/message/payload.ts'

const frame = (chunks: readonly Buffer[], maxBytes: number): string[] => {
  const seen: string[] = []
  const framer = new LineFramer(
    {
      line: (bytes) => seen.push(`line ${bytes.toString('latin1')}`),
      overflow: (head) => seen.push(`overflow ${head.toString('latin1')}`),
      discarded: (head, tail) => seen.push(`discarded ${head.toString('latin1')}…${tail.toString('latin1')}`),
    },
    { maxBytes },
  )
  for (const chunk of chunks) framer.push(chunk)
  framer.end()
  return seen
}

const cut = (bytes: Buffer, points: readonly number[]): Buffer[] => {
  const places = [...new Set(points.map((point) => point % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((start, index) => bytes.subarray(start, places[index] ?? bytes.length))
}

describe('lines in', () => {
  test('a line is what stands before LF or CR LF; empty lines are none', () => {
    expect(frame([Buffer.from('{"a":1}\n\r\n\n{"b":2}\r\nrest')], 100)).toEqual(['line {"a":1}', 'line {"b":2}', 'line rest'])
  })

  test('F-06 a line over the limit tells its beginning at once and its end at its newline; the next line is read', () => {
    expect(frame([Buffer.from('0123456789\n'), Buffer.from('ok\n')], 4)).toEqual([
      'overflow 0123',
      'discarded 0123…0123456789',
      'line ok',
    ])
    expect(frame([Buffer.from('0123\n')], 4)).toEqual(['line 0123'])
  })

  test('F-06 of a line over the limit no more than a few KiB are kept', () => {
    let [head, tail] = [0, 0]
    const framer = new LineFramer(
      { line: () => {}, overflow: () => {}, discarded: (first, last) => ([head, tail] = [first.length, last.length]) },
      { maxBytes: 1 << 20 },
    )
    for (let index = 0; index < 64; index++) framer.push(Buffer.alloc(64 * 1024, 'x'))
    framer.end()
    expect([head, tail]).toEqual([4096, 256])
  })

  test('chunks that all come in the same memory make the same lines, each in memory of its own', () => {
    const memory = Buffer.alloc(64)
    const inPlace = (chunks: readonly Buffer[]): string[] => {
      const lines: Buffer[] = []
      const told: string[] = []
      const framer = new LineFramer(
        {
          line: (bytes) => lines.push(bytes),
          overflow: (head) => told.push(head.toString('latin1')),
          discarded: (head, tail) => told.push(head.toString('latin1'), tail.toString('latin1')),
        },
        { maxBytes: 40 },
      )
      for (const chunk of chunks) {
        framer.push(memory.subarray(0, chunk.copy(memory)), true)
        memory.fill('#')
      }
      framer.end()
      return [...lines.map((line) => line.toString('latin1')), ...told]
    }
    const text = fc.array(fc.constantFrom('\n', '\r\n', '{"id":1}', 'é', 'x', '0123456789'), { maxLength: 60 })
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 20 }), (pieces, points) => {
        const bytes = Buffer.from(pieces.join(''))
        const chunks = cut(bytes, points).flatMap((chunk) => [
          chunk.subarray(0, 64),
          chunk.subarray(64, 128),
          chunk.subarray(128),
        ])
        if (chunks.some(({ length }) => length > 64)) return
        const seen = frame(chunks, 40)
        const lines = seen.filter((line) => line.startsWith('line ')).map((line) => line.slice(5))
        expect(inPlace(chunks).slice(0, lines.length)).toEqual(lines)
        expect(inPlace(chunks).join('')).not.toContain('#')
      }),
      { numRuns: 3000 },
    )
  })

  test('the cutting into chunks never shows', () => {
    const text = fc.array(fc.constantFrom('\n', '\r', '\r\n', '{"id":1}', 'é', '𝄞', 'x', ' ', '0123456789'), { maxLength: 60 })
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 20 }), fc.integer({ min: 1, max: 40 }), (pieces, points, maxBytes) => {
        const bytes = Buffer.from(pieces.join(''))
        expect(frame(cut(bytes, points), maxBytes)).toEqual(frame([bytes], maxBytes))
      }),
      { numRuns: 5000 },
    )
  })

  test('a line that drips in byte by byte comes whole', () => {
    const bytes = Buffer.from(Array.from({ length: 20_000 }, (_, index) => 0x20 + (index % 90)))
    const drops = Array.from(bytes, (byte) => Buffer.of(byte))
    expect(frame([...drops, Buffer.from('\n')], 1 << 20)).toEqual([`line ${bytes.toString('latin1')}`])
  })
})

describe('lines out', () => {
  test('B226 any JSON document leaves as one line that says the same', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(0, 1, 2, '\t'), (json, indent) => {
        const pretty = JSON.stringify(JSON.parse(json), undefined, indent).replaceAll('\n', '\r\n')
        const line = join(toLine([Buffer.from('{"params":'), Buffer.from(pretty), Buffer.from('}')])).toString()
        expect(line.slice(0, -1)).not.toMatch(/[\r\n]/)
        expect(line.at(-1)).toBe('\n')
        expect(JSON.parse(line)).toEqual({ params: JSON.parse(json) })
      }),
    )
  })

  test('B226 a part without line ends leaves as the same bytes, one with them as a copy', () => {
    const plain = Buffer.from('{"a":1,')
    const pretty = Buffer.from('\n"b":2}')
    const [first, second] = toLine([plain, pretty])
    expect(first).toBe(plain)
    expect(String(second)).toBe(' "b":2}')
    expect(String(pretty)).toBe('\n"b":2}')
  })
})
