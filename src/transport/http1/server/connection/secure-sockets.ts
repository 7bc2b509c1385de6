/**
 * TLS of one listener: receives accepted connections and returns those whose handshake succeeded. The fast path and node:http need no
 * change for TLS, because a `TLSSocket` is a socket.
 */
import type { Socket } from 'node:net'
import type Tls from 'node:tls'

/** A certificate with its chain, and its key; both PEM. */
export interface ServerCertificate {
  readonly cert: string
  readonly key: string
}

/** node:tls, loaded on first use, because loading takes 5 ms of CPU. */
export const nodeTls = (): typeof Tls => process.getBuiltinModule('node:tls')

/** A TLS handshake begins with a record of this type. */
const HANDSHAKE = 0x16

/** Whether the first bytes of a connection are those of a TLS handshake. */
export const isHandshake = (bytes: Buffer): boolean => bytes[0] === HANDSHAKE

export class SecureSockets {
  readonly #server: Tls.Server
  /** Connections whose handshake is in progress, by the address and port of their peer. */
  readonly #pending = new Map<string, Socket>()
  /** The accepted connection below each TLS connection. */
  readonly #below = new WeakMap<Socket, Socket>()

  /** `accepted` is called with each TLS connection after its handshake. */
  constructor(certificate: ServerCertificate, handshakeTimeoutMs: number, accepted: (socket: Socket) => void) {
    this.#server = nodeTls().createServer({ ...certificate, ...SETTINGS, handshakeTimeout: handshakeTimeoutMs })
    this.#server.on('secureConnection', (secure) => {
      const below = this.#pending.get(peerOf(secure))
      // The peer disconnected in the meantime.
      if (below === undefined) return void secure.destroy()
      this.#below.set(secure, below)
      accepted(secure)
    })
    // Failed handshakes are not reported: scanners cause many.
    this.#server.on('tlsClientError', (_error, socket) => void socket.destroy())
  }

  /** New connections get this certificate; open ones keep theirs. Throws for an unusable certificate. */
  renew(certificate: ServerCertificate): void {
    this.#server.setSecureContext({ ...certificate, ...SETTINGS })
  }

  /** Adds a connection whose first bytes are those of a handshake. */
  add(socket: Socket): void {
    const peer = peerOf(socket)
    this.#pending.set(peer, socket)
    socket.once('close', () => {
      if (this.#pending.get(peer) === socket) this.#pending.delete(peer)
    })
    this.#server.emit('connection', socket)
  }

  /** The accepted connection below a TLS connection; any other socket itself. */
  below(socket: Socket): Socket {
    return this.#below.get(socket) ?? socket
  }
}

const SETTINGS = { ALPNProtocols: ['http/1.1'], minVersion: 'TLSv1.2' } as const

/** Address and port of the peer: unique among the open connections of a listener. */
const peerOf = ({ remoteAddress = '', remotePort = 0 }: Socket): string => `${remoteAddress} ${remotePort}`
