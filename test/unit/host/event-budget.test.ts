/** What the event logs of all sessions keep together (B257, T-32). */
import { expect, test } from 'vitest'
import { EventBudget } from '../../../src/host/response/event-budget.ts'
import { EventLog } from '../../../src/host/response/event-log.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'

const LIMITS = { maxEvents: 100, maxEventBytes: 10_000, maxSessionEventBytes: 10_000, maxEventAgeMs: 60_000 }
const parts = (bytes: number): Buffer[] => [Buffer.alloc(bytes)]

const makeLogs = (maxBytes: number) => {
  const told: string[] = []
  const limits = new LimitCounts({ warn: (_, message) => told.push(message) })
  const budget = new EventBudget(() => maxBytes, limits)
  const dropped = (): number => limits.all.find(({ option }) => option === 'listen.limits.event_log')?.count ?? 0
  return { budget, told, dropped, open: () => new EventLog(() => LIMITS, budget, limits) }
}
/** How many events of a stream can be replayed. */
const kept = (log: EventLog, name: string): number | undefined => log.after(`${name}-0`)?.events.length

test('B257 T-32 the session written to longest ago loses its oldest events, the others nothing, and it is told once', () => {
  const { budget, told, dropped, open } = makeLogs(1_000)
  const [idle, busy] = [open(), open()]
  const [one, two] = [idle.open(), busy.open()]
  idle.append(one, parts(1))
  for (let at = 0; at < 4; at++) idle.append(one, parts(200))
  busy.append(two, parts(1))
  for (let at = 0; at < 3; at++) busy.append(two, parts(200))
  expect([kept(idle, one), kept(busy, two)]).toEqual([1, 3])
  expect([budget.bytes, dropped()]).toEqual([801, 4])
  for (let at = 0; at < 9; at++) busy.append(two, parts(200))
  expect([kept(idle, one), kept(busy, two)]).toEqual([0, 5])
  expect(budget.bytes).toBeLessThanOrEqual(1_000)
  expect(told).toEqual(['listen.limits.event_log reached'])
})

test('a finished stream that has lost its answer is not kept at all; one that goes on, goes on', () => {
  const { open } = makeLogs(100)
  const [idle, busy] = [open(), open()]
  const [ended, standing, other] = [idle.open(), idle.open(), busy.open()]
  idle.append(ended, parts(10))
  idle.end(ended)
  idle.append(standing, parts(10))
  busy.append(other, parts(100))
  expect([idle.after(`${ended}-0`), idle.after(`${standing}-0`)]).toEqual([undefined, expect.objectContaining({ events: [] })])
})

test('what a session kept is free again when it ends, and when a stream is forgotten', () => {
  const { budget, dropped, open } = makeLogs(1_000)
  const log = open()
  const [one, two] = [log.open(), log.open()]
  log.append(one, parts(10), 'progress')
  log.append(two, parts(10))
  expect([budget.bytes, log.bytes]).toEqual([20, 20])
  log.forget(two)
  expect(budget.bytes).toBe(10)
  log.close()
  log.append(log.open(), parts(10))
  expect([budget.bytes, log.bytes, dropped()]).toEqual([0, 0, 0])
})

test('B202 of a stream over its limit, progress that was overtaken goes first, then the oldest event', () => {
  const limits = new LimitCounts({ warn: () => undefined })
  const log = new EventLog(() => ({ ...LIMITS, maxEvents: 4 }), new EventBudget(() => 1_000, limits), limits)
  const stream = log.open()
  const keep = (text: string, key?: string): string => log.append(stream, [Buffer.from(text)], key)
  const first = keep('start')
  const left = (): string[] => log.after(first)?.events.map((event) => Buffer.concat(event.parts).toString()) ?? []
  for (const step of ['1', '2']) keep(step, 'progress')
  keep('message')
  expect(left()).toEqual(['1', '2', 'message'])
  keep('3', 'progress')
  expect(left()).toEqual(['2', 'message', '3'])
  keep('4', 'progress')
  expect(left()).toEqual(['message', '3', '4'])
  keep('5', 'other')
  expect(left()).toEqual(['message', '4', '5'])
  keep('6')
  expect(left()).toEqual(['message', '4', '5', '6'])
})
