/**
 * The reference server as a process, written with the official SDK 2:
 * `reference-server.ts stdio|pipes|http|sse [--port N] [--era legacy|modern|dual] [--pages] [--by-request]`.
 * `--by-request`: asks legacy hosts by requests of its own, whatever they declared. `pipes`: speaks stdio on each connection to its port, for
 * relays (test/support/relay.ts). Over HTTP and for pipes it says on stderr where it listens; on stdio it ends with its stdin.
 */
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import type { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { announce } from './announce.ts'
import { createBoard } from './board.ts'
import { pipeListener } from './pipe-listener.ts'
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
  },
})
const era = values.era as Era
const state = createServerState(createBoard())
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
  const listener = pipeListener((socket) => {
    const transport = new StdioServerTransport(socket, socket)
    void connectStdio(transport)
    return () => transport.close()
  })
  announce(listener, Number(values.port), '')
} else {
  await connectStdio(new StdioServerTransport())
}
