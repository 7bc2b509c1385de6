import { expect, test, vi } from 'vitest'
import { readStored, StoredEvents } from '../../../src/host/response/stored-events.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'

test('B202 events of a replica that another one may have replaced are not written among the events of that one', async () => {
  vi.useFakeTimers()
  const store = new MemoryStore()
  let isLeased = true
  const events = new StoredEvents(store, 'session', { maxEvents: 10, ttlMs: 60_000, mayWrite: () => isLeased })
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
  vi.useRealTimers()
})
