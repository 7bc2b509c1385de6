/** Calls as two hosts what the rules of this example allow, deny and have confirmed. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { fileURLToPath } from 'node:url'
import { saw, startTrunkline, textOf } from '../run.ts'

await using trunkline = await startTrunkline(fileURLToPath(new URL('trunkline.yaml', import.meta.url)))
const asked: string[] = []
const connect = async (name: string): Promise<Client> => {
  const host = new Client({ name, version: '1' }, { capabilities: { elicitation: {} } })
  host.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message)
    return { action: 'accept', content: {} }
  })
  await host.connect(new StreamableHTTPClientTransport(trunkline.url))
  return host
}
const agent = await connect('agent')
const inspector = await connect('inspector')
const call = async (host: Client, name: string, args = {}): Promise<string> =>
  textOf(await host.callTool({ name: `everything__${name}`, arguments: args }))

const names = (await agent.listTools()).tools.map(({ name }) => name)
saw('what is always denied is not listed', names.includes('everything__get-sum') && !names.includes('everything__get-env'))
saw(
  'a call of it is told why',
  (await call(agent, 'get-env')) === 'denied by policy: The environment of the server holds secrets.',
)
saw('small sums are made at once', (await call(agent, 'get-sum', { a: 1, b: 2 })).includes('3') && asked.length === 0)
saw('large ones are confirmed by a person', (await call(agent, 'get-sum', { a: 1, b: 2000 })).includes('2001'))
saw('who is told the reason', asked.length === 1 && asked[0]!.startsWith('Sums of numbers above 1000 are confirmed.'))
saw('one host may echo', (await call(inspector, 'echo', { message: 'hello' })).includes('hello'))
saw('another may not', (await call(agent, 'echo', { message: 'hello' })) === 'denied by policy: Only the inspector may echo.')
await agent.close()
await inspector.close()
