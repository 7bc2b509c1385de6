/** `sdk2.ts URL [CLIENT_ID]`: a host on the official SDK 2 with its own OAuth flow, which calls a tool, and once more after it has renewed its token. */
import { auth, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { signInAndCall } from './flow.ts'

await signInAndCall({
  open: (url, authProvider) => new StreamableHTTPClientTransport(url, { authProvider }),
  connect: async (transport) => {
    const client = new Client({ name: 'sdk-2', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(transport)
    return client
  },
  finish: (transport, query) => transport.finishAuth(query),
  renew: (authProvider, serverUrl) => auth(authProvider, { serverUrl }),
})
