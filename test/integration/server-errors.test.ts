/** What a server says of a failure reaches the host in the server's own bytes, whatever code it has to get (BRIDGING 7.3; B272). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind, Handle } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { HostOptions } from '../support/fake-host.ts'
import { KEY } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const CALL = { name: 'a__x' }
const start = (kind: FakeKind, on: Readonly<Record<string, Handle>>): Promise<TestGateway> =>
  startGateway({
    servers: {
      a: fake.of({ kind, tools: ['x'], prompts: ['p'], resources: ['file:///r'], on }),
      b: fake.offering('y'),
    },
  })

/** Its own spelling: numbers, escapes, spaces, an unknown member. */
const errorOf = (code: number): string =>
  `{ "code":${code}, "message":"s\\u0061id \\/ so","data":{"n":1.0,"big":9007199254740993, "list":[1e2]} ,"own":null}`
const failing = (code: number, error = errorOf(code)): Handle => {
  return (turn) => turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"error":${error}}`)
}
const METHODS = {
  'tools/call': CALL,
  'prompts/get': { name: 'a__p' },
  'resources/read': { uri: 'a+file:///r' },
} as const

describe.each([
  ['legacy', legacyHttp, [-32700, -32600, -32601, -32020, -32022, -32023, -32050, -32099]],
  ['modern', modernHttp, [-32700, -32600, -32601, -32020, -32022, -32021, -32000, -32019, -32023, -32050, -32099]],
] as const)('to a %s host', (_, { connect }, codes) => {
  test.each(codes)('B272 %i becomes -32603 with the message, and the whole error of its server byte for byte', async (code) => {
    await using gateway = await start(
      'legacy http',
      Object.fromEntries(Object.keys(METHODS).map((method) => [method, failing(code)])),
    )
    await using host = await connect(gateway)
    for (const [method, params] of Object.entries(METHODS)) {
      const { raw, response } = host.begin(method, params)
      expect((await response).error).toMatchObject({
        code: -32603,
        message: 'said / so',
        data: { [KEY.gateway]: { downstream: 'a', kind: 'protocol' } },
      })
      expect(await raw).toContain(`"original":${errorOf(code)}`)
    }
  })

  test('B272 an error without data keeps its message', async () => {
    await using gateway = await start('legacy http', {
      'tools/call': failing(-32601, '{"code":-32601,"message":"no such tool"}'),
    })
    await using host = await connect(gateway)
    const { raw, response } = host.begin('tools/call', CALL)
    expect((await response).error).toMatchObject({ code: -32603, message: 'no such tool' })
    expect(await raw).toContain('"original":{"code":-32601,"message":"no such tool"}')
  })
})

test.each([
  ['-32002', modernHttp, -32602, -32002],
  ['-32602 with a URI', legacyHttp, -32002, -32602],
] as const)('B272 B103 %s of a missing resource keeps what its server said of it', async (_, { connect }, wanted, code) => {
  const error = `{"code":${code},"message":"gone","data":{"uri":"file:///r","n":1.0}}`
  await using gateway = await start('legacy http', { 'resources/read': failing(code, error) })
  await using host = await connect(gateway)
  const { raw, response } = host.begin('resources/read', { uri: 'a+file:///r' })
  expect((await response).error).toMatchObject({ code: wanted, message: 'gone', data: { uri: 'a+file:///r' } })
  expect(await raw).toContain(`"original":${error}`)
})

test('B272 data that is no object stays what it is', async () => {
  const error = '{"code":-32002,"message":"gone","data":"file:///r \\u2014 1.0"}'
  await using gateway = await start('legacy http', { 'resources/read': failing(-32002, error) })
  for (const [{ connect }, wanted] of [
    [legacyHttp, error],
    [modernHttp, `"original":${error}`],
  ] as const) {
    await using host = await connect(gateway)
    expect(await host.begin('resources/read', { uri: 'a+file:///r' }).raw).toContain(wanted)
  }
})

test('B272 -32021 that a legacy host cannot lift is told with all that its server said', async () => {
  const error = '{"code":-32021,"message":"needs roots","data":{"requiredCapabilities":{"roots":{}},"n":1.0}}'
  await using gateway = await start('modern http', {
    'tools/call': failing(-32021, error),
    'prompts/get': failing(-32021, error),
  })
  await using host = await legacyHttp.connect(gateway)
  expect(await host.begin('tools/call', CALL).raw).toContain(`"original":${error}`)
  expect(await host.begin('prompts/get', METHODS['prompts/get']).raw).toContain(`"original":${error}`)
})

describe('-32042', () => {
  const able: HostOptions = { capabilities: { elicitation: { url: {} } } }
  const entry = (id: string): string => `{"n":1.0, ${id}"url":"https:\\/\\/v.example\\/1","message":"Go \\u0041","own":[1e2]}`
  const data = (id: string): string => `{"more":9007199254740993, "elicitations":[${entry(id)}]}`
  const visit = (id: string): string => `{"code":-32042,"message":"visit first","data":${data(id)}}`

  test.each(['"elicitationId":"e-1",', ''])(
    'B272 reaches a host of 2025-11-25 with ids of ours and no other byte changed (%j)',
    async (id) => {
      await using gateway = await start('legacy http', { 'tools/call': failing(-32042, visit(id)) })
      await using host = await legacyHttp.connect(gateway, able)
      const raw = await host.begin('tools/call', CALL).raw
      expect(raw.replace(/"elicitationId":"[\w-]{22}",/, id)).toContain(visit(id))
      expect(raw).toMatch(/"elicitationId":"[\w-]{22}"/)
    },
  )

  test('B272 B090 is asked of a modern host once, with one label and every member of the server', async () => {
    await using gateway = await start('legacy http', { 'tools/call': failing(-32042, visit('"elicitationId":"e-1",')) })
    await using host = await modernHttp.connect(gateway, able)
    const { raw, response } = host.begin('tools/call', CALL)
    const { inputRequests } = (await response).result as { inputRequests: Record<string, { params: JsonMap }> }
    expect(Object.values(inputRequests).map(({ params }) => params)).toEqual([
      { n: 1, mode: 'url', url: 'https://v.example/1', message: '[A] Go A', own: [100] },
    ])
    expect(await raw).toContain('"n":1.0')
    expect(await raw).toContain('"own":[1e2]')
  })

  test.each([able, {}])(
    'B057 B089 in answer to a completion is the error for a modern host (%j), since no round follows',
    async (said) => {
      const error = visit('"elicitationId":"e-1",')
      await using gateway = await start('legacy http', { 'completion/complete': failing(-32042, error) })
      await using host = await modernHttp.connect(gateway, said)
      const params = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } }
      const { raw, response } = host.begin('completion/complete', params)
      expect(await response).toMatchObject({ error: { code: -32603, message: 'visit first' } })
      expect(await raw).toContain(`"original":${error}`)
    },
  )

  test('B066 B089 the retry of a modern server that says it as well has the answers, but no state, since that server gave none', async () => {
    const error = visit('"elicitationId":"e-1",')
    await using gateway = await start('modern http', { 'tools/call': failing(-32042, error) })
    await using host = await modernHttp.connect(gateway, able)
    const { requestState, inputRequests } = await host.call('tools/call', CALL)
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as JsonMap).map((key) => [key, { action: 'accept' }]))
    await host.begin('tools/call', { ...CALL, requestState, inputResponses }).response
    const [, again] = gateway.fake('a').all('tools/call')
    expect(again?.params).toMatchObject({ name: 'x', inputResponses })
    expect(again?.params).not.toHaveProperty('requestState')
  })

  test('B089 that comes again after the host has answered is the error, and no other round', async () => {
    await using gateway = await start('legacy http', { 'tools/call': failing(-32042, visit('"elicitationId":"e-1",')) })
    await using host = await modernHttp.connect(gateway, able)
    const { requestState, inputRequests } = await host.call('tools/call', CALL)
    const keys = Object.keys(inputRequests as JsonMap)
    const inputResponses = Object.fromEntries(keys.map((key) => [key, { action: 'accept' }]))
    const { raw, response } = host.begin('tools/call', { ...CALL, requestState, inputResponses })
    expect((await response).error).toMatchObject({ code: -32603, message: 'visit first' })
    expect(await raw).toContain(`"original":${visit('"elicitationId":"e-1",')}`)
    expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
    // A retry that answers nothing is asked again.
    const { resultType } = await host.call('tools/call', { ...CALL, requestState })
    expect(resultType).toBe('input_required')
  })
})

test('B111 B272 of many completions the first hundred are relayed as they came', async () => {
  const values = Array.from({ length: 150 }, (_, at) => `"v\\u0061${at}"`)
  const result = (list: readonly string[], more: string): string =>
    `{"completion":{"n":1.0, "values": [${list.join(', ')}]${more}}}`
  await using gateway = await start('legacy http', {
    'completion/complete': (turn) =>
      turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"result":${result(values, ',"total":1e3,"hasMore":false')}}`),
  })
  await using host = await legacyHttp.connect(gateway)
  const raw = await host.begin('completion/complete', {
    ref: { type: 'ref/prompt', name: 'a__p' },
    argument: { name: 'x', value: '' },
  }).raw
  expect(raw).toContain(result(values.slice(0, 100), ',"total":1e3,"hasMore":true'))
})

describe('a tool that asked a modern host in vain', () => {
  const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
  const asking =
    (then: (refusal: string, turn: Parameters<Handle>[0]) => JsonMap | undefined): Handle =>
    async (turn) => {
      const { error } = await turn.ask('elicitation/create', FORM)
      return then(error?.message ?? '', turn)
    }
  const failingAfter = (code: number, words: (refusal: string) => string): Handle =>
    asking((refusal, turn) => {
      turn.fail(code, words(refusal))
      return undefined
    })
  const text = (words: string, more: JsonMap = {}): JsonMap => ({ content: [{ type: 'text', text: words }], ...more })

  test.each([
    ['fails for a reason of its own', text('the disk is full', { isError: true })],
    ['fails without words', { content: [], isError: true }],
    ['succeeds', text('done without')],
  ])('and %s is relayed', async (_, result) => {
    await using gateway = await start('legacy http', { 'tools/call': asking(() => result) })
    await using host = await modernHttp.connect(gateway)
    expect(await host.call('tools/call', CALL)).toMatchObject(result)
  })

  test('and whose error is another is told with that error', async () => {
    await using gateway = await start('legacy http', {
      'tools/call': failingAfter(-5, () => 'the disk is full'),
    })
    await using host = await modernHttp.connect(gateway)
    await expect(host.call('tools/call', CALL)).rejects.toMatchObject({ code: -5, message: 'the disk is full' })
  })

  test.each<[string, Handle]>([
    ['an error', failingAfter(0, (refusal) => `MCP error: ${refusal}`)],
    ['its whole result', asking((refusal) => text(refusal, { isError: true }))],
  ])('B196 and makes the refusal %s gets the host -32021', async (_, handle) => {
    await using gateway = await start('legacy http', { 'tools/call': handle })
    await using host = await modernHttp.connect(gateway)
    await expect(host.call('tools/call', CALL)).rejects.toMatchObject({
      code: -32021,
      status: 400,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    })
    await using legacy = await legacyHttp.connect(gateway)
    const { error, result } = await legacy.begin('tools/call', CALL).response
    expect(error?.code ?? result?.['isError']).not.toBe(-32021)
  })

  const SAMPLE = { messages: [], maxTokens: 1 }
  test.each<[string, string, JsonMap, JsonMap, JsonMap]>([
    [
      'a URL',
      'elicitation/create',
      { mode: 'url', message: 'm', url: 'https://x.example/' },
      { elicitation: {} },
      { elicitation: { url: {} } },
    ],
    ['a form', 'elicitation/create', FORM, { elicitation: { url: {} } }, { elicitation: { form: {} } }],
    [
      'a mode to come',
      'elicitation/create',
      { mode: 'voice', message: 'm' },
      { elicitation: {} },
      { elicitation: { voice: {} } },
    ],
    ['sampling', 'sampling/createMessage', SAMPLE, {}, { sampling: {} }],
    ['sampling with tools', 'sampling/createMessage', { ...SAMPLE, tools: [] }, { sampling: {} }, { sampling: { tools: {} } }],
    ['roots', 'roots/list', {}, {}, { roots: {} }],
  ])('B196 for %s gets the host -32021 with what it lacks', async (_, method, params, capabilities, requiredCapabilities) => {
    await using gateway = await start('legacy http', {
      'tools/call': async (turn) => {
        const { error } = await turn.ask(method, params)
        return text(error?.message ?? '', { isError: true })
      },
    })
    await using host = await modernHttp.connect(gateway, { capabilities })
    await expect(host.call('tools/call', CALL)).rejects.toMatchObject({ code: -32021, status: 400 })
    const { error } = await host.begin('tools/call', CALL).response
    expect(error?.data).toEqual({ requiredCapabilities })
  })
})
