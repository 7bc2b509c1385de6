/** A host on the official SDK 1 over stdio, HTTP+SSE and Streamable HTTP; legacy only. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as schema from '@modelcontextprotocol/sdk/types.js'
import { everyPage } from '../../support/hosts/pages.ts'
import { FORM, ROOTS, SAMPLE, emitEvent, serve } from './wire.ts'
import type { ConnectCommand, PeerHost } from './wire.ts'

const connect = async (target: ConnectCommand): Promise<PeerHost> => {
  const capabilities = target.capable ? { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } : {}
  const client = new Client({ name: 'typescript-peer', version: '1.0.0' }, { capabilities })
  if (target.capable) {
    client.setRequestHandler(schema.ElicitRequestSchema, ({ params }) => {
      emitEvent('asked', params, { method: 'elicitation/create' })
      return params.mode === 'url' ? { action: 'accept' } : FORM
    })
    client.setRequestHandler(schema.CreateMessageRequestSchema, ({ params }) => {
      emitEvent('asked', params, { method: 'sampling/createMessage' })
      return SAMPLE
    })
    client.setRequestHandler(schema.ListRootsRequestSchema, () => {
      emitEvent('asked', {}, { method: 'roots/list' })
      return ROOTS
    })
  }
  const changed = (list: string) => () => emitEvent('changed', { list })
  client.setNotificationHandler(schema.LoggingMessageNotificationSchema, ({ params }) => emitEvent('log', params))
  client.setNotificationHandler(schema.ToolListChangedNotificationSchema, changed('tools'))
  client.setNotificationHandler(schema.PromptListChangedNotificationSchema, changed('prompts'))
  client.setNotificationHandler(schema.ResourceListChangedNotificationSchema, changed('resources'))
  client.setNotificationHandler(schema.ResourceUpdatedNotificationSchema, ({ params }) =>
    emitEvent('updated', { uri: params.uri }),
  )
  const transport =
    target.transport === 'stdio'
      ? new StdioClientTransport({ command: target.command, args: target.args, stderr: 'ignore' })
      : target.transport === 'sse'
        ? new SSEClientTransport(new URL(target.url))
        : new StreamableHTTPClientTransport(new URL(target.url))
  await client.connect(transport)
  const lists: Record<string, () => Promise<unknown[]>> = {
    tools: () => everyPage((cursor) => client.listTools({ cursor }), 'tools'),
    resources: () => everyPage((cursor) => client.listResources({ cursor }), 'resources'),
    resourceTemplates: () => everyPage((cursor) => client.listResourceTemplates({ cursor }), 'resourceTemplates'),
    prompts: () => everyPage((cursor) => client.listPrompts({ cursor }), 'prompts'),
  }
  return {
    learnt: {
      protocolVersion: transport instanceof StreamableHTTPClientTransport ? transport.protocolVersion : undefined,
      serverInfo: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
    },
    list: (of) => lists[of]!(),
    call: (command, onProgress, signal) =>
      client.callTool({ name: command.name, arguments: command.arguments ?? {} }, undefined, {
        signal,
        ...(command.progress === true && { onprogress: onProgress }),
        ...(command.timeoutMs !== undefined && { timeout: command.timeoutMs }),
      }),
    read: (uri) => client.readResource({ uri }),
    subscribe: (uri) => client.subscribeResource({ uri }),
    unsubscribe: (uri) => client.unsubscribeResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args ?? {} }),
    complete: (ref, argument) => client.complete({ ref: ref as never, argument }),
    level: (level) => client.setLoggingLevel(level as schema.LoggingLevel),
    ping: () => client.ping(),
    async close() {
      if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession()
      await client.close()
    },
  }
}

serve(connect)
