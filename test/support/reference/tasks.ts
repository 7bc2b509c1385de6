/**
 * The tasks extension of the reference server, and the tools the conformance suite tries it with. The SDK has no tasks on the
 * server's side: the tools are listed by it, and called past it, because it would make a tool error of every protocol error.
 */
import { setTimeout } from 'node:timers/promises'
import { ProtocolError, fromJsonSchema, inputRequired } from '@modelcontextprotocol/server'
import type { CallToolResult, InputRequest, McpServer, ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { TaskStore, Work } from './task-store.ts'

/** Its name in capabilities. */
export const TASKS = 'io.modelcontextprotocol/tasks'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

export type Args = Record<string, unknown>

export interface TaskTool {
  readonly properties: Record<string, { type: 'string' | 'number' }>
  /** `never`: answered at once. `required`: only for hosts that know tasks. */
  readonly task: 'never' | 'optional' | 'required'
  /** What must be known before the task begins. */
  readonly first?: Record<string, InputRequest>
  run(args: Args, work: Work): Promise<CallToolResult> | CallToolResult
}

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })
const form = (message: string, field: string, type: 'string' | 'boolean'): InputRequest =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [field]: type === 'string' ? { type } : { type } }, required: [field] },
  })

/** By name. */
export const taskTools: Record<string, TaskTool> = {
  greet: { properties: { name: { type: 'string' } }, task: 'never', run: ({ name }) => text(`Hello, ${String(name)}!`) },
  slow_compute: {
    properties: { seconds: { type: 'number' }, label: { type: 'string' } },
    task: 'optional',
    run: async ({ seconds, label }, { signal }) => {
      await setTimeout(Number(seconds) * 1_000, undefined, { signal })
      return text(`computed ${String(label)}`)
    },
  },
  failing_job: {
    properties: {},
    task: 'required',
    run: async (_, { signal }) => {
      await setTimeout(1_000, undefined, { signal })
      return { ...text('the job failed'), isError: true }
    },
  },
  protocol_error_job: {
    properties: {},
    task: 'optional',
    run: () => Promise.reject(new ProtocolError(-32603, 'the job broke')),
  },
  confirm_delete: {
    properties: { filename: { type: 'string' } },
    task: 'optional',
    run: async ({ filename }, { ask }) => {
      const { confirm } = await ask({ confirm: form(`Delete ${String(filename)}?`, 'confirm', 'boolean') })
      return text(JSON.stringify(confirm))
    },
  },
  multi_input: {
    properties: {},
    task: 'optional',
    run: async (_, { ask }) => {
      const answers = await ask({ name: form('Your name?', 'name', 'string'), confirm: form('Sure?', 'confirm', 'boolean') })
      return text(JSON.stringify(answers))
    },
  },
  test_tool_with_task: {
    properties: {},
    task: 'required',
    first: { user_name: form('What is your name?', 'name', 'string') },
    run: ({ user_name }) => text(`Hello, ${JSON.stringify(user_name)}!`),
  },
}

/** Registers tools and methods on one instance; the store is the process's. Before any other tool is registered. */
export const registerTasks = (server: McpServer, store: TaskStore): void => {
  registerTaskTools(server, (tool, args, context) => call(tool, args, context, store))
  const one = z.looseObject({ taskId: z.string() })
  const methods = {
    'tasks/get': (taskId: string) => ({ ...store.get(taskId) }),
    // The SDK lifts the answers out of the params.
    'tasks/update': (taskId: string, { mcpReq }: ServerContext) => {
      store.update(taskId, mcpReq.inputResponses ?? {})
      return {}
    },
    'tasks/cancel': (taskId: string) => {
      store.cancel(taskId)
      return {}
    },
  }
  for (const [method, handle] of Object.entries(methods))
    server.server.setRequestHandler(method, { params: one }, ({ taskId }, context) => {
      if (!declares(context)) throw missing()
      return handle(taskId, context)
    })
}

/** Runs one of the tools above; `task`: what the request said of a task of 2025-11-25. */
export type CallTask = (tool: TaskTool, args: Args, context: ServerContext, task: unknown) => Promise<unknown>

/** Lists the tools above as any other, and has `call` called for them. */
export const registerTaskTools = (server: McpServer, call: CallTask): void => {
  callPastTheSdk(server, call)
  for (const [name, { properties }] of Object.entries(taskTools))
    server.registerTool(
      name,
      {
        description: 'A task, or might be one',
        inputSchema: fromJsonSchema<Args>({ type: 'object', properties }),
      },
      () => text('called past the SDK'),
    )
}

/** The first handler of `tools/call` is the SDK's own: it keeps every tool but those of the table above. */
const callPastTheSdk = ({ server }: McpServer, call: CallTask): void => {
  const register = server.setRequestHandler.bind(server) as (method: string, ...rest: unknown[]) => void
  const replacement = (method: string, ...rest: unknown[]): void => {
    const handle = rest[0] as (request: CallRequest, context: ServerContext) => unknown
    if (method !== 'tools/call') return register(method, ...rest)
    register(method, (request: CallRequest, context: ServerContext) => {
      const { name, arguments: args = {}, task } = request.params
      const tool = taskTools[name]
      return tool === undefined ? handle(request, context) : call(tool, args, context, task)
    })
  }
  Object.assign(server, { setRequestHandler: replacement })
}

interface CallRequest {
  params: { name: string; arguments?: Args; task?: unknown }
}

const call = async (tool: TaskTool, args: Args, context: ServerContext, store: TaskStore) => {
  if (tool.task === 'required' && !declares(context)) throw missing()
  const answers = context.mcpReq.inputResponses ?? {}
  if (tool.first !== undefined && Object.keys(tool.first).some((key) => answers[key] === undefined))
    return inputRequired({ inputRequests: tool.first })
  const run = async (work: Work) => tool.run({ ...args, ...answers }, work)
  if (tool.task !== 'never' && declares(context)) return { resultType: 'task', ...store.create(run) }
  return run({ signal: context.mcpReq.signal, ask: async () => ({}) })
}

const declares = ({ mcpReq }: ServerContext): boolean => {
  const envelope: Record<string, unknown> = { ...mcpReq.envelope }
  return (envelope[CAPABILITIES] as { extensions?: Record<string, unknown> } | undefined)?.extensions?.[TASKS] !== undefined
}

const missing = (): ProtocolError =>
  new ProtocolError(-32021, 'Missing required client capability', { requiredCapabilities: { extensions: { [TASKS]: {} } } })
