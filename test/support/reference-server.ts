/**
 * The reference server as a process, written with the official SDK 2:
 * `reference-server.ts stdio|pipes|http|sse [--port N] [--era legacy|modern|dual] [--pages] [--by-request] [--shared DIRECTORY]`.
 * `--by-request`: asks legacy hosts by requests of its own, whatever they declared. Processes that name the same directory share
 * what they remember. `pipes`: speaks stdio on each connection to its port, for relays (test/support/relay.ts). Over HTTP and for pipes it
 * says on stderr where it listens; on stdio it ends with its stdin.
 */
import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { parseArgs } from 'node:util'
import type { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { announce } from './announce.ts'
import { privateBoard, sharedBoard } from './board.ts'
import { referenceFactory } from './reference/build.ts'
import { referenceHttp } from './reference/http.ts'
import type { Era } from './reference/http.ts'
import { createServerState } from './server-state.ts'
import { sseListener } from './sse-listener.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '0' },
    era: { type: 'string', default: 'dual' },
    pages: { type: 'boolean', default: false },
    'by-request': { type: 'boolean', default: false },
    shared: { type: 'string' },
  },
})
const era = values.era as Era
const state = createServerState(values.shared === undefined ? privateBoard() : sharedBoard(values.shared))
const factory = referenceFactory({ state, pages: values.pages, byRequest: values['by-request'] })
/** The transports of SDK 1 differ from those of SDK 2 in optional members only. */
const connectLegacy = async (transport: object): Promise<void> => {
  const server = await factory({ era: 'legacy' })
  await (server as McpServer).connect(transport as StdioServerTransport)
}
const connectStdio = async (transport: StdioServerTransport): Promise<void> => {
  if (era === 'legacy') await connectLegacy(transport)
  else serveStdio(factory, { transport, legacy: era === 'dual' ? 'serve' : 'reject' })
}

if (positionals[0] === 'http') {
  announce(referenceHttp(factory, state, era), Number(values.port), '/mcp')
} else if (positionals[0] === 'sse') {
  announce(createServer(sseListener(connectLegacy)), Number(values.port), '/sse')
} else if (positionals[0] === 'pipes') {
  const listener = createTcpServer((socket) => {
    socket.on('error', () => socket.destroy())
    void connectStdio(new StdioServerTransport(socket, socket))
  })
  announce(listener, Number(values.port), '')
} else {
  await connectStdio(new StdioServerTransport())
}
