/**
 * The listener of a worker for the other workers of this machine (`listen.workers`): a loopback port that the system chooses. It serves
 * requests that they forward, which carry their mark, and answers 404 to all others.
 */
import { ConnectionCaps } from '../../transport/http1/server/connection/connection-caps.ts'
import type { BodyPool } from '../../transport/body-pool.ts'
import type { HttpRequest } from '../../transport/http1/server/request/http-request.ts'
import { listenHttp } from '../../transport/http1/server/http-server.ts'
import type { HostOptions } from '../options.ts'

export interface InnerListener {
  /** Origin. */
  readonly url: string
  /** Sets the handler of requests; until then they are answered 503. */
  serve(handle: (request: HttpRequest) => void): void
  close(): Promise<void>
}

const HOST = '127.0.0.1'

/** Rejects with the system's error. */
export const openInner = async ({ limits, httpServer }: HostOptions, bodies: BodyPool): Promise<InnerListener> => {
  let handle = (request: HttpRequest): void => request.reply(503, {})
  // The peers are a few processes of ours, and hosts are counted at the public listeners.
  const unlimited = {
    ...limits,
    maxConnections: Infinity,
    maxConnectionsPerAddress: Infinity,
    maxConnectionsPerLoopback: Infinity,
  }
  const ignore = (): void => undefined
  const listening = await listenHttp(
    { host: HOST, port: 0, exclusive: true },
    { ...limits, httpServer, trusted: () => true, forwarded: () => 'x-forwarded-for' },
    bodies,
    new ConnectionCaps(() => unlimited, ignore),
    { request: (request) => handle(request), trouble: ignore, reached: ignore },
  )
  return {
    url: `http://${HOST}:${listening.tcp?.port ?? 0}`,
    serve: (next) => {
      handle = next
    },
    close: () => listening.close(),
  }
}
