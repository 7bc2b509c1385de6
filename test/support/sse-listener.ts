/** How servers of SDK 1 are served over HTTP. */
import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

/** HTTP+SSE: GET opens a stream, POST with its session id sends into it. `connect` attaches a server of its own to each stream. */
export const sseListener = (connect: (transport: SSEServerTransport) => Promise<void>): RequestListener => {
  const streams = new Map<string, SSEServerTransport>()
  return async (request, response) => {
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response)
      streams.set(transport.sessionId, transport)
      response.on('close', () => streams.delete(transport.sessionId))
      return connect(transport)
    }
    const session = new URL(request.url ?? '', 'http://localhost').searchParams.get('sessionId') ?? ''
    const transport = streams.get(session)
    if (transport === undefined) return void response.writeHead(404).end()
    return transport.handlePostMessage(request, response)
  }
}

/** Streamable HTTP with sessions as the SDK keeps them; a request without a session id opens one and must be `initialize`. */
export const streamableListener = (connect: (transport: StreamableHTTPServerTransport) => Promise<void>): RequestListener => {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  return async (request, response) => {
    const id = request.headers['mcp-session-id']
    if (typeof id === 'string') {
      const known = sessions.get(id)
      return known ? known.handleRequest(request, response) : void response.writeHead(404).end()
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (name) => void sessions.set(name, transport),
      onsessionclosed: (name) => void sessions.delete(name),
    })
    await connect(transport)
    return transport.handleRequest(request, response)
  }
}
