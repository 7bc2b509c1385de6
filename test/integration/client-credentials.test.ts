/** What servers ask and refuse beside a host's call must not cost the call, and is answered (BRIDGING 3.22; B072, B286). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind, FakeSpec } from '../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, modernHttp } from '../support/fake-host.ts'
import { KEY, RpcError } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const CALL = { name: 'a__x' }
const text = (words: unknown): JsonMap => ({ content: [{ type: 'text', text: JSON.stringify(words) }] })
const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
const answerOf = async (turn: Turn, method: string, params?: JsonMap): Promise<unknown> => {
  const { result, error } = await turn.ask(method, params)
  return result ?? error?.code
}

describe.each(['modern http', 'modern stdio'] as const)('a %s server that asks by requests', (kind) => {
  const asking = (...questions: readonly (readonly [string, JsonMap?])[]): FakeSpec =>
    fake.of({
      kind,
      tools: ['x'],
      on: {
        'tools/call': async (turn) => {
          const answers: unknown[] = []
          for (const [method, params] of questions) answers.push(await answerOf(turn, method, params))
          return text(answers)
        },
      },
    })

  test.each([legacyHttp, modernHttp])(
    'B072 is answered at once to $name: ping with {}, what the host cannot do with -32601',
    async ({ connect }) => {
      await using gateway = await startGateway({
        servers: { a: asking(['ping'], ['sampling/createMessage', { messages: [] }], ['roots/list'], ['vendor/any', {}]) },
      })
      await using host = await connect(gateway)
      expect(await host.call('tools/call', CALL)).toMatchObject(text([{}, -32601, -32601, -32601]))
    },
  )

  test('B072 inside a call its host answers what it can', async () => {
    await using gateway = await startGateway({ servers: { a: asking(['elicitation/create', FORM]) } })
    const capabilities = { elicitation: { form: {} } }
    await using legacy = await legacyHttp.connect(gateway, { capabilities })
    legacy.answer('elicitation/create', () => ({ action: 'decline' }))
    expect(await legacy.call('tools/call', CALL)).toMatchObject(text([{ action: 'decline' }]))
    await using modern = await modernHttp.connect(gateway, { capabilities })
    const { requestState, inputRequests } = await modern.call('tools/call', CALL)
    const [key] = Object.keys(inputRequests as JsonMap)
    expect(
      await modern.call('tools/call', { ...CALL, requestState, inputResponses: { [key!]: { action: 'cancel' } } }),
    ).toMatchObject(text([{ action: 'cancel' }]))
  })
})

test('B072 outside of a call a request on a modern link is refused at once', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['x'] }) } })
  const [connection] = gateway.fake('a').connections
  for (const [method, wanted] of [
    ['ping', { result: {} }],
    ['elicitation/create', { error: { code: -32601 } }],
  ] as const) {
    const { id, answer } = connection!.expectAnswer()
    connection!.say(JSON.stringify({ jsonrpc: '2.0', id, method, params: FORM }))
    expect(await answer).toMatchObject(wanted)
  }
})

test.each(['modern stdio', 'legacy stdio'] as const)(
  'B072 B100 what a %s server asks before it has said its era is answered at once',
  async (kind) => {
    const discovered = Promise.withResolvers<unknown[]>()
    const on: FakeSpec['on'] = {
      'server/discover': async (turn) => {
        discovered.resolve([await answerOf(turn, 'ping'), await answerOf(turn, 'roots/list')])
        if (kind === 'legacy stdio') throw new RpcError({ code: -32601, message: 'no' })
        return {
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
          ttlMs: 0,
          cacheScope: 'private',
          resultType: 'complete',
        }
      },
    }
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'], on }) } })
    expect(await discovered.promise).toEqual([{}, -32601])
    await using host = await modernHttp.connect(gateway)
    expect(await host.call('tools/call', CALL)).toHaveProperty('content')
  },
)

describe.each(['legacy http', 'legacy stdio', 'legacy sse'] as const)('a %s server', (kind: FakeKind) => {
  const start = (on: FakeSpec['on'] = {}): Promise<TestGateway> =>
    startGateway({ servers: { a: fake.of({ kind, tools: ['x'], on }) } })

  test('B286 that declares logging and refuses logging/setLevel keeps every call, and is asked once', async () => {
    await using gateway = await start({
      'logging/setLevel': () => {
        throw new RpcError({ code: -32601, message: 'Method not found' })
      },
    })
    await using legacy = await legacyPipe.connect(gateway)
    expect(await legacy.call('logging/setLevel', { level: 'debug' })).toEqual({})
    await using modern = await modernHttp.connect(gateway)
    for (let call = 0; call < 2; call++) {
      expect(await legacy.call('tools/call', CALL)).toMatchObject(text(null))
      expect(await modern.call('tools/call', CALL, { meta: { [KEY.logLevel]: 'debug' } })).toMatchObject(text(null))
    }
    const asked = Map.groupBy(gateway.fake('a').all('logging/setLevel'), ({ connection }) => connection)
    expect([...asked.values()].map((turns) => turns.length)).toEqual([1, 1])
  })

  test('B286 a level that was refused counts as not set', async () => {
    let isRefusing = true
    await using gateway = await start({
      'logging/setLevel': ({ params }) => {
        if (isRefusing && params['level'] === 'error') throw new RpcError({ code: -32603, message: 'busy' })
        return {}
      },
    })
    await using host = await legacyPipe.connect(gateway)
    for (const level of ['warning', 'error', 'warning']) {
      await host.call('logging/setLevel', { level })
      await host.call('tools/call', CALL)
    }
    isRefusing = false
    const levels = gateway.fake('a').all('logging/setLevel')
    expect(levels.map(({ params }) => params['level'])).toEqual(['warning', 'error', 'warning'])
  })

  test('3.22 extensions and experimental capabilities of a legacy host reach it', async () => {
    const capabilities = {
      elicitation: {},
      experimental: { 'vendor/x': { a: 1 } },
      extensions: { 'vendor.example/y': { b: [2] }, 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
    }
    await using gateway = await start()
    await using host = await legacyPipe.connect(gateway, { capabilities })
    await host.call('tools/call', CALL)
    expect(gateway.fake('a').all('tools/call')[0]?.connection.declared).toEqual(capabilities)
  })

  test('3.22 rounds of legacy peers of their own pass, with inputResponses and requestState', async () => {
    await using gateway = await start({
      'tools/call': ({ params }) =>
        params['requestState'] === undefined
          ? {
              resultType: 'input_required',
              inputRequests: { q: { method: 'elicitation/create', params: FORM } },
              requestState: 's-1',
            }
          : text([params['requestState'], params['inputResponses']]),
    })
    await using host = await legacyPipe.connect(gateway)
    const round = await host.call('tools/call', CALL)
    expect(round).toMatchObject({ resultType: 'input_required', requestState: 's-1', inputRequests: { q: { params: FORM } } })
    const inputResponses = { q: { action: 'accept' } }
    expect(await host.call('tools/call', { ...CALL, requestState: 's-1', inputResponses })).toMatchObject(
      text(['s-1', inputResponses]),
    )
  })
})

describe('a modern server', () => {
  const vendor = { resultType: 'vendor/later', ticket: 7, content: [{ type: 'resource_link', uri: 'm:1', name: 'r' }] }

  test('B290 whose result has a resultType of a declared extension is relayed to the host that declared it', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: ['x'], on: { 'tools/call': () => vendor } }) },
    })
    await using able = await modernHttp.connect(gateway, { capabilities: { extensions: { 'vendor.example/y': {} } } })
    expect(await able.call('tools/call', CALL)).toMatchObject({
      ...vendor,
      content: [{ type: 'resource_link', uri: 'a+m:1', name: 'r' }],
    })
    await using plain = await modernHttp.connect(gateway)
    expect(await plain.call('tools/call', CALL)).toMatchObject({ isError: true, _meta: { [KEY.gateway]: { kind: 'protocol' } } })
  })

  test('B291 what only its era knows is taken out of the _meta of results for legacy hosts', async () => {
    const meta = { [KEY.serverInfo]: { name: 'fake' }, 'io.modelcontextprotocol/later': 1 }
    let more: JsonMap = {}
    await using gateway = await startGateway({
      servers: {
        a: fake.of({
          kind: 'modern http',
          tools: ['x'],
          on: { 'tools/call': () => ({ content: [], _meta: { ...meta, ...more } }) },
        }),
      },
    })
    await using host = await legacyHttp.connect(gateway)
    expect(await host.call('tools/call', CALL)).toEqual({ content: [] })
    more = { 'vendor.example/z': { n: 1 } }
    expect(await host.call('tools/call', CALL)).toEqual({ content: [], _meta: more })
  })
})
