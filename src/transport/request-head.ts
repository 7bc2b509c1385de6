/** The head of an HTTP/1.1 request as text. What could end a line early never becomes part of one. */
import type { HttpRequest } from './http-client.ts'

type Headers = HttpRequest['headers']

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Each hop has its own. */
const RESERVED = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding', 'upgrade'])

/** What requests have in common that share their method, their URL and their headers: checked and written once. */
export class HeadTemplate {
  readonly #method: HttpRequest['method']
  readonly #url: URL
  readonly #headers: Headers
  readonly #start: string
  readonly #lines: string

  /** Throws `TypeError` for a header that cannot be sent. */
  constructor({ method, url, headers }: HttpRequest) {
    this.#method = method
    this.#url = url
    this.#headers = { 'accept-encoding': 'identity', ...headers }
    this.#start = `${method} ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n`
    this.#lines = linesOf(this.#headers)
  }

  /** Whether a request with the same headers has the rest in common, too. */
  fits({ method, url }: HttpRequest): boolean {
    return url === this.#url && method === this.#method
  }

  /** Latin1 text up to and with the empty line; `length` is that of the body, if there is one. Throws `TypeError` as above. */
  write(own: Headers | undefined, length: number | undefined): string {
    const lines = own === undefined ? this.#lines : this.#linesWith(own)
    if (length === undefined && this.#method !== 'POST') return `${this.#start}${lines}\r\n`
    return `${this.#start}${lines}content-length: ${length ?? 0}\r\n\r\n`
  }

  #linesWith(own: Headers): string {
    for (const name in own) if (name in this.#headers) return linesOf({ ...this.#headers, ...own })
    return this.#lines + linesOf(own)
  }
}

const linesOf = (headers: Headers): string => {
  let lines = ''
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!NAME.test(name) || RESERVED.has(name)) throw new TypeError(`the header name ${JSON.stringify(name)} cannot be sent`)
    if (!VALUE.test(value)) throw new TypeError(`the value of the header "${name}" cannot be sent`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}
