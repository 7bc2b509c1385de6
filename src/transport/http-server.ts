/**
 * HTTP listeners. Plain requests are read by us, all others by node:http (decision 0014), and what becomes of either is an `HttpRequest`.
 */
import { createServer } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { onceAllAreAccepted } from './accept-queue.ts'
import type { BodyPool } from './body-pool.ts'
import { refuse } from './connection-caps.ts'
import type { ConnectionCaps } from './connection-caps.ts'
import type { ListenerEvents, Shared } from './http-request.ts'
import { NodeRequest, NodeResponse } from './node-request.ts'
import { PlainConnections } from './plain-connections.ts'
import { WriteBatch } from './write-batch.ts'

/** Who reads plain requests. */
export type HttpServerChoice = 'own' | 'node'

export interface HttpServerOptions {
  readonly httpServer: HttpServerChoice
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  /** A host that takes nothing of an answer for so long loses its connection. */
  readonly writeStallMs: number
}

export interface Listening {
  readonly host: string
  readonly port: number
  /** Every answer is the last on its connection from now on; new connections are taken. */
  endConnections(): void
  /**
   * No new connections once those are accepted that hosts have made, and idle ones closed `LINGER_MS` later; streams and open
   * requests go on. Resolves when new connections are refused.
   */
  stopAccepting(): Promise<void>
  /** Ends everything. */
  close(): Promise<void>
}

/** So long an idle connection stays open once no new ones are taken: a request may be on its way on it. */
export const LINGER_MS = 100

/** So long a host has at the end to take what was written for it. */
const FLUSH_MS = 1_000
const LOOK_MS = 10

/** Binds one address. Rejects with the system's error (`EADDRINUSE` …). */
export const listenHttp = async (
  address: { readonly host: string; readonly port: number },
  options: HttpServerOptions,
  bodies: BodyPool,
  caps: ConnectionCaps,
  events: ListenerEvents,
): Promise<Listening> => {
  const { writeStallMs, maxHeaderLines } = options
  const ending = { isEnding: false }
  const shared: Shared = { caps, batch: new WriteBatch(), bodies, writeStallMs, events, ending }
  /** Connections on which a body is coming slowly. */
  const reading = new Set<Socket>()
  const server = createServer(
    {
      ServerResponse: NodeResponse,
      maxHeaderSize: options.maxHeaderBytes,
      headersTimeout: options.headersTimeoutMs,
      requestTimeout: options.requestTimeoutMs,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(5_000, options.headersTimeoutMs),
      insecureHTTPParser: false,
      // A host whose machine is gone says nothing: the kernel asks it (F-13).
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    },
    (request, response) => {
      // Counted here: node:http would leave out what is too many, and go on.
      if (request.rawHeaders.length <= 2 * maxHeaderLines)
        return events.request(new NodeRequest(request, response, shared, reading))
      events.reached('listen.limits.header_lines')
      refuse(request.socket, 431, `more headers than listen.limits.header_lines (${maxHeaderLines})`)
    },
  )
  server.maxHeadersCount = 0
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    refuseUnread(error, socket as Socket, reading.has(socket as Socket), options, events),
  )
  const [listener] = server.listeners('connection')
  const accept = (socket: Socket): void => void listener?.call(server, socket)
  const plain = options.httpServer === 'own' ? new PlainConnections(options, shared, accept) : undefined
  let accepted = 0
  const sockets = new Set<Socket>()
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    accepted++
    if (!caps.admit(socket)) return
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    if (plain === undefined) accept(socket)
    else plain.add(socket)
  })
  await bind(server, address)
  server.on('error', (error) => events.trouble(error))
  const { port } = server.address() as AddressInfo
  return {
    host: address.host,
    port,
    endConnections: () => {
      ending.isEnding = true
    },
    stopAccepting: () => {
      ending.isEnding = true
      return new Promise((resolve) => {
        onceAllAreAccepted(
          () => accepted,
          () => {
            // That of node:http closes idle connections at once.
            NetServer.prototype.close.call(server)
            setTimeout(() => {
              server.closeIdleConnections()
              plain?.closeIdle()
            }, LINGER_MS).unref()
            resolve()
          },
        )
      })
    },
    close: async () => {
      // Answers that are made go out before their connections are closed.
      shared.batch.flush()
      await flushed(sockets)
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
        plain?.close()
      })
    },
  }
}

/** Resolves when the kernel has what was written to all of them, after `FLUSH_MS` at the latest. */
const flushed = async (sockets: ReadonlySet<Socket>): Promise<void> => {
  const endMs = performance.now() + FLUSH_MS
  const isWaiting = (): boolean => [...sockets].some(({ writableLength }) => writableLength > 0)
  while (isWaiting() && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
}

/** Bytes that became no request: too many, too slow, or none of HTTP. */
const refuseUnread = (
  { code }: NodeJS.ErrnoException,
  socket: Socket,
  isReading: boolean,
  { maxHeaderBytes, headersTimeoutMs, requestTimeoutMs }: HttpServerOptions,
  events: ListenerEvents,
): void => {
  const limit = (status: number, option: string, value: string): void => {
    events.reached(option)
    refuse(socket, status, `${option} (${value}) reached`)
  }
  if (code === 'HPE_HEADER_OVERFLOW') limit(431, 'listen.limits.max_header', `${maxHeaderBytes} bytes`)
  else if (code !== 'ERR_HTTP_REQUEST_TIMEOUT') refuse(socket, 400, '')
  else if (isReading) limit(408, 'listen.limits.request_timeout', `${requestTimeoutMs} ms`)
  else limit(408, 'listen.limits.headers_timeout', `${headersTimeoutMs} ms`)
}

const bind = (server: NetServer, address: { host: string; port: number }): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address.port, address.host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
