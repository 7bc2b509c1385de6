/** Which link a request about a task takes, and how long a task keeps its link open (BRIDGING 3.17). */
import { describe, expect, test } from 'vitest'
import { ownerOf } from '../../../src/downstream/link-owner.ts'
import type { LinkOwner } from '../../../src/downstream/link-owner.ts'
import { LinkTaskTable } from '../../../src/downstream/links/link-task-table.ts'
import type { Sharing } from '../../../src/downstream/options.ts'
import { complete, ServerError } from '../../../src/rpc/call.ts'
import type { Call, HostSession, Outcome } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const DAY_MS = 24 * 3_600_000
const ownerNamed = (key: string, principal = 'P', isolation: Sharing = 'session'): LinkOwner =>
  ownerOf({ key, isolation, principal, declared: {}, clientInfo: undefined, revision: undefined })
// Casts: what is used of each.
const sessionNamed = (id: string): HostSession => ({ id }) as HostSession
const about = (method: string, principal = 'P', session?: HostSession): Call =>
  ({ method, target: '1', caller: { principal, session } }) as unknown as Call
const START = about('tools/call')
const task = (ttlMs: unknown): Outcome => ({ kind: 'task', result: Payload.of({ taskId: '1', ttlMs }) })

const setUp = () => {
  const clock = { nowMs: 1_000_000 }
  const table = new LinkTaskTable(() => clock.nowMs)
  const owner = ownerNamed('own')
  return { clock, table, owner }
}

test('B177 a request about a task takes the link of its session, else the latest one of its principal or a shared one', () => {
  const { table } = setUp()
  const [first, second, other, shared] = [ownerNamed('1'), ownerNamed('2'), ownerNamed('3', 'Q'), ownerNamed('4', 'R', 'shared')]
  const session = sessionNamed('s')
  first.sessions.add(session)
  for (const owner of [first, second, other]) table.track(START, task(null), owner)
  expect(table.ownerFor(about('tasks/get', 'P', session))).toBe(first)
  expect(table.ownerFor(about('tasks/get', 'P', sessionNamed('t')))).toBe(second)
  expect(table.ownerFor(about('tasks/cancel', 'P'))).toBe(second)
  expect(table.ownerFor(about('tasks/result', 'Q', session))).toBe(other)
  expect(table.ownerFor(about('tasks/get', 'nobody'))).toBeUndefined()
  expect(table.ownerFor(about('tools/call'))).toBeUndefined()
  table.track(START, task(null), shared)
  expect(table.ownerFor(about('tasks/get', 'nobody'))).toBe(shared)
  // A link that starts a task of this id again is the latest one.
  table.removeOf(shared)
  table.track(START, task(null), first)
  expect(table.ownerFor(about('tasks/get', 'P'))).toBe(first)
})

describe('a task keeps its link open', () => {
  const working = complete(Payload.of({ status: 'working' }))
  const completed = complete(Payload.of({ status: 'completed' }))
  const unknown = new ServerError(-32602, 'no such task', Payload.of({}))
  const broken = new ServerError(-32603, 'it broke', Payload.of({}))
  const lost = new Failure('lost', 'the connection broke')

  test.each<[string, Call, Outcome, isNeeded: boolean]>([
    ['while it works', about('tasks/get'), working, true],
    ['until it is completed', about('tasks/get'), completed, false],
    ['until its result was told', about('tasks/result'), working, false],
    ['until it was cancelled', about('tasks/cancel'), working, false],
    ['whatever a tool says of its own state', about('tools/call'), completed, true],
  ])('%s', (_, call, outcome, isNeeded) => {
    const { table, owner } = setUp()
    table.track(START, task(null), owner)
    table.track(call, outcome, owner)
    expect(table.needs(owner)).toBe(isNeeded)
  })

  test.each<[string, Call, unknown, isNeeded: boolean]>([
    ['until the server does not know it', about('tasks/get'), unknown, false],
    ['until an error is its result', about('tasks/result'), broken, false],
    ['though its state cannot be told now', about('tasks/get'), broken, true],
    ['though its result was lost', about('tasks/result'), lost, true],
    ['though it cannot be cancelled', about('tasks/cancel'), unknown, true],
  ])('%s', (_, call, error, isNeeded) => {
    const { table, owner } = setUp()
    table.track(START, task(null), owner)
    table.trackError(call, error, owner)
    expect(table.needs(owner)).toBe(isNeeded)
  })

  test.each<[string, ttlMs: unknown, heldMs: number]>([
    ['for as long as the server says', 5_000, 5_000],
    ['for a day, at most', 10 * DAY_MS, DAY_MS],
    ['for a day where the server says nothing', null, DAY_MS],
  ])('%s', (_, ttlMs, heldMs) => {
    const { clock, table, owner } = setUp()
    table.track(START, task(ttlMs), owner)
    clock.nowMs += heldMs
    table.removeExpired()
    expect(table.needs(owner)).toBe(true)
    clock.nowMs += 1
    table.removeExpired()
    expect([table.needs(owner), table.ownerFor(about('tasks/get'))]).toEqual([false, undefined])
  })

  test('of its own only: the end on one link is none on another, and the main link speaks for all', () => {
    const { table, owner } = setUp()
    const other = ownerNamed('other')
    for (const one of [owner, other]) table.track(START, task(null), one)
    table.ended('1', owner)
    expect([table.needs(owner), table.needs(other)]).toEqual([false, true])
    table.ended('2', undefined)
    expect(table.needs(other)).toBe(true)
    table.ended('1', undefined)
    expect(table.needs(other)).toBe(false)
  })
})
