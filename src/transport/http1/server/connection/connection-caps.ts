/**
 * Limits connections of hosts, in all and per address (T-23, F-29). At the limit a new connection replaces the oldest one without an
 * admitted request. If there is none, the new connection gets 503 and is closed.
 */
import { isLoopbackHost } from '../../../loopback.ts'
import type { Socket } from 'node:net'
import { closeGently } from './lingering.ts'
import type { LingerLimits } from './lingering.ts'

export interface ConnectionLimits extends LingerLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  /** The same from this machine, whose programs share one address. */
  readonly maxConnectionsPerLoopback: number
}

/** The options that are named where a limit is reached. */
const OPTIONS = { all: 'listen.limits.connections', perAddress: 'listen.limits.connections_per_address' }

/** In place of an address, for what comes over unix sockets. */
const UNIX = 'unix'

/** Refused connections that may stay open until their hosts have read the answer; beyond, the oldest is closed. */
const MAX_REFUSING = 16

export class ConnectionCaps {
  /** Called for each connection: a reload may have changed them. */
  readonly #limits: () => ConnectionLimits
  readonly #reached: (option: string) => void
  readonly #options: typeof OPTIONS
  readonly #byAddress = new Map<string, number>()
  /** Connections without an admitted request, oldest first. The value is a function that stops counting the connection. */
  readonly #unproven = new Map<Socket, () => void>()
  #count = 0
  /** Refused connections that are still open; oldest first. */
  readonly #refusing = new Set<Socket>()

  constructor(limits: () => ConnectionLimits, reached: (option: string) => void, options = OPTIONS) {
    this.#options = options
    this.#limits = limits
    this.#reached = reached
  }

  /** Connections that are open. */
  get open(): number {
    return this.#count
  }

  /**
   * False: the limit is reached; the connection was answered and closed. `client`: the address behind a trusted proxy; `null`: many
   * clients are behind it, and no limit per address holds.
   */
  admit(socket: Socket, client?: string | null): boolean {
    const address = client === undefined ? (socket.remoteAddress ?? UNIX) : (client ?? '')
    const { maxConnections, maxConnectionsPerAddress, maxConnectionsPerLoopback } = this.#limits()
    const isLocal = address === UNIX || isLoopbackHost(address)
    const most = client === null ? Infinity : isLocal ? maxConnectionsPerLoopback : maxConnectionsPerAddress
    if ((this.#byAddress.get(address) ?? 0) >= most) return this.#refuse(socket, this.#options.perAddress, most)
    if (this.#count >= maxConnections && !this.#evict(maxConnections))
      return this.#refuse(socket, this.#options.all, maxConnections)
    this.#count++
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
    let isCounted = true
    const leave = (): void => {
      if (!isCounted) return
      isCounted = false
      this.#unproven.delete(socket)
      this.#leave(address)
    }
    this.#unproven.set(socket, leave)
    socket.once('close', leave)
    return true
  }

  /** A request was admitted on it: it is not closed in favour of another one. */
  proven(socket: Socket): void {
    this.#unproven.delete(socket)
  }

  /** Closes the oldest connection without an admitted request; its descriptor is free at once. */
  #evict(maxConnections: number): boolean {
    const [oldest] = this.#unproven
    // After a reload that lowered the limit one more would still be too many.
    if (oldest === undefined || this.#count > maxConnections) return false
    const [socket, leave] = oldest
    this.#reached(this.#options.all)
    leave()
    socket.destroy()
    return true
  }

  #refuse(socket: Socket, option: string, value: number): false {
    this.#reached(option)
    const [oldest] = this.#refusing
    if (oldest !== undefined && this.#refusing.size >= MAX_REFUSING) {
      this.#refusing.delete(oldest)
      oldest.destroy()
    }
    this.#refusing.add(socket)
    socket.once('close', () => this.#refusing.delete(socket))
    refuse(socket, 503, `${option} (${value}) reached`, () => closeGently(socket, this.#limits(), { reached: this.#reached }))
    return false
  }

  #leave(address: string): void {
    this.#count--
    const left = (this.#byAddress.get(address) ?? 1) - 1
    if (left > 0) this.#byAddress.set(address, left)
    else this.#byAddress.delete(address)
  }
}

const STATUSES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
}

/**
 * Answers a connection without a valid request by an HTTP status, and closes it: with `close` where the host may still be
 * sending.
 */
export const refuse = (socket: Socket, status: number, text: string, close = () => socket.destroySoon()): void => {
  if (!socket.writable) return void socket.destroy()
  const body = text === '' ? '' : `${text}\n`
  const more = status === 503 ? 'Retry-After: 1\r\n' : ''
  socket.on('error', () => undefined)
  socket.write(
    `HTTP/1.1 ${status} ${STATUSES[status]}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}Connection: close\r\n\r\n${body}`,
  )
  close()
}
