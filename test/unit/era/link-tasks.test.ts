/** What a link knows of the tasks of a legacy server, and for how long (BRIDGING 3.17). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LinkTasks } from '../../../src/era/server/link-tasks.ts'
import type { Call } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const modern = { caller: { session: undefined, capabilities: TASKS } } as unknown as Call
const plain = { caller: { session: undefined, capabilities: {} } } as unknown as Call
const about = (method: string): Call => ({ ...modern, method, target: '1' })
const question = { method: 'elicitation/create', params: Payload.of({ message: 'Sure?' }) }

const makeTasks = (status = 'working') => {
  const asked: string[] = []
  const tasks = new LinkTasks(async (method) => {
    asked.push(method)
    return Payload.of(method === 'tasks/get' ? { taskId: '1', status, ttl: 5_000 } : { content: [] })
  })
  return { tasks, asked }
}
const create = (tasks: LinkTasks, creator: Call, onEnd: () => void = () => undefined): void =>
  tasks.created('1', Payload.of({ taskId: '1', ttlMs: 5_000 }), creator, onEnd)

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

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
