/**
 * Builds one server instance of the reference server with the official SDK 2. The same definition serves both eras:
 * tools that need input return `inputRequired`, which the SDK turns into server requests for a legacy host.
 */
import { McpServer, ResourceTemplate, createRequestStateCodec, fromJsonSchema } from '@modelcontextprotocol/server'
import type { McpRequestContext, McpServerFactory, ServerContext } from '@modelcontextprotocol/server'
import { completeArgument } from '../offers/lists.ts'
import { extraPrompt, promptOffers } from '../offers/prompts.ts'
import type { PromptOffer } from '../offers/prompts.ts'
import { resourceOffers, templateOffers } from '../offers/resources.ts'
import { extraTool, toolOffers } from '../offers/tools.ts'
import type { Conversation, ToolOffer } from '../offers/tools.ts'
import type { ServerState } from '../server-state.ts'
import { askingByRequest } from './by-request.ts'
import { registerContentTools } from './content-tools.ts'
import { registerInputOffers } from './input-offers.ts'
import { LEGACY_TASKS, registerLegacyTasks } from './legacy-tasks.ts'
import { paginateLists } from './pages.ts'
import { TaskStore } from './task-store.ts'
import { TASKS, registerTasks } from './tasks.ts'

/** How one reference server process serves. */
export interface ReferenceOptions {
  state: ServerState
  /** Serves every list in pages of two. */
  pages: boolean
  /** Asks legacy hosts by requests of its own, whatever they declared, and runs tools as tasks of 2025-11-25. */
  byRequest: boolean
}

/** A factory for `createMcpHandler`, `serveStdio` and the session table: one instance per request, pipe or session. */
export const referenceFactory = ({ state, pages, byRequest }: ReferenceOptions): McpServerFactory => {
  const codec = createRequestStateCodec<Record<string, string>>({ key: crypto.getRandomValues(new Uint8Array(32)) })
  const tasks = new TaskStore()
  return (context) => {
    const server = new McpServer(
      { name: 'reference-server', version: '1.0.0' },
      {
        capabilities: {
          // Tools declare themselves with the first one, so that `registerTasks` comes before the SDK's handler.
          resources: { subscribe: true, listChanged: true },
          prompts: { listChanged: true },
          logging: {},
          completions: {},
          ...(context.era === 'modern' && { extensions: { [TASKS]: {} } }),
          ...(context.era === 'legacy' && byRequest && { tasks: LEGACY_TASKS }),
        },
        instructions: 'Offers everything a test may ask for.',
        requestState: { verify: (sealed, context) => codec.verify(sealed, context) },
      },
    )
    if (context.era === 'modern') registerTasks(server, tasks)
    else if (byRequest) registerLegacyTasks(server, tasks)
    const extra = registerShared(server, state)
    registerContentTools(server)
    registerInputOffers(byRequest && context.era === 'legacy' ? askingByRequest(server, codec) : server, codec)
    if (pages) paginateLists(server.server, state)
    if (outlivesRequest(context)) follow(server, state, extra)
    return server
  }
}

/** A modern HTTP instance ends with its request; announcing a change is then the handler's business. */
const outlivesRequest = (context: McpRequestContext) => context.era === 'legacy' || context.requestInfo === undefined

interface Switchable {
  enable(): void
  disable(): void
}

const registerShared = (server: McpServer, state: ServerState): Record<'tools' | 'prompts', Switchable> => {
  for (const tool of toolOffers) registerTool(server, tool, state)
  for (const { uri, name, description, mimeType, text, blob } of resourceOffers) {
    const content = text === undefined ? { uri, mimeType, blob: blob ?? '' } : { uri, mimeType, text }
    server.registerResource(name, uri, { description, mimeType }, () => ({ contents: [content] }))
  }
  for (const { uriTemplate, name, description, mimeType, read } of templateOffers) {
    const template = new ResourceTemplate(uriTemplate, { list: undefined })
    server.registerResource(name, template, { description, mimeType }, (uri, variables) => ({
      contents: [{ uri: uri.href, mimeType, text: read(variables as Record<string, string>) }],
    }))
  }
  for (const prompt of promptOffers) registerPrompt(server, prompt)
  server.server.setRequestHandler('completion/complete', ({ params: { ref, argument } }) => {
    const values = completeArgument(ref.type === 'ref/prompt' ? ref.name : ref.uri, argument.name, argument.value)
    return { completion: { values, total: values.length, hasMore: false } }
  })
  const extra = { tools: registerTool(server, extraTool, state), prompts: registerPrompt(server, extraPrompt) }
  if (!state.hasExtra('tools')) extra.tools.disable()
  if (!state.hasExtra('prompts')) extra.prompts.disable()
  return extra
}

const registerTool = (server: McpServer, { name, description, inputSchema, run }: ToolOffer, state: ServerState) =>
  server.registerTool(
    name,
    { description, inputSchema: fromJsonSchema<Record<string, string>>(inputSchema) },
    async (args, context) => ({ content: [{ type: 'text', text: await run(args, conversation(context), state) }] }),
  )

const conversation = (context: ServerContext): Conversation => ({
  signal: context.mcpReq.signal,
  async report(progress, total) {
    const progressToken = context.mcpReq._meta?.progressToken
    if (progressToken === undefined) return
    await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } })
  },
})

const registerPrompt = (server: McpServer, prompt: PromptOffer) => {
  const { name, description, render } = prompt
  if (prompt.arguments === undefined) return server.registerPrompt(name, { description }, () => ({ messages: render({}) }))
  const argsSchema = fromJsonSchema<Record<string, string>>({
    type: 'object',
    properties: Object.fromEntries(prompt.arguments.map(({ name, description }) => [name, { type: 'string', description }])),
    required: prompt.arguments.filter(({ required }) => required).map(({ name }) => name),
  })
  return server.registerPrompt(name, { description, argsSchema }, (args) => ({ messages: render(args) }))
}

/** Lets a session or pipe announce what changes in the process, only for the resources it subscribed to. */
const follow = (server: McpServer, state: ServerState, extra: Record<'tools' | 'prompts', Switchable>) => {
  const subscribed = new Set<string>()
  server.server.setRequestHandler('resources/subscribe', ({ params }) => {
    subscribed.add(params.uri)
    return {}
  })
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    subscribed.delete(params.uri)
    return {}
  })
  const unfollow = state.follow((change) => {
    if (!server.isConnected()) return
    if (typeof change !== 'string') {
      if (subscribed.has(change.uri) || isModern(server)) void server.server.sendResourceUpdated(change)
    } else if (state.hasExtra(change)) extra[change].enable()
    else extra[change].disable()
  })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no other way
  server.server.onclose = unfollow
}

/** On a modern pipe the SDK itself lets through only what was listened for. */
const isModern = (server: McpServer) => server.server.getNegotiatedProtocolVersion() === '2026-07-28'
