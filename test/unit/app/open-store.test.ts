/** The store that replicas share, as a start opens it: what is said when it fails and when it is there again (F-28). */
import { expect, test, vi } from 'vitest'
import { openStore } from '../../../src/app/open-store.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'

test('none is configured: there is none', async () => {
  expect(await openStore(undefined, undefined, { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() })).toBeUndefined()
})

test('F-28 a store that fails is a warning, once it is back a note, and neither twice', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  const memory = new MemoryStore()
  const said: string[] = []
  const at =
    (level: string) =>
    (_facts: object, text: string): void =>
      void said.push(`${level} ${text}`)
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const store = await openStore(undefined, memory, log)
  const get = vi.spyOn(memory, 'get').mockRejectedValue(new Error('broken'))
  for (let times = 0; times < 7; times++) await store?.get('a').catch(() => undefined)
  const lost = 'warn the shared store is not reachable: sessions stay at their replicas (store)'
  expect(said).toEqual([lost])
  get.mockRestore()
  vi.advanceTimersByTime(1_001)
  for (let times = 0; times < 2; times++) await store?.get('a')
  expect(said).toEqual([lost, 'info the shared store is reachable again'])
})
