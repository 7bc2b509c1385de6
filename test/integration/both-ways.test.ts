/** What one side says of a request of the other reaches it whole: cancellations, progress on questions, rounds (BRIDGING 2.3, 2.4, 3.10, 3.13). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../support/fake-downstream.ts'
import { everyLegacyTransport, legacyHttp, legacyPipe, modernHttp, modernPipe } from '../support/fake-host.ts'
import { KEY } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

const CALL = { name: 'a__x' }
const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
const able = { capabilities: { elicitation: { form: {}, url: {} }, sampling: {} } }
const serving = (kind: NonNullable<FakeSpec['kind']>, handle: Handle): FakeSpec =>
  fake.of({ kind, tools: ['x'], on: { 'tools/call': handle } })

describe.each(['legacy http', 'legacy stdio', 'legacy sse', 'modern stdio'] as const)('to a %s server', (kind) => {
  test.each([...everyLegacyTransport, modernPipe])(
    'B273 a cancellation over $name keeps its reason and its _meta',
    async ({ connect, era }) => {
      await using gateway = await startGateway({ servers: { a: serving(kind, fake.never) } })
      await using host = await connect(gateway)
      host.begin('tools/call', CALL, { id: 77 })
      const { id } = await gateway.fake('a').until('tools/call')
      const own = { 'vendor.example/z': [1] }
      const meta = era === 'modern' ? { ...own, [KEY.version]: '2026-07-28', [KEY.capabilities]: {} } : own
      host.notify('notifications/cancelled', { requestId: 77, reason: 'the person left', _meta: meta, more: 1 })
      const { params } = await gateway.fake('a').until('notifications/cancelled')
      expect(params).toEqual({ requestId: id, reason: 'the person left', _meta: own, more: 1 })
    },
  )

  test('B273 a cancellation without a reason gets none', async () => {
    await using gateway = await startGateway({ servers: { a: serving(kind, fake.never) } })
    await using host = await legacyPipe.connect(gateway)
    host.begin('tools/call', CALL, { id: 'c' })
    const { id } = await gateway.fake('a').until('tools/call')
    host.notify('notifications/cancelled', { requestId: 'c' })
    expect((await gateway.fake('a').until('notifications/cancelled')).params).toEqual({ requestId: id })
  })
})

describe.each(everyLegacyTransport)('over $name', ({ connect }) => {
  test('B257 B273 a thousand questions that a server takes back make room for others', async () => {
    const wereAsked = Promise.withResolvers<undefined>()
    const handle: Handle = async (turn) => {
      const { id: refused, answer: refusal } = turn.connection.expectAnswer()
      const ids = Array.from({ length: 1_000 }, () => turn.connection.expectAnswer().id)
      const ask = (id: number): void =>
        turn.say(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params: FORM }))
      for (const id of [...ids, refused]) ask(id)
      const { error } = await refusal
      await wereAsked.promise
      for (const requestId of ids) turn.notify('notifications/cancelled', { requestId })
      const { id, answer } = turn.connection.expectAnswer()
      ask(id)
      return { content: [{ type: 'text', text: JSON.stringify([error, (await answer).result]) }] }
    }
    await using gateway = await startGateway({ servers: { a: serving('legacy stdio', handle) } })
    await using host = await connect(gateway, able)
    let asked = 0
    host.answer('elicitation/create', () => {
      if (++asked > 1_000) return { action: 'decline' }
      if (asked === 1_000) wereAsked.resolve(undefined)
      return new Promise(() => undefined)
    })
    const { content } = await host.call('tools/call', CALL)
    const [{ text }] = content as [{ text: string }]
    expect(JSON.parse(text)).toMatchObject([
      { code: -32603, message: '1000 requests of the server are unanswered' },
      { action: 'decline' },
    ])
  })

  test.each(['legacy http', 'legacy stdio', 'legacy sse'] as const)(
    'B273 a question that a %s server takes back is taken back with its words',
    async (kind) => {
      const handle: Handle = async (turn) => {
        const { id } = turn.connection.expectAnswer()
        turn.say(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params: FORM }))
        await wasAsked.promise
        turn.notify('notifications/cancelled', { requestId: id, reason: 'too late', _meta: { 'vendor.example/z': 1 } })
        await wasWithdrawn.promise
        return { content: [] }
      }
      const wasAsked = Promise.withResolvers<undefined>()
      const wasWithdrawn = Promise.withResolvers<undefined>()
      await using gateway = await startGateway({ servers: { a: serving(kind, handle) } })
      await using host = await connect(gateway, able)
      host.answer('elicitation/create', () => {
        wasAsked.resolve(undefined)
        return new Promise(() => undefined)
      })
      const pending = host.begin('tools/call', CALL)
      const isCancelled = ({ method }: { method?: string }): boolean => method === 'notifications/cancelled'
      const told = await Promise.race([pending.messages.until(isCancelled), host.heard.until(isCancelled)])
      expect(told.params).toEqual({
        requestId: expect.any(Number) as number,
        reason: 'too late',
        _meta: { 'vendor.example/z': 1 },
      })
      wasWithdrawn.resolve(undefined)
      await pending.response
    },
  )

  test.each(['legacy http', 'legacy stdio', 'legacy sse', 'modern stdio'] as const)(
    'B274 progress of the host on a question of a %s server reaches it under its own token',
    async (kind) => {
      await using gateway = await startGateway({
        servers: {
          a: serving(kind, async (turn) => {
            const { result } = await turn.ask('sampling/createMessage', {
              messages: [],
              maxTokens: 1,
              _meta: { progressToken: 'srv-7' },
            })
            return { content: [{ type: 'text', text: JSON.stringify(result) }] }
          }),
        },
      })
      await using host = await connect(gateway, able)
      host.answer('sampling/createMessage', async ({ _meta }) => {
        const { progressToken } = _meta as JsonMap
        expect(progressToken).not.toBe('srv-7')
        host.notify('notifications/progress', { progressToken, progress: 0.5, total: 2, message: 'thinking', _meta: { x: 1 } })
        await gateway.fake('a').until('notifications/progress')
        return { role: 'assistant', model: 'm', content: { type: 'text', text: 'ok' } }
      })
      await host.call('tools/call', CALL)
      expect(
        gateway
          .fake('a')
          .all('notifications/progress')
          .map(({ params }) => params),
      ).toEqual([{ progressToken: 'srv-7', progress: 0.5, total: 2, message: 'thinking', _meta: { x: 1 } }])
    },
  )

  test('B274 a question without a progress token asks for no progress', async () => {
    await using gateway = await startGateway({
      servers: { a: serving('legacy stdio', async (turn) => (await turn.ask('elicitation/create', FORM), { content: [] })) },
    })
    await using host = await connect(gateway, able)
    let asked: JsonMap | undefined
    host.answer('elicitation/create', (params) => {
      asked = params
      return { action: 'cancel' }
    })
    await host.call('tools/call', CALL)
    expect(asked?.['_meta']).toBeUndefined()
  })
})

describe.each([modernHttp, modernPipe])('over $name', ({ connect }) => {
  test.each([
    ['requestState', { requestState: 7 }],
    ['requestState', { requestState: {} }],
    ['requestState', { requestState: ['a'] }],
    ['requestState', { requestState: null, inputResponses: {} }],
    ['inputResponses', { inputResponses: 'q' }],
    ['inputResponses', { inputResponses: [{}] }],
  ])('B061 a %s of a wrong type (%j) is refused, and begins nothing', async (member, more) => {
    for (const kind of ['legacy http', 'modern http'] as const) {
      await using gateway = await startGateway({ servers: { a: serving(kind, () => ({ content: [] })) } })
      await using host = await connect(gateway, able)
      await expect(host.call('tools/call', { ...CALL, ...more })).rejects.toMatchObject({
        code: -32602,
        message: expect.stringContaining(`params.${member}`) as string,
      })
      expect(gateway.fake('a').all('tools/call')).toEqual([])
      expect(await host.call('tools/call', { ...CALL, requestState: null })).toMatchObject({ content: [] })
    }
  })
})

test.each([modernHttp, legacyHttp])('B059 an unknown kind in inputRequests reaches no host over $name', async ({ connect }) => {
  const inputRequests = {
    q: { method: 'vendor/ask', params: { secret: 's' } },
    ok: { method: 'elicitation/create', params: FORM },
  }
  await using gateway = await startGateway({
    servers: { a: serving('modern http', () => ({ resultType: 'input_required', inputRequests })) },
  })
  await using host = await connect(gateway, able)
  const { raw, messages, response } = host.begin('tools/call', CALL)
  expect((await response).result).toMatchObject({ isError: true, _meta: { [KEY.gateway]: { kind: 'protocol' } } })
  expect(await raw).not.toContain('secret')
  expect([...messages.entries, ...host.heard.entries].filter(({ method }) => method !== undefined)).toEqual([])
})

test('B269 an answer whose id is spelled in another way is that to the question', async () => {
  await using gateway = await startGateway({
    servers: {
      a: serving('legacy http', async (turn) => {
        const { result } = await turn.ask('elicitation/create', FORM)
        return { content: [], structuredContent: { result } }
      }),
    },
  })
  await using host = await legacyHttp.connect(gateway, able)
  const pending = host.begin('tools/call', CALL)
  const { id } = await pending.messages.until(({ method }) => method === 'elicitation/create')
  host.sendRaw(`{"jsonrpc":"2.0","id":${Number(id)}.0,"result":{"action":"decline"}}`, 'none')
  expect((await pending.response).result).toMatchObject({ structuredContent: { result: { action: 'decline' } } })
})

describe('a legacy host without a stream of its own', () => {
  const visit = { mode: 'url', url: 'https://v.example/1', message: 'Go', elicitationId: 'e-1' }

  test('B088 hears of a visit that is done on the stream where it was asked', async () => {
    await using gateway = await startGateway({
      servers: {
        a: serving('legacy http', async (turn) => {
          await turn.ask('elicitation/create', visit)
          turn.notify('notifications/elicitation/complete', { elicitationId: 'e-1' })
          return { content: [] }
        }),
      },
    })
    await using host = await legacyHttp.connect(gateway, { ...able, deaf: true })
    let asked: unknown
    host.answer('elicitation/create', ({ elicitationId }) => {
      asked = elicitationId
      return { action: 'accept' }
    })
    const { messages, response } = host.begin('tools/call', CALL)
    await response
    const told = messages.entries.filter(({ method }) => method === 'notifications/elicitation/complete')
    expect(told.map(({ params }) => params)).toEqual([{ elicitationId: asked }])
  })
})
