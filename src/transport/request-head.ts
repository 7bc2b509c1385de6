/** The head of an HTTP/1.1 request as text. What could end a line early never becomes part of one. */
import { byteLength } from '../wire/payload.ts'
import type { HttpRequest } from './http-client.ts'

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Each hop has its own. */
const RESERVED = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding', 'upgrade'])

/** Latin-1 text up to and with the empty line. Throws `TypeError` for a header that cannot be sent. */
export const requestHead = ({ method, url, headers, body }: HttpRequest): string => {
  let head = `${method} ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n`
  if (headers['accept-encoding'] === undefined) head += 'accept-encoding: identity\r\n'
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!NAME.test(name) || RESERVED.has(name)) throw new TypeError(`the header name ${JSON.stringify(name)} cannot be sent`)
    if (!VALUE.test(value)) throw new TypeError(`the value of the header "${name}" cannot be sent`)
    head += `${name}: ${value}\r\n`
  }
  if (body !== undefined) head += `content-length: ${byteLength(body)}\r\n`
  else if (method === 'POST') head += 'content-length: 0\r\n'
  return `${head}\r\n`
}
