/**
 * Limits the connections of hosts, in total and per address (T-23, F-29). At the limit a new connection replaces the oldest one without an
 * admitted request. If there is none, the new connection gets 503 and is closed.
 */
import { isLoopbackHost } from '../../../loopback.ts'
import type { Socket } from 'node:net'
import { closeGently } from './lingering.ts'
import type { LingerLimits } from './lingering.ts'

export interface ConnectionLimits extends LingerLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  /** In place of the limit per address for programs on this machine, which share one address. */
  readonly maxConnectionsPerLoopback: number
}

/** Option paths for reports of a reached limit. */
const OPTIONS = { all: 'listen.limits.connections', perAddress: 'listen.limits.connections_per_address' }

/** In place of an address, for unix sockets. */
const UNIX = 'unix'

/** Refused connections that may stay open until their hosts have read the answer. Above this the oldest is closed. */
const MAX_REFUSING = 16

export class ConnectionCaps {
  /** Called for each connection, because a reload may change the limits. */
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

  /** Number of open connections. */
  get open(): number {
    return this.#count
  }

  /**
   * Returns false if a limit is reached; the connection was then answered and closed. `client`: the address behind a trusted proxy; `null`:
   * a proxy with many clients, for which no limit per address applies.
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
    const stopCounting = (): void => {
      if (!isCounted) return
      isCounted = false
      this.#unproven.delete(socket)
      this.#stopCounting(address)
    }
    this.#unproven.set(socket, stopCounting)
    socket.once('close', stopCounting)
    return true
  }

  /** A request was admitted on it: it is not closed in favour of another one. */
  proven(socket: Socket): void {
    this.#unproven.delete(socket)
  }

  /** Closes the oldest connection without an admitted request; its descriptor is free at once. */
  #evict(maxConnections: number): boolean {
    const [oldest] = this.#unproven
    // After a reload with a lower limit, one evicted connection would not be enough.
    if (oldest === undefined || this.#count > maxConnections) return false
    const [socket, stopCounting] = oldest
    this.#reached(this.#options.all)
    stopCounting()
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

  #stopCounting(address: string): void {
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
 * Answers a connection without a valid request by an HTTP status and closes it. `close`: how it is closed if the host may still be
 * sending. `text`: body of the answer.
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
