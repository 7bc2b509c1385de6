/** What is known of a task is forgotten with it (BRIDGING 3.17). */
import { beforeEach, expect, test, vi } from 'vitest'
import type { Reconnected } from '../../../src/downstream/environment.ts'
import { TaskListeners } from '../../../src/gateway/tasks/task-listeners.ts'
import type { Caller, HostSession } from '../../../src/rpc/call.ts'

const makeSession = () => {
  const callbacks: (() => void)[] = []
  const session = { onEnd: (callback: () => void) => void callbacks.push(callback) } as unknown as HostSession
  return { session, callbacks, end: () => callbacks.forEach((callback) => callback()) }
}

beforeEach(() => void vi.useFakeTimers())

test.each<[string, left: number, (listeners: TaskListeners, end: () => void) => void]>([
  ['at its end', 2, (listeners) => listeners.creatorsOf('a', '1')[0]!.forget()],
  ['when its lifetime is over', 1, () => vi.advanceTimersByTime(5_000)],
  ['with its session', 1, (_, end) => end()],
])('a task that a session made is forgotten %s', (_, left, finish) => {
  const listeners = new TaskListeners()
  const { session, callbacks, end } = makeSession()
  for (const id of ['1', '2', '1']) listeners.created(session, 'a', id, `t1.a.${id}`, 5_000)
  listeners.created(makeSession().session, 'a', '3', 't1.a.3', null)
  expect(callbacks).toHaveLength(1)
  expect(listeners.creatorsOf('a', '1')).toMatchObject([{ session, exposed: 't1.a.1' }])
  finish(listeners, end)
  expect(listeners.creatorsOf('a', '1')).toEqual([])
  expect(listeners.creatorsOf('a', '3')).toHaveLength(1)
  // Nothing else is left of it either.
  expect([listeners.sizes.created, vi.getTimerCount()]).toEqual([left, left])
})

test('one session cannot push out the tasks of another', () => {
  const listeners = new TaskListeners()
  const [one, two] = [makeSession().session, makeSession().session]
  listeners.created(two, 'a', 'mine', 't1.a.mine', null)
  for (let id = 0; id < 3_000; id++) listeners.created(one, 'a', String(id), `t1.a.${id}`, null)
  expect(listeners.creatorsOf('a', 'mine')).toHaveLength(1)
  const counts = ['0', '1999', '2000', '2999'].map((id) => listeners.creatorsOf('a', id).length)
  expect(counts).toEqual([0, 0, 1, 1])
  expect(listeners.sizes.created).toBe(1_001)
})

test('two sessions whose servers chose one id are both remembered', () => {
  const listeners = new TaskListeners()
  const sessions = [makeSession().session, makeSession().session]
  for (const session of sessions) listeners.created(session, 'a', '1', 't1.a.1', 5_000)
  expect(listeners.creatorsOf('a', '1').map(({ session }) => session)).toEqual(sessions)
  listeners.creatorsOf('a', '1')[0]?.forget()
  expect(listeners.creatorsOf('a', '1').map(({ session }) => session)).toEqual(sessions.slice(1))
})

test('a followed task that has ended is unfollowed at its server while the stream that named it goes on', () => {
  const listeners = new TaskListeners()
  const followTask = vi.fn(() => Promise.resolve(true))
  const unfollowTask = vi.fn(() => Promise.resolve())
  const server = { id: 'a', followTask, unfollowTask } as unknown as Reconnected
  const subscriber = {}
  for (const id of ['1', '2']) void listeners.add(subscriber, { exposed: id, caller: {} as Caller }, server, id)
  listeners.over(subscriber, 'a', '1')
  expect(unfollowTask.mock.calls).toEqual([['1']])
  listeners.restore(server)
  expect(followTask.mock.calls).toEqual([['1'], ['2'], ['2']])
})

test('a task is followed once for several streams, until the last of them has left', () => {
  const listeners = new TaskListeners()
  const [followTask, unfollowTask] = [vi.fn(() => Promise.resolve(true)), vi.fn(() => Promise.resolve())]
  const server = { id: 'a', followTask, unfollowTask } as unknown as Reconnected
  const caller = {} as Caller
  const [one, two, stranger] = [{ task: vi.fn() }, { task: vi.fn() }, { task: vi.fn() }]
  expect(listeners.followersOf('a', '1')).toEqual([])
  for (const subscriber of [one, two]) void listeners.add(subscriber, { exposed: 'x', caller }, server, '1')
  expect(followTask.mock.calls).toEqual([['1']])
  expect(listeners.followersOf('a', '1').map(([subscriber]) => subscriber)).toEqual([one, two])
  listeners.release(one)
  listeners.release(stranger)
  listeners.over(stranger, 'a', '2')
  expect(listeners.followersOf('a', '1').map(([subscriber]) => subscriber)).toEqual([two])
  expect(unfollowTask).not.toHaveBeenCalled()
  listeners.release(two)
  expect(unfollowTask.mock.calls).toEqual([['1']])
  expect(listeners.sizes.followed).toBe(0)
})

test('after a reconnect a task is unfollowed where it is followed now, and tasks of other servers stay', () => {
  const listeners = new TaskListeners()
  const serverOf = (id: string) => ({
    id,
    followTask: vi.fn(() => Promise.resolve(true)),
    unfollowTask: vi.fn(() => Promise.resolve()),
  })
  const [before, after, other] = [serverOf('a'), serverOf('a'), serverOf('b')]
  const subscriber = {}
  for (const server of [before, other])
    void listeners.add(subscriber, { exposed: 'x', caller: {} as Caller }, server as unknown as Reconnected, '1')
  listeners.restore(after as unknown as Reconnected)
  expect([after.followTask.mock.calls, other.followTask.mock.calls]).toEqual([[['1']], [['1']]])
  listeners.release(subscriber)
  expect([before, after, other].map(({ unfollowTask }) => unfollowTask.mock.calls)).toEqual([[], [['1']], [['1']]])
})
