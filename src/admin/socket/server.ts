/**
 * The admin socket: the requests of the command line to a running process, as HTTP/1.1 over a unix socket that only its owner can reach.
 * It accepts no command line, no URL and no configuration (DECISIONS 7). Never on the MCP port (T-37).
 */
import { chmod } from 'node:fs/promises'
import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http'
import { Server } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HostStreams } from '../../app/environment.ts'
import type { Log } from '../../values/log.ts'
import type { EndpointPath } from '../../rpc/call.ts'
import { isAnswered, listening } from '../../transport/http1/server/connection/listen-address.ts'
import { nodeHttp } from '../../transport/http1/server/node/node-http.ts'
import { countOf } from '../calls/calls.ts'
import type { FeedSink } from '../calls/calls.ts'
import type { Control } from '../control.ts'
import { asError } from '../../values/as-error.ts'
import { askToRelease } from './client.ts'
import { AdminRefusal } from '../refusal.ts'
import { findRoute } from '../routes.ts'
import { OPERATOR } from '../../observe/viewer.ts'
import { PIPE, prepareFolder, removeStale } from './socket-location.ts'
import type { SocketLocation } from './socket-location.ts'

const MAX_BODY_BYTES = 16 * 1024 * 1024
/** Bytes that may wait for a reader of the feed before rows are dropped. */
const MAX_WAITING_BYTES = 256 * 1024

export interface AdminOptions {
  readonly control: Control
  /** Serves a host on a pipe; `undefined`: this process serves one host only. */
  readonly attach: ((streams: HostStreams, path: EndpointPath, isRelay: boolean) => Promise<void>) | undefined
  /** It accepts no further hosts. */
  readonly isStopping: () => boolean
  /** Whether the path names an endpoint. */
  readonly isEndpoint: (path: EndpointPath) => boolean
  readonly log: Log
}

/** Listens at the socket; logs a warning if it cannot, such as when another process of this configuration has it. */
export const openAdmin = async (location: SocketLocation, options: AdminOptions): Promise<AsyncDisposable> => {
  const { log } = options
  const pipes = new Set<Duplex>()
  let http: HttpServer | undefined
  // Most processes get no request: node:http is loaded by the first connection.
  const server = new Server({ allowHalfOpen: true }, (socket) => {
    http ??= serve(options, pipes, () => server.close())
    http.emit('connection', socket)
  })
  try {
    await prepareFolder(location)
    await take(server, location, options.attach !== undefined)
    // A connection that cannot be accepted, such as without free descriptors, does not end the process (F-29).
    server.on('error', (error) => log.warn({ error: error.message }, 'trouble with connections of the admin socket'))
    if (location.folder !== undefined) await chmod(location.path, 0o600)
  } catch (error) {
    const isTaken = asError(error).code === 'EADDRINUSE'
    const why = isTaken
      ? 'another process of this configuration uses it'
      : `${asError(error).message}; set XDG_RUNTIME_DIR to a folder that belongs to you and has a short path`
    log.warn({ socket: location.path }, `no admin socket: ${why}`)
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of pipes) socket.destroy()
      http?.close(() => undefined)
      http?.closeAllConnections()
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Answers the requests; `release` stops listening. */
const serve = (options: AdminOptions, pipes: Set<Duplex>, release: () => void): HttpServer => {
  const { log } = options
  const server = nodeHttp().createServer((request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    if (request.url?.startsWith('/feed') === true) return void follow(request, response, options, gone.signal)
    void answer(request, options, gone.signal, release).then(
      (body) => {
        const isKnown = body !== undefined
        response.writeHead(isKnown ? 200 : 404, { 'Content-Type': 'application/json' }).end(isKnown ? body : '{}')
      },
      (error: unknown) => {
        if (error instanceof AdminRefusal) return refuse(response, error)
        log.error({ error: String(error) }, 'the admin socket could not answer')
        response.writeHead(500).end()
      },
    )
  })
  server.on('upgrade', (request, socket, head) => {
    if (head.length > 0) socket.unshift(head)
    pipes.add(socket)
    socket.once('close', () => pipes.delete(socket))
    socket.on('error', () => undefined)
    servePipe(request, socket, options).catch((error: unknown) => {
      log.warn({ error: String(error) }, 'the connection to an attached host failed')
      socket.destroy()
    })
  })
  // Starts its check for slow connections, which normally starts when it listens.
  server.emit('listening')
  return server
}

/**
 * The first process keeps the socket. A later process takes it over if no process answers at it. A process that serves any host
 * also takes it over from one that serves only the host that started it.
 */
const take = async (server: Server, location: SocketLocation, servesAny: boolean): Promise<void> => {
  try {
    await listening(server, { path: location.path })
  } catch (error) {
    if (asError(error).code !== 'EADDRINUSE') throw error
    if ((await isAnswered(location.path)) && !(servesAny && (await askToRelease(location)))) throw error
    await removeStale(location)
    await listening(server, { path: location.path })
  }
}

const answer = async (
  request: IncomingMessage,
  { control, attach }: AdminOptions,
  gone: AbortSignal,
  release: () => void,
): Promise<Buffer | string | undefined> => {
  const { pathname, searchParams } = urlOf(request)
  if (request.method === 'POST' && pathname === '/release') {
    if (attach === undefined) release()
    return JSON.stringify({ released: attach === undefined })
  }
  const found = findRoute(request.method ?? '', pathname)
  if (found === undefined) return undefined
  const { route, id } = found
  const body = await route.answer({
    query: searchParams,
    body: await read(request),
    control,
    signal: gone,
    viewer: OPERATOR,
    id,
  })
  return Buffer.isBuffer(body) ? body : JSON.stringify(body)
}

const refuse = (response: ServerResponse, error: AdminRefusal): void =>
  void response.writeHead(error.status, { 'Content-Type': 'application/json' }).end(JSON.stringify(error.body))

/** Sends rows of calls as lines of JSON, until the reader disconnects. */
const follow = async (
  request: IncomingMessage,
  response: ServerResponse,
  { control, log }: AdminOptions,
  gone: AbortSignal,
): Promise<void> => {
  const { searchParams } = urlOf(request)
  const sink: FeedSink = {
    get isStalled() {
      return response.writableLength > MAX_WAITING_BYTES
    },
    send: (message) => {
      if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
      response.write(`${JSON.stringify(message)}\n`)
    },
  }
  const filter = searchParams.get('filter') ?? ''
  try {
    await control.follow(
      { viewer: OPERATOR, filter, after: countOf(searchParams, 'after'), isWhole: searchParams.has('whole') },
      sink,
      gone,
    )
    response.end()
  } catch (error) {
    if (error instanceof AdminRefusal) return refuse(response, error)
    log.error({ error: String(error) }, 'the admin socket could not answer')
    response.destroy()
  }
}

const urlOf = ({ url }: IncomingMessage): URL => new URL(url ?? '/', 'http://admin')

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  const body: AsyncIterable<Buffer> = request
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) throw new Error('a request of the admin socket is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const servePipe = async (request: IncomingMessage, socket: Duplex, options: AdminOptions): Promise<void> => {
  const { attach, isEndpoint, isStopping, log } = options
  const { searchParams } = urlOf(request)
  const path: EndpointPath = {
    server: searchParams.get('server') ?? undefined,
    toolset: searchParams.get('toolset') ?? undefined,
  }
  if (request.headers.upgrade !== PIPE || !isEndpoint(path))
    return void socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n')
  // Nothing follows a process that serves one host only, so its end is not waited for.
  if (attach === undefined) return void socket.end('HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n')
  if (isStopping()) return void socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PIPE}\r\n\r\n`)
  log.info({}, 'a host was attached')
  await attach({ input: socket, output: socket }, path, searchParams.has('relay'))
  socket.end()
}
