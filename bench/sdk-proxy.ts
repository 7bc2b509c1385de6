/**
 * The official SDK 1.x wired as a proxy, the way its documentation suggests: a server with one transport per session in front, a client
 * per session behind, every list and call handed on. `node bench/sdk-proxy.ts http://…/mcp`.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, CallToolResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { announce } from './announce.ts'

const downstream = new URL(process.argv[2] ?? '')
const info = { name: 'sdk-proxy', version: '1.0.0' }
const sessions = new Map<string, StreamableHTTPServerTransport>()

const openSession = async (): Promise<StreamableHTTPServerTransport> => {
  const client = new Client(info)
  await client.connect(new StreamableHTTPClientTransport(downstream))
  const server = new Server(info, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => client.listTools(params))
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => client.callTool(params, CallToolResultSchema))
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: async (id) => {
      sessions.delete(id)
      await client.close()
    },
  })
  await server.connect(transport)
  return transport
}

const http = createServer(async (request, response) => {
  const id = request.headers['mcp-session-id']
  const transport = typeof id === 'string' ? sessions.get(id) : await openSession()
  if (transport === undefined) response.writeHead(404).end()
  else await transport.handleRequest(request, response)
})
announce(http)
