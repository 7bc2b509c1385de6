/** A fake 2025-11-25 server that runs tools as tasks, one step at a time as a test says. */
import { fake } from '../../support/fake-downstream.ts'
import type { FakeKind, FakeSpec, Handle } from '../../support/fake-downstream.ts'
import { RpcError } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'

/** The extension's name. */
export const TASKS = 'io.modelcontextprotocol/tasks'
/** `_meta` key of messages that belong to a task. */
export const RELATED = 'io.modelcontextprotocol/related-task'
/** A task as the server words it. */
export const TASK = { taskId: 'orig-1', status: 'working', createdAt: 'c', lastUpdatedAt: 'u', ttl: 60_000, pollInterval: 30 }

const tool = (name: string, taskSupport?: string): JsonMap => ({
  name,
  inputSchema: { type: 'object' },
  ...(taskSupport !== undefined && { execution: { taskSupport } }),
})

/** Offers `may`, `must` and `plain`; called without `task`, `may` and `plain` answer and `must` refuses. */
export const taskServer = (kind: FakeKind = 'legacy http', on: Readonly<Record<string, Handle>> = {}): FakeSpec =>
  fake.of({
    kind,
    tools: [tool('may', 'optional'), tool('must', 'required'), tool('plain')],
    capabilities: { tools: {}, tasks: { cancel: {}, list: {}, requests: { tools: { call: {} } } } },
    on: {
      'tools/call': ({ params }) => {
        if (params['task'] !== undefined) return { task: TASK, _meta: { 'x/immediate': 'soon' } }
        if (params['name'] === 'must') throw new RpcError({ code: -32601, message: 'task augmentation required' })
        return { content: [{ type: 'text', text: 'at once' }] }
      },
      'tasks/get': () => TASK,
      ...on,
    },
  })

export const link = { type: 'resource_link', name: 'r', uri: 'file:///r' }
/** What the call would have been answered with. */
export const RESULT = { content: [link], _meta: { [RELATED]: { taskId: 'orig-1' } } }
