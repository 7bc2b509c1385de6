/** A server that only knows stdin and stdout is used over three forms of HTTP, and by curl's means alone. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { fileURLToPath } from 'node:url'
import { saw, startTrunkline, textOf } from '../run.ts'

await using trunkline = await startTrunkline(fileURLToPath(new URL('trunkline.yaml', import.meta.url)))
const { url } = trunkline

const transports = {
  'Streamable HTTP': () => new StreamableHTTPClientTransport(url),
  'HTTP+SSE': () => new SSEClientTransport(new URL('/sse', url)),
  'the address of this server alone': () => new StreamableHTTPClientTransport(new URL('/servers/files/mcp', url)),
}
for (const [name, open] of Object.entries(transports)) {
  const host = new Client({ name: 'host', version: '1' })
  await host.connect(open())
  const names = (await host.listTools()).tools.map((tool) => tool.name)
  saw(`${name}: tools under their own names`, names.includes('read_text_file') && names.every((tool) => !tool.includes('__')))
  const folders = await host.callTool({ name: 'list_allowed_directories', arguments: {} })
  saw(`${name}: a call reaches the process`, textOf(folders).includes('files'))
  await host.close()
}

const modern = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'fetch', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const response = await fetch(url, {
  method: 'POST',
  headers: {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/list',
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: modern } }),
})
const { result } = (await response.json()) as { result: { tools: unknown[] } }
saw('one POST of 2026-07-28 is enough, without any handshake', response.status === 200 && result.tools.length > 0)

const foreign = await fetch(url, { method: 'POST', headers: { Origin: 'https://elsewhere.example' } })
saw(`a web page of another origin is refused (HTTP ${foreign.status})`, foreign.status === 403)
