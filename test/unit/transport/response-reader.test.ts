import { describe, expect, test } from 'vitest'
import { leastMs } from '../../support/cpu.ts'
import { ResponseError } from '../../../src/transport/http1/client/response-head.ts'
import { ResponseReader } from '../../../src/transport/http1/client/response-reader.ts'

interface Read {
  readonly status: number | undefined
  readonly headers: Record<string, unknown>
  readonly body: string
  readonly isDone: boolean
  readonly keepsAlive: boolean
}

/** Reads `text` in pieces of `size` bytes, each in memory that is overwritten afterwards; `isClosed`: then the server closes. */
const read = (text: string, { size = text.length, isClosed = false } = {}): Read => {
  const reader = new ResponseReader()
  let status: number | undefined
  let headers: Record<string, unknown> = {}
  let body = ''
  reader.begin({
    onHead: (head) => {
      status = head.status
      headers = { ...head.headers }
    },
    onData: (bytes) => (body += bytes.toString('latin1')),
  })
  for (let at = 0; at < text.length; at += size) {
    const lent = Buffer.from(text.slice(at, at + size), 'latin1')
    reader.push(lent)
    lent.fill(0)
  }
  if (isClosed) reader.finish()
  return { status, headers, body, isDone: reader.isDone, keepsAlive: reader.keepsAlive }
}

const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`

describe.each([1, 2, 3, 7, 4096])('in pieces of %i bytes', (size) => {
  test('a body of a known length', () => {
    expect(read(`${OK}Content-Length: 5\r\nX-A:  b \r\n\r\nhello`, { size })).toEqual({
      status: 200,
      headers: { 'content-length': '5', 'x-a': 'b' },
      body: 'hello',
      isDone: true,
      keepsAlive: true,
    })
  })

  test('chunks with extensions and trailers', () => {
    const text = `${CHUNKED}5;a="b"\r\nhello\r\n6\r\n world\r\n0\r\nx-sum: 1\r\n\r\n`
    expect(read(text, { size })).toMatchObject({ body: 'hello world', isDone: true, keepsAlive: true })
  })

  test('a body that ends with the connection, which is then used up', () => {
    expect(read(`${OK}\r\nhello`, { size })).toMatchObject({ body: 'hello', isDone: false })
    expect(read(`${OK}\r\nhello`, { size, isClosed: true })).toMatchObject({ body: 'hello', isDone: true, keepsAlive: false })
  })

  test('informational heads are passed over; 204 and 304 have no body', () => {
    const early = 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'
    expect(read(`${early}HTTP/1.1 204 No Content\r\n\r\n`, { size })).toMatchObject({ status: 204, body: '', isDone: true })
    const processing = 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(100)
    expect(read(`${processing}${OK}content-length: 0\r\n\r\n`, { size })).toMatchObject({ status: 200, isDone: true })
    expect(read('HTTP/1.1 304 X\r\ncontent-length: 9\r\n\r\n', { size })).toMatchObject({ status: 304, body: '', isDone: true })
  })

  test('a body that breaks off is not done', () => {
    expect(read(`${OK}content-length: 6\r\n\r\nhello`, { size, isClosed: true }).isDone).toBe(false)
    expect(read(`${CHUNKED}5\r\nhello\r\n`, { size, isClosed: true }).isDone).toBe(false)
    expect(read('HTTP/1.1 200', { size, isClosed: true }).isDone).toBe(false)
  })
})

test('a connection is not used again after close, after HTTP/1.0, with bytes behind the response, or with a body behind a 204', () => {
  const empty = 'content-length: 0\r\n\r\n'
  expect(read(`${OK}connection: Close\r\n${empty}`).keepsAlive).toBe(false)
  expect(read(`HTTP/1.0 200 OK\r\n${empty}`).keepsAlive).toBe(false)
  expect(read(`HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n${empty}`).keepsAlive).toBe(true)
  expect(read(`${OK}${empty}HTTP/1.1`).keepsAlive).toBe(false)
  // A body that must not be there may still be sent.
  expect(read('HTTP/1.1 204 X\r\ntransfer-encoding: chunked\r\n\r\n').keepsAlive).toBe(false)
  expect(read('HTTP/1.1 204 X\r\ncontent-length: 2\r\n\r\n').keepsAlive).toBe(false)
  expect(read('HTTP/1.1 204 X\r\ncontent-length: 0\r\n\r\n').keepsAlive).toBe(true)
})

/** What one connection's reader tells of answers that come one after the other. */
const readAll = (...texts: string[]): unknown[] => {
  const reader = new ResponseReader()
  return texts.map((text) => {
    const seen: unknown[] = []
    reader.begin({
      onHead: ({ status, form, length, keepsAlive, keptMs, headers }) =>
        seen.push({ status, form, length, keepsAlive, keptMs, headers: { ...headers } }),
      onData: (bytes) => seen.push(bytes.toString('latin1')),
    })
    // Behind what came stands what the connection's memory held before.
    const lent = Buffer.from(`${text}5\r\nhello\r\n\r\n`, 'latin1')
    reader.push(lent, text.length)
    lent.fill(0)
    return [...seen, reader.isDone]
  })
}

test('what an answer says does not depend on those before it on the connection', () => {
  const json = 'Content-Type: application/json\r\n'
  const answers = [
    `${OK}${json}Content-Length: 5\r\nKeep-Alive: timeout=7\r\n\r\nhello`,
    `${OK}${json}Content-Length: 5\r\nKeep-Alive: timeout=7\r\n\r\nworld`,
    `${OK}${json}Content-Length: 50\r\nKeep-Alive: timeout=7\r\n\r\n${'x'.repeat(50)}`,
    `${OK}${json}Content-Length: 5\r\n\r\nhello`,
    `${OK}Content-Length: 5\r\n${json}\r\nhello`,
    `HTTP/1.1 404 OK\r\n${json}Content-Length: 5\r\nConnection: close\r\n\r\nhello`,
    `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}${json}Content-Length: 5\r\n\r\nhello`,
    `${OK}\r\n`,
    `${CHUNKED}5\r\nhello\r\n0\r\n\r\n`,
    `${CHUNKED}5\r\nworld\r\n0\r\n\r\n`,
    `HTTP/1.0 200 OK\r\n${json}Content-Length: 0\r\n\r\n`,
    `${OK}X: ${'x'.repeat(2_000)}\r\nContent-Length: 2\r\n\r\nok`,
    `${OK}X: ${'x'.repeat(2_000)}\r\nContent-Length: 2\r\n\r\nno`,
  ]
  const repeated = answers.flatMap((answer) => [answer, answer])
  expect(readAll(...repeated)).toEqual(repeated.flatMap((answer) => readAll(answer)))
  expect(readAll(answers[0] ?? '', answers[1] ?? '')[1]).toEqual([
    {
      status: 200,
      form: 'json',
      length: 5,
      keepsAlive: true,
      keptMs: 7_000,
      headers: { 'content-type': 'application/json', 'content-length': '5', 'keep-alive': 'timeout=7' },
    },
    'world',
    true,
  ])
})

test('T-20 a head that begins like the one before it is refused like any other', () => {
  const good = `${OK}Content-Length: 2\r\nX: y\r\n\r\nok`
  expect(() => readAll(good, `${OK}Content-Length: 2\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n`)).toThrow(ResponseError)
  expect(() => readAll(good, `${OK}Content-Length: 2\r\nX: y\r\nContent-Length: 2\r\n\r\nok`)).toThrow(ResponseError)
  expect(() => readAll(good, `${OK}Content-Length: 2\r\nX: y\r\n z\r\n\r\nok`)).toThrow(ResponseError)
  expect(() => readAll(good, `${OK}Content-Length: 2\r\nX: y\n\r\n\r\nok`)).toThrow(ResponseError)
})

test('repeated headers are joined, cookies are listed, and no name is special', () => {
  const { headers } = read(`${OK}a: 1\r\nA: 2\r\nset-cookie: x\r\nset-cookie: y\r\n__proto__: z\r\ncontent-length: 0\r\n\r\n`)
  expect(Object.entries(headers)).toEqual([
    ['a', '1, 2'],
    ['set-cookie', ['x', 'y']],
    ['__proto__', 'z'],
    ['content-length', '0'],
  ])
})

test.each([
  ['no HTTP', 'SSH-2.0-x\r\n\r\n'],
  ['another version', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['101, which nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ['both lengths', `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n`],
  ['two lengths', `${OK}content-length: 5\r\ncontent-length: 5\r\n\r\n`],
  ['a signed length', `${OK}content-length: +5\r\n\r\n`],
  ['a hexadecimal length', `${OK}content-length: 0x5\r\n\r\n`],
  ['another transfer coding', `${OK}transfer-encoding: gzip, chunked\r\n\r\n`],
  ['white space before the colon', `${OK}content-length : 5\r\n\r\n`],
  ['a folded header', `${OK}a: 1\r\n b\r\n\r\n`],
  ['a line feed alone', `${OK}a: 1\nb: 2\r\n\r\n`],
  ['a head of line feeds alone', 'HTTP/1.1 200 OK\ncontent-length: 5\n\n'],
  ['line feeds alone at the end of a head', `${OK}content-length: 5\n\n`],
  ['chunks of line feeds alone', `${CHUNKED}5\nhello\n0\n\n`],
  ['a last chunk of line feeds alone', `${CHUNKED}0\n\n`],
  ['a carriage return alone', `${OK}a: 1\rb: 2\r\n\r\n`],
  ['a zero byte in a value', `${OK}a: \0\r\n\r\n`],
  ['a header without a name', `${OK}: 1\r\n\r\n`],
  ['too many headers', `${OK}${'a: 1\r\n'.repeat(101)}\r\n`],
  ['a head without end', `${OK}a: ${'x'.repeat(17_000)}`],
  ['a chunk size that is none', `${CHUNKED}xyz\r\n`],
  ['a negative chunk size', `${CHUNKED}-5\r\n`],
  ['a chunk size beyond all bounds', `${CHUNKED}${'f'.repeat(13)}\r\n`],
  ['a chunk that does not end', `${CHUNKED}5\r\nhelloXX`],
  ['an extension without end', `${CHUNKED}5;${'x'.repeat(2_000)}`],
  ['a malformed trailer', `${CHUNKED}0\r\nx\r\n\r\n`],
  ['trailers without end', `${CHUNKED}0\r\n${'a: 1\r\n'.repeat(4_000)}`],
])('refuses %s', (_what, text) => {
  expect(() => read(text)).toThrow(ResponseError)
  expect(() => read(text, { size: 5 })).toThrow(ResponseError)
})

test.each([
  ['a value', `${OK}a:${' '.repeat(500)}\0\r\n\r\n`],
  ['a value with text before it', `${OK}a: b${' '.repeat(500)}\0\r\n\r\n`],
  ['a trailer', `${CHUNKED}0\r\na:${' '.repeat(500)}\0\r\n\r\n`],
])('T-27 B256 %s of spaces that end in an error is read at once', (_what, text) => {
  const refuse = (): void => expect(() => read(text)).toThrow(ResponseError)
  expect(leastMs(refuse, 20)).toBeLessThan(20)
})

test('a value keeps what stands between its first and its last character, also where that is no ASCII', () => {
  const { headers } = read(`${OK}a: \t b \t c\xa0\t \r\nb:\r\nc: \t \r\ncontent-length: 0\r\n\r\n`)
  expect({ ...headers }).toEqual({ a: 'b \t c\xa0', b: '', c: '', 'content-length': '0' })
})
