/**
 * node:http, which reads every connection that is not plain. It is created when the first such connection is there: many processes never
 * see one. It never listens itself but is given sockets, for which its `connection` event is documented.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { refuse } from './connection-caps.ts'
import type { ListenerEvents, Shared } from './http-request.ts'
import type { HttpServerOptions } from './http-server.ts'
import { nodeHttp } from './node-http.ts'
import { NodeRequest } from './node-request.ts'
import type { NodeResponse } from './node-request.ts'

/** What is used of `http.Server`. */
interface Native {
  emit(event: 'connection', socket: Socket): boolean
  closeIdleConnections(): void
  closeAllConnections(): void
  close(done: () => void): unknown
}

export class NodeServer {
  readonly #options: HttpServerOptions
  readonly #shared: Shared
  /** Connections on which a body is coming slowly. */
  readonly #reading = new Set<Socket>()
  #server: Native | undefined

  constructor(options: HttpServerOptions, shared: Shared) {
    this.#options = options
    this.#shared = shared
  }

  accept(socket: Socket): void {
    this.#server ??= this.#create()
    this.#server.emit('connection', socket)
  }

  closeIdle(): void {
    this.#server?.closeIdleConnections()
  }

  /** Ends its connections, and looks for slow ones no more. */
  close(): void {
    this.#server?.close(() => undefined)
    this.#server?.closeAllConnections()
  }

  #create(): Native {
    const { maxHeaderBytes, headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = this.#options
    const { createServer, ServerResponse: Base } = nodeHttp()
    const server = createServer(
      {
        ServerResponse: nodeResponse(Base),
        maxHeaderSize: maxHeaderBytes,
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        keepAliveTimeout: keepAliveTimeoutMs,
        connectionsCheckingInterval: Math.min(5_000, headersTimeoutMs),
        insecureHTTPParser: false,
      },
      (request, response) => this.#serve(request, response),
    )
    server.maxHeadersCount = 0
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#refuse(error, socket as Socket))
    // From here on it looks for slow connections, as it does once it listens.
    server.emit('listening')
    return server
  }

  #serve(request: IncomingMessage, response: NodeResponse): void {
    const { maxHeaderLines } = this.#options
    const { events } = this.#shared
    // Counted here: node:http would leave out what is too many, and go on.
    if (request.rawHeaders.length <= 2 * maxHeaderLines)
      return events.request(new NodeRequest(request, response, this.#shared, this.#reading))
    events.reached('listen.limits.header_lines')
    refuse(request.socket, 431, `more headers than listen.limits.header_lines (${maxHeaderLines})`)
  }

  /** Bytes that became no request: too many, too slow, or none of HTTP. */
  #refuse({ code }: NodeJS.ErrnoException, socket: Socket): void {
    const { events } = this.#shared
    const { maxHeaderBytes } = this.#options
    if (code === 'HPE_HEADER_OVERFLOW') tell(socket, 431, events, 'listen.limits.max_header', `${maxHeaderBytes} bytes`)
    else if (code !== 'ERR_HTTP_REQUEST_TIMEOUT') refuse(socket, 400, '')
    else refuseLate(socket, this.#reading.has(socket), this.#options, events)
  }
}

/** Answers a request that took too long: its body, if `isReading`, else its head. */
export const refuseLate = (socket: Socket, isReading: boolean, options: HttpServerOptions, events: ListenerEvents): void => {
  if (isReading) tell(socket, 408, events, 'listen.limits.request_timeout', `${options.requestTimeoutMs} ms`)
  else tell(socket, 408, events, 'listen.limits.headers_timeout', `${options.headersTimeoutMs} ms`)
}

const tell = (socket: Socket, status: number, events: ListenerEvents, option: string, value: string): void => {
  events.reached(option)
  refuse(socket, status, `${option} (${value}) reached`)
}

/** `base`: that of node:http, which is loaded late. */
const nodeResponse = (base: typeof ServerResponse) =>
  class extends base implements NodeResponse {
    breakOff(): void {
      if (this.socket === null) this.destroy()
      else this.socket.destroySoon()
    }
  }
