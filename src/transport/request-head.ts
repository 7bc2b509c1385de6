/** The head of an HTTP/1.1 request as text. What could end a line early never becomes part of one. */
import { byteLength } from '../wire/payload.ts'
import type { HttpRequest } from './http-client.ts'

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Each hop has its own. */
const RESERVED = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding', 'upgrade'])

/** Writes heads; lines that many requests share are checked and written once. */
export class RequestHeads {
  readonly #shared = new WeakMap<HttpRequest['headers'], string>()

  /** Latin1 text up to and with the empty line. Throws `TypeError` for a header that cannot be sent. */
  write({ method, url, headers, ownHeaders, body }: HttpRequest): string {
    let head = `${method} ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n`
    const isReplaced = ownHeaders !== undefined && Object.keys(ownHeaders).some((name) => name in headers)
    head += isReplaced ? linesOf({ ...headers, ...ownHeaders }) : this.#sharedLines(headers)
    if (ownHeaders !== undefined && !isReplaced) head += linesOf(ownHeaders)
    if (headers['accept-encoding'] === undefined && ownHeaders?.['accept-encoding'] === undefined)
      head += 'accept-encoding: identity\r\n'
    if (body !== undefined) head += `content-length: ${byteLength(body)}\r\n`
    else if (method === 'POST') head += 'content-length: 0\r\n'
    return `${head}\r\n`
  }

  #sharedLines(headers: HttpRequest['headers']): string {
    let lines = this.#shared.get(headers)
    if (lines === undefined) this.#shared.set(headers, (lines = linesOf(headers)))
    return lines
  }
}

const linesOf = (headers: Readonly<Record<string, string>>): string => {
  let lines = ''
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!NAME.test(name) || RESERVED.has(name)) throw new TypeError(`the header name ${JSON.stringify(name)} cannot be sent`)
    if (!VALUE.test(value)) throw new TypeError(`the value of the header "${name}" cannot be sent`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}
