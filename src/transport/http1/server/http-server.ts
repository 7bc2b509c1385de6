/**
 * HTTP listeners. Plain requests are read by us, all others by node:http (decision 0014), and what becomes of either is an `HttpRequest`.
 */
import { Server as NetServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { onceAllAreAccepted } from './accept-queue.ts'
import type { BodyPool } from '../../body-pool.ts'
import type { ConnectionCaps } from './connection-caps.ts'
import type { ListenerEvents, Shared } from './http-request.ts'
import type { LingerLimits } from './lingering.ts'
import { NodeServer, refuseLate } from './node-server.ts'
import { PlainConnections } from './fast-connections.ts'
import { WriteBatch } from '../../write-batch.ts'

/** Who reads plain requests. */
export type HttpServerChoice = 'own' | 'node'

export interface HttpServerOptions extends LingerLimits {
  readonly httpServer: HttpServerChoice
  readonly maxHeaderBytes: number
  readonly maxHeaderLines: number
  readonly headersTimeoutMs: number
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

/** As node:http has its own. A host whose machine is gone says nothing: the kernel asks it (F-13). */
const SOCKETS = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }

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
  const ending = { isEnding: false }
  const shared: Shared = { caps, batch: new WriteBatch(), bodies, writeStallMs: options.writeStallMs, events, ending }
  const native = new NodeServer(options, shared)
  const accept = (socket: Socket): void => native.accept(socket)
  const refuseSlow = (socket: Socket, isReading: boolean): void => refuseLate(socket, isReading, options, events)
  const plain = options.httpServer === 'own' ? new PlainConnections(options, shared, accept, refuseSlow) : undefined
  let accepted = 0
  const sockets = new Set<Socket>()
  const server = new NetServer(SOCKETS, (socket) => {
    accepted++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    if (!caps.admit(socket)) return
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
            server.close()
            setTimeout(() => {
              native.closeIdle()
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
        native.close()
        plain?.close()
        // Refused ones are neither's.
        for (const socket of sockets) socket.destroy()
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

const bind = (server: NetServer, address: { host: string; port: number }): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address.port, address.host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
