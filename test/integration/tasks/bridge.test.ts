/** Tasks of 2025-11-25 servers in the words of the extension, for modern hosts (BRIDGING 3.17, the T25 → T26 bridge). */
import { describe, expect, test } from 'vitest'
import { fake } from '../../support/fake-downstream.ts'
import type { FakeKind } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp, modernPipe } from '../../support/fake-host.ts'
import { RpcError } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import { link, RELATED, RESULT, TASK, TASKS, taskServer } from './task-server.ts'

const able = { capabilities: { elicitation: { form: {} }, extensions: { [TASKS]: {} } } }
const MODERN_TASK = { taskId: 'orig-1', createdAt: 'c', lastUpdatedAt: 'u', ttlMs: 60_000, pollIntervalMs: 30 }
const question = (message: string): JsonMap => ({
  message,
  requestedSchema: { type: 'object' },
  _meta: { [RELATED]: { taskId: 'orig-1' } },
})

describe.each<FakeKind>(['legacy http', 'legacy stdio', 'legacy sse'])('a server on %s', (kind) => {
  test.each([modernHttp, modernPipe])('B173 B180 is one with the extension to a host on $name', async ({ connect }) => {
    await using gateway = await startGateway({
      servers: { a: taskServer(kind, { 'tasks/result': () => ({ ...RESULT, isError: true }) }), b: fake.offering('other') },
    })
    await using host = await connect(gateway, able)
    for (const name of ['a__may', 'a__must']) {
      const created = await host.call('tools/call', { name })
      const { taskId } = created
      expect(created).toMatchObject({
        ...MODERN_TASK,
        resultType: 'task',
        status: 'working',
        taskId: expect.stringMatching(/^t1\.a\./),
      })
      expect(created).toMatchObject({ _meta: { 'x/immediate': 'soon' } })
      for (const old of ['ttl', 'pollInterval', 'task', 'requestState']) expect(created).not.toHaveProperty(old)
      expect((await gateway.fake('a').until('tools/call')).params['task']).toEqual({ ttl: expect.any(Number) })
      gateway.fake('a').off('tasks/get')
      gateway.fake('a').on('tasks/get', () => TASK)
      expect(await host.call('tasks/get', { taskId })).toMatchObject({
        ...MODERN_TASK,
        taskId,
        status: 'working',
        resultType: 'complete',
      })
      gateway.fake('a').on('tasks/get', () => ({ ...TASK, status: 'failed' }))
      for (let look = 0; look < 2; look++) {
        const done = await host.call('tasks/get', { taskId })
        expect(done).toMatchObject({
          taskId,
          status: 'completed',
          result: { isError: true, content: [{ ...link, uri: 'a+file:///r' }] },
        })
        expect(done['result']).not.toHaveProperty('_meta')
      }
      expect(gateway.fake('a').all('tasks/result')).toHaveLength(1)
      gateway.fake('a').forget()
    }
    expect(await host.call('tools/call', { name: 'a__plain' })).toMatchObject({ resultType: 'complete' })
    expect((await gateway.fake('a').until('tools/call')).params).not.toHaveProperty('task')
  })

  test('B017 what it says of a task in _meta reaches the host, without the id that it knows', async () => {
    const own = { 'x/percent': 1.5 }
    await using gateway = await startGateway({
      servers: {
        a: taskServer(kind, {
          'tasks/get': () => ({ _meta: { ...own, [RELATED]: { taskId: 'orig-1' } }, ...TASK }),
        }),
        b: fake.offering('other'),
      },
    })
    await using host = await modernHttp.connect(gateway, able)
    const { taskId } = await host.call('tools/call', { name: 'a__may' })
    const { _meta } = await host.call('tasks/get', { taskId })
    expect(_meta).toMatchObject(own)
    expect(_meta).not.toHaveProperty(RELATED)
  })

  test('F-02 a result that never comes ends the wait of tasks/get after timeouts.idle, and is asked for again', async () => {
    let answers = 0
    await using gateway = await startGateway({
      servers: {
        a: taskServer(kind, {
          'tasks/get': () => ({ ...TASK, status: 'completed' }),
          'tasks/result': () => (++answers < 2 ? new Promise<never>(() => undefined) : RESULT),
        }),
        b: fake.offering('other'),
      },
      options: { a: { timeouts: { idleMs: 1_000 } } },
    })
    await using host = await modernHttp.connect(gateway, able)
    const { taskId } = await host.call('tools/call', { name: 'a__may' })
    await expect(host.call('tasks/get', { taskId })).rejects.toMatchObject({
      message: expect.stringContaining('timeouts.idle') as unknown,
      data: { 'dev.trunkline/gateway': { kind: 'timeout', downstream: 'a' } },
    })
    expect(await host.call('tasks/get', { taskId })).toMatchObject({
      status: 'completed',
      result: { content: [{ uri: 'a+file:///r' }] },
    })
  })

  test('what it asks stands in tasks/get under keys of its own, until tasks/update answers it', async () => {
    const answers: JsonMap[] = []
    const isDone = Promise.withResolvers<void>()
    let status = 'input_required'
    await using gateway = await startGateway({
      servers: {
        a: taskServer(kind, {
          'tasks/get': () => ({ ...TASK, status }),
          'tasks/result': async (turn) => {
            const both = ['One?', 'Two?'].map((message) => turn.ask('elicitation/create', question(message)))
            answers.push(...(await Promise.all(both)).map(({ result }) => result ?? {}))
            answers.push((await turn.ask('elicitation/create', question('Three?'))).result ?? {})
            status = 'completed'
            isDone.resolve()
            return RESULT
          },
        }),
      },
    })
    await using host = await modernHttp.connect(gateway, able)
    const { taskId } = await host.call('tools/call', { name: 'a__may' })
    const ask = async (count: number): Promise<Record<string, JsonMap>> => {
      for (;;) {
        const task = await host.call('tasks/get', { taskId })
        const requests = (task['inputRequests'] ?? {}) as Record<string, JsonMap>
        if (Object.keys(requests).length === count) return requests
      }
    }
    const first = await ask(2)
    const [one, two] = Object.keys(first)
    expect(Object.values(first)).toEqual(
      ['One?', 'Two?'].map((message) => ({
        method: 'elicitation/create',
        params: { message, mode: 'form', requestedSchema: { type: 'object' } },
      })),
    )
    const accept = { action: 'accept', content: { yes: true } }
    await expect(host.call('tasks/update', { taskId, inputResponses: { [two!]: { action: 'maybe' } } })).rejects.toMatchObject({
      code: -32602,
    })
    expect(await host.call('tasks/update', { taskId, inputResponses: { [two!]: accept, never: {} } })).toMatchObject({
      resultType: 'complete',
    })
    expect(Object.keys(await ask(1))).toEqual([one])
    await host.call('tasks/update', { taskId, inputResponses: { [one!]: accept, [two!]: { action: 'decline' } } })
    const [three] = Object.keys(await ask(1))
    expect([one, two]).not.toContain(three)
    await host.call('tasks/update', { taskId, inputResponses: { [three!]: { action: 'decline' } } })
    await isDone.promise
    expect(await host.call('tasks/get', { taskId })).toMatchObject({ status: 'completed' })
    const related = { _meta: { [RELATED]: { taskId: 'orig-1' } } }
    expect(answers).toMatchObject([
      { ...accept, ...related },
      { ...accept, ...related },
      { action: 'decline', ...related },
    ])
  })
})

test('a JSON-RPC error of the call is the error of a failed task', async () => {
  await using gateway = await startGateway({
    servers: {
      a: taskServer('legacy http', {
        'tasks/get': () => ({ ...TASK, status: 'failed' }),
        'tasks/result': (turn) => turn.fail(-32603, 'it broke'),
      }),
    },
  })
  await using host = await modernHttp.connect(gateway, able)
  const { taskId } = await host.call('tools/call', { name: 'a__may' })
  expect(await host.call('tasks/get', { taskId })).toMatchObject({
    status: 'failed',
    error: { code: -32603, message: 'it broke' },
  })
})

test('B168 the URI in the error of a task has its exposed form, for hosts of both eras', async () => {
  const data = { uri: 'file:///r', more: 1 }
  await using gateway = await startGateway({
    servers: {
      a: taskServer('legacy http', {
        'tasks/get': () => ({ ...TASK, status: 'failed' }),
        'tasks/result': () => {
          throw new RpcError({ code: -32603, message: 'it broke', data })
        },
      }),
      b: fake.offering('other'),
    },
  })
  const error = { code: -32603, data: { uri: 'a+file:///r', more: 1 } }
  await using modern = await modernHttp.connect(gateway, able)
  const { taskId } = await modern.call('tools/call', { name: 'a__may' })
  for (let look = 0; look < 2; look++)
    expect(await modern.call('tasks/get', { taskId })).toMatchObject({ status: 'failed', error })
  await using legacy = await legacyHttp.connect(gateway)
  const created = await legacy.call('tools/call', { name: 'a__may', task: {} })
  const own = (created['task'] as JsonMap)['taskId']
  await expect(legacy.call('tasks/result', { taskId: own })).rejects.toMatchObject(error)
})

test('B142 cancelling is acknowledged, also of a task that has ended, but not where the server refuses it, nor of one that is unknown', async () => {
  await using gateway = await startGateway({
    servers: {
      a: taskServer('legacy http', {
        'tasks/cancel': (turn) => turn.fail(-32602, 'already terminal'),
        'tasks/get': () => ({ ...TASK, status: 'completed' }),
      }),
    },
  })
  await using host = await modernHttp.connect(gateway, able)
  const { taskId } = await host.call('tools/call', { name: 'a__may' })
  const acknowledged = await host.call('tasks/cancel', { taskId })
  expect(acknowledged).toMatchObject({ resultType: 'complete' })
  expect(acknowledged).not.toHaveProperty('taskId')
  expect((await gateway.fake('a').until('tasks/cancel')).params['taskId']).toBe('orig-1')
  gateway.fake('a').on('tasks/get', () => ({ ...TASK, status: 'working' }))
  await expect(host.call('tasks/cancel', { taskId })).rejects.toMatchObject({ code: -32602, message: 'already terminal' })
  gateway.fake('a').on('tasks/get', (turn) => turn.fail(-32602, 'Task not found'))
  for (const method of ['tasks/cancel', 'tasks/get'])
    await expect(host.call(method, { taskId })).rejects.toMatchObject({ code: -32602 })
})

test('a status notification of the server reaches a listening modern host with all that tasks/get would say', async () => {
  await using gateway = await startGateway({
    servers: {
      a: taskServer('legacy http', { 'tasks/get': () => ({ ...TASK, status: 'completed' }), 'tasks/result': () => RESULT }),
    },
  })
  await using host = await modernHttp.connect(gateway, able)
  const { taskId } = await host.call('tools/call', { name: 'a__may' })
  const stream = host.begin('subscriptions/listen', { notifications: { taskIds: [taskId] } })
  await stream.messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
  const { connection } = await gateway.fake('a').until('tools/call')
  connection.say(
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: { ...TASK, status: 'completed' } }),
  )
  const told = await stream.messages.until(({ method }) => method === 'notifications/tasks')
  stream.cancel()
  const result = { content: [{ ...link, uri: 'a+file:///r' }] }
  expect(told.params).toMatchObject({ ...MODERN_TASK, taskId, status: 'completed', result })
})

test('B122 a status is not told on a stream that its host has cancelled while the task was read', async () => {
  const { promise: read, resolve: isRead } = Promise.withResolvers<void>()
  await using gateway = await startGateway({
    servers: { a: taskServer('legacy http', { 'tasks/get': async () => (await read, TASK) }) },
  })
  await using host = await modernPipe.connect(gateway, able)
  const { taskId } = await host.call('tools/call', { name: 'a__may' })
  const stream = host.begin('subscriptions/listen', { notifications: { taskIds: [taskId] } })
  await host.heard.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
  const { connection } = await gateway.fake('a').until('tools/call')
  connection.say(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: TASK }))
  await gateway.fake('a').until('tasks/get')
  stream.cancel()
  await host.call('tools/list')
  isRead()
  await host.call('tasks/get', { taskId })
  expect(host.heard.entries.map(({ method }) => method)).toEqual(['notifications/subscriptions/acknowledged'])
})

test('a task that one host made can be followed by a host of the other era, and by nobody with a made-up id', async () => {
  await using gateway = await startGateway({ servers: { a: taskServer() } })
  await using modern = await modernHttp.connect(gateway, able)
  await using legacy = await legacyHttp.connect(gateway)
  const { taskId } = await modern.call('tools/call', { name: 'a__may' })
  expect(await legacy.call('tasks/get', { taskId })).toEqual({ ...TASK, taskId })
  const forged = String(taskId).replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  for (const { call } of [modern, legacy].map((host) => ({ call: host.call.bind(host) })))
    await expect(call('tasks/get', { taskId: forged })).rejects.toMatchObject({ code: -32602 })
})
