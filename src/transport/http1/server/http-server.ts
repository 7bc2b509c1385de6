/**
 * HTTP listeners. The fast path reads the common form of requests, node:http all others (decision 0014). Both yield an `HttpRequest`.
 *
 *   accepted ─▶ PROXY header, from trusted proxies ─▶ within the caps ─▶ TLS handshake ─▶ fast path ─▶ node:http
 *                     (where it is configured)                       (where it is configured)
 */
import { Server as NetServer } from 'node:net'
import type { Socket } from 'node:net'
import { onceAllAreAccepted } from './connection/accept-queue.ts'
import type { BodyPool } from '../../body-pool.ts'
import { refuse } from './connection/connection-caps.ts'
import type { ConnectionCaps } from './connection/connection-caps.ts'
import { clientBehind } from './connection/forwarded.ts'
import type { ForwardedHeader } from './connection/forwarded.ts'
import { readBeginning } from './connection/first-bytes.ts'
import type { ListenerEvents, RequestLimits, ListenerState } from './request/http-request.ts'
import { NodeServer, refuseLate } from './node/node-server.ts'
import { FastConnections } from './fast/fast-connections.ts'
import { bind } from './connection/listen-address.ts'
import type { Bound, ListenAddress, TcpAddress } from './connection/listen-address.ts'
import { readProxyHeader } from './connection/proxy-header.ts'
import { isHandshake, SecureSockets } from './connection/secure-sockets.ts'
import type { ServerCertificate } from './connection/secure-sockets.ts'
import type { TrustedProxies } from './connection/trusted-proxies.ts'
import { WriteBatch } from '../write-batch.ts'
import { until } from '../../../time/within.ts'

/** The parser of requests: `own`: the fast path, then node:http; `node`: node:http alone. */
export type HttpServerChoice = 'own' | 'node'

export interface HttpServerOptions extends RequestLimits {
  readonly httpServer: HttpServerChoice
  /** The connection of a host that reads nothing of an answer for this time is closed. */
  readonly writeStallMs: number
  /** TLS with this certificate; `undefined`: none. */
  readonly tls?: ServerCertificate | undefined
  /** Proxies that may state the address of their client. No limit per address applies to them. `undefined`: none. */
  readonly trusted?: TrustedProxies | undefined
  /** The header in which they name the client of a request. */
  readonly forwarded?: () => ForwardedHeader
  /** Whether connections of trusted proxies begin with a header of the PROXY protocol. */
  readonly takesProxyHeader?: boolean
}

export interface Listening {
  /** The bound TCP address; `undefined`: a unix socket. */
  readonly tcp: TcpAddress | undefined
  /** The path of the unix socket; `undefined`: a TCP address. */
  readonly path: string | undefined
  /** Whether connections use TLS. */
  readonly isSecure: boolean
  /** New connections get this certificate. Throws for an unusable certificate. */
  renew(certificate: ServerCertificate): void
  /** Makes every answer the last one on its connection. New connections are still accepted. */
  endConnections(): void
  /**
   * Accepts the queued connections, then no more. Idle connections are closed `LINGER_MS` later. Streams and open requests continue.
   * Resolves when new connections are refused.
   */
  stopAccepting(): Promise<void>
  /** Closes the listener and all connections. Written answers are sent before, within a second. */
  close(): Promise<void>
}

/** The same options as in node:http. TCP keep-alive detects a host whose machine is down (F-13). */
const SOCKETS = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }

/** How long an idle connection stays open after accepting stops, because a request may be in transit. */
export const LINGER_MS = 100

/** How long the close waits for hosts to read the written bytes. */
const FLUSH_MS = 1_000
const FLUSH_POLL_MS = 10

/** Binds one address. Rejects with the error of the system (`EADDRINUSE` …). */
export const listenHttp = async (
  address: ListenAddress,
  options: HttpServerOptions,
  bodies: BodyPool,
  caps: ConnectionCaps,
  events: ListenerEvents,
): Promise<Listening> => {
  const server = new HttpServer(options, bodies, caps, events)
  await server.bind(address)
  return server
}

class HttpServer implements Listening {
  readonly #options: HttpServerOptions
  readonly #caps: ConnectionCaps
  readonly #events: ListenerEvents
  readonly #shared: ListenerState
  readonly #ending = { isEnding: false }
  readonly #server = new NetServer(SOCKETS, (socket) => this.#accepted(socket))
  readonly #secure: SecureSockets | undefined
  readonly #fast: FastConnections | undefined
  readonly #native: NodeServer
  /** Addresses of hosts, as the PROXY headers of their connections state them. */
  readonly #clients = new WeakMap<Socket, string>()
  readonly #sockets = new Set<Socket>()
  #acceptedCount = 0
  #bound: Bound | undefined

  constructor(options: HttpServerOptions, bodies: BodyPool, caps: ConnectionCaps, events: ListenerEvents) {
    const { tls, trusted, forwarded, takesProxyHeader = false } = options
    this.#options = options
    this.#caps = caps
    this.#events = events
    this.#secure = tls && new SecureSockets(tls, options.headersTimeoutMs, (socket) => this.#serve(this.#tracked(socket)))
    const below = (socket: Socket): Socket => this.#secure?.below(socket) ?? socket
    this.#shared = {
      caps: tls === undefined ? caps : { proven: (socket) => caps.proven(below(socket)) },
      batch: new WriteBatch(),
      bodies,
      writeStallMs: options.writeStallMs,
      events,
      ending: this.#ending,
      addressOf: takesProxyHeader ? (socket) => this.#clients.get(below(socket)) ?? remoteAddressOf(socket) : remoteAddressOf,
      clientOf: (request, peer) => {
        const header = forwarded?.()
        if (header === undefined || trusted === undefined) return peer
        return clientBehind(peer, request.header(header), header, trusted)
      },
    }
    const native = new NodeServer(options, this.#shared)
    const toNative = (socket: Socket): void => native.accept(socket)
    const refuseSlow = (socket: Socket, isReading: boolean): void => this.#refuseLate(socket, isReading)
    this.#native = native
    this.#fast =
      options.httpServer === 'own'
        ? new FastConnections(options, this.#shared, toNative, refuseSlow, tls !== undefined)
        : undefined
  }

  get tcp(): TcpAddress | undefined {
    return this.#bound?.tcp
  }

  get path(): string | undefined {
    return this.#bound?.path
  }

  get isSecure(): boolean {
    return this.#secure !== undefined
  }

  async bind(address: ListenAddress): Promise<void> {
    this.#bound = await bind(this.#server, address)
    this.#server.on('error', (error) => this.#events.trouble(error))
  }

  #accepted(socket: Socket): void {
    const { trusted, takesProxyHeader = false } = this.#options
    this.#acceptedCount++
    this.#tracked(socket)
    if (trusted?.(socket.remoteAddress) !== true) return this.#admit(socket)
    if (takesProxyHeader) this.#readProxyHeader(socket)
    else this.#admit(socket, null)
  }

  #tracked(socket: Socket): Socket {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }

  #readProxyHeader(socket: Socket): void {
    let client: string | null = null
    let isMissing = false
    const decide = (bytes: Buffer) => {
      const header = readProxyHeader(bytes)
      if (header === 'more') return header
      isMissing = header === 'none'
      if (header === 'none') return { drop: 0 }
      client = header.client ?? null
      return { drop: header.length }
    }
    const done = (): void => {
      if (isMissing) return refuse(socket, 400, 'a PROXY header was expected from this proxy (listen.http.proxy_protocol)')
      if (client !== null) this.#clients.set(socket, client)
      this.#admit(socket, client)
    }
    readBeginning(socket, this.#options.headersTimeoutMs, decide, done, () => this.#refuseLate(socket, false))
  }

  /** `client`: its address as a trusted proxy states it; `null`: the proxy itself. */
  #admit(socket: Socket, client?: string | null): void {
    const secure = this.#secure
    if (!this.#caps.admit(socket, client)) return
    if (secure === undefined || socket.remoteAddress === undefined) return this.#serve(socket)
    let isPlain = false
    const decide = (bytes: Buffer) => {
      isPlain = !isHandshake(bytes)
      return { drop: 0 }
    }
    const done = (): void => {
      if (isPlain) refuse(socket, 400, 'this address requires HTTPS (listen.http.tls)')
      else secure.add(socket)
    }
    readBeginning(socket, this.#options.headersTimeoutMs, decide, done, () => void socket.destroy())
  }

  #serve(socket: Socket): void {
    if (this.#fast === undefined) this.#native.accept(socket)
    else this.#fast.add(socket)
    // The socket was paused while its first bytes were read.
    if (socket.isPaused()) socket.resume()
  }

  #refuseLate(socket: Socket, isReading: boolean): void {
    refuseLate(socket, isReading, this.#options, this.#events)
  }

  renew(certificate: ServerCertificate): void {
    this.#secure?.renew(certificate)
  }

  endConnections(): void {
    this.#ending.isEnding = true
  }

  stopAccepting(): Promise<void> {
    this.endConnections()
    const closeIdle = (): void => {
      this.#native.closeIdle()
      this.#fast?.closeIdle()
    }
    return new Promise((resolve) => {
      onceAllAreAccepted(
        () => this.#acceptedCount,
        () => {
          this.#server.close()
          void this.#bound?.release()
          setTimeout(closeIdle, LINGER_MS).unref()
          resolve()
        },
      )
    })
  }

  async close(): Promise<void> {
    // Complete answers are sent before their connections are closed.
    this.#shared.batch.flush()
    await flushed(this.#sockets)
    await this.#bound?.release()
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      this.#native.close()
      this.#fast?.close()
      // Refused connections belong to neither parser.
      for (const socket of this.#sockets) socket.destroy()
    })
  }
}

/** Resolves when the kernel has all written bytes of these sockets, at the latest after `FLUSH_MS`. */
const flushed = (sockets: ReadonlySet<Socket>): Promise<void> =>
  until(() => [...sockets].every(({ writableLength }) => writableLength === 0), FLUSH_MS, FLUSH_POLL_MS)

const remoteAddressOf = ({ remoteAddress }: Socket): string | undefined => remoteAddress
