/** A modern server asks by ending the call: legacy hosts are asked in the middle of it, modern ones relay (BRIDGING 3.2, 3.13, Example B). */
import { describe, expect, test } from 'vitest'
import { DEFAULT_PARKING } from '../../src/era/host/parking-options.ts'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind, Handle } from '../support/fake-downstream.ts'
import { everyLegacyTransport, legacyHttp, modernHttp, modernPipe } from '../support/fake-host.ts'
import type { HostOptions } from '../support/fake-host.ts'
import { RpcError } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'

const KINDS = ['modern http', 'modern stdio'] as const
const able: HostOptions = { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } }
const CALL = { name: 'a__release', arguments: { env: 'prod' } }
const elicit = (message: string): JsonMap => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: {} } },
})
const visit = (url: string): JsonMap => ({ method: 'elicitation/create', params: { mode: 'url', message: 'Go', url } })
const sample = { method: 'sampling/createMessage', params: { maxTokens: 80, messages: [] } }
const SAMPLED = { role: 'assistant', model: 'm-1', content: { type: 'text', text: '3 fixes' } }
const ok = { action: 'accept', content: { ok: true } }
const done = (value: unknown): JsonMap => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })
const required = (inputRequests?: JsonMap, requestState?: string): JsonMap => ({
  resultType: 'input_required',
  ...(inputRequests !== undefined && { inputRequests }),
  ...(requestState !== undefined && { requestState }),
})
/** Asks in these rounds, then tells what the last one brought. */
const rounds = (...steps: readonly JsonMap[]): Handle => {
  let at = 0
  return ({ params }) => steps[at++] ?? done(params['inputResponses'])
}
const start = (kind: FakeKind, handle: Handle, more: Partial<GatewaySetup> = {}) =>
  startGateway({ servers: { a: fake.of({ kind, tools: ['release', 'other'], on: { 'tools/call': handle } }) }, ...more })

describe.each(KINDS)('a %s server that asks', (kind) => {
  test.each(everyLegacyTransport)(
    'B066 B067 B082 a host on $name is asked in the middle of its call; the retry has a new id and the exact state',
    async ({ connect }) => {
      const state = 'D-opaque "quoted" é😀'
      await using gateway = await start(
        kind,
        rounds(required({ ok: elicit('Release?'), sum: sample, where: { method: 'roots/list' } }, state)),
      )
      await using host = await connect(gateway, able)
      host.answer('elicitation/create', () => ok)
      host.answer('sampling/createMessage', () => SAMPLED)
      host.answer('roots/list', () => ({ roots: [{ uri: 'file:///r' }] }))
      expect(await host.call('tools/call', CALL)).toEqual(done({ ok, sum: SAMPLED, where: { roots: [{ uri: 'file:///r' }] } }))
      const [first, second] = gateway.fake('a').all('tools/call')
      expect(first!.params).not.toHaveProperty('requestState')
      expect(second!.params).toMatchObject({ name: 'release', arguments: CALL.arguments, requestState: state })
      expect(second!.id).not.toBe(first!.id)
    },
  )

  test.each([legacyHttp, modernHttp])(
    'B066 a state that looks like one of the gateway itself comes back to its server from a host over $name',
    async ({ connect, era }) => {
      for (const state of ['visit []', 'visit {', 'sign-in.x']) {
        await using gateway = await start(kind, rounds(required({ ok: elicit('Release?') }, state)))
        await using host = await connect(gateway, able)
        host.answer('elicitation/create', () => ok)
        const { requestState } = await host.call('tools/call', CALL)
        if (era === 'modern') await host.call('tools/call', { ...CALL, requestState, inputResponses: { ok } })
        expect(gateway.fake('a').all('tools/call')[1]!.params).toMatchObject({ requestState: state })
      }
    },
  )

  test('B094 a host of 2025-06-18 is asked what it has words for, and several choices count as cancelled', async () => {
    const form = (property: JsonMap): JsonMap => ({
      method: 'elicitation/create',
      params: { mode: 'form', message: 'Which?', requestedSchema: { type: 'object', properties: { p: property } } },
    })
    const options = [
      { const: 'a', title: 'Apple' },
      { const: 'b', title: 'Bean' },
    ]
    const several = form({ type: 'array', items: { type: 'string', enum: ['a', 'b'] } })
    await using gateway = await start(kind, rounds(required({ several, one: form({ type: 'string', oneOf: options }) }, 's')))
    await using host = await legacyHttp.connect(gateway, { ...able, revision: '2025-06-18' })
    const asked: JsonMap[] = []
    host.answer('elicitation/create', (params) => {
      asked.push(params)
      return { action: 'accept', content: { p: 'a' } }
    })
    const answers = { several: { action: 'cancel' }, one: { action: 'accept', content: { p: 'a' } } }
    expect(await host.call('tools/call', CALL)).toEqual(done(answers))
    const properties = { p: { type: 'string', enum: ['a', 'b'], enumNames: ['Apple', 'Bean'] } }
    expect(asked).toEqual([{ message: 'Which?', requestedSchema: { type: 'object', properties } }])

    await using newer = await legacyHttp.connect(gateway, able)
    gateway.fake('a').on('tools/call', rounds(required({ several })))
    newer.answer('elicitation/create', () => ({ action: 'accept', content: { p: ['a', 'b'] } }))
    expect(await newer.call('tools/call', CALL)).toEqual(done({ several: { action: 'accept', content: { p: ['a', 'b'] } } }))
  })

  test('B066 B068 no state is made up, and answers go into the retry alone', async () => {
    await using gateway = await start(kind, rounds(required({ ok: elicit('?') }), done('first'), done('second')))
    await using host = await legacyHttp.connect(gateway, able)
    host.answer('elicitation/create', () => ok)
    for (const text of ['first', 'second']) expect(await host.call('tools/call', CALL)).toEqual(done(text))
    const calls = gateway.fake('a').all('tools/call')
    expect(calls.map(({ params }) => [params['inputResponses'], params['requestState']])).toEqual([
      [undefined, undefined],
      [{ ok }, undefined],
      [undefined, undefined],
    ])
  })

  test('B084 a round that asks nothing is tried again after a pause, and nobody is asked', async () => {
    await using gateway = await start(kind, rounds(required(undefined, 'busy')))
    await using host = await legacyHttp.connect(gateway, able)
    expect(await host.call('tools/call', CALL)).toEqual({ content: [{ type: 'text' }] })
    expect(gateway.fake('a').all('tools/call')[1]!.params['requestState']).toBe('busy')
  })

  test('B085 after 16 rounds the call ends with an error', async () => {
    await using gateway = await start(kind, () => required({ ok: elicit('again?') }))
    await using host = await legacyHttp.connect(gateway, able)
    let asked = 0
    host.answer('elicitation/create', () => (asked++, ok))
    expect(await host.call('tools/call', CALL)).toEqual({
      content: [{ type: 'text', text: 'too many input rounds' }],
      isError: true,
    })
    expect(asked).toBe(16)
  })

  test('B085 the call ends with its maximum time, and the question is taken back', async () => {
    await using gateway = await start(kind, rounds(required({ ok: elicit('?') })), {
      options: { a: { timeouts: { totalMs: 1_500 } } },
    })
    await using host = await legacyHttp.connect(gateway, able)
    const pending = host.begin('tools/call', CALL)
    const question = await pending.messages.until(({ method }) => method === 'elicitation/create')
    expect((await pending.response).result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/timeouts\.total/) }],
    })
    const taken = pending.messages.entries.find(({ method }) => method === 'notifications/cancelled')
    expect(taken?.params).toMatchObject({ requestId: question.id })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('B086 consent to a URL is asked once, however often the server waits for it', async () => {
    const url = 'https://x.example/a?b=%7e'
    await using gateway = await start(kind, rounds(required({ go: visit(url) }, '1'), required({ go: visit(url) }, '2')))
    await using host = await legacyHttp.connect(gateway, able)
    const urls: unknown[] = []
    host.answer('elicitation/create', (params) => (urls.push(params['url']), { action: 'accept' }))
    expect(await host.call('tools/call', CALL)).toEqual(done({ go: { action: 'accept' } }))
    expect(urls).toEqual([url])
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => params['requestState']),
    ).toEqual([undefined, '1', '2'])
  })

  test('an answer that is an error: an elicitation counts as cancelled, a sampling ends the call', async () => {
    await using gateway = await start(kind, rounds(required({ ok: elicit('?') }), required({ sum: sample })))
    await using host = await legacyHttp.connect(gateway, able)
    for (const method of ['elicitation/create', 'sampling/createMessage'])
      host.answer(method, () => {
        throw new RpcError({ code: -1, message: 'not now' })
      })
    expect(await host.call('tools/call', CALL)).toEqual({ content: [{ type: 'text', text: 'not now' }], isError: true })
    expect(gateway.fake('a').all('tools/call')[1]!.params['inputResponses']).toEqual({ ok: { action: 'cancel' } })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
  })

  test('the host cancels: what it was asked is taken back and no round follows', async () => {
    await using gateway = await start(kind, rounds(required({ ok: elicit('?'), sum: sample })))
    await using host = await legacyHttp.connect(gateway, able)
    const pending = host.begin('tools/call', CALL)
    pending.response.catch(() => undefined)
    const both = ['elicitation/create', 'sampling/createMessage']
    const asked = await Promise.all(both.map((name) => pending.messages.until(({ method }) => method === name)))
    pending.cancel()
    for (const { id } of asked)
      await pending.messages.until(({ method, params }) => method === 'notifications/cancelled' && params?.['requestId'] === id)
    await host.call('ping')
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('B058 B065 B066 a modern host gets the round with a state of ours, and the server its own back', async () => {
    await using gateway = await start(
      kind,
      rounds(required({ ok: elicit('Release?') }, 'D-opaque'), required({ ok: elicit('Sure?') })),
    )
    await using host = await modernHttp.connect(gateway, able)
    const first = await host.call('tools/call', CALL)
    expect(first).toMatchObject({ resultType: 'input_required', inputRequests: { ok: elicit('Release?') } })
    const wrapped = String(first['requestState'])
    expect(wrapped).not.toContain('D-opaque')
    expect(Buffer.from(wrapped, 'base64url').toString('latin1')).not.toContain('D-opaque')
    const second = await host.call('tools/call', { ...CALL, requestState: wrapped, inputResponses: { ok } })
    expect(second).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) })
    const third = { ...CALL, requestState: second['requestState'], inputResponses: { ok } }
    expect(await host.call('tools/call', third)).toMatchObject({ resultType: 'complete', ...done({ ok }) })
    const calls = gateway.fake('a').all('tools/call')
    expect(calls.map(({ params }) => params['requestState'])).toEqual([undefined, 'D-opaque', undefined])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3)
  })

  test.each([modernHttp, modernPipe])(
    'a state with which the retry of a host over $name would exceed listen.limits.max_body ends the call at once',
    async ({ connect }) => {
      const big = (bytes: number): JsonMap => required({ ok: elicit('Release?') }, 'x'.repeat(bytes))
      const handle = rounds(big(4_000), big(20_000))
      await using gateway = await start(kind, handle, { hostLimits: { maxBodyBytes: 10_000 } })
      await using host = await connect(gateway, able)
      const first = await host.call('tools/call', CALL)
      expect(first).toMatchObject({ resultType: 'input_required' })
      const retry = { ...CALL, requestState: first['requestState'], inputResponses: { ok } }
      expect(await host.call('tools/call', retry)).toMatchObject({
        isError: true,
        resultType: 'complete',
        content: [
          { text: 'with the state of this call, its next request would be larger than 10000 bytes (listen.limits.max_body)' },
        ],
      })
    },
  )

  test('a legacy host is asked in its call, so that the size of the state has no limit of its own', async () => {
    const state = 'x'.repeat(20_000)
    await using gateway = await start(kind, rounds(required({ ok: elicit('Release?') }, state)), {
      hostLimits: { maxBodyBytes: 10_000 },
    })
    await using host = await legacyHttp.connect(gateway, able)
    host.answer('elicitation/create', () => ok)
    expect(await host.call('tools/call', CALL)).toEqual(done({ ok }))
    expect(gateway.fake('a').all('tools/call')[1]!.params['requestState']).toBe(state)
  })

  test('B061 B063 B064 B068 its state opens only for the same request, unchanged and in time', async () => {
    await using gateway = await start(kind, () => required({ ok: elicit('?') }, 's'))
    await using host = await modernHttp.connect(gateway, able)
    const { requestState } = await host.call('tools/call', CALL)
    const good: JsonMap = { ...CALL, requestState, inputResponses: { ok } }
    for (const bad of [
      { ...good, requestState: `${String(requestState).slice(0, -2)}zz` },
      { ...good, arguments: { env: 'test' } },
      { ...good, name: 'a__other' },
    ])
      await expect(host.call('tools/call', bad)).rejects.toMatchObject({
        code: -32602,
        message: 'invalid or expired requestState',
      })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('B063 a state that has expired is refused', async () => {
    const parking = { ...DEFAULT_PARKING, ttlMs: -60_000 }
    await using gateway = await start(kind, () => required({ ok: elicit('?') }, 's'), { gateway: { parking } })
    await using host = await modernHttp.connect(gateway, able)
    const { requestState } = await host.call('tools/call', CALL)
    await expect(host.call('tools/call', { ...CALL, requestState, inputResponses: { ok } })).rejects.toMatchObject({
      code: -32602,
      message: 'invalid or expired requestState',
    })
  })

  test('B038 B059 a question that the host did not declare reaches no host of either era', async () => {
    await using gateway = await start(kind, () => required({ ok: elicit('?') }))
    await using modern = await modernHttp.connect(gateway, { capabilities: { sampling: {} } })
    await using legacy = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
    for (const host of [modern, legacy]) {
      const result = await host.call('tools/call', CALL)
      expect(result).toMatchObject({ isError: true })
      expect(result).not.toHaveProperty('inputRequests')
    }
    expect(legacy.heard.entries).toEqual([])
  })

  test.each<JsonMap>([
    { inputRequests: [elicit('?')], requestState: 's' },
    { inputRequests: 'text', requestState: 's' },
    { inputRequests: { ok: elicit('?') }, requestState: 5 },
    { inputRequests: { ok: elicit('?') }, requestState: { a: 1 } },
    { requestState: 5 },
  ])('B058 B059 B065 a round with questions or a state of another type reaches no host of either era: %j', async (round) => {
    await using gateway = await start(kind, () => ({ resultType: 'input_required', ...round }))
    await using modern = await modernHttp.connect(gateway, able)
    await using legacy = await legacyHttp.connect(gateway, able)
    for (const host of [modern, legacy]) {
      const result = await host.call('tools/call', CALL)
      expect(result).toMatchObject({ isError: true })
      expect(result).not.toHaveProperty('inputRequests')
      expect(result).not.toHaveProperty('requestState')
    }
    expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
  })

  test('B059 B090 of two questions under one key none reaches a host: only one of them could be checked', async () => {
    const twice = `{"ok":${JSON.stringify(sample)},"ok":${JSON.stringify(elicit('?'))}}`
    await using gateway = await start(kind, (turn) =>
      turn.finish(
        `{"jsonrpc":"2.0","id":${turn.id},"result":{"resultType":"input_required","inputRequests":${twice},"requestState":"s"}}`,
      ),
    )
    await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: {} } })
    const pending = host.begin('tools/call', CALL)
    expect((await pending.response).result).toMatchObject({ isError: true })
    expect(await pending.raw).not.toContain('sampling')
  })

  test.each([['completion/complete', { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'n', value: '' } }]])(
    'B057 a round in answer to %s is a violation of the protocol',
    async (method, params) => {
      await using gateway = await startGateway({
        servers: { a: fake.of({ kind, prompts: ['p'], on: { [method]: () => required({ ok: elicit('?') }) } }) },
      })
      for (const { connect } of [modernHttp, legacyHttp]) {
        await using host = await connect(gateway, able)
        await expect(host.call(method, params)).rejects.toMatchObject({ code: -32603 })
      }
    },
  )

  test.each([
    ['prompts/get', { name: 'a__p' }],
    ['resources/read', { uri: 'a+file:///r' }],
  ])('B057 B082 %s may ask, too', async (method, params) => {
    let asked = false
    const handle: Handle = () => {
      if (asked) return method === 'prompts/get' ? { messages: [] } : { contents: [{ uri: 'file:///r', text: 't' }] }
      asked = true
      return required({ ok: elicit('?') })
    }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind, prompts: ['p'], resources: ['file:///r'], on: { [method]: handle } }) },
    })
    await using host = await legacyHttp.connect(gateway, able)
    host.answer('elicitation/create', () => ok)
    await host.call(method, params)
    expect(gateway.fake('a').all(method)[1]!.params['inputResponses']).toEqual({ ok })
  })
})

test('B083 over Streamable HTTP the host is asked on the stream of its own request', async () => {
  await using gateway = await start('modern http', rounds(required({ ok: elicit('?') })))
  await using host = await legacyHttp.connect(gateway, able)
  host.answer('elicitation/create', () => ok)
  const pending = host.begin('tools/call', CALL)
  await pending.response
  expect(pending.messages.entries.map(({ method }) => method)).toEqual(['elicitation/create'])
  expect(host.heard.entries).toEqual([])
})

test('B087 B088 B091 a URL question to a 2025-11-25 host has an id, and that host alone hears that it is done', async () => {
  const url = 'https://x.example/%7euser?x=1#y'
  await using gateway = await start('modern http', rounds(required({ go: visit(url) }, '1')))
  await using host = await legacyHttp.connect(gateway, able)
  await using other = await legacyHttp.connect(gateway, able)
  const asked: JsonMap[] = []
  host.answer('elicitation/create', (params) => (asked.push(params), { action: 'accept' }))
  await host.call('tools/call', CALL)
  expect(asked).toEqual([{ mode: 'url', message: 'Go', url, elicitationId: expect.any(String) }])
  const complete = await host.heard.until(({ method }) => method === 'notifications/elicitation/complete')
  expect(complete.params).toEqual({ elicitationId: asked[0]!['elicitationId'] })
  await other.call('ping')
  expect(other.heard.entries).toEqual([])
})
