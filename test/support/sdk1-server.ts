/**
 * A server process written with the official SDK 1, for the pairs an SDK 2 server cannot make:
 * `sdk1-server.ts stdio|sse|http [--port N] [--pages] [--shared DIRECTORY]`. It offers the shared table and nothing of the conformance suite.
 * Over HTTP it says on stderr where it listens (`/sse` or `/mcp`).
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { parseArgs } from 'node:util'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { announce } from './announce.ts'
import { privateBoard, sharedBoard } from './board.ts'
import { sdk1Server } from './sdk1-offers.ts'
import { createServerState } from './server-state.ts'
import { sseListener } from './sse-listener.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '0' }, pages: { type: 'boolean', default: false }, shared: { type: 'string' } },
})
const state = createServerState(values.shared === undefined ? privateBoard() : sharedBoard(values.shared))
const open = () => sdk1Server(state, values.pages)

/** Sessions as the SDK keeps them; a request without a session id opens one and must be `initialize`. */
const streamable = (): RequestListener => {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  return async (request, response) => {
    const id = request.headers['mcp-session-id']
    if (typeof id === 'string') {
      const known = sessions.get(id)
      return known ? known.handleRequest(request, response) : void response.writeHead(404).end()
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    await open().connect(transport)
    return transport.handleRequest(request, response)
  }
}

if (positionals[0] === 'stdio') await open().connect(new StdioServerTransport())
else if (positionals[0] === 'sse')
  announce(createServer(sseListener((transport) => open().connect(transport))), Number(values.port), '/sse')
else announce(createServer(streamable()), Number(values.port), '/mcp')
