/** Who is told what a server sends outside of the answers to its calls (BRIDGING 3.0; B051, B052, B277). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { LinkEventHandlers } from '../../../src/downstream/calls/link-events.ts'
import { ownerOf } from '../../../src/downstream/link-owner.ts'
import type { LinkOwner } from '../../../src/downstream/link-owner.ts'
import { LinkReports } from '../../../src/downstream/link-reports.ts'
import type { LinkReport } from '../../../src/downstream/link-reports.ts'
import type { Sharing } from '../../../src/downstream/options.ts'
import type { LinkEvents } from '../../../src/era/server/link.ts'
import type { Call, HostSession } from '../../../src/rpc/call.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'

const LOGGED = 'notifications/message'
const UPDATED = 'notifications/resources/updated'
const COMPLETED = 'notifications/elicitation/complete'
const TASK = 'notifications/tasks/status'
const rateOf = (amount: number) => ({ amount, periodMs: 1_000, text: `${amount}/s` })
const log = (): Payload => Payload.at(Buffer.from('{"level":"info","logger":"db","data":"x"}'))

/** What a session or a call was told. */
type Told = [method: string, params: unknown][]
const jsonOf = (params: unknown): unknown =>
  params instanceof Payload ? (JSON.parse(join(params.parts()).toString()) as unknown) : params
const sessionOf = (isBridge = false) => {
  const told: Told = []
  const notify = (method: string, params: unknown): void => void told.push([method, jsonOf(params)])
  // Cast: what is used of a session.
  const session = { scope: isBridge ? { server: 'a' } : {}, notify, isStalled: true } as unknown as HostSession
  return { session, told }
}
const callOf = (isBridge = false) => {
  const told: Told = []
  const notify = (method: string, params: unknown): void => void told.push([method, jsonOf(params)])
  // Cast: what is used of a call.
  return { call: { caller: { scope: isBridge ? { server: 'a' } : {} }, notify } as unknown as Call, told }
}
const ownerWith = (isolation: Sharing, ...sessions: HostSession[]): LinkOwner => {
  const owner = ownerOf({ key: 'k', isolation, principal: 'P', declared: {}, clientInfo: undefined, revision: undefined })
  for (const session of sessions) owner.sessions.add(session)
  owner.latest = sessions.at(-1)
  return owner
}

/** `sole`: the session of the only host of a pipe; `isSole`: there is one, though perhaps without a session. */
const setUp = ({
  sole,
  isSole = sole !== undefined,
  url,
  calls = 0,
}: { sole?: HostSession; isSole?: boolean; url?: string; calls?: number } = {}) => {
  const reported: LinkReport[] = []
  const reports = new LinkReports()
  reports.deliverTo((report) => reported.push(report))
  const limits = { maxLogMessages: rateOf(100), maxStderrBytes: 1_000 }
  const scene = { limits }
  const requests = { ask: vi.fn(async () => 'asked'), decline: vi.fn(async () => 'declined'), completed: vi.fn() }
  const environment = {
    limits: { hit: vi.fn() },
    listAnnounced: vi.fn(),
    log: { debug: vi.fn(), error: vi.fn() },
    logs: { logged: vi.fn() },
    soleHost: isSole ? {} : undefined,
    taskChanged: vi.fn(),
  }
  const handlers = new LinkEventHandlers({
    id: 'id',
    // Casts: what is used of each.
    options: () => ({ key: 'a', url, limits: scene.limits }) as never,
    environment: environment as never,
    requests: requests as never,
    callCount: () => calls,
    states: { now: { soleSession: sole } },
    reports,
  })
  return { handlers, reported, requests, environment, scene }
}

describe('an event that is about more than one host', () => {
  test.each<[string, (handlers: LinkEventHandlers, owner: LinkOwner) => LinkEvents, isOwn: boolean]>([
    ['the main link', (handlers) => handlers.onMain(), false],
    ['the link of a caller', (handlers, owner) => handlers.onLinkOf(owner), true],
  ])('of %s is reported with the link', (_, on, isOwn) => {
    const { handlers, reported, environment, requests } = setUp()
    const link = ownerWith('principal', sessionOf().session)
    const owner = isOwn ? link : undefined
    const events = on(handlers, link)
    const params = Payload.of({ uri: 'x://r' })
    const working = Payload.of({ taskId: '1', status: 'working' })
    const failed = Payload.of({ taskId: '1', status: 'failed' })
    events.listChanged('tools')
    events.updated('x://r', params)
    events.taskChanged(working)
    events.taskChanged(failed)
    events.refused?.('no', 'legacy')
    events.elicitationComplete('e', Payload.of({}))
    expect(reported).toEqual([
      { type: 'list-announced', list: 'tools', owner },
      { type: 'updated', uri: 'x://r', params, owner },
      { type: 'task-ended', id: '1', owner },
      { type: 'refused', error: 'no', era: 'legacy' },
    ])
    expect(environment.listAnnounced.mock.calls).toEqual([['a', 'tools', owner]])
    expect(environment.taskChanged.mock.calls).toEqual([
      ['id', working, owner],
      ['id', failed, owner],
    ])
    expect(requests.completed.mock.calls).toEqual([['e', undefined]])
  })

  test('of a link of one session at a bridge is told that host as it came', () => {
    const { handlers, reported, environment, requests } = setUp()
    const { session, told } = sessionOf(true)
    const events = handlers.onLinkOf(ownerWith('session', session))
    events.updated('x://r', Payload.of({ uri: 'x://r' }))
    events.taskChanged(Payload.of({ status: 'working' }))
    events.elicitationComplete('e', Payload.of({ elicitationId: 'e' }))
    expect(told).toEqual([
      [UPDATED, { uri: 'x://r' }],
      [TASK, { status: 'working' }],
      [COMPLETED, { elicitationId: 'e' }],
    ])
    expect([reported, environment.taskChanged.mock.calls, requests.completed.mock.calls]).toEqual([[], [], []])
  })

  test('of a link of one session elsewhere goes through the table of its elicitations', () => {
    const { handlers, requests } = setUp()
    const { session } = sessionOf()
    handlers.onLinkOf(ownerWith('session', session)).elicitationComplete('e', Payload.of({}))
    expect(requests.completed.mock.calls).toEqual([['e', session]])
  })

  test('of the main link is told the only host of a pipe, if that is at a bridge', () => {
    const [bridged, usual] = [sessionOf(true), sessionOf()]
    const [one, other] = [setUp({ sole: bridged.session }), setUp({ sole: usual.session })]
    for (const { handlers } of [one, other]) {
      handlers.onMain().updated('x://r', Payload.of({ uri: 'x://r' }))
      handlers.onMain().elicitationComplete('e', Payload.of({}))
    }
    expect(bridged.told).toEqual([
      [UPDATED, { uri: 'x://r' }],
      [COMPLETED, {}],
    ])
    expect([one.reported.length, other.reported.length, usual.told]).toEqual([0, 1, []])
    expect(other.requests.completed.mock.calls).toEqual([['e', usual.session]])
  })
})

describe('a log message', () => {
  const LABELLED = [LOGGED, { level: 'info', logger: 'a/db', data: 'x' }]
  const SENT = [LOGGED, { level: 'info', logger: 'db', data: 'x' }]

  test('is told its call, else the hosts of the link, with the name of the server except at a bridge', () => {
    const { handlers } = setUp()
    const [usual, bridged] = [sessionOf(), sessionOf(true)]
    const owner = ownerWith('shared', usual.session, bridged.session)
    const [call, bridgedCall] = [callOf(), callOf(true)]
    const events = handlers.onLinkOf(owner)
    events.message(log(), undefined)
    events.message(log(), call.call)
    events.message(log(), bridgedCall.call)
    expect([usual.told, bridged.told]).toEqual([[LABELLED], [SENT]])
    expect([call.told, bridgedCall.told]).toEqual([[LABELLED], [SENT]])
    owner.isMixed = true
    events.message(log(), undefined)
    expect([usual.told.length, bridged.told.length]).toEqual([1, 1])
  })

  test('without a logger has the name of the server for one', () => {
    const { call, told } = callOf()
    setUp()
      .handlers.onMain()
      .message(Payload.of({ data: 'x' }), call)
    expect(told).toEqual([[LOGGED, { data: 'x', logger: 'a' }]])
  })

  test('of the main link is told the only host of a pipe', () => {
    const [usual, bridged] = [sessionOf(), sessionOf(true)]
    for (const { session } of [usual, bridged]) setUp({ sole: session }).handlers.onMain().message(log(), undefined)
    expect([usual.told, bridged.told]).toEqual([[LABELLED], [SENT]])
    expect(() => setUp().handlers.onMain().message(log(), undefined)).not.toThrow()
  })

  describe('is stored', () => {
    beforeEach(() => void vi.useFakeTimers())

    test('and told while limits.log_messages allows it, which a reload changes', async () => {
      const { handlers, environment, scene } = setUp()
      scene.limits = { ...scene.limits, maxLogMessages: rateOf(2) }
      const { call, told } = callOf()
      const events = [handlers.onMain(), handlers.onLinkOf(ownerWith('session'))] as const
      for (const on of events) for (let times = 0; times < 3; times++) on.message(log(), call)
      expect([told.length, environment.logs.logged.mock.calls.length]).toEqual([4, 4])
      expect(environment.logs.logged.mock.calls[0]).toEqual(['a', 1_000, expect.any(Payload)])
      expect(environment.limits.hit.mock.calls).toEqual(events.map(() => ['limits.log_messages', 'a']))
      await vi.advanceTimersByTimeAsync(500)
      for (let times = 0; times < 2; times++) events[0].message(log(), call)
      expect(told).toHaveLength(5)
      scene.limits = { ...scene.limits, maxLogMessages: rateOf(3) }
      for (let times = 0; times < 4; times++) events[0].message(log(), call)
      expect(told).toHaveLength(8)
    })
  })
})

test('a notification that no revision defines is told hosts at a bridge alone', () => {
  const { handlers } = setUp()
  const [usual, bridged] = [sessionOf(), sessionOf(true)]
  const [call, bridgedCall] = [callOf(), callOf(true)]
  const events = handlers.onLinkOf(ownerWith('principal', usual.session, bridged.session))
  events.vendor('vendor/x', undefined, bridgedCall.call)
  expect([bridgedCall.told, bridged.told]).toEqual([[['vendor/x', {}]], []])
  events.vendor('vendor/x', Payload.of({ a: 1 }), call.call)
  expect([call.told, usual.told, bridged.told]).toEqual([[], [], [['vendor/x', { a: 1 }]]])
  const sole = sessionOf(true)
  setUp({ sole: sole.session }).handlers.onMain().vendor('vendor/y', undefined, undefined)
  setUp().handlers.onMain().vendor('vendor/y', undefined, undefined)
  expect(sole.told).toEqual([['vendor/y', undefined]])
})

describe('a question of the server', () => {
  const question = { method: 'roots/list', params: undefined }

  test('on the main link is declined, later where calls elsewhere may have caused it, and asked of an only host', async () => {
    const { call } = callOf()
    for (const [world, mayBeOfCall] of [
      [{ url: 'http://x', calls: 1 }, true],
      [{ url: 'http://x', calls: 0 }, false],
      [{ calls: 1 }, false],
    ] as const) {
      const { handlers, requests } = setUp(world)
      expect(await handlers.onMain().ask(question, call)).toBe('declined')
      expect(requests.decline.mock.calls).toEqual([[question, mayBeOfCall]])
    }
    const { session } = sessionOf(true)
    const { handlers, requests } = setUp({ sole: session })
    expect(await handlers.onMain().ask(question, call)).toBe('asked')
    expect(requests.ask.mock.calls).toEqual([[question, { call, waiting: call, session, only: session }]])
  })

  test('on the link of a caller is asked of its hosts, and on one of several principals of nobody', async () => {
    const { handlers, requests } = setUp()
    const { session } = sessionOf(true)
    const [call, first, last] = [callOf().call, callOf().call, callOf().call]
    const own = ownerWith('session', session)
    for (const one of [first, last]) own.waiting.add(one)
    await handlers.onLinkOf(own).ask(question, call)
    await handlers.onLinkOf(ownerWith('principal', session)).ask(question, call)
    await handlers.onLinkOf(ownerWith('shared', session)).ask(question, call)
    expect(requests.ask.mock.calls).toEqual([
      [question, { call, waiting: last, session, only: session }],
      [question, { call, waiting: undefined, session, only: undefined }],
      [question, {}],
    ])
  })
})

test('backpressure is that of the only host of a link', () => {
  const { session } = sessionOf()
  const { handlers } = setUp()
  const flowing = { onlyCall: () => undefined }
  expect(handlers.onLinkOf(ownerWith('session', session)).isHostStalled?.(flowing)).toBe(true)
  expect(handlers.onLinkOf(ownerWith('session')).isHostStalled?.(flowing)).toBe(false)
  expect(handlers.onLinkOf(ownerWith('principal', session))).not.toHaveProperty('isHostStalled')
  expect(handlers.onMain()).not.toHaveProperty('isHostStalled')
  expect(setUp({ sole: session }).handlers.onMain().isHostStalled?.(flowing)).toBe(true)
  // Cast: what is used of a call.
  const stalled = { responseChannel: { flow: { isStalled: true } } } as unknown as Call
  const modern = setUp({ isSole: true }).handlers.onMain()
  expect([modern.isHostStalled?.({ onlyCall: () => stalled }), modern.isHostStalled?.(flowing)]).toEqual([true, false])
})

test('T-14 a violation is logged with the beginning of what was sent, and a defect of the gateway as an error', () => {
  const { handlers, environment } = setUp()
  const events = handlers.onMain()
  events.violation('no JSON', `${'y'.repeat(180)} ${'z'.repeat(100)}`)
  events.violation('cannot be handled', 'x', new Error('defect'))
  events.violation('cannot be handled', 'x', 'text')
  expect(environment.log.debug.mock.calls).toEqual([[{ server: 'a', sample: `${'y'.repeat(180)} ` }, 'no JSON']])
  expect(environment.log.error.mock.calls).toEqual([
    [{ server: 'a', sample: 'x', error: expect.stringContaining('Error: defect') as string }, 'cannot be handled'],
    [{ server: 'a', sample: 'x', error: 'no error object' }, 'cannot be handled'],
  ])
})
