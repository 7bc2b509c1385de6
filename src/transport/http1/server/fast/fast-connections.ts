/**
 * The fast-path connections of one listener, and their shared state.
 *
 * Gain: 100 B × 32 costs 0.6 to 0.7 of raw in place of 1.0 (bench/notes.md).
 */
import type { Socket } from 'node:net'
import type { RequestLimits, ListenerState } from '../request/http-request.ts'
import { FastConnection } from './fast-connection.ts'
import type { FastShared } from './fast-connection.ts'
import { WriteBuffer } from './write-buffer.ts'

const SWEEP_MS = 1_000
/** Longer than an answer in one write (`JOIN_BELOW_BYTES`) with its head. */
const WRITE_BUFFER_BYTES = 72 * 1024

export class FastConnections implements FastShared {
  readonly listener: ListenerState
  readonly limits: RequestLimits
  readonly refuseSlow: FastShared['refuseSlow']
  readonly writeBuffer: WriteBuffer
  readonly readBuffer: Buffer | undefined
  readonly #connections = new Set<FastConnection>()
  /** Gives a connection to node:http. */
  readonly #accept: (socket: Socket) => void
  readonly #timer: NodeJS.Timeout
  #nowMs = performance.now()
  #date = new Date().toUTCString()

  /** `isSecure`: written bytes are encrypted later, so that the memory of an answer cannot be reused at once. */
  constructor(
    limits: RequestLimits,
    listener: ListenerState,
    accept: (socket: Socket) => void,
    refuseSlow: FastShared['refuseSlow'],
    isSecure: boolean,
  ) {
    this.writeBuffer = new WriteBuffer(isSecure ? 0 : WRITE_BUFFER_BYTES)
    // Decrypted bytes are emitted by the stream of the socket.
    this.readBuffer = isSecure ? undefined : listener.bodies.reads
    this.listener = listener
    this.limits = limits
    this.refuseSlow = refuseSlow
    this.#accept = accept
    this.#timer = setInterval(() => this.#sweep(), Math.min(SWEEP_MS, limits.headersTimeoutMs)).unref()
  }

  get nowMs(): number {
    return this.#nowMs
  }
  get date(): string {
    return this.#date
  }

  add(socket: Socket): void {
    this.#connections.add(new FastConnection(socket, this))
  }

  handOver(connection: FastConnection, socket: Socket, early: Buffer): void {
    this.#connections.delete(connection)
    // The bytes put back are read first, once node:http reads the socket.
    socket.pause()
    if (early.length > 0) socket.unshift(early)
    this.#accept(socket)
    socket.resume()
  }

  closed(connection: FastConnection): void {
    this.#connections.delete(connection)
  }

  /** Open requests continue. */
  closeIdle(): void {
    for (const connection of this.#connections) connection.closeIdle()
  }

  close(): void {
    clearInterval(this.#timer)
    for (const connection of this.#connections) connection.destroy()
  }

  #sweep(): void {
    this.#nowMs = performance.now()
    this.#date = new Date().toUTCString()
    for (const connection of this.#connections) connection.sweep(this.#nowMs)
  }
}
