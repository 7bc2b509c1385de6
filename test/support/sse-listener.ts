/** HTTP+SSE, which only SDK 1 serves: GET opens a stream, POST with its session id sends into it. */
import type { RequestListener } from 'node:http'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'

/** `connect` attaches a server of its own to each stream. */
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
