/** Tasks of modern servers for modern hosts: the extension on both sides (BRIDGING 3.17). */
import { describe, expect, test } from 'vitest'
import { describes, fake } from '../../support/fake-downstream.ts'
import type { FakeKind, FakeSpec } from '../../support/fake-downstream.ts'
import { everyModernTransport, legacyHttp, modernHttp, modernPipe } from '../../support/fake-host.ts'
import { KEY } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import type { Turn } from '../../support/fakes/turn.ts'
import { startGateway } from '../../support/gateway.ts'

const TASKS = 'io.modelcontextprotocol/tasks'
const able = { capabilities: { elicitation: { form: {} }, extensions: { [TASKS]: {} } } }
const TASK = {
  taskId: 'orig-1',
  status: 'working',
  createdAt: 'c',
  lastUpdatedAt: 'u',
  ttlMs: 60_000,
  pollIntervalMs: 50,
  own: 1.0,
}

const worker = (kind: FakeKind = 'modern http', more: FakeSpec = {}): FakeSpec => ({
  kind,
  tools: ['work'],
  capabilities: { tools: {}, extensions: { [TASKS]: {} } },
  ...more,
  on: { 'tools/call': () => ({ resultType: 'task', ...TASK }), 'tasks/get': () => TASK, ...more.on },
})
const elicitation = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Sure?', requestedSchema: { type: 'object' } },
}

describe.each(everyModernTransport)('a host on $name', ({ connect }) => {
  test.each<FakeKind>(['modern http', 'modern stdio'])(
    'B173 B175 B177 B178 follows a task of a server on %s to its end',
    async (kind) => {
      const link = { type: 'resource_link', name: 'r', uri: 'file:///r' }
      await using gateway = await startGateway({ servers: { a: worker(kind), b: fake.offering('other') } })
      await using host = await connect(gateway, able)
      expect(host.welcome['capabilities']).toMatchObject({ extensions: { [TASKS]: {} } })
      const created = await host.call('tools/call', { name: 'a__work', task: { ttl: 5 } })
      const id = String(created['taskId'])
      expect(created).toMatchObject({ ...TASK, resultType: 'task', taskId: expect.stringMatching(/^t1\.a\./) })
      const called = await gateway.fake('a').until('tools/call')
      expect(called.params).not.toHaveProperty('task')
      expect(describes(called)[KEY.capabilities]).toMatchObject({ extensions: { [TASKS]: {} } })

      expect(await host.call('tasks/get', { taskId: id })).toMatchObject({
        resultType: 'complete',
        taskId: id,
        status: 'working',
      })
      const got = await gateway.fake('a').until('tasks/get')
      expect(got.params['taskId']).toBe('orig-1')
      if (kind === 'modern http') expect(got.headers['mcp-name']).toBe('orig-1')

      gateway.fake('a').on('tasks/get', () => ({ ...TASK, status: 'completed', result: { content: [link], isError: true } }))
      const done = await host.call('tasks/get', { taskId: id })
      expect(done).toMatchObject({
        resultType: 'complete',
        status: 'completed',
        result: { content: [{ ...link, uri: 'a+file:///r' }], isError: true },
      })
      expect(gateway.fake('b').all('tasks/get')).toEqual([])
    },
  )

  test('B142 B179 answers for input and cancels reach the server, and are acknowledged', async () => {
    await using gateway = await startGateway({
      servers: {
        a: worker('modern http', {
          on: {
            'tasks/get': () => ({ ...TASK, status: 'input_required', inputRequests: { sure: elicitation } }),
            'tasks/update': () => ({}),
            'tasks/cancel': () => ({}),
          },
        }),
        b: fake.offering('other'),
      },
    })
    await using host = await connect(gateway, able)
    const { taskId } = await host.call('tools/call', { name: 'a__work' })
    const waiting = await host.call('tasks/get', { taskId })
    expect(waiting['inputRequests'], 'B090').toMatchObject({
      sure: { method: 'elicitation/create', params: { message: '[A] Sure?' } },
    })
    const inputResponses = { sure: { action: 'accept', content: { confirm: true } } }
    expect(await host.call('tasks/update', { taskId, inputResponses })).toMatchObject({ resultType: 'complete' })
    expect((await gateway.fake('a').until('tasks/update')).params).toMatchObject({ taskId: 'orig-1', inputResponses })
    expect(await host.call('tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' })
    expect((await gateway.fake('a').until('tasks/cancel')).params).toMatchObject({ taskId: 'orig-1' })
  })

  test.each([{}, { inputResponses: null }, { inputResponses: 'yes' }, { inputResponses: [] }])(
    'B179 an update without an object of answers is refused and reaches no server: %j',
    async (answers) => {
      await using gateway = await startGateway({ servers: { a: worker('modern http', { on: { 'tasks/update': () => ({}) } }) } })
      await using host = await connect(gateway, able)
      const { taskId } = await host.call('tools/call', { name: 'a__work' })
      await expect(host.call('tasks/update', { taskId, ...answers })).rejects.toMatchObject({
        code: -32602,
        message: 'params.inputResponses must be an object',
      })
      expect(gateway.fake('a').all('tasks/update')).toEqual([])
    },
  )

  test('B172 without the extension task methods and taskIds filters are answered -32021', async () => {
    await using gateway = await startGateway({ servers: { a: worker() } })
    await using host = await connect(gateway)
    const needed = { code: -32021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } }
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      await expect(host.call(method, { taskId: 't', inputResponses: {} })).rejects.toMatchObject(needed)
    await expect(host.call('subscriptions/listen', { notifications: { taskIds: ['t'] } })).rejects.toMatchObject(needed)
    expect(gateway.fake('a').received).toEqual([])
  })

  test('B174 tasks/result and tasks/list do not exist, and unknown ids reach no server', async () => {
    await using gateway = await startGateway({ servers: { a: worker() } })
    await using host = await connect(gateway, able)
    for (const method of ['tasks/result', 'tasks/list'])
      await expect(host.call(method, { taskId: 't' })).rejects.toMatchObject({ code: -32601 })
    for (const taskId of ['orig-1', 't1.a.b3JpZy0x.AAAAAAAAAAAAAAAAAAAAAA'])
      await expect(host.call('tasks/get', { taskId })).rejects.toMatchObject({ code: -32602 })
    expect(gateway.fake('a').received).toEqual([])
  })

  test('B173 a server that makes a task of a call that declared none violates the protocol', async () => {
    await using gateway = await startGateway({ servers: { a: worker() } })
    await using host = await connect(gateway, { capabilities: { extensions: { other: {} } } })
    expect(await host.call('tools/call', { name: 'a__work' })).toMatchObject({ isError: true, resultType: 'complete' })
  })
})

test('B059 questions of a task that are no object reach no host', async () => {
  const broken = { ...TASK, status: 'input_required', inputRequests: [elicitation] }
  await using gateway = await startGateway({ servers: { a: worker('modern http', { on: { 'tasks/get': () => broken } }) } })
  await using host = await modernHttp.connect(gateway, able)
  const { taskId } = await host.call('tools/call', { name: 'a__work' })
  await expect(host.call('tasks/get', { taskId })).rejects.toMatchObject({ code: -32603 })
  const stream = host.begin('subscriptions/listen', { notifications: { taskIds: [taskId] } })
  const listening = await gateway
    .fake('a')
    .until('subscriptions/listen', ({ params }) => 'taskIds' in (params['notifications'] as JsonMap))
  for (const task of [broken, { ...TASK, status: 'completed', result: { content: [] } }])
    listening.notify('notifications/tasks', { ...task, _meta: { [KEY.subscriptionId]: listening.id } })
  await stream.messages.until(({ params }) => params?.['status'] === 'completed')
  expect(stream.messages.entries.filter(({ method }) => method === 'notifications/tasks')).toHaveLength(1)
  stream.cancel()
})

test('a task that a server words as a created one, as examples of the extension do, is complete for its host', async () => {
  const failed = { resultType: 'task', ...TASK, status: 'failed', error: { code: -32603, message: 'limit' } }
  await using gateway = await startGateway({ servers: { a: worker('modern http', { on: { 'tasks/get': () => failed } }) } })
  await using host = await modernHttp.connect(gateway, able)
  const { taskId } = await host.call('tools/call', { name: 'a__work' })
  expect(await host.call('tasks/get', { taskId })).toMatchObject({ ...failed, taskId, resultType: 'complete' })
})

describe.each(['tasks/get', 'tasks/update', 'tasks/cancel'])('B178 %s', (method) => {
  const answered = { 'tasks/update': () => ({}), 'tasks/cancel': () => ({}) }
  const params = (taskId: unknown): JsonMap => ({ taskId, inputResponses: {} })

  test.each(['other', undefined])('with the Mcp-Name %s is refused and reaches no server', async (name) => {
    await using gateway = await startGateway({ servers: { a: worker('modern http', { on: answered }) } })
    await using host = await modernHttp.connect(gateway, able)
    const { taskId } = await host.call('tools/call', { name: 'a__work' })
    await expect(host.call(method, params(taskId), { headers: { 'mcp-name': name } })).rejects.toMatchObject({
      code: -32020,
      status: 400,
    })
    expect(gateway.fake('a').all(method)).toEqual([])
  })

  test('names the task of the server in the Mcp-Name that the server gets', async () => {
    await using gateway = await startGateway({ servers: { a: worker('modern http', { on: answered }) } })
    await using host = await modernHttp.connect(gateway, able)
    const { taskId } = await host.call('tools/call', { name: 'a__work' })
    await host.call(method, params(taskId))
    expect((await gateway.fake('a').until(method)).headers['mcp-name']).toBe('orig-1')
  })
})

test('B175 a stray `task` does not reach a modern server at its bridge either', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }), b: fake.offering('other') },
  })
  await using host = await modernHttp.connect(gateway, { ...able, path: '/servers/a/mcp' })
  await host.call('tools/call', { name: 'x', task: { ttl: 5 } })
  expect((await gateway.fake('a').until('tools/call')).params).not.toHaveProperty('task')
})

test('B176 a legacy host never hears of the extension, nor a modern one of the capability before it', async () => {
  await using gateway = await startGateway({ servers: { a: worker() } })
  await using legacy = await legacyHttp.connect(gateway, { capabilities: { extensions: { [TASKS]: {} }, tasks: { list: {} } } })
  await using modern = await modernPipe.connect(gateway, able)
  expect((legacy.welcome['capabilities'] as JsonMap)['extensions']).toBeUndefined()
  expect((modern.welcome['capabilities'] as JsonMap)['tasks']).toBeUndefined()
  gateway.fake('a').on('tools/call', () => ({ content: [] }))
  await legacy.call('tools/call', { name: 'a__work' })
  const declared = describes(await gateway.fake('a').until('tools/call'))[KEY.capabilities]
  expect(declared).toEqual({ extensions: {} })
})

test('with tasks off nothing of them is offered', async () => {
  await using gateway = await startGateway({ servers: { a: worker() }, gateway: { tasks: false } })
  await using host = await modernHttp.connect(gateway, able)
  expect((host.welcome['capabilities'] as JsonMap)['extensions']).toBeUndefined()
  await expect(host.call('tasks/get', { taskId: 't' })).rejects.toMatchObject({ code: -32601 })
  gateway.fake('a').on('tools/call', () => ({ content: [] }))
  await host.call('tools/call', { name: 'a__work' })
  const declared = describes(await gateway.fake('a').until('tools/call'))[KEY.capabilities] as JsonMap
  expect(declared['extensions']).toEqual({})
})

describe.each<FakeKind>(['modern http', 'modern stdio'])('changes of a task on %s', (kind) => {
  test('B124 are acknowledged only where their server has agreed to send them', async () => {
    const agreeing = (turn: Turn): void => {
      const asked = turn.params['notifications'] as JsonMap
      const notifications = Object.fromEntries(Object.entries(asked).filter(([name]) => name !== 'taskIds'))
      turn.notify('notifications/subscriptions/acknowledged', { notifications, _meta: { [KEY.subscriptionId]: turn.id } })
    }
    await using gateway = await startGateway({
      servers: { a: worker(kind), b: worker(kind, { on: { 'subscriptions/listen': agreeing } }) },
    })
    await using host = await modernHttp.connect(gateway, able)
    const { taskId: pushed } = await host.call('tools/call', { name: 'a__work' })
    const { taskId: polled } = await host.call('tools/call', { name: 'b__work' })
    const stream = host.begin('subscriptions/listen', { notifications: { taskIds: [polled, pushed] } })
    const acknowledged = await stream.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    expect(acknowledged.params?.['notifications']).toEqual({ taskIds: [pushed] })
    stream.cancel()
  })

  test('reach the streams that named it, under their own id', async () => {
    await using gateway = await startGateway({ servers: { a: worker(kind) } })
    await using host = await modernHttp.connect(gateway, able)
    const { taskId } = await host.call('tools/call', { name: 'a__work' })
    const stream = host.begin(
      'subscriptions/listen',
      { notifications: { taskIds: [taskId, 't1.a.b3JpZy0x.x', 'orig-1'] } },
      { id: 'L' },
    )
    const acknowledged = await stream.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    expect(acknowledged.params?.['notifications']).toEqual({ taskIds: [taskId] })
    const listening = await gateway
      .fake('a')
      .until('subscriptions/listen', ({ params }) => 'taskIds' in (params['notifications'] as JsonMap))
    expect(listening.params['notifications']).toEqual({ taskIds: ['orig-1'] })
    expect(describes(listening)[KEY.capabilities]).toMatchObject({ extensions: { [TASKS]: {} } })
    const result = { content: [{ type: 'resource_link', name: 'r', uri: 'file:///r' }] }
    listening.notify('notifications/tasks', {
      ...TASK,
      status: 'completed',
      result,
      _meta: { [KEY.subscriptionId]: listening.id },
    })
    const told = await stream.messages.until(({ method }) => method === 'notifications/tasks')
    expect(told.params).toMatchObject({
      taskId,
      status: 'completed',
      result: { content: [{ uri: 'a+file:///r' }] },
      _meta: { [KEY.subscriptionId]: 'L' },
    })
    stream.cancel()
    if (kind === 'modern http') await listening.closed
    else await gateway.fake('a').until('notifications/cancelled')
  })
})
