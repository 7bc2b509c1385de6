/** A link to a legacy server: its handshake, what calls become on it, and what its notifications do (BRIDGING 3.3). */
import { describe, expect, test, vi } from 'vitest'
import { LegacyLink, LEVEL_WAIT_MS } from '../../../src/era/server/legacy-link.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import type { Call, HostSession } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'
import { callOf } from '../../support/calls.ts'
import { serveConnection } from './served-connection.ts'
import type { Sent, Server } from './served-connection.ts'

const LIMITS = { idleMs: 1_000, totalMs: 60_000, startMs: 1_000 }
const IDENTITY = { name: 'g', title: 'G', version: '1' }
const HERE = { instance: 'me', hops: 0 }
const GATEWAYS = { _meta: { 'dev.trunkline/gateways': ['other'] } }
const SESSION = { id: 's' } as HostSession

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { logging: {}, tools: { listChanged: true } },
    instructions: 'Do',
    serverInfo: { name: 'srv' },
  },
}
const TASK_SERVER = { result: { ...RESULTS['initialize'], capabilities: { tasks: { requests: { tools: { call: {} } } } } } }
const answering =
  (answers: Readonly<Record<string, object>> = {}): Server =>
  ({ method }) =>
    answers[method] ?? { result: RESULTS[method] ?? {} }

/** A link on a pipe to a server that answers as said; `undefined`: not at all. */
const linkTo = async (server: Server = answering(), isBegun = true, limits = LIMITS) => {
  const { connection, handlers, sent, told, receive } = await serveConnection(server)
  const link = new LegacyLink(connection, handlers, () => limits)
  const begin = (more: object = {}, position = HERE) => link.initialize({ roots: {} }, { identity: IDENTITY, ...more }, position)
  if (isBegun) await begin()
  const handle = async (call: Call): Promise<object> => {
    const { kind, result } = await link.handle(call)
    return { kind, result: JSON.parse(Buffer.concat([result.parts()].flat(2)).toString()) as unknown }
  }
  return { link, begin, sent, told, receive, handle, last: () => sent.at(-1) }
}
const call = (method: string, params: object, more: Parameters<typeof callOf>[0] = {}): Call =>
  callOf({ method, params: Payload.of(params), ...more })
const refusing = (code: number): object => ({ error: { code, message: 'no' } })

test('a link that is retired is closed once its last call has ended', async () => {
  const { link, sent, receive } = await linkTo(({ method }) =>
    method === 'tools/call' ? undefined : { result: RESULTS[method] ?? {} },
  )
  const close = vi.spyOn(link.connection.channel, 'close')
  const calls = [link.handle(call('tools/call', { name: 'x' })), link.handle(call('tools/call', { name: 'y' }))]
  const retired = link.retire()
  const [first, second] = sent.filter(({ method }) => method === 'tools/call')
  receive({ id: first?.id, result: { content: [] } })
  await calls[0]
  expect(close).not.toHaveBeenCalled()
  receive({ id: second?.id, result: { content: [] } })
  await Promise.all([...calls, retired])
  expect(close).toHaveBeenCalledOnce()
})

describe('the handshake', () => {
  test('B141 is not cancelled when the server does not answer in time, unlike other requests', async () => {
    const silent: Server = ({ method }) => (method === 'initialize' ? TASK_SERVER : undefined)
    const { begin, sent } = await linkTo(() => undefined, false, { ...LIMITS, startMs: 20 })
    await expect(begin()).rejects.toMatchObject({ kind: 'timeout' })
    expect(sent.map(({ method }) => method)).toEqual(['initialize'])
    const other = await linkTo(silent, true, { ...LIMITS, startMs: 20 })
    await expect(other.link.fetch('tools/list', {})).rejects.toMatchObject({ kind: 'timeout' })
    expect(other.last()?.method).toBe('notifications/cancelled')
  })

  test('introduces us, tells the server that it is done, and keeps what it says', async () => {
    const { link, sent } = await linkTo()
    expect(sent).toMatchObject([
      {
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: { roots: {} },
          clientInfo: IDENTITY,
          _meta: { 'dev.trunkline/hops': 1 },
        },
      },
      { method: 'notifications/initialized' },
    ])
    expect(JSON.stringify(sent)).not.toContain('"via"')
    expect([link.revision, link.instructions, link.serverInfo, link.transport, link.gateways, link.tellsChanges]).toEqual([
      '2025-06-18',
      'Do',
      { name: 'srv' },
      'pipe',
      [],
      true,
    ])
  })

  test.each([
    [{ tools: {} }, false],
    [{ tools: { listChanged: true }, prompts: {} }, false],
    [{ tools: { listChanged: true }, prompts: { listChanged: true } }, true],
    [{}, true],
    // B282
    [{ tools: { listChanged: true }, prompts: null }, true],
  ])('of a server with %j says that it announces all changes: %s', async (capabilities, tells) => {
    const { link } = await linkTo(answering({ initialize: { result: { protocolVersion: '2025-06-18', capabilities } } }))
    expect(link.tellsChanges).toBe(tells)
  })

  test('asks for the revision of a host, and names the gateway beside it', async () => {
    const { begin, sent } = await linkTo(answering(), false)
    await begin({ revision: '2025-03-26', via: { ...IDENTITY, name: 'via' } }, { instance: 'me', hops: 1 })
    expect(sent[0]?.params).toMatchObject({ protocolVersion: '2025-03-26', _meta: { 'dev.trunkline/hops': 2 } })
    expect(JSON.stringify(sent[0])).toContain('"name":"via"')
  })

  test.each<[answer: object, error: object]>([
    [{ result: { protocolVersion: '2026-07-28' } }, { kind: 'version' }],
    [{ result: {} }, { kind: 'version' }],
    [{ result: { ...RESULTS['initialize'], _meta: { 'dev.trunkline/gateways': ['a', 'me'] } } }, { kind: 'loop' }],
    [refusing(-32602), { code: -32602 }],
  ])('that is answered with %j fails', async (answer, error) => {
    const { begin, sent } = await linkTo(answering({ initialize: answer }), false)
    await expect(begin()).rejects.toMatchObject(error)
    expect(sent).toHaveLength(1)
  })
})

describe('a call', () => {
  test('goes without what belongs to one exchange of a modern host, and with the id of the link as its progress token', async () => {
    const { handle, last } = await linkTo()
    const _meta = { own: 1, 'io.modelcontextprotocol/clientInfo': {}, 'dev.trunkline/hops': 1, progressToken: 'x' }
    await handle(call('tools/call', { name: 'x', _meta, requestState: 's', inputResponses: {} }, { progressToken: '"x"' }))
    expect(last()?.params).toEqual({ name: 'x', _meta: { own: 1, progressToken: last()?.id } })
  })

  test('B282 goes without a progress token that is null: its host asks for no progress', async () => {
    const { handle, last } = await linkTo()
    await handle(call('tools/call', { name: 'x', _meta: { own: 1, progressToken: null } }))
    expect(last()?.params).toEqual({ name: 'x', _meta: { own: 1 } })
  })

  test('of a legacy host keeps members that have no meaning of the protocol', async () => {
    const { handle, last } = await linkTo()
    await handle(call('tools/call', { name: 'x', requestState: 's' }, { caller: { session: SESSION, revision: '2025-06-18' } }))
    expect(last()?.params).toEqual({ name: 'x', requestState: 's' })
  })

  test('T-35 to a gateway says how many gateways it has passed, also without a _meta of its host', async () => {
    const { handle, last } = await linkTo(answering({ initialize: { result: { ...RESULTS['initialize'], ...GATEWAYS } } }))
    await handle(call('tools/call', { name: 'x', _meta: { 'dev.trunkline/hops': 1 } }))
    expect(last()?.params).toEqual({ name: 'x', _meta: { 'dev.trunkline/hops': 2 } })
    await handle(call('tools/call', { name: 'x' }))
    expect(last()?.params).toEqual({ name: 'x', _meta: { 'dev.trunkline/hops': 1 } })
  })

  test.each<[server: string, host: Revision, hasContext: boolean]>([
    ['2025-03-26', '2025-06-18', false],
    ['2025-06-18', '2025-06-18', true],
    ['2025-03-26', '2025-03-26', true],
  ])(
    'for a completion at a server of %s, from a host of %s, has its context: %s',
    async (protocolVersion, revision, hasContext) => {
      const { handle, last } = await linkTo(answering({ initialize: { result: { protocolVersion } } }))
      const caller = { session: SESSION, revision }
      await handle(call('completion/complete', { context: {} }, { caller }))
      expect(last()?.params).toEqual(hasContext ? { context: {} } : {})
      await handle(call('tools/call', { context: {} }, { caller }))
      expect(last()?.params).toEqual({ context: {} })
    },
  )

  test('that runs as a task is a task of the host’s era, and one that does not is a result', async () => {
    const task = { taskId: '1', status: 'working', ttl: 5_000 }
    const { handle, link, last } = await linkTo(answering({ 'tools/call': { result: { task } }, 'tasks/get': { result: task } }))
    const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    expect(await handle(call('tools/call', { name: 'x', task: {} }, { caller: { capabilities: TASKS } }))).toEqual({
      kind: 'task',
      result: { taskId: '1', status: 'working', ttlMs: 5_000 },
    })
    expect(
      await handle(call('tools/call', { name: 'x', task: {} }, { isUnchanged: true, caller: { session: SESSION } })),
    ).toEqual({ kind: 'complete', result: { task } })
    expect(await handle(call('tasks/get', { taskId: '1' }, { target: '1', caller: { capabilities: TASKS } }))).toMatchObject({
      result: { status: 'working', ttlMs: 5_000 },
    })
    expect(await handle(call('tasks/get', { taskId: '1' }, { target: '1', caller: { session: SESSION } }))).toEqual({
      kind: 'complete',
      result: task,
    })
    expect(last()?.method).toBe('tasks/get')
    expect(link.inFlight).toBe(0)
    const plain = await linkTo(answering({ 'tools/call': { result: { content: [] } } }))
    expect(await plain.handle(call('tools/call', { task: {} }))).toEqual({ kind: 'complete', result: { content: [] } })
    expect(await plain.handle(call('tools/call', { task: null }))).toMatchObject({ kind: 'complete' })
  })

  test('B142 that was cancelled before its task was known has the task cancelled', async () => {
    const stop = new Cancellation()
    const { handle, sent } = await linkTo(({ method }) => {
      if (method === 'initialize') return TASK_SERVER
      if (method !== 'tools/call') return { result: RESULTS[method] ?? {} }
      stop.abort()
      return { result: { task: { taskId: '1' } } }
    })
    await expect(handle(call('tools/call', { task: {} }, { signal: stop.signal }))).rejects.toMatchObject({ kind: 'cancelled' })
    expect(sent.map(({ method, params }) => [method, params?.['taskId']]).slice(2)).toContainEqual(['tasks/cancel', '1'])
    expect(sent.map(({ method }) => method)).not.toContain('notifications/cancelled')
  })

  test('B142 as a task at a server without tasks is a plain call, whose cancellation is relayed', async () => {
    const stop = new Cancellation()
    const { handle, sent } = await linkTo((message) => (message.method === 'tools/call' ? undefined : answering()(message)))
    const ended = handle(
      call('tools/call', { task: {} }, { signal: stop.signal, isUnchanged: true, caller: { session: SESSION } }),
    )
    await vi.waitFor(() => expect(sent).toHaveLength(3))
    stop.abort(Payload.of({ requestId: 7, reason: 'why' }))
    expect(sent.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: sent[2]?.id, reason: 'why' } })
    await expect(ended).rejects.toMatchObject({ kind: 'cancelled' })
  })

  test('that its host cancels is cancelled at the server', async () => {
    const stop = new Cancellation()
    const { handle, sent } = await linkTo((message) => (message.method === 'tools/call' ? undefined : answering()(message)))
    const ended = handle(call('tools/call', {}, { signal: stop.signal }))
    await vi.waitFor(() => expect(sent).toHaveLength(3))
    stop.abort()
    await expect(ended).rejects.toMatchObject({ kind: 'cancelled' })
    expect(sent.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: sent[2]?.id } })
  })
})

describe('the log level', () => {
  const levels = (sent: readonly Sent[]): unknown[] =>
    sent.filter(({ method }) => method === 'logging/setLevel').map(({ params }) => params?.['level'])

  test('is set once, until another one is wanted, or a host has set one', async () => {
    const { link, handle, sent } = await linkTo()
    for (const level of ['info', 'info', 'error', 'info'] as const) await link.setLevel(level)
    expect(levels(sent)).toEqual(['info', 'error', 'info'])
    await handle(call('logging/setLevel', { level: 'debug' }, { caller: { session: SESSION } }))
    await link.setLevel('debug')
    expect(levels(sent)).toEqual(['info', 'error', 'info', 'debug'])
    await handle(call('logging/setLevel', { level: 'loud' }, { caller: { session: SESSION } }))
    await link.setLevel('debug')
    expect(levels(sent)).toHaveLength(5)
  })

  test('B286 that a server does not answer holds up no call for long, and later calls not at all', async () => {
    const silent: Server = (message) => (message.method === 'logging/setLevel' ? undefined : answering()(message))
    const { link, sent } = await linkTo(silent, true, { ...LIMITS, startMs: 60_000 })
    const done: string[] = []
    const want = async (what: string): Promise<void> => {
      await link.setLevel('info')
      done.push(what)
    }
    vi.useFakeTimers()
    void want('first')
    await vi.advanceTimersByTimeAsync(LEVEL_WAIT_MS)
    void want('second')
    await vi.advanceTimersByTimeAsync(0)
    expect(done).toEqual(['first', 'second'])
    expect(levels(sent)).toEqual(['info'])
  })

  test('B282 of a server whose logging is null none is set', async () => {
    const { link, sent } = await linkTo(
      answering({ initialize: { result: { protocolVersion: '2025-06-18', capabilities: { logging: null } } } }),
    )
    await link.setLevel('info')
    expect(sent.map(({ method }) => method)).toEqual(['initialize', 'notifications/initialized'])
  })

  test('B286 that is refused is told and not wanted again; of a server without logging none is set', async () => {
    const { link, sent, told } = await linkTo(answering({ 'logging/setLevel': refusing(-32601) }))
    for (const level of ['info', 'info', 'error'] as const) await link.setLevel(level)
    expect(levels(sent)).toEqual(['info', 'error'])
    expect(told).toEqual(
      ['info', 'error'].map((level) => [
        'violation',
        `logging/setLevel "${level}" was refused`,
        expect.stringContaining('no') as unknown,
      ]),
    )
    const without = await linkTo(answering({ initialize: { result: { protocolVersion: '2025-06-18', capabilities: {} } } }))
    await without.link.setLevel('info')
    expect(levels(without.sent)).toEqual([])
  })
})

describe('requests of the gateway', () => {
  test('subscribe, ask, look for gateways and notify', async () => {
    const { link, sent } = await linkTo(answering({ ping: { result: GATEWAYS }, 'tools/list': { result: { tools: [] } } }))
    expect(await link.subscribe('u:1')).toBe(true)
    await link.unsubscribe('u:1')
    expect((await link.fetch('tools/list', { cursor: 'c' })).has('tools')).toBe(true)
    await link.survey()
    expect(link.gateways).toEqual(['other'])
    link.rootsChanged()
    link.notify('notifications/x', Payload.of({ a: 1 }))
    link.notify('notifications/y', undefined)
    await link.followTask()
    await link.unfollowTask()
    expect(sent.slice(2).map(({ method, params }) => [method, params])).toEqual([
      ['resources/subscribe', { uri: 'u:1' }],
      ['resources/unsubscribe', { uri: 'u:1' }],
      ['tools/list', { cursor: 'c' }],
      ['ping', { _meta: { 'dev.trunkline/hops': 1 } }],
      ['notifications/roots/list_changed', undefined],
      ['notifications/x', { a: 1 }],
      ['notifications/y', undefined],
    ])
  })

  test('a server lives that answers a ping, be it with an error, and one that is silent does not', async () => {
    const { link } = await linkTo()
    expect(await link.ping(100)).toBe(true)
    const refused = await linkTo(answering({ ping: refusing(-32601) }))
    expect([await refused.link.ping(100), refused.told.map((one) => (one as unknown[])[0])]).toEqual([true, ['refused']])
    const broken = await linkTo(answering({ ping: { error: { code: 'x' } } }))
    expect(await broken.link.ping(100)).toBe(false)
  })
})

test.each<[method: string, params: object | undefined, told: readonly unknown[] | undefined]>([
  ['notifications/tools/list_changed', undefined, ['listChanged', 'tools']],
  ['notifications/resources/updated', { uri: 'u:1' }, ['updated', 'u:1', 'params']],
  ['notifications/resources/updated', {}, ['updated', '', 'params']],
  ['notifications/resources/updated', undefined, undefined],
  ['notifications/message', { level: 'info' }, ['message', 'params', undefined]],
  ['notifications/elicitation/complete', { elicitationId: 'e' }, ['elicitationComplete', 'e', 'params']],
  ['notifications/elicitation/complete', {}, ['elicitationComplete', '', 'params']],
  ['notifications/tasks/status', { taskId: '1' }, ['taskChanged', 'params']],
  ['notifications/cancelled', { requestId: 9 }, undefined],
  ['notifications/initialized', {}, undefined],
  ['notifications/own/thing', undefined, ['vendor', 'notifications/own/thing', undefined, undefined]],
])('%s with %j is told as %j', async (method, params, expected) => {
  const { receive, told } = await linkTo()
  receive({ method, params })
  expect(told).toEqual(expected === undefined ? [] : [expected])
})

test('a log message and a notification of no revision belong to the only call under way', async () => {
  const { link, receive, told } = await linkTo((message) => (message.method === 'tools/call' ? undefined : answering()(message)))
  const one = call('tools/call', {})
  void link.handle(one).catch(() => undefined)
  receive({ method: 'notifications/message', params: {} })
  receive({ method: 'notifications/own/thing', params: {} })
  expect(told).toEqual([
    ['message', 'params', one],
    ['vendor', 'notifications/own/thing', 'params', one],
  ])
})
