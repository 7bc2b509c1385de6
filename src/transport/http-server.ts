/**
 * HTTP listeners and what one request on them can do: be read within a limit, be answered in one write, or become a stream of
 * events. It knows HTTP; what the bytes mean is the `host/` room's.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { byteLength, join, latin1Of } from '../wire/payload.ts'
import type { Parts } from '../wire/payload.ts'
import { COMMENT, encodeEvent } from '../wire/sse.ts'
import type { BodyPool } from './body-pool.ts'
import { BodyWriter } from './body-writer.ts'
import { WriteBatch } from './write-batch.ts'

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
  readonly maxConnections: number
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

/**
 * Binds one address. Rejects with the system's error (`EADDRINUSE` …). `onTrouble` hears of connections that could not be taken,
 * as when no descriptor is left (F-29), and of those that were given up; the others go on.
 */
export const listenHttp = async (
  address: { readonly host: string; readonly port: number },
  options: HttpServerOptions,
  bodies: BodyPool,
  onRequest: (request: HttpRequest) => void,
  onTrouble: (error: Error) => void,
): Promise<Listening> => {
  const { writeStallMs } = options
  const shared: Shared = { batch: new WriteBatch(), bodies, writeStallMs, onTrouble }
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
    (request, response) => onRequest(new HttpRequest(request, response, shared)),
  )
  server.maxHeadersCount = 100
  server.maxConnections = options.maxConnections
  await bind(server, address)
  server.on('error', onTrouble)
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
  readonly onTrouble: (error: Error) => void
}

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
    for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === name) count++
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

  /** Reads the body; calls back with `undefined` once it exceeds `maxBytes` (the connection is then not kept). */
  readBody(maxBytes: number, done: (body: Buffer | undefined) => void): void {
    const request = this.#request
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return this.#refuseBody(done)
    // Most bodies came together with their heads, and are there when this turn's parsing is over: read at once, they take no
    // listeners and no flowing.
    process.nextTick(() => {
      const body = request.read() as Buffer | null
      if (!request.complete || request.readableLength > 0) this.#collect(body, maxBytes, done)
      else if (body !== null && body.length > maxBytes) this.#refuseBody(done)
      else done(body ?? Buffer.alloc(0))
    })
  }

  /** The rest of a body of which `first` has come. */
  #collect(first: Buffer | null, maxBytes: number, done: (body: Buffer | undefined) => void): void {
    const request = this.#request
    const chunks = first === null ? [] : [first]
    let size = first?.length ?? 0
    if (size > maxBytes) return this.#refuseBody(done)
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBytes) chunks.push(chunk)
      else if (size - chunk.length <= maxBytes) this.#refuseBody(done)
    })
    request.on('end', () => {
      if (size <= maxBytes) done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size))
    })
    request.on('error', () => undefined)
  }

  #refuseBody(done: (body: undefined) => void): void {
    this.addHeaders({ Connection: 'close' })
    this.#request.resume()
    done(undefined)
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
      const { writeStallMs, onTrouble } = this.#shared
      response.setTimeout(writeStallMs, () => {
        onTrouble(stalled(writeStallMs))
        response.destroy()
      })
      response.cork()
      for (const part of body) response.write(part)
      response.end(() => this.#shared.bodies.release(body))
    }
  }

  /** Answers with a body that is written as it is made; `onFull` and `onDrained` say whether the host takes it. */
  replyInPieces(status: number, headers: Headers, onFull: () => void, onDrained: () => void): BodyWriter {
    const { bodies, writeStallMs: stallMs, onTrouble } = this.#shared
    this.#response.writeHead(status, { ...this.#extraHeaders, ...headers })
    return new BodyWriter(this.#response, bodies, { onFull, onDrained, stallMs, onStalled: () => onTrouble(stalled(stallMs)) })
  }

  /** Answers 200 with a stream of events. */
  openEvents(headers: Headers): EventStream {
    this.#response.writeHead(200, { ...this.#extraHeaders, ...EVENT_HEADERS, ...headers })
    this.#response.flushHeaders()
    return new EventStream(this.#response)
  }
}

const stalled = (writeStallMs: number): Error =>
  new Error(`a host took nothing of its answer for ${writeStallMs} ms (listen.limits.write_stall)`)

/** Events to one host. A host that does not read loses its stream, never its neighbours (F-21). */
export class EventStream {
  readonly #response: ServerResponse
  #stalledSinceMs: number | undefined
  #lastWriteMs = performance.now()

  constructor(response: ServerResponse) {
    this.#response = response
    response.on('drain', () => (this.#stalledSinceMs = undefined))
    response.on('error', () => undefined)
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

  /** Keeps the stream alive while it is quiet, and ends it when its host has stopped reading. */
  sweep(limits: { keepAliveMs: number; stallMs: number; maxQueuedBytes: number }): void {
    const nowMs = performance.now()
    const isStalled = this.#stalledSinceMs !== undefined && nowMs - this.#stalledSinceMs >= limits.stallMs
    if (isStalled || this.#response.writableLength > this.#largest + limits.maxQueuedBytes) this.#response.destroy()
    else if (this.isOpen && nowMs - this.#lastWriteMs >= limits.keepAliveMs) this.#write(COMMENT)
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
    this.#stalledSinceMs ??= this.#lastWriteMs
  }
}
