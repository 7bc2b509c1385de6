/** One request over Streamable HTTP: what each answer, and each end of a stream, makes of it. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { StreamTerms } from '../../../src/transport/channel/channel.ts'
import { DEFAULT_RECONNECT } from '../../../src/transport/channel/reconnect.ts'
import { RequestExchange } from '../../../src/transport/channel/request-exchange.ts'
import type { ExchangePorts } from '../../../src/transport/channel/request-exchange.ts'
import type { Reply, ReplyEvents } from '../../../src/transport/http1/client/http-reply.ts'
import type { ReplyHead } from '../../../src/transport/http1/client/reply-head.ts'
import type { SseEvent } from '../../../src/wire/framing/sse.ts'
import { Failure } from '../../../src/wire/message/failure.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))

const RESULT = '{"jsonrpc":"2.0","id":7,"result":{}}'
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
const errorOf = (id: string) => `{"jsonrpc":"2.0",${id}"error":{"code":-32000,"message":"no"}}`

const headOf = (status: number, form: ReplyHead['form'], type?: string): ReplyHead => ({
  status,
  form,
  length: 0,
  headers: { ...(type !== undefined && { 'content-type': type }) },
})
const STREAM = headOf(200, 'sse')
const event = (data: string, more: Partial<SseEvent> = {}): SseEvent =>
  ({ event: 'message', data: Buffer.from(data), ...more }) as SseEvent

interface Terms {
  readonly hasSession?: boolean
  readonly mayResume?: boolean
  readonly isRelayed?: boolean
  readonly stream?: StreamTerms
}

/** A request that was sent, and what its channel is told. `events()`: those of its latest reply. */
const sent = ({ hasSession = false, mayResume = true, isRelayed = false, stream }: Terms = {}) => {
  const told: string[] = []
  const replies: ReplyEvents[] = []
  const reply = (events: ReplyEvents): Reply => {
    const at = replies.push(events)
    // Cast: an exchange uses no more of a reply.
    return {
      abort: () => void told.push(`abort ${at}`),
      pause: () => () => void told.push(`resume ${at}`),
    } as Partial<Reply> as Reply
  }
  const ports: ExchangePorts = {
    hasSession,
    mayResume,
    tooLarge: () => new Failure('too_large', 'too large'),
    post: (_message, events) => (told.push('POST'), reply(events)),
    resume: (lastEventId, events) => (told.push(`GET ${lastEventId}`), reply(events)),
    receive: ({ kind, id, method, status }, by) => {
      told.push(`${kind} ${id ?? method}${status === undefined ? '' : ` HTTP ${status}`}`)
      if (kind === 'response' && id === '7') by.answered()
    },
    more: ({ id }) => void told.push(`more ${id}`),
    relayed: ({ length }) => void told.push(`relayed ${length}`),
    unparsable: ({ id }) => void told.push(`unparsable ${id ?? ''}`),
    ended: (_, failure) => void told.push(failure === undefined ? 'ended' : `${failure.kind}: ${failure.message}`),
  }
  const options = { ...DEFAULT_RECONNECT, random: () => 1, maxResumes: 2 }
  const exchange = new RequestExchange(7, { parts: [], id: 7, isRelayed, ...(stream && { stream }) }, ports, options)
  exchange.start()
  /** What was told since. */
  const since = (): string[] => told.splice(0).filter((text) => !text.startsWith('abort'))
  since()
  return { exchange, told, since, events: (): ReplyEvents => replies.at(-1)! }
}

test('F-02 more of its answer was received, on the stream that was resumed, too', () => {
  const { since, events } = sent()
  events().onMore?.()
  events().onHead?.(STREAM)
  events().onEvent(event('', { id: 'e' }))
  events().onEnd(STREAM, Buffer.alloc(0))
  vi.advanceTimersByTime(1_000)
  events().onMore?.()
  expect(since()).toEqual(['more 7', 'GET e', 'more 7'])
})

describe('an answer of one body', () => {
  test.each<[status: number, form: ReplyHead['form'], body: string, told: readonly string[], terms?: Terms]>([
    [200, 'json', RESULT, ['response 7', 'ended']],
    [200, 'json', RESULT, ['response 7', `relayed ${RESULT.length}`, 'ended'], { isRelayed: true }],
    [200, 'json', `[${PROGRESS},${RESULT}]`, ['notification notifications/progress', 'response 7', 'ended'], { isRelayed: true }],
    [200, 'json', errorOf(''), ['response 7', 'ended']],
    [
      200,
      'json',
      PROGRESS,
      ['notification notifications/progress', 'bad_response: the server answered HTTP 200 without the response'],
    ],
    [200, 'json', '', ['bad_response: the server answered HTTP 200 without the response']],
    [202, 'other', RESULT, ['bad_response: the server answered HTTP 202 with content type (none)']],
    [200, 'json', '{"jsonrpc":"2.0","id":7}', ['unparsable 7', 'bad_response: the response is unusable']],
    [
      200,
      'json',
      '{"jsonrpc":"2.0","id":8}',
      ['unparsable 8', 'bad_response: the server answered HTTP 200 without the response'],
    ],
    [400, 'json', errorOf('"id":7,'), ['response 7 HTTP 400', 'bad_response']],
    [400, 'json', errorOf('"id":null,'), ['response 7 HTTP 400', 'bad_response']],
    [400, 'json', errorOf('"id":8,'), ['response 7 HTTP 400', 'bad_response']],
    [400, 'json', PROGRESS, ['bad_response']],
    [400, 'json', '{"jsonrpc":"2.0","id":8,"result":{}}', ['bad_response']],
    [403, 'json', errorOf(''), ['forbidden']],
    [403, 'json', errorOf('"id":7,'), ['response 7 HTTP 403', 'forbidden']],
    [401, 'json', errorOf('"id":7,'), ['auth_required']],
    [404, 'json', errorOf(''), ['response 7 HTTP 404', 'not_found']],
    [404, 'json', errorOf(''), ['session_expired'], { hasSession: true }],
    [500, 'other', '<p>sorry', ['downstream_error']],
  ])('HTTP %i, %s: %s', (status, form, body, expected, terms = {}) => {
    const { since, events } = sent(terms)
    const head = headOf(status, form)
    events().onHead?.(head)
    events().onEnd(head, Buffer.from(body))
    const seen = since()
    expect(seen).toHaveLength(expected.length)
    for (const [at, text] of expected.entries()) expect(seen[at]?.startsWith(text)).toBe(true)
    // Once over, it is over.
    events().onError(new Failure('lost', 'late'))
    expect(since()).toEqual([])
  })

  test('of another type is named', () => {
    const { since, events } = sent()
    events().onEnd(headOf(200, 'other', 'text/plain'), Buffer.alloc(0))
    expect(since()).toEqual(['bad_response: the server answered HTTP 200 with content type text/plain'])
  })
})

describe('a stream', () => {
  test('ends with the response, which may be relayed; other messages come before it and after it', () => {
    const { since, events } = sent({ isRelayed: true })
    events().onHead?.(STREAM)
    events().onEvent(event(PROGRESS))
    events().onEvent(event(RESULT))
    events().onEvent(event(PROGRESS))
    events().onEvent(event(PROGRESS, { event: 'other' }))
    events().onEvent(event(''))
    events().onEnd(STREAM, Buffer.alloc(0))
    const notification = 'notification notifications/progress'
    expect(since()).toEqual([notification, 'response 7', `relayed ${RESULT.length}`, notification, 'ended'])
  })

  test.each<[string, Terms, Partial<SseEvent>]>([
    ['had no event id', {}, {}],
    ['belongs to a revision without resumption', { mayResume: false }, { id: 'a' }],
    ['had an id that no header can hold', {}, { id: 'a\n' }],
  ])('that ends without the response is lost where it %s', (_, terms, more) => {
    const { since, events } = sent(terms)
    events().onHead?.(STREAM)
    events().onEvent(event('', more))
    events().onEnd(STREAM, Buffer.alloc(0))
    expect(since()).toEqual(['lost: the stream ended without the response'])
  })

  test.each(['ends', 'breaks'])('that %s after an event id is asked for again from there, after a second', (end) => {
    const { since, events } = sent()
    events().onHead?.(STREAM)
    events().onEvent(event('', { id: 'a' }))
    events().onEvent(event(PROGRESS, { id: 'b' }))
    if (end === 'ends') events().onEnd(STREAM, Buffer.alloc(0))
    else events().onError(new Failure('lost', 'reset'))
    vi.advanceTimersByTime(999)
    expect(since()).toEqual(['notification notifications/progress'])
    vi.advanceTimersByTime(1)
    expect(since()).toEqual(['GET b'])
    events().onHead?.(STREAM)
    events().onEvent(event(RESULT))
    events().onEnd(STREAM, Buffer.alloc(0))
    expect(since()).toEqual(['response 7', 'ended'])
  })

  /** Ends the stream that is open at once, waits for the next one, and returns what was told and how long it took. */
  const next = (
    { since, events }: ReturnType<typeof sent>,
    end = (): void => events().onEnd(STREAM, Buffer.alloc(0)),
  ): string => {
    end()
    const [startedMs, told] = [performance.now(), since()]
    for (let ms = 0; ms < 60_000 && told.length === 0; ms += 10) {
      vi.advanceTimersByTime(10)
      told.push(...since())
    }
    return `${told.join(', ')} after ${performance.now() - startedMs}`
  }
  const begun = (): ReturnType<typeof sent> => {
    const one = sent()
    one.events().onHead?.(STREAM)
    one.events().onEvent(event('', { id: 'a' }))
    return one
  }

  test('is asked for twice in a row without anything new', () => {
    const one = begun()
    expect([next(one), next(one), next(one)]).toEqual([
      'GET a after 1000',
      'GET a after 2000',
      'lost: the stream ended without the response after 0',
    ])
  })

  test.each<[string, (events: ReplyEvents) => void, string]>([
    ['it brought a new event', (events) => events.onEvent(event('', { id: 'b' })), 'GET b after 1000'],
    ['it was open for ten seconds', () => void vi.advanceTimersByTime(10_000), 'GET a after 1000'],
    ['its server wants to be polled', (events) => events.onEvent(event('', { retry: 50 })), 'GET a after 50'],
    [
      'the same event came again',
      (events) => events.onEvent(event('', { id: 'a' })),
      'lost: the stream ended without the response after 0',
    ],
  ])('counts as new where %s', (_, act, then) => {
    const one = begun()
    next(one)
    next(one)
    one.events().onHead?.(STREAM)
    act(one.events())
    expect(next(one)).toBe(then)
  })

  test('that its server refuses to resume is lost, or asked for again later', () => {
    const refusal = (status: number) => () => one.events().onEnd(headOf(status, 'other'), Buffer.alloc(0))
    const one = begun()
    next(one)
    expect(next(one, refusal(503))).toBe('GET a after 2000')
    expect(next(one, refusal(404))).toBe('lost: the stream broke and the server refused to resume it: HTTP 404 after 0')
    for (const [status, form] of [
      [200, 'other'],
      [300, 'sse'],
      [404, 'sse'],
    ] as const) {
      const refused = begun()
      next(refused)
      const told = next(refused, () => refused.events().onEnd(headOf(status, form), Buffer.alloc(0)))
      expect(told).toBe(`lost: the stream broke and the server refused to resume it: HTTP ${status} after 0`)
    }
    const other = begun()
    next(other)
    next(other, () => other.events().onError(new Failure('unreachable', 'refused')))
    expect(next(other, () => other.events().onError(new Failure('timeout', 'late')))).toBe(
      'lost: the stream ended without the response after 0',
    )
    const large = begun()
    next(large)
    expect(next(large, () => large.events().onError(new Failure('too_large', 'an event')))).toBe('too_large: an event after 0')
  })

  test.each([
    [400, 'bad_response'],
    [503, 'downstream_error'],
  ])('with the error status %i ends with that status', (status, kind) => {
    const { since, events } = sent()
    const head = headOf(status, 'sse')
    events().onHead?.(head)
    events().onEvent(event('', { id: 'a' }))
    events().onEnd(head, Buffer.alloc(0))
    expect(since()).toEqual([`${kind}: the server answered HTTP ${status}`])
  })

  test('that cannot be read ends as it failed, even after an event id', () => {
    const { events, since } = begun()
    events().onError(new Failure('too_large', 'an event'))
    expect(since()).toEqual(['too_large: an event'])
  })

  test('is not asked for again once the response came on another one', () => {
    const { exchange, events, since } = begun()
    events().onEnd(STREAM, Buffer.alloc(0))
    exchange.answered()
    vi.advanceTimersByTime(60_000)
    expect(since()).toEqual(['ended'])
  })
})

test('a request that was given up is not sent, asks for nothing, and is told of nothing', () => {
  const { exchange, told, events } = sent()
  events().onHead?.(STREAM)
  events().onEvent(event('', { id: 'a' }))
  events().onEnd(STREAM, Buffer.alloc(0))
  exchange.abort()
  exchange.start()
  vi.advanceTimersByTime(60_000)
  expect(told).toEqual([])
  const open = sent()
  open.events().onHead?.(STREAM)
  open.exchange.abort()
  open.events().onEvent(event(RESULT))
  open.events().onEnd(STREAM, Buffer.alloc(0))
  expect([open.told, open.exchange.isSent]).toEqual([['abort 1'], true])
})

test('the stream of a cancelled request is read to its end; without a stream there is nothing to read', () => {
  const { exchange, events, since } = sent()
  expect([exchange.keepReading(), exchange.isCancelled]).toEqual([false, false])
  events().onHead?.(STREAM)
  events().onEvent(event('', { id: 'a' }))
  expect([exchange.keepReading(), exchange.isCancelled]).toEqual([true, true])
  events().onEvent(event(PROGRESS))
  events().onEnd(STREAM, Buffer.alloc(0))
  vi.advanceTimersByTime(60_000)
  expect(since()).toEqual(['notification notifications/progress', 'ended'])
  const waiting = sent()
  waiting.events().onHead?.(STREAM)
  waiting.events().onEvent(event('', { id: 'a' }))
  waiting.events().onEnd(STREAM, Buffer.alloc(0))
  expect(waiting.exchange.keepReading()).toBe(false)
  for (const head of [headOf(200, 'json'), headOf(300, 'sse')]) {
    const none = sent()
    none.events().onHead?.(head)
    expect(none.exchange.keepReading()).toBe(false)
  }
})

test('a request pauses what it reads', () => {
  const { exchange, since } = sent()
  exchange.pause()?.()
  expect(since()).toEqual(['resume 1'])
})

describe('a result that passes on while it is received', () => {
  const BEGUN = '{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text"'
  const source = () => ({ pause: vi.fn<() => void>(), resume: vi.fn<() => void>(), abort: vi.fn<() => void>() })

  test('is only one where its request allows it', () => {
    expect([sent().events().mayStream, sent({ stream: { idleMs: 1_000 } }).events().mayStream]).toEqual([false, true])
    const { events, exchange, since } = sent({ stream: { idleMs: 1_000, after: 'resultType' } })
    expect(events().stream?.(Buffer.from(BEGUN.slice(0, 40)), source())).toBe('more')
    expect(events().stream?.(Buffer.from(BEGUN.replace('resultType', 'other')), source())).toBeUndefined()
    expect([since(), exchange.isStreaming]).toEqual([[], false])
  })

  const begun = () => {
    const one = sent({ stream: { idleMs: 1_500 } })
    const from = source()
    const streamed = one.events().stream?.(Buffer.from(BEGUN), from)
    if (streamed === undefined || streamed === 'more') throw new Error('was not streamed')
    const fail = vi.spyOn(streamed, 'fail')
    return { ...one, from, fail, streamed }
  }

  test('answers its request, waits for its reader, and ends it', () => {
    const { exchange, from, since, events } = begun()
    expect([since(), exchange.isStreaming, from.pause.mock.calls.length]).toEqual([['response 7'], true, 1])
    events().onEnd(headOf(200, 'json'), Buffer.alloc(0))
    vi.advanceTimersByTime(60_000)
    expect(since()).toEqual(['ended'])
  })

  test('ends where nothing more of it comes in time', () => {
    const { fail, since, events } = begun()
    vi.advanceTimersByTime(1_499)
    events().onMore?.()
    vi.advanceTimersByTime(1_499)
    expect(since()).toEqual(['response 7', 'more 7'])
    vi.advanceTimersByTime(1)
    expect(fail.mock.lastCall?.[0]).toMatchObject({ kind: 'timeout', facts: { amount: 2 } })
    expect(since()).toEqual(['ended'])
  })

  test('F-02 F-21 does not end while its reader is slow: its server is not read, and can send nothing', () => {
    const { fail, since, from, streamed } = begun()
    streamed.pipe({ write: () => undefined, end: () => undefined, fail: () => undefined })
    vi.advanceTimersByTime(1_499)
    streamed.pause()
    vi.advanceTimersByTime(60_000)
    expect([fail.mock.calls, since(), from.pause.mock.calls.length]).toEqual([[], ['response 7'], 2])
    streamed.resume()
    vi.advanceTimersByTime(1_499)
    expect([since(), from.resume.mock.calls.length]).toEqual([[], 2])
    vi.advanceTimersByTime(1)
    expect(fail.mock.lastCall?.[0]).toMatchObject({ kind: 'timeout' })
    expect(since()).toEqual(['ended'])
  })

  test('does not end twice', () => {
    const { fail, exchange, since } = begun()
    exchange.abort()
    vi.advanceTimersByTime(60_000)
    expect([fail.mock.calls, since()]).toEqual([[], ['response 7']])
  })
})
