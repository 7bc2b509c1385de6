/** `policy.service`: a decision point of its own, asked about calls and lists where no rule decides. */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { DEFAULT_SERVICE } from '../../../src/policy/options.ts'
import type { PolicyOptions, ServiceOptions } from '../../../src/policy/options.ts'
import { fake } from '../../support/fake-downstream.ts'
import type { FakeKind, Handle } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, legacyPipe, modernHttp } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'
import { curated } from '../../support/curation.ts'
import { listening } from '../../support/listening.ts'
import { TASK, TASKS, taskServer } from '../tasks/task-server.ts'

interface Input {
  readonly caller: JsonMap
  readonly call?: JsonMap
  readonly list?: readonly JsonMap[]
  readonly request: JsonMap
  readonly result?: JsonMap
}
type Answering = (input: Input, response: ServerResponse) => unknown

/** A decision point. `answer` returns `result`, or writes the response itself and returns `undefined`. */
const startService = async (answer: Answering) => {
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    bodies.push(body)
    const result = answer((JSON.parse(body) as { input: Input }).input, response)
    if (!response.headersSent && result !== WRITTEN)
      response.setHeader('content-type', 'application/json').end(JSON.stringify(result === undefined ? {} : { result }))
  })
  const opened = await listening(server)
  return {
    ...opened,
    url: new URL('/v1/data/trunkline/decision', opened.url),
    bodies,
    asked: (): Input[] => bodies.map((body) => (JSON.parse(body) as { input: Input }).input),
  }
}
const WRITTEN = Symbol('written')

const OFFER = fake.of({ tools: ['pay', 'list'], prompts: ['greet'], resources: ['file:///r'] })
const start = (
  url: URL,
  service: Partial<ServiceOptions> = {},
  policy: Partial<PolicyOptions> = {},
  setup: Partial<GatewaySetup> = {},
): Promise<TestGateway> =>
  startGateway({
    servers: { a: OFFER },
    policy: { service: { ...DEFAULT_SERVICE, lists: false, ...service, url }, ...policy },
    ...setup,
  })

const textOf = ({ content }: JsonMap): unknown => (content as JsonMap[])[0]!['text']
const pay = (host: Host, args: JsonMap = {}): Promise<JsonMap> => host.call('tools/call', { name: 'a__pay', arguments: args })

describe.each(everyTransport)('a host over $name', ({ connect }) => {
  test('gets what the service decides, with its reason', async () => {
    await using service = await startService(({ call }) =>
      call?.['original'] === 'pay' ? { decision: 'deny', reason: 'not today', rule: 'calendar' } : { decision: 'allow' },
    )
    await using gateway = await start(service.url)
    await using host = await connect(gateway)
    expect(await pay(host)).toMatchObject({ isError: true, content: [{ text: 'denied by policy: not today' }] })
    expect(await host.call('tools/call', { name: 'a__list' })).not.toHaveProperty('isError')
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => params['name']),
    ).toEqual(['list'])
    expect(service.asked()[0]).toMatchObject({
      caller: { principal: 'local', toolset: '', claims: {}, scopes: [] },
      call: {
        method: 'tools/call',
        server: 'a',
        name: 'a__pay',
        original: 'pay',
        annotations: { readOnlyHint: false },
        arguments: {},
      },
      request: { time: expect.stringMatching(/^\d{4}-/) as unknown },
    })
  })
})

test.each<[result: unknown, text: unknown]>([
  [true, '{}'],
  [false, 'denied by policy: the policy service denies it'],
  [{ allow: true }, '{}'],
  [{ allow: false, reason: 'no\u202e' }, 'denied by policy: no'],
  [{ decision: 'allow' }, '{}'],
  [undefined, 'denied by policy: no rule of the policy allows it'],
  [{}, 'denied by policy: no rule of the policy allows it'],
  ['allow', 'denied by policy: the policy service does not answer'],
  [{ decision: 'maybe' }, 'denied by policy: the policy service does not answer'],
  [{ decision: 'allow', arguments: { x: 1 } }, 'denied by policy: the policy service does not answer'],
  [{ decision: 'allow', content: [] }, 'denied by policy: the policy service does not answer'],
])('the result %j of the service means %j', async (result, text) => {
  await using service = await startService(() => result)
  await using gateway = await start(service.url)
  await using host = await modernHttp.connect(gateway)
  expect(textOf(await pay(host))).toBe(text)
})

test('T-20 a rule decides on every spelling of a URI before the service, and one that allows does not keep the service from others', async () => {
  await using service = await startService(() => true)
  const rule = (path: string, decision: 'allow' | 'deny') => ({
    id: `policy.rules[${decision}]`,
    when: `call.original == "file:///${path}"`,
    decision,
    reason: 'rule',
  })
  const servers = { a: fake.of({ templates: ['file:///{+path}'] }) }
  await using gateway = await start(service.url, {}, { rules: [rule('secret', 'deny'), rule('%6fpen', 'allow')] }, { servers })
  await using host = await modernHttp.connect(gateway)
  for (const path of ['secret', '%73ecret', 'x/../y'])
    await expect(host.call('resources/read', { uri: `a+file:///${path}` })).rejects.toMatchObject({
      message: 'denied by policy: rule',
    })
  expect(service.asked()).toEqual([])
  await host.call('resources/read', { uri: 'a+file:///%6fpen' })
  expect(service.asked()).toMatchObject([{ call: { original: 'file:///%6fpen' } }])
})

test('rules come first, and what they decide is not asked', async () => {
  await using service = await startService(() => false)
  await using gateway = await start(
    service.url,
    {},
    {
      rules: [{ id: 'policy.rules[0]', when: 'call.original == "list"', decision: 'allow', reason: undefined }],
      otherwise: 'allow',
    },
  )
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', { name: 'a__list' })).not.toHaveProperty('isError')
  expect(service.bodies).toEqual([])
  expect(await pay(host)).toHaveProperty('isError')
  await expect(host.call('prompts/get', { name: 'a__greet' })).rejects.toMatchObject({
    message: 'denied by policy: the policy service denies it',
  })
})

test('the service may ask a person, and is asked again when it has', async () => {
  await using service = await startService(() => ({ decision: 'confirm', reason: 'Sure?' }))
  await using gateway = await start(service.url)
  await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
  const call = { name: 'a__pay', arguments: { n: 1 } }
  const { inputRequests, requestState } = await host.call('tools/call', call)
  const [key, { params }] = Object.entries(inputRequests as Record<string, { params: JsonMap }>)[0]!
  expect(params['message']).toBe('Sure? Call a__pay with {"n":1}?')
  const inputResponses = { [key]: { action: 'accept' } }
  expect(textOf(await host.call('tools/call', { ...call, requestState, inputResponses }))).toBe('{"n":1}')
})

describe('lists', () => {
  test('show what the service lets them, and are asked about once', async () => {
    await using service = await startService(({ list, caller }) =>
      list === undefined ? true : { visible: caller['principal'] === 'local' ? ['a__list'] : [], ttl_seconds: 60 },
    )
    await using gateway = await start(service.url, { lists: true })
    await using host = await legacyHttp.connect(gateway)
    for (let times = 0; times < 2; times++) expect((await host.call('tools/list'))['tools']).toMatchObject([{ name: 'a__list' }])
    expect(service.asked().map(({ list }) => list?.map(({ name }) => name))).toEqual([['a__pay', 'a__list']])
  })

  test.each<[onFailure: 'allow' | 'deny', shown: number]>([
    ['deny', 0],
    ['allow', 2],
  ])('of a service that is away, with on_failure %s, show %i tools', async (onFailure, shown) => {
    await using gateway = await start(new URL('http://127.0.0.1:9/'), { lists: true, onFailure })
    await using host = await modernHttp.connect(gateway)
    expect((await host.call('tools/list'))['tools']).toHaveLength(shown)
  })
})

describe('a service that', () => {
  const SICK: readonly (readonly [what: string, answer: Answering, detail: RegExp])[] = [
    ['hangs', () => WRITTEN, /no answer within 200 ms/],
    [
      'hangs within its answer',
      (_, response) => (response.writeHead(200).write('{"result":'), WRITTEN),
      /no answer within 200 ms/,
    ],
    [
      'answers 10 MB',
      (_, response) => (response.end(`{"result":true,"x":"${'x'.repeat(10 * 1024 * 1024)}"}`), WRITTEN),
      /more than 1048576 bytes/,
    ],
    ['answers 500', (_, response) => (response.writeHead(500).end('{"result":true}'), WRITTEN), /HTTP 500/],
    ['redirects', (_, response) => (response.writeHead(302, { location: '/elsewhere' }).end(), WRITTEN), /HTTP 302/],
    ['answers no JSON', (_, response) => (response.end('allow'), WRITTEN), /something else than JSON/],
    ['breaks off', (_, response) => (response.destroy(), WRITTEN), /127\.0\.0\.1/],
  ]

  test.each(SICK)('%s denies, or allows where the file says so, and is told in the log', async (what, answer, detail) => {
    await using service = await startService(answer)
    for (const onFailure of ['deny', 'allow'] as const) {
      // A busy machine must not make a time-out of another failure.
      const timeoutMs = what.startsWith('hangs') ? 200 : 30_000
      await using gateway = await start(service.url, { timeoutMs, onFailure })
      await using host = await modernHttp.connect(gateway)
      const text = textOf(await pay(host))
      expect(text).toBe(onFailure === 'allow' ? '{}' : 'denied by policy: the policy service does not answer')
      const line = gateway.log.entries.find((entry) => entry.text === 'the policy service does not answer (policy.service)')
      expect(line?.facts['error']).toMatch(detail)
      expect(gateway.fake('a').all('tools/call')).toHaveLength(onFailure === 'allow' ? 1 : 0)
    }
  })

  test.each(SICK)('%s shows no list, or all of it where the file says so', async (what, answer) => {
    await using service = await startService(answer)
    for (const [onFailure, shown] of [
      ['deny', 0],
      ['allow', 2],
    ] as const) {
      const timeoutMs = what.startsWith('hangs') ? 200 : 30_000
      await using gateway = await start(service.url, { timeoutMs, onFailure, lists: true })
      await using host = await modernHttp.connect(gateway)
      expect((await host.call('tools/list'))['tools']).toHaveLength(shown)
    }
  })

  test.each(SICK)(
    '%s when it is asked about a result has it withheld, or passed on where the file says so',
    async (what, answer) => {
      await using service = await startService((input, response) => (input.result === undefined ? true : answer(input, response)))
      for (const [onFailure, text] of [
        ['deny', 'the result is withheld by policy: the policy service does not answer'],
        ['allow', '{}'],
      ] as const) {
        // The first question must be answered in time on a busy machine, too.
        const timeoutMs = what.startsWith('hangs') ? 2_000 : 30_000
        await using gateway = await start(service.url, { timeoutMs, onFailure, replaces: ['results'] })
        await using host = await modernHttp.connect(gateway)
        expect(textOf(await pay(host))).toBe(text)
        expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
      }
    },
  )
})

test('an answer is kept as long as it says, for the same question alone', async () => {
  await using service = await startService(() => ({ decision: 'allow', ttl_seconds: 60 }))
  await using gateway = await start(service.url)
  await using host = await modernHttp.connect(gateway)
  for (const n of [1, 1, 2, 1]) await pay(host, { n })
  expect(service.asked().map(({ call }) => call?.['arguments'])).toEqual([{ n: 1 }, { n: 2 }])
  // A host of another revision asks another question.
  await using legacy = await legacyHttp.connect(gateway)
  await pay(legacy, { n: 1 })
  expect(service.asked().map(({ request }) => request['revision'])).toEqual(['2026-07-28', '2026-07-28', '2025-11-25'])
})

test('T-20 arguments are sent as they came, and those that repeat a key are denied unasked', async () => {
  await using service = await startService(() => true)
  await using gateway = await start(service.url)
  await using host = await legacyPipe.connect(gateway)
  const raw = (id: number, args: string) =>
    host.sendRaw(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"a__pay","arguments":${args}}}`, id).response
  const args = '{ "n":1.0, "big":12345678901234567890 }'
  await raw(5, args)
  expect(service.bodies[0]).toContain(`"arguments":${args}`)
  expect(gateway.fake('a').all('tools/call')[0]?.raw).toContain(args)
  expect((await raw(6, '{"n":1,"n":2}')).result).toMatchObject({
    content: [{ text: 'denied by policy: the arguments repeat a key' }],
  })
  expect(service.bodies).toHaveLength(1)
})

describe('a guardrail', () => {
  test('of arguments is in the audit log', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trunkline-policy-'))
    const file = join(folder, 'audit.ndjson')
    try {
      await using service = await startService(() => ({ decision: 'allow', arguments: { limit: 10 }, rule: 'limits' }))
      const audit = { file, bodies: false, onFailure: 'refuse' } as const
      await using gateway = await start(service.url, { replaces: ['arguments'] }, {}, { audit })
      await using host = await modernHttp.connect(gateway)
      await pay(host, { q: 'x' })
      await gateway.running.stop()
      const lines = (await readFile(file, 'utf8')).trim().split('\n')
      expect(lines.map((line) => JSON.parse(line) as JsonMap)).toContainEqual(
        expect.objectContaining({
          method: 'tools/call',
          policy: expect.objectContaining({
            decision: 'allow',
            rule: 'policy.service (limits)',
            replaced: ['arguments'],
          }) as unknown,
        }),
      )
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test.each(everyTransport)('replaces arguments for a host over $name, and the result says so', async ({ connect }) => {
    await using service = await startService(({ call }) => ({
      decision: 'allow',
      arguments: { ...(call?.['arguments'] as JsonMap), limit: 10 },
    }))
    await using gateway = await start(service.url, { replaces: ['arguments'] })
    await using host = await connect(gateway)
    expect(await pay(host, { q: 'x' })).toMatchObject({
      content: [{ text: '{"q":"x","limit":10}' }],
      _meta: { 'dev.trunkline/gateway': { replaced: ['arguments'], by: 'policy.service' } },
    })
  })

  test.each<FakeKind>(['modern http', 'modern stdio'])(
    'B064 of arguments leaves a round of a %s server that asks, and its answer, as they are',
    async (kind) => {
      const params = { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } }
      const asks: Handle = (turn) =>
        turn.params['inputResponses'] === undefined
          ? { resultType: 'input_required', inputRequests: { sure: { method: 'elicitation/create', params } }, requestState: 's' }
          : { content: [{ type: 'text', text: JSON.stringify(turn.params) }] }
      await using service = await startService(({ call }) => ({
        decision: 'allow',
        arguments: { ...(call?.['arguments'] as JsonMap), limit: 10 },
      }))
      const servers = { a: fake.of({ kind, tools: ['pay'], on: { 'tools/call': asks } }) }
      await using gateway = await start(service.url, { replaces: ['arguments'] }, {}, { servers })
      await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
      const call = { name: 'a__pay', arguments: { q: 'x' } }
      const { requestState } = await host.call('tools/call', call)
      const inputResponses = { sure: { action: 'accept', content: {} } }
      const result = await host.call('tools/call', { ...call, requestState, inputResponses })
      expect(JSON.parse(String(textOf(result)))).toMatchObject({
        name: 'pay',
        arguments: { q: 'x', limit: 10 },
        requestState: 's',
        inputResponses,
      })
      await expect(
        host.call('tools/call', { ...call, arguments: { q: 'x', limit: 10 }, requestState, inputResponses }),
      ).rejects.toMatchObject({ code: -32602 })
    },
  )

  test('replaces the content of results, or withholds them; the audit log has it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trunkline-policy-'))
    const file = join(folder, 'audit.ndjson')
    try {
      await using service = await startService(({ result, call }) => {
        if (result === undefined) return true
        const text = String((result['content'] as JsonMap[])[0]!['text'])
        if (text.includes('password')) return { decision: 'deny', reason: 'it holds a password' }
        return call?.['original'] === 'list'
          ? true
          : { decision: 'allow', content: [{ type: 'text', text: text.replaceAll(/\d/g, '#') }] }
      })
      await using gateway = await start(
        service.url,
        { replaces: ['results'] },
        {},
        {
          audit: { file, bodies: false, onFailure: 'refuse' },
        },
      )
      gateway.fake('a').on('tools/call', ({ params }) => ({
        content: [{ type: 'text', text: JSON.stringify(params['arguments']) }],
        structuredContent: { card: '4711' },
      }))
      await using host = await modernHttp.connect(gateway)
      const replaced = await pay(host, { card: '4711' })
      expect(replaced).toMatchObject({
        content: [{ text: '{"card":"####"}' }],
        _meta: { 'dev.trunkline/gateway': { replaced: ['result'] } },
      })
      expect(replaced).not.toHaveProperty('structuredContent')
      expect(await host.call('tools/call', { name: 'a__list', arguments: { n: 1 } })).toMatchObject({
        content: [{ text: '{"n":1}' }],
        structuredContent: { card: '4711' },
      })
      const withheld = await pay(host, { password: 'x' })
      expect(withheld).toMatchObject({
        isError: true,
        content: [{ text: 'the result is withheld by policy: it holds a password' }],
      })
      await gateway.running.stop()
      const lines = (await readFile(file, 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as JsonMap)
        .filter(({ method }) => method === 'tools/call')
      expect(lines).toMatchObject([
        { policy: { decision: 'allow', rule: 'policy.service', replaced: ['result'] } },
        { policy: { decision: 'allow' } },
        { policy: { decision: 'deny', reason: 'it holds a password' }, kind: 'policy_denied' },
      ])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

test.each([legacyHttp, modernHttp])(
  'tools are listed without outputSchema to a host over $name where their content may be replaced',
  async ({ connect }) => {
    await using service = await startService(() => true)
    const tool = { name: 'pay', inputSchema: { type: 'object' }, outputSchema: { type: 'object' }, title: 'Pay' }
    const servers = { a: fake.of({ tools: [tool] }), b: fake.of({ kind: 'modern http', tools: [tool] }) }
    for (const [replaces, isShown] of [
      [['results'], false],
      [['arguments'], true],
    ] as const) {
      await using gateway = await start(service.url, { replaces }, {}, { servers })
      await using host = await connect(gateway)
      const { tools } = await host.call('tools/list')
      const { outputSchema, ...others } = tool
      const listed = isShown ? { ...others, outputSchema } : others
      expect(tools).toEqual(['a__pay', 'b__pay'].map((name) => ({ ...listed, name })))
    }
  },
)

test('a result that would come as a task is not made, or withheld, where results are inspected', async () => {
  await using service = await startService(() => true)
  await using gateway = await start(service.url, { replaces: ['results'] }, {}, { servers: { a: taskServer() } })
  await using modern = await modernHttp.connect(gateway, { capabilities: { extensions: { [TASKS]: {} } } })
  expect(textOf(await modern.call('tools/call', { name: 'a__may' }))).toBe('at once')
  await using legacy = await legacyHttp.connect(gateway)
  await using bridged = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
  for (const [host, name] of [
    [legacy, 'a__may'],
    [bridged, 'may'],
  ] as const)
    expect(await host.call('tools/call', { name, task: { ttl: 1_000 } })).not.toHaveProperty('task')
})

test.each([
  ['legacy', legacyHttp, {}],
  ['modern', modernHttp, { extensions: { [TASKS]: {} } }],
])(
  'a task that a server requires is followed for a %s host, and its result is inspected',
  async (_, { connect }, capabilities) => {
    await using service = await startService(({ result }) => (result === undefined ? true : { decision: 'deny', reason: 'no' }))
    const server = taskServer('legacy http', {
      'tasks/get': () => ({ ...TASK, status: 'completed' }),
      'tasks/result': () => ({ content: [{ type: 'text', text: 'secret' }] }),
    })
    // As the configuration sets it for such a service.
    const setup = { servers: { a: server }, gateway: { tasks: false } }
    await using gateway = await start(service.url, { replaces: ['results'] }, {}, setup)
    await using host = await connect(gateway, { capabilities })
    expect(JSON.stringify((await host.call('tools/list'))['tools'])).not.toContain('taskSupport')
    expect(textOf(await host.call('tools/call', { name: 'a__must', task: { ttl: 1_000 } }))).toBe(
      'the result is withheld by policy: no',
    )
  },
)

test('a subscription is asked about once, and refused with the reason', async () => {
  await using service = await startService(
    ({ call }) => call?.['method'] !== 'resources/subscribe' || { decision: 'deny', reason: 'no news' },
  )
  await using allowing = await startService(() => true)
  for (const [{ url, asked }, isRefused] of [
    [service, true],
    [allowing, false],
  ] as const) {
    await using gateway = await start(url)
    await using host = await legacyHttp.connect(gateway)
    const { resources } = (await host.call('resources/list')) as { resources: { uri: string }[] }
    const subscribed = host.call('resources/subscribe', { uri: resources[0]?.uri })
    if (isRefused) await expect(subscribed).rejects.toThrow('no news')
    else expect(await subscribed).toEqual({})
    expect(asked().filter(({ call }) => call?.['method'] === 'resources/subscribe')).toHaveLength(1)
  }
})

test('a reload asks another service for the next call', async () => {
  await using first = await startService(() => false)
  await using second = await startService(() => true)
  await using gateway = await start(first.url)
  await using host = await modernHttp.connect(gateway)
  expect(await pay(host)).toHaveProperty('isError')
  const { configuration } = gateway.running
  const { policy } = configuration
  if (policy?.service === undefined) throw new Error('no service')
  await gateway.running.apply(
    { ...configuration, policy: { ...policy, service: { ...policy.service, url: second.url } } },
    new Set(),
  )
  expect(await pay(host)).not.toHaveProperty('isError')
})

test('F-25 a call that waits for the service is decided by it, also where a reload asks another one from then on', async () => {
  const waiting = Promise.withResolvers<ServerResponse>()
  await using service = await startService((_, response) => {
    waiting.resolve(response)
    return WRITTEN
  })
  await using gateway = await start(service.url)
  await using host = await modernHttp.connect(gateway)
  const end = host.call('tools/call', { name: 'a__pay', arguments: {} })
  const response = await waiting.promise
  await gateway.running.apply({ ...gateway.running.configuration, policy: undefined }, new Set())
  response.setHeader('content-type', 'application/json').end('{"result":true}')
  expect(await end).not.toMatchObject({ isError: true })
  expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
})

describe('docs/policy.md', () => {
  const page = readFileSync(new URL('../../../docs/policy.md', import.meta.url), 'utf8')
  const shown = (part: string): JsonMap => {
    const texts = [...page.matchAll(/```json\n([^]*?)\n```/g)].map(([, text = '']) => text)
    return JSON.parse(texts.find((text) => text.includes(part)) ?? 'null') as JsonMap
  }
  /** Names of members, in order; lists and scalars by their kind. */
  const shapeOf = (value: unknown, name = ''): unknown => {
    if (typeof value !== 'object' || value === null) return typeof value
    if (Array.isArray(value)) return 'list'
    // What callers choose themselves.
    if (name === 'claims' || name === 'arguments') return 'object'
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shapeOf(inner, key)]))
  }

  test('the question has the members that the page shows, and its answer denies with its reason', async () => {
    const { result } = shown('"ttl_seconds"')
    await using service = await startService(() => result)
    await using gateway = await start(service.url)
    await using host = await legacyHttp.connect(gateway)
    const denied = await pay(host, { amount: 101 })
    expect(shapeOf(service.asked()[0])).toEqual(shapeOf(shown('"input"')['input']))
    expect(textOf(denied)).toBe(`denied by policy: ${String((result as JsonMap)['reason'])}`)
    expect(shapeOf(denied)).toEqual(shapeOf(shown('Only the group finance')))
    expect((denied['_meta'] as Record<string, JsonMap>)['dev.trunkline/gateway']).toMatchObject({
      kind: 'policy_denied',
      executed: 'no',
      retryable: false,
    })
  })
})

describe.each(everyTransport)('where results are inspected, a result over its limit, for a host over $name', ({ connect }) => {
  const limited = async (url: URL) =>
    start(
      url,
      { replaces: ['arguments', 'results'] },
      {},
      { options: { a: await curated({ tools: { pay: { result: { max_tokens: 25 } } } }) } },
    )

  test('is inspected whole, before its rest is kept for later', async () => {
    await using service = await startService(({ result }) =>
      JSON.stringify(result ?? '').includes('password') ? { decision: 'deny', reason: 'it holds a password' } : true,
    )
    await using gateway = await limited(service.url)
    gateway.fake('a').on('tools/call', () => ({ content: [{ type: 'text', text: `${'line\n'.repeat(200)}password` }] }))
    await using host = await connect(gateway)
    expect(textOf(await pay(host))).toBe('the result is withheld by policy: it holds a password')
  })

  test('is limited as the service has replaced it, and says all that was replaced', async () => {
    await using service = await startService(({ result }) =>
      result === undefined
        ? { decision: 'allow', arguments: { n: 1 } }
        : { decision: 'allow', content: [{ type: 'text', text: 'fine\n'.repeat(200) }] },
    )
    await using gateway = await limited(service.url)
    await using host = await connect(gateway)
    const { content, _meta } = await pay(host)
    const [head, , link] = content as { text: string; uri: string }[]
    expect(head?.text).toBe('fine\n'.repeat(20))
    expect(_meta).toMatchObject({ 'dev.trunkline/gateway': { replaced: ['arguments', 'result'], by: 'policy.service' } })
    const { contents } = await host.call('resources/read', { uri: link?.uri })
    expect((contents as { text: string }[])[0]?.text).toMatch(/^fine\n/)
  })
})
