/** A modern server ends its calls with questions, under hosts of both eras (BRIDGING 3.2, 3.13, Example B; 8.4). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { Handle } from '../support/fake-downstream.ts'
import { everyLegacyTransport, everyModernTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import { KEY, metaOf, RpcError } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'

const KINDS = ['modern http', 'modern stdio'] as const
const all = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} }
const CALL = { name: 'a__x', arguments: { env: 'prod' } }
const DONE = { content: [{ type: 'text', text: 'done' }] }
const form = (message: string): JsonMap => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } } },
})
const sampling: JsonMap = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 80 } }
const accept = { action: 'accept', content: { ok: true } }
const sampled = { role: 'assistant', model: 'm-1', content: { type: 'text', text: '3 fixes' } }

/** A server whose tool asks these rounds, one for each call, and is done. */
const inRounds = (...rounds: readonly JsonMap[]): Handle => {
  let at = 0
  return () => (at < rounds.length ? { resultType: 'input_required', ...rounds[at++] } : DONE)
}
const start = (kind: (typeof KINDS)[number], handle: Handle, more: Partial<GatewaySetup> = {}) =>
  startGateway({
    servers: {
      a: fake.of({
        kind,
        tools: ['x', 'y'],
        prompts: ['p'],
        resources: ['file:///r'],
        on: { 'tools/call': handle, 'prompts/get': handle, 'resources/read': handle },
      }),
    },
    ...more,
  })
const roundOf = ({ params }: Turn): JsonMap => ({
  ...('requestState' in params && { requestState: params['requestState'] }),
  ...('inputResponses' in params && { inputResponses: params['inputResponses'] }),
})
/** Strings that come back as they were only if nobody reads more into them. */
const STATES = ['D-opaque', '', '{"n":1.0}', 'é\u0000"\\\ud800', 'x'.repeat(20_000)]

describe.each(KINDS)('a %s server that asks by ending the call', (kind) => {
  describe.each(everyLegacyTransport)('of a host on $name', ({ connect, name }) => {
    const isOwnStream = name === legacyHttp.name

    test('B066 B067 B082 B083 the host is asked while its call is open, the server is called again with what it said', async () => {
      const inputRequests = { ok: form('Release?'), sum: sampling, dirs: { method: 'roots/list' } }
      await using gateway = await start(kind, inRounds({ requestState: 'D-opaque', inputRequests }))
      await using host = await connect(gateway, { capabilities: all })
      host.answer('elicitation/create', () => accept)
      host.answer('sampling/createMessage', () => sampled)
      host.answer('roots/list', () => ({ roots: [{ uri: 'file:///w' }] }))
      const pending = host.begin('tools/call', CALL)
      expect((await pending.response).result).toEqual(DONE)
      const questions = isOwnStream ? pending.messages : host.heard
      expect((isOwnStream ? host.heard : pending.messages).entries).toEqual([])
      expect(Object.fromEntries(questions.entries.map(({ method, params }) => [method, params]))).toEqual({
        'elicitation/create': { mode: 'form', ...(form('Release?')['params'] as JsonMap) },
        'sampling/createMessage': sampling['params'],
        'roots/list': undefined,
      })
      const calls = gateway.fake('a').all('tools/call')
      expect(calls.map(roundOf)).toEqual([
        {},
        {
          requestState: 'D-opaque',
          inputResponses: { ok: accept, sum: sampled, dirs: { roots: [{ uri: 'file:///w' }] } },
        },
      ])
      expect(calls.map(({ params }) => [params['name'], params['arguments']])).toEqual([
        ['x', { env: 'prod' }],
        ['x', { env: 'prod' }],
      ])
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
    })

    test('B083 two calls at once are asked each on its own way, and each gets its own answer', async () => {
      const handle: Handle = ({ params }) => {
        if ('inputResponses' in params) return { content: [{ type: 'text', text: JSON.stringify(params['inputResponses']) }] }
        return { resultType: 'input_required', inputRequests: { who: form(JSON.stringify(params['arguments'])) } }
      }
      await using gateway = await start(kind, handle)
      await using host = await connect(gateway, { capabilities: all })
      host.answer('elicitation/create', ({ message }) => ({ action: 'accept', content: { n: message } }))
      const calls = [1, 2, 3].map((n) => host.begin('tools/call', { name: 'a__x', arguments: { n } }))
      const texts = await Promise.all(calls.map(async ({ response }) => JSON.stringify((await response).result)))
      for (const [at, text] of texts.entries()) expect(text).toContain(`n\\\\\\":${at + 1}`)
      if (isOwnStream)
        for (const [at, { messages }] of calls.entries())
          expect(messages.entries.map(({ params }) => params?.['message'])).toEqual([`{"n":${at + 1}}`])
    })
  })

  test('B066 its state comes back as it was, and none where it sent none', async () => {
    await using gateway = await start(
      kind,
      inRounds(...STATES.map((requestState) => ({ requestState, inputRequests: { ok: form('?') } }))),
    )
    await using host = await legacyHttp.connect(gateway, { capabilities: all })
    host.answer('elicitation/create', () => accept)
    await host.call('tools/call', CALL)
    gateway.fake('a').on('tools/call', inRounds({ inputRequests: { ok: form('?') } }))
    await host.call('tools/call', CALL)
    const [, ...retries] = gateway.fake('a').all('tools/call').map(roundOf)
    expect(retries).toEqual([
      ...STATES.map((requestState) => ({ requestState, inputResponses: { ok: accept } })),
      {},
      { inputResponses: { ok: accept } },
    ])
  })

  test('B082 dialogs come one at a time, in the order of the round', async () => {
    const inputRequests = { z: form('1'), sum: sampling, a: form('2'), m: form('3') }
    await using gateway = await start(kind, inRounds({ inputRequests }))
    await using host = await legacyHttp.connect(gateway, { capabilities: all })
    const open: string[] = []
    const seen: string[][] = []
    host.answer('sampling/createMessage', () => sampled)
    host.answer('elicitation/create', async ({ message }) => {
      open.push(String(message))
      seen.push([...open])
      await host.call('ping')
      open.pop()
      return accept
    })
    await host.call('tools/call', CALL)
    expect(seen).toEqual([['1'], ['2'], ['3']])
  })

  test.each(['accept', 'decline', 'cancel'])('B092 the answer %s of a legacy host reaches it as it is', async (action) => {
    const answer = action === 'accept' ? { action, content: { ok: true, more: [1] }, _meta: { k: 1 } } : { action }
    await using gateway = await start(kind, inRounds({ inputRequests: { ok: form('?') } }))
    await using host = await legacyHttp.connect(gateway, { capabilities: all })
    host.answer('elicitation/create', () => answer)
    await host.call('tools/call', CALL)
    expect(gateway.fake('a').all('tools/call')[1]?.params['inputResponses']).toEqual({ ok: answer })
  })

  test('3.13 an elicitation that a legacy host cannot answer is cancelled, a sampling it refuses ends the call in its words', async () => {
    await using gateway = await start(kind, inRounds({ inputRequests: { ok: form('?') } }, { inputRequests: { sum: sampling } }))
    await using host = await legacyHttp.connect(gateway, { capabilities: all })
    const refuse = (): never => {
      throw new RpcError({ code: -1, message: 'User rejected sampling request' })
    }
    host.answer('elicitation/create', refuse)
    host.answer('sampling/createMessage', refuse)
    expect(await host.call('tools/call', CALL)).toEqual({
      content: [{ type: 'text', text: 'User rejected sampling request' }],
      isError: true,
    })
    expect(gateway.fake('a').all('tools/call').map(roundOf)).toEqual([{}, { inputResponses: { ok: { action: 'cancel' } } }])
  })

  test('B085 16 rounds and no more, whatever a server wants', async () => {
    await using gateway = await start(kind, () => ({ resultType: 'input_required', inputRequests: { ok: form('?') } }))
    await using host = await legacyHttp.connect(gateway, { capabilities: all })
    host.answer('elicitation/create', () => accept)
    expect(await host.call('tools/call', CALL)).toMatchObject({ isError: true, content: [{ text: 'too many input rounds' }] })
    await expect(host.call('prompts/get', { name: 'a__p' })).rejects.toMatchObject({ code: -32603 })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(17)
  })

  test('B085 timeouts.total ends the rounds while the host still thinks', async () => {
    await using gateway = await start(kind, inRounds({ inputRequests: { ok: form('?') } }), {
      options: { a: { timeouts: { totalMs: 200 } } },
    })
    await using host = await legacyHttp.connect(gateway, { capabilities: all })
    expect(await host.call('tools/call', CALL)).toMatchObject({ isError: true, content: [{ text: /timeouts\.total/ }] })
  })

  test.each(everyModernTransport)(
    'B061 B064 B065 B066 B067 B068 a host on $name holds a sealed state that is good for this request alone',
    async ({ connect }) => {
      const secret = 'D-opaque-and-long-enough-to-be-found'
      await using gateway = await start(kind, inRounds({ requestState: secret, inputRequests: { ok: form('?') } }))
      await using host = await connect(gateway, { capabilities: all })
      const round = await host.call('tools/call', CALL)
      expect(round).toMatchObject({ resultType: 'input_required', inputRequests: { ok: { method: 'elicitation/create' } } })
      const state = String(round['requestState'])
      for (const text of [JSON.stringify(round), Buffer.from(state, 'base64url').toString('latin1')])
        expect(text).not.toContain(secret)
      const middle = state.length >> 1
      const retry = { ...CALL, requestState: state, inputResponses: { ok: accept, more: { n: 1 } } }
      for (const bad of [
        { ...retry, requestState: `${state.slice(0, middle)}${state[middle] === 'A' ? 'B' : 'A'}${state.slice(middle + 1)}` },
        { ...retry, requestState: secret },
        { ...retry, arguments: { env: 'test' } },
        { ...retry, name: 'a__y' },
      ])
        await expect(host.call('tools/call', bad)).rejects.toMatchObject({ code: -32602 })
      await expect(host.call('prompts/get', { name: 'a__p', requestState: state })).rejects.toMatchObject({ code: -32602 })
      expect(await host.call('tools/call', { ...retry, arguments: { env: 'prod' } })).toMatchObject({
        resultType: 'complete',
        ...DONE,
      })
      expect(await host.call('tools/call', CALL)).toMatchObject(DONE)
      const received = gateway.fake('a').received.filter(({ message }) => message.method === 'tools/call')
      expect(gateway.fake('a').all('tools/call').map(roundOf)).toEqual([
        {},
        { requestState: secret, inputResponses: { ok: accept, more: { n: 1 } } },
        {},
      ])
      expect(new Set(received.map(({ message }) => message.id)).size).toBe(3)
      for (const { raw } of received) expect(raw).not.toContain(state)
      expect(gateway.fake('a').all('prompts/get')).toEqual([])
    },
  )

  test('B066 a modern host brings every state back as it was, and none where there was none', async () => {
    const rounds = [...STATES.map((requestState) => ({ requestState })), { inputRequests: { ok: form('?') } }]
    await using gateway = await start(kind, inRounds(...rounds))
    await using host = await modernHttp.connect(gateway, { capabilities: all })
    for (let round: JsonMap = {}, at = 0; at <= rounds.length; at++)
      round = await host.call('tools/call', { ...CALL, ...('requestState' in round && { requestState: round['requestState'] }) })
    expect(gateway.fake('a').all('tools/call').map(roundOf)).toEqual([
      {},
      ...STATES.map((requestState) => ({ requestState })),
      {},
    ])
  })

  test('B063 its state expires', async () => {
    const parking = { ttlMs: 1, maxParked: 9, maxPerPrincipal: 9, siblingsMs: 5 }
    await using gateway = await start(kind, inRounds({ requestState: 's' }), { gateway: { parking } })
    await using host = await modernHttp.connect(gateway, { capabilities: all })
    const { requestState } = await host.call('tools/call', CALL)
    const startedMs = Date.now()
    while (Date.now() <= startedMs + 1) await host.call('tools/list')
    await expect(host.call('tools/call', { ...CALL, requestState })).rejects.toMatchObject({
      code: -32602,
      message: 'invalid or expired requestState',
    })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test.each([
    ['B057 B058', 'tools/call', CALL],
    ['B057 B058', 'prompts/get', { name: 'a__p' }],
    ['B057 B058', 'resources/read', { uri: 'a+file:///r' }],
  ])('%s a modern host gets the round of %s, always with a state', async (_, method, params) => {
    await using gateway = await start(kind, inRounds({ inputRequests: { ok: form('?') } }))
    await using host = await modernHttp.connect(gateway, { capabilities: all })
    expect(await host.call(method, params)).toMatchObject({
      resultType: 'input_required',
      inputRequests: { ok: { method: 'elicitation/create' } },
      requestState: expect.any(String),
    })
  })

  test.each([
    ['B057', 'input_required where the method cannot end so', { inputRequests: { ok: form('?') } }, 'completion/complete'],
    ['B058', 'input_required that requires nothing', {}, 'tools/call'],
    ['B059', 'a question that the request does not declare', { inputRequests: { ok: form('?') } }, 'tools/call'],
    ['B059', 'roots that the request does not declare', { inputRequests: { ok: { method: 'roots/list' } } }, 'tools/call'],
    [
      'B097',
      'sampling with tools that is not declared',
      { inputRequests: { ok: { ...sampling, params: { tools: [] } } } },
      'tools/call',
    ],
  ])('%s %s is an invalid answer: no host is asked, of either era', async (_, __, round, method) => {
    await using gateway = await start(kind, fake.never)
    gateway.fake('a').on(method, () => ({ resultType: 'input_required', ...round }))
    const capabilities = method === 'completion/complete' ? all : { sampling: {} }
    const params =
      method === 'tools/call' ? CALL : { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'n', value: '' } }
    for (const { connect } of [modernHttp, legacyHttp]) {
      await using host = await connect(gateway, { capabilities })
      const pending = host.begin(method, params)
      const { result, error } = await pending.response
      const { kind: failure } = (metaOf({ result })[KEY.gateway] ?? error?.data?.[KEY.gateway] ?? {}) as { kind?: string }
      expect([failure, error?.code]).toEqual(['protocol', method === 'tools/call' ? undefined : -32603])
      expect([...pending.messages.entries, ...host.heard.entries]).toEqual([])
    }
  })
})
