/** What the gateway follows at one server over its main link (BRIDGING 3.8, 3.17). */
import { expect, test, vi } from 'vitest'
import { MainSubscriptions } from '../../../src/downstream/main-subscriptions.ts'
import type { Link } from '../../../src/era/server/link.ts'

test('B132 a task that is left before its server is connected is not followed afterwards', async () => {
  const { promise: ready, resolve: connect } = Promise.withResolvers<Link>()
  const link = { followTask: vi.fn(async () => undefined), unfollowTask: vi.fn(async () => undefined) }
  const subscriptions = new MainSubscriptions({
    id: 'a',
    credential: undefined,
    main: { current: undefined },
    supervisor: { ready: () => ready },
    // Cast: only these are used.
  } as unknown as ConstructorParameters<typeof MainSubscriptions>[0])
  const following = ['1', '2'].map((id) => subscriptions.followTask(id))
  await subscriptions.unfollowTask('1')
  connect(link as unknown as Link)
  await Promise.all(following)
  expect(link.followTask.mock.calls).toEqual([['2']])
})

test('B055 a resource whose server offers no subscription is not watched, so that it keeps no connection open', async () => {
  const link = { subscribe: vi.fn(async (uri: string) => uri === 'x:1'), unsubscribe: vi.fn(async () => undefined) }
  const subscriptions = new MainSubscriptions({
    id: 'a',
    credential: undefined,
    main: { current: link, over: (_: unknown, use: () => unknown) => use() },
    supervisor: { ready: async () => link },
    // Cast: only these are used.
  } as unknown as ConstructorParameters<typeof MainSubscriptions>[0])
  expect([await subscriptions.subscribe('x:2'), subscriptions.isEmpty]).toEqual([false, true])
  expect([await subscriptions.subscribe('x:1'), subscriptions.isEmpty]).toEqual([true, false])
  await subscriptions.unsubscribe('x:1')
  expect(subscriptions.isEmpty).toBe(true)
})
