import { createParser } from 'eventsource-parser'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { COMMENT, encodeEvent, SseDecoder } from '../../../src/wire/framing/sse.ts'
import type { SseEvent } from '../../../src/wire/framing/sse.ts'
import { collector } from '../../support/garbage-collector.ts'

interface Seen extends Omit<SseEvent, 'data' | 'ahead'> {
  readonly data: string
}

/** Text stands for bytes here, one character each, so that both decoders see the same. */
const decode = (chunks: readonly Buffer[], maxEventBytes = Infinity): { events: Seen[]; oversize: number } => {
  const seen = { events: [] as Seen[], oversize: 0 }
  const decoder = new SseDecoder({
    maxEventBytes,
    onEvent: ({ event, data, id, retry }) => seen.events.push({ event, data: data.toString('latin1'), id, retry }),
    onOversize: (_, tail) => (seen.oversize += tail === undefined ? 0 : 1),
  })
  for (const chunk of chunks) decoder.push(chunk)
  return seen
}
const decodeText = (text: string): Seen[] => decode([Buffer.from(text)]).events
const message = (data: string, more: Partial<Seen> = {}): Seen => ({
  event: 'message',
  data,
  id: undefined,
  retry: undefined,
  ...more,
})

const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const at = places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length))
}

const fieldLine = fc
  .tuple(
    fc.constantFrom('data', 'data', 'data', 'event', 'id', 'retry', '', 'datum', 'dat', 'other field'),
    fc.constantFrom(':', ': ', ':  ', ''),
    fc.oneof(fc.string({ unit: 'binary-ascii' }), fc.constantFrom('{"a":1}', '500', '', 'é', 'a:b', '\0')),
  )
  .map(([name, colon, value]) => name + colon + (colon === '' ? '' : value.replace(/[\r\n]/g, ' ')))
const stream = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.tuple(fc.oneof({ weight: 3, arbitrary: fieldLine }, fc.constant('')), fc.constantFrom('\n', '\r', '\r\n'))),
  )
  .map(([bom, lines]) => (bom ? '\uFEFF' : '') + lines.map(([line, end]) => line + end).join(''))

describe('decoding SSE', () => {
  test('B223 agrees with eventsource-parser on any stream', () => {
    fc.assert(
      fc.property(stream, (text) => {
        const bytes = Buffer.from(`${text}\n\n`)
        const theirs: { data: string; event: string; id: string | undefined }[] = []
        const retries: number[] = []
        const parser = createParser({
          onEvent: ({ data, event, id }) =>
            theirs.push({ data, event: event === undefined ? 'message' : utf8(event), id: id === undefined ? id : utf8(id) }),
          onRetry: (retry) => retries.push(retry),
        })
        parser.feed(bytes.toString('latin1'))
        const ours = decode([bytes]).events
        const withData = (list: { data: string }[]): { data: string }[] => list.filter((event) => event.data !== '')
        expect(withData(ours.map(({ data, event, id }) => ({ data, event, id })))).toEqual(withData(theirs))
        // Theirs tells each retry line, ours the last one of each event.
        const known = ours.flatMap((event) => event.retry ?? [])
        expect(retries.filter((retry) => known.includes(retry)).length).toBeGreaterThanOrEqual(known.length)
        expect(retries.length === 0).toBe(known.length === 0)
      }),
      { numRuns: 2_000 },
    )
  })

  test('does not depend on how the stream is cut', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat()), (text, places) => {
        const bytes = Buffer.from(text)
        expect(decode(cut(bytes, places))).toEqual(decode([bytes]))
        expect(decode([...bytes].map((byte) => Buffer.from([byte])))).toEqual(decode([bytes]))
      }),
      { numRuns: 1_000 },
    )
  })

  test('joins data lines with LF and takes one space off', () => {
    expect(decodeText('data: a\ndata:b\r\ndata:  c\rdata\n\n')).toEqual([message('a\nb\n c\n')])
  })

  test('B225 ignores comments, unknown fields and a byte order mark', () => {
    expect(decodeText(`\uFEFF:hello\ndata: a\n: in the middle\nfoo: bar\n\n${COMMENT.toString()}`)).toEqual([message('a')])
  })

  test('B223 reads id, event and retry, also without data', () => {
    expect(decodeText('id: 7\nretry: 250\n\nevent: endpoint\ndata: /x\n\nid: a\0b\nretry: 1s\ndata: y\n\n')).toEqual([
      message('', { id: '7', retry: 250 }),
      message('/x', { event: 'endpoint' }),
      message('y'),
    ])
  })

  test('delivers an event as soon as its blank line ends in CR', () => {
    expect(decode([Buffer.from('data: a\r\r')]).events).toEqual([message('a')])
    expect(decode([Buffer.from('data: a\r\n\r'), Buffer.from('\ndata: b\r\n\r\n')]).events).toEqual([message('a'), message('b')])
  })

  test('drops an event that the end of the stream cuts short', () => {
    expect(decodeText('data: a\n\ndata: b\n')).toEqual([message('a')])
  })

  test.each([1, 7, 57, 1_000])('drops an event over the cap and goes on, in chunks of %d bytes', (size) => {
    const lines = (letter: string, ...lengths: number[]): string =>
      lengths.map((length) => `data: ${letter.repeat(length)}\n`).join('')
    const bytes = Buffer.from(
      `${lines('w', 44)}\n${lines('x', 45)}id: 1\n\n${lines('y', 20, 20)}\n:${'c'.repeat(49)}\n${lines('z', 1)}\n`,
    )
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    )
    expect(decode(chunks, 50)).toEqual({ events: [message('w'.repeat(44)), message('z')], oversize: 2 })
  })

  test.each([1, 7, 57, 1_000])(
    'F-06 tells the beginning of an event over the cap, and its end, in chunks of %d bytes',
    (size) => {
      const seen: [head: string, tail: string | undefined][] = []
      const decoder = new SseDecoder({
        maxEventBytes: 50,
        onEvent: () => undefined,
        onOversize: (head, tail) => seen.push([head.toString().trim().slice(0, 9), tail?.toString().slice(-9)]),
      })
      const bytes = Buffer.from(
        `event: message\ndata: {"id":1,"${'x'.repeat(500)},"id":2}\nid: 7\n\ndata: {"first"\ndata: ${'y'.repeat(50)}\n\n`,
      )
      for (let at = 0; at < bytes.length; at += size) decoder.push(bytes.subarray(at, at + size), true)
      expect(seen).toEqual([
        ['{"id":1,"', undefined],
        ['{"id":1,"', 'x,"id":2}'],
        ['{"first"', undefined],
        ['{"first"', ''],
      ])
    },
  )
})

test('T-24 B257 an event of very many short data lines takes about the memory of its bytes, not 40 times as much', () => {
  const collect = collector()
  let length = 0
  const decoder = new SseDecoder({
    maxEventBytes: Infinity,
    onEvent: ({ data }) => (length = data.length),
    onOversize: () => undefined,
  })
  const chunk = Buffer.from('data:\n'.repeat(10_000))
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < 50; at++) decoder.push(chunk)
  collect()
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50 * chunk.length)
  decoder.push(Buffer.from('\n'))
  expect(length).toBe(499_999)
})

describe('encoding SSE', () => {
  test('puts pretty-printed JSON on one data line that means the same', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom('\n', '\r\n'), (value, lineEnd) => {
        const pretty = JSON.stringify(value, undefined, 2).replaceAll('\n', lineEnd)
        const bytes = Buffer.concat(encodeEvent({ data: [Buffer.from(pretty)] }))
        expect(bytes.toString().match(/\n/g)).toHaveLength(2)
        const [event] = decode([bytes]).events
        expect(JSON.parse(utf8(event?.data ?? ''))).toEqual(JSON.parse(pretty))
      }),
    )
  })

  test('writes every field, and leaves data without line ends where it is', () => {
    const data = [Buffer.from('{"a":'), Buffer.from('1}')]
    const parts = encodeEvent({ data, id: 's1/3', event: 'message', retry: 500 })
    expect(Buffer.concat(parts).toString()).toBe('event: message\nid: s1/3\nretry: 500\ndata: {"a":1}\n\n')
    expect(parts).toEqual(expect.arrayContaining(data))
    expect(parts[1]).toBe(data[0])
  })
})

const utf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString()
