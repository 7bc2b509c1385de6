/**
 * A raw MCP server over HTTP, one kind per process: `node bench/server.ts legacy|modern|sse-reply|http-sse [TOOLS]`. It is strict:
 * an unknown session, or a missing or contradicting header, gives 400 or 404.
 */
import { createServer, type Socket } from 'node:net'
import { announce } from './announce.ts'
import { createAnswers, errorPieces, type Pieces, type Request } from './answers.ts'
import { JWKS } from './credentials.ts'
import { header, messageReader } from './http.ts'
import { REVISION, type ServerKind, SLOW_MS, SLOW_TOOL, STEADY_MS, STEADY_PIECE_BYTES, STEADY_TOOL } from './payload.ts'

const kind = process.argv[2] as ServerKind
/** The open stream of a session; undefined where the transport needs none. */
const sessions = new Map<string, Socket | undefined>()
const answer = createAnswers(kind, Number(process.argv[3] ?? 0))
const EVENT_STREAM = 'Content-Type: text/event-stream\r\nCache-Control: no-cache\r\n'

const lengthOf = (pieces: Pieces): number => pieces.reduce((sum, piece) => sum + piece.length, 0)

/** Pieces in one gathered write. */
const write = (socket: Socket, pieces: Pieces) => {
  socket.cork()
  for (const piece of pieces) socket.write(piece, 'latin1')
  socket.uncork()
}

const event = (pieces: Pieces): Pieces => ['event: message\ndata: ', ...pieces, '\n\n']
const chunk = (pieces: Pieces): Pieces => [`${lengthOf(pieces).toString(16)}\r\n`, ...pieces, '\r\n']
const LAST_CHUNK = '0\r\n\r\n'

const reply = (socket: Socket, status: string, pieces: Pieces = [], headers = '') => {
  const type = pieces.length === 0 ? '' : 'Content-Type: application/json\r\n'
  write(socket, [`HTTP/1.1 ${status}\r\n${type}${headers}Content-Length: ${lengthOf(pieces)}\r\n\r\n`, ...pieces])
}

const streamHead = (headers = '') => `HTTP/1.1 200 OK\r\n${EVENT_STREAM}${headers}Transfer-Encoding: chunked\r\n\r\n`

/** An answer in the way of this kind of server. */
const succeed = (socket: Socket, pieces: Pieces, headers = '') => {
  if (kind === 'sse-reply') write(socket, [streamHead(headers), ...chunk(event(pieces)), LAST_CHUNK])
  else reply(socket, '200 OK', pieces, headers)
}

/** The first byte of an answer long before its last. */
const succeedSlowly = (socket: Socket, { params }: Request, pieces: Pieces) => {
  if (kind === 'sse-reply') {
    const progress = { progressToken: params?._meta?.progressToken, progress: 1 }
    const message = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: progress })
    write(socket, [streamHead(), ...chunk(event([message]))])
    return setTimeout(() => write(socket, [...chunk(event(pieces)), LAST_CHUNK]), SLOW_MS)
  }
  const whole = Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)))
  const half = whole.length >> 1
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${whole.length}\r\n\r\n`
  write(socket, [head, whole.subarray(0, half)])
  setTimeout(() => write(socket, [whole.subarray(half)]), SLOW_MS)
}

/** One piece after another, with a pause that is shorter than what a gateway may take for a silence. */
const succeedSteadily = (socket: Socket, pieces: Pieces) => {
  const whole = Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)))
  let at = STEADY_PIECE_BYTES
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${whole.length}\r\n\r\n`
  write(socket, [head, whole.subarray(0, at)])
  const timer = setInterval(() => {
    socket.write(whole.subarray(at, (at += STEADY_PIECE_BYTES)))
    if (at >= whole.length || socket.destroyed) clearInterval(timer)
  }, STEADY_MS)
}

/** What is wrong with the headers of a request: the session in the legacy era, the repeated fields in the modern one. */
const complaint = (head: string, { method, params }: Request): [status: string, message: string] | undefined => {
  if (kind === 'modern') {
    if (header(head, 'mcp-protocol-version') !== REVISION.modern) return ['400 Bad Request', 'MCP-Protocol-Version differs']
    if (header(head, 'mcp-method') !== method) return ['400 Bad Request', 'Mcp-Method differs']
    if (params?.name !== undefined && header(head, 'mcp-name') !== params.name) return ['400 Bad Request', 'Mcp-Name differs']
    return undefined
  }
  const session = header(head, 'mcp-session-id')
  if (method === 'initialize' || sessions.has(session)) return undefined
  return session === '' ? ['400 Bad Request', 'Mcp-Session-Id is required'] : ['404 Not Found', 'Session not found']
}

/** Streamable HTTP. */
const serve = (socket: Socket, head: string, body: Buffer) => {
  if (head.startsWith('DELETE '))
    return reply(socket, sessions.delete(header(head, 'mcp-session-id')) ? '200 OK' : '404 Not Found')
  if (head.startsWith('GET /jwks ')) return reply(socket, '200 OK', [JWKS])
  if (!head.startsWith('POST ')) return reply(socket, '405 Method Not Allowed', [], 'Allow: POST, DELETE\r\n')
  const request = JSON.parse(body.toString()) as Request
  const wrong = complaint(head, request)
  if (wrong !== undefined) return reply(socket, wrong[0], errorPieces(request.id, -32600, wrong[1]))
  if (request.id === undefined) return reply(socket, '202 Accepted')
  const pieces = answer(request)
  if (pieces === undefined) {
    return reply(socket, kind === 'modern' ? '404 Not Found' : '200 OK', errorPieces(request.id, -32601, 'Method not found'))
  }
  if (request.params?.name === SLOW_TOOL) return succeedSlowly(socket, request, pieces)
  if (request.params?.name === STEADY_TOOL && kind !== 'sse-reply') return succeedSteadily(socket, pieces)
  if (request.method !== 'initialize') return succeed(socket, pieces)
  const session = crypto.randomUUID()
  sessions.set(session, undefined)
  succeed(socket, pieces, `Mcp-Session-Id: ${session}\r\n`)
}

/** HTTP+SSE: GET opens the stream that is the session; answers to what is posted go there. */
const serveStream = (socket: Socket, head: string, body: Buffer) => {
  if (head.startsWith('GET ')) {
    const session = crypto.randomUUID()
    sessions.set(session, socket)
    socket.once('close', () => sessions.delete(session))
    return write(socket, [streamHead(), ...chunk([`event: endpoint\ndata: /messages?session=${session}\n\n`])])
  }
  const stream = head.startsWith('POST ') ? sessions.get(/\?session=([\w-]+)/.exec(head)?.[1] ?? '') : undefined
  if (stream === undefined) return reply(socket, '404 Not Found')
  const request = JSON.parse(body.toString()) as Request
  reply(socket, '202 Accepted')
  if (request.id === undefined) return
  write(stream, chunk(event(answer(request) ?? errorPieces(request.id, -32601, 'Method not found'))))
}

const server = createServer({ noDelay: true }, (socket) => {
  const read = messageReader((head, body) => (kind === 'http-sse' ? serveStream : serve)(socket, head, body))
  socket.on('data', read).on('error', () => socket.destroy())
})
announce(server)
