/**
 * Serves the reference server over Streamable HTTP: modern requests each by an instance of their own, legacy ones in
 * sessions. The SDK's own legacy fallback has no sessions, so it could not send requests to the host.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Server } from 'node:http'
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node'
import { WebStandardStreamableHTTPServerTransport, createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server'
import type { EventStore, JSONRPCMessage, McpServerFactory } from '@modelcontextprotocol/server'
import type { ServerState } from '../server-state.ts'

/** Which eras a server answers in. */
export type Era = 'legacy' | 'modern' | 'dual'

/** An HTTP server, not yet listening, that answers on every path in the eras it was asked for. */
export const referenceHttp = (factory: McpServerFactory, state: ServerState, era: Era): Server => {
  const modern = createMcpHandler(factory, { legacy: 'reject' })
  const legacy = legacySessions(factory)
  state.follow((change) => {
    if (change === 'tools') modern.notify.toolsChanged()
    else if (change === 'prompts') modern.notify.promptsChanged()
    else modern.notify.resourceUpdated(change.uri)
  })
  const serve = {
    modern: modern.fetch,
    legacy,
    dual: async (request: Request) => ((await isLegacyRequest(request)) ? legacy(request) : modern.fetch(request)),
  }
  const handle = toNodeHandler({ fetch: serve[era] })
  const fromLocalHost = localhostHostValidation()
  const fromLocalOrigin = localhostOriginValidation()
  return createServer((request, response) => {
    if (fromLocalHost(request, response) && fromLocalOrigin(request, response)) void handle(request as Incoming, response)
  })
}

/** A request that a server has read names both. */
type Incoming = IncomingMessage & { method: string; url: string }

/** One transport and one server per session; a request without a session id opens one and must be `initialize`. */
export const legacySessions = (factory: McpServerFactory) => {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  return async (request: Request): Promise<Response> => {
    const id = request.headers.get('mcp-session-id')
    if (id !== null) return sessions.get(id)?.handleRequest(request) ?? unknownSession()
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: rememberEvents(),
      retryInterval: 500,
      // The SDK sends the head of a GET stream only with its first byte, and hosts wait for the head.
      keepAliveMs: 200,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    const server = await factory({ era: 'legacy', requestInfo: request })
    await server.connect(transport)
    return transport.handleRequest(request)
  }
}

const unknownSession = () =>
  Response.json({ jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null }, { status: 404 })

/** Keeps every event of one session, so that a stream that was cut can be continued. */
const rememberEvents = (): EventStore => {
  const events: { streamId: string; message: JSONRPCMessage }[] = []
  return {
    storeEvent: async (streamId, message) => String(events.push({ streamId, message }) - 1),
    getStreamIdForEventId: async (eventId) => events[Number(eventId)]?.streamId,
    async replayEventsAfter(lastEventId, { send }) {
      const streamId = events[Number(lastEventId)]?.streamId ?? ''
      for (const [index, event] of events.entries()) {
        if (index > Number(lastEventId) && event.streamId === streamId) await send(String(index), event.message)
      }
      return streamId
    },
  }
}
