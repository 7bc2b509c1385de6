/**
 * A server with every feature on the official SDK 2: `server-sdk2.ts [--revision=DATE] stdio | http PORT`; without a revision it serves
 * both eras.
 */
import { parseArgs } from 'node:util'
import { McpServer, inputRequired } from '@modelcontextprotocol/server'
import type { McpServerFactory } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { createBoard } from '../../support/board.ts'
import { referenceHttp } from '../../support/reference/http.ts'
import { createServerState } from '../../support/server-state.ts'
import { CAPABILITIES, HANDLERS, INFO, INSTRUCTIONS, NotFoundError } from './offers.ts'

/** Announces to every instance what one of them changed: a modern request over HTTP has an instance of its own. */
const state = createServerState(createBoard())

const { values, positionals } = parseArgs({ options: { revision: { type: 'string' } }, allowPositionals: true })
const { revision } = values
const PINNED = revision === undefined ? {} : { supportedProtocolVersions: [revision] }
const ERA = revision === undefined ? 'dual' : revision >= '2026' ? 'modern' : 'legacy'

const factory: McpServerFactory = ({ era, requestInfo }) => {
  const mcp = new McpServer(INFO, { capabilities: CAPABILITIES, instructions: INSTRUCTIONS, ...PINNED })
  const { server } = mcp
  for (const [method, answer] of Object.entries(HANDLERS))
    server.setRequestHandler(method as 'tools/call', async ({ params }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      try {
        return (await answer(params ?? {}, {
          signal: mcpReq.signal,
          progress: async (progress) =>
            progressToken === undefined
              ? undefined
              : mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } }),
          log: (level, data) => mcpReq.log(level, data, 'peer'),
          ask: async (question, asked) => {
            if (era === 'legacy') return { answer: await mcpReq.send({ method: question as 'roots/list', params: asked }) }
            const answered = mcpReq.inputResponses?.['question']
            if (answered !== undefined) return { answer: answered }
            const request = { method: question, params: asked } as never
            return { result: inputRequired({ inputRequests: { question: request } }) }
          },
          toolsChanged: () => state.toggle('tools'),
          updated: (uri) => state.touch(uri),
        })) as never
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error
        throw Object.assign(error, { code: method === 'resources/read' && era === 'legacy' ? -32002 : -32602 })
      }
    })
  if (era === 'legacy' || requestInfo === undefined) {
    const unfollow = state.follow((change) => {
      if (!mcp.isConnected()) return
      if (change === 'tools') void server.sendToolListChanged()
      else if (change !== 'prompts') void server.sendResourceUpdated(change)
    })
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no other way
    server.onclose = unfollow
  }
  return mcp
}

const [transport, port] = positionals
if (transport !== 'stdio') referenceHttp(factory, state, ERA).listen(Number(port), '127.0.0.1')
else if (ERA === 'legacy') await (await factory({ era: 'legacy' })).connect(new StdioServerTransport())
else serveStdio(factory, { legacy: ERA === 'modern' ? 'reject' : 'serve' })
