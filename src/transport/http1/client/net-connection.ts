/**
 * One connection to an `http://` origin, with at most one exchange on it.
 *
 *   connecting ─▶ writing, reading ─▶ complete ─▶ idle ─▶ writing …
 *        │                │                         └─ closed by the server, or idle too long
 *        └─ unreachable   └─ lost: a written request may have been executed, so it is not written twice
 *
 * Gain: a call through undici uses about twice as much CPU (decision 0009).
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { asError } from '../../../values/as-error.ts'
import type { Parts } from '../../../wire/message/payload.ts'
import type { BodyPool } from '../../body-pool.ts'
import { StallTimer } from '../../stall-timer.ts'
import type { ResponseHead } from './response-head.ts'
import { ResponseReader } from './response-reader.ts'
import type { ResponseEvents } from './response-reader.ts'
import type { WriteBatch } from '../write-batch.ts'

/** Events of a connection for its user. */
export interface ConnectionUser extends ResponseEvents {
  /** The response is complete. */
  onDone(): void
  /** `isWritten`: a byte of the request may have reached the server. This is the last event. */
  onBroken(error: Error, isWritten: boolean): void
}

export interface NetConnectionOptions {
  readonly connectTimeoutMs: number
  /** Memory of every read. May be shared, since reads are handled synchronously. */
  readonly readBuffer: Buffer
  /** Memory of request bodies. */
  readonly bodies: BodyPool
  /** Collects small requests. */
  readonly batch: WriteBatch
  /** The connection has become free, or (`false`) is closed. */
  onFree(connection: NetConnection, isUsable: boolean): void
  /** The server closed the connection shortly after a response that did not announce it. */
  onEarlyClose(): void
}

/** Idle time for servers without a `Keep-Alive` header: the default of node:http is 5 s. */
const DEFAULT_IDLE_MS = 4_000
/** A connection is closed this much before the server closes it, so that no request crosses the close. */
const IDLE_MARGIN_MS = 1_000
const MAX_IDLE_MS = 60_000
/**
 * A close within this time after a response is early. HTTP+SSE of FastMCP 0.4 answers 202, fails in Starlette, and so closes the
 * connection some milliseconds later.
 */
const REST_MS = 500
/** Idle time before the kernel sends keep-alive probes; the same as on connections of hosts. */
const KEEP_ALIVE_MS = 30_000
/** How long a server that has answered may read nothing of the rest of the request. */
const UNREAD_MS = 60_000

export class NetConnection implements ResponseEvents {
  readonly #socket: Socket
  readonly #options: NetConnectionOptions
  readonly #reader = new ResponseReader()
  readonly #connectTimer: NodeJS.Timeout
  #user: ConnectionUser | undefined
  #isWritten = false
  #isPaused = false
  /** A small request that is written at the end of this turn of the event loop. */
  #batched: Uint8Array | undefined
  readonly #writeBatched = (): void => this.#flush()
  #error: Error | undefined
  /** Monotonic time until which it may be reused. */
  #usableUntilMs = Infinity
  #idleMs = DEFAULT_IDLE_MS
  /** When the last response was complete, until the head of the next one. */
  #answeredMs: number | undefined
  #isEndedByServer = false

  constructor(host: string, port: number, options: NetConnectionOptions) {
    this.#options = options
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      // If the machine of a server is lost, no packet reports it, and a stream may be idle for long: the kernel sends probes (F-14).
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      // Reads into one buffer: no allocation per read, and no stream layer between the socket and the parser. Halves the
      // cost of reading 1 MB.
      onread: { buffer: options.readBuffer, callback: (length) => this.#read(options.readBuffer, length) },
    })
    this.#connectTimer = setTimeout(() => {
      this.#socket.destroy(Object.assign(new Error('no connection within the time limit'), { code: 'ETIMEDOUT' }))
    }, options.connectTimeoutMs)
    this.#socket.once('connect', () => clearTimeout(this.#connectTimer))
    this.#socket.on('error', (error) => (this.#error = error))
    this.#socket.on('end', () => this.#ended())
    this.#socket.on('close', () => this.#closed())
  }

  /** False: closed, or about to be closed by the server. */
  isUsable(nowMs: number): boolean {
    return this.#socket.writable && nowMs < this.#usableUntilMs
  }

  /** Whether the server has left it open for so long after a response that it keeps connections. */
  hasRested(nowMs: number): boolean {
    return this.#answeredMs !== undefined && nowMs - this.#answeredMs >= REST_MS
  }

  /** Sends a request; its response goes to `user`. A request in one piece is written together with others of this turn. */
  send(request: Parts, user: ConnectionUser): void {
    this.#user = user
    this.#reader.begin(this)
    this.#usableUntilMs = Infinity
    if (this.#socket.connecting) this.#socket.once('connect', () => this.#write(request))
    else this.#write(request)
  }

  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#socket.resume()
  }

  /** Closes it at once, without a further event. */
  destroy(): void {
    this.#user = undefined
    // Batched bytes are written first: a cancellation is often the last message before its connection is closed.
    this.#flush()
    this.#socket.destroy()
  }

  /** Closes it at once and reports the error to its user. */
  break(error: Error): void {
    this.#flush()
    this.#socket.destroy(error)
  }

  onHead(head: ResponseHead): void {
    this.#answeredMs = undefined
    this.#idleMs = head.keptMs === undefined ? DEFAULT_IDLE_MS : Math.min(head.keptMs - IDLE_MARGIN_MS, MAX_IDLE_MS)
    this.#user?.onHead(head)
  }

  onData(bytes: Buffer): void {
    this.#user?.onData(bytes)
  }

  #write(request: Parts): void {
    if (this.#user === undefined) return
    if (request.length === 1) {
      this.#batched = request[0]
      return this.#options.batch.add(this.#writeBatched)
    }
    const socket = this.#socket
    this.#isWritten = true
    const onWritten = this.#options.bodies.sending(request)
    const last = request.length - 1
    socket.cork()
    for (const [at, part] of request.entries()) socket.write(part, at === last ? onWritten : undefined)
    socket.uncork()
  }

  #flush(): void {
    const bytes = this.#batched
    if (bytes === undefined) return
    this.#batched = undefined
    // The server closed the connection in this turn: nothing was written.
    if (this.#socket.destroyed) return
    this.#isWritten = true
    this.#socket.write(bytes)
  }

  #read(buffer: Buffer, length: number): boolean {
    // Without a request the bytes are a protocol violation, or explain a close.
    if (this.#user === undefined) this.#socket.destroy()
    else {
      try {
        this.#reader.push(buffer, length)
      } catch (error) {
        this.#socket.destroy(asError(error))
        return true
      }
      if (this.#reader.isDone) this.#done()
    }
    return true
  }

  #done(): void {
    const user = this.#user
    if (user === undefined) return
    this.#user = undefined
    this.#isWritten = false
    if (this.#isPaused) this.resume()
    this.#answeredMs = performance.now()
    this.#usableUntilMs = this.#answeredMs + this.#idleMs
    const isKept = this.#reader.keepsAlive && this.#idleMs > 0
    if (isKept && this.#socket.writableLength > 0) this.#freeOnceWritten()
    else {
      if (!isKept) this.#socket.destroy()
      this.#options.onFree(this, isKept)
    }
    user.onDone()
  }

  /** The server answered before it had read the whole request. Another request would wait until the server reads the rest. */
  #freeOnceWritten(): void {
    const stall = new StallTimer(this.#socket, () => void this.#socket.destroy())
    stall.start(UNREAD_MS)
    this.#socket.write('', (error) => {
      stall.stop()
      if (!error) this.#options.onFree(this, true)
    })
  }

  #ended(): void {
    this.#isEndedByServer = true
    if (this.#user === undefined) this.#socket.destroy()
    else if (this.#reader.finish()) this.#done()
    else this.#socket.destroy(Object.assign(new Error('the server closed the connection'), { code: 'ECONNRESET' }))
  }

  #closed(): void {
    clearTimeout(this.#connectTimer)
    const user = this.#user
    this.#user = undefined
    this.#options.onFree(this, false)
    const isByServer = this.#isEndedByServer || this.#error !== undefined
    if (isByServer && this.#answeredMs !== undefined && !this.hasRested(performance.now())) this.#options.onEarlyClose()
    user?.onBroken(this.#error ?? new Error('the connection was closed'), this.#isWritten)
  }
}
