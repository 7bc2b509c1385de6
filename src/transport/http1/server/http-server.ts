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
import type { ListenAddress, TcpAddress } from './connection/listen-address.ts'
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
  const { tls, trusted, forwarded, takesProxyHeader = false, headersTimeoutMs } = options
  const ending = { isEnding: false }
  const peers = takesProxyHeader ? new WeakMap<Socket, string>() : undefined
  const below = (socket: Socket): Socket => secure?.below(socket) ?? socket
  const shared: ListenerState = {
    caps: tls === undefined ? caps : { proven: (socket) => caps.proven(below(socket)) },
    batch: new WriteBatch(),
    bodies,
    writeStallMs: options.writeStallMs,
    events,
    ending,
    addressOf: peers === undefined ? remoteAddressOf : (socket) => peers.get(below(socket)) ?? remoteAddressOf(socket),
    clientOf: (request, peer) => {
      const header = forwarded?.()
      if (header === undefined || trusted === undefined) return peer
      return clientBehind(peer, request.header(header), header, trusted)
    },
  }
  const native = new NodeServer(options, shared)
  const accept = (socket: Socket): void => native.accept(socket)
  const refuseSlow = (socket: Socket, isReading: boolean): void => refuseLate(socket, isReading, options, events)
  const fast =
    options.httpServer === 'own' ? new FastConnections(options, shared, accept, refuseSlow, tls !== undefined) : undefined
  let accepted = 0
  const sockets = new Set<Socket>()
  const track = (socket: Socket): void => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  const serve = (socket: Socket): void => {
    if (fast === undefined) accept(socket)
    else fast.add(socket)
    // The socket was paused while its first bytes were read.
    if (socket.isPaused()) socket.resume()
  }
  const tooLate = (socket: Socket): void => refuseLate(socket, false, options, events)
  const secure =
    tls &&
    new SecureSockets(tls, headersTimeoutMs, (socket) => {
      track(socket)
      serve(socket)
    })
  /** `client`: its address as a trusted proxy states it; `null`: the proxy itself. */
  const admit = (socket: Socket, client?: string | null): void => {
    if (!caps.admit(socket, client)) return
    if (secure === undefined || socket.remoteAddress === undefined) return serve(socket)
    let isPlain = false
    const decide = (bytes: Buffer) => {
      isPlain = !isHandshake(bytes)
      return { drop: 0 }
    }
    const done = (): void => {
      if (isPlain) refuse(socket, 400, 'this address requires HTTPS (listen.http.tls)')
      else secure.add(socket)
    }
    readBeginning(socket, headersTimeoutMs, decide, done, () => void socket.destroy())
  }
  const admitBehindProxy = (socket: Socket): void => {
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
      if (client !== null) peers?.set(socket, client)
      admit(socket, client)
    }
    readBeginning(socket, headersTimeoutMs, decide, done, () => tooLate(socket))
  }
  const server = new NetServer(SOCKETS, (socket) => {
    accepted++
    track(socket)
    if (trusted?.(socket.remoteAddress) !== true) return admit(socket)
    if (takesProxyHeader) admitBehindProxy(socket)
    else admit(socket, null)
  })
  const bound = await bind(server, address)
  server.on('error', (error) => events.trouble(error))
  return {
    tcp: bound.tcp,
    path: bound.path,
    isSecure: secure !== undefined,
    renew: (certificate) => secure?.renew(certificate),
    endConnections: () => {
      ending.isEnding = true
    },
    stopAccepting: () => {
      ending.isEnding = true
      return new Promise((resolve) => {
        onceAllAreAccepted(
          () => accepted,
          () => {
            server.close()
            void bound.release()
            setTimeout(() => {
              native.closeIdle()
              fast?.closeIdle()
            }, LINGER_MS).unref()
            resolve()
          },
        )
      })
    },
    close: async () => {
      // Complete answers are sent before their connections are closed.
      shared.batch.flush()
      await flushed(sockets)
      await bound.release()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        native.close()
        fast?.close()
        // Refused connections belong to neither parser.
        for (const socket of sockets) socket.destroy()
      })
    },
  }
}

/** Resolves when the kernel has all written bytes of these sockets, at the latest after `FLUSH_MS`. */
const flushed = (sockets: ReadonlySet<Socket>): Promise<void> =>
  until(() => [...sockets].every(({ writableLength }) => writableLength === 0), FLUSH_MS, FLUSH_POLL_MS)

const remoteAddressOf = ({ remoteAddress }: Socket): string | undefined => remoteAddress
