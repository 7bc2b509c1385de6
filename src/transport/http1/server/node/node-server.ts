/**
 * The node:http server for connections that the fast path does not read. It is created for the first such connection, because many
 * processes have none. It does not listen: sockets are passed to it by its documented `connection` event.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { byteLength, join } from '../../../../wire/message/payload.ts'
import type { Parts } from '../../../../wire/message/payload.ts'
import { refuse } from '../connection/connection-caps.ts'
import { JOIN_BELOW_BYTES } from '../request/http-request.ts'
import type { ListenerEvents, ListenerState, OnTaken, RequestLimits } from '../request/http-request.ts'
import { StallTimer, takenBytes } from '../../../stall-timer.ts'
import { closeGently } from '../connection/lingering.ts'
import { nodeHttp } from './node-http.ts'
import { NodeRequest } from './node-request.ts'
import type { NodeResponse } from './node-request.ts'

/** The used part of `http.Server`. */
interface Native {
  emit(event: 'connection', socket: Socket): boolean
  closeIdleConnections(): void
  closeAllConnections(): void
  close(done: () => void): unknown
}

export class NodeServer {
  readonly #options: RequestLimits
  readonly #shared: ListenerState
  /** Connections whose body is being read. */
  readonly #reading = new Set<Socket>()
  #server: Native | undefined

  constructor(options: RequestLimits, shared: ListenerState) {
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

  /** Closes its connections and stops the check for slow ones. */
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
      (request, response) => this.#serve(request, response, () => undefined),
    )
    // A host with `Expect: 100-continue` gets 100 only when its body is read. The host of a refused request does not send its body.
    server.on('checkContinue', (request: IncomingMessage, response: NodeResponse) =>
      this.#serve(request, response, () => response.writeContinue()),
    )
    server.maxHeadersCount = 0
    // Cast: Node passes the socket.
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#refuse(error, socket as Socket))
    // The event starts the check for slow connections.
    server.emit('listening')
    return server
  }

  #serve(request: IncomingMessage, response: NodeResponse, onRead: () => void): void {
    const { maxHeaderLines } = this.#options
    const { events } = this.#shared
    // Counted here, because node:http would drop the excess headers and continue.
    if (request.rawHeaders.length <= 2 * maxHeaderLines)
      return events.request(
        new NodeRequest(request, response, this.#shared, { limits: this.#options, reading: this.#reading, onRead }),
      )
    events.reached('listen.limits.header_lines')
    this.#refuseGently(request.socket, 431, `more headers than listen.limits.header_lines (${maxHeaderLines})`)
  }

  /** Refuses bytes that are not a request: too long, too slow, or not HTTP. */
  #refuse({ code }: NodeJS.ErrnoException, socket: Socket): void {
    const { events } = this.#shared
    const { maxHeaderBytes } = this.#options
    // The last answer was written and the connection is being closed.
    if (socket.writableEnded) return
    // The host would read a refusal as part of the answer that it is getting.
    if (isMidAnswer(socket)) return void socket.destroy()
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuseLate(socket, this.#reading.has(socket), this.#options, events)
    if (code !== 'HPE_HEADER_OVERFLOW') return this.#refuseGently(socket, 400, '')
    events.reached('listen.limits.max_header')
    this.#refuseGently(socket, 431, `listen.limits.max_header (${maxHeaderBytes} bytes) reached`)
  }

  /** Refuses a host that may still be sending. */
  #refuseGently(socket: Socket, status: number, text: string): void {
    refuse(socket, status, text, () => closeGently(socket, this.#options, this.#shared.events))
  }
}

/** The used part of the answer that node:http is writing to a socket. */
interface Answer {
  readonly _headerSent?: boolean
  readonly writableEnded: boolean
}

/** Whether a part of an answer was written, but not its end. As in node:http, which then sends no refusal of its own. */
const isMidAnswer = (socket: Socket): boolean => {
  const answer: Answer | null | undefined = Reflect.get(socket, '_httpMessage')
  return answer?._headerSent === true && !answer.writableEnded
}

/** Answers 408 to a request that took too long. `isReading`: its body was being read; else its head. */
export const refuseLate = (socket: Socket, isReading: boolean, options: RequestLimits, events: ListenerEvents): void => {
  const { requestTimeoutMs, headersTimeoutMs } = options
  const [option, ms] = isReading
    ? ['listen.limits.request_timeout', requestTimeoutMs]
    : ['listen.limits.headers_timeout', headersTimeoutMs]
  events.reached(option)
  refuse(socket, 408, `${option} (${ms} ms) reached`)
}

/** `base`: the class of node:http, which is loaded on first use. */
const nodeResponse = (base: typeof ServerResponse) =>
  class extends base implements NodeResponse {
    #stall: StallTimer | undefined

    get takenBytes(): number | undefined {
      return this.socket === null ? undefined : takenBytes(this.socket)
    }

    send(parts: Parts, onTaken?: OnTaken): boolean {
      if (parts.length === 1 || byteLength(parts) < JOIN_BELOW_BYTES) return this.write(join(parts), onTaken)
      const last = parts.length - 1
      this.cork()
      for (const [at, part] of parts.entries()) this.write(part, at === last ? onTaken : undefined)
      this.uncork()
      // `uncork` emits `drain` if the system has taken all, before the caller can wait for it.
      return !this.writableNeedDrain
    }

    finish(parts: Parts = [], onTaken?: OnTaken): void {
      const { socket } = this
      // The socket is corked: `end` of a corked response in chunks would write the last chunk first.
      socket?.cork()
      if (parts.length > 0) this.send(parts)
      this.end(onTaken)
      socket?.uncork()
    }

    breakOff(): void {
      if (this.socket === null) this.destroy()
      else this.socket.destroySoon()
    }

    /** That of node:http counts what the host sends, and nothing of a write below TLS. */
    override setTimeout(ms: number): this {
      this.#stall?.stop()
      if (this.socket === null) this.once('socket', () => this.setTimeout(ms))
      else if (ms > 0) (this.#stall ??= this.#createStall(this.socket)).start(ms)
      return this
    }

    #createStall(socket: Socket): StallTimer {
      const stall = new StallTimer(socket, () => void this.emit('timeout'))
      this.once('close', () => stall.stop())
      return stall
    }
  }
