/** A host on the official SDK 2 over stdio and Streamable HTTP: `host-sdk2.ts [--revision=DATE]`; without one it finds the era. */
import { parseArgs } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { FORM, ROOTS, SAMPLE, UNSUPPORTED, emitEvent, serve } from './wire.ts'
import type { ConnectCommand, PeerHost } from './wire.ts'

const { revision } = parseArgs({ options: { revision: { type: 'string' } } }).values
const NEGOTIATION =
  revision === undefined
    ? { versionNegotiation: { mode: 'auto' as const } }
    : revision >= '2026'
      ? { versionNegotiation: { mode: { pin: revision } } }
      : { versionNegotiation: { mode: 'legacy' as const }, supportedProtocolVersions: [revision] }

const connect = async (target: ConnectCommand): Promise<PeerHost> => {
  const capabilities = target.capable ? { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } : {}
  const client = new Client({ name: 'typescript-peer', version: '1.0.0' }, { capabilities, ...NEGOTIATION })
  if (target.capable) {
    client.setRequestHandler('elicitation/create', ({ params }) => {
      emitEvent('asked', params, { method: 'elicitation/create' })
      return params.mode === 'url' ? { action: 'accept' } : FORM
    })
    client.setRequestHandler('sampling/createMessage', ({ params }) => {
      emitEvent('asked', params, { method: 'sampling/createMessage' })
      return SAMPLE
    })
    client.setRequestHandler('roots/list', () => {
      emitEvent('asked', {}, { method: 'roots/list' })
      return ROOTS
    })
  }
  client.setNotificationHandler('notifications/message', ({ params }) => emitEvent('log', params))
  client.setNotificationHandler('notifications/tools/list_changed', () => emitEvent('changed', { list: 'tools' }))
  client.setNotificationHandler('notifications/prompts/list_changed', () => emitEvent('changed', { list: 'prompts' }))
  client.setNotificationHandler('notifications/resources/list_changed', () => emitEvent('changed', { list: 'resources' }))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => emitEvent('updated', { uri: params.uri }))
  if (target.transport === 'sse') throw UNSUPPORTED
  const transport =
    target.transport === 'stdio'
      ? new StdioClientTransport({ command: target.command, args: target.args, stderr: 'ignore' })
      : new StreamableHTTPClientTransport(new URL(target.url))
  await client.connect(transport)
  const modern = client.getProtocolEra() === 'modern'
  // Servers that never change their lists need not know the method.
  const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
  if (modern) await client.listen(lists).catch(() => undefined)
  const listening = new Map<string, { close(): unknown }>()
  const listed: Record<string, () => Promise<unknown[]>> = {
    tools: async () => (await client.listTools()).tools,
    resources: async () => (await client.listResources()).resources,
    resourceTemplates: async () => (await client.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await client.listPrompts()).prompts,
  }
  return {
    learnt: {
      protocolVersion: client.getNegotiatedProtocolVersion(),
      serverInfo: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
    },
    list: (of) => listed[of]!(),
    call: (command, onProgress, signal) =>
      client.callTool(
        { name: command.name, arguments: command.arguments ?? {} },
        {
          signal,
          ...(command.progress === true && { onprogress: onProgress }),
          ...(command.timeoutMs !== undefined && { timeout: command.timeoutMs }),
        },
      ),
    read: (uri) => client.readResource({ uri }),
    async subscribe(uri) {
      if (!modern) return client.subscribeResource({ uri })
      listening.set(uri, await client.listen({ resourceSubscriptions: [uri] }))
      return {}
    },
    async unsubscribe(uri) {
      if (!modern) return client.unsubscribeResource({ uri })
      await listening.get(uri)?.close()
      return {}
    },
    prompt: (name, args) => client.getPrompt({ name, arguments: args ?? {} }),
    complete: (ref, argument) => client.complete({ ref: ref as never, argument }),
    level: (level) => client.setLoggingLevel(level as 'debug'),
    ping: () => client.ping(),
    async close() {
      if (transport instanceof StreamableHTTPClientTransport && !modern) await transport.terminateSession()
      await client.close()
    },
  }
}

serve(connect)
