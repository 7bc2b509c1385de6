/** Which server a subscription goes to: of its listed resource, or of the bridge (BRIDGING 3.8, 3.20). */
import { expect, test, vi } from 'vitest'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import { Views } from '../../../src/catalog/view/view.ts'
import type { View } from '../../../src/catalog/view/view.ts'
import type { Downstream } from '../../../src/downstream/downstream.ts'
import type { Fleet } from '../../../src/downstream/fleet.ts'
import type { Access } from '../../../src/gateway/access.ts'
import { ResourceSubscriptions } from '../../../src/gateway/resource-subscriptions.ts'
import type { Subscriber } from '../../../src/gateway/subscriptions.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'
import type { HostSession } from '../../../src/rpc/call.ts'
import { callOf } from '../../support/calls.ts'
import { ALWAYS, resourceOf, serverOf, sourceOf } from '../catalog/fixtures.ts'

interface Case {
  readonly uri: string
  /** The server of a bridge. */
  readonly at?: string
  readonly isListed?: boolean
  readonly onChange?: 'allow' | 'hold'
  readonly leftOut?: readonly object[]
}

/** The route that the policy is asked about, before it denies the subscription; `undefined`: it is not asked. */
const routeOf = async ({ uri, at, isListed = true, onChange = 'allow', leftOut = [] }: Case) => {
  const server = serverOf('a')
  const downstream = {
    options: { ...server, onChange, hidden: 'warn' },
    inventory$: { value: { leftOut } },
  } as unknown as Downstream
  const catalog = buildCatalog(isListed ? [sourceOf(server, { resources: [resourceOf('x:1')] })] : [], ALWAYS)
  const check = vi.fn(async (_placed: Parameters<Access['check']>[0]) => {
    throw new Failure('forbidden', 'no')
  })
  const view = new Views().of(catalog, { revision: '2026-07-28', ...(at !== undefined && { only: at }) })
  const subscriptions = new ResourceSubscriptions({
    feed: { viewOf: () => view },
    fleet: { for: (key: string) => (key === 'a' ? downstream : undefined) } as unknown as Fleet,
    access: { check, mayWatch: () => true } as unknown as Access,
    relay: () => Promise.reject(new Error('not relayed')),
    max: () => 10,
  })
  const { caller } = callOf({ caller: { scope: { server: at } } })
  expect(await subscriptions.add({} as Subscriber, caller, uri)).toBe(false)
  const [placed] = check.mock.calls.flat()
  expect(placed?.downstream).toBe(placed && downstream)
  return placed && { server: placed.route.serverKey, original: placed.route.original, isListed: placed.route.entry !== undefined }
}

const listed = { server: 'a', original: 'x:1', isListed: true }
const unlisted = { server: 'a', original: 'x:9', isListed: false }
const BRIDGE: Case = { uri: 'x:9', at: 'a', isListed: false }

test.each<[string, Case, object]>([
  ['a listed resource', { uri: 'a+x:1' }, listed],
  ['a listed resource of a bridge', { uri: 'x:1', at: 'a' }, listed],
  ['any resource of a bridge that has no lists yet', BRIDGE, unlisted],
])('B278 a subscription to %s goes to its server', async (_, made, route) => {
  expect(await routeOf(made)).toEqual(route)
})

test.each<[string, Case]>([
  ['a resource that no server has', { uri: 'x:9' }],
  ['a resource of a bridge to a missing server', { ...BRIDGE, at: 'b' }],
  ['an unlisted resource of a bridge with rules', { ...BRIDGE, onChange: 'hold' }],
  ['a resource of a bridge that was refused', { ...BRIDGE, leftOut: [{ name: 'x:9', isRefused: true }] }],
])('B278 a subscription to %s goes to no server', async (_, made) => {
  expect(await routeOf(made)).toBeUndefined()
})

/** A server of `https://x/1`, with a list that the test replaces, and a policy that the test delays. */
const makeWatched = () => {
  const server = serverOf('a')
  const viewWith = (...uris: readonly string[]) =>
    new Views().of(buildCatalog([sourceOf(server, { resources: uris.map((uri) => resourceOf(uri)) })], ALWAYS), {
      revision: '2025-11-25',
    })
  const hiding = { showsUri: () => false } as unknown as View
  const at = { view: viewWith('https://x/1'), checked: Promise.resolve() as Promise<unknown> }
  const server_ = { id: 'a', subscribe: vi.fn(async () => true), unsubscribe: vi.fn(async () => undefined) }
  const unwatchFor = vi.fn()
  const sessions = { watchFor: async () => undefined, unwatchFor }
  const downstream = { options: server, id: 'a', subscriptions: server_, sessions } as unknown as Downstream
  const get = (key: string): Downstream | undefined => (key === 'a' ? downstream : undefined)
  const subscriptions = new ResourceSubscriptions({
    feed: { viewOf: ({ scope }) => (scope.granted === '' ? hiding : at.view) },
    fleet: { for: get, find: get } as unknown as Fleet,
    access: { check: () => at.checked, mayWatch: () => true } as unknown as Access,
    relay: () => Promise.reject(new Error('not relayed')),
    max: () => 1,
  })
  const session = { id: '1', scope: EVERYTHING, updated: vi.fn() } as unknown as HostSession & Subscriber
  const { caller } = callOf({ caller: { session, revision: '2025-11-25' } })
  const send = (verb: string, uri: string): Promise<unknown> =>
    subscriptions.serve(callOf({ method: `resources/${verb}`, target: uri, caller }), undefined)
  return { at, viewWith, ...server_, unwatchFor, subscriptions, session, caller, send }
}

test('B131 a host that leaves while the policy decides on its subscription leaves nothing behind', async () => {
  const { at, subscribe, subscriptions, session, caller } = makeWatched()
  const { promise, resolve } = Promise.withResolvers<undefined>()
  at.checked = promise
  const added = subscriptions.add(session, caller, 'https://x/1')
  subscriptions.release(session)
  resolve(undefined)
  expect(await added).toBe(false)
  expect(subscribe).not.toHaveBeenCalled()
})

test('B132 a resource that its server no longer lists can be left, and counts no longer', async () => {
  const { at, viewWith, subscribe, unsubscribe, unwatchFor, session, send } = makeWatched()
  await send('subscribe', 'https://x/1')
  at.view = viewWith('https://x/2')
  await send('unsubscribe', 'https://x/1')
  expect(unwatchFor.mock.calls).toEqual([[session, 'https://x/1']])
  await vi.waitFor(() => expect(unsubscribe.mock.calls).toEqual([['https://x/1']]))
  await send('subscribe', 'https://x/2')
  expect(subscribe.mock.calls).toEqual([['https://x/1'], ['https://x/2']])
})

test('B236 a session whose token reaches less far now gets no update of what it no longer sees', async () => {
  const { subscriptions, session, send } = makeWatched()
  await send('subscribe', 'https://x/1')
  const change = (): void => subscriptions.updated('a', 'https://x/1', Payload.of({ uri: 'https://x/1' }), {})
  change()
  Object.assign(session, { scope: { ...EVERYTHING, granted: '' } })
  change()
  expect(session.updated).toHaveBeenCalledOnce()
})
