/** When a big JSON body of a server begins to pass on, on a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { HttpClient, HttpRequest } from '../../../src/transport/http1/client/http-client.ts'
import { Reply } from '../../../src/transport/http1/client/http-reply.ts'
import type { ReplyHead } from '../../../src/transport/http1/client/reply-head.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

const MIB = 1024 * 1024
beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => vi.useRealTimers())

const free = () => undefined
const bodies = {
  lease: (bytes: number) => Buffer.alloc(bytes),
  giveBack: free,
  held: { hasRoomFor: () => true, add: free, release: free, max: MIB },
}
const client = { request: () => ({ abort: free, pause: free, resume: free }), bodies } as unknown as HttpClient
const headOf = (status: number, length: number): ReplyHead =>
  ({ status, form: 'json', length, headers: {} }) as unknown as ReplyHead

/** ms from the first byte until the body was shown to its reader, where a piece comes every `everyMs`; `undefined`: not within 1 s. */
const shownAfter = (everyMs: number): number | undefined => {
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
  reply.onHead(headOf(200, MIB))
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

test.each<[end: string, (reply: Reply) => void, events: readonly string[]]>([
  ['whole', (reply) => reply.onEnd(), ['[]']],
  ['broken', (reply) => reply.onError(new Failure('lost', 'reset')), ['lost']],
  ['over the limit', (reply) => reply.onData(Buffer.alloc(9)), ['too_large']],
  ['a redirect to nowhere', (reply) => reply.onHead(headOf(307, 0)), ['bad_response']],
  ['given up', (reply) => reply.abort(), []],
])('nothing comes of a reply after it is %s, whatever its connection says', (_end, end, events) => {
  const seen: string[] = []
  const reply = new Reply(client, { url: new URL('http://a.test/') } as HttpRequest, 8, {
    onEvent: free,
    onEnd: (_head, body) => void seen.push(body.toString()),
    onError: ({ kind }) => void seen.push(kind),
  })
  reply.onHead(headOf(200, 0))
  reply.onData(Buffer.from('[]'))
  end(reply)
  reply.onData(Buffer.from(' '))
  reply.onEnd()
  reply.onError(new Failure('lost', 'late'))
  reply.onData(Buffer.alloc(9))
  reply.abort()
  expect(seen).toEqual(events)
})
