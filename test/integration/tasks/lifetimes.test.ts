/** Tasks whose callers change their mind, share an id, or take too long (BRIDGING 3.17). */
import { describe, expect, test } from 'vitest'
import { fake } from '../../support/fake-downstream.ts'
import type { Handle } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { connectHttp } from '../../support/fakes/http-hosts.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import { RELATED, RESULT, TASK, TASKS, taskServer } from './task-server.ts'

const elicitation = { message: 'Sure?', requestedSchema: { type: 'object' }, _meta: { [RELATED]: { taskId: 'orig-1' } } }
const create = async (host: { call: (method: string, params: JsonMap) => Promise<JsonMap> }): Promise<string> => {
  const { task } = (await host.call('tools/call', { name: 'a__may', task: {} })) as { task: { taskId: string } }
  return task.taskId
}

test.each(['legacy stdio', 'legacy http'] as const)(
  'B182 sessions whose %s servers chose one id for their tasks: each finds and hears of its own',
  async (kind) => {
    await using gateway = await startGateway({ servers: { a: taskServer(kind) } })
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacyHttp.connect(gateway)
    const hosts = [one, two]
    const ids = [await create(one), await create(two)]
    const [first, second] = gateway.fake('a').all('tools/call')
    for (const [at, host] of hosts.entries()) await host.call('tasks/get', { taskId: ids[at] })
    const looks = gateway.fake('a').all('tasks/get')
    expect(looks.map(({ connection }) => connection)).toEqual([first!.connection, second!.connection])
    const tell = (turn: typeof first, statusMessage: string, status = 'working'): void =>
      turn!.connection.notify('notifications/tasks/status', { ...TASK, status, statusMessage })
    tell(first, 'one', 'completed')
    tell(second, 'two')
    const heard = hosts.map((host) => host.heard.until(({ method }) => method === 'notifications/tasks/status'))
    expect((await Promise.all(heard)).map(({ params }) => params?.['statusMessage'])).toEqual(['one', 'two'])
    tell(second, 'two again')
    await two.heard.until(({ params }) => params?.['statusMessage'] === 'two again')
    expect(one.heard.entries).toHaveLength(1)
  },
)

test.each(['legacy stdio', 'legacy http'] as const)(
  'B142 a session that ends while a %s server is making its task takes the task back before the link goes',
  async (kind) => {
    const begin = Promise.withResolvers<void>()
    const creating: Handle = async ({ params }) => {
      if (params['task'] === undefined) return { content: [] }
      await begin.promise
      return { task: TASK }
    }
    await using gateway = await startGateway({ servers: { a: taskServer(kind, { 'tools/call': creating }) } })
    await using other = await legacyHttp.connect(gateway)
    const host = await connectHttp(gateway)
    host.begin('tools/call', { name: 'a__may', task: {} }).response.catch(() => undefined)
    const { connection } = await gateway.fake('a').until('tools/call')
    const isOpenAtItsEnd = Promise.withResolvers<boolean>()
    gateway.fake('a').on('tasks/cancel', async () => {
      await other.call('tools/call', { name: 'a__plain' })
      isOpenAtItsEnd.resolve(connection.isOpen)
      return { ...TASK, status: 'cancelled' }
    })
    await send(gateway.url, { method: 'DELETE', headers: host.headers() })
    begin.resolve()
    expect(await isOpenAtItsEnd.promise).toBe(true)
    await connection.closed
  },
)

describe('a task that the host does not know of', () => {
  test('B182 is not named in what it asks, and the server hears which task the answer belongs to', async () => {
    let answered: JsonMap | undefined
    await using gateway = await startGateway({
      servers: {
        a: taskServer('legacy http', {
          'tasks/get': () => ({ ...TASK, status: answered === undefined ? 'input_required' : 'completed' }),
          'tasks/result': async (turn) => {
            answered ??= (await turn.ask('elicitation/create', elicitation)).result
            return RESULT
          },
        }),
      },
    })
    await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {} } })
    const asked = Promise.withResolvers<JsonMap>()
    host.answer('elicitation/create', (params) => {
      asked.resolve(params)
      return { action: 'decline' }
    })
    await host.call('tools/call', { name: 'a__must' })
    expect(await asked.promise).not.toHaveProperty('_meta')
    expect(answered).toEqual({ action: 'decline', _meta: { [RELATED]: { taskId: 'orig-1' } } })
  })

  test('B085 is cancelled when the time of its call is over, also while a person is thinking', async () => {
    const question = { method: 'elicitation/create', params: { message: 'Sure?', requestedSchema: { type: 'object' } } }
    const modernTask = { taskId: 'orig-1', createdAt: 'c', lastUpdatedAt: 'u', ttlMs: 60_000, pollIntervalMs: 20 }
    await using gateway = await startGateway({
      servers: {
        a: fake.of({
          kind: 'modern http',
          tools: ['work'],
          capabilities: { tools: {}, extensions: { [TASKS]: {} } },
          on: {
            'tools/call': (turn) =>
              JSON.stringify(turn.params).includes(TASKS)
                ? { resultType: 'task', status: 'working', ...modernTask }
                : turn.fail(-32021, 'tasks only', { requiredCapabilities: { extensions: { [TASKS]: {} } } }),
            'tasks/get': () => ({ ...modernTask, status: 'input_required', inputRequests: { sure: question } }),
            'tasks/cancel': () => ({}),
          },
        }),
      },
      options: { a: { timeouts: { totalMs: 2_000 } } },
    })
    await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {} } })
    const pending = host.begin('tools/call', { name: 'a__work' })
    await pending.messages.until(({ method }) => method === 'elicitation/create')
    const { result } = await pending.response
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('did not answer within') }] })
    await gateway.fake('a').until('tasks/cancel')
  })
})

test('a task that a listening host was told the end of is unfollowed at its server', async () => {
  const task = { taskId: 'orig-1', createdAt: 'c', lastUpdatedAt: 'u', ttlMs: 60_000, pollIntervalMs: 20 }
  const tasks = { extensions: { [TASKS]: {} } }
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        kind: 'modern http',
        tools: ['work'],
        capabilities: { tools: {}, ...tasks },
        on: {
          'tools/call': () => ({ resultType: 'task', status: 'working', ...task }),
          'tasks/get': () => ({ status: 'working', statusMessage: 'looked at', ...task }),
        },
      }),
    },
  })
  await using host = await modernHttp.connect(gateway, { capabilities: tasks })
  const { taskId } = await host.call('tools/call', { name: 'a__work' })
  const { messages } = host.begin('subscriptions/listen', { notifications: { taskIds: [taskId] } })
  const a = gateway.fake('a')
  const isOfTask = ({ raw }: { raw: string }): boolean => raw.includes('orig-1')
  const first = await a.until('subscriptions/listen', isOfTask)
  a.forget()
  first.response?.destroy()
  const again = await a.until('subscriptions/listen', isOfTask)
  expect((await a.until('tasks/get')).headers['mcp-name']).toBe('orig-1')
  const looked = await messages.until(({ method }) => method === 'notifications/tasks')
  expect(looked.params, 'B134').toMatchObject({ taskId, status: 'working', statusMessage: 'looked at' })
  expect(looked.params).not.toHaveProperty('resultType')
  again.notify('notifications/tasks', { status: 'cancelled', ...task })
  await messages.until(({ params }) => params?.['status'] === 'cancelled')
  await again.closed
})
