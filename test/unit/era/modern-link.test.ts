/** A link to a modern server: what calls become on it, what its results are, and what it is subscribed to (BRIDGING 3.3, 3.13). */
import { describe, expect, test, vi } from 'vitest'
import { ModernLink } from '../../../src/era/server/modern-link.ts'
import { Cancellation } from '../../../src/rpc/cancellation.ts'
import type { Call, HostSession } from '../../../src/rpc/call.ts'
import type { Channel } from '../../../src/transport/channel/channel.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'
import { serveConnection } from './served-connection.ts'
import type { Server } from './served-connection.ts'

const P = 'io.modelcontextprotocol/'
const TASKS = `${P}tasks`
const CREDENTIALS = `${P}oauth-client-credentials`
const LIMITS = { idleMs: 1_000, totalMs: 60_000, startMs: 1_000 }
const IDENTITY = { name: 'g', title: 'G', version: '1' }
const SESSION = { id: 's' } as HostSession

interface Facts {
  readonly capabilities?: Readonly<Record<string, unknown>>
  readonly gateways?: readonly string[]
  readonly kind?: Channel['kind']
  readonly usesClientCredentials?: boolean
}

const linkTo = async (
  server: Server = () => ({ result: {} }),
  { capabilities = {}, gateways = [], kind, usesClientCredentials = false }: Facts = {},
) => {
  const { connection, handlers, ...rest } = await serveConnection(server, kind)
  const about = { capabilities, gateways, instructions: 'Do', serverInfo: undefined }
  const link = new ModernLink(
    connection,
    about,
    { identity: IDENTITY, declared: { roots: {} }, usesClientCredentials },
    handlers,
    () => LIMITS,
  )
  const handle = async (call: Call): Promise<object> => {
    const { result, ...outcome } = await link.handle(call)
    return { ...outcome, result: JSON.parse(Buffer.concat([result.parts()].flat(2)).toString()) as unknown }
  }
  return { link, handle, handlers, last: () => rest.sent.at(-1), ...rest }
}
const call = (method: string, params: object, more: Parameters<typeof callOf>[0] = {}): Call =>
  callOf({ method, params: Payload.of(params), ...more })
const metaOf = (sent: { readonly params?: Readonly<Record<string, unknown>> } | undefined): object =>
  sent?.params?.['_meta'] ?? {}

describe('the _meta of a call', () => {
  test.each<[what: string, more: Parameters<typeof callOf>[0], facts: Facts, meta: object]>([
    [
      'names the gateway, and what its host can do',
      { caller: { capabilities: { sampling: {} } } },
      {},
      { clientInfo: IDENTITY, clientCapabilities: { sampling: {} } },
    ],
    [
      'B039 says forms where a host says nothing of elicitation',
      { caller: { capabilities: { elicitation: {} } } },
      {},
      { clientCapabilities: { elicitation: { form: {} } } },
    ],
    [
      'B039 keeps what a host says of elicitation',
      { caller: { capabilities: { elicitation: { url: {} } } } },
      {},
      { clientCapabilities: { elicitation: { url: {} } } },
    ],
    [
      'B039 keeps what a host says of forms alone',
      { caller: { capabilities: { elicitation: { form: { applyDefaults: true } } } } },
      {},
      { clientCapabilities: { elicitation: { form: { applyDefaults: true } } } },
    ],
    [
      'declares client credentials where they are used',
      {},
      { usesClientCredentials: true },
      { clientCapabilities: { extensions: { [CREDENTIALS]: {} } } },
    ],
    ['has the log level of its host', { logLevel: 'error' }, {}, { logLevel: 'error' }],
    ['has a log level for legacy hosts', { caller: { session: SESSION } }, {}, { logLevel: 'info' }],
  ])('%s', async (_what, more, facts, meta) => {
    const { handle, last } = await linkTo(undefined, facts)
    await handle(call('tools/list', {}, more))
    const prefixed = Object.entries(meta).map(([key, value]) => [`${P}${key}`, value] as const)
    expect(metaOf(last())).toMatchObject({ [`${P}protocolVersion`]: '2026-07-28', ...Object.fromEntries(prefixed) })
    if (!('logLevel' in meta)) expect(metaOf(last())).not.toHaveProperty([`${P}logLevel`])
  })

  test('T-35 counts gateways towards a gateway, and is silent of them towards others', async () => {
    const _meta = { 'dev.trunkline/hops': 1 }
    const [plain, gateway] = [await linkTo(), await linkTo(undefined, { gateways: ['other'] })]
    for (const { handle } of [plain, gateway]) await handle(call('tools/list', { _meta }))
    expect([plain, gateway].map(({ last }) => (metaOf(last()) as Record<string, unknown>)['dev.trunkline/hops'])).toEqual([
      undefined,
      2,
    ])
  })

  test('is that of the link in requests of the gateway', async () => {
    const { link, last } = await linkTo(undefined, { usesClientCredentials: true })
    await link.fetch('tools/list', { cursor: 'c' })
    expect(last()).toMatchObject({
      method: 'tools/list',
      params: {
        cursor: 'c',
        _meta: {
          [`${P}clientInfo`]: IDENTITY,
          [`${P}clientCapabilities`]: { roots: {}, extensions: { [TASKS]: {}, [CREDENTIALS]: {} } },
        },
      },
    })
    await link.fetch('tools/list', {}, { sampling: {} })
    expect(metaOf(last())).toMatchObject({ [`${P}clientCapabilities`]: { sampling: {}, extensions: { [CREDENTIALS]: {} } } })
  })
})

test('B066 a round goes with the state and the answers for this server, and never with those of the host', async () => {
  const { handle, last } = await linkTo()
  const { _meta: _1, ...none } =
    (await handle(call('tools/call', { name: 'x', task: {}, requestState: 'h', inputResponses: {} })), last()?.params ?? {})
  expect(none).toEqual({ name: 'x' })
  const resume = { state: 'own', responses: Payload.of({ a: { action: 'cancel' } }) }
  const { _meta: _2, ...round } =
    (await handle(call('tools/call', { name: 'x', requestState: 'h' }, { resume })), last()?.params ?? {})
  expect(round).toEqual({ name: 'x', requestState: 'own', inputResponses: { a: { action: 'cancel' } } })
})

describe('headers', () => {
  test('B219 mirror method and name over HTTP, and are none on a pipe', async () => {
    const [pipe, http] = [await linkTo(), await linkTo(undefined, { kind: 'http' })]
    for (const { handle, link } of [pipe, http]) {
      await handle(call('tools/call', { name: 'x' }, { target: 'x' }))
      await handle(call('tools/list', {}, { target: 'x' }))
      await link.fetch('prompts/get', { name: 'p' })
    }
    expect(pipe.headers).toEqual([{}, {}, {}])
    expect(http.headers.map((one) => [one?.['mcp-method'], one?.['mcp-name']])).toEqual([
      ['tools/call', 'x'],
      ['tools/list', undefined],
      ['prompts/get', 'p'],
    ])
  })

  test('that nobody knows are relayed, but not in place of ours', async () => {
    const { handle, headers } = await linkTo(undefined, { kind: 'http' })
    await handle(call('tools/call', { name: 'x' }, { target: 'x', unknownHeaders: { 'mcp-own': '1', 'mcp-method': 'other' } }))
    expect(headers[0]).toMatchObject({ 'mcp-own': '1', 'mcp-method': 'tools/call', 'mcp-name': 'x' })
  })
})

const APP = { extensions: { own: {} } }
test.each<[method: string, result: object, capabilities: object, isLegacy: boolean, outcome: object]>([
  ['tools/call', { n: 1 }, {}, false, { kind: 'complete', era: 'modern' }],
  ['tools/call', { resultType: 'complete' }, {}, false, { kind: 'complete', era: 'modern' }],
  ['tools/call', { resultType: 'task', taskId: '1' }, { extensions: { [TASKS]: {} } }, false, { kind: 'task' }],
  ['tools/call', { resultType: 'task' }, { extensions: { [TASKS]: {} } }, false, { error: 'bad_response' }],
  ['tools/call', { resultType: 'task', taskId: '1' }, APP, false, { error: 'protocol' }],
  ['prompts/get', { resultType: 'task', taskId: '1' }, { extensions: { [TASKS]: {} } }, false, { error: 'protocol' }],
  ['tools/call', { resultType: 'own' }, APP, false, { kind: 'complete', type: 'own' }],
  ['tools/call', { resultType: 'own' }, APP, true, { error: 'protocol' }],
  ['tools/call', { resultType: 'own' }, { extensions: {} }, false, { error: 'protocol' }],
  ['tools/call', { resultType: 'own' }, {}, false, { error: 'protocol' }],
  ['tools/call', { resultType: 'input_required', requestState: 's' }, {}, false, { kind: 'input_required', state: 's' }],
  ['tools/call', { resultType: 'input_required', inputRequests: {} }, {}, false, { kind: 'input_required', state: undefined }],
  ['tools/call', { resultType: 'input_required' }, {}, false, { error: 'protocol' }],
  ['tools/call', { resultType: 'input_required', inputRequests: null, requestState: null }, {}, false, { error: 'protocol' }],
  ['tools/list', { resultType: 'input_required', requestState: 's' }, {}, false, { error: 'protocol' }],
  ['tools/call', { resultType: null }, {}, false, { kind: 'complete', era: 'modern' }],
  ['tools/call', { resultType: 5 }, {}, false, { error: 'protocol' }],
  ['tools/call', { resultType: ['complete'] }, {}, true, { error: 'protocol' }],
])(
  'B009 B058 the answer to %s, %j, for a host with %j, legacy: %s, is %j',
  async (method, result, capabilities, isLegacy, outcome) => {
    const { handle } = await linkTo(() => ({ result }))
    const answer = handle(
      call(method, {}, { caller: { capabilities: { ...capabilities }, session: isLegacy ? SESSION : undefined } }),
    )
    if ('error' in outcome) await expect(answer).rejects.toMatchObject({ kind: outcome.error })
    else expect(await answer).toEqual({ ...outcome, result })
  },
)

test.each([
  { resultType: 'own' },
  { resultType: 5 },
  { resultType: 'input_required', requestState: 's' },
  { resultType: 'task', taskId: '1' },
])('B010 %j in answer to a request of the gateway itself is an invalid response', async (result) => {
  const { link } = await linkTo(() => ({ result: { tools: [], ...result } }))
  await expect(link.fetch('tools/list', {})).rejects.toMatchObject({ kind: 'bad_response' })
})

test.each([
  ['pipe', true],
  ['http', false],
] as const)('B140 a call that is cancelled over %s is cancelled by a message: %s', async (kind, isSent) => {
  const stop = new Cancellation()
  const { handle, sent } = await linkTo(() => undefined, { kind })
  const ended = handle(call('tools/call', {}, { signal: stop.signal }))
  await vi.waitFor(() => expect(sent).toHaveLength(1))
  stop.abort()
  await expect(ended).rejects.toMatchObject({ kind: 'cancelled' })
  expect(sent.slice(1).map(({ method }) => method)).toEqual(isSent ? ['notifications/cancelled'] : [])
})

test.each([
  ['http', false],
  ['pipe', true],
  ['sse', true],
] as const)('B140 a listen that ends over %s is cancelled by a message: %s', async (kind, isSent) => {
  const { link, sent } = await linkTo(() => undefined, { kind, capabilities: { tools: { listChanged: true } } })
  link.listen()
  await vi.waitFor(() => expect(sent).toHaveLength(1))
  await link.close()
  expect(sent.slice(1).map(({ method }) => method)).toEqual(isSent ? ['notifications/cancelled'] : [])
})

test('B072 a request of the server is a violation, and is answered all the same, with an error where no host can be asked', async () => {
  const { receive, sent, told } = await linkTo()
  receive({ id: 3, method: 'elicitation/create', params: {} })
  await vi.waitFor(() => expect(sent).toHaveLength(1))
  expect(told).toEqual([['violation', 'a request on a modern link', 'elicitation/create']])
  expect(sent[0]).toMatchObject({ id: 3, error: { code: -32601 } })
})

describe('subscriptions', () => {
  const LISTS = { tools: { listChanged: true }, prompts: { listChanged: false }, resources: { subscribe: true } }

  test('are for the lists that the server announces; it tells changes when it has accepted those of all its lists', async () => {
    const { link, sent } = await linkTo(() => undefined, { capabilities: LISTS })
    link.listen()
    await vi.waitFor(() => expect(sent).toHaveLength(1))
    expect(sent[0]).toMatchObject({ method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } })
    expect(JSON.stringify(sent[0])).not.toContain('promptsListChanged')
    expect(link.tellsChanges).toBe(false)
  })

  test('to resources are made where the server offers them', async () => {
    const without = await linkTo(() => undefined, { capabilities: { resources: {} } })
    expect([await without.link.subscribe('u:1'), without.sent]).toEqual([false, []])
    await without.link.followTask('1')
    expect(without.sent).toEqual([])
  })

  test('B127 to lists that end right after their acknowledgement are opened again later each time', async () => {
    vi.useFakeTimers()
    const { link, sent, receive, told } = await linkTo(() => undefined, { capabilities: LISTS })
    link.listen()
    for (const waitMs of [1_000, 2_000, 4_000]) {
      const { id, params } = sent.at(-1)!
      const { notifications } = params!
      receive({
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: { [`${P}subscriptionId`]: id }, notifications },
      })
      receive({ id, result: {} })
      const streams = sent.length
      await vi.advanceTimersByTimeAsync(waitMs / 2 - 1)
      expect(sent).toHaveLength(streams)
      await vi.advanceTimersByTimeAsync(waitMs / 2 + 2)
      expect(sent).toHaveLength(streams + 1)
    }
    expect(told.length, 'lists are read again after each gap').toBeGreaterThan(0)
  })

  test.each([[null], [undefined]])(
    'F-31 B284 that are acknowledged with %j are refused, at once and after a gap',
    async (notifications) => {
      vi.useFakeTimers()
      const { link, sent, receive } = await linkTo(() => undefined, { capabilities: { resources: { subscribe: true } } })
      const listens = () => sent.filter(({ method }) => method === 'subscriptions/listen')
      const acknowledge = async (streams: number, agreed: unknown): Promise<void> => {
        await vi.waitFor(() => expect(listens()).toHaveLength(streams))
        const _meta = { [`${P}subscriptionId`]: listens().at(-1)?.id }
        receive({ method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications: agreed } })
      }
      const refused = link.subscribe('u:1')
      await acknowledge(1, notifications)
      expect(await refused).toBe(false)
      const accepted = link.subscribe('u:2')
      await acknowledge(2, { resourceSubscriptions: ['u:2'] })
      expect(await accepted).toBe(true)
      receive({ id: listens().at(-1)?.id, result: {} })
      await vi.advanceTimersByTimeAsync(1_000)
      await acknowledge(3, notifications)
      await vi.advanceTimersByTimeAsync(60_000)
      expect(listens()).toHaveLength(3)
    },
  )

  test('F-31 a task that is read again after a gap, and cannot be, is told as a violation', async () => {
    vi.useFakeTimers()
    const server: Server = ({ method }) => (method === 'tasks/get' ? { result: { status: 'working' } } : undefined)
    const { link, handlers, sent, receive, told } = await linkTo(server, { capabilities: { extensions: { [TASKS]: {} } } })
    // As its values are, where they are no JSON.
    vi.spyOn(handlers, 'taskChanged').mockImplementation(() => {
      throw new Error('bad escape')
    })
    const following = link.followTask('1')
    const accept = async (streams: number): Promise<void> => {
      await vi.waitFor(() => expect(sent).toHaveLength(streams))
      const _meta = { [`${P}subscriptionId`]: sent.at(-1)?.id }
      receive({ method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications: { taskIds: ['1'] } } })
    }
    await accept(1)
    await following
    receive({ id: sent[0]?.id, result: {} })
    await vi.advanceTimersByTimeAsync(1_000)
    await accept(2)
    await vi.waitFor(() => expect(told).toEqual([['violation', 'a task could not be read', 'Error: bad escape']]))
  })

  test.each<[what: string, params: object]>([
    ['null in it', { notifications: null }],
    ['no filter', {}],
  ])('B127 an acknowledgement with %s agrees to nothing, and its stream is closed', async (_what, params) => {
    vi.useFakeTimers()
    const { link, sent, receive } = await linkTo(() => undefined, { capabilities: LISTS, kind: 'pipe' })
    const listens = () => sent.filter(({ method }) => method === 'subscriptions/listen')
    const accept = async (streams: number, answer: object): Promise<void> => {
      await vi.waitFor(() => expect(listens()).toHaveLength(streams))
      const _meta = { [`${P}subscriptionId`]: listens().at(-1)?.id }
      receive({ method: 'notifications/subscriptions/acknowledged', params: { _meta, ...answer } })
    }
    const watching = link.subscribe('u:1')
    await accept(1, { notifications: { resourceSubscriptions: ['u:1'] } })
    expect(await watching).toBe(true)
    receive({ id: listens()[0]?.id, result: {} })
    await vi.advanceTimersByTimeAsync(1_000)
    await accept(2, params)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(listens()).toHaveLength(2)
    expect(sent.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: listens()[1]?.id } })
  })

  test('a gateway is asked again which gateways stand behind it', async () => {
    const { link } = await linkTo(() => ({ result: { _meta: { 'dev.trunkline/gateways': ['a', 'b'] } } }), { gateways: ['a'] })
    expect(link.gateways).toEqual(['a'])
    await link.survey()
    expect(link.gateways).toEqual(['a', 'b'])
  })
})

test.each<[method: string, params: object | undefined, told: readonly unknown[] | undefined]>([
  ['notifications/tools/list_changed', undefined, ['listChanged', 'tools']],
  ['notifications/tasks', { taskId: '1' }, ['taskChanged', 'params']],
  ['notifications/tasks', undefined, undefined],
  ['notifications/message', { level: 'info' }, undefined],
  ['notifications/own/thing', {}, ['vendor', 'notifications/own/thing', 'params', undefined]],
  ['notifications/cancelled', { requestId: 9 }, undefined],
])('%s with %j is told as %j', async (method, params, expected) => {
  const { receive, told } = await linkTo()
  receive({ method, params })
  expect(told).toEqual(expected === undefined ? [] : [expected])
})

test.each<[what: string, more: Parameters<typeof callOf>[0], isTold: boolean]>([
  ['that asked for them', { logLevel: 'info' }, true],
  ['of a legacy host', { caller: { session: SESSION } }, true],
  ['that did not ask', {}, false],
])('log messages are for a call %s: %s', async (_what, more, isTold) => {
  const { link, receive, told } = await linkTo(() => undefined)
  const one = call('tools/call', {}, more)
  void link.handle(one).catch(() => undefined)
  receive({ method: 'notifications/message', params: {} })
  expect(told).toEqual(isTold ? [['message', 'params', one, false]] : [])
})
