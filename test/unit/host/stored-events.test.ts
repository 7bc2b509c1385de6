import { beforeEach, expect, test, vi } from 'vitest'
import { readStored, StoredEvents } from '../../../src/host/response/stored-events.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'

const LIMITS = { maxEvents: 10, maxSessionEventBytes: 100_000, maxEventAgeMs: 60_000 }

beforeEach(() => void vi.useFakeTimers())

test('B202 as many events as a session may have are kept for another replica, each on a stream of its own as well', async () => {
  const store = new MemoryStore()
  const events = new StoredEvents(store, 'session', { limits: () => LIMITS, mayWrite: () => true })
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
  const events = new StoredEvents(store, 'session', { limits: () => LIMITS, mayWrite: () => isLeased })
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

test('B202 a stream with more events than are kept still names its request, so that another replica can end it', async () => {
  const store = new MemoryStore()
  const events = new StoredEvents(store, 'session', { limits: () => LIMITS, mayWrite: () => true })
  const of = { id: '"a"', method: 'tools/call' }
  events.opened('1', of)
  for (let at = 0; at < 30; at++) {
    events.appended('1', at, [Buffer.from(`${at}`)], 2, at % 2 === 0 ? undefined : 'progress')
    await vi.runAllTimersAsync()
  }
  const stream = (await readStored(store, 'session')).get('1')
  expect(stream).toMatchObject({ of, isEnded: false })
  expect(stream?.events.at(-2)).toEqual({ sequence: 28, text: '28', key: undefined })
  expect(stream?.events.at(-1)).toEqual({ sequence: 29, text: '29', key: 'progress' })
})

test('B202 listen.limits.session_event_bytes is the size of the copy as well, and what another replica has written stays below it', async () => {
  const store = new MemoryStore()
  const limits = { ...LIMITS, maxEvents: 100, maxSessionEventBytes: 2_000 }
  const write = async (stream: string, count: number): Promise<void> => {
    const events = new StoredEvents(store, 'session', { limits: () => limits, mayWrite: () => true })
    events.opened(stream, undefined)
    for (let at = 0; at < count; at++) {
      const text = `${at} ${'é'.repeat(100)}`
      events.appended(stream, at, [Buffer.from(text)], Buffer.byteLength(text), undefined)
      if (at % 3 === 0) await vi.runAllTimersAsync()
    }
    await vi.runAllTimersAsync()
  }
  const kept = async () => [...(await readStored(store, 'session'))].map(([name, { events }]) => [name, events.length])
  await write('1', 30)
  const bytes = (await store.range('events:session')).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  expect(bytes).toBeLessThanOrEqual(2_000)
  expect(await kept()).toEqual([['1', 8]])
  await write('2', 2)
  expect(await kept()).toEqual([
    ['1', 8],
    ['2', 2],
  ])
  await write('3', 30)
  expect(await kept()).toEqual([['3', 8]])
})
