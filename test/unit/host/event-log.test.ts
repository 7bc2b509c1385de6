/** How long one session's streams can be resumed (BRIDGING 5.1). */
import { expect, test, vi } from 'vitest'
import { EventBudget } from '../../../src/host/response/event-budget.ts'
import { EventLog } from '../../../src/host/response/event-log.ts'
import type { StoredEvents } from '../../../src/host/response/stored-events.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'

const MAX_AGE_MS = 60_000

const openLog = (stored?: StoredEvents): EventLog => {
  const limits = new LimitCounts({ warn: () => undefined })
  const bounds = { maxEvents: 100, maxEventBytes: 10_000, maxSessionEventBytes: 10_000, maxEventAgeMs: MAX_AGE_MS }
  return new EventLog(() => bounds, new EventBudget(() => 100_000, limits), limits, stored)
}

test('a stream that has ended is known until it is too old, and then not at all, however little was on it', () => {
  const log = openLog()
  const [ended, open] = [log.open(), log.open()]
  for (const name of [ended, open]) log.append(name, [Buffer.from('x')])
  log.end(ended)
  log.sweep(performance.now() + MAX_AGE_MS - 1_000)
  expect(log.after(`${ended}-0`)).toMatchObject({ isEnded: true })
  log.sweep(performance.now() + MAX_AGE_MS)
  expect(log.after(`${ended}-0`)).toBeUndefined()
  expect(log.after(`${open}-0`)).toEqual({ stream: open, lastEventId: `${open}-0`, events: [], isEnded: false })
  expect(log.bytes).toBe(0)
})

test('5.1 an event that was not sent yet is none to resume after', () => {
  const log = openLog()
  const name = log.open()
  log.append(name, [Buffer.from('x')])
  expect([log.after(`${name}-0`)?.events, log.after(`${name}-1`), log.after('9-0')]).toEqual([[], undefined, undefined])
})

test('B202 streams of another replica go on under their names, with numbers that it cannot have used', () => {
  const log = openLog()
  const of = { id: '1', method: 'tools/call' }
  const events = [{ sequence: 3, text: 'x', key: undefined }]
  const unanswered = log.restore(
    new Map([
      ['1', { of, events, isEnded: true }],
      ['a', { of, events, isEnded: false }],
      ['2', { of: undefined, events: [], isEnded: false }],
    ]),
  )
  expect(unanswered).toEqual([{ name: 'a', of }])
  expect(log.append('a', [Buffer.from('y')])).toBe('a-1000000000')
  expect(log.after('a-2')?.events.map(({ id, parts }) => [id, Buffer.concat(parts).toString()])).toEqual([
    ['a-3', 'x'],
    ['a-1000000000', 'y'],
  ])
  expect(log.open()).toBe('b')
})

test('B202 the end of a stream is stored for other replicas, once it has begun', () => {
  const stored = { opened: vi.fn(), appended: vi.fn(), ended: vi.fn() }
  // Cast: the members that are used.
  const log = openLog(stored as unknown as StoredEvents)
  const name = log.open()
  log.end('unknown')
  log.end(name)
  expect([stored.opened.mock.calls, stored.ended.mock.calls]).toEqual([[[name, undefined]], [[name]]])
})
