/** `sdk1.ts URL [CLIENT_ID]`: a host on the official SDK 1 with its own OAuth flow, which calls a tool, and once more after it has renewed its token. */
import { auth } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { awaitCode } from './callback.ts'
import { print } from './lines.ts'
import { Person } from './person.ts'

const [url = '', clientId] = process.argv.slice(2)
await using callback = await awaitCode()
const authProvider = new Person(callback.redirect, clientId)
const connect = async (transport: StreamableHTTPClientTransport): Promise<Client> => {
  const client = new Client({ name: 'sdk-1', version: '1' })
  await client.connect(transport)
  return client
}
try {
  const first = new StreamableHTTPClientTransport(new URL(url), { authProvider })
  await connect(first).catch((error: unknown) => {
    if (!String(error).includes('Unauthorized')) throw error
  })
  await first.finishAuth((await callback.returned).searchParams.get('code') ?? '')
  const client = await connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }))
  const tools = (await client.listTools()).tools.map(({ name }) => name)
  const before = authProvider.tokens()?.access_token
  const renewed =
    authProvider.tokens()?.refresh_token !== undefined && (await auth(authProvider, { serverUrl: url })) === 'AUTHORIZED'
  const result = await client.callTool({ name: 'shared__echo', arguments: {} })
  print({ tools, text: JSON.stringify(result), renewed: renewed && authProvider.tokens()?.access_token !== before })
  await client.close()
} catch (error) {
  print({ failed: String(error) })
}
