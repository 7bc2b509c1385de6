/** Questions of servers that no host is there to answer (B049, B263, B295). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { ServerRequests } from '../../../src/downstream/calls/server-requests.ts'
import { DEFAULT_SERVER } from '../../../src/downstream/options.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'
import type { Answer, Call, HostSession, Question } from '../../../src/rpc/call.ts'
import { Fidelity } from '../../../src/rpc/fidelity.ts'
import { elicitationIdFor } from '../../../src/era/questions.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'

const asking = (options: Partial<ServerOptions> = {}): ServerRequests => askingWith(options).requests
/** `noted`: what was recorded as not the same on both sides. */
const askingWith = (options: Partial<ServerOptions>) => {
  const fidelity = new Fidelity('a', { info: () => undefined, debug: () => undefined })
  const requests = new ServerRequests(() => ({ ...DEFAULT_SERVER, key: 'a', ...options }) as ServerOptions, fidelity)
  return { requests, noted: () => fidelity.counts.map(({ feature, verdict }) => `${feature} ${verdict}`) }
}
const question = (method: string, more: Partial<Question> = {}): Question => ({ method, params: undefined, ...more })
const said = (answer: Answer): unknown =>
  JSON.parse(join('result' in answer ? answer.result.parts() : answer.error.parts()).toString()) as unknown

describe('a question within none of our requests', () => {
  beforeEach(() => void vi.useFakeTimers())

  test.each(['elicitation/create', 'sampling/createMessage', 'vendor/ask'])(
    'B049 B295 %s stays open for 30 s and is refused then, on the main link and on those of hosts',
    async (method) => {
      const at = asking()
      const unsolicited = question(method, { isUnsolicited: true })
      const answers: unknown[] = []
      for (const answer of [at.decline(unsolicited), at.ask(unsolicited, {})]) void answer.then((one) => answers.push(said(one)))
      await vi.advanceTimersByTimeAsync(29_900)
      expect(answers).toEqual([])
      await vi.advanceTimersByTimeAsync(200)
      expect(answers).toEqual([expect.objectContaining({ code: -32601 }), expect.objectContaining({ code: -32601 })])
    },
  )

  test('B295 one that its server takes back is not kept', async () => {
    let withdraw: (() => void) | undefined
    const open = asking().decline(
      question('elicitation/create', { isUnsolicited: true, onWithdrawn: (callback) => void (withdraw = callback) }),
    )
    withdraw?.()
    await open
    expect(vi.getTimerCount()).toBe(0)
  })

  test('B295 of very many a few are left open; the rest is refused at once', async () => {
    const at = asking()
    for (let count = 0; count < 1_000; count++) void at.decline(question('elicitation/create', { isUnsolicited: true }))
    expect(vi.getTimerCount()).toBe(64)
    await vi.advanceTimersByTimeAsync(30_000)
    expect(vi.getTimerCount()).toBe(0)
    void at.decline(question('elicitation/create', { isUnsolicited: true }))
    expect(vi.getTimerCount()).toBe(1)
  })

  test('roots are told at once: they are no dialogue', async () => {
    expect(said(await asking().decline(question('roots/list', { isUnsolicited: true })))).toEqual({ roots: [] })
  })

  test('B295 roots are told later while a call of a host is under way on another link: they may be asked for that call', async () => {
    const answers: unknown[] = []
    const roots = question('roots/list', { isUnsolicited: true })
    void asking()
      .decline(roots, true)
      .then((answer) => answers.push(said(answer)))
    await vi.advanceTimersByTimeAsync(29_900)
    expect(answers).toEqual([])
    await vi.advanceTimersByTimeAsync(200)
    expect(answers).toEqual([{ roots: [] }])
    expect(said(await asking().decline(question('roots/list'), true))).toEqual({ roots: [] })
    expect(said(await asking({ roots: ['/own'] }).decline(roots, true))).toEqual({ roots: [{ uri: 'file:///own' }] })
  })
})

test('B263 a question within one of our requests is declined at once', async () => {
  expect(said(await asking().decline(question('elicitation/create')))).toEqual({ action: 'cancel' })
  expect(said(await asking().decline(question('sampling/createMessage')))).toMatchObject({ code: -1 })
  expect(said(await asking().decline(question('vendor/ask')))).toMatchObject({ code: -32601 })
})

/** A host that answers with its name. */
const answering = (name: string) => vi.fn<(asked: Question) => Promise<Answer>>(async () => ({ result: Payload.of({ name }) }))
const sessionOf = (id: string, isBridge = false, capabilities: object = { roots: {} }) => {
  const scope = isBridge ? { server: 'a' } : {}
  const session = { id, scope, capabilities, ask: answering(`session ${id}`), notify: vi.fn() }
  // Cast: what is used of a session.
  return { ...session, session: session as unknown as HostSession }
}
/** A call whose host can be asked. */
const callOf = (more: { principal?: string; session?: HostSession; isBridge?: boolean; ask?: Call['ask'] } = {}): Call => {
  const { principal = 'P', session, isBridge = false, ask = answering('call') } = more
  // Cast: what is used of a call.
  return { ask, caller: { principal, session, scope: isBridge ? { server: 'a' } : {} } } as unknown as Call
}
/** A call whose host cannot be asked. */
const silent = (principal = 'P'): Call => ({ caller: { principal, scope: {} } }) as unknown as Call

describe('who is asked', () => {
  const CREATE = question('elicitation/create')

  test('B048 the host of the call is, else the only host of the link, else nobody', async () => {
    const { requests, noted } = askingWith({})
    const only = sessionOf('only', true)
    expect(said(await requests.ask(CREATE, { call: callOf(), only: only.session }))).toEqual({ name: 'call' })
    expect(said(await requests.ask(CREATE, { call: silent(), only: only.session }))).toEqual({ name: 'session only' })
    expect(said(await requests.ask(CREATE, { only: only.session }))).toEqual({ name: 'session only' })
    expect(noted()).toEqual([])
    for (const call of [silent(), undefined])
      expect(said(await requests.ask(CREATE, { call, session: only.session }))).toEqual({
        code: -32601,
        message: 'no host can be asked elicitation/create now',
      })
    expect(noted()).toEqual(['input impossible'])
  })

  test('a host at a bridge is, with what the protocol does not define; others are not', async () => {
    const at = asking()
    const vendor = question('vendor/ask')
    const [bridged, usual] = [sessionOf('b', true), sessionOf('u')]
    const refusal = { code: -32601, message: 'Method not found: vendor/ask' }
    expect(said(await at.ask(vendor, { call: callOf({ isBridge: true }), session: bridged.session }))).toEqual({ name: 'call' })
    expect(said(await at.ask(vendor, { session: bridged.session }))).toEqual({ name: 'session b' })
    expect(said(await at.ask(vendor, { call: callOf(), session: bridged.session }))).toEqual(refusal)
    expect(said(await at.ask(vendor, { session: usual.session }))).toEqual(refusal)
    expect(said(await at.ask(vendor, {}))).toEqual(refusal)
    expect(said(await at.ask(question('tools/list', { isUnsolicited: true }), {}))).toMatchObject({ code: -32601 })
  })
})

describe('roots', () => {
  const ROOTS = question('roots/list')
  beforeEach(() => void vi.useFakeTimers())

  test('are those of the configuration, where it names some', async () => {
    const { requests, noted } = askingWith({ roots: ['/own', 'file:///other'] })
    const ask = answering('call')
    const call = callOf({ ask })
    expect(said(await requests.ask(ROOTS, { call }))).toEqual({ roots: [{ uri: 'file:///own' }, { uri: 'file:///other' }] })
    expect([noted(), ask.mock.calls.length]).toEqual([['roots projected'], 0])
  })

  test('are asked of the call within one, else of the session', async () => {
    const at = asking()
    const { session } = sessionOf('1')
    expect(said(await at.ask(ROOTS, { call: callOf(), session }))).toEqual({ name: 'call' })
    expect(said(await at.ask(ROOTS, { call: silent(), session }))).toEqual({ name: 'session 1' })
    expect(said(await at.ask(ROOTS, { session, waiting: callOf() }))).toEqual({ name: 'session 1' })
  })

  test('B038 are not asked of a session that declares none; at a bridge its host answers', async () => {
    const at = asking()
    const usual = sessionOf('1', false, {})
    const refusal = { code: -32601, message: 'no host can be asked for roots now' }
    expect(said(await at.ask(ROOTS, { session: usual.session }))).toEqual(refusal)
    expect(said(await at.ask(ROOTS, { call: silent(), session: usual.session }))).toEqual(refusal)
    expect(usual.ask).not.toHaveBeenCalled()
    expect(said(await at.ask(ROOTS, { session: sessionOf('b', true, {}).session }))).toEqual({ name: 'session b' })
  })

  test('of hosts without a session are known for five minutes, to calls of the same principal that wait for the link', async () => {
    const at = asking()
    const [first, later] = [answering('first'), answering('later')]
    const asked = async (principal: string, ask: Call['ask'], isWaiting: boolean): Promise<unknown> => {
      const call = callOf({ principal, ask })
      return said(await at.ask(ROOTS, isWaiting ? { waiting: call } : { call }))
    }
    expect(await asked('P', first, true)).toEqual({ name: 'first' })
    await vi.advanceTimersByTimeAsync(299_999)
    expect(await asked('P', later, true)).toEqual({ name: 'first' })
    expect(await asked('Q', answering('of Q'), true)).toEqual({ name: 'of Q' })
    await vi.advanceTimersByTimeAsync(1)
    expect(await asked('P', later, true)).toEqual({ name: 'later' })
    expect(await asked('P', first, false)).toEqual({ name: 'first' })
    expect(await asked('P', later, true)).toEqual({ name: 'first' })
  })

  test('T-34 are known as they were, although the memory of the request that brought them is used again', async () => {
    const at = asking()
    const request = Buffer.from('{"roots":[{"uri":"file:///own"}]}')
    await at.ask(ROOTS, { call: callOf({ principal: 'P', ask: async () => ({ result: Payload.at(request) }) }) })
    request.write('{"roots":[{"uri":"file:///two"}]}')
    const waiting = callOf({ principal: 'P' })
    expect(said(await at.ask(ROOTS, { waiting }))).toEqual({ roots: [{ uri: 'file:///own' }] })
  })

  test('B257 are known of a thousand principals: those that told theirs last', async () => {
    const at = asking()
    const asked = async (principal: string, name: string): Promise<unknown> =>
      said(await at.ask(ROOTS, { waiting: callOf({ principal, ask: answering(name) }) }))
    for (let principal = 0; principal <= 1_000; principal++) await asked(String(principal), 'first')
    expect(await asked('1', 'later')).toEqual({ name: 'first' })
    expect(await asked('0', 'later')).toEqual({ name: 'later' })
  })

  test('that were refused are asked again, and nobody answers where nobody can', async () => {
    const { requests, noted } = askingWith({})
    const refusing = async (): Promise<Answer> => ({ error: Payload.of({ code: -1 }) })
    expect(said(await requests.ask(ROOTS, { waiting: callOf({ ask: refusing }) }))).toEqual({ code: -1 })
    expect(said(await requests.ask(ROOTS, { waiting: callOf() }))).toEqual({ name: 'call' })
    expect(noted()).toEqual([])
    for (const to of [{}, { call: silent() }, { waiting: silent('Q') }])
      expect(said(await requests.ask(ROOTS, to))).toEqual({ code: -32601, message: 'no host can be asked for roots now' })
    expect(noted()).toEqual(['input impossible'])
  })
})

describe('B088 the end of an elicitation at a URL', () => {
  const sent = question('elicitation/create', { params: Payload.of({ mode: 'url', elicitationId: 'e' }) })
  /** Sends the person of each session to the URL. */
  const sendAway = async (at: ServerRequests, ...sessions: HostSession[]): Promise<void> => {
    for (const session of sessions) await at.ask(sent, { call: callOf({ session }) })
  }
  const told = ({ notify }: ReturnType<typeof sessionOf>): unknown[] =>
    notify.mock.calls.map(([method, params]) => [method, said({ result: params as Payload })])
  const end = (elicitationId: string) => ['notifications/elicitation/complete', { elicitationId }]

  test('is told once, under the id of the session', async () => {
    const at = asking()
    const one = sessionOf('1')
    await sendAway(at, one.session)
    at.completed('other', one.session)
    expect(told(one)).toEqual([])
    for (let times = 0; times < 2; times++) at.completed('e', undefined)
    expect(told(one)).toEqual([end(elicitationIdFor('1', 'a', 'e'))])
  })

  test('is told the session of the link alone, and nobody where several have the id', async () => {
    const at = asking()
    const [one, two] = [sessionOf('1'), sessionOf('2')]
    await sendAway(at, one.session, two.session)
    at.completed('e', undefined)
    expect([told(one), told(two)]).toEqual([[], []])
    at.completed('e', two.session)
    expect([told(one), told(two)]).toEqual([[], [end(elicitationIdFor('2', 'a', 'e'))]])
  })

  test('has the own id of the server at a bridge, which is told of links of its own by these', async () => {
    const shared = asking({ sharing: 'shared' })
    const one = sessionOf('1', true)
    await sendAway(shared, one.session)
    shared.completed('e', undefined)
    expect(told(one)).toEqual([end('e')])
    const [own, usual] = [sessionOf('1', true), sessionOf('2')]
    const alone = asking({ sharing: 'session' })
    await sendAway(alone, own.session, usual.session)
    alone.completed('e', own.session)
    alone.completed('e', usual.session)
    expect([told(own), told(usual)]).toEqual([[], [end(elicitationIdFor('2', 'a', 'e'))]])
  })
})
