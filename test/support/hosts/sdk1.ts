/** A host made of the official SDK 1 client, over stdio, HTTP+SSE or Streamable HTTP. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { CallResult } from '../hosts.ts'
import type { Target } from '../processes.ts'
import { everyPage } from './pages.ts'
import type { Driver } from './driver.ts'
import { watchStream } from './stream-watch.ts'
import type { StreamWatch } from './stream-watch.ts'

/** Returns a connector; its client declares no capabilities. */
export const connectSdk1 =
  (kind: 'stdio' | 'sse' | 'http') =>
  async (target: Target): Promise<Driver> => {
    const client = new Client({ name: 'sdk1-host', version: '1.0.0' })
    const stream = watchStream()
    const transport = openTransport(kind, target, stream.fetch)
    await client.connect(transport)
    return {
      era: 'legacy',
      revision: transport instanceof StreamableHTTPClientTransport ? transport.protocolVersion : undefined,
      serverName: client.getServerVersion()?.name ?? '',
      listTools: () => everyPage((cursor) => client.listTools({ cursor }), 'tools'),
      listResources: () => everyPage((cursor) => client.listResources({ cursor }), 'resources'),
      listTemplates: () => everyPage((cursor) => client.listResourceTemplates({ cursor }), 'resourceTemplates'),
      listPrompts: () => everyPage((cursor) => client.listPrompts({ cursor }), 'prompts'),
      async callTool(name, args = {}, { onProgress, signal } = {}) {
        const options = { ...(onProgress && { onprogress: onProgress }), ...(signal && { signal }) }
        return (await client.callTool({ name, arguments: args }, undefined, options)) as CallResult
      },
      readResource: async (uri) => (await client.readResource({ uri })).contents,
      getPrompt: async (name, args = {}) => (await client.getPrompt({ name, arguments: args })).messages,
      complete: async (ref, argument) => (await client.complete({ ref, argument })).completion.values,
      async onToolsChanged(listener) {
        client.setNotificationHandler(ToolListChangedNotificationSchema, listener)
        if (kind === 'http') await stream.opened
      },
      async onResourceUpdated(uri, listener) {
        client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => listener(params.uri))
        if (kind === 'http') await stream.opened
        await client.subscribeResource({ uri })
      },
      async close() {
        if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession()
        await client.close()
      },
    }
  }

const openTransport = (kind: 'stdio' | 'sse' | 'http', target: Target, fetch: StreamWatch['fetch']) => {
  if ('command' in target !== (kind === 'stdio')) throw new Error(`a host over ${kind} cannot reach ${JSON.stringify(target)}`)
  if ('command' in target) return new StdioClientTransport({ ...target, stderr: 'ignore' })
  const url = new URL(target.url)
  return kind === 'sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url, { fetch })
}
