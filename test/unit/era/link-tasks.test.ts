/** What a link knows of the tasks of a legacy server, and for how long (BRIDGING 3.17). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { LinkTasks } from '../../../src/era/server/link-tasks.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import type { Answer, Call, Question } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const ASKED = { ...TASKS, elicitation: {}, roots: {} }
const modern = { caller: { session: undefined, capabilities: ASKED } } as unknown as Call
const plain = { caller: { session: undefined, capabilities: {} } } as unknown as Call
const about = (method: string): Call => ({ ...modern, method, target: '1' })
const question = { method: 'elicitation/create', params: Payload.of({ message: 'Sure?' }) }

const IDLE = (): number => 300_000

const makeTasks = (status = 'working') => {
  const asked: string[] = []
  const tasks = new LinkTasks(async (method) => {
    asked.push(method)
    return Payload.of(method === 'tasks/get' ? { taskId: '1', status, ttl: 5_000 } : { content: [] })
  }, IDLE)
  return { tasks, asked }
}
const create = (tasks: LinkTasks, creator: Call, onEnd: () => void = () => undefined): void =>
  tasks.created('1', Payload.of({ taskId: '1', ttlMs: 5_000 }), creator, onEnd)

beforeEach(() => void vi.useFakeTimers())

test('a task that expires takes its questions along, its progress and whoever made it', async () => {
  const { tasks } = makeTasks()
  const onEnd = vi.fn()
  create(tasks, modern, onEnd)
  const answer = tasks.ask('1', question)
  expect(tasks.creatorOf('1')).toBe(modern)
  vi.advanceTimersByTime(5_000)
  expect(await answer).toMatchObject({ result: { members: [{ key: 'action' }] } })
  expect(onEnd).toHaveBeenCalled()
  expect([tasks.creatorOf('1'), tasks.ask('1', question)]).toEqual([undefined, undefined])
})

test('a task of an id that was used before begins afresh', async () => {
  const { tasks } = makeTasks()
  const onEnd = vi.fn()
  create(tasks, modern, onEnd)
  const answer = tasks.ask('1', question)
  vi.advanceTimersByTime(4_000)
  create(tasks, modern)
  expect(await answer).toHaveProperty('result')
  expect(onEnd).toHaveBeenCalled()
  const task = (await tasks.handle(about('tasks/get'))).result as Payload
  expect([task.text('status'), task.has('inputRequests')]).toEqual(['working', false])
  vi.advanceTimersByTime(4_000)
  expect(tasks.creatorOf('1'), 'the lifetime is its own').toBe(modern)
})

test('the result is kept for those who look at the task in modern words, and for nobody else', async () => {
  for (const [creator, fetched] of [
    [modern, 1],
    [plain, 2],
  ] as const) {
    const { tasks, asked } = makeTasks('completed')
    create(tasks, creator)
    for (let look = 0; look < 2; look++) await tasks.handle(about('tasks/get'))
    expect(asked.filter((method) => method === 'tasks/result')).toHaveLength(creator === plain ? 2 : fetched)
    if (creator === plain) expect(tasks.creatorOf('1')).toBeUndefined()
  }
})

const RELATED = 'io.modelcontextprotocol/related-task'
const textOf = (payload: unknown): string => Buffer.concat([(payload as Payload).parts()].flat(2)).toString()
const read = (payload: unknown): object => JSON.parse(textOf(payload)) as object

/** Tasks whose server answers as said, with a failure for what is not said. */
const answering = (answers: Readonly<Record<string, object | Error>>) => {
  const asked: string[] = []
  const tasks = new LinkTasks((method) => {
    asked.push(method)
    const answer = answers[method] ?? new Error(`${method} was not expected`)
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(Payload.of(answer))
  }, IDLE)
  const handle = async (method: string, responses?: object): Promise<object> =>
    read(
      (await tasks.handle({ ...about(method), resume: responses && { responses: Payload.of(responses) } } as unknown as Call))
        .result,
    )
  return { tasks, asked, handle }
}

test.each<[result: object | Error, shown: object]>([
  [
    { n: 1, _meta: { [RELATED]: { taskId: '1' } } },
    { status: 'completed', result: { n: 1 } },
  ],
  [{ isError: true }, { status: 'completed', result: { isError: true } }],
  [new ServerError(5, 'no', Payload.of({ code: 5, message: 'no' })), { status: 'failed', error: { code: 5, message: 'no' } }],
])('B180 a task that ended is shown with its outcome: %s', async (result, shown) => {
  const { tasks, handle } = answering({ 'tasks/get': { taskId: '1', status: 'failed' }, 'tasks/result': result })
  create(tasks, modern)
  expect(await handle('tasks/get')).toEqual({ taskId: '1', ttlMs: null, ...shown })
})

test('a task that was cancelled has no outcome, and a link that fails is asked for it again', async () => {
  const cancelled = answering({ 'tasks/get': { taskId: '1', status: 'cancelled' } })
  expect(await cancelled.handle('tasks/get')).toEqual({ taskId: '1', ttlMs: null, status: 'cancelled' })
  const { handle, asked } = answering({ 'tasks/get': { status: 'completed' }, 'tasks/result': new Error('lost') })
  for (const _ of [1, 2]) await expect(handle('tasks/get')).rejects.toThrow('lost')
  expect(asked.filter((method) => method === 'tasks/result')).toHaveLength(2)
})

test('a task without questions is working, whatever its server says, and one with questions waits for input', async () => {
  const { tasks, handle, asked } = answering({
    'tasks/get': { taskId: '1', status: 'input_required' },
    'tasks/result': new Error('late'),
  })
  create(tasks, modern)
  const shown = handle('tasks/get')
  await vi.advanceTimersByTimeAsync(499)
  expect(asked).toEqual(['tasks/get', 'tasks/result'])
  await vi.advanceTimersByTimeAsync(1)
  expect(await shown).toMatchObject({ status: 'working' })
  const again = handle('tasks/get')
  await vi.advanceTimersByTimeAsync(10)
  const params = Payload.of({ message: 'Sure?', _meta: { [RELATED]: { taskId: '1' } } })
  void tasks.ask('1', { method: 'elicitation/create', params })
  expect(await again).toMatchObject({
    status: 'input_required',
    inputRequests: { 'input-1': { method: 'elicitation/create', params: { message: 'Sure?' } } },
  })
  void tasks.ask('1', { method: 'roots/list', params: undefined })
  const both = (await handle('tasks/get')) as { inputRequests: object }
  expect(both.inputRequests).toEqual({
    'input-1': { method: 'elicitation/create', params: { message: 'Sure?' } },
    'input-2': { method: 'roots/list' },
  })
})

test('B059 a question that the creator of a task did not declare is refused at once, and is not shown', async () => {
  const { tasks, handle } = answering({ 'tasks/get': { taskId: '1', status: 'working' } })
  const forms = { caller: { session: undefined, capabilities: { ...TASKS, elicitation: { form: {} } } } } as unknown as Call
  create(tasks, forms)
  const url = { method: 'elicitation/create', params: Payload.of({ mode: 'url', message: 'Go', url: 'https://x/' }) }
  for (const asked of [url, { method: 'sampling/createMessage', params: Payload.of({}) }])
    expect(await tasks.ask('1', asked)).toHaveProperty('error')
  expect(await handle('tasks/get')).toMatchObject({ status: 'working' })
  void tasks.ask('1', question)
  expect(await handle('tasks/get')).toMatchObject({ status: 'input_required', inputRequests: { 'input-1': {} } })
})

describe('tasks/update', () => {
  const asking = () => {
    const scene = answering({ 'tasks/get': { taskId: '1', status: 'working', ttl: 1_000 } })
    create(scene.tasks, modern)
    const withdraw: (() => void)[] = []
    const answers = ['a', 'b'].map((message) => {
      const onWithdrawn: Question['onWithdrawn'] = (callback) => withdraw.push(() => callback(Payload.of({})))
      return scene.tasks.ask('1', { method: 'elicitation/create', params: Payload.of({ message }), onWithdrawn })!
    })
    return { ...scene, answers, withdraw }
  }
  const accepted = { action: 'accept', content: {} }

  test('delivers the answers it has, each once, and ignores unknown keys', async () => {
    const { handle, answers } = asking()
    expect(await handle('tasks/update', { 'input-1': accepted, other: 5 })).toEqual({})
    const answer = await answers[0]
    expect(read(answer && 'result' in answer && answer.result)).toEqual({ ...accepted, _meta: { [RELATED]: { taskId: '1' } } })
    await handle('tasks/update', { 'input-1': 'not an answer' })
    expect(((await handle('tasks/get')) as { inputRequests: object }).inputRequests).toEqual({
      'input-2': expect.anything() as unknown,
    })
  })

  test('delivers nothing where one answer is malformed', async () => {
    const { handle } = asking()
    await expect(handle('tasks/update', { 'input-1': accepted, 'input-2': { action: 'yes' } })).rejects.toMatchObject({
      code: -32602,
    })
    await expect(handle('tasks/update')).rejects.toMatchObject({ code: -32602 })
    expect(Object.keys(((await handle('tasks/get')) as { inputRequests: object }).inputRequests)).toEqual(['input-1', 'input-2'])
  })

  test('of a task from before a restart takes its lifetime from the server', async () => {
    const { handle, asked, tasks } = answering({ 'tasks/get': { taskId: '1', status: 'working', ttl: 1_000 } })
    await handle('tasks/update', {})
    await handle('tasks/update', {})
    expect(asked).toEqual(['tasks/get'])
    const answer = tasks.ask('1', question)
    vi.advanceTimersByTime(1_000)
    expect(await answer).toHaveProperty('result')
    expect(tasks.ask('1', question)).toBeUndefined()
  })

  test('is not needed for a question that its server withdraws', async () => {
    const { handle, answers, withdraw } = asking()
    withdraw[0]?.()
    expect(await answers[0]).toHaveProperty('result')
    expect(Object.keys(((await handle('tasks/get')) as { inputRequests: object }).inputRequests)).toEqual(['input-2'])
  })
})

describe('tasks/cancel', () => {
  const UNKNOWN = new ServerError(-32602, 'ended', Payload.of({}))
  test.each<[answers: Readonly<Record<string, object | Error>>, isFine: boolean]>([
    [{ 'tasks/cancel': {} }, true],
    [{ 'tasks/cancel': UNKNOWN, 'tasks/get': { status: 'completed' } }, true],
    [{ 'tasks/cancel': UNKNOWN, 'tasks/get': { status: 'working' } }, false],
    [{ 'tasks/cancel': new ServerError(-32601, 'no', Payload.of({})), 'tasks/get': { status: 'completed' } }, false],
    [{ 'tasks/cancel': new Error('lost'), 'tasks/get': { status: 'completed' } }, false],
  ])('answered with %j is fine: %s, and ends what the task asked', async (answers, isFine) => {
    const { tasks, handle } = answering(answers)
    const onEnd = vi.fn()
    create(tasks, modern, onEnd)
    const answer: Promise<Answer> | undefined = tasks.ask('1', question)
    if (!isFine) return expect(handle('tasks/cancel')).rejects.toThrow()
    expect(await handle('tasks/cancel')).toEqual({})
    expect([await answer, onEnd.mock.calls.length]).toEqual([
      expect.objectContaining({ result: expect.anything() as unknown }),
      1,
    ])
  })
})

test('a status ends what a task holds: its follower may still look, a plain creator is forgotten; so does the end of the link', async () => {
  const { tasks } = makeTasks()
  const ends = [vi.fn(), vi.fn(), vi.fn()] as const
  tasks.created('1', Payload.of({}), modern, ends[0])
  tasks.created('2', Payload.of({}), plain, ends[1])
  tasks.created('3', Payload.of({}), modern, ends[2])
  for (const [id, status] of [
    ['1', 'working'],
    ['1', undefined],
    [undefined, 'completed'],
    ['9', 'completed'],
  ] as const)
    tasks.observe(id, status)
  expect(ends.map((end) => end.mock.calls.length)).toEqual([0, 0, 0])
  tasks.observe('1', 'completed')
  tasks.observe('2', 'failed')
  expect(ends.map((end) => end.mock.calls.length)).toEqual([1, 1, 0])
  expect([tasks.creatorOf('1'), tasks.creatorOf('2')]).toEqual([modern, undefined])
  const answer = tasks.ask('3', question)
  tasks.close()
  expect([(await answer) !== undefined, tasks.creatorOf('3'), ends[2].mock.calls.length]).toEqual([true, undefined, 1])
})

test.each(['completed', 'cancelled'])(
  'B145 a question that is open when its task is %s is not waited for any longer',
  async (status) => {
    const { tasks } = makeTasks()
    create(tasks, modern)
    const answered = vi.fn()
    void tasks.ask('1', question)?.then(answered)
    tasks.observe('1', status)
    await vi.advanceTimersByTimeAsync(0)
    expect(answered.mock.calls).toEqual([[{ result: expect.anything() as unknown }]])
    expect(tasks.creatorOf('1')).toBe(modern)
  },
)
