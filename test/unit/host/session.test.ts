/** What a legacy session keeps and what becomes of it: messages without a stream, questions, and requests in flight (BRIDGING 2.2, 5.1). */
import { expect, test, vi } from 'vitest'
import type { Exchange } from '../../../src/host/response/exchange.ts'
import { Session } from '../../../src/host/session/session.ts'
import type { Running } from '../../../src/host/session/session.ts'
import type { Answer, Call, Caller } from '../../../src/rpc/call.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import { NO_LIMITS } from '../../../src/wire/json/scan.ts'
import { readHostMessage } from '../../../src/wire/message/envelope.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import type { Parts } from '../../../src/wire/message/payload.ts'

const introduction = { revision: '2025-11-25', capabilities: {}, clientInfo: undefined, hops: 0 } as const

const makeAdmission = () => ({ begin: vi.fn(), end: vi.fn(() => -1 as const) })

/** A session whose host has not yet said `notifications/initialized`. */
const newSession = (admission = makeAdmission()): Session =>
  new Session({ introduction, principal: 'p', scope: { server: undefined }, admission, transport: 'stdio' })

const makeSession = () => {
  const admission = makeAdmission()
  const session = newSession(admission)
  session.initialized()
  return { session, admission }
}

/** Receives messages; `sent`: those, parsed. */
const makeOutlet = () => {
  const sent: { id?: number; method: string; params: Record<string, unknown> }[] = []
  const send = (parts: Parts): void => void sent.push(JSON.parse(join(parts).toString()) as (typeof sent)[number])
  return { sent, send }
}

const makeRunning = (id: string, exchange: Partial<Exchange> = {}) => {
  const { sent, send } = makeOutlet()
  const channel: Exchange = { message: send, answer: () => undefined, end: vi.fn(), ...exchange }
  const running: Running = {
    id,
    exchange: channel,
    listenerExchange: channel,
    abort: new Cancellation(),
    fail: vi.fn(),
    bytes: 7,
    isOver: false,
    questions: undefined,
  }
  return Object.assign(running, { sent })
}

const question = { method: 'sampling/createMessage', params: Payload.of({}) }
const answered = (id: string) =>
  readHostMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":{"code":-1,"message":"declined"}}`), NO_LIMITS)
const messageOf = async (answer: Promise<Answer>): Promise<string | undefined> => {
  const settled = await answer
  return 'error' in settled ? settled.error.text('message') : undefined
}

test('B130 what has waited for a stream goes on the first one only', () => {
  const { session } = makeSession()
  session.changed('tools')
  session.mayHaveChanged('x:1')
  const [one, two] = [makeOutlet(), makeOutlet()]
  session.attach(one)()
  session.attach(two)
  expect(one.sent.map(({ method }) => method)).toEqual(['notifications/tools/list_changed', 'notifications/resources/updated'])
  expect(two.sent).toEqual([])
})

test('B147 a log message outside of a call reaches the host from its level on', () => {
  const { session } = makeSession()
  const { sent, send } = makeOutlet()
  session.attach({ send })
  const log = (level: string): void => session.notify('notifications/message', Payload.of({ level, data: level }))
  log('debug')
  session.accepted('logging/setLevel', Payload.of({ level: 'warning' }))
  for (const level of ['notice', 'warning', 'error']) log(level)
  expect(sent.map(({ params }) => params['data'])).toEqual(['debug', 'warning', 'error'])
})

test('B257 updates of so many resources wait for a stream, each once', () => {
  const { session } = makeSession()
  for (const at of [...Array(300).keys(), 0, 299]) session.mayHaveChanged(`x:${at}`)
  const { sent, send } = makeOutlet()
  session.attach({ send })
  expect(sent.map(({ params }) => params['uri'])).toEqual(Array.from({ length: 256 }, (_, at) => `x:${at}`))
})

test('B139 what belongs to a request whose host has disconnected goes to the stream of the session', async () => {
  const { session } = makeSession()
  const { sent, send } = makeOutlet()
  session.attach({ send })
  const gone = makeRunning('1', { isGone: true })
  session.begin(gone)
  void session.askDuring(gone, question)
  expect([gone.sent, sent.map(({ method }) => method)]).toEqual([[], [question.method]])
})

test('B262 the end of a request takes its question back, though the server still works on it', () => {
  const { session } = makeSession()
  const running = makeRunning('1')
  session.begin(running)
  // Cast: what is read of a call.
  const candidates = (): readonly Call[] => [{ signal: running.abort.signal } as Call]
  const answer = session.askDuring(running, { ...question, candidates })
  const { sent, send } = makeOutlet()
  session.attach({ send })
  session.cancel(Payload.of({ requestId: 1 }))
  expect(running.sent.map(({ method }) => method)).toEqual([question.method, 'notifications/cancelled'])
  expect(running.sent[1]?.params['requestId']).toBe(running.sent[0]?.id)
  expect(sent).toEqual([])
  return expect(messageOf(answer)).resolves.toBe('the question was taken back')
})

test('7.4 a cancellation of an id that is in flight twice ends the newest', () => {
  const { session, admission } = makeSession()
  const [first, second] = [makeRunning('1'), makeRunning('1')]
  for (const running of [first, second]) session.begin(running)
  session.cancel(Payload.of({ requestId: 1 }))
  expect([first.abort.signal.aborted, second.abort.signal.aborted, session.inFlight]).toEqual([false, true, 1])
  expect(admission.end.mock.calls).toEqual([['p', 7]])
})

test('B257 a session that ends leaves nothing: its questions are settled, its requests answered and no longer counted', async () => {
  const { session, admission } = makeSession()
  session.attach(makeOutlet())
  const running = makeRunning('1')
  session.begin(running)
  const answers = [session.ask(question), session.askDuring(running, question)]
  const why = new Failure('shutting_down', 'the gateway stops')
  session.end(why)
  expect(await Promise.all(answers.map(messageOf))).toEqual(['the session has ended', 'the session has ended'])
  expect(running.fail).toHaveBeenCalledExactlyOnceWith(why)
  expect([running.abort.signal.aborted, session.inFlight]).toEqual([true, 0])
  session.finish(running)
  expect(admission.end.mock.calls).toEqual([['p', 7]])
})

test('B028 a question waits until the host has said notifications/initialized', () => {
  const session = newSession()
  const { sent, send } = makeOutlet()
  session.attach({ send })
  void session.ask(question)
  expect(sent).toEqual([])
  session.initialized()
  expect(sent.map(({ method }) => method)).toEqual([question.method])
})

test('B028 a question that is taken back, or waits too long for notifications/initialized, is never sent, nor its end', async () => {
  vi.useFakeTimers()
  const session = newSession()
  const { sent, send } = makeOutlet()
  session.attach({ send })
  let withdraw: (() => void) | undefined
  const withdrawn = session.ask({ ...question, onWithdrawn: (callback) => (withdraw = () => callback(Payload.of({}))) })
  const late = session.ask(question)
  withdraw?.()
  expect(await messageOf(withdrawn)).toBe('the question was taken back')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await messageOf(late)).toBe('the host has not said notifications/initialized')
  session.initialized()
  expect(sent).toEqual([])
})

test('B083 ids of questions are numbers of at most 32 bits, and those of two sessions differ', () => {
  const idsOf = (): (number | undefined)[] => {
    const { session } = makeSession()
    const { sent, send } = makeOutlet()
    session.attach({ send })
    for (const _ of [1, 2]) void session.ask(question)
    return sent.map(({ id }) => id)
  }
  const [one, two] = [idsOf(), idsOf()]
  for (const id of [...one, ...two]) expect(id).toSatisfy((value: unknown) => Number.isInteger(value) && Number(value) < 2 ** 31)
  expect(new Set([...one, ...two]).size).toBe(4)
})

test.each([
  ['as it is', String],
  ['as text', (id: number) => `"${id}"`],
  ['as a decimal number', (id: number) => `${id}.0`],
])('B288 an answer may have the id of the question %s', async (_, written) => {
  const { session } = makeSession()
  const { sent, send } = makeOutlet()
  session.attach({ send })
  const [first, second] = [session.ask(question), session.ask(question)]
  const [{ id = 0 } = {}] = sent
  session.settle(answered(written(id)))
  expect(await messageOf(first)).toBe('declined')
  session.end(new Failure('shutting_down', 'the gateway stops'))
  expect(await messageOf(second)).toBe('the session has ended')
})

test('B236 another scope or other facts of a token apply to further calls; another scope is announced', () => {
  const { session } = makeSession()
  const { sent, send } = makeOutlet()
  session.attach({ send })
  const watched: (Caller | 'ended' | 'unsubscribed')[] = []
  session.watchLists({
    watchLists: (caller) => void watched.push(caller),
    unwatchLists: () => void watched.push('ended'),
    unsubscribe: () => void watched.push('unsubscribed'),
  })
  const ALL = ['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`)
  const announced = (): unknown[] => sent.splice(0).map(({ method }) => method)
  const before = session.caller
  session.setAccess({ server: undefined })
  expect([session.caller === before, watched, announced()]).toEqual([true, [before], []])
  session.setAccess({ server: undefined, granted: 'mcp:a' })
  expect([watched.at(-1), announced()]).toEqual([session.caller, ALL])
  session.setAccess({ server: 'a', granted: 'mcp:a' })
  expect([watched.at(-1), session.caller.scope.server, announced()]).toEqual([session.caller, 'a', ALL])
  const facts = { claims: {}, scopes: [], host: '', address: '::1' }
  session.setAccess({ server: 'a', granted: 'mcp:a' }, facts)
  expect([session.facts?.address, watched.length, announced()]).toEqual(['::1', 3, []])
  session.end()
  expect(watched.slice(3)).toEqual(['ended', 'unsubscribed'])
})

test('3.11 log messages below the level of a session are left out; without a level, or without one of their own, they are relayed', () => {
  const { session } = makeSession()
  const { sent, send } = makeOutlet()
  session.attach({ send })
  const log = (): unknown[] => {
    sent.length = 0
    for (const level of ['debug', 'error', 'odd', undefined])
      session.notify('notifications/message', Payload.of({ level, data: 1 }))
    return sent.map(({ params }) => params['level'])
  }
  expect(log()).toEqual(['debug', 'error', 'odd', undefined])
  session.accepted('logging/setLevel', Payload.of({ level: 'warning' }))
  expect(log()).toEqual(['error', 'odd', undefined])
  session.setAccess({ server: 'a' })
  expect([session.logLevel, log()]).toEqual(['warning', ['debug', 'error', 'odd', undefined]])
})
