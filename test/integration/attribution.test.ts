/** To whom a question of a legacy server belongs that names no call: one caller at a time, or nobody (BRIDGING 3.0 b). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../support/fake-downstream.ts'
import { everyLegacyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { startGateway } from '../support/gateway.ts'

const FORM = { message: 'Sure?', requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } } } }
const able = { capabilities: { elicitation: { form: {} } } }
const nameOf = ({ params }: { params: JsonMap }): string => String((params['arguments'] as JsonMap)['of'])
const call = (host: Host, of: string, more: JsonMap = {}): Promise<JsonMap> =>
  host.call('tools/call', { name: 'a__x', arguments: { of }, ...more })

describe.each(['legacy stdio', 'legacy sse'] as const)('a %s server', (kind) => {
  /** Asks in the middle of each call, and answers with what the call was of and what it was told. */
  const asking = (): FakeSpec =>
    fake.of({
      kind,
      tools: ['x'],
      on: {
        'tools/call': async (turn) => {
          const { result, error } = await turn.ask('elicitation/create', { ...FORM, message: nameOf(turn) })
          return { content: [{ type: 'text', text: `${nameOf(turn)} ${JSON.stringify(result?.['content'] ?? error?.code)}` }] }
        },
      },
    })

  test('B262 gets the calls of modern hosts that may be asked on links of their own, also while they are parked', async () => {
    await using gateway = await startGateway({ servers: { a: asking() } })
    await using one = await modernHttp.connect(gateway, able)
    await using two = await modernHttp.connect(gateway, able)
    const rounds = await Promise.all([call(one, 'one'), call(two, 'two')])
    for (const [at, of] of ['one', 'two'].entries())
      expect(rounds[at]).toMatchObject({ resultType: 'input_required', inputRequests: { sure: { params: { message: of } } } })
    const links = gateway
      .fake('a')
      .all('tools/call')
      .map(({ connection }) => connection)
    expect(new Set(links).size).toBe(2)
    // The other way round: nobody's answer reaches the other's call.
    for (const [host, at, of] of [
      [two, 1, 'two'],
      [one, 0, 'one'],
    ] as const) {
      const { requestState } = rounds[at]
      const inputResponses = { sure: { action: 'accept', content: { sure: of } } }
      expect(await call(host, of, { requestState, inputResponses })).toMatchObject({
        content: [{ text: `${of} {"sure":"${of}"}` }],
      })
    }
    // Whoever comes now finds both links free.
    await call(one, 'again')
    expect(links).toContain((await gateway.fake('a').until('tools/call', (turn) => nameOf(turn) === 'again')).connection)
  })

  test('B262 after a cancelled call the next one has the same link where all callers share it, since nobody is asked there', async () => {
    const on = { 'tools/call': (turn: Turn) => (nameOf(turn) === 'first' ? undefined : { content: [] }) }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind, tools: ['x'], on }) },
      options: { a: { sharing: 'shared' } },
    })
    await using host = await modernHttp.connect(gateway, able)
    const first = host.begin('tools/call', { name: 'a__x', arguments: { of: 'first' } })
    const { connection } = await gateway.fake('a').until('tools/call')
    first.cancel()
    await gateway.fake('a').until('notifications/cancelled')
    await call(host, 'second')
    expect((await gateway.fake('a').until('tools/call', (turn) => nameOf(turn) === 'second')).connection).toBe(connection)
  })

  test('B262 opens no more links for one principal than limits.links', async () => {
    await using gateway = await startGateway({
      servers: { a: asking() },
      options: { a: { limits: { maxLinks: 1, maxQueued: 0 } } },
    })
    await using host = await modernHttp.connect(gateway, able)
    await call(host, 'one')
    expect(await call(host, 'two')).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('limits.links (1)') as string }],
      _meta: { 'dev.trunkline/gateway': { kind: 'overloaded', executed: 'no', retryable: true } },
    })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('B262 at limits.links the calls of a host that can be asked wait for each other, and all are answered', async () => {
    const answered = fake.of({
      kind,
      tools: ['x'],
      on: { 'tools/call': (turn) => ({ content: [{ type: 'text', text: nameOf(turn) }] }) },
    })
    await using gateway = await startGateway({ servers: { a: answered }, options: { a: { limits: { maxLinks: 2 } } } })
    await using host = await modernHttp.connect(gateway, able)
    const names = Array.from({ length: 50 }, (_, at) => `call ${at}`)
    const results = await Promise.all(names.map((of) => call(host, of)))
    expect(results).toMatchObject(names.map((text) => ({ content: [{ text }] })))
  })

  describe.each(everyLegacyTransport)('before a host on $name', ({ connect }) => {
    /** Two calls of one session; during the second the server asks for the first. */
    const twoCalls = async (ends: (turn: Turn) => JsonMap | Promise<JsonMap>) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      const { promise: both, resolve: bothAreThere } = Promise.withResolvers<void>()
      const handle: Handle = async (turn) => {
        if (nameOf(turn) !== 'first') {
          bothAreThere()
          await released
          return { content: [{ type: 'text', text: 'second' }] }
        }
        await both
        return ends(turn)
      }
      const gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'], on: { 'tools/call': handle } }) } })
      const host = await connect(gateway, able)
      const { promise: answer, resolve: decide } = Promise.withResolvers<JsonMap>()
      const { promise: wasAsked, resolve: isAsked } = Promise.withResolvers<void>()
      host.answer('elicitation/create', () => {
        isAsked()
        return answer
      })
      const first = host.begin('tools/call', { name: 'a__x', arguments: { of: 'first' } })
      await gateway.fake('a').until('tools/call')
      const second = host.begin('tools/call', { name: 'a__x', arguments: { of: 'second' } })
      const withdrawals = (): Message[] =>
        [host.heard, first.messages, second.messages]
          .flatMap(({ entries }) => entries)
          .filter(({ method }) => method === 'notifications/cancelled')
      return {
        gateway,
        first,
        second,
        wasAsked,
        decide,
        release,
        withdrawals,
        [Symbol.asyncDispose]: async () => {
          await host[Symbol.asyncDispose]()
          await gateway[Symbol.asyncDispose]()
        },
      }
    }

    test('B262 a question beside several calls of one session stays open as long as one of them is under way', async () => {
      await using at = await twoCalls(async (turn) => {
        const { result, error } = await turn.ask('elicitation/create', FORM)
        return { content: [{ type: 'text', text: JSON.stringify(result?.['content'] ?? error) }] }
      })
      await at.wasAsked
      at.release()
      expect((await at.second.response).result).toMatchObject({ content: [{ text: 'second' }] })
      at.decide({ action: 'accept', content: { sure: true } })
      expect((await at.first.response).result).toMatchObject({ content: [{ text: '{"sure":true}' }] })
      expect(at.withdrawals()).toEqual([])
    })

    test('B262 it is taken back when the last of them has ended, whichever that is', async () => {
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
      await using at = await twoCalls(async (turn) => {
        void turn.ask('elicitation/create', FORM)
        await mayEnd
        return { content: [] }
      })
      await at.wasAsked
      at.release()
      await at.second.response
      expect(at.withdrawals()).toEqual([])
      end()
      await at.first.response
      await at.gateway.fake('a').journal.until(({ message }) => message.error !== undefined)
      expect(at.withdrawals()).toHaveLength(1)
    })
  })

  test('B262 a question that could be of either of two sessions is refused and reaches nobody', async () => {
    await using gateway = await startGateway({ servers: { a: asking() }, options: { a: { sharing: 'principal' } } })
    await using one = await legacyHttp.connect(gateway, able)
    await using two = await legacyHttp.connect(gateway, able)
    const { promise: both, resolve: release } = Promise.withResolvers<void>()
    gateway.fake('a').on('tools/call', async (turn) => {
      await both
      return { content: [{ type: 'text', text: String((await turn.ask('elicitation/create', FORM)).error?.code) }] }
    })
    const calls = [one, two].map((host) => host.begin('tools/call', { name: 'a__x', arguments: {} }))
    const turns = await gateway.fake('a').journal.when(() => {
      const found = gateway.fake('a').all('tools/call')
      return found.length === 2 ? found : undefined
    })
    expect(turns[0]!.connection).toBe(turns[1]!.connection)
    // One pipe: the first question comes while both are under way.
    release()
    const texts = await Promise.all(calls.map(async ({ response }) => JSON.stringify((await response).result)))
    expect(texts[0]).toContain('-32601')
    for (const pending of calls) expect(pending.messages.entries.filter(({ id }) => id !== undefined)).toEqual([])
    for (const { heard } of [one, two]) expect(heard.entries).toEqual([])
  })
})
