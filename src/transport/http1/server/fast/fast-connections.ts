/**
 * The fast-path connections of one listener, and their shared state.
 *
 * Gain: 100 B × 32 costs 0.6 to 0.7 of raw in place of 1.0 (bench/notes.md).
 */
import type { Socket } from 'node:net'
import type { RequestLimits, Shared } from '../request/http-request.ts'
import { FastConnection } from './fast-connection.ts'
import type { FastShared } from './fast-connection.ts'
import { WriteBuffer } from './write-buffer.ts'

const SWEEP_MS = 1_000
/** Longer than an answer in one write (`JOIN_BELOW_BYTES`) with its head. */
const WRITE_BUFFER_BYTES = 72 * 1024

export class FastConnections implements FastShared {
  readonly caps: Shared['caps']
  readonly batch: Shared['batch']
  readonly bodies: Shared['bodies']
  readonly writeStallMs: number
  readonly events: Shared['events']
  readonly ending: Shared['ending']
  readonly keepAliveTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
  readonly maxUnreadBytes: number
  readonly requestTimeoutMs: number
  readonly refuseSlow: FastShared['refuseSlow']
  readonly addressOf: Shared['addressOf']
  readonly clientOf: Shared['clientOf']
  readonly writeBuffer: WriteBuffer
  readonly readBuffer: Buffer | undefined
  readonly #connections = new Set<FastConnection>()
  /** Gives a connection to node:http. */
  readonly #accept: (socket: Socket) => void
  readonly #timer: NodeJS.Timeout
  #nowMs = performance.now()
  #date = new Date().toUTCString()

  /** `isSecure`: what is written is encrypted later, so that no memory is free for the next answer at once. */
  constructor(
    options: RequestLimits,
    shared: Shared,
    accept: (socket: Socket) => void,
    refuseSlow: FastShared['refuseSlow'],
    isSecure: boolean,
  ) {
    this.writeBuffer = new WriteBuffer(isSecure ? 0 : WRITE_BUFFER_BYTES)
    // What is decrypted comes by the stream of its socket.
    this.readBuffer = isSecure ? undefined : shared.bodies.reads
    this.caps = shared.caps
    this.batch = shared.batch
    this.bodies = shared.bodies
    this.writeStallMs = shared.writeStallMs
    this.events = shared.events
    this.ending = shared.ending
    this.addressOf = shared.addressOf
    this.clientOf = shared.clientOf
    this.keepAliveTimeoutMs = options.keepAliveTimeoutMs
    this.maxHeaderBytes = options.maxHeaderBytes
    this.maxHeaderLines = options.maxHeaderLines
    this.maxUnreadBytes = options.maxUnreadBytes
    this.requestTimeoutMs = options.requestTimeoutMs
    this.refuseSlow = refuseSlow
    this.#accept = accept
    this.#timer = setInterval(() => this.#sweep(), Math.min(SWEEP_MS, options.headersTimeoutMs)).unref()
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
