/**
 * TLS of one listener: takes accepted connections and yields those whose handshake succeeded. What reads requests, the fast path and
 * node:http, sees no difference: a `TLSSocket` is a socket.
 */
import type { Socket } from 'node:net'
import type Tls from 'node:tls'

/** A certificate with its chain, and its key; PEM. */
export interface ServerCertificate {
  readonly cert: string
  readonly key: string
}

/** node:tls, loaded where something needs it: it takes 5 ms of CPU. */
export const nodeTls = (): typeof Tls => process.getBuiltinModule('node:tls')

/** A TLS handshake begins with a record of this type. */
const HANDSHAKE = 0x16

/** Whether a connection begins as TLS does. */
export const isHandshake = (bytes: Buffer): boolean => bytes[0] === HANDSHAKE

export class SecureSockets {
  readonly #server: Tls.Server
  /** Connections whose handshake is in progress, by the address and port of their peer. */
  readonly #pending = new Map<string, Socket>()
  /** The accepted connection below each. */
  readonly #below = new WeakMap<Socket, Socket>()

  /** `accepted` is given each connection once its handshake is done. */
  constructor(certificate: ServerCertificate, handshakeTimeoutMs: number, accepted: (socket: Socket) => void) {
    this.#server = nodeTls().createServer({ ...certificate, ...SETTINGS, handshakeTimeout: handshakeTimeoutMs })
    this.#server.on('secureConnection', (secure) => {
      const below = this.#pending.get(peerOf(secure))
      // The peer has left in the meantime.
      if (below === undefined) return void secure.destroy()
      this.#below.set(secure, below)
      accepted(secure)
    })
    // Failed handshakes are not reported: scanners cause many.
    this.#server.on('tlsClientError', (_error, socket) => void socket.destroy())
  }

  /** Connections from now on get this certificate; open ones stay as they are. Throws for one that cannot be used. */
  renew(certificate: ServerCertificate): void {
    this.#server.setSecureContext({ ...certificate, ...SETTINGS })
  }

  /** Takes a connection whose first bytes are those of a handshake. */
  add(socket: Socket): void {
    const peer = peerOf(socket)
    this.#pending.set(peer, socket)
    socket.once('close', () => {
      if (this.#pending.get(peer) === socket) this.#pending.delete(peer)
    })
    this.#server.emit('connection', socket)
  }

  /** The accepted connection that carries this one. */
  below(socket: Socket): Socket {
    return this.#below.get(socket) ?? socket
  }
}

const SETTINGS = { ALPNProtocols: ['http/1.1'], minVersion: 'TLSv1.2' } as const

/** No two open connections of one listener have the same. */
const peerOf = ({ remoteAddress = '', remotePort = 0 }: Socket): string => `${remoteAddress} ${remotePort}`
