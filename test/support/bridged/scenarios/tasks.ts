/** Tasks of 2025-11-25: ids, lists, results, questions and status are the server's own. */
import { Refused } from '../peers.ts'
import type { Handle, ServerPeer } from '../peers.ts'
import { call, each, isLatest, seenEnd, shown, text, tool, tools } from '../scenario.ts'
import type { Row } from '../rows.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../wires.ts'

const RELATED = 'io.modelcontextprotocol/related-task'
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } }
const task = (taskId: string, status = 'working') => ({
  taskId,
  status,
  statusMessage: `is ${status}`,
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:01Z',
  ttl: 60_000,
  pollInterval: 50,
})

/** SDK 1 knows tasks, and its low-level server lets them be served by hand. */
const knowsTasks = (row: Row): boolean => row.sdk === 1 && isLatest(row)

const slow: Handle = async (turn) => {
  if (turn.params['task'] === undefined) throw new Refused(-32601, 'Task augmentation required', { tool: 'slow' })
  await turn.progress({ progress: 1, message: 'made' })
  return {
    task: { ...task('t-1'), ttl: (turn.params['task'] as { ttl?: number }).ttl ?? null },
    _meta: { 'com.example/t': 1 },
    'x-more': true,
  }
}

const serve = (server: ServerPeer, { notes }: Stage): void => {
  tools({ slow, plain: () => text('at once') }, [
    tool('slow', { execution: { taskSupport: 'required' } }),
    tool('plain', { execution: { taskSupport: 'forbidden' } }),
  ])(server)
  server.handle('tasks/get', ({ params }) => {
    if (params['taskId'] !== 't-1') throw new Refused(-32602, `no task ${String(params['taskId'])}`)
    return { ...task('t-1'), 'x-more': 2 }
  })
  server.handle('tasks/list', ({ params }) =>
    params['cursor'] === 'more' ? { tasks: [task('t-2', 'failed')] } : { tasks: [task('t-1')], nextCursor: 'more' },
  )
  server.handle('tasks/cancel', ({ params }) => {
    notes.push(params)
    if (params['taskId'] === 't-2') throw new Refused(-32602, 'it has ended')
    return task(String(params['taskId']), 'cancelled')
  })
  server.handle('tasks/result', async (turn) => {
    const _meta = { [RELATED]: { taskId: 't-1' } }
    await turn.notify('notifications/tasks/status', task('t-1', 'input_required'))
    const asked = await turn.request('elicitation/create', {
      message: 'in the task',
      requestedSchema: { type: 'object', properties: {} },
      _meta,
    })
    return { ...shown(seenEnd(asked)), _meta }
  })
}

export const taskScenarios: readonly Scenario[] = [
  {
    name: 'tasks are created, read, listed, cancelled and answered under the server’s own ids',
    server: { capabilities: { tools: {}, tasks: TASKS }, serve },
    client: {
      capabilities: { elicitation: {}, tasks: { requests: { elicitation: { create: {} } } } },
      answers: { 'elicitation/create': ({ params }) => ({ action: 'accept', content: { saw: JSON.stringify(params) } }) },
    },
    on: knowsTasks,
    play: async (scene) => {
      const { client, notes } = scene
      const progress: unknown[] = []
      const made = await client.request(
        'tools/call',
        { name: 'slow', task: { ttl: 1234 } },
        { onprogress: (params) => progress.push(params) },
      )
      return [
        client.server().capabilities,
        await call(scene, 'slow'),
        await call(scene, 'plain'),
        seenEnd(await client.request('tools/call', { name: 'plain', task: {} })),
        seenEnd(made),
        progress,
        await each(
          scene,
          ['tasks/get', { taskId: 't-1' }],
          ['tasks/get', { taskId: 'unknown' }],
          ['tasks/list'],
          ['tasks/list', { cursor: 'more' }],
          ['tasks/result', { taskId: 't-1' }],
          ['tasks/cancel', { taskId: 't-1' }],
          ['tasks/cancel', { taskId: 't-2' }],
        ),
        client.notices.entries,
        notes.entries,
      ]
    },
  },
  {
    name: 'the status of a task is notified outside of any call',
    server: { capabilities: { tools: {}, tasks: TASKS }, serve },
    on: knowsTasks,
    play: async (scene) => {
      const { client, servers } = scene
      await client.request('tools/call', { name: 'slow', task: {} })
      for (const server of servers) await server.notify('notifications/tasks/status', task('t-1', 'completed'))
      await client.notices.until(({ method }) => method === 'notifications/tasks/status')
      return client.notices.entries
    },
  },
  {
    name: 'a server without tasks answers a call that asks for one as it likes',
    server: { capabilities: { tools: {} }, serve: tools({ plain: ({ params }) => shown(params) }) },
    on: knowsTasks,
    play: async (scene) => [
      seenEnd(await scene.client.request('tools/call', { name: 'plain', task: { ttl: 5 } })),
      await each(
        scene,
        ['tasks/get', { taskId: 'x' }],
        ['tasks/list'],
        ['tasks/result', { taskId: 'x' }],
        ['tasks/cancel', { taskId: 'x' }],
      ),
    ],
  },
  {
    name: 'a server makes its client a worker: tasks of the client under the client’s ids',
    server: {
      capabilities: { tools: {} },
      serve: tools({
        delegate: async (turn) =>
          shown([
            seenEnd(await turn.request('sampling/createMessage', { messages: [], maxTokens: 1, task: { ttl: 9 } })),
            seenEnd(await turn.request('tasks/get', { taskId: 'c-1' })),
            seenEnd(await turn.request('tasks/result', { taskId: 'c-1' })),
            seenEnd(await turn.request('tasks/cancel', { taskId: 'c-1' })),
            seenEnd(await turn.request('tasks/list', {})),
          ]),
      }),
    },
    client: {
      capabilities: { sampling: {}, tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} } } } },
      answers: {
        'sampling/createMessage': () => ({ task: task('c-1') }),
        'tasks/get': () => ({ ...task('c-1') }),
        'tasks/result': () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'done' } }),
        'tasks/cancel': () => ({ ...task('c-1', 'cancelled') }),
        'tasks/list': () => ({ tasks: [task('c-1')] }),
      },
    },
    on: knowsTasks,
    play: (scene) => call(scene, 'delegate'),
  },
]
