/** How many connections of hosts there may be, in all and from one address; whoever is one too many is told so and let go (T-23). */
import type { Socket } from 'node:net'

export interface ConnectionLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  /** The same from this machine, whose programs share one address. */
  readonly maxConnectionsPerLoopback: number
}

export class ConnectionCaps {
  /** Asked anew for each connection: a reload may have changed them. */
  readonly #limits: () => ConnectionLimits
  readonly #reached: (option: string) => void
  readonly #byAddress = new Map<string, number>()
  #count = 0

  constructor(limits: () => ConnectionLimits, reached: (option: string) => void) {
    this.#limits = limits
    this.#reached = reached
  }

  /** False: it is one too many, and has been told so. */
  admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? ''
    const limit = this.#limitFor(address)
    if (limit !== undefined) {
      this.#reached(limit[0])
      refuse(socket, 503, `${limit[0]} (${limit[1]}) reached`)
      return false
    }
    this.#count++
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
    socket.once('close', () => this.#leave(address))
    return true
  }

  #limitFor(address: string): readonly [option: string, value: number] | undefined {
    const { maxConnections, maxConnectionsPerAddress, maxConnectionsPerLoopback } = this.#limits()
    if (this.#count >= maxConnections) return ['listen.limits.connections', maxConnections]
    const most = isLoopback(address) ? maxConnectionsPerLoopback : maxConnectionsPerAddress
    return (this.#byAddress.get(address) ?? 0) < most ? undefined : ['listen.limits.connections_per_address', most]
  }

  #leave(address: string): void {
    this.#count--
    const left = (this.#byAddress.get(address) ?? 1) - 1
    if (left > 0) this.#byAddress.set(address, left)
    else this.#byAddress.delete(address)
  }
}

const isLoopback = (address: string): boolean => /^(::ffff:)?127\.|^::1$/.test(address)

const STATUSES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
}

/** Answers a connection of which no request could be made, in the words of HTTP, and closes it. */
export const refuse = (socket: Socket, status: number, text: string): void => {
  if (!socket.writable) return void socket.destroy()
  const body = text === '' ? '' : `${text}\n`
  const more = status === 503 ? 'Retry-After: 1\r\n' : ''
  socket.on('error', () => undefined)
  socket.end(
    `HTTP/1.1 ${status} ${STATUSES[status]}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}Connection: close\r\n\r\n${body}`,
  )
  socket.destroySoon()
}
