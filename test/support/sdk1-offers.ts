/** Serves the shared offers through the low-level server of the official SDK 1: one instance per session or pipe. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import { UriTemplate } from '@modelcontextprotocol/sdk/shared/uriTemplate.js'
import * as schema from '@modelcontextprotocol/sdk/types.js'
import { completeArgument, pageOf } from './offers/lists.ts'
import { extraPrompt, listedPrompt, promptOffers } from './offers/prompts.ts'
import { listedResource, listedTemplate, resourceOffers, templateOffers } from './offers/resources.ts'
import type { ResourceOffer } from './offers/resources.ts'
import { extraTool, toolOffers } from './offers/tools.ts'
import type { Conversation } from './offers/tools.ts'
import type { ServerState } from './server-state.ts'

/** A server that is not connected yet; with `pages` its lists come in pages of two. */
export const sdk1Server = (state: ServerState, pages: boolean): Server => {
  const server = new Server(
    { name: 'sdk1-server', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        completions: {},
      },
    },
  )
  const cut = <Entry>(entries: Entry[], cursor: string | undefined) => (pages ? pageOf(entries, cursor) : { entries })
  serveTools(server, state, cut)
  serveResources(server, cut)
  servePrompts(server, state, cut)
  followChanges(server, state)
  return server
}

type Cut = <Entry>(entries: Entry[], cursor: string | undefined) => { entries: Entry[]; nextCursor?: string }

const serveTools = (server: Server, state: ServerState, cut: Cut) => {
  const offered = () => [...toolOffers, ...(state.hasExtra('tools') ? [extraTool] : [])]
  server.setRequestHandler(schema.ListToolsRequestSchema, ({ params }) => {
    const { entries, ...rest } = cut(offered(), params?.cursor)
    return { tools: entries.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })), ...rest }
  })
  server.setRequestHandler(schema.CallToolRequestSchema, async ({ params }, extra) => {
    const tool = offered().find(({ name }) => name === params.name)
    if (tool === undefined) throw new schema.McpError(schema.ErrorCode.InvalidParams, `Tool ${params.name} not found`)
    const text = await tool.run((params.arguments ?? {}) as Record<string, string>, conversation(extra), state)
    return { content: [{ type: 'text', text }] }
  })
}

const conversation = (extra: RequestHandlerExtra<schema.ServerRequest, schema.ServerNotification>): Conversation => ({
  signal: extra.signal,
  async report(progress, total) {
    const progressToken = extra._meta?.progressToken
    if (progressToken === undefined) return
    await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total } })
  },
})

const serveResources = (server: Server, cut: Cut) => {
  server.setRequestHandler(schema.ListResourcesRequestSchema, ({ params }) => {
    const { entries, ...rest } = cut(resourceOffers, params?.cursor)
    return { resources: entries.map(listedResource), ...rest }
  })
  server.setRequestHandler(schema.ListResourceTemplatesRequestSchema, ({ params }) => {
    const { entries, ...rest } = cut(templateOffers, params?.cursor)
    return { resourceTemplates: entries.map(listedTemplate), ...rest }
  })
  server.setRequestHandler(schema.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const resource = resourceOffers.find((resource) => resource.uri === uri)
    if (resource !== undefined) return { contents: [resourceContent(resource)] }
    for (const { uriTemplate, mimeType, read } of templateOffers) {
      const variables = new UriTemplate(uriTemplate).match(uri)
      if (variables !== null) return { contents: [{ uri, mimeType, text: read(variables as Record<string, string>) }] }
    }
    throw new schema.McpError(-32002, `Resource ${uri} not found`, { uri })
  })
}

const resourceContent = ({ uri, mimeType, text, blob }: ResourceOffer) =>
  text === undefined ? { uri, mimeType, blob: blob ?? '' } : { uri, mimeType, text }

const servePrompts = (server: Server, state: ServerState, cut: Cut) => {
  const offered = () => [...promptOffers, ...(state.hasExtra('prompts') ? [extraPrompt] : [])]
  server.setRequestHandler(schema.ListPromptsRequestSchema, ({ params }) => {
    const { entries, ...rest } = cut(offered(), params?.cursor)
    return { prompts: entries.map(listedPrompt), ...rest }
  })
  server.setRequestHandler(schema.GetPromptRequestSchema, ({ params }) => {
    const prompt = offered().find(({ name }) => name === params.name)
    if (prompt === undefined) throw new schema.McpError(schema.ErrorCode.InvalidParams, `Prompt ${params.name} not found`)
    return { messages: prompt.render(params.arguments ?? {}) }
  })
  server.setRequestHandler(schema.CompleteRequestSchema, ({ params: { ref, argument } }) => {
    const values = completeArgument(ref.type === 'ref/prompt' ? ref.name : ref.uri, argument.name, argument.value)
    return { completion: { values, total: values.length, hasMore: false } }
  })
}

const followChanges = (server: Server, state: ServerState) => {
  const subscribed = new Set<string>()
  server.setRequestHandler(schema.SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri)
    return {}
  })
  server.setRequestHandler(schema.UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri)
    return {}
  })
  const unfollow = state.follow((change) => {
    if (change === 'tools') void server.sendToolListChanged()
    else if (change === 'prompts') void server.sendPromptListChanged()
    else if (subscribed.has(change.uri)) void server.sendResourceUpdated(change)
  })
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no other way
  server.onclose = unfollow
}
