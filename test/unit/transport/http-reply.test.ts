/** When a big JSON body of a server begins to pass on, on a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { HttpClient, HttpRequest } from '../../../src/transport/http1/client/http-client.ts'
import { Reply } from '../../../src/transport/http1/client/http-reply.ts'
import type { ReplyHead } from '../../../src/transport/http1/client/reply-head.ts'

const MIB = 1024 * 1024
beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => vi.useRealTimers())

/** ms from the first byte until the body was shown to its reader, where a piece comes every `everyMs`; `undefined`: not within 1 s. */
const shownAfter = (everyMs: number): number | undefined => {
  const free = () => undefined
  const bodies = {
    lease: (bytes: number) => Buffer.alloc(bytes),
    held: { hasRoomFor: () => true, add: free, release: free, max: MIB },
  }
  const client = { request: () => ({ abort: free, pause: free, resume: free }), bodies } as unknown as HttpClient
  const shownMs: number[] = []
  let startedMs = 0
  const reply = new Reply(client, {} as HttpRequest, 16 * MIB, {
    mayStream: true,
    stream: () => {
      shownMs.push(performance.now() - startedMs)
      return undefined
    },
    onEvent: free,
    onEnd: free,
    onError: free,
  })
  reply.onHead({ status: 200, form: 'json', length: MIB, headers: {} } as unknown as ReplyHead)
  startedMs = performance.now()
  for (let ms = 0; ms < 1_000 && shownMs.length === 0; ms++) {
    if (ms % everyMs === 0) reply.onData(Buffer.from('x'))
    vi.advanceTimersByTime(1)
  }
  return shownMs[0]
}

test('a big body passes on 5 ms after it has paused', () => {
  expect(shownAfter(50)).toBe(5)
})

test.each([1, 2, 4])('a big body of which more comes every %s ms passes on within 25 ms after its first byte', (everyMs) => {
  expect(shownAfter(everyMs)).toBeGreaterThan(5)
  expect(shownAfter(everyMs)).toBeLessThanOrEqual(25)
})
