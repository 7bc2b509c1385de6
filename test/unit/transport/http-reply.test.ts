/** What comes of a reply: when its big JSON body begins to pass on, on a clock of the test, its redirects, its encodings, its limits. */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { HttpClient, HttpRequest } from '../../../src/transport/http1/client/http-client.ts'
import { Reply } from '../../../src/transport/http1/client/http-reply.ts'
import type { ReplyEvents } from '../../../src/transport/http1/client/http-reply.ts'
import type { ReplyHead } from '../../../src/transport/http1/client/reply-head.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import type { StreamedResult } from '../../../src/wire/result/streamed-result.ts'

const MIB = 1024 * 1024
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  vi.advanceTimersByTime(1_000)
})

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
  const reply = new Reply(
    client,
    {} as HttpRequest,
    { maxMessageBytes: 16 * MIB },
    {
      mayStream: true,
      stream: () => {
        shownMs.push(performance.now() - startedMs)
        return undefined
      },
      onEvent: free,
      onEnd: free,
      onError: free,
    },
  )
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
  const reply = new Reply(
    client,
    { url: new URL('http://a.test/') } as HttpRequest,
    { maxMessageBytes: 8 },
    {
      onEvent: free,
      onEnd: (_head, body) => void seen.push(body.toString()),
      onError: ({ kind }) => void seen.push(kind),
    },
  )
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

/** What becomes of a reply, and the URLs that it was asked of. */
const watched = (more: { maxBytes?: number; hasRoom?: boolean; events?: Partial<ReplyEvents> } = {}) => {
  const { maxBytes = 16 * MIB, hasRoom = true, events } = more
  const [seen, asked, aborted, paced]: [string[], string[], number[], string[]] = [[], [], [], []]
  const lease = vi.fn(bodies.lease)
  const giveBack = vi.fn<(buffer: Buffer) => void>()
  const held = {
    hasRoomFor: () => hasRoom,
    add: vi.fn<(bytes: number) => void>(),
    release: vi.fn<(bytes: number) => void>(),
    max: 1,
  }
  const client = {
    request: (request: HttpRequest) => {
      const at = asked.push(request.url.href)
      return {
        abort: () => void aborted.push(at),
        pause: () => void paced.push('pause'),
        resume: () => void paced.push('resume'),
      }
    },
    bodies: { ...bodies, lease, giveBack, held },
  } as unknown as HttpClient
  const ended = Promise.withResolvers<void>()
  const reply = new Reply(
    client,
    { url: new URL('http://user:word@a.test/mcp') } as HttpRequest,
    { maxMessageBytes: maxBytes },
    {
      onHead: ({ status }) => void seen.push(`head ${status}`),
      onEvent: ({ data }) => void seen.push(`event ${data.toString()}`),
      onEnd: (_head, body) => (seen.push(`end ${body.toString()}`), ended.resolve()),
      onError: ({ kind, message }) => (seen.push(`${kind}: ${message}`), ended.resolve()),
      ...events,
    },
  )
  return { reply, seen, asked, aborted, paced, lease, giveBack, held, ended: ended.promise }
}
const redirectTo = (status: number, location: string | undefined): ReplyHead =>
  ({ status, form: 'other', length: 0, headers: { location } }) as unknown as ReplyHead

describe('a redirect', () => {
  test.each([
    [307, '/there', 'http://user:word@a.test/there'],
    [308, 'http://a.test/there', 'http://user:word@a.test/there'],
    [307, 'http://other:name@a.test/', 'http://user:word@a.test/'],
    [307, '', 'http://user:word@a.test/mcp'],
  ])('HTTP %i to %s is followed, with the login of the first URL alone', (status, location, url) => {
    const { reply, seen, asked, aborted } = watched()
    reply.onHead(redirectTo(status, location))
    expect([asked.slice(1), aborted, reply.url.href, seen]).toEqual([[url], [1], url, []])
    reply.onHead(headOf(200, 0))
    expect(seen).toEqual(['head 200'])
  })

  const ONLY = 'only 307 and 308 within the same origin are followed'
  test.each([
    [300, '/there', '"http://a.test/there"'],
    [301, '/there', '"http://a.test/there"'],
    [302, '/there', '"http://a.test/there"'],
    [303, '/there', '"http://a.test/there"'],
    [307, undefined, 'nowhere (no Location)'],
    [307, 'https://a.test/', '"https://a.test/"'],
    [308, 'http://b.test/?secret', '"http://b.test/"'],
    [308, 'http://[', '"http://["'],
  ])('HTTP %i to %s is not followed', (status, location, shown) => {
    const { reply, seen, asked, aborted } = watched()
    reply.onHead(redirectTo(status, location))
    expect(seen).toEqual([`bad_response: the server answered HTTP ${status} to ${shown}: ${ONLY}`])
    expect([asked.length, aborted]).toEqual([1, [1]])
  })

  test('is followed three times', () => {
    const { reply, seen, asked } = watched()
    for (let times = 0; times < 3; times++) reply.onHead(redirectTo(307, `/${times}`))
    expect([asked.length, seen]).toEqual([4, []])
    reply.onHead(redirectTo(307, '/3'))
    expect(seen).toEqual(['bad_response: the server answered HTTP 307 to "http://a.test/3": too many redirects'])
  })
})

const encoded = (status: number, encoding: string): ReplyHead =>
  ({ status, form: 'json', length: 5, encoding, headers: {} }) as unknown as ReplyHead

describe('an encoded body that nobody asked for', () => {
  test('is decoded', async () => {
    const { reply, seen, ended, held } = watched()
    reply.onHead(encoded(200, 'gzip'))
    const bytes = gzipSync('{"a":1}')
    for (const byte of bytes) reply.onData(Buffer.of(byte))
    reply.onEnd()
    await ended
    expect(seen).toEqual(['head 200', 'end {"a":1}'])
    expect(held.release).toHaveBeenCalledTimes(1)
  })

  test('is read no faster than it is decoded', async () => {
    const { reply, paced } = watched()
    reply.onHead(encoded(200, 'gzip'))
    reply.onData(gzipSync(randomBytes(256 * 1024)))
    expect(paced).toEqual(['pause'])
    await expect.poll(() => paced).toEqual(['pause', 'resume'])
    reply.abort()
  })

  test('is empty without a byte', () => {
    const { reply, seen } = watched()
    reply.onHead(encoded(202, 'gzip'))
    reply.onEnd()
    expect(seen).toEqual(['head 202', 'end '])
  })

  test.each([
    [200, 'gzip', ['head 200', 'bad_response: the body does not match its Content-Encoding (gzip): incorrect header check']],
    [500, 'gzip', ['head 500', 'end ']],
    [200, 'rot13', ['bad_response: the body has an encoding that was not requested and is not supported (rot13)']],
    [400, 'rot13', ['head 400', 'end ']],
  ])('that cannot be decoded: HTTP %i with %s', async (status, encoding, events) => {
    const { reply, seen, aborted, ended } = watched()
    reply.onHead(encoded(status, encoding))
    reply.onData(Buffer.from('plain text'))
    await ended
    reply.onEnd()
    expect([seen, aborted]).toEqual([events, [1]])
  })

  test('T-24 counts decoded, up to the limit of a message', async () => {
    const { reply, seen, aborted, ended } = watched({ maxBytes: 1_000 })
    reply.onHead(encoded(200, 'gzip'))
    reply.onData(gzipSync(Buffer.alloc(1_001, ' ')))
    await ended
    expect([seen, aborted]).toEqual([['head 200', 'too_large: a message exceeds limits.max_message (1000 bytes)'], [1]])
  })
})

describe('the size of a body', () => {
  test('stated beyond the limit fails at once', () => {
    const { reply, seen, aborted } = watched({ maxBytes: 10 })
    reply.onHead(headOf(200, 11))
    expect([seen, aborted]).toEqual([['too_large: a message exceeds limits.max_message (10 bytes)'], [1]])
  })

  test.each([
    ['with its length', 10],
    ['without', 0],
  ])('up to the limit is no failure, %s', (_, length) => {
    const { reply, seen } = watched({ maxBytes: 10 })
    reply.onHead(headOf(200, length))
    for (const piece of ['12345', '678', '90']) reply.onData(Buffer.from(piece))
    reply.onEnd()
    expect(seen).toEqual(['head 200', 'end 1234567890'])
  })

  test('is taken at once where it is stated, and doubled as needed where it is not', () => {
    const stated = watched()
    stated.reply.onHead(headOf(200, 10))
    for (const piece of ['1234', '567890']) stated.reply.onData(Buffer.from(piece))
    expect(stated.lease.mock.calls).toEqual([[10]])
    const { reply, seen, lease, giveBack } = watched()
    reply.onHead(headOf(200, 0))
    for (const piece of ['1234', '5', '678', '901234567890']) reply.onData(Buffer.from(piece))
    reply.onEnd()
    expect(lease.mock.calls).toEqual([[4], [8], [20]])
    expect(giveBack.mock.calls.map(([{ length }]) => length)).toEqual([0, 4, 8])
    expect(seen.at(-1)).toBe('end 12345678901234567890')
  })

  test('of a page that is no JSON is read up to 64 KiB, then the status counts alone', () => {
    const page = { ...headOf(502, 0), form: 'other' } as const
    const { reply, seen, aborted } = watched()
    reply.onHead(page)
    reply.onData(Buffer.alloc(64 * 1024, 'x'))
    expect(seen).toEqual(['head 502'])
    reply.onData(Buffer.from('x'))
    expect([seen, aborted]).toEqual([['head 502', 'end '], [1]])
  })

  test.each([
    ['is no JSON', 'other'],
    ['belongs to an accepted message', 'json'],
  ] as const)('that %s and has neither length nor end holds its connection for 5 s at most', (_what, form) => {
    const { reply, seen, aborted } = watched()
    reply.onHead({ ...headOf(202, 0), form })
    reply.onData(Buffer.from('Accepted'))
    vi.advanceTimersByTime(4_999)
    expect([seen, aborted]).toEqual([['head 202'], []])
    vi.advanceTimersByTime(1)
    expect([seen, aborted]).toEqual([['head 202', 'end Accepted'], [1]])
  })

  test.each([
    ['stated', (reply: Reply) => reply.onHead(headOf(500, 8 * MIB))],
    ['not stated', (reply: Reply) => (reply.onHead(headOf(500, 0)), reply.onData(Buffer.alloc(8 * MIB)))],
  ])('counts against the memory of all while it is collected, and no longer: %s', (_, begin) => {
    const { reply, held } = watched()
    begin(reply)
    expect(held.add.mock.calls).toEqual([[8 * MIB]])
    reply.abort()
    reply.abort()
    expect(held.release.mock.calls).toEqual([[8 * MIB]])
  })

  test('for which there is no memory left fails, with the limit in its text', () => {
    const { reply, seen, aborted, lease } = watched({ hasRoom: false })
    reply.onHead(headOf(500, 8 * MIB))
    expect(seen).toEqual([
      `overloaded: no memory for a response of ${8 * MIB} bytes: limits.in_flight_bytes (1) reached twice over`,
    ])
    expect([aborted, lease.mock.calls]).toEqual([[1], []])
  })
})

/** A reader of a big body, and what it gets; `answers`: what it says to the beginnings that it is shown. */
const reading = (...answers: readonly ('more' | 'no' | 'yes')[]) => {
  const got: string[] = []
  const streamed = {
    push: ({ length }: Buffer) => void got.push(`push ${length}`),
    finish: () => void got.push('finish'),
    fail: ({ kind }: Failure) => void got.push(`fail ${kind}`),
  } as unknown as StreamedResult
  const events: Partial<ReplyEvents> = {
    mayStream: true,
    stream: ({ length }) => {
      const answer = answers[got.push(`shown ${length}`) - 1]
      return answer === 'yes' ? streamed : answer === 'more' ? 'more' : undefined
    },
  }
  return { got, events }
}

describe('F-02 more of an answer was received', () => {
  test('with each part of a JSON body, also of one that passes on, and of no other body', () => {
    const onMore = vi.fn<() => void>()
    for (const [form, times] of [
      ['json', 2],
      ['other', 0],
    ] as const) {
      onMore.mockClear()
      const { reply } = watched({ events: { onMore } })
      reply.onHead({ ...headOf(200, 0), form })
      for (const part of ['{"a":', '1}']) reply.onData(Buffer.from(part))
      reply.onEnd()
      expect(onMore).toHaveBeenCalledTimes(times)
    }
    const { events } = reading('yes')
    const { reply } = watched({ events: { ...events, onMore } })
    reply.onHead(headOf(200, 4 * MIB))
    for (const part of ['123456', '78']) reply.onData(Buffer.from(part))
    expect(onMore).toHaveBeenCalledTimes(2)
  })

  test.each([
    [': a comment\n', 0],
    [':', 0],
    ['event: message\n', 0],
    ['data: {"jsonrpc":', 1],
    ['data: {}\n', 1],
    ['data: {}\n\n', 0],
    ['data: {}\n\ndata: {', 1],
  ])('with a part of an event, not with a comment (B225) or a whole event: %j', (part, times) => {
    const onMore = vi.fn<() => void>()
    const { reply } = watched({ events: { onMore } })
    reply.onHead({ ...headOf(200, 0), form: 'sse' })
    reply.onData(Buffer.from(part))
    expect(onMore).toHaveBeenCalledTimes(times)
  })
})

describe('a big body', () => {
  test.each([
    [200, 4 * MIB, true, true],
    [200, 4 * MIB - 1, true, false],
    [200, 0, true, false],
    [201, 4 * MIB, true, false],
    [500, 4 * MIB, true, false],
    [200, 4 * MIB, false, false],
  ])('of HTTP %i and %i bytes, which may pass on: %s, passes on at once: %s', (status, length, mayStream, isShown) => {
    const { got, events } = reading('yes')
    const { reply, seen, lease } = watched({ events: { ...events, mayStream } })
    reply.onHead(headOf(status, length))
    reply.onData(Buffer.from('123456'))
    reply.onData(Buffer.from('78'))
    expect(got).toEqual(isShown ? ['shown 6', 'push 2'] : [])
    // What passes on is not collected, too.
    if (isShown) expect(lease).not.toHaveBeenCalled()
    reply.onEnd()
    expect([got.at(-1), seen.at(-1)]).toEqual(isShown ? ['finish', 'end '] : [undefined, 'end 12345678'])
  })

  test.each([
    [64 * 1024, ['shown 1']],
    [64 * 1024 - 1, []],
  ])('is one from 64 KiB on: %i bytes', (length, shown) => {
    const { got, events } = reading('yes')
    const { reply } = watched({ events })
    reply.onHead(headOf(200, length))
    vi.advanceTimersByTime(100)
    expect(got).toEqual([])
    reply.onData(Buffer.from('x'))
    vi.advanceTimersByTime(100)
    expect(got).toEqual(shown)
  })

  test('is shown again after a pause while its reader needs more, and is collected once it does not want it', () => {
    const { got, events } = reading('more', 'more', 'no', 'yes')
    const { reply, seen } = watched({ events })
    reply.onHead(headOf(200, MIB))
    reply.onData(Buffer.from('12'))
    vi.advanceTimersByTime(7)
    reply.onData(Buffer.from('34'))
    vi.advanceTimersByTime(100)
    reply.onData(Buffer.from('56'))
    vi.advanceTimersByTime(100)
    reply.onEnd()
    expect([got, seen.at(-1)]).toEqual([['shown 2', 'shown 4', 'shown 4'], 'end 123456'])
  })

  test('that does not pass on at once is collected in memory of its size', () => {
    const { got, events } = reading('no')
    const { reply, seen, held, lease } = watched({ events })
    reply.onHead(headOf(200, 4 * MIB))
    for (const piece of ['12', '34']) reply.onData(Buffer.from(piece))
    reply.onEnd()
    expect([got, seen.at(-1), lease.mock.calls, held.add.mock.calls, held.release.mock.calls]).toEqual([
      ['shown 2'],
      'end 1234',
      [[4 * MIB]],
      [[4 * MIB]],
      [[4 * MIB]],
    ])
  })

  test.each([
    ['is no JSON', { ...headOf(200, 4 * MIB), form: 'other' } as const],
    ['is encoded', { ...headOf(200, 4 * MIB), encoding: 'gzip' }],
  ])('that %s does not pass on', (_, head) => {
    const { got, events } = reading('yes')
    const { reply } = watched({ events })
    reply.onHead(head)
    reply.onData(gzipSync('1'))
    vi.advanceTimersByTime(100)
    expect(got).toEqual([])
  })

  test('has one reader, and none after its end', () => {
    for (const end of [(reply: Reply) => reply.onEnd(), (reply: Reply) => reply.onError(new Failure('lost', 'reset'))]) {
      const { got, events } = reading('yes', 'yes')
      const { reply, held } = watched({ events })
      reply.onHead(headOf(200, MIB))
      reply.onData(Buffer.from('1'))
      end(reply)
      vi.advanceTimersByTime(100)
      expect([got, held.release.mock.calls]).toEqual([[], [[MIB]]])
    }
    const { got, events } = reading('yes', 'yes')
    const { reply, held } = watched({ events })
    reply.onHead(headOf(200, MIB))
    reply.onData(Buffer.from('1'))
    vi.advanceTimersByTime(100)
    expect([got, held.release.mock.calls]).toEqual([['shown 1'], [[MIB]]])
    reply.onError(new Failure('lost', 'reset'))
    expect(got).toEqual(['shown 1', 'fail lost'])
  })

  test('takes no memory once its reader has given it up', () => {
    const stream = () => (reply.abort(), undefined)
    const { reply, held } = watched({ events: { mayStream: true, stream } })
    reply.onHead(headOf(200, 4 * MIB))
    reply.onData(Buffer.from('1'))
    expect(held.add).not.toHaveBeenCalled()
  })

  test('of unknown length passes on beyond 16 MiB, up to the limit', () => {
    const { got, events } = reading('yes')
    const { reply, seen, aborted } = watched({ events, maxBytes: 17 * MIB })
    reply.onHead(headOf(200, 0))
    reply.onData(Buffer.alloc(16 * MIB))
    expect(got).toEqual([])
    reply.onData(Buffer.alloc(1))
    reply.onData(Buffer.alloc(MIB - 1))
    expect(got).toEqual([`shown ${16 * MIB + 1}`, `push ${MIB - 1}`])
    reply.onData(Buffer.alloc(1))
    expect([got.at(-1), seen.at(-1), aborted]).toEqual([
      'fail too_large',
      `too_large: a message exceeds limits.max_message (${17 * MIB} bytes)`,
      [1],
    ])
  })
})

describe('events', () => {
  const ofEvents = { ...headOf(200, 0), form: 'sse' } as const

  test('are read until the reply is given up', () => {
    const { reply, seen, aborted } = watched()
    reply.onHead(ofEvents)
    // The bytes are valid during the call.
    const bytes = Buffer.from('data: 1\n\nda')
    reply.onData(bytes)
    bytes.fill('x')
    reply.onData(Buffer.from('ta: 2\n\n'))
    reply.abort()
    reply.onData(Buffer.from('data: 3\n\n'))
    expect([seen, aborted]).toEqual([['head 200', 'event 1', 'event 2'], [1]])
    const twice = watched({ events: { onEvent: ({ data }) => (twice.seen.push(data.toString()), twice.reply.abort()) } })
    twice.reply.onHead(ofEvents)
    twice.reply.onData(Buffer.from('data: 1\n\ndata: 2\n\n'))
    expect(twice.seen).toEqual(['head 200', '1'])
  })

  test.each([
    ['end the reply', {}, ['too_large: a message exceeds limits.max_message (32 bytes)'], [1]],
    ['are left out where someone takes note', { onOversize: free }, ['event 2'], []],
  ])('over the limit %s', (_, events, then, gone) => {
    const { reply, seen, aborted } = watched({ maxBytes: 32, events })
    reply.onHead(ofEvents)
    reply.onData(Buffer.from(`data: ${'1'.repeat(99)}\n\ndata: 2\n\n`))
    expect([seen, aborted]).toEqual([['head 200', ...then], gone])
  })
})

test('a reply is paused and goes on', () => {
  const { reply, paced } = watched()
  const resume = reply.pause()
  expect(paced).toEqual(['pause'])
  resume()
  expect(paced).toEqual(['pause', 'resume'])
})

test('only a redirect to the result of a request says that it was executed', () => {
  const executed = [302, 303].map((status) => {
    const onError = vi.fn<(failure: Failure) => void>()
    watched({ events: { onError } }).reply.onHead(redirectTo(status, '/there'))
    return onError.mock.lastCall?.[0].facts
  })
  expect(executed).toEqual([
    { status: 302, executed: 'no' },
    { status: 303, executed: 'unknown' },
  ])
})
