/** A host made of the official SDK 2 client, pinned to an era or finding it, over stdio or Streamable HTTP. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { VersionNegotiationMode } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Target } from '../processes.ts'
import type { Driver } from './driver.ts'
import { watchStream } from './stream-watch.ts'

/** Returns a connector; its client declares no capabilities. */
export const connectSdk2 =
  (kind: 'stdio' | 'http', mode: VersionNegotiationMode) =>
  async (target: Target): Promise<Driver> => {
    if ('command' in target !== (kind === 'stdio')) throw new Error(`a host over ${kind} cannot reach ${JSON.stringify(target)}`)
    const client = new Client({ name: 'sdk2-host', version: '1.0.0' }, { versionNegotiation: { mode } })
    const stream = watchStream()
    const transport =
      'command' in target
        ? new StdioClientTransport({ ...target, stderr: 'ignore' })
        : new StreamableHTTPClientTransport(new URL(target.url), { fetch: stream.fetch })
    await client.connect(transport)
    const era = client.getProtocolEra() ?? 'legacy'
    return {
      era,
      revision: client.getNegotiatedProtocolVersion(),
      serverName: client.getServerVersion()?.name ?? '',
      listTools: async () => (await client.listTools()).tools,
      listResources: async () => (await client.listResources()).resources,
      listTemplates: async () => (await client.listResourceTemplates()).resourceTemplates,
      listPrompts: async () => (await client.listPrompts()).prompts,
      async callTool(name, args = {}, { onProgress, signal } = {}) {
        const options = { ...(onProgress && { onprogress: onProgress }), ...(signal && { signal }) }
        return client.callTool({ name, arguments: args }, options)
      },
      readResource: async (uri) => (await client.readResource({ uri })).contents,
      getPrompt: async (name, args = {}) => (await client.getPrompt({ name, arguments: args })).messages,
      complete: async (ref, argument) => (await client.complete({ ref, argument })).completion.values,
      async onToolsChanged(listener) {
        client.setNotificationHandler('notifications/tools/list_changed', listener)
        if (era === 'modern') await client.listen({ toolsListChanged: true })
        else if (kind === 'http') await stream.opened
      },
      async onResourceUpdated(uri, listener) {
        client.setNotificationHandler('notifications/resources/updated', ({ params }) => listener(params.uri))
        if (era === 'legacy' && kind === 'http') await stream.opened
        if (era === 'legacy') await client.subscribeResource({ uri })
        else await client.listen({ resourceSubscriptions: [uri] })
      },
      async close() {
        if (transport instanceof StreamableHTTPClientTransport && era === 'legacy') await transport.terminateSession()
        await client.close()
      },
    }
  }
