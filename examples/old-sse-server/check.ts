/** Hosts that speak Streamable HTTP only use a server that speaks HTTP+SSE only. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { fileURLToPath } from 'node:url'
import { freePort, saw, startTrunkline, textOf } from '../run.ts'

const port = await freePort()
const config = fileURLToPath(new URL('trunkline.yaml', import.meta.url))
await using trunkline = await startTrunkline(config, { env: { OLD_PORT: String(port) } })

const legacy = new Client({ name: 'legacy-host', version: '1' })
await legacy.connect(new StreamableHTTPClientTransport(trunkline.url))
const modern = new ModernClient({ name: 'modern-host', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
await modern.connect(new ModernTransport(trunkline.url))

for (const [name, host] of Object.entries({ legacy, modern })) {
  const echo = await host.callTool({ name: 'old__echo', arguments: { message: 'hello' } })
  saw(`${name}: old__echo answers`, textOf(echo).includes('hello'))
  const steps: number[] = []
  const long = { name: 'old__trigger-long-running-operation', arguments: { duration: 1, steps: 3 } }
  const onprogress = ({ progress }: { progress: number }): void => void steps.push(progress)
  if (host === legacy) await legacy.callTool(long, undefined, { onprogress })
  else await modern.callTool(long, { onprogress })
  saw(`${name}: its progress arrives (${steps.join(', ')})`, steps.includes(3))
}
const direct = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST' })
saw(`the server itself has no Streamable HTTP (HTTP ${direct.status})`, direct.status === 404)
await legacy.close()
await modern.close()
