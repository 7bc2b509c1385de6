/** A host of the legacy era uses a server that only speaks 2026-07-28, and answers what it asks. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { fileURLToPath } from 'node:url'
import { saw, startTrunkline, textOf } from '../run.ts'

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

const alone = new Client({ name: 'legacy-host', version: '1' })
const direct = alone.connect(
  new StdioClientTransport({ command: process.execPath, args: [here('server.mjs')], stderr: 'ignore' }),
)
saw(
  'without Trunkline the host cannot connect',
  await direct.then(
    () => false,
    () => true,
  ),
)
await alone.close()

await using trunkline = await startTrunkline(here('trunkline.yaml'))
const host = new Client({ name: 'legacy-host', version: '1' }, { capabilities: { elicitation: {} } })
const asked: string[] = []
host.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  asked.push(params.message)
  return { action: 'accept', content: { floor: '3' } }
})
await host.connect(new StreamableHTTPClientTransport(trunkline.url))
const era = await host.callTool({ name: 'desk__era', arguments: {} })
saw('through Trunkline its tools answer', textOf(era) === 'this call is modern')
const booked = await host.callTool({ name: 'desk__book_desk', arguments: {} })
saw('the host was asked while its call was open', asked.length === 1 && asked.join('').endsWith('Which floor?'))
saw('and the answer reached the server', textOf(booked) === 'booked on floor 3')
await host.close()
