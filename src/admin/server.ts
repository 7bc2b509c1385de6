/**
 * The admin socket: what the command line asks of a running process, as HTTP/1.1 over a unix socket that only its owner can reach.
 * It restarts, reloads and approves; it takes no command line, no URL and no configuration (DECISIONS 7). Never on the MCP port (T-37).
 */
import { chmod } from 'node:fs/promises'
import type { IncomingMessage, Server as HttpServer } from 'node:http'
import { Server } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HostStreams } from '../app.ts'
import { HOST_LIMITS } from '../catalog/lint/host-limits.ts'
import type { Log } from '../downstream/environment.ts'
import type { EndpointPath } from '../rpc/call.ts'
import { nodeHttp } from '../transport/http1/server/node-http.ts'
import { encodeBasis } from './basis.ts'
import type { Control } from './control.ts'
import { askToRelease } from './client.ts'
import { isAnswered, PIPE, prepareFolder, removeStale } from './socket.ts'
import type { Place } from './socket.ts'

const MAX_BODY_BYTES = 16 * 1024 * 1024

export interface AdminOptions {
  readonly control: Control
  /** Serves a host on a pipe; `undefined`: this process has no room for another. */
  readonly attach: ((streams: HostStreams, path: EndpointPath, isRelay: boolean) => Promise<void>) | undefined
  /** It takes no host any more. */
  readonly isStopping: () => boolean
  /** Whether there is such an endpoint to attach to. */
  readonly isEndpoint: (path: EndpointPath) => boolean
  readonly log: Log
}

type Handler = (query: URLSearchParams, body: string, control: Control, signal: AbortSignal) => Promise<Buffer | object>

const ROUTES: Readonly<Record<string, Handler>> = {
  'GET /status': (_query, _body, control) => control.status(),
  'GET /tools': async (query, _body, control) => ({
    tools: await control.tools(query.get('query') ?? '', query.get('toolset') ?? undefined),
  }),
  'GET /offered': (query, _body, control) => control.offered(query.getAll('server'), query.get('apps') === 'true'),
  'GET /changes': (_query, _body, control) => control.changes(),
  'GET /lint': (query, _body, control) => control.lint(query.getAll('host').filter((host) => Object.hasOwn(HOST_LIMITS, host))),
  'GET /why': (query, _body, control) => control.why(query.get('name') ?? '', query.get('toolset') ?? undefined),
  'GET /plan': (_query, _body, control) => control.plan(),
  'GET /basis': async (_query, _body, control) => {
    const basis = await control.basis()
    return basis === undefined ? {} : encodeBasis(basis)
  },
  'POST /reload': (_query, _body, control) => control.reload(),
  'POST /restart': async (query, _body, control) => ({ restarted: await control.restart(query.get('server') ?? '') }),
  'POST /login': async (query, _body, control) => ({ login: await control.login(query.get('server') ?? '') }),
  'GET /login': async (query, _body, control, signal) => ({ end: await control.loginEnd(query.get('server') ?? '', signal) }),
  'POST /approve': async (query, _body, control) => ({
    approved: await control.approve(query.get('server') ?? '', query.get('tool') ?? undefined),
  }),
  'POST /call': async (query, body, control, signal) => {
    const end = await control.call(query.get('tool') ?? '', body, query.get('toolset') ?? undefined, signal)
    if (end.kind !== 'result') return end
    return Buffer.concat([Buffer.from(`{"kind":"result","isError":${end.isError},"result":`), end.result, Buffer.from('}')])
  },
}

/** Takes the socket, or goes on without, which is logged: another process of this configuration may have it. */
export const openAdmin = async (place: Place, options: AdminOptions): Promise<AsyncDisposable> => {
  const { log } = options
  const pipes = new Set<Duplex>()
  let http: HttpServer | undefined
  // Most processes are never asked anything: node:http is loaded by the first connection.
  const server = new Server({ allowHalfOpen: true }, (socket) => {
    http ??= serve(options, pipes, () => server.close())
    http.emit('connection', socket)
  })
  try {
    await prepareFolder(place)
    await take(server, place, options.attach !== undefined)
    // A connection that cannot be taken, as when no descriptor is left, is no reason to end (F-29).
    server.on('error', (error) => log.warn({ error: error.message }, 'trouble with connections of the admin socket'))
    if (place.folder !== undefined) await chmod(place.path, 0o600)
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
    const why = isTaken ? 'another process of this configuration has it' : (error as Error).message
    log.warn({ socket: place.path }, `no admin socket: ${why}`)
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

/** What reads the requests; `release` stops listening. */
const serve = (options: AdminOptions, pipes: Set<Duplex>, release: () => void): HttpServer => {
  const { log } = options
  const server = nodeHttp().createServer((request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    void answer(request, options, gone.signal, release).then(
      (body) => {
        const isKnown = body !== undefined
        response.writeHead(isKnown ? 200 : 404, { 'Content-Type': 'application/json' }).end(isKnown ? body : '{}')
      },
      (error: unknown) => {
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
      log.warn({ error: String(error) }, 'an attached host was let go')
      socket.destroy()
    })
  })
  // From here on it looks for slow connections, as it does once it listens.
  server.emit('listening')
  return server
}

/**
 * The first process keeps the socket. A later process takes it over if no process answers at it. A process that serves any host
 * also takes it over from one that serves only the host that started it.
 */
const take = async (server: Server, place: Place, servesAny: boolean): Promise<void> => {
  try {
    await listen(server, place.path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    if ((await isAnswered(place)) && !(servesAny && (await askToRelease(place)))) throw error
    await removeStale(place)
    await listen(server, place.path)
  }
}

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })

const answer = async (
  request: IncomingMessage,
  { control, attach }: AdminOptions,
  gone: AbortSignal,
  release: () => void,
): Promise<Buffer | string | undefined> => {
  const { pathname, searchParams } = urlOf(request)
  const name = `${request.method} ${pathname}`
  if (name === 'POST /release') {
    if (attach === undefined) release()
    return JSON.stringify({ released: attach === undefined })
  }
  const handler = Object.hasOwn(ROUTES, name) ? ROUTES[name] : undefined
  if (handler === undefined) return undefined
  const body = await handler(searchParams, await read(request), control, gone)
  return Buffer.isBuffer(body) ? body : JSON.stringify(body)
}

const urlOf = ({ url }: IncomingMessage): URL => new URL(url ?? '/', 'http://admin')

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
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
  if (isStopping()) return void socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n')
  if (attach === undefined) return void socket.end('HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PIPE}\r\n\r\n`)
  log.info({}, 'a host is attached')
  await attach({ input: socket, output: socket }, path, searchParams.has('relay'))
  socket.end()
}
