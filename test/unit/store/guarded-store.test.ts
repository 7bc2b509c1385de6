import { expect, test } from 'vitest'
import { GuardedStore } from '../../../src/store/guarded-store.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'

test('F-28 an answer that came while this process stood still counts, however long that was', async () => {
  const { port1, port2 } = new MessageChannel()
  const answered = new Promise<string>((resolve) => port1.once('message', resolve))
  const memory = new MemoryStore()
  memory.get = () => answered
  await using store = new GuardedStore(memory, { changed: () => undefined })
  // From here the event loop goes on with its timers, and then with what has arrived.
  await new Promise(setImmediate)
  const value = store.get('a')
  port2.postMessage('there')
  const endMs = performance.now() + 300
  while (performance.now() < endMs);
  expect(await value).toBe('there')
  expect(store.state.failures).toBe(0)
  port1.close()
})
