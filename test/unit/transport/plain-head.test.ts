import { describe, expect, test } from 'vitest'
import { FastHead } from '../../../src/transport/http1/server/fast/fast-head.ts'

const LINE = 'POST /mcp?x=y HTTP/1.1\r\n'
const HOST = 'Host: localhost:8000\r\n'
const LENGTH = 'Content-Length: 5\r\n'
const PLAIN = `${LINE}${HOST}Content-Type: application/json\r\n${LENGTH}Accept: application/json, text/event-stream\r\n\r\n`

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
const read = (text: string): FastHead | 'more' | undefined => FastHead.read(bytes(text))
const headOf = (text: string): FastHead => {
  const head = read(text)
  if (head instanceof FastHead) return head
  throw new Error(`not plain: ${text}`)
}
/** What a head makes of bytes, as text. */
const bodyOf = (head: FastHead, text: string): string | undefined => {
  const body = head.bodyIn(bytes(text))
  if (Buffer.isBuffer(body)) return `body ${body.toString('latin1')}`
  return typeof body === 'object' ? `${body.part.length} of ${body.length}` : body
}

test('a plain head is its target, its headers by lower-case names, how many lines and how many bytes it has', () => {
  const head = headOf(`${PLAIN}hello`)
  expect(head.target).toBe('/mcp?x=y')
  expect({ ...head.headers }).toEqual({
    host: 'localhost:8000',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  })
  expect(head.lines).toBe(4)
  expect(head.size).toBe(PLAIN.length - '5'.length)
})

test('a body is told by the stated length: whole, part of it, or more than that', () => {
  const head = headOf(PLAIN)
  expect(bodyOf(head, `${PLAIN}hello`)).toBe('body hello')
  expect(bodyOf(head, `${PLAIN}hell`)).toBe('4 of 5')
  expect(bodyOf(head, PLAIN)).toBe('0 of 5')
  expect(bodyOf(head, `${PLAIN}hello!`)).toBe('beyond')
  const empty = `${LINE}${HOST}Content-Length: 0\r\n\r\n`
  expect(bodyOf(headOf(empty), empty)).toBe('body ')
  expect(bodyOf(headOf(empty), `${empty}POST`)).toBe('beyond')
})

test('the next request has the same head if its bytes but for the length are the same', () => {
  const head = headOf(PLAIN)
  const next = (length: string, body: string): string | undefined =>
    bodyOf(head, PLAIN.replace('Content-Length: 5', `Content-Length: ${length}`) + body)
  expect(next('12', 'hello, world')).toBe('body hello, world')
  expect(next('0', '')).toBe('body ')
  expect(next('99999999', 'x')).toBe('1 of 99999999')
  for (const length of ['', '05', '00', '100000000', '+5', '-5', '5 ', ' 5', '0x5', '5,5', '5\r\nContent-Length: 5'])
    expect(next(length, 'hello'), JSON.stringify(length)).toBeUndefined()
})
test.each([
  ['another target', PLAIN.replace('x=y', 'x=z')],
  ['another case of a name', PLAIN.replace('Host', 'host')],
  ['another value before the length', PLAIN.replace(':8000', ':8001')],
  ['another value behind it', PLAIN.replace('event-stream', 'event-strean')],
  ['one more line', PLAIN.replace('Accept', 'X: y\r\nAccept')],
  ['one more blank', PLAIN.replace('Accept: ', 'Accept:  ')],
  ['only part of a head', PLAIN.slice(0, -1)],
  ['part of the digits', PLAIN.slice(0, PLAIN.indexOf('5\r\n') + 1)],
  ['nothing', ''],
])('the next request has another head: %s', (_what, text) => {
  expect(headOf(PLAIN).bodyIn(bytes(text))).toBeUndefined()
})

test('each beginning of a plain request may still become one, and none is taken for one', () => {
  const whole = `${PLAIN}hello`
  for (let at = 0; at < whole.length; at++) {
    const head = read(whole.slice(0, at))
    const told = head instanceof FastHead ? bodyOf(head, whole.slice(0, at)) : head
    expect(told, String(at)).toBe(at < PLAIN.length ? 'more' : `${at - PLAIN.length} of 5`)
  }
})

test('a head does not keep the bytes of the request it was read from', () => {
  const request = bytes(`${PLAIN}hello`)
  const head = FastHead.read(request)
  request.fill(0)
  expect(head instanceof FastHead && bodyOf(head, `${PLAIN}hello`)).toBe('body hello')
})

test('a head of 8 KiB is plain, one byte more is not, whether its end has come or not', () => {
  const padded = (size: number): string => {
    const bare = `${LINE}${HOST}${LENGTH}X: \r\n\r\n`
    return bare.replace('X: ', `X: ${'a'.repeat(size - bare.length)}`)
  }
  expect(headOf(padded(8 * 1024)).lines).toBe(3)
  expect(read(padded(8 * 1024 + 1))).toBeUndefined()
  expect(read(padded(8 * 1024 + 1).slice(0, -4))).toBe('more')
  expect(read(padded(8 * 1024 + 5).slice(0, -4))).toBeUndefined()
})

test.each([
  ['a path alone', '/'],
  ['a query', '/mcp?a=b&c=%20'],
  ['marks', "/a/b.c~d_e-f!$'()*;:@,+"],
])('plain in its target: %s', (_what, target) => {
  expect(headOf(PLAIN.replace('/mcp?x=y', () => target)).target).toBe(target)
})
test.each([
  ['keep-alive', 'Connection: keep-alive\r\n'],
  ['Keep-Alive in other letters', 'Connection: Keep-Alive\r\n'],
  ['a name like a property of all objects', 'Constructor: x\r\n'],
  ['every printable character', `X: ${Array.from({ length: 94 }, (_, at) => String.fromCodePoint(33 + at)).join('')}\r\n`],
  ['blanks within a value', 'X: a  b c\r\n'],
  ['a colon in a value', 'X: a: b\r\n'],
])('plain in a header: %s', (_what, line) => {
  expect(headOf(PLAIN.replace(HOST, () => HOST + line)).lines).toBe(5)
})
test('a header that was not sent is undefined, whatever its name', () => {
  for (const name of ['constructor', '__proto__', 'toString', 'content-length'])
    expect(Object.hasOwn(headOf(PLAIN).headers, name)).toBe(false)
})

/** What stands where the host stands in a plain request, each a reason of its own. */
const BAD_LINES: readonly (readonly [string, string])[] = [
  ['no host', ''],
  ['a repeated header', `${HOST}X: y\r\nX: y\r\n`],
  ['a header repeated in other letters', `${HOST}x-a: y\r\nX-A: z\r\n`],
  ['the host twice', HOST + HOST],
  ['the length twice', HOST + LENGTH],
  ['two lengths', `${HOST}content-length: 6\r\n`],
  ['a repeated content type', `${HOST}Content-Type: application/json\r\n`],
  ['a length and chunks', `${HOST}Transfer-Encoding: chunked\r\n`],
  ['transfer-encoding: identity', `${HOST}transfer-encoding: identity\r\n`],
  ['expect', `${HOST}Expect: 100-continue\r\n`],
  ['upgrade', `${HOST}Upgrade: h2c\r\n`],
  ['te', `${HOST}TE: trailers\r\n`],
  ['trailer', `${HOST}Trailer: X\r\n`],
  ['proxy-connection', `${HOST}Proxy-Connection: keep-alive\r\n`],
  ['set-cookie', `${HOST}Set-Cookie: a=b\r\n`],
  ['connection: close', `${HOST}Connection: close\r\n`],
  ['connection: upgrade', `${HOST}Connection: Upgrade\r\n`],
  ['connection: keep-alive, close', `${HOST}Connection: keep-alive, close\r\n`],
  ['obs-fold', `${HOST}X: a\r\n b\r\n`],
  ['obs-fold by a tab', `${HOST}X: a\r\n\tb\r\n`],
  ['a first line that is folded', ` ${HOST}`],
  ['a blank before the colon', `${HOST}X : y\r\n`],
  ['a tab before the colon', `${HOST}X\t: y\r\n`],
  ['no blank behind the colon', `${HOST}X:y\r\n`],
  ['two blanks behind the colon', `${HOST}X:  y\r\n`],
  ['a tab behind the colon', `${HOST}X:\ty\r\n`],
  ['a trailing blank', `${HOST}X: y \r\n`],
  ['a trailing tab', `${HOST}X: y\t\r\n`],
  ['a tab in a value', `${HOST}X: a\tb\r\n`],
  ['an empty value', `${HOST}X:\r\n`],
  ['a value of one blank', `${HOST}X: \r\n`],
  ['no colon', `${HOST}X\r\n`],
  ['no colon, and one in the next line', `${HOST}X\r\nY: z\r\n`],
  ['an empty name', `${HOST}: y\r\n`],
  ['a bare LF between lines', `${HOST}X: y\nZ: z\r\n`],
  ['a bare CR in a value', `${HOST}X: a\rb\r\n`],
  ['NUL in a value', `${HOST}X: a\0b\r\n`],
  ['NUL in a name', `${HOST}X\0: y\r\n`],
  ['DEL in a value', `${HOST}X: a\x7f\r\n`],
  ['latin1 in a value', `${HOST}X: caf\xe9\r\n`],
  ['UTF-8 in a value', `${HOST}X: caf\xc3\xa9\r\n`],
  ['latin1 in a name', `${HOST}X\xe9: y\r\n`],
  ['an underscore in a name', `${HOST}X_A: y\r\n`],
  ['__proto__', `${HOST}__proto__: y\r\n`],
  ['a name that begins with a digit', `${HOST}1X: y\r\n`],
  ['other characters in a name', `${HOST}X!: y\r\n`],
]
const BAD_LENGTHS = ['05', '00', '', '-1', '+5', '5 ', ' 5', '0x5', '5.0', '5, 5', '1e1', '123456789', '99999999999999999999']
const BAD_STARTS: readonly (readonly [string, string])[] = [
  ['GET, with a length', 'GET /mcp HTTP/1.1\r\n'],
  ['OPTIONS, with a length', 'OPTIONS /mcp HTTP/1.1\r\n'],
  ['HEAD', 'HEAD /mcp HTTP/1.1\r\n'],
  ['PUT', 'PUT /mcp HTTP/1.1\r\n'],
  ['CONNECT', 'CONNECT /mcp HTTP/1.1\r\n'],
  ['get', 'get /mcp HTTP/1.1\r\n'],
  ['post', 'post /mcp HTTP/1.1\r\n'],
  ['HTTP/1.0', 'POST /mcp HTTP/1.0\r\n'],
  ['HTTP/1.2', 'POST /mcp HTTP/1.2\r\n'],
  ['http/1.1', 'POST /mcp http/1.1\r\n'],
  ['no version', 'POST /mcp\r\n'],
  ['absolute form', 'POST http://localhost/mcp HTTP/1.1\r\n'],
  ['authority form', 'POST localhost:80 HTTP/1.1\r\n'],
  ['asterisk form', 'POST * HTTP/1.1\r\n'],
  ['no target', 'POST HTTP/1.1\r\n'],
  ['two blanks', 'POST  /mcp HTTP/1.1\r\n'],
  ['a tab', 'POST\t/mcp HTTP/1.1\r\n'],
  ['a blank at the end', 'POST /mcp HTTP/1.1 \r\n'],
  ['a blank at the beginning', ' POST /mcp HTTP/1.1\r\n'],
  ['a blank in the target', 'POST /m cp HTTP/1.1\r\n'],
  ['a fragment', 'POST /mcp#x HTTP/1.1\r\n'],
  ['a quote in the target', 'POST /"mcp" HTTP/1.1\r\n'],
  ['a backslash in the target', 'POST /..\\mcp HTTP/1.1\r\n'],
  ['NUL in the target', 'POST /m\0cp HTTP/1.1\r\n'],
  ['latin1 in the target', 'POST /m\xe9 HTTP/1.1\r\n'],
  ['an empty line before', '\r\nPOST /mcp HTTP/1.1\r\n'],
  ['a bare LF', 'POST /mcp HTTP/1.1\n'],
  ['a bare CR', 'POST /mcp HTTP/1.1\r'],
]

describe('not plain, and so for node:http to judge', () => {
  test.each(BAD_LINES)('%s', (_what, lines) => {
    expect(read(PLAIN.replace(HOST, () => lines))).toBeUndefined()
  })
  test.each(BAD_LENGTHS)('a length of "%s"', (length) => {
    expect(read(PLAIN.replace(LENGTH, `Content-Length: ${length}\r\n`))).toBeUndefined()
  })
  test('no length, and no header at all', () => {
    expect(read(PLAIN.replace(LENGTH, ''))).toBeUndefined()
    expect(read(`${LINE}\r\n`)).toBeUndefined()
    expect(read('\r\n\r\n')).toBeUndefined()
  })
  test.each(BAD_STARTS)('a request line with %s', (_what, line) => {
    expect(read(PLAIN.replace(LINE, () => line))).toBeUndefined()
  })
  test('lines that end with LF only never become plain', () => {
    expect(read(`${PLAIN.replaceAll('\r\n', '\n')}\r\n\r\n`)).toBeUndefined()
  })
})

describe('a body in chunks', () => {
  const CHUNKED = PLAIN.replace(LENGTH, 'Transfer-Encoding: chunked\r\n')
  const head = headOf(CHUNKED)
  const told = (chunks: string): string | undefined => bodyOf(head, CHUNKED + chunks)

  test.each([
    ['5\r\nhello\r\n0\r\n\r\n', 'hello'],
    ['2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n', 'hello'],
    [`1F\r\n${'x'.repeat(31)}\r\n0\r\n\r\n`, 'x'.repeat(31)],
    [`1f\r\n${'x'.repeat(31)}\r\n0\r\n\r\n`, 'x'.repeat(31)],
    ['7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n', '\r\n0\r\n\r\n'],
    ['0\r\n\r\n', ''],
  ])('of %j', (chunks, body) => {
    expect(told(chunks)).toBe(`body ${body}`)
    for (let at = 0; at < chunks.length; at++) expect(told(chunks.slice(0, at)), String(at)).toBe('more')
    expect(told(`${chunks}P`)).toBe('beyond')
  })

  test.each([
    ['an extension', '5;a=b\r\nhello\r\n0\r\n\r\n'],
    ['a trailer', '5\r\nhello\r\n0\r\nX: y\r\n\r\n'],
    ['an extension of the last one', '5\r\nhello\r\n0;a\r\n\r\n'],
    ['a leading zero', '05\r\nhello\r\n0\r\n\r\n'],
    ['two zeros', '5\r\nhello\r\n00\r\n\r\n'],
    ['0x', '0x5\r\nhello\r\n0\r\n\r\n'],
    ['a sign', '+5\r\nhello\r\n0\r\n\r\n'],
    ['a blank before', ' 5\r\nhello\r\n0\r\n\r\n'],
    ['a blank behind', '5 \r\nhello\r\n0\r\n\r\n'],
    ['no size', '\r\nhello\r\n0\r\n\r\n'],
    ['other digits', 'g\r\nhello\r\n0\r\n\r\n'],
    ['a bare LF behind the size', '5\nhello\r\n0\r\n\r\n'],
    ['a bare CR behind the size', '5\rhello\r\n0\r\n\r\n'],
    ['a bare LF behind the data', '5\r\nhello\n0\r\n\r\n'],
    ['less data than stated', '6\r\nhello\r\n0\r\n\r\n'],
    ['more data than stated', '4\r\nhello\r\n0\r\n\r\n'],
    ['a bare LF at the end', '5\r\nhello\r\n0\r\n\n'],
    ['six digits', `100000\r\n`],
    ['a size beyond the limit', `fffff\r\n`],
  ])('and %s is not plain', (_what, chunks) => {
    expect(told(chunks)).toBe('beyond')
  })

  test('may be 128 KiB with all its framing', () => {
    const framed = (size: number): string => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n0\r\n\r\n`
    const size = 128 * 1024 - framed(128 * 1024).length + 128 * 1024
    expect(told(framed(size))).toBe(`body ${'x'.repeat(size)}`)
    expect(told(framed(size + 1))).toBe('beyond')
  })

  test.each(['gzip, chunked', 'Chunked', 'identity', 'chunked, chunked', 'xchunked'])(
    'Transfer-Encoding: %s is not plain',
    (value) => {
      expect(read(CHUNKED.replace(': chunked', `: ${value}`))).toBeUndefined()
    },
  )
})

test.each(['GET', 'OPTIONS', 'DELETE'])('a plain %s has no body', (method) => {
  const text = PLAIN.replace('POST', method).replace(LENGTH, '')
  const head = headOf(text)
  expect([head.method, head.target, head.lines]).toEqual([method, '/mcp?x=y', 3])
  expect(bodyOf(head, text)).toBe('body ')
  expect(bodyOf(head, `${text}P`)).toBe('beyond')
  expect(bodyOf(head, PLAIN)).toBeUndefined()
  expect(read(text.replace(HOST, `${HOST}Transfer-Encoding: chunked\r\n`))).toBeUndefined()
})
