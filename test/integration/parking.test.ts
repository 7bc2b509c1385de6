/** A legacy server asks in the middle of a call of a modern host: parked calls (BRIDGING 3.13, Example A; 8.4, 8.5). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind, Handle } from '../support/fake-downstream.ts'
import { modernHttp, modernPipe } from '../support/fake-host.ts'
import type { HostOptions } from '../support/fake-host.ts'
import { KEY, metaOf, request } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'

const KINDS = ['legacy http', 'legacy stdio', 'legacy sse'] as const
const able: HostOptions = { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } }
const form = (message: string, field = 'queue'): JsonMap => ({
  message,
  requestedSchema: { type: 'object', properties: { [field]: { type: 'string' } } },
})
const accept = (value: string): JsonMap => ({ action: 'accept', content: { queue: value } })
const CALL = { name: 'a__x', arguments: { subject: 'fire' } }
const said = (answers: readonly unknown[]): JsonMap => ({ content: [{ type: 'text', text: JSON.stringify(answers) }] })

/** A server whose tool asks these questions one after the other and tells what it was answered. */
const asking =
  (...questions: readonly (readonly [method: string, params: JsonMap])[]): Handle =>
  async (turn: Turn) => {
    const answers: unknown[] = []
    for (const [method, params] of questions) {
      const { result, error } = await turn.ask(method, params)
      answers.push(result ?? error?.code)
    }
    return said(answers)
  }
const elicits = asking(['elicitation/create', form('Which queue?')])

const start = (kind: FakeKind, handle: Handle, more: Partial<GatewaySetup> = {}) =>
  startGateway({ servers: { a: fake.of({ kind, tools: ['x', 'y'], on: { 'tools/call': handle } }) }, ...more })
/** Long enough for questions that a busy machine brings one by one. */
const patient = { gateway: { parking: { ttlMs: 60_000, maxParked: 9, maxPerPrincipal: 9, coalesceMs: 400 } } }
const asked = (result: JsonMap): JsonMap => result['inputRequests'] as JsonMap
/** The retry that answers. */
const retry = (result: JsonMap, inputResponses: JsonMap, call: JsonMap = CALL): JsonMap => ({
  ...call,
  inputResponses,
  requestState: result['requestState'],
})
/** Every question answered alike. */
const toAll = (result: JsonMap, answer: JsonMap): JsonMap =>
  Object.fromEntries(Object.keys(asked(result)).map((key) => [key, answer]))

describe.each(KINDS)('a %s server that asks', (kind) => {
  test.each([modernHttp, modernPipe])(
    'B057 B058 B071 B073 its call is parked, the host of $name is asked by input_required, and the retry ends it',
    async ({ connect }) => {
      await using gateway = await start(kind, elicits)
      await using host = await connect(gateway, able)
      const first = host.begin('tools/call', CALL)
      const round = (await first.response).result ?? {}
      expect(round).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) })
      expect(Object.values(asked(round))).toEqual([
        { method: 'elicitation/create', params: { mode: 'form', ...form('Which queue?') } },
      ])
      expect(await host.call('tools/call', retry(round, toAll(round, accept('it'))))).toMatchObject({
        resultType: 'complete',
        ...said([accept('it')]),
      })
      expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
      for (const { method, id } of [...first.messages.entries, ...host.heard.entries])
        expect(method === undefined || id === undefined).toBe(true)
    },
  )

  test('B060 B074 what it asks at one time is one round, under keys of their own', async () => {
    await using gateway = await start(
      kind,
      async (turn) => {
        const both = ['One?', 'Two?'].map((message) => turn.ask('elicitation/create', form(message)))
        const third = turn.ask('sampling/createMessage', { messages: [], maxTokens: 9 })
        return said((await Promise.all([...both, third])).map(({ result }) => result))
      },
      patient,
    )
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    const entries = Object.entries(asked(round)) as [string, { method: string; params: JsonMap }][]
    expect(entries.map(([, { method, params }]) => [method, params['message']])).toEqual([
      ['elicitation/create', 'One?'],
      ['elicitation/create', 'Two?'],
      ['sampling/createMessage', undefined],
    ])
    const sampled = { role: 'assistant', model: 'm', content: { type: 'text', text: 's' } }
    const [one, two, three] = entries.map(([key]) => key)
    const responses = { [three!]: sampled, [two!]: accept('2'), [one!]: accept('1') }
    expect(await host.call('tools/call', retry(round, responses))).toMatchObject(said([accept('1'), accept('2'), sampled]))
  })

  test('B069 B070 what a retry leaves out is asked again with a new state; what nobody asked for is ignored', async () => {
    await using gateway = await start(
      kind,
      async (turn) => {
        const both = ['One?', 'Two?'].map((message) => turn.ask('elicitation/create', form(message)))
        return said((await Promise.all(both)).map(({ result }) => result))
      },
      patient,
    )
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    const [one, two] = Object.keys(asked(round))
    const again = await host.call('tools/call', retry(round, { [one!]: accept('1'), nobody: accept('?') }))
    expect(Object.keys(asked(again))).toEqual([two])
    expect(again['requestState']).not.toBe(round['requestState'])
    expect(await host.call('tools/call', retry(again, { [two!]: accept('2') }))).toMatchObject(said([accept('1'), accept('2')]))
  })

  test('B078 each state is taken once; the next round has its own', async () => {
    await using gateway = await start(kind, asking(['elicitation/create', form('1?')], ['elicitation/create', form('2?')]))
    await using host = await modernHttp.connect(gateway, able)
    const one = await host.call('tools/call', CALL)
    const two = await host.call('tools/call', retry(one, toAll(one, accept('1'))))
    await expect(host.call('tools/call', retry(one, toAll(one, accept('x'))))).rejects.toMatchObject({
      code: -32602,
      message: 'requestState already used',
    })
    expect(Object.keys(asked(two))).not.toEqual(Object.keys(asked(one)))
    const done = await host.call('tools/call', retry(two, toAll(two, accept('2'))))
    expect(done).toMatchObject(said([accept('1'), accept('2')]))
    await expect(host.call('tools/call', retry(two, toAll(two, accept('x'))))).rejects.toMatchObject({ code: -32602 })
  })

  test('B061 B064 B068 a state that was touched, or comes with another request, is refused and changes nothing', async () => {
    await using gateway = await start(kind, elicits)
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    const state = String(round['requestState'])
    const middle = state.length >> 1
    const touched = `${state.slice(0, middle)}${state[middle] === 'A' ? 'B' : 'A'}${state.slice(middle + 1)}`
    const good = retry(round, toAll(round, accept('it')))
    for (const bad of [
      { ...good, requestState: touched },
      { ...good, requestState: 'k1.nonsense' },
      { ...good, arguments: { subject: 'flood' } },
      { ...good, name: 'a__y' },
    ])
      await expect(host.call('tools/call', bad)).rejects.toMatchObject({
        code: -32602,
        message: 'invalid or expired requestState',
      })
    expect(await host.call('tools/call', good)).toMatchObject(said([accept('it')]))
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('an answer of the wrong shape is refused and the call stays parked', async () => {
    await using gateway = await start(kind, elicits)
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    for (const answer of [{ action: 'perhaps' }, { action: 'accept', content: 'it' }, {}, 'it'])
      await expect(host.call('tools/call', retry(round, toAll(round, answer as JsonMap)))).rejects.toMatchObject({
        code: -32602,
        message: expect.stringMatching(/is not a valid answer to elicitation\/create/),
      })
    expect(await host.call('tools/call', retry(round, toAll(round, accept('it'))))).toMatchObject(said([accept('it')]))
  })

  test.each(['accept', 'decline', 'cancel'])('B092 the answer %s reaches it as it is', async (action) => {
    await using gateway = await start(kind, elicits)
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    const answer = action === 'accept' ? { action, content: { queue: 'it', more: [1] } } : { action }
    expect(await host.call('tools/call', retry(round, toAll(round, answer)))).toMatchObject(said([answer]))
  })

  test('B075 progress goes to the request that carries the call, under its token', async () => {
    await using gateway = await start(kind, async (turn) => {
      turn.progress(1)
      await turn.ask('elicitation/create', form('?'))
      turn.progress(2)
      return said([])
    })
    await using host = await modernHttp.connect(gateway, able)
    const first = host.begin('tools/call', { ...CALL, _meta: { progressToken: 'p-1' } })
    const round = (await first.response).result ?? {}
    const second = host.begin('tools/call', { ...retry(round, toAll(round, accept('it'))), _meta: { progressToken: 'p-2' } })
    await second.response
    const progress = ({ messages }: typeof first): unknown[] =>
      messages.entries.map(({ params }) => [params?.['progressToken'], params?.['progress']])
    expect(progress(first)).toEqual([['p-1', 1]])
    expect(progress(second)).toEqual([['p-2', 2]])
  })

  test('B063 B076 a park that nobody comes back for: the server is answered, its call cancelled, its link free', async () => {
    await using gateway = await start(
      kind,
      async (turn) => {
        if (turn.params['name'] === 'y') return said(['free'])
        answers.push((await turn.ask('elicitation/create', form('?'))).result)
        return undefined
      },
      { gateway: { parking: { ttlMs: 100, maxParked: 9, maxPerPrincipal: 9, coalesceMs: 5 } } },
    )
    const answers: unknown[] = []
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    const call = await gateway.fake('a').until('tools/call')
    const cancelled = await gateway.fake('a').until('notifications/cancelled')
    expect(cancelled.params['requestId']).toBe(call.id)
    await gateway.fake('a').journal.until(({ message }) => message.result !== undefined)
    expect(answers).toEqual([{ action: 'cancel' }])
    await expect(host.call('tools/call', retry(round, toAll(round, accept('late'))))).rejects.toMatchObject({ code: -32602 })
    expect(await host.call('tools/call', { name: 'a__y' })).toMatchObject(said(['free']))
    // A server that cannot say which call it asks for might go on asking for this one.
    const isAgain = gateway.fake('a').all('tools/call').at(-1)?.connection === call.connection
    expect(isAgain).toBe(kind === 'legacy http')
  })

  test('B077 what the call ends with while it is parked is kept for the retry', async () => {
    await using gateway = await start(kind, (turn) => {
      void turn.ask('elicitation/create', form('?'))
      return ended.promise
    })
    const ended = Promise.withResolvers<JsonMap>()
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    ended.resolve(said(['gave up waiting']))
    await vi.waitFor(() => expect(gateway.running.fleet.get('a')?.inFlight).toBe(0))
    expect(await host.call('tools/call', retry(round, {}))).toMatchObject(said(['gave up waiting']))
  })

  test('a question that the server takes back suspends the idle time-out of its call no longer', async () => {
    const handle: Handle = (turn) => {
      const { id } = turn.connection.expectAnswer()
      turn.say(request(id, 'elicitation/create', form('Which queue?')))
      turn.notify('notifications/cancelled', { requestId: id })
      return fake.never()
    }
    await using gateway = await start(kind, handle, { options: { a: { timeouts: { idleMs: 500 } } }, ...patient })
    await using host = await modernHttp.connect(gateway, able)
    expect(JSON.stringify(await host.begin('tools/call', CALL).response)).toContain('timeouts.idle')
    expect(gateway.fake('a').received.filter(({ message }) => message.method === undefined)).toEqual([])
  })

  test('a question that is open when its call ends gets an answer, which is none of the host', async () => {
    const handle: Handle = (turn) => {
      void turn.ask('elicitation/create', form('Which queue?'))
      return said(['already done'])
    }
    await using gateway = await start(kind, handle, patient)
    await using host = await modernHttp.connect(gateway, able)
    expect(await host.call('tools/call', CALL)).toMatchObject(said(['already done']))
    const { message } = await gateway.fake('a').journal.until((got) => got.message.method === undefined)
    expect(message.result).toEqual({ action: 'cancel' })
  })

  test('the host gives up the request that carries the call: so does the server', async () => {
    await using gateway = await start(kind, async (turn) => {
      await turn.ask('elicitation/create', form('?'))
      return fake.never()
    })
    await using host = await modernHttp.connect(gateway, able)
    const round = await host.call('tools/call', CALL)
    const carrier = host.begin('tools/call', retry(round, toAll(round, accept('it'))))
    carrier.response.catch(() => undefined)
    await gateway.fake('a').journal.until(({ message }) => message.method === undefined && message.result !== undefined)
    carrier.cancel()
    await gateway.fake('a').until('notifications/cancelled')
  })

  test('B038 B059 B093 B097 what the request does not declare is refused, and nobody is asked', async () => {
    const url = { mode: 'url', message: 'go', url: 'https://x.example/', elicitationId: 'e' }
    const tools = { messages: [], maxTokens: 1, tools: [] }
    await using gateway = await start(
      kind,
      asking(['elicitation/create', url], ['sampling/createMessage', tools], ['roots/list', {}]),
    )
    await using some = await modernHttp.connect(gateway, { capabilities: { elicitation: {}, sampling: {} } })
    expect(await some.call('tools/call', CALL)).toMatchObject(said([-32602, -32602, -32601]))
    await using none = await modernHttp.connect(gateway)
    expect(await none.call('tools/call', CALL)).toMatchObject(said([-32601, -32601, -32601]))
  })

  test('B036 B059 a retry is asked only what it declares itself, and brings its answers all the same', async () => {
    await using gateway = await start(
      kind,
      asking(['elicitation/create', form('?')], ['sampling/createMessage', { messages: [], maxTokens: 1 }], ['roots/list', {}]),
    )
    await using host = await modernHttp.connect(gateway)
    const able = { [KEY.capabilities]: { elicitation: {}, sampling: {}, roots: {} } }
    for (const [capabilities, answers] of [
      [{}, [accept('it'), -32601, -32601]],
      [{ elicitation: {} }, [accept('it'), -32601, -32601]],
    ] as const) {
      const round = await host.call('tools/call', CALL, { meta: able })
      const meta = { [KEY.capabilities]: capabilities }
      expect(await host.call('tools/call', retry(round, toAll(round, accept('it'))), { meta })).toMatchObject(said(answers))
    }
  })

  test('B262 two calls that may be asked are told apart', async () => {
    await using gateway = await start(kind, async (turn) => {
      const { result } = await turn.ask('elicitation/create', form(JSON.stringify(turn.params['arguments'])))
      return said([turn.params['arguments'], result])
    })
    await using host = await modernHttp.connect(gateway, able)
    const calls = [1, 2, 3].map((n) => ({ name: 'a__x', arguments: { n } }))
    const rounds = await Promise.all(calls.map((call) => host.call('tools/call', call)))
    const messages = rounds.map((round) =>
      Object.values(asked(round)).map((each) => (each as { params: JsonMap }).params['message']),
    )
    expect(messages).toEqual(calls.map((call) => [JSON.stringify(call.arguments)]))
    const done = rounds.map((round, at) => host.call('tools/call', retry(round, toAll(round, accept(String(at))), calls[at])))
    expect(await Promise.all(done)).toMatchObject(calls.map((call, at) => said([call.arguments, accept(String(at))])))
    const links = new Set(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ connection }) => connection),
    )
    if (kind !== 'legacy http') expect(links.size).toBe(3)
  })
})

test('B080 after the process that held it is gone, a retry is told so and the server is not called again', async () => {
  const spec = fake.of({ kind: 'legacy http', tools: ['x'], on: { 'tools/call': elicits } })
  const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-parking-'))
  let round: JsonMap
  {
    await using before = await startGateway({ servers: { a: spec }, stateDir })
    await using host = await modernHttp.connect(before, able)
    round = await host.call('tools/call', CALL)
  }
  await using after = await startGateway({ servers: { a: spec }, stateDir })
  await using host = await modernHttp.connect(after, able)
  expect(await host.call('tools/call', retry(round, toAll(round, accept('it'))))).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/lost; the action may or may not have happened/) }],
    _meta: { 'dev.trunkline/gateway': { kind: 'lost', executed: 'unknown' } },
  })
  expect(after.fake('a').all('tools/call')).toEqual([])
  rmSync(stateDir, { recursive: true })
})

test('F-22 a retry that comes while the gateway stops is told that its call may have been executed', async () => {
  await using gateway = await start('legacy http', (turn) => (turn.params['name'] === 'y' ? fake.never() : elicits(turn)))
  await using host = await modernPipe.connect(gateway, able)
  await using other = await modernHttp.connect(gateway)
  const round = await host.call('tools/call', CALL)
  const open = other.begin('tools/call', { ...CALL, name: 'a__y' })
  await gateway.fake('a').until('tools/call', ({ params }) => params['name'] === 'y')
  const stopped = gateway.running.stop()
  await vi.waitFor(async () => {
    const late = await host.call('tools/call', CALL)
    expect(metaOf({ result: late })).toMatchObject({ 'dev.trunkline/gateway': { kind: 'shutting_down', executed: 'no' } })
  })
  const resumed = await host.call('tools/call', retry(round, toAll(round, accept('it'))))
  expect(metaOf({ result: resumed })).toMatchObject({ 'dev.trunkline/gateway': { kind: 'shutting_down', executed: 'unknown' } })
  open.cancel()
  await stopped
})

test('B079 a state names the process that holds its call: any other says so at once, and the holder resumes it', async () => {
  const spec = fake.of({ kind: 'legacy http', tools: ['x'], on: { 'tools/call': elicits } })
  const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-parking-'))
  await using owner = await startGateway({ servers: { a: spec }, stateDir })
  await using other = await startGateway({ servers: { a: spec }, stateDir })
  await using host = await modernHttp.connect(owner, able)
  await using astray = await modernHttp.connect(other, able)
  const round = await host.call('tools/call', CALL)
  const answered = retry(round, toAll(round, accept('it')))
  expect(await astray.call('tools/call', answered)).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/was lost/) }],
  })
  expect(other.fake('a').all('tools/call')).toEqual([])
  expect(await host.call('tools/call', answered)).toMatchObject(said([accept('it')]))
  rmSync(stateDir, { recursive: true })
})

test('B081 during a method that cannot end with a question, elicitations are cancelled and samplings refused', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', prompts: ['p'] }) },
    pipe: true,
  })
  const answers: unknown[] = []
  gateway.fake('a').on('completion/complete', async (turn) => {
    const { result } = await turn.ask('elicitation/create', form('?'))
    const { error } = await turn.ask('sampling/createMessage', { messages: [], maxTokens: 1 })
    answers.push(result, error?.code)
    return { completion: { values: ['v'] } }
  })
  await using host = await modernPipe.connect(gateway, able)
  const ref = { type: 'ref/prompt', name: 'a__p' }
  const result = await host.call('completion/complete', { ref, argument: { name: 'n', value: '' } })
  expect(result).toMatchObject({ resultType: 'complete', completion: { values: ['v'] } })
  expect(answers).toEqual([{ action: 'cancel' }, -1])
})

test('B090 B091 with several servers a person is told which one asks; a URL stays as it is and is not visited', async () => {
  const url = 'https://127.0.0.1:1/%7euser/?a=%20b&c=ü#x'
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        tools: ['x'],
        on: { 'tools/call': asking(['elicitation/create', { mode: 'url', message: 'Go', url, elicitationId: 'e' }]) },
      }),
      b: fake.offering('other'),
    },
  })
  await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { url: {} } } })
  const round = await host.call('tools/call', CALL)
  expect(Object.values(asked(round))).toEqual([{ method: 'elicitation/create', params: { mode: 'url', message: '[A] Go', url } }])
})

test('B065 B087 B089 -32042 becomes a round with one URL question for each entry, without the ids of that era', async () => {
  let isDone = false
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        tools: ['x'],
        on: {
          'tools/call': (turn) => {
            if (isDone) return said(['done'])
            const elicitations = ['1', '2'].map((n) => ({
              mode: 'url',
              elicitationId: n,
              url: `https://x.example/${n}`,
              message: n,
            }))
            turn.fail(-32042, 'visit first', { elicitations })
          },
        },
      }),
    },
  })
  await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { url: {} } } })
  const round = await host.call('tools/call', CALL)
  expect(round).toMatchObject({ resultType: 'input_required' })
  expect(Object.values(asked(round))).toEqual(
    ['1', '2'].map((n) => ({ method: 'elicitation/create', params: { mode: 'url', message: n, url: `https://x.example/${n}` } })),
  )
  isDone = true
  expect(await host.call('tools/call', retry(round, toAll(round, { action: 'accept' })))).toMatchObject(said(['done']))
  for (const { params } of gateway.fake('a').all('tools/call'))
    expect(Object.keys(params).filter((key) => key === 'requestState' || key === 'inputResponses')).toEqual([])
  const plain = await modernHttp.connect(gateway)
  isDone = false
  await expect(plain.call('tools/call', CALL)).rejects.toMatchObject({ code: -32021 })
})

test('limits.parked and limits.parked_per_principal: over them the question is refused, not the call', async () => {
  const parking = { ttlMs: 60_000, maxParked: 1, maxPerPrincipal: 9, coalesceMs: 5 }
  await using gateway = await start(
    'legacy http',
    async (turn) => {
      const { result, error } = await turn.ask('elicitation/create', form('?'))
      return said([result ?? error])
    },
    { gateway: { parking } },
  )
  await using host = await modernHttp.connect(gateway, able)
  await host.call('tools/call', CALL)
  const refused = await host.call('tools/call', { name: 'a__y' })
  expect(JSON.stringify(refused)).toMatch(/limits\.parked \(1\) reached/)
  expect(metaOf({ result: refused })).not.toHaveProperty('error')
})
