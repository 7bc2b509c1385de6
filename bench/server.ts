/**
 * A raw MCP server over Streamable HTTP, one era per process: `node bench/server.ts legacy|modern`. It answers by string pieces, and
 * it is strict about what a gateway must get right: an unknown session, a missing or contradicting header ends in 400 or 404.
 */
import { createServer, type Socket } from 'node:net'
import { announce } from './announce.ts'
import { header, messageReader } from './http.ts'
import { type Era, filler, isToolName, REVISION, TOOLS } from './payload.ts'

interface Request {
  readonly id?: number | string
  readonly method: string
  readonly params?: { readonly name?: string; readonly arguments?: { readonly nonce?: string } }
}

const era: Era = process.argv[2] === 'modern' ? 'modern' : 'legacy'
const revision = REVISION[era]
const sessions = new Set<string>()
const fillers = new Map<string, Buffer>(Object.entries(TOOLS).map(([name, size]) => [name, filler(size)]))

const SERVER_INFO = { name: 'bench', version: '1.0.0' }
const CAPABILITIES = { tools: {} }
const INPUT_SCHEMA = { type: 'object', properties: { nonce: { type: 'string' } }, required: ['nonce'] }
/** Members that every modern result carries; cacheable ones carry more. */
const MODERN = era === 'modern' ? { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': SERVER_INFO } } : {}
const CACHEABLE = era === 'modern' ? { ttlMs: 3_600_000, cacheScope: 'public' } : {}
const CALL_TAIL = era === 'modern' ? `${JSON.stringify(MODERN).slice(1, -1)},` : ''

const tools = Object.keys(TOOLS).map((name) => ({
  name,
  description: `Answers ${name.slice(1)} of text.`,
  inputSchema: INPUT_SCHEMA,
}))
const RESULTS: Record<string, object> = {
  'tools/list': { tools, ...CACHEABLE, ...MODERN },
  ...(era === 'modern'
    ? { 'server/discover': { supportedVersions: [revision], capabilities: CAPABILITIES, ...CACHEABLE, ...MODERN } }
    : { initialize: { protocolVersion: revision, capabilities: CAPABILITIES, serverInfo: SERVER_INFO }, ping: {} }),
}

const reply = (socket: Socket, status: string, body = '', headers = '') => {
  const type = body === '' ? '' : 'Content-Type: application/json\r\n'
  socket.write(`HTTP/1.1 ${status}\r\n${type}${headers}Content-Length: ${body.length}\r\n\r\n${body}`, 'latin1')
}

const refuse = (socket: Socket, status: string, id: Request['id'], code: number, message: string) =>
  reply(socket, status, JSON.stringify({ error: { code, message }, jsonrpc: '2.0', id: id ?? null }))

/** The text of a result, large ones as slices in one gathered write. */
const replyCall = (socket: Socket, { id, params }: Request) => {
  const name = params?.name ?? ''
  const nonce = params?.arguments?.nonce
  if (!isToolName(name) || nonce === undefined) return refuse(socket, '200 OK', id, -32602, `Unknown tool or no nonce: ${name}`)
  const before = `{"result":{"content":[{"type":"text","text":"${nonce}`
  const after = `${nonce}"}],${CALL_TAIL}"isError":false},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`
  const text = fillers.get(name)!
  const length = before.length + text.length + after.length
  socket.cork()
  socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${before}`, 'latin1')
  socket.write(text)
  socket.write(after, 'latin1')
  socket.uncork()
}

/** What is wrong with the headers of a request, or undefined: session in the legacy era, repeated fields in the modern one. */
const complaint = (head: string, { method, params }: Request): [status: string, message: string] | undefined => {
  if (era === 'modern') {
    if (header(head, 'mcp-protocol-version') !== revision) return ['400 Bad Request', `MCP-Protocol-Version is not ${revision}`]
    if (header(head, 'mcp-method') !== method) return ['400 Bad Request', `Mcp-Method is not ${method}`]
    if (params?.name !== undefined && header(head, 'mcp-name') !== params.name) return ['400 Bad Request', 'Mcp-Name differs']
  } else if (method !== 'initialize' && !sessions.has(header(head, 'mcp-session-id')))
    return ['404 Not Found', 'Session not found']
  return undefined
}

const answer = (socket: Socket, head: string, body: Buffer) => {
  if (head.startsWith('DELETE '))
    return reply(socket, sessions.delete(header(head, 'mcp-session-id')) ? '200 OK' : '404 Not Found')
  if (!head.startsWith('POST ')) return reply(socket, '405 Method Not Allowed', '', 'Allow: POST, DELETE\r\n')
  const request = JSON.parse(body.toString()) as Request
  const wrong = complaint(head, request)
  if (wrong !== undefined) return refuse(socket, wrong[0], request.id, -32600, wrong[1])
  if (request.id === undefined) return reply(socket, '202 Accepted')
  if (request.method === 'tools/call') return replyCall(socket, request)
  const result = RESULTS[request.method]
  if (result === undefined)
    return refuse(socket, era === 'modern' ? '404 Not Found' : '200 OK', request.id, -32601, 'Method not found')
  const session = request.method === 'initialize' ? crypto.randomUUID() : undefined
  if (session !== undefined) sessions.add(session)
  const headers = session === undefined ? '' : `Mcp-Session-Id: ${session}\r\n`
  reply(socket, '200 OK', JSON.stringify({ result, jsonrpc: '2.0', id: request.id }), headers)
}

const server = createServer({ noDelay: true }, (socket) => {
  const read = messageReader((head, body) => answer(socket, head, body))
  socket.on('data', read).on('error', () => socket.destroy())
})
announce(server)
