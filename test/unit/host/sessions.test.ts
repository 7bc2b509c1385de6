import { expect, test, vi } from 'vitest'
import { DEFAULT_HOST_LIMITS } from '../../../src/host/options.ts'
import type { HostLimits } from '../../../src/host/options.ts'
import type { EventLog } from '../../../src/host/response/event-log.ts'
import { Session } from '../../../src/host/session/session.ts'
import { Sessions } from '../../../src/host/session/sessions.ts'
import type { HttpSession } from '../../../src/host/session/sessions.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'
import type { EventStream } from '../../../src/transport/http1/server/request/event-stream.ts'

const introduction = { revision: '2025-11-25', capabilities: {}, clientInfo: undefined, hops: 0 } as const
const sessionOf = (principal: string): Session =>
  new Session({
    introduction,
    principal,
    scope: { server: undefined },
    admission: { begin: () => undefined, end: () => -1 },
    transport: 'stdio',
  })
const listening = (held: HttpSession): HttpSession => Object.assign(held, { stream: { events: {} as EventStream, name: '' } })
const limited = (limits: Partial<HostLimits>): { sessions: Sessions; limits: HostLimits } => {
  const all = { limits: { ...DEFAULT_HOST_LIMITS, ...limits } }
  return Object.assign(all, { sessions: new Sessions(() => all.limits, new LimitCounts({ warn: () => undefined })) })
}

test('listen.limits.sessions_per_principal binds each principal, but not those without a credential', () => {
  const { sessions } = limited({ maxSessionsPerPrincipal: 2 })
  for (const principal of ['local', 'local', 'local', 'p', 'p', 'q']) listening(sessions.add(sessionOf(principal)))
  expect(() => sessions.add(sessionOf('p'))).toThrow('listen.limits.sessions_per_principal (2) reached')
  sessions.add(sessionOf('q'))
  expect(sessions.size).toBe(7)
})

test('an idle session of the same principal makes place, never one of another', () => {
  const { sessions } = limited({ maxSessionsPerPrincipal: 1 })
  const other = sessions.add(sessionOf('other'))
  const first = sessions.add(sessionOf('p'))
  listening(sessions.add(sessionOf('p')))
  expect([first, other].map(({ session }) => session.isEnded)).toEqual([true, false])
  expect(() => sessions.add(sessionOf('p'))).toThrow('(1) reached')
})

test('T-32 the session that is idle for the longest time makes place, not the one that began first', () => {
  const { sessions } = limited({ maxSessions: 3 })
  const [first, second, third] = [9, 1, 5].map((activeMs) => Object.assign(sessionOf('local'), { activeMs }))
  for (const session of [first!, second!, third!]) sessions.add(session)
  const ended = (): (boolean | undefined)[] => [first, second, third].map((session) => session?.isEnded)
  listening(sessions.add(sessionOf('local')))
  expect(ended()).toEqual([false, true, false])
  listening(sessions.add(sessionOf('local')))
  expect(ended()).toEqual([false, true, true])
})

test('limits that a reload changed hold at once', () => {
  const all = limited({ maxSessions: 1 })
  listening(all.sessions.add(sessionOf('local')))
  expect(() => all.sessions.add(sessionOf('local'))).toThrow('listen.limits.sessions (1) reached')
  all.limits = { ...all.limits, maxSessions: 2 }
  expect(all.sessions.add(sessionOf('local')).session.isEnded).toBe(false)
})

test('T-07 the stream of a session whose credential has ended is broken off, and the session stays', () => {
  const { sessions } = limited({})
  const held = sessions.add(sessionOf('p'), Date.now() + 60_000)
  const breakOff = vi.fn()
  // Cast: the members that are used.
  const events = { breakOff, sweep: () => undefined } as unknown as EventStream
  held.stream = { events, name: '', continues: undefined }
  sessions.sweep(performance.now())
  expect(breakOff).not.toHaveBeenCalled()
  held.untilMs = Date.now()
  sessions.sweep(performance.now())
  expect([breakOff.mock.calls.length, held.session.isEnded]).toEqual([1, false])
})

test('T-07 the sessions of a principal that is no longer known end, and those of no other', () => {
  const { sessions } = limited({})
  const [gone, other] = [sessions.add(sessionOf('gone')), sessions.add(sessionOf('other'))]
  sessions.revoke((principal) => principal === 'gone')
  expect([gone.session.isEnded, other.session.isEnded, sessions.ids]).toEqual([true, false, [other.session.id]])
})

test('B257 a session that ends frees what its event log held', () => {
  const { sessions } = limited({})
  const held = sessions.add(sessionOf('p'))
  const close = vi.fn()
  // Cast: the member that is used.
  held.session.log = { close } as unknown as EventLog
  sessions.end(held)
  expect(close).toHaveBeenCalledOnce()
})
