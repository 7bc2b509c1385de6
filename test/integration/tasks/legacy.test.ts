/** Tasks of 2025-11-25 servers for hosts of that revision, and for hosts that know no tasks (BRIDGING 3.17). */
import { describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { everyLegacyTransport, legacyHttp, legacyPipe, modernHttp, modernPipe } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import { fake } from '../../support/fake-downstream.ts'
import type { FakeKind, Handle } from '../../support/fake-downstream.ts'
import { connectHttp } from '../../support/fakes/http-hosts.ts'
import { curated } from '../../support/curation.ts'
import type { JsonMap, Message } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { identityOf } from '../../support/toolsets.ts'
import { link, RELATED, RESULT, TASK, TASKS, taskServer } from './task-server.ts'

const elicitation = { message: 'Sure?', requestedSchema: { type: 'object' }, _meta: { [RELATED]: { taskId: 'orig-1' } } }
const asker = { capabilities: { elicitation: {} } }

/** Makes a task with progress. `say` sends a notification on the connection of its call. */
const created = async (gateway: TestGateway, host: Host) => {
  const { task } = (await host.call('tools/call', { name: 'a__may', task: {} }, { meta: { progressToken: 'p' } })) as {
    task: { taskId: string }
  }
  const { params, connection } = await gateway.fake('a').until('tools/call')
  const { progressToken } = params['_meta'] as JsonMap
  const say = (method: string, said: JsonMap): void => connection.say(JSON.stringify({ jsonrpc: '2.0', method, params: said }))
  return { task, progressToken, say }
}

describe.each(everyLegacyTransport)('a host on $name', ({ connect }) => {
  test.each<FakeKind>(['legacy http', 'legacy stdio', 'legacy sse'])(
    'B177 B182 B183 follows a task of a server on %s',
    async (kind) => {
      await using gateway = await startGateway({
        servers: {
          a: taskServer(kind, {
            'tasks/result': () => RESULT,
            'tasks/cancel': () => ({ ...TASK, status: 'cancelled' }),
          }),
          b: fake.offering('other'),
        },
      })
      await using host = await connect(gateway)
      expect(host.welcome['capabilities']).toHaveProperty('tasks', { cancel: {}, requests: { tools: { call: {} } } })
      expect((host.welcome['capabilities'] as JsonMap)['tasks']).not.toHaveProperty('list')
      const { tools } = (await host.call('tools/list')) as { tools: JsonMap[] }
      expect(tools.map(({ name, execution }) => [name, execution])).toContainEqual(['a__may', { taskSupport: 'optional' }])

      const created = await host.call('tools/call', { name: 'a__may', task: { ttl: 5_000 } })
      expect((await gateway.fake('a').until('tools/call')).params['task']).toEqual({ ttl: 5_000 })
      const { taskId } = created['task'] as { taskId: string }
      expect(created).toEqual({ task: { ...TASK, taskId: expect.stringMatching(/^t1\.a\./) }, _meta: { 'x/immediate': 'soon' } })

      expect(await host.call('tasks/get', { taskId })).toEqual({ ...TASK, taskId })
      expect((await gateway.fake('a').until('tasks/get')).params['taskId']).toBe('orig-1')
      const result = await host.call('tasks/result', { taskId })
      expect(result).toMatchObject({ content: [{ ...link, uri: 'a+file:///r' }], _meta: { [RELATED]: { taskId } } })
      expect(await host.call('tasks/cancel', { taskId }), 'B142').toMatchObject({ taskId, status: 'cancelled' })
      expect((await gateway.fake('a').until('tasks/cancel')).params['taskId']).toBe('orig-1')
    },
  )
})

describe.each<FakeKind>(['legacy http', 'legacy stdio'])('with a server on %s', (kind) => {
  test('B182 what a task asks reaches the host while it waits for the result, under its own id, and the answer goes back', async () => {
    const answer = Promise.withResolvers<JsonMap>()
    await using gateway = await startGateway({
      servers: {
        a: taskServer(kind, {
          'tasks/result': async (turn) => {
            answer.resolve((await turn.ask('elicitation/create', elicitation)).result ?? {})
            return RESULT
          },
        }),
      },
    })
    await using host = await legacyHttp.connect(gateway, asker)
    const asked = Promise.withResolvers<JsonMap>()
    host.answer('elicitation/create', (params) => {
      asked.resolve(params)
      return { action: 'accept', content: {} }
    })
    const { task } = (await host.call('tools/call', { name: 'a__may', task: {} })) as { task: { taskId: string } }
    await host.call('tasks/result', { taskId: task.taskId })
    expect(await asked.promise).toMatchObject({ message: 'Sure?', _meta: { [RELATED]: { taskId: task.taskId } } })
    expect(await answer.promise).toMatchObject({ action: 'accept', _meta: { [RELATED]: { taskId: 'orig-1' } } })
  })

  test('B182 the result of a task says which one it is of by the id of the host, also where the server does not', async () => {
    await using gateway = await startGateway({ servers: { a: taskServer(kind, { 'tasks/result': () => ({ content: [] }) }) } })
    await using host = await legacyHttp.connect(gateway)
    const { task } = await created(gateway, host)
    const result = await host.call('tasks/result', { taskId: task.taskId })
    expect(result).toEqual({ content: [], _meta: { [RELATED]: { taskId: task.taskId } } })
  })

  test('B182 what a task asks while nobody waits for it goes the way of its session', async () => {
    await using gateway = await startGateway({ servers: { a: taskServer(kind) } })
    await using host = await legacyHttp.connect(gateway, asker)
    host.answer('elicitation/create', () => ({ action: 'decline' }))
    await host.call('tools/call', { name: 'a__may', task: {} })
    const { connection } = await gateway.fake('a').until('tools/call')
    const { id, answer } = connection.expectAnswer()
    connection.say(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params: elicitation }))
    expect((await answer).result).toMatchObject({ action: 'decline', _meta: { [RELATED]: { taskId: 'orig-1' } } })
  })

  test('its status and its progress reach the session that made it, and no other', async () => {
    await using gateway = await startGateway({ servers: { a: taskServer(kind) } })
    await using other = await legacyHttp.connect(gateway)
    await using host = await legacyHttp.connect(gateway)
    const { task, progressToken, say } = await created(gateway, host)
    say('notifications/progress', { progressToken, progress: 1 })
    say('notifications/tasks/status', { ...TASK, status: 'completed' })
    say('notifications/progress', { progressToken, progress: 2 })
    say('notifications/tools/list_changed', {})
    const told = await host.heard.until(({ method }) => method === 'notifications/tasks/status')
    expect(told.params).toEqual({ ...TASK, taskId: task.taskId, status: 'completed' })
    const progress = host.heard.entries.filter(({ method }) => method === 'notifications/progress')
    expect(progress.map(({ params }) => params)).toEqual([{ progressToken: 'p', progress: 1 }])
    await other.call('tools/list')
    expect(other.heard.entries).toEqual([])
  })

  test('B182 its status and its progress name it by the id of the host where they say what they belong to', async () => {
    const _meta = { [RELATED]: { taskId: 'orig-1' }, x: 1 }
    await using gateway = await startGateway({ servers: { a: taskServer(kind, { 'tasks/get': () => ({ ...TASK, _meta }) }) } })
    await using host = await legacyHttp.connect(gateway)
    const { task, progressToken, say } = await created(gateway, host)
    say('notifications/progress', { progressToken, progress: 1, _meta })
    say('notifications/tasks/status', { ...TASK, _meta })
    await host.heard.until(({ method }) => method === 'notifications/tasks/status')
    const own = { [RELATED]: { taskId: task.taskId }, x: 1 }
    expect(host.heard.entries.map(({ params }) => params?.['_meta'])).toEqual([own, own])
    expect((await host.call('tasks/get', { taskId: task.taskId }))['_meta']).toEqual(own)
  })

  test('B182 its log messages reach the session that made it, by the id of the host, while nothing waits and while its result does', async () => {
    const logged = (data: string): JsonMap => ({ level: 'info', data, _meta: { [RELATED]: { taskId: 'orig-1' } } })
    await using gateway = await startGateway({
      servers: {
        a: taskServer(kind, {
          'tasks/result': (turn) => {
            turn.notify('notifications/message', logged('late'))
            return RESULT
          },
        }),
      },
    })
    await using other = await legacyHttp.connect(gateway)
    await using host = await legacyHttp.connect(gateway)
    const { task, say } = await created(gateway, host)
    const isLogged = ({ method }: Message): boolean => method === 'notifications/message'
    say('notifications/message', logged('early'))
    const early = await host.heard.until(isLogged)
    const result = host.begin('tasks/result', { taskId: task.taskId })
    await result.response
    const late = await Promise.race([
      host.heard.until((message) => isLogged(message) && message !== early),
      result.messages.until(isLogged),
    ])
    const _meta = { [RELATED]: { taskId: task.taskId } }
    expect([early, late].map(({ params }) => params)).toMatchObject([
      { data: 'early', _meta },
      { data: 'late', _meta },
    ])
    await other.call('tools/list')
    expect(other.heard.entries).toEqual([])
  })

  test('B182 B273 B274 progress of the host on its question, and the end of the question, name it by the id of their receiver', async () => {
    await using gateway = await startGateway({ servers: { a: taskServer(kind) } })
    await using host = await legacyHttp.connect(gateway, asker)
    const { task } = (await host.call('tools/call', { name: 'a__may', task: {} })) as { task: { taskId: string } }
    const { connection } = await gateway.fake('a').until('tools/call')
    const { id } = connection.expectAnswer()
    const params = { ...elicitation, _meta: { ...elicitation._meta, progressToken: 's' } }
    connection.say(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params }))
    const asked = await host.heard.until(({ method }) => method === 'elicitation/create')
    const { progressToken } = (asked.params?.['_meta'] ?? {}) as JsonMap
    const own = { [RELATED]: { taskId: task.taskId }, x: 1 }
    host.notify('notifications/progress', { progressToken, progress: 1, _meta: own })
    const progress = await gateway.fake('a').until('notifications/progress')
    expect(progress.params).toEqual({ progressToken: 's', progress: 1, _meta: { ...own, [RELATED]: { taskId: 'orig-1' } } })
    connection.notify('notifications/cancelled', { requestId: id, _meta: { [RELATED]: { taskId: 'orig-1' }, x: 1 } })
    const cancelled = await host.heard.until(({ method }) => method === 'notifications/cancelled')
    expect(cancelled.params).toEqual({ requestId: asked.id, _meta: own })
  })

  test('a required tool is followed for a host that knows no tasks, as fast as the server wants to be asked', async () => {
    let looks = 0
    await using gateway = await startGateway({
      servers: {
        a: taskServer(kind, {
          'tasks/get': () => (++looks < 3 ? { ...TASK, statusMessage: `step ${looks}` } : { ...TASK, status: 'completed' }),
          'tasks/result': () => RESULT,
        }),
        b: fake.offering('other'),
      },
    })
    await using host = await legacyHttp.connect(gateway, { revision: '2025-06-18' })
    const pending = host.begin('tools/call', { name: 'a__must' }, { meta: { progressToken: 'p' } })
    const { result } = await pending.response
    expect(result).toEqual({ content: [{ ...link, uri: 'a+file:///r' }] })
    expect((await gateway.fake('a').until('tools/call')).params['task']).toEqual({ ttl: expect.any(Number) })
    expect(pending.messages.entries.map(({ params }) => params)).toEqual([
      { progressToken: 'p', progress: 1, message: 'step 1' },
      { progressToken: 'p', progress: 2, message: 'step 2' },
    ])
  })

  test('the input of a followed task is asked for in the middle of the call', async () => {
    let isAnswered = false
    await using gateway = await startGateway({
      servers: {
        a: taskServer(kind, {
          'tasks/get': () => ({ ...TASK, status: isAnswered ? 'completed' : 'input_required' }),
          'tasks/result': async (turn) => {
            const { result } = await turn.ask('elicitation/create', elicitation)
            isAnswered = true
            return { content: [{ type: 'text', text: String(result?.['action']) }] }
          },
        }),
      },
    })
    await using host = await legacyHttp.connect(gateway, asker)
    host.answer('elicitation/create', () => ({ action: 'decline' }))
    expect(await host.call('tools/call', { name: 'a__must' })).toMatchObject({ content: [{ text: 'decline' }] })

    isAnswered = false
    await using modern = await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
    const round = await modern.call('tools/call', { name: 'a__must' })
    expect(round).toMatchObject({ resultType: 'input_required' })
    const [key] = Object.keys(round['inputRequests'] as JsonMap)
    const { requestState } = round
    const inputResponses = { [key!]: { action: 'accept', content: {} } }
    expect(await modern.call('tools/call', { name: 'a__must', requestState, inputResponses })).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'accept' }],
    })
  })
})

test('a followed task that fails fails the call with its error, and a cancelled one says so', async () => {
  let status = 'failed'
  await using gateway = await startGateway({
    servers: {
      a: taskServer('legacy http', {
        'tasks/get': () => ({ ...TASK, status }),
        'tasks/result': (turn) => turn.fail(1, 'it broke', { own: 1 }),
      }),
    },
  })
  await using host = await legacyHttp.connect(gateway)
  await expect(host.call('tools/call', { name: 'a__must' })).rejects.toMatchObject({
    code: 1,
    message: 'it broke',
    data: { own: 1 },
  })
  status = 'cancelled'
  expect(await host.call('tools/call', { name: 'a__must' })).toMatchObject({
    isError: true,
    content: [{ text: 'the task was cancelled' }],
  })
})

test.each([legacyHttp, modernHttp])('B142 a followed task is cancelled when a host on $name gives up', async ({ connect }) => {
  await using gateway = await startGateway({ servers: { a: taskServer('legacy http', { 'tasks/cancel': () => TASK }) } })
  await using host = await connect(gateway)
  const pending = host.begin('tools/call', { name: 'a__must' })
  await gateway.fake('a').until('tasks/get')
  pending.cancel()
  expect((await gateway.fake('a').until('tasks/cancel')).params['taskId']).toBe('orig-1')
  expect(gateway.fake('a').all('notifications/cancelled')).toEqual([])
})

test.each([legacyHttp, modernHttp])(
  'B182 a host on $name that does not know of the task is not told its id',
  async ({ connect }) => {
    const _meta = { [RELATED]: { taskId: 'orig-1' }, x: 1 }
    await using gateway = await startGateway({
      servers: {
        a: taskServer('legacy http', {
          'tools/call': (turn) => {
            turn.notify('notifications/message', { level: 'info', data: 'begun', _meta })
            return { task: TASK }
          },
          'tasks/get': () => ({ ...TASK, status: 'completed' }),
          'tasks/result': () => ({ content: [] }),
        }),
      },
    })
    await using host = await connect(gateway)
    const meta = { 'io.modelcontextprotocol/logLevel': 'info' }
    const { messages, response } = host.begin('tools/call', { name: 'a__must' }, { meta })
    expect(await response).toMatchObject({ result: { content: [] } })
    expect(messages.entries.map(({ params }) => params)).toMatchObject([{ data: 'begun' }])
    expect(messages.entries[0]!.params?.['_meta']).toEqual({ x: 1 })
  },
)

test('B142 a host that gives up before its task has an id gets it cancelled by the id, never the request', async () => {
  const begin = Promise.withResolvers<void>()
  await using gateway = await startGateway({
    servers: {
      a: taskServer('legacy http', {
        'tools/call': async () => {
          await begin.promise
          return { task: TASK }
        },
        'tasks/cancel': () => TASK,
      }),
    },
  })
  await using host = await modernPipe.connect(gateway, { capabilities: { extensions: { [TASKS]: {} } } })
  const pending = host.begin('tools/call', { name: 'a__may' })
  await gateway.fake('a').until('tools/call')
  pending.cancel()
  await host.call('tools/list')
  begin.resolve()
  await gateway.fake('a').until('tasks/cancel')
  expect(gateway.fake('a').all('notifications/cancelled')).toEqual([])
})

test('B175 an optional tool is called plainly for hosts that know no tasks, a forbidden one never as a task', async () => {
  await using gateway = await startGateway({ servers: { a: taskServer(), b: fake.of({ kind: 'modern http', tools: ['x'] }) } })
  await using host = await legacyHttp.connect(gateway)
  await using modern = await modernHttp.connect(gateway)
  for (const { call } of [host, modern].map((each) => ({ call: each.call.bind(each) })))
    expect(await call('tools/call', { name: 'a__may' })).toMatchObject({ content: [{ text: 'at once' }] })
  gateway.fake('a').forget()
  for (const name of ['a__plain', 'b__x'])
    await expect(host.call('tools/call', { name, task: {} })).rejects.toMatchObject({ code: -32601 })
  expect(gateway.fake('a').all('tools/call')).toEqual([])
  expect(await modern.call('tools/call', { name: 'a__may', task: {} })).toMatchObject({ resultType: 'complete' })
})

test('a tool that runs as no task is refused under the name that the host knows', async () => {
  await using gateway = await startGateway({ servers: { a: taskServer() } })
  await using host = await legacyHttp.connect(gateway)
  const refused = { code: -32601, message: 'a__plain cannot be called as a task' }
  await expect(host.call('tools/call', { name: 'a__plain', task: {} })).rejects.toMatchObject(refused)
})

test('B277 tasks/list at a bridge is of the tasks of one principal: where several share a link, it does not exist', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.offering('x'), b: fake.offering('x') },
    options: { a: { sharing: 'shared' }, b: { sharing: 'principal' } },
  })
  for (const server of ['a', 'b']) gateway.fake(server).on('tasks/list', () => ({ tasks: [] }))
  await using shared = await legacyPipe.connect(gateway, { server: 'a', identity: identityOf('ana') })
  await expect(shared.call('tasks/list')).rejects.toMatchObject({ code: -32601 })
  expect(gateway.fake('a').all('tasks/list')).toEqual([])
  await using own = await legacyPipe.connect(gateway, { server: 'b', identity: identityOf('ana') })
  expect(await own.call('tasks/list')).toEqual({ tasks: [] })
})

test('task methods do not exist for hosts before 2025-11-25, nor tasks/list and tasks/update for any', async () => {
  await using gateway = await startGateway({ servers: { a: taskServer() } })
  await using older = await legacyHttp.connect(gateway, { revision: '2025-06-18' })
  expect((older.welcome['capabilities'] as JsonMap)['tasks']).toBeUndefined()
  await using host = await legacyHttp.connect(gateway)
  await expect(older.call('tasks/get', { taskId: 't' })).rejects.toMatchObject({ code: -32601 })
  for (const method of ['tasks/list', 'tasks/update'])
    await expect(host.call(method, { taskId: 't' })).rejects.toMatchObject({ code: -32601 })
  await expect(host.call('tasks/get', { taskId: 'orig-1' })).rejects.toMatchObject({ code: -32602 })
})

test('the link of a session outlives it until its tasks have ended', async () => {
  await using gateway = await startGateway({ servers: { a: taskServer('legacy stdio') } })
  await using other = await connectHttp(gateway)
  const host = await connectHttp(gateway)
  const { task } = (await host.call('tools/call', { name: 'a__may', task: {} })) as { task: { taskId: string } }
  const { connection } = await gateway.fake('a').until('tools/call')
  await fetch(gateway.url, { method: 'DELETE', headers: { 'mcp-session-id': String(host.session) } })
  await host[Symbol.asyncDispose]()
  expect(await other.call('tasks/get', { taskId: task.taskId })).toMatchObject({ taskId: task.taskId, status: 'working' })
  expect((await gateway.fake('a').until('tasks/get')).connection).toBe(connection)
  expect(connection.isOpen).toBe(true)
  gateway.fake('a').on('tasks/get', () => ({ ...TASK, status: 'completed' }))
  await other.call('tasks/get', { taskId: task.taskId })
  await connection.closed
})

describe('a modern server that insists on a task', () => {
  const modernTask = { taskId: 'm-1', createdAt: 'c', lastUpdatedAt: 'u', ttlMs: null, pollIntervalMs: 20 }
  const spec = fake.of({
    kind: 'modern http',
    tools: ['work'],
    capabilities: { tools: {}, extensions: { [TASKS]: {} } },
    on: {
      'tools/call': (turn) => {
        const declared = (turn.params['_meta'] as JsonMap)['io.modelcontextprotocol/clientCapabilities'] as JsonMap
        const requiredCapabilities = { extensions: { [TASKS]: {} } }
        if ((declared['extensions'] as JsonMap | undefined)?.[TASKS] === undefined)
          return turn.fail(-32021, 'Missing required client capability', { requiredCapabilities })
        return { resultType: 'task', ...modernTask, status: 'working' }
      },
      'tasks/get': () => ({ ...modernTask, status: 'completed', result: { content: [{ type: 'text', text: 'done' }] } }),
    },
  })

  test('is followed for legacy hosts, and for others where it is configured', async () => {
    await using gateway = await startGateway({ servers: { a: spec, b: spec }, options: { b: { driveTasks: true } } })
    await using legacy = await legacyHttp.connect(gateway)
    await using modern = await modernHttp.connect(gateway)
    expect(await legacy.call('tools/call', { name: 'a__work' })).toMatchObject({ content: [{ text: 'done' }] })
    await expect(modern.call('tools/call', { name: 'a__work' })).rejects.toMatchObject({ code: -32021, status: 400 })
    expect(await modern.call('tools/call', { name: 'b__work' })).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'done' }],
    })
  })

  test('B108 has structured content that is no object wrapped for legacy hosts, like that of a plain call', async () => {
    const ended = { result: { content: [{ type: 'text', text: 'done' }], structuredContent: [1] } }
    const on = { ...spec.on, 'tasks/get': () => ({ ...modernTask, status: 'completed', ...ended }) }
    await using gateway = await startGateway({ servers: { a: { ...spec, on } } })
    await using host = await legacyHttp.connect(gateway)
    expect(await host.call('tools/call', { name: 'a__work' })).toMatchObject({ structuredContent: { result: [1] } })
  })

  test.each<[status: string, end: JsonMap, result: JsonMap]>([
    ['completed', { result: { content: [{ type: 'text', text: 'done' }] } }, { content: [{ type: 'text', text: 'done' }] }],
    ['completed', { resultType: 'task', result: { content: [] } }, { content: [] }],
    ['cancelled', {}, { isError: true, content: [{ type: 'text', text: 'the task was cancelled' }] }],
  ])('and whose task is %s when it is created is asked for its outcome: %j', async (status, end, result) => {
    const calls: Handle = (turn) =>
      spec.on?.['tools/call']?.(turn) === undefined ? undefined : { resultType: 'task', ...modernTask, status }
    const ended = { ...spec, on: { 'tools/call': calls, 'tasks/get': () => ({ ...modernTask, status, ...end }) } }
    await using gateway = await startGateway({ servers: { a: ended } })
    await using host = await legacyHttp.connect(gateway)
    expect(await host.call('tools/call', { name: 'a__work' })).toEqual(result)
    expect(gateway.fake('a').all('tasks/cancel')).toEqual([])
  })

  test.each([{}, { extensions: { [TASKS]: {} } }])(
    'is followed for a modern host that declares %j where tasks are not offered: it cannot ask for them',
    async (capabilities) => {
      await using gateway = await startGateway({ servers: { a: spec }, gateway: { tasks: false } })
      await using host = await modernHttp.connect(gateway, { capabilities })
      expect(await host.call('tools/call', { name: 'a__work' })).toMatchObject({
        resultType: 'complete',
        content: [{ text: 'done' }],
      })
    },
  )
})

test.each(['completed', 'failed'])(
  'a required tool whose task is %s when it is created is asked for its outcome',
  async (status) => {
    const server = taskServer('legacy http', {
      'tools/call': () => ({ task: { ...TASK, status } }),
      'tasks/get': () => ({ ...TASK, status }),
      'tasks/result': (turn) => (status === 'failed' ? turn.fail(-32000, 'no') : { content: [link] }),
    })
    await using gateway = await startGateway({ servers: { a: server } })
    await using host = await legacyHttp.connect(gateway)
    const called = host.call('tools/call', { name: 'a__must' })
    if (status === 'completed') expect(await called).toMatchObject({ content: [{ ...link, uri: 'a+file:///r' }] })
    else await expect(called).rejects.toMatchObject({ message: 'no' })
  },
)

test.each<[string, Partial<GatewayOptions>, object]>([
  ['tasks are not offered', { tasks: false }, {}],
  ['its result is limited', {}, { tools: { must: { result: { max_tokens: 1_000 } } } }],
])('B277 at a bridge a tool that runs as a task answers a host that asked for none, where %s', async (_, options, entry) => {
  const server = taskServer('legacy http', {
    'tasks/get': () => ({ ...TASK, status: 'completed' }),
    'tasks/result': () => RESULT,
  })
  await using gateway = await startGateway({ servers: { a: server }, options: { a: await curated(entry) }, gateway: options })
  await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
  const result = await host.call('tools/call', { name: 'must' })
  expect(result).not.toHaveProperty('task')
  expect(result).toMatchObject({ content: [link] })
  expect(gateway.fake('a').all('tasks/result')).toHaveLength(1)
})
