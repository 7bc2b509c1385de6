/** A server with every feature on the official SDK 1: `server-sdk1.ts stdio | sse PORT | http PORT`. */
import { createServer } from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import * as schema from '@modelcontextprotocol/sdk/types.js'
import { sseListener, streamableListener } from '../../support/sse-listener.ts'
import { CAPABILITIES, HANDLERS, INFO, INSTRUCTIONS, NotFoundError } from './offers.ts'

const SCHEMAS = {
  'tools/list': schema.ListToolsRequestSchema,
  'tools/call': schema.CallToolRequestSchema,
  'resources/list': schema.ListResourcesRequestSchema,
  'resources/templates/list': schema.ListResourceTemplatesRequestSchema,
  'resources/read': schema.ReadResourceRequestSchema,
  'resources/subscribe': schema.SubscribeRequestSchema,
  'resources/unsubscribe': schema.UnsubscribeRequestSchema,
  'prompts/list': schema.ListPromptsRequestSchema,
  'prompts/get': schema.GetPromptRequestSchema,
  'completion/complete': schema.CompleteRequestSchema,
}
const ANSWERS: Record<string, never> = {
  'elicitation/create': schema.ElicitResultSchema as never,
  'sampling/createMessage': schema.CreateMessageResultSchema as never,
  'roots/list': schema.ListRootsResultSchema as never,
}

const open = (): Server => {
  const server = new Server(INFO, { capabilities: CAPABILITIES, instructions: INSTRUCTIONS })
  for (const [method, wanted] of Object.entries(SCHEMAS))
    server.setRequestHandler(wanted as typeof schema.CallToolRequestSchema, async ({ params }, extra) => {
      const progressToken = extra._meta?.progressToken
      try {
        return await HANDLERS[method]!(params ?? {}, {
          signal: extra.signal,
          progress: async (progress) =>
            progressToken === undefined
              ? undefined
              : extra.sendNotification({ method: 'notifications/progress', params: { progressToken, ...progress } }),
          log: (level, data) =>
            extra.sendNotification({ method: 'notifications/message', params: { level, logger: 'peer', data } }),
          ask: async (question, asked) => ({
            answer: await extra.sendRequest({ method: question as 'roots/list', params: asked }, ANSWERS[question]!),
          }),
          toolsChanged: () => void server.sendToolListChanged(),
          updated: (uri) => void server.sendResourceUpdated({ uri }),
        })
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error
        const code = method === 'resources/read' ? -32002 : schema.ErrorCode.InvalidParams
        throw Object.assign(error, { code })
      }
    })
  return server
}

const [transport, port] = process.argv.slice(2)
if (transport === 'stdio') await open().connect(new StdioServerTransport())
else
  createServer(
    transport === 'sse'
      ? sseListener((stream) => open().connect(stream))
      : streamableListener((session) => open().connect(session)),
  ).listen(Number(port), '127.0.0.1')
