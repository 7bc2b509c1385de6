/**
 * A server process written with the official SDK 1, for the pairs an SDK 2 server cannot make:
 * `sdk1-server.ts stdio|pipes|sse|http [--port N] [--pages]`. It offers the shared table and nothing of the conformance suite. `pipes`: as the
 * reference server. Over HTTP and for pipes it says on stderr where it listens (`/sse` or `/mcp`).
 */
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { announce } from './announce.ts'
import { createBoard } from './board.ts'
import { pipeListener } from './pipe-listener.ts'
import { sdk1Server } from './sdk1-offers.ts'
import { createServerState } from './server-state.ts'
import { sseListener, streamableListener } from './sse-listener.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '0' }, pages: { type: 'boolean', default: false } },
})
const state = createServerState(createBoard())
const open = () => sdk1Server(state, values.pages)

if (positionals[0] === 'stdio') await open().connect(new StdioServerTransport())
else if (positionals[0] === 'pipes') {
  const listener = pipeListener((socket) => {
    const transport = new StdioServerTransport(socket, socket)
    void open().connect(transport)
    return () => transport.close()
  })
  announce(listener, Number(values.port), '')
} else if (positionals[0] === 'sse')
  announce(createServer(sseListener((transport) => open().connect(transport))), Number(values.port), '/sse')
else announce(createServer(streamableListener((transport) => open().connect(transport))), Number(values.port), '/mcp')
