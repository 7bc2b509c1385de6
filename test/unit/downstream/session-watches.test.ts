/** Resources that sessions watch on links of their own (B284). */
import { expect, test, vi } from 'vitest'
import { SessionWatches } from '../../../src/downstream/calls/session-watches.ts'
import { ownerOf } from '../../../src/downstream/link-owner.ts'
import type { Sharing } from '../../../src/downstream/options.ts'
import type { Link } from '../../../src/era/server/link.ts'
import type { HostSession } from '../../../src/rpc/call.ts'
import type { Payload } from '../../../src/wire/message/payload.ts'

const URI = 'x://r'

const setUp = (server?: string) => {
  const failed = vi.fn<(error: unknown) => void>()
  const updated = vi.fn()
  // Cast: what is used of a session.
  const session = { id: 's', updated, scope: { server } } as unknown as HostSession
  return { watches: new SessionWatches(failed), failed, session, updated }
}

/** A link of the session, whose server answers each subscription as told. */
const linkOf = (session: HostSession, answer: () => Promise<boolean> = async () => true, isolation: Sharing = 'session') => {
  const owner = ownerOf({ key: 'k', isolation, principal: 'P', declared: {}, clientInfo: undefined, revision: undefined })
  owner.sessions.add(session)
  const subscribe = vi.fn<(uri: string) => Promise<boolean>>(answer)
  const unsubscribe = vi.fn<(uri: string) => Promise<void>>(async () => undefined)
  // Cast: what is used of a link.
  return { owner, link: { subscribe, unsubscribe } as unknown as Link, subscribe, unsubscribe }
}

test('B284 a resource is watched once on the own link, and no more once the session says so or the link is closed', async () => {
  const { watches, session } = setUp()
  const own = linkOf(session)
  for (let times = 0; times < 2; times++) await watches.add(session, URI, [own])
  expect([own.subscribe.mock.calls, watches.isOwn(session, URI), watches.isOwn(session, 'x://other')]).toEqual([
    [[URI]],
    true,
    false,
  ])
  watches.closed(own.owner)
  expect(watches.isOwn(session, URI)).toBe(false)
  await watches.opened(own)
  expect([own.subscribe.mock.calls.length, watches.isOwn(session, URI)]).toEqual([2, true])
  const other = linkOf(session)
  watches.closed(other.owner)
  expect(watches.isOwn(session, URI)).toBe(true)
  watches.remove(session, URI, [other, own])
  expect([own.unsubscribe.mock.calls, other.unsubscribe.mock.calls, watches.isOwn(session, URI)]).toEqual([[[URI]], [], false])
  await watches.opened(own)
  expect(own.subscribe).toHaveBeenCalledTimes(2)
})

test('B284 links of several sessions do not watch for one of them, and what a server refuses or is asked in vain is not its own', async () => {
  const { watches, session, failed } = setUp()
  const error = new Error('no')
  const shared = linkOf(session, async () => true, 'shared')
  const [refusing, silent] = [linkOf(session, () => Promise.reject(error)), linkOf(session, async () => false)]
  await watches.add(session, URI, [shared, refusing, silent])
  expect([shared.subscribe.mock.calls.length, refusing.subscribe.mock.calls.length]).toEqual([0, 1])
  expect([watches.isOwn(session, URI), failed.mock.calls]).toEqual([false, [[error]]])
})

test('B284 a resource that is left before the server has answered stays left', async () => {
  const { watches, session } = setUp()
  const answer = Promise.withResolvers<boolean>()
  const own = linkOf(session, () => answer.promise)
  const added = watches.add(session, URI, [own])
  watches.remove(session, URI, [own])
  answer.resolve(true)
  await added
  expect(watches.isOwn(session, URI)).toBe(false)
})

test('B284 the only host of a pipe is told of its resources on a new link, which may have changed', async () => {
  const { watches, session, failed, updated } = setUp()
  await watches.again(session, linkOf(session).link)
  expect(updated).not.toHaveBeenCalled()
  for (const uri of ['x://a', 'x://b', 'x://c']) watches.note(session, uri, undefined)
  watches.note(session, 'x://b', undefined, false)
  const error = new Error('no')
  const refusing = linkOf(session, vi.fn<() => Promise<boolean>>().mockRejectedValueOnce(error).mockResolvedValue(true))
  await watches.again(session, refusing.link)
  expect(refusing.subscribe.mock.calls).toEqual([['x://a'], ['x://c']])
  expect([updated.mock.calls.length, failed.mock.calls]).toEqual([1, [[error]]])
  await watches.again(session, linkOf(session, async () => false).link)
  expect(updated).toHaveBeenCalledOnce()
})

test('B277 what a host at a bridge has subscribed to belongs to the link that took it', () => {
  const { watches, session } = setUp()
  const { owner } = linkOf(session)
  watches.note(session, URI, owner)
  expect(watches.isOwn(session, URI)).toBe(true)
  watches.note(session, URI, owner, false)
  expect(watches.isOwn(session, URI)).toBe(false)
})

test('B134 a host at a bridge is notified of what its closed link watched, and nobody of what other links watch', async () => {
  const { watches, session, updated } = setUp('a')
  const [own, other] = [linkOf(session), linkOf(session)]
  await watches.add(session, URI, [own])
  watches.note(session, 'x://main', undefined)
  watches.closed(other.owner)
  expect(updated).not.toHaveBeenCalled()
  watches.closed(own.owner)
  watches.closed(own.owner)
  expect(updated.mock.calls.flat().map((params: Payload) => params.final('uri')?.toString())).toEqual([JSON.stringify(URI)])
  const merged = setUp()
  const link = linkOf(merged.session)
  await merged.watches.add(merged.session, URI, [link])
  merged.watches.closed(link.owner)
  expect(merged.updated).not.toHaveBeenCalled()
})

test('B257 how many other resources a session watches', () => {
  const { watches, session } = setUp()
  expect(watches.othersThan(session, URI)).toBe(0)
  for (const uri of [URI, 'x://s']) watches.note(session, uri, undefined)
  expect(['x://t', URI].map((uri) => watches.othersThan(session, uri))).toEqual([2, 1])
  watches.note(session, URI, undefined, false)
  expect(watches.othersThan(session, URI)).toBe(1)
})
