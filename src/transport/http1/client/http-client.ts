/**
 * The HTTP client interface of all HTTP transports: one request, and its response in callbacks. Also its implementation on undici's
 * `Pool.dispatch`.
 *
 * The surprise: bodies have no timeout. An idle stream is normal in MCP; callers use their own watchdog.
 */
import type { Dispatcher } from 'undici'
import type { IncomingHttpHeaders } from 'node:http'
import { asError } from '../../../values/as-error.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { join } from '../../../wire/message/payload.ts'
import type { Parts } from '../../../wire/message/payload.ts'
import { BodyPool } from '../../body-pool.ts'
import { originOfProxy } from './proxy-rules.ts'
import { replyHead } from './reply-head.ts'
import type { ReplyHead } from './reply-head.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: URL
  /** Names in lower case. An object shared by many requests is read only once. */
  readonly headers: Readonly<Record<string, string>>
  /** Headers of this request only. They replace `headers` of the same name. */
  readonly ownHeaders?: Readonly<Record<string, string>> | undefined
  readonly body?: Parts | undefined
  /** Maximum milliseconds until the head of the response; absent: no limit. */
  readonly headersTimeoutMs?: number
}

/**
 * Callbacks in this order: one head, chunks, then one `onEnd` or `onError`; `onError` may be called at any time. No callback is called
 * before `request` has returned, and none after `abort()`. A chunk is valid until `onData` returns: copy it to keep it.
 */
export interface HttpHandler {
  onHead(head: ReplyHead): void
  onData(chunk: Buffer): void
  onEnd(): void
  /** `unreachable` (not executed) if nothing was written yet, otherwise `lost`. */
  onError(failure: Failure): void
}

export interface HttpExchange {
  /** Ends it at once: the connection is closed unless the response is complete. */
  abort(): void
  /** Stops reading (backpressure). */
  pause(): void
  resume(): void
}

export interface HttpClient {
  /** Memory of the bodies of big replies. */
  readonly bodies: BodyPool
  request(request: HttpRequest, handler: HttpHandler): HttpExchange
  /** Aborts pending requests and closes all connections. */
  close(): Promise<void>
}

/** Trust anchors for a server and the client certificate; PEM. */
export interface TlsSettings {
  /** Replaces the trust anchors of Node. */
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** The name in the server's certificate, and in SNI, in place of the URL's host. */
  readonly serverName: string | undefined
}

export interface HttpClientOptions {
  readonly connectTimeoutMs: number
  /** The proxy of all requests, with user name and password; CONNECT for `https:` URLs, the absolute URL for `http:` URLs. */
  readonly proxy: URL | undefined
  readonly tls: TlsSettings | undefined
}

export const DEFAULT_HTTP_CLIENT: HttpClientOptions = { connectTimeoutMs: 10_000, proxy: undefined, tls: undefined }

/** Keeps one pool of connections per origin, one request at a time on each connection. */
export class UndiciClient implements HttpClient {
  readonly #pools = new Map<string, Dispatcher>()
  readonly #options: HttpClientOptions
  readonly bodies: BodyPool
  #isClosed = false

  constructor(options: Partial<HttpClientOptions> = {}, bodies = new BodyPool()) {
    this.#options = { ...DEFAULT_HTTP_CLIENT, ...options }
    this.bodies = bodies
  }

  request(request: HttpRequest, handler: HttpHandler): HttpExchange {
    const { url } = request
    const exchange = new Exchange(handler, this.#options.proxy)
    const options: Dispatcher.DispatchOptions = {
      origin: url.origin,
      path: url.pathname + url.search,
      method: request.method,
      headers: { 'accept-encoding': 'identity', ...request.headers, ...request.ownHeaders },
      body: request.body === undefined ? null : join(request.body),
      // Needed here as well: undici's pool for a proxy has its own timeouts.
      bodyTimeout: 0,
      headersTimeout: request.headersTimeoutMs ?? 0,
    }
    const pool = this.#pools.get(url.origin)
    if (pool !== undefined) pool.dispatch(options, exchange)
    else this.#dispatch(url.origin, options, exchange).catch((error: unknown) => exchange.refuse(asError(error)))
    return exchange
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    await Promise.all(pools.map((pool) => pool.destroy()))
  }

  /** Loads undici on first use: most configurations never need it, and it is a fifth of the heap. */
  async #dispatch(origin: string, options: Dispatcher.DispatchOptions, exchange: Exchange): Promise<void> {
    const { Pool, ProxyAgent } = await import('undici')
    if (this.#isClosed || exchange.isOver) return exchange.refuse(new Error('the client was closed'))
    let pool = this.#pools.get(origin)
    if (pool === undefined) {
      const { connectTimeoutMs, proxy, tls } = this.#options
      const settings = { pipelining: 1, connectTimeout: connectTimeoutMs, allowH2: false } as const
      const connect = tls === undefined ? {} : tlsOptions(tls)
      pool =
        proxy === undefined
          ? new Pool(origin, { ...settings, connect })
          : new ProxyAgent({
              ...settings,
              uri: proxy.href,
              requestTls: connect,
              // Limits a proxy that does not answer CONNECT.
              clientFactory: (proxyOrigin, more) => new Pool(proxyOrigin, { ...more, headersTimeout: connectTimeoutMs }),
            })
      this.#pools.set(origin, pool)
    }
    pool.dispatch(options, exchange)
  }
}

class Exchange implements HttpExchange, Dispatcher.DispatchHandler {
  readonly #handler: HttpHandler
  #controller: Dispatcher.DispatchController | undefined
  #isOver = false
  readonly #proxy: URL | undefined

  constructor(handler: HttpHandler, proxy: URL | undefined) {
    this.#handler = handler
    this.#proxy = proxy
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** It was never dispatched. */
  refuse(error: Error): void {
    this.#fail(unreachable(error, this.#proxy))
  }

  abort(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#controller?.abort(new Error('aborted'))
  }

  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  /** The connection is open and the request is about to be written. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isOver) controller.abort(new Error('aborted'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#isOver || status < 200) return
    this.#handler.onHead(replyHead(status, joined(headers)))
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isOver) this.#handler.onData(chunk)
  }

  onResponseEnd(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#handler.onEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    // undici reports an unusable request while it is still being dispatched.
    if (this.#controller === undefined) queueMicrotask(() => this.#fail(unreachable(error, this.#proxy)))
    else if (isProxyRefusal(error, this.#proxy)) this.#fail(unreachable(error, this.#proxy))
    else this.#fail(interrupted(error))
  }

  #fail(failure: Failure): void {
    if (this.#isOver) return
    this.abort()
    this.#handler.onError(failure)
  }
}

/** Headers with the values of repeated ones joined as a list, as Node does; undici returns an array of them. */
const joined = (headers: IncomingHttpHeaders): IncomingHttpHeaders => {
  if (!Object.values(headers).some((value) => Array.isArray(value))) return headers
  const entries = Object.entries(headers)
  return Object.fromEntries(
    entries.map(([name, value]) => [name, Array.isArray(value) && name !== 'set-cookie' ? value.join(', ') : value]),
  )
}

const codeOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : error.name)

/** No connection, or nothing was written: the server has not received the request. */
export const unreachable = (error: Error, proxy?: URL): Failure => {
  const through =
    proxy === undefined ? '' : ` through the proxy ${originOfProxy(proxy)} (servers.<key>.proxy, HTTPS_PROXY or HTTP_PROXY)`
  const facts = { executed: 'no', retryable: true } as const
  return new Failure('unreachable', `cannot connect${through}: ${codeOf(error)}: ${textOf(error)}`, facts, error)
}

/** The error of a name with several addresses has no message, but one error for each. */
const textOf = (error: Error): string =>
  error.message === '' && error instanceof AggregateError
    ? error.errors.map((each) => asError(each).message).join(', ')
    : error.message

/** Whether a proxy refused CONNECT, for example for a missing password; undici reports that with its code for invalid arguments. */
const isProxyRefusal = (error: Error, proxy: URL | undefined): boolean =>
  proxy !== undefined && codeOf(error) === 'UND_ERR_INVALID_ARG' && error.message.includes('407')

const tlsOptions = ({ ca, cert, key, serverName }: TlsSettings) => ({
  ...(ca !== undefined && { ca }),
  ...(cert !== undefined && { cert }),
  ...(key !== undefined && { key }),
  ...(serverName !== undefined && { servername: serverName }),
})

/** Codes of errors for a server that violated HTTP/1.1: of the client on bare sockets, and of undici. */
const VIOLATIONS: ReadonlySet<string> = new Set([
  'ResponseError',
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
])

/** The connection broke after something was written. */
export const interrupted = (error: Error): Failure => {
  const code = codeOf(error)
  if (code === 'UND_ERR_HEADERS_TIMEOUT') return headersLate(error)
  if (VIOLATIONS.has(code) || error.name === 'HTTPParserError')
    return new Failure('bad_response', `the server did not speak HTTP/1.1: ${error.message}`, {}, error)
  return new Failure('lost', `the connection broke: ${code}: ${error.message}`, {}, error)
}

export const headersLate = (cause?: Error): Failure =>
  new Failure('timeout', 'no response headers within the time limit', {}, cause)
