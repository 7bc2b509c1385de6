/**
 * A raw MCP server over Streamable HTTP, one era per process: `node bench/server.ts legacy|modern`. It is strict about what a gateway
 * must get right: an unknown session, a missing or contradicting header ends in 400 or 404.
 */
import { createServer, type Socket } from 'node:net'
import { announce } from './announce.ts'
import { createAnswers, errorPieces, type Pieces, type Request } from './answers.ts'
import { header, messageReader } from './http.ts'
import { type Era, REVISION } from './payload.ts'

const era: Era = process.argv[2] === 'modern' ? 'modern' : 'legacy'
const sessions = new Set<string>()
const answer = createAnswers(era)

/** Head and pieces in one gathered write. */
const reply = (socket: Socket, status: string, pieces: Pieces = [], headers = '') => {
  const type = pieces.length === 0 ? '' : 'Content-Type: application/json\r\n'
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  socket.cork()
  socket.write(`HTTP/1.1 ${status}\r\n${type}${headers}Content-Length: ${length}\r\n\r\n`, 'latin1')
  for (const piece of pieces) socket.write(piece, 'latin1')
  socket.uncork()
}

/** What is wrong with the headers of a request: the session in the legacy era, the repeated fields in the modern one. */
const complaint = (head: string, { method, params }: Request): [status: string, message: string] | undefined => {
  if (era === 'modern') {
    if (header(head, 'mcp-protocol-version') !== REVISION.modern) return ['400 Bad Request', 'MCP-Protocol-Version differs']
    if (header(head, 'mcp-method') !== method) return ['400 Bad Request', 'Mcp-Method differs']
    if (params?.name !== undefined && header(head, 'mcp-name') !== params.name) return ['400 Bad Request', 'Mcp-Name differs']
    return undefined
  }
  const session = header(head, 'mcp-session-id')
  if (method === 'initialize' || sessions.has(session)) return undefined
  return session === '' ? ['400 Bad Request', 'Mcp-Session-Id is required'] : ['404 Not Found', 'Session not found']
}

const serve = (socket: Socket, head: string, body: Buffer) => {
  if (head.startsWith('DELETE '))
    return reply(socket, sessions.delete(header(head, 'mcp-session-id')) ? '200 OK' : '404 Not Found')
  if (!head.startsWith('POST ')) return reply(socket, '405 Method Not Allowed', [], 'Allow: POST, DELETE\r\n')
  const request = JSON.parse(body.toString()) as Request
  const wrong = complaint(head, request)
  if (wrong !== undefined) return reply(socket, wrong[0], errorPieces(request.id, -32600, wrong[1]))
  if (request.id === undefined) return reply(socket, '202 Accepted')
  const pieces = answer(request)
  if (pieces === undefined) {
    return reply(socket, era === 'modern' ? '404 Not Found' : '200 OK', errorPieces(request.id, -32601, 'Method not found'))
  }
  if (request.method !== 'initialize') return reply(socket, '200 OK', pieces)
  const session = crypto.randomUUID()
  sessions.add(session)
  reply(socket, '200 OK', pieces, `Mcp-Session-Id: ${session}\r\n`)
}

const server = createServer({ noDelay: true }, (socket) => {
  const read = messageReader((head, body) => serve(socket, head, body))
  socket.on('data', read).on('error', () => socket.destroy())
})
announce(server)
