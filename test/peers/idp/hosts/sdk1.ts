/** `sdk1.ts URL [CLIENT_ID]`: a host on the official SDK 1 with its own OAuth flow, which calls a tool, and once more after it has renewed its token. */
import { auth } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { signInAndCall } from './flow.ts'

await signInAndCall({
  open: (url, authProvider) => new StreamableHTTPClientTransport(url, { authProvider }),
  connect: async (transport) => {
    const client = new Client({ name: 'sdk-1', version: '1' })
    await client.connect(transport)
    return client
  },
  finish: (transport, query) => transport.finishAuth(query.get('code') ?? ''),
  renew: (authProvider, serverUrl) => auth(authProvider, { serverUrl }),
})
