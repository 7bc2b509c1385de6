import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readStored, StoredEvents } from '../../../src/host/response/stored-events.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'

const LIMITS = { maxEvents: 10, maxEventAgeMs: 60_000 }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('B202 as many events as a session may have are kept for another replica, each on a stream of its own as well', async () => {
  const store = new MemoryStore()
  const events = new StoredEvents(store, 'session', { limits: LIMITS, mayWrite: () => true })
  const names = Array.from({ length: 12 }, (_, at) => `s${at}`)
  for (const name of names) {
    events.opened(name, { id: '1', method: 'tools/call' })
    events.appended(name, 0, [Buffer.from(name)], name.length, undefined)
    await vi.runAllTimersAsync()
  }
  const streams = await readStored(store, 'session')
  expect([...streams].map(([name, stream]) => [name, stream.events.map(({ text }) => text)])).toEqual(
    names.slice(-10).map((name) => [name, [name]]),
  )
})

test('B202 events of a replica that another one may have replaced are not written among the events of that one', async () => {
  const store = new MemoryStore()
  let isLeased = true
  const events = new StoredEvents(store, 'session', { limits: LIMITS, mayWrite: () => isLeased })
  const append = async (stream: string, text: string): Promise<void> => {
    events.appended(stream, 0, [Buffer.from(text)], text.length, undefined)
    await vi.runAllTimersAsync()
  }
  await append('1', 'own')
  isLeased = false
  await append('2', 'late')
  const streams = await readStored(store, 'session')
  expect(
    [...streams].map(
      ([
        name,
        {
          events: [event],
        },
      ]) => [name, event?.text],
    ),
  ).toEqual([['1', 'own']])
})
