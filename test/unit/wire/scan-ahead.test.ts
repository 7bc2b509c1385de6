/** Large messages of servers are read while they come (G10). */
import { expect, test } from 'vitest'
import { LineFramer } from '../../../src/wire/framing/lines.ts'
import { SseDecoder } from '../../../src/wire/framing/sse.ts'
import { AHEAD_FROM_BYTES, ScanAhead } from '../../../src/wire/json/scan-ahead.ts'
import { readAhead, readServerMessage } from '../../../src/wire/message/envelope.ts'

const LINK = '{"type":"resource_link","uri":"file:///x","name":"x"}'
const block = (at: number): string => (at % 1_000 === 0 ? LINK : `{"type":"text","text":"line ${at}"}`)
const items = Array.from({ length: 2_000 }, (_, at) => `{"id":${at},"name":"item"}`).join(',')
/** About 100 KB for each thousand. */
const messageOf = (thousands: number): Buffer => {
  const content = Array.from({ length: thousands * 1_000 }, (_, at) => block(at)).join(',')
  return Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"items":[${items}]},"content":[${content}]}}`)
}
const blocksIn = (bytes: Buffer, ahead?: ScanAhead) => readServerMessage(bytes, ahead).result?.member('content')?.members

test('a message that is read in steps has the same blocks as one that is read at once, each of them once', () => {
  const whole = messageOf(3)
  for (const size of [997, 4_096, 50_000]) {
    const ahead = new ScanAhead({ firstBytes: 1_000, stepBytes: 700 })
    for (let to = size; to < whole.length; to += size) readAhead(whole.subarray(0, to), ahead)
    const found = blocksIn(whole, ahead)
    expect(found).toHaveLength(3)
    expect(found).toEqual(blocksIn(whole))
  }
})

test('what was read while it came is not read again', () => {
  const whole = messageOf(3)
  const ahead = new ScanAhead({ firstBytes: 1_000, stepBytes: 700 })
  for (let to = 1_000; to < whole.length; to += 1_000) readAhead(whole.subarray(0, to), ahead)
  // Brackets within the part that has been read: a scan that reads them again finds that nothing closes.
  const spoiled = Buffer.from(whole)
  spoiled.write('{', whole.indexOf('"item"') + 1)
  spoiled.fill('[', whole.indexOf('line 10'), whole.indexOf('line 10') + 1)
  expect(blocksIn(spoiled, ahead)).toHaveLength(3)
})

test('after a step that found nothing more, the next one waits until twice as much is there', () => {
  const ahead = new ScanAhead({ firstBytes: 1_000, stepBytes: 100 })
  const scans: number[] = []
  for (let bytes = 100; bytes <= 20_000; bytes += 100) ahead.step(bytes, () => void scans.push(bytes))
  expect(scans).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
})

test('the end of one long string is searched once, wherever it was cut, also between a backslash and what it escapes', () => {
  const unit = String.raw`  if (row.kind === \"text\") \\\"`
  const [before, behind] = ['{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"', '"}]}}']
  const whole = Buffer.from(`${before}${unit.repeat(300)}${behind}`)
  for (let size = 1_000; size < 1_030; size++) {
    const ahead = new ScanAhead({ firstBytes: 1_000, stepBytes: 1_000, minKnownBytes: 200 })
    for (let to = size; to < whole.length; to += size) readAhead(whole.subarray(0, to), ahead)
    expect(readServerMessage(whole, ahead).result?.end).toBe(whole.length - 1)
    // A quote in what has been read: a scan that reads it again ends there.
    const spoiled = Buffer.from(whole)
    spoiled[whole.indexOf('row', before.length + 500)] = 0x22
    expect(readServerMessage(spoiled, ahead).result?.end).toBe(whole.length - 1)
    expect(() => readServerMessage(spoiled)).toThrow()
  }
})

test('a mistake in what comes last is found in a message that is read in steps', () => {
  const whole = messageOf(1)
  const broken = Buffer.from(`${whole.toString().slice(0, -2)}]}`)
  const ahead = new ScanAhead({ firstBytes: 1_000, stepBytes: 700 })
  for (let to = 1_000; to < broken.length; to += 1_000) readAhead(broken.subarray(0, to), ahead)
  expect(() => readServerMessage(broken, ahead)).toThrow('expected "," or "}"')
})

test('long lines and long events of servers come with what was read of them, short ones do not', () => {
  const short = Buffer.from('{"jsonrpc":"2.0","method":"x"}')
  const long = messageOf(1 + Math.ceil(AHEAD_FROM_BYTES / 30_000))
  const lines: boolean[] = []
  const framer = new LineFramer(
    {
      line: (bytes, ahead) => {
        expect(blocksIn(bytes, ahead)).toEqual(blocksIn(bytes))
        lines.push(ahead !== undefined)
      },
      overflow: () => undefined,
      discarded: () => undefined,
    },
    { maxBytes: 64 * 1024 * 1024, readsAhead: true },
  )
  const events: boolean[] = []
  const decoder = new SseDecoder({
    maxEventBytes: 64 * 1024 * 1024,
    onEvent: ({ data, ahead }) => {
      expect(blocksIn(data, ahead)).toEqual(blocksIn(data))
      events.push(ahead !== undefined)
    },
    onOversize: () => undefined,
  })
  const inPieces = (bytes: Buffer, push: (piece: Buffer) => void): void => {
    for (let at = 0; at < bytes.length; at += 65_536) push(bytes.subarray(at, at + 65_536))
  }
  for (const message of [short, long, short]) {
    inPieces(Buffer.concat([message, Buffer.from('\r\n')]), (piece) => framer.push(piece))
    inPieces(Buffer.concat([Buffer.from('data: '), message, Buffer.from('\n\n')]), (piece) => decoder.push(piece))
  }
  expect(lines).toEqual([false, true, false])
  expect(events).toEqual([false, true, false])
})
