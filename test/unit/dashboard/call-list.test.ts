/** The calls that the page of the dashboard holds. */
import { expect, test } from 'vitest'
import { CallList, isGap, MAX_CALLS } from '../../../src/dashboard/model/call-list.ts'
import type { CallRow } from '../../../src/observe/capture/captured.ts'

const row = (id: number, facts: Partial<CallRow> = {}): CallRow => ({ id, state: 'done', ...facts }) as CallRow
const ids = (list: CallList, isWanted?: (row: CallRow) => boolean, untilId?: number): (number | string)[] =>
  (isWanted === undefined ? list.all(untilId) : list.matching(isWanted, untilId)).map((item) =>
    isGap(item) ? `gap of ${item.missed}` : item.id,
  )

test('rows are shown newest first, each once, as it is now', () => {
  const list = new CallList()
  list.add([row(1, { state: 'open' }), row(2)])
  list.add([row(1), row(3)])
  expect(ids(list)).toEqual([3, 2, 1])
  expect(list.find(1)?.state).toBe('done')
  // A page that was asked for before the end of the call came.
  list.addPage([row(1, { state: 'open' })])
  expect(list.find(1)?.state).toBe('done')
})

test('a row that is still open is replaced, from a page as well', () => {
  const list = new CallList()
  list.add([row(1, { state: 'open' }), row(2, { state: 'open' })])
  list.add([row(1, { state: 'open', host: 'later' })])
  expect(list.find(1)?.host).toBe('later')
  list.addPage([row(2)])
  expect(list.find(2)?.state).toBe('done')
  expect(list.size).toBe(2)
})

test('what comes out of order finds its place', () => {
  const list = new CallList()
  list.add([row(5), row(2), row(9), row(7)])
  expect(ids(list)).toEqual([9, 7, 5, 2])
  expect([list.oldest, list.latest]).toEqual([2, 9])
  list.addPage([row(4), row(1)])
  expect(ids(list)).toEqual([9, 7, 5, 4, 2, 1])
})

test('rows that were not sent are a mark at their place, and marks that follow each other are one', () => {
  const list = new CallList()
  list.add([row(1), row(2)])
  list.gap(100)
  list.gap(20)
  list.add([row(123)])
  expect(ids(list)).toEqual([123, 'gap of 120', 2, 1])
})

test('a list that stands still shows nothing that came later', () => {
  const list = new CallList()
  list.add([row(1), row(2), row(3)])
  list.gap(3)
  expect(ids(list, undefined, 2)).toEqual([2, 1])
  expect(ids(list, undefined, 3)).toEqual([3, 2, 1])
  expect(ids(list, ({ id }) => id !== 2)).toEqual(['gap of 3', 3, 1])
})

test('the oldest go first where there are too many', () => {
  const list = new CallList()
  for (let id = 1; id <= MAX_CALLS + 1_000; id += 100) list.add(Array.from({ length: 100 }, (_, at) => row(id + at)))
  expect(list.size).toBeGreaterThanOrEqual(MAX_CALLS)
  expect(list.size).toBeLessThanOrEqual(MAX_CALLS + 500)
  expect(list.latest).toBe(MAX_CALLS + 1_000)
  expect(list.oldest).toBe(MAX_CALLS + 1_000 - list.size + 1)
  expect(list.find(1)).toBeUndefined()
})

test('the oldest are removed many at a time, because it costs as much as the whole list', () => {
  const list = new CallList()
  let removals = 0
  for (let id = 1; id <= MAX_CALLS + 3_000; id++) {
    const before = list.size
    list.add([row(id)])
    if (list.size < before) removals++
  }
  expect(removals).toBeGreaterThan(0)
  expect(removals).toBeLessThan(10)
})

test('a list that was cleared is as a new one', () => {
  const list = new CallList()
  list.add([row(1), row(2)])
  list.gap(3)
  list.clear()
  expect([list.size, list.oldest, list.latest]).toEqual([0, 0, 0])
  list.add([row(1)])
  expect(ids(list)).toEqual([1])
})

test('calls that a search found are shown to its filter, and leave no holes in the list of all calls', () => {
  const list = new CallList()
  const found = ({ host }: CallRow): boolean => host === 'found'
  for (let id = MAX_CALLS; id < 2 * MAX_CALLS; id += 1_000) list.add(Array.from({ length: 1_000 }, (_, at) => row(id + at)))
  list.addFound([row(7, { host: 'found' }), row(5, { host: 'found' }), row(MAX_CALLS, { host: 'found' })])
  expect(ids(list, found)).toEqual([MAX_CALLS, 7, 5])
  expect(list.all()).toHaveLength(MAX_CALLS)
  expect([list.size, list.oldest]).toEqual([MAX_CALLS, MAX_CALLS])
  expect(list.find(7)).toBeDefined()
  // The end of a call that was found open.
  list.addFound([row(9, { state: 'open', host: 'found' })])
  list.add([row(9, { host: 'found' })])
  expect(list.find(9)?.state).toBe('done')
  expect(list.size).toBe(MAX_CALLS)
})

test('what was found is bounded: the earliest found goes first', () => {
  const list = new CallList()
  list.add([row(5 * MAX_CALLS)])
  for (let page = 0; page < 12; page++)
    list.addFound(Array.from({ length: 1_000 }, (_, at) => row(page * 1_000 + at, { host: 'found' })))
  expect(ids(list, ({ host }) => host === 'found')).toHaveLength(MAX_CALLS)
  expect([list.find(1), list.find(11_999)]).toEqual([undefined, expect.anything()])
})
