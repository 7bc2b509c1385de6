/**
 * HTTP/1.1 to `http://` origins on bare sockets, for servers of the same machine. A call costs about half of a call through
 * undici (docs/benchmarks.md). undici handles everything else, mainly `https://`.
 *
 * One request at a time on a connection. A request is never sent twice: a written request may have been executed.
 *
 * Gain: a call through undici uses about twice as much CPU (decision 0009).
 */
import { asError } from '../../../values/as-error.ts'
import type { Failure } from '../../../wire/message/failure.ts'
import type { Parts } from '../../../wire/message/payload.ts'
import type { BodyPool } from '../../body-pool.ts'
import { DEFAULT_HTTP_CLIENT, headersLate, interrupted, unreachable } from './http-client.ts'
import type { HttpClient, HttpClientOptions, HttpExchange, HttpHandler, HttpRequest } from './http-client.ts'
import { NetConnection } from './net-connection.ts'
import type { ConnectionUser } from './net-connection.ts'
import { RequestHead } from './request-head.ts'
import type { ResponseHead } from './response-head.ts'
import { WriteBatch } from '../write-batch.ts'

/** Period of the sweep over free connections. */
const SWEEP_MS = 1_000

interface Origin {
  readonly host: string
  readonly port: number
  /** The most recently used connection is at the end and is reused first. */
  readonly free: NetConnection[]
  /**
   * The server closed a connection shortly after a response. A request that crosses such a close is lost, so each request gets a new
   * connection until the server has left one open for a while.
   */
  closesEarly: boolean
}

/** The shared part of requests with the same headers, method and URL. */
interface Route {
  readonly head: RequestHead
  readonly origin: Origin
}

export class NetClient implements HttpClient {
  readonly bodies: BodyPool
  readonly #options: HttpClientOptions
  readonly #others: HttpClient
  readonly #origins = new Map<string, Origin>()
  readonly #connections = new Set<NetConnection>()
  readonly #batch = new WriteBatch()
  /** By the headers that many requests share. */
  readonly #routes = new WeakMap<HttpRequest['headers'], Route>()
  #sweepTimer: NodeJS.Timeout | undefined

  /** `others` serves the origins that are not `http://`; it is closed with this one. */
  constructor(others: HttpClient, options: Partial<HttpClientOptions> = {}) {
    this.#others = others
    this.bodies = others.bodies
    this.#options = { ...DEFAULT_HTTP_CLIENT, ...options }
  }

  request(request: HttpRequest, handler: HttpHandler): HttpExchange {
    const known = this.#routes.get(request.headers)
    const isKnown = known !== undefined && known.head.fits(request)
    if (!isKnown && request.url.protocol !== 'http:') return this.#others.request(request, handler)
    const exchange = new Exchange(handler)
    try {
      const { head, origin } = isKnown ? known : this.#route(request)
      const bytes = head.write(request)
      exchange.begin(this.#connection(origin), bytes, request.headersTimeoutMs)
    } catch (error) {
      queueMicrotask(() => exchange.fail(unreachable(asError(error))))
    }
    return exchange
  }

  async close(): Promise<void> {
    clearInterval(this.#sweepTimer)
    for (const connection of this.#connections) connection.break(new Error('the client was closed'))
    await this.#others.close()
  }

  /** A free connection to the origin, or a new one; callers limit their number (`limits.concurrency`). */
  #connection(origin: Origin): NetConnection {
    const free = this.#free(origin)
    if (free !== undefined) return free
    const connection = new NetConnection(origin.host, origin.port, {
      connectTimeoutMs: this.#options.connectTimeoutMs,
      readBuffer: this.bodies.reads,
      batch: this.#batch,
      bodies: this.bodies,
      onFree: (connection, isUsable) => {
        // One is enough to find out whether the server leaves it open.
        if (isUsable && origin.closesEarly && origin.free.length > 0) return connection.destroy()
        if (isUsable) return void origin.free.push(connection)
        this.#connections.delete(connection)
        const at = origin.free.indexOf(connection)
        if (at !== -1) origin.free.splice(at, 1)
      },
      onEarlyClose: () => (origin.closesEarly = true),
    })
    this.#connections.add(connection)
    this.#sweepTimer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
    return connection
  }

  /** The free connection to use again, if there is one; after an early close, the one that rested longest. */
  #free(origin: Origin): NetConnection | undefined {
    const { free } = origin
    const nowMs = performance.now()
    for (;;) {
      const connection = origin.closesEarly ? free.shift() : free.pop()
      if (connection === undefined) return undefined
      if (!connection.isUsable(nowMs)) connection.destroy()
      else if (origin.closesEarly && !connection.hasRested(nowMs)) {
        free.unshift(connection)
        return undefined
      } else {
        origin.closesEarly = false
        return connection
      }
    }
  }

  #route(request: HttpRequest): Route {
    const route = { head: new RequestHead(request), origin: this.#origin(request.url) }
    this.#routes.set(request.headers, route)
    return route
  }

  #origin(url: URL): Origin {
    let origin = this.#origins.get(url.host)
    if (origin === undefined) {
      // An IPv6 address has brackets in a URL only.
      const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
      origin = { host, port: url.port === '' ? 80 : Number(url.port), free: [], closesEarly: false }
      this.#origins.set(url.host, origin)
    }
    return origin
  }

  #sweep(): void {
    const nowMs = performance.now()
    for (const { free } of this.#origins.values())
      for (const connection of free) if (!connection.isUsable(nowMs)) connection.destroy()
    if (this.#connections.size > 0) return
    clearInterval(this.#sweepTimer)
    this.#sweepTimer = undefined
  }
}

class Exchange implements HttpExchange, ConnectionUser {
  readonly #handler: HttpHandler
  #connection: NetConnection | undefined
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(handler: HttpHandler) {
    this.#handler = handler
  }

  begin(connection: NetConnection, request: Parts, headersTimeoutMs: number | undefined): void {
    this.#connection = connection
    if (headersTimeoutMs !== undefined) this.#timer = setTimeout(() => this.fail(headersLate()), headersTimeoutMs)
    connection.send(request, this)
  }

  abort(): void {
    if (this.#isOver) return
    this.#end()
    this.#connection?.destroy()
  }

  pause(): void {
    if (!this.#isOver) this.#connection?.pause()
  }

  resume(): void {
    if (!this.#isOver) this.#connection?.resume()
  }

  onHead(head: ResponseHead): void {
    clearTimeout(this.#timer)
    this.#handler.onHead(head)
  }

  onData(bytes: Buffer): void {
    this.#handler.onData(bytes)
  }

  onDone(): void {
    this.#end()
    this.#handler.onEnd()
  }

  onBroken(error: Error, isWritten: boolean): void {
    this.fail(isWritten ? interrupted(error) : unreachable(error))
  }

  fail(failure: Failure): void {
    if (this.#isOver) return
    this.abort()
    this.#handler.onError(failure)
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }
}
