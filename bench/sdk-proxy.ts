/**
 * The official SDK 1.x wired as a proxy, as its documentation suggests: a server with one transport per session in front, a client
 * per server and session behind, every list and call relayed. `node bench/sdk-proxy.ts http://…/mcp …`: with more than one URL the
 * names get a prefix. `node bench/sdk-proxy.ts stdio COMMAND ARGS…`: a pipe on both sides.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { CallToolRequestSchema, CallToolResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { announce } from './announce.ts'

const words = process.argv.slice(2)
const info = { name: 'sdk-proxy', version: '1.0.0' }
const sessions = new Map<string, StreamableHTTPServerTransport>()

const connectServers = (): readonly Transport[] => {
  const [first = '', command = '', ...args] = words
  if (first !== 'stdio') return words.map((url) => new StreamableHTTPClientTransport(new URL(url)))
  return [new StdioClientTransport({ command, args, env: getDefaultEnvironment() })]
}

/** A server of our own that hands everything on; and what ends its clients. */
const openProxy = async (): Promise<[Server, () => Promise<unknown>]> => {
  const clients = await Promise.all(
    connectServers().map(async (transport) => {
      const client = new Client(info)
      await client.connect(transport)
      return client
    }),
  )
  const prefix = (index: number) => (clients.length === 1 ? '' : `s${index}__`)
  const server = new Server(info, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const lists = await Promise.all(clients.map((client) => client.listTools(params)))
    return {
      tools: lists.flatMap(({ tools }, index) => tools.map((tool) => ({ ...tool, name: `${prefix(index)}${tool.name}` }))),
    }
  })
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const [, index = '0', name = params.name] = /^s(\d+)__(.*)$/.exec(params.name) ?? []
    return clients[Number(index)]!.callTool({ ...params, name }, CallToolResultSchema)
  })
  return [server, () => Promise.all(clients.map((client) => client.close()))]
}

const openSession = async (): Promise<StreamableHTTPServerTransport> => {
  const [server, close] = await openProxy()
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: async (id) => {
      sessions.delete(id)
      await close()
    },
  })
  await server.connect(transport)
  return transport
}

if (words[0] === 'stdio') {
  const [server] = await openProxy()
  await server.connect(new StdioServerTransport())
} else {
  const http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    const transport = typeof id === 'string' ? sessions.get(id) : await openSession()
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handleRequest(request, response)
  })
  announce(http)
}
