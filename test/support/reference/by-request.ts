/**
 * A legacy server that asks by requests of its own (`elicitation/create`, `sampling/createMessage`, `roots/list`), as servers did
 * before there was `inputRequired`. The SDK would do so, too, but asks nothing of a host that did not declare it.
 */
import type { InputRequiredResult, McpServer, RequestStateCodec, ServerContext } from '@modelcontextprotocol/server'

type Handle = (...parameters: unknown[]) => unknown

/** The same server; the handler of what is registered through it is entered again with the answers until it asks no more. */
export const askingByRequest = (server: McpServer, codec: RequestStateCodec<Record<string, string>>): McpServer => {
  const asking = (register: Handle) => ({
    value: ((name, config, handle) => register(name, config, untilAnswered(handle as Handle, codec))) satisfies Handle,
  })
  return Object.create(server, {
    registerTool: asking(server.registerTool.bind(server) as Handle),
    registerPrompt: asking(server.registerPrompt.bind(server) as Handle),
  }) as McpServer
}

const untilAnswered =
  (handle: Handle, codec: RequestStateCodec<Record<string, string>>): Handle =>
  async (...parameters) => {
    const context = parameters.pop() as ServerContext
    let mcpReq = context.mcpReq
    for (;;) {
      const result = (await handle(...parameters, { ...context, mcpReq })) as Partial<InputRequiredResult>
      if (result.resultType !== 'input_required') return result
      const { inputRequests = {}, requestState } = result
      const answers = Object.entries(inputRequests).map(async ([key, { method, params }]) => [
        key,
        await context.mcpReq.send({ method, ...(params && { params: { ...params } }) }),
      ])
      const state = requestState === undefined ? undefined : await codec.verify(requestState, context)
      mcpReq = {
        ...mcpReq,
        inputResponses: { ...mcpReq.inputResponses, ...(Object.fromEntries(await Promise.all(answers)) as object) },
        requestState: (() => state) as typeof mcpReq.requestState,
      }
    }
  }
