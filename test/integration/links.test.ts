/** Which hosts share a link to a server, and which never do (BRIDGING 3.0; 8.3). */
import { describe, expect, test } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { Handle } from '../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, legacySse, modernHttp } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { KEY, metaOf } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'

const LEGACY_KINDS = ['legacy http', 'legacy sse', 'legacy stdio'] as const

describe.each(LEGACY_KINDS)('a %s server', (kind) => {
  test('B046 B047 gives each session a link of its own, with what that host declared', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
    await using one = await legacyHttp.connect(gateway, { capabilities: { roots: { listChanged: true } } })
    await using two = await legacyPipe.connect(gateway, { capabilities: { elicitation: {} } })
    await using three = await legacySse.connect(gateway, { capabilities: { elicitation: {} } })
    for (const host of [one, two, three, one]) await host.call('tools/call', { name: 'a__x' })
    const a = gateway.fake('a')
    const links = a.all('tools/call').map(({ connection }) => connection)
    expect(new Set(links).size).toBe(3)
    expect(links[0]).toBe(links[3])
    expect(links.map(({ declared }) => declared)).toEqual([
      { roots: { listChanged: true } },
      { elicitation: {} },
      { elicitation: {} },
      { roots: { listChanged: true } },
    ])
    expect(links).not.toContain(a.connections[0])
  })
  test('B046 opens no link that stays for a session that ended while its call waited for the start', async () => {
    const { promise: isStarted, resolve: start } = Promise.withResolvers<undefined>()
    const initialize: Handle = async ({ params }) => {
      await isStarted
      const { protocolVersion } = params
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } }
    }
    const servers = { a: fake.of({ kind, tools: ['x'], on: { initialize } }) }
    await using gateway = await startGateway({ servers, early: true })
    const host = await legacyPipe.connect(gateway)
    void host.call('tools/call', { name: 'a__x' }).catch(() => undefined)
    await gateway.fake('a').until('initialize')
    const [a] = gateway.running.fleet.downstreams$.value
    await host[Symbol.asyncDispose]()
    start(undefined)
    // What waited for the start has had its turn once the call of a later host is answered.
    await using later = await legacyPipe.connect(gateway)
    await later.call('tools/call', { name: 'a__x' })
    expect(gateway.fake('a').all('initialize')).toHaveLength(2)
    expect(a?.linkCount).toBe(2)
  })
  test('modern hosts that declare nothing share one link', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
    await using one = await modernHttp.connect(gateway)
    await using two = await modernHttp.connect(gateway)
    for (const host of [one, two]) await host.call('tools/call', { name: 'a__x' })
    const [first, second] = gateway.fake('a').all('tools/call')
    expect(first!.connection).toBe(second!.connection)
    expect(first!.connection.declared).toEqual({})
  })
  test('B263 the catalogue link declines at once what it is asked within a list, and no host is told of it', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: kind === 'legacy sse' ? 'legacy http' : kind, tools: ['x'] }) },
    })
    await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {}, sampling: {}, roots: {} } })
    const { promise, resolve } = Promise.withResolvers<unknown[]>()
    gateway.fake('a').on('tools/list', async (turn) => {
      const elicited = await turn.ask('elicitation/create', {
        message: 'who?',
        requestedSchema: { type: 'object', properties: {} },
      })
      const sampled = await turn.ask('sampling/createMessage', { messages: [], maxTokens: 1 })
      resolve([elicited.result, sampled.error?.code, (await turn.ask('roots/list')).result])
      return { tools: [{ name: 'x', inputSchema: { type: 'object' } }] }
    })
    gateway.fake('a').changed('tools')
    expect(await promise).toEqual([{ action: 'cancel' }, -1, { roots: [] }])
    const [catalogue] = gateway.fake('a').connections
    expect((await catalogue!.ask('roots/list')).result).toEqual({ roots: [] })
    expect((await catalogue!.ask('ping')).result).toEqual({})
    expect((await catalogue!.ask('tasks/list')).error?.code).toBe(-32601)
    await host.call('ping')
    expect(host.heard.entries).toEqual([])
  })
  test.each(['elicitation/create', 'sampling/createMessage'])(
    'B295 a server that asks %s on all its connections gets the answer of the host, and no other',
    async (method) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
      await using idle = await legacyHttp.connect(gateway, { capabilities: { elicitation: {}, sampling: {} } })
      await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {}, sampling: {} } })
      await idle.call('tools/call', { name: 'a__x' })
      const a = gateway.fake('a')
      const answer = { action: 'accept', content: {}, role: 'assistant' }
      host.answer(method, () => answer)
      const answered: unknown[] = []
      a.on('tools/call', async (turn) => {
        const others = a.connections.filter((connection) => connection !== turn.connection)
        expect(others.length).toBeGreaterThanOrEqual(2)
        const params = { message: 'who?', requestedSchema: { type: 'object', properties: {} }, messages: [], maxTokens: 1 }
        const asked = others.map((connection) => connection.ask(method, params))
        for (const one of asked) void one.then((message) => answered.push(message.result ?? message.error))
        const own = await turn.ask(method, params)
        for (const connection of others) expect((await connection.ask('ping')).result).toEqual({})
        return { content: [{ type: 'text', text: JSON.stringify(own.result) }] }
      })
      const { content } = (await host.call('tools/call', { name: 'a__x' })) as { content: { text: string }[] }
      expect(JSON.parse(content[0]!.text)).toEqual(answer)
      expect(answered).toEqual([])
      expect(idle.heard.entries).toEqual([])
    },
  )
  test('B048 B051 roots are those of the host of the link, never of another', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
    await using one = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
    await using two = await legacyPipe.connect(gateway, { capabilities: { roots: {} } })
    one.answer('roots/list', () => ({ roots: [{ uri: 'file:///one' }] }))
    two.answer('roots/list', () => ({ roots: [{ uri: 'file:///two' }] }))
    gateway.fake('a').on('tools/call', async (turn) => {
      const { result } = await turn.ask('roots/list')
      return { content: [{ type: 'text', text: JSON.stringify(result) }] }
    })
    const results = await Promise.all([one, two].map((host) => host.call('tools/call', { name: 'a__x' })))
    expect(results).toMatchObject([
      { content: [{ text: '{"roots":[{"uri":"file:///one"}]}' }] },
      { content: [{ text: '{"roots":[{"uri":"file:///two"}]}' }] },
    ])
  })
  test('the link of a session is closed when the session ends', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
    await using host = await connectHttp(gateway)
    await host.call('tools/call', { name: 'a__x' })
    const { connection } = gateway.fake('a').all('tools/call')[0]!
    await send(gateway.url, { method: 'DELETE', headers: host.headers() })
    await connection.closed
    expect(gateway.fake('a').connections[0]!.isOpen).toBe(true)
  })
})

test.each(['legacy sse', 'legacy stdio'] as const)(
  'B048 what a %s server asks of a call that was given up reaches nobody else',
  async (kind) => {
    const second = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    await using gateway = await startGateway({
      servers: {
        a: fake.of({
          kind,
          tools: ['first', 'second'],
          on: {
            'tools/call': async (turn) => {
              if (turn.params['name'] === 'second') {
                second.resolve()
                await asked.promise
                return { content: [] }
              }
              await second.promise
              void turn.ask('elicitation/create', { message: 'You, who called first?', requestedSchema: {} })
              // Answered behind the question, which has been looked at by then.
              const looked = turn.connection.ask('ping').then(() => undefined)
              asked.resolve(Promise.race([looked, turn.connection.closed]))
            },
          },
        }),
      },
    })
    await using one = await modernHttp.connect(gateway, { capabilities: { elicitation: {} } })
    await using two = await modernHttp.connect(gateway, { capabilities: { elicitation: {} } })
    const first = one.begin('tools/call', { name: 'a__first', arguments: {} })
    await gateway.fake('a').until('tools/call')
    first.cancel()
    await gateway.fake('a').until('notifications/cancelled')
    expect(await two.call('tools/call', { name: 'a__second', arguments: {} })).toMatchObject({ resultType: 'complete' })
  },
)

test('B050 what is asked on the stream of a POST belongs to that very call', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) } })
  await using host = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
  const { promise: later, resolve: release } = Promise.withResolvers<void>()
  gateway.fake('a').on('tools/call', async (turn) => {
    if (JSON.stringify(turn.params['arguments']).includes('asks')) await turn.ask('roots/list')
    else await later
    return { content: [] }
  })
  host.answer('roots/list', () => ({ roots: [] }))
  const asking = host.begin('tools/call', { name: 'a__x', arguments: { n: 'asks' } })
  const other = host.begin('tools/call', { name: 'a__x', arguments: { n: 'waits' } })
  await asking.response
  release()
  await other.response
  expect(asking.messages.entries.map(({ method }) => method)).toEqual(['roots/list'])
  expect(other.messages.entries).toEqual([])
})

test.each(['modern http', 'modern stdio'] as const)(
  'B053 a %s server has one link for all, each call with the capabilities of its caller',
  async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
    await using one = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
    await using two = await modernHttp.connect(gateway, { capabilities: { sampling: {} } })
    await one.call('tools/call', { name: 'a__x' })
    await two.call('tools/call', { name: 'a__x' })
    const calls = gateway.fake('a').all('tools/call')
    expect(calls.map(({ message }) => metaOf(message)[KEY.capabilities])).toEqual([{ roots: {} }, { sampling: {} }])
    expect(new Set(calls.map(({ connection }) => connection)).size).toBe(1)
  },
)

test('B056 what modern hosts see does not depend on their calls', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) } })
  await using one = await modernHttp.connect(gateway)
  await using two = await modernHttp.connect(gateway, { capabilities: { sampling: {}, elicitation: {} } })
  await one.call('tools/call', { name: 'a__x' })
  expect((await one.call('tools/list'))['tools']).toEqual((await two.call('tools/list'))['tools'])
})

test('B072 a question of a modern server is dropped and reaches no host', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['x'] }) } })
  await using host = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
  gateway.fake('a').on('tools/call', (turn) => {
    void turn.ask('roots/list')
    return { content: [] }
  })
  expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [] })
  expect(host.heard.entries).toEqual([])
})

describe('3.22 a server that writes answers and questions to every client, as supergateway does over HTTP+SSE and mcp-framework over Streamable HTTP', () => {
  test.each(['legacy sse', 'legacy http'] as const)('no two links to %s servers use one id', async (kind) => {
    const options = { kind, tools: ['x'] } as const
    await using gateway = await startGateway({ servers: { a: fake.of(options), b: fake.of(options) } })
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacyPipe.connect(gateway)
    for (const host of [one, two]) for (const name of ['a__x', 'b__x']) await host.call('tools/call', { name })
    const turns = ['a', 'b'].flatMap((key) => ['initialize', 'tools/list', 'tools/call'].flatMap((m) => gateway.fake(key).all(m)))
    const ids = turns.map(({ id }) => id)
    expect(new Set(turns.map(({ connection }) => connection)).size).toBeGreaterThanOrEqual(4)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('two processes in front of it use no common id: each call gets its own answer', async () => {
    await using a = await FakeDownstream.start({ kind: 'legacy sse', tools: ['x'] })
    const setup = { servers: { a: a.spec }, fakes: new Map([['a', a]]) }
    await using first = await startGateway(setup)
    await using second = await startGateway(setup)
    a.on('tools/call', ({ id, params: { arguments: said } }) => {
      const result = { content: [{ type: 'text', text: JSON.stringify(said) }] }
      if (a.all('tools/call').length === 1) return fake.never()
      for (const connection of a.connections) connection.say(JSON.stringify({ jsonrpc: '2.0', id, result }))
      return fake.never()
    })
    await using one = await legacyHttp.connect(first)
    await using two = await legacyHttp.connect(second)
    const waiting = one.begin('tools/call', { name: 'a__x', arguments: { of: 1 } })
    const turn = await a.until('tools/call')
    const other = await two.call('tools/call', { name: 'a__x', arguments: { of: 2 } })
    turn.answer({ content: [{ type: 'text', text: 'own' }] })
    expect(other).toMatchObject({ content: [{ text: '{"of":2}' }] })
    expect((await waiting.response).result).toMatchObject({ content: [{ text: 'own' }] })
  })

  test('B295 roots that are asked for on all connections are those of the host whose call it is', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy sse', tools: ['x'] }) } })
    await using host = await legacyHttp.connect(gateway, { capabilities: { roots: {} } })
    const roots = { roots: [{ uri: 'file:///r' }] }
    host.answer('roots/list', () => roots)
    const a = gateway.fake('a')
    const early: unknown[] = []
    a.on('tools/call', async (turn) => {
      const others = a.connections.filter((connection) => connection !== turn.connection)
      for (const connection of others) void connection.ask('roots/list').then(({ result }) => early.push(result))
      const own = await turn.ask('roots/list')
      for (const connection of others) expect((await connection.ask('ping')).result).toEqual({})
      return { content: [{ type: 'text', text: JSON.stringify(own.result) }] }
    })
    const { content } = (await host.call('tools/call', { name: 'a__x' })) as { content: { text: string }[] }
    expect(JSON.parse(content[0]!.text)).toEqual(roots)
    expect(early).toEqual([])
  })
})

test('3.22 a server that writes every answer on the stream that was opened last answers all hosts of one caller', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy sse', tools: ['x'] }) } })
  await using one = await legacyHttp.connect(gateway)
  await using two = await modernHttp.connect(gateway)
  const a = gateway.fake('a')
  const say = (message: object): void => a.connections.at(-1)!.say(JSON.stringify({ jsonrpc: '2.0', ...message }))
  a.on('tools/call', ({ id, params }) => {
    const { progressToken } = params['_meta'] as { progressToken?: unknown }
    if (progressToken !== undefined) say({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
    say({ id, result: { content: [{ type: 'text', text: JSON.stringify(params['arguments']) }] } })
    return fake.never()
  })
  for (const [at, host] of [one, two, one, two].entries()) {
    const pending = host.begin('tools/call', { name: 'a__x', arguments: { at }, _meta: { progressToken: 'p' } })
    expect((await pending.response).result).toMatchObject({ content: [{ text: `{"at":${at}}` }] })
    expect(pending.messages.entries.concat(host.heard.entries.splice(0))).toMatchObject([
      { params: { progressToken: 'p', progress: 1 } },
    ])
  }
  expect(new Set(a.all('tools/call').map(({ connection }) => connection)).size).toBe(2)
  expect(a.connections.length).toBe(3)
})

test('3.22 what a server writes on the stream of a cancelled request still counts, as supergateway does over Streamable HTTP', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x', 'slow'] }) } })
  await using host = await legacyPipe.connect(gateway, { capabilities: { elicitation: {} } })
  host.answer('elicitation/create', () => ({ action: 'accept', content: {} }))
  const a = gateway.fake('a')
  a.on('tools/call', (turn) => (turn.progress(1), fake.never()))
  const progress = host.heard.until(({ method }) => method === 'notifications/progress')
  const pending = host.begin('tools/call', { name: 'a__slow', _meta: { progressToken: 'p' } })
  const cancelled = await a.until('tools/call')
  await progress
  pending.cancel()
  await a.until('notifications/cancelled')
  a.off('tools/call')
  a.on('tools/call', async () => {
    const { result } = await cancelled.ask('elicitation/create', {
      message: 'who?',
      requestedSchema: { type: 'object', properties: {} },
    })
    return { content: [{ type: 'text', text: JSON.stringify(result) }] }
  })
  expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({
    content: [{ text: '{"action":"accept","content":{}}' }],
  })
})
