/**
 * HTTP listeners and what one request on them can do: be read within a limit, be answered in one write, or become a stream of
 * events. It knows HTTP; what the bytes mean is the `host/` room's.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { byteLength, join, latin1Of } from '../wire/payload.ts'
import type { Parts } from '../wire/payload.ts'
import { COMMENT, encodeEvent } from '../wire/sse.ts'
import type { BodyPool } from './body-pool.ts'
import { BodyWriter } from './body-writer.ts'
import type { HeldBytes } from './held-bytes.ts'
import { refuse } from './connection-caps.ts'
import type { ConnectionCaps } from './connection-caps.ts'
import { WriteBatch } from './write-batch.ts'

/** What may wait for a host before whoever speaks to it alone is no longer read. */
const STALLED_BYTES = 256 * 1024
/** Below this a reply is joined and written at once; above, its slices go out as they are. */
const JOIN_BELOW_BYTES = 64 * 1024

const EVENT_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
}

export type Headers = Readonly<Record<string, string>>

export interface HttpServerOptions {
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  /** A host that takes nothing of an answer for so long loses its connection. */
  readonly writeStallMs: number
}

export interface Listening {
  readonly host: string
  readonly port: number
  /** No new connections, idle ones closed; streams and open requests go on. */
  stopAccepting(): void
  /** Ends everything. */
  close(): Promise<void>
}

/** What a listener tells. */
export interface ListenerEvents {
  request(request: HttpRequest): void
  /** A connection could not be taken, as when no descriptor is left (F-29), or was given up; the others go on. */
  trouble(error: Error): void
  /** A limit was reached, by the path of its option. */
  reached(option: string): void
}

/** Binds one address. Rejects with the system's error (`EADDRINUSE` …). */
export const listenHttp = async (
  address: { readonly host: string; readonly port: number },
  options: HttpServerOptions,
  bodies: BodyPool,
  caps: ConnectionCaps,
  events: ListenerEvents,
): Promise<Listening> => {
  const { writeStallMs, maxHeaderLines } = options
  const shared: Shared = { batch: new WriteBatch(), bodies, writeStallMs, events, reading: new Set() }
  const server = createServer(
    {
      maxHeaderSize: options.maxHeaderBytes,
      headersTimeout: options.headersTimeoutMs,
      requestTimeout: options.requestTimeoutMs,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, options.headersTimeoutMs),
      insecureHTTPParser: false,
      // A host whose machine is gone says nothing: the kernel asks it (F-13).
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    },
    (request, response) => {
      // Counted here: node:http would leave out what is too many, and go on.
      if (request.rawHeaders.length <= 2 * maxHeaderLines) return events.request(new HttpRequest(request, response, shared))
      events.reached('listen.limits.header_lines')
      refuse(request.socket, 431, `more headers than listen.limits.header_lines (${maxHeaderLines})`)
    },
  )
  server.maxHeadersCount = 0
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseUnread(error, socket as Socket, options, shared))
  const [accept] = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => void (caps.admit(socket) && accept?.call(server, socket)))
  await bind(server, address)
  server.on('error', (error) => events.trouble(error))
  const { port } = server.address() as AddressInfo
  return {
    host: address.host,
    port,
    stopAccepting: () => {
      server.close()
      server.closeIdleConnections()
    },
    close: () =>
      new Promise((resolve) => {
        // Answers that are made go out before their connections are closed.
        shared.batch.flush()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Bytes that became no request: too many, too slow, or none of HTTP. */
const refuseUnread = (
  { code }: NodeJS.ErrnoException,
  socket: Socket,
  { maxHeaderBytes, headersTimeoutMs, requestTimeoutMs }: HttpServerOptions,
  { reading, events }: Shared,
): void => {
  const limit = (status: number, option: string, value: string): void => {
    events.reached(option)
    refuse(socket, status, `${option} (${value}) reached`)
  }
  if (code === 'HPE_HEADER_OVERFLOW') limit(431, 'listen.limits.max_header', `${maxHeaderBytes} bytes`)
  else if (code !== 'ERR_HTTP_REQUEST_TIMEOUT') refuse(socket, 400, '')
  else if (reading.has(socket)) limit(408, 'listen.limits.request_timeout', `${requestTimeoutMs} ms`)
  else limit(408, 'listen.limits.headers_timeout', `${headersTimeoutMs} ms`)
}

const bind = (server: Server, address: { host: string; port: number }): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address.port, address.host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })

/** What all requests of one listener use. */
interface Shared {
  /** Takes small replies. */
  readonly batch: WriteBatch
  /** Where big replies of servers lie until they are written. */
  readonly bodies: BodyPool
  readonly writeStallMs: number
  readonly events: ListenerEvents
  /** Connections on which a body is coming slowly. */
  readonly reading: Set<Socket>
}

/** Why a body was not read: it exceeds its own limit, or what all of them may hold together. */
export type Unread = 'too_large' | 'overloaded'

export class HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #shared: Shared
  #extraHeaders: Headers | undefined

  constructor(request: IncomingMessage, response: ServerResponse, shared: Shared) {
    this.#request = request
    this.#response = response
    this.#shared = shared
    this.method = request.method ?? ''
    const url = request.url ?? '/'
    const mark = url.indexOf('?')
    this.path = mark === -1 ? url : url.slice(0, mark)
    this.query = mark === -1 ? '' : url.slice(mark + 1)
  }

  /** A header's value; names in lower case. Repeated ones are joined as node:http does. */
  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  /** How often a header came; more than one `Host` is a smuggling attempt. */
  count(name: string): number {
    const { rawHeaders } = this.#request
    let count = 0
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const sent = rawHeaders[at]
      if (sent?.length === name.length && sent.toLowerCase() === name) count++
    }
    return count
  }

  /** All headers, by their names in lower case. */
  headers(): Readonly<Record<string, string>> {
    const { headers } = this.#request
    // Only cookies to be set come as a list, and they belong into responses.
    if (headers['set-cookie'] === undefined) return headers as Readonly<Record<string, string>>
    const found: Record<string, string> = {}
    for (const name of Object.keys(headers)) found[name] = this.header(name) ?? ''
    return found
  }

  /** Headers for whatever is answered (CORS). */
  addHeaders(headers: Headers): void {
    this.#extraHeaders = { ...this.#extraHeaders, ...headers }
  }

  /** Runs when the host has gone before the answer was complete. */
  onDisconnect(callback: () => void): void {
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) callback()
    })
  }

  /** Reads the body; calls back with the reason once it must not be read to its end (the connection is then not kept). */
  readBody(maxBytes: number, done: (body: Buffer | Unread) => void): void {
    const request = this.#request
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return this.#refuseBody('too_large', done)
    // Most bodies came together with their heads, and are there when this turn's parsing is over: read at once, they take no
    // listeners and no flowing.
    process.nextTick(() => {
      const body = request.read() as Buffer | null
      if (!request.complete || request.readableLength > 0) this.#collect(body, maxBytes, done)
      else if (body !== null && body.length > maxBytes) this.#refuseBody('too_large', done)
      else done(body ?? Buffer.alloc(0))
    })
  }

  /** The rest of a body of which `first` has come. */
  #collect(first: Buffer | null, maxBytes: number, done: (body: Buffer | Unread) => void): void {
    const request = this.#request
    const { reading, bodies } = this.#shared
    let chunks = first === null ? [] : [first]
    let size = first?.length ?? 0
    let isRefused = size > maxBytes
    if (isRefused) return this.#refuseBody('too_large', done)
    bodies.held.add(size)
    reading.add(request.socket)
    const release = (): void => {
      reading.delete(request.socket)
      bodies.held.release(size)
      size = 0
      chunks = []
    }
    request.on('data', (chunk: Buffer) => {
      if (isRefused) return
      const isTooLarge = size + chunk.length > maxBytes
      isRefused = isTooLarge || bodies.held.isFull
      if (isRefused) {
        release()
        return this.#refuseBody(isTooLarge ? 'too_large' : 'overloaded', done)
      }
      size += chunk.length
      bodies.held.add(chunk.length)
      chunks.push(chunk)
    })
    request.on('end', () => {
      if (isRefused) return
      const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size)
      release()
      done(body)
    })
    request.on('error', () => undefined)
    request.once('close', release)
  }

  #refuseBody(reason: Unread, done: (body: Unread) => void): void {
    this.addHeaders({ Connection: 'close' })
    this.#request.resume()
    done(reason)
  }

  /** Ends what cannot be answered any more: with 500 where nothing was said yet, else by breaking the stream visibly. */
  fail(): void {
    if (this.#response.headersSent) this.#response.destroy()
    else this.reply(500, { Connection: 'close' })
  }

  /** The whole answer in one write. */
  reply(status: number, headers: Headers, body?: Parts): void {
    const response = this.#response
    if (response.headersSent || response.destroyed) return
    const length = body === undefined ? 0 : byteLength(body)
    response.writeHead(status, { ...this.#extraHeaders, ...headers, 'Content-Length': length })
    if (body === undefined || length === 0) response.end()
    // node:http puts a head and latin1 text into one write; of a head and bytes it makes two pieces.
    else if (length < JOIN_BELOW_BYTES) {
      const text = latin1Of(body)
      this.#shared.batch.add(() => response.end(text, 'latin1'))
    } else {
      const { writeStallMs, events, bodies } = this.#shared
      response.setTimeout(writeStallMs, () => {
        tellStalled(events, writeStallMs)
        response.destroy()
      })
      bodies.held.add(length)
      response.once('close', () => bodies.held.release(length))
      response.cork()
      for (const part of body) response.write(part)
      response.end(() => bodies.release(body))
    }
  }

  /** Answers with a body that is written as it is made; `onFull` and `onDrained` say whether the host takes it. */
  replyInPieces(status: number, headers: Headers, onFull: () => void, onDrained: () => void): BodyWriter {
    const { bodies, writeStallMs: stallMs, events } = this.#shared
    const onStalled = (): void => tellStalled(events, stallMs)
    this.#response.writeHead(status, { ...this.#extraHeaders, ...headers })
    return new BodyWriter(this.#response, bodies, { onFull, onDrained, stallMs, onStalled })
  }

  /** Answers 200 with a stream of events. */
  openEvents(headers: Headers): EventStream {
    this.#response.writeHead(200, { ...this.#extraHeaders, ...EVENT_HEADERS, ...headers })
    this.#response.flushHeaders()
    return new EventStream(this.#response, this.#shared.bodies.held)
  }
}

const tellStalled = (events: ListenerEvents, writeStallMs: number): void => {
  events.reached('listen.limits.write_stall')
  events.trouble(new Error(`a host took nothing of its answer for ${writeStallMs} ms (listen.limits.write_stall)`))
}

/** Events to one host. A host that does not read loses its stream, never its neighbours (F-21). */
export class EventStream {
  readonly #response: ServerResponse
  readonly #held: HeldBytes
  #stalledSinceMs: number | undefined
  /** What waits since it stalled. */
  #waiting = 0
  #lastWriteMs = performance.now()

  constructor(response: ServerResponse, held: HeldBytes) {
    this.#response = response
    this.#held = held
    response.on('drain', () => this.#drained())
    response.on('close', () => this.#drained())
    response.on('error', () => undefined)
  }

  /** The host takes less than it is given: much waits for it. */
  get isStalled(): boolean {
    return this.#response.writableLength > STALLED_BYTES && !this.#response.destroyed
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed
  }

  onClose(callback: () => void): void {
    this.#response.on('close', callback)
  }

  send(data: Parts, options: { id?: string; event?: string; retryMs?: number } = {}): void {
    const { id, event, retryMs } = options
    const fields = {
      ...(id !== undefined && { id }),
      ...(event !== undefined && { event }),
      ...(retryMs !== undefined && { retry: retryMs }),
    }
    this.#write(join(encodeEvent({ data, ...fields })))
  }

  end(): void {
    if (this.isOpen) this.#response.end()
  }

  /** Keeps the stream alive while it is quiet, and ends it when its host has stopped reading: then the option that says so. */
  sweep(limits: { keepAliveMs: number; stallMs: number; maxQueuedBytes: number }): string | undefined {
    if (this.#response.destroyed) return undefined
    const nowMs = performance.now()
    const isStalled = this.#stalledSinceMs !== undefined && nowMs - this.#stalledSinceMs >= limits.stallMs
    if (isStalled || this.#response.writableLength > this.#largest + limits.maxQueuedBytes) {
      this.#response.destroy()
      return isStalled ? 'listen.limits.write_stall' : 'listen.limits.max_queued'
    }
    if (this.isOpen && nowMs - this.#lastWriteMs >= limits.keepAliveMs) this.#write(COMMENT)
    return undefined
  }

  #drained(): void {
    this.#stalledSinceMs = undefined
    this.#held.release(this.#waiting)
    this.#waiting = 0
  }

  /** Bytes of the largest message still queued: a big answer alone is no reason to cut its host off. */
  #largest = 0

  #write(bytes: Uint8Array): void {
    if (!this.isOpen) return
    this.#lastWriteMs = performance.now()
    if (this.#response.write(bytes)) {
      this.#largest = 0
      return
    }
    this.#largest = Math.max(this.#largest, bytes.length)
    this.#waiting += bytes.length
    this.#held.add(bytes.length)
    this.#stalledSinceMs ??= this.#lastWriteMs
  }
}
