/** Three hosts that have nothing in common use the same servers: two on one URL, one over a pipe. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { fileURLToPath } from 'node:url'
import { saw, startTrunkline, textOf, TRUNKLINE } from '../run.ts'

const config = fileURLToPath(new URL('trunkline.yaml', import.meta.url))
await using trunkline = await startTrunkline(config)
const [command, ...main] = TRUNKLINE

const legacy = new Client({ name: 'legacy-host', version: '1' })
await legacy.connect(new StreamableHTTPClientTransport(trunkline.url))
const modern = new ModernClient({ name: 'modern-host', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
await modern.connect(new ModernTransport(trunkline.url))
const piped = new Client({ name: 'piped-host', version: '1' })
const env = { ...getDefaultEnvironment(), ...trunkline.env }
await piped.connect(new StdioClientTransport({ command, args: [...main, 'stdio', '-c', config], env, stderr: 'ignore' }))

const hosts = { 'legacy, Streamable HTTP': legacy, 'modern, Streamable HTTP': modern, 'legacy, stdio': piped }
for (const [name, host] of Object.entries(hosts)) {
  const names = (await host.listTools()).tools.map((tool) => tool.name)
  saw(`${name}: tools of both servers`, names.includes('everything__echo') && names.includes('files__read_text_file'))
  const echo = await host.callTool({ name: 'everything__echo', arguments: { message: name } })
  saw(`${name}: everything__echo answers`, textOf(echo).includes(name))
  const folders = await host.callTool({ name: 'files__list_allowed_directories', arguments: {} })
  saw(`${name}: files__list_allowed_directories answers`, textOf(folders).includes('files'))
}
for (const host of Object.values(hosts)) await host.close()
saw('SIGTERM ends it with 0', (await trunkline.stop()) === 0)
