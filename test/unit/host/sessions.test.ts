import { expect, test } from 'vitest'
import { DEFAULT_HOST_LIMITS } from '../../../src/host/options.ts'
import type { HostLimits } from '../../../src/host/options.ts'
import { Session } from '../../../src/host/session/session.ts'
import { Sessions } from '../../../src/host/session/sessions.ts'
import type { HttpSession } from '../../../src/host/session/sessions.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'
import type { EventStream } from '../../../src/transport/http1/server/request/event-stream.ts'

const introduction = { revision: '2025-11-25', capabilities: {}, clientInfo: undefined, hops: 0 } as const
const sessionOf = (principal: string): Session =>
  new Session(introduction, principal, { server: undefined }, { begin: () => undefined, end: () => -1 })
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
