import { expect, test } from 'vitest'
import type { HttpRequest } from '../../../src/transport/http1/client/http-client.ts'
import { RequestHead } from '../../../src/transport/http1/client/request-head.ts'

const SHARED: HttpRequest = {
  method: 'POST',
  url: new URL('http://a.test:81/mcp?x=y'),
  headers: { 'x-a': '1', 'x-b': '2' },
}
const START = 'POST /mcp?x=y HTTP/1.1\r\nhost: a.test:81\r\n'

const written = (request: Partial<HttpRequest>): string =>
  Buffer.concat(new RequestHead(SHARED).write({ ...SHARED, ...request })).toString('latin1')

test('a request has the shared headers, its own, and the length of its body', () => {
  const body = [Buffer.from('{"a"'), Buffer.from(':"é"}')]
  expect(written({ body, ownHeaders: { 'x-c': 'caf\u00e9' } })).toBe(
    `${START}accept-encoding: identity\r\nx-a: 1\r\nx-b: 2\r\nx-c: caf\u00e9\r\ncontent-length: 10\r\n\r\n{"a":"\u00c3\u00a9"}`,
  )
  expect(written({})).toMatch(/\r\ncontent-length: 0\r\n\r\n$/)
  const get: HttpRequest = { ...SHARED, method: 'GET' }
  expect(Buffer.concat(new RequestHead(get).write(get)).toString()).not.toContain('content-length')
})

test("a request's own headers win, and none is sent twice", () => {
  const ownHeaders = { 'accept-encoding': 'br', 'x-b': '3' }
  expect(written({ ownHeaders })).toBe(`${START}accept-encoding: br\r\nx-a: 1\r\nx-b: 3\r\ncontent-length: 0\r\n\r\n`)
})

test('headers of its own are those of this request, whatever the one before had', () => {
  const head = new RequestHead(SHARED)
  const [one, two] = [{ 'x-c': '1' }, { 'x-c': '2' }]
  const linesOf = (ownHeaders?: Record<string, string>): string[] =>
    Buffer.concat(head.write({ ...SHARED, ...(ownHeaders && { ownHeaders }) }))
      .toString()
      .match(/x-c: ./g) ?? []
  expect([one, one, two, undefined, one].map(linesOf)).toEqual([['x-c: 1'], ['x-c: 1'], ['x-c: 2'], [], ['x-c: 1']])
})

test('a small request is one piece, a big one its head and the parts of its body', () => {
  const head = new RequestHead(SHARED)
  expect(head.write({ ...SHARED, body: [Buffer.alloc(10), Buffer.alloc(10)] })).toHaveLength(1)
  const big = Buffer.alloc(64 * 1024, 'x')
  const parts = head.write({ ...SHARED, body: [big] })
  expect(parts.at(-1)).toBe(big)
  expect(Buffer.concat(parts).toString()).toContain(`content-length: ${64 * 1024}\r\n\r\nxxx`)
})

test.each([
  ['a line break in a value', { 'x-c': 'a\r\nb: c' }],
  ['a value that is not latin1', { 'x-c': '\u2028' }],
  ['a name that is none', { 'x c': 'a' }],
  ['a header of the connection', { 'content-length': '5' }],
])('refuses %s', (_what, headers) => {
  expect(() => written({ ownHeaders: headers })).toThrow(TypeError)
  expect(() => new RequestHead({ ...SHARED, headers })).toThrow(TypeError)
})

test('it fits requests of the same method and URL', () => {
  const head = new RequestHead(SHARED)
  expect(head.fits({ ...SHARED, headers: {} })).toBe(true)
  expect(head.fits({ ...SHARED, method: 'DELETE' })).toBe(false)
  expect(head.fits({ ...SHARED, url: new URL('http://b.test/mcp') })).toBe(false)
})
