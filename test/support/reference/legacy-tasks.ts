/** The tasks of 2025-11-25 on the reference server: the tools and the store are those of the extension, the words are not. */
import { setTimeout } from 'node:timers/promises'
import { ProtocolError } from '@modelcontextprotocol/server'
import type { InputRequest, McpServer, ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Task, TaskStore } from './task-store.ts'
import { registerTaskTools, taskTools } from './tasks.ts'

/** What a server of that revision declares. */
export const LEGACY_TASKS = { cancel: {}, requests: { tools: { call: {} } } }
const RELATED = 'io.modelcontextprotocol/related-task'
const LOOK_AGAIN_MS = 20

/** Registers tools and methods on one instance; the store is the process's. Before any other tool is registered. */
export const registerLegacyTasks = (server: McpServer, store: TaskStore): void => {
  passWhatTheSdkForgot(server)
  registerTaskTools(server, async (tool, args, context, task) => {
    if (tool.task === 'required' && task === undefined) throw new ProtocolError(-32601, 'Task augmentation required')
    const answers = await ask(context, tool.first)
    if (tool.task !== 'never' && task !== undefined)
      return { task: worded(store.create(async (work) => tool.run({ ...args, ...answers }, work))) }
    return tool.run({ ...args, ...answers }, { signal: context.mcpReq.signal, ask: (requests) => ask(context, requests) })
  })
  const methods = {
    'tasks/get': (taskId: string) => worded(store.get(taskId)),
    'tasks/result': (taskId: string, context: ServerContext) => resultOf(taskId, context, store),
    'tasks/cancel': (taskId: string) => {
      if (hasEnded(store.get(taskId))) throw new ProtocolError(-32602, 'The task has ended')
      store.cancel(taskId)
      return worded(store.get(taskId))
    },
  }
  for (const [method, handle] of Object.entries(methods))
    server.server.setRequestHandler(method, { params: z.looseObject({ taskId: z.string() }) }, ({ taskId }, context) =>
      handle(taskId, context),
    )
}

type Handle = (request: unknown, context: ServerContext) => Promise<unknown>

/** The SDK refuses the result of a call that became a task, and lists no tool's `execution`. */
const passWhatTheSdkForgot = ({ server }: McpServer): void => {
  const wrapping = server as unknown as { _wrapHandler: (method: string, handle: Handle) => Handle }
  const wrap = wrapping._wrapHandler.bind(server)
  wrapping._wrapHandler = (method, handle) => {
    if (method === 'tools/call') return handle
    if (method !== 'tools/list') return wrap(method, handle)
    return async (request, context) => {
      const { tools, ...rest } = (await wrap(method, handle)(request, context)) as { tools: { name: string }[] }
      return { ...rest, tools: tools.map((tool) => ({ ...tool, ...executionOf(tool.name) })) }
    }
  }
}

const executionOf = (name: string) => {
  const taskSupport = taskTools[name]?.task ?? 'never'
  return taskSupport === 'never' ? {} : { execution: { taskSupport } }
}

/** Blocks until the task has ended; what it asks meanwhile goes to whoever waits here. */
const resultOf = async (taskId: string, context: ServerContext, store: TaskStore) => {
  const meta = { [RELATED]: { taskId } }
  while (!hasEnded(store.get(taskId))) {
    const { status, inputRequests } = store.get(taskId)
    if (status === 'input_required') store.update(taskId, await ask(context, inputRequests, meta))
    else await setTimeout(LOOK_AGAIN_MS)
  }
  const { status, error, result } = store.get(taskId)
  if (status === 'cancelled') throw new ProtocolError(-32603, 'The task was cancelled')
  if (error !== undefined) throw new ProtocolError(error.code, error.message)
  return { ...result, _meta: { ...result?._meta, ...meta } }
}

const hasEnded = ({ status }: Task): boolean => status === 'completed' || status === 'failed' || status === 'cancelled'

const worded = ({ taskId, status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, result }: Task) => ({
  taskId,
  status: status === 'completed' && result?.isError === true ? 'failed' : status,
  createdAt,
  lastUpdatedAt,
  ttl: ttlMs,
  pollInterval: pollIntervalMs,
})

const ask = async (
  { mcpReq }: ServerContext,
  requests: Record<string, InputRequest> = {},
  meta?: object,
): Promise<Record<string, unknown>> => {
  const answers = Object.entries(requests).map(async ([key, { method, params }]) => [
    key,
    await mcpReq.send({ method, params: { ...params, ...(meta && { _meta: meta }) } }),
  ])
  return Object.fromEntries(await Promise.all(answers)) as Record<string, unknown>
}
