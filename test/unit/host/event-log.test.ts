/** How long one session's streams can be resumed (BRIDGING 5.1). */
import { expect, test } from 'vitest'
import { EventBudget } from '../../../src/host/response/event-budget.ts'
import { EventLog } from '../../../src/host/response/event-log.ts'
import { LimitCounts } from '../../../src/rpc/limit-counts.ts'

const MAX_AGE_MS = 60_000

const openLog = (): EventLog => {
  const limits = new LimitCounts({ warn: () => undefined })
  const bounds = { maxEvents: 100, maxEventBytes: 10_000, maxSessionEventBytes: 10_000, maxEventAgeMs: MAX_AGE_MS }
  return new EventLog(bounds, new EventBudget(() => 100_000, limits), limits)
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
  expect(log.after(`${open}-0`)).toEqual({ stream: open, events: [], isEnded: false })
  expect(log.bytes).toBe(0)
})
