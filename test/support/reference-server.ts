/**
 * The reference server as a process, written with the official SDK 2:
 * `reference-server.ts stdio|http [--port N] [--era legacy|modern|dual] [--pages]`.
 * Over HTTP it says on stderr where it listens. On stdio it ends with its stdin.
 */
import { parseArgs } from 'node:util'
import type { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { announce } from './announce.ts'
import { referenceFactory } from './reference/build.ts'
import { referenceHttp } from './reference/http.ts'
import type { Era } from './reference/http.ts'
import { createServerState } from './server-state.ts'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '0' },
    era: { type: 'string', default: 'dual' },
    pages: { type: 'boolean', default: false },
  },
})
const era = values.era as Era
const state = createServerState()
const factory = referenceFactory({ state, pages: values.pages })

if (positionals[0] === 'http') {
  announce(referenceHttp(factory, state, era), Number(values.port), '/mcp')
} else if (era === 'legacy') {
  const server = await factory({ era: 'legacy' })
  await (server as McpServer).connect(new StdioServerTransport())
} else {
  serveStdio(factory, { legacy: era === 'dual' ? 'serve' : 'reject' })
}
