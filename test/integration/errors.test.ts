/** What failures of a server look like to a host: kind, text and form (BRIDGING 7.2, 7.3; 8.14). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeDownstream, FakeKind, Handle } from '../support/fake-downstream.ts'
import { legacyHttp, legacyPipe, modernHttp, modernPipe, toolNames } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import { KEY, RpcError } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'

const HOSTS = [legacyHttp, modernHttp] as const
const SECOND_MS = 1_000
const HOUR_MS = 3_600_000

interface Wanted {
  readonly kind: string
  readonly text: string | RegExp
  readonly retryable?: boolean
  readonly executed?: 'no' | 'unknown'
}

/** B251: tools/call ends in `isError` with the text, other methods in -32603, both with the same facts; nothing foreign leaks (B258). */
const expectFailure = async (host: Host, wanted: Wanted): Promise<void> => {
  const facts = expect.objectContaining({
    downstream: 'a',
    kind: wanted.kind,
    ref: expect.any(String) as string,
    ...(wanted.retryable !== undefined && { retryable: wanted.retryable }),
    ...(wanted.executed !== undefined && { executed: wanted.executed }),
  }) as object
  const text = typeof wanted.text === 'string' ? wanted.text : (expect.stringMatching(wanted.text) as string)
  const result = await host.call('tools/call', { name: 'a__t' })
  expect(result).toMatchObject({ isError: true, content: [{ type: 'text', text }], _meta: { [KEY.gateway]: facts } })
  if (host.era === 'modern') expect(result['resultType']).toBe('complete')
  const error = await host.call('resources/read', { uri: 'a+file:///r' }).then(
    (read) => expect.fail(`was answered ${JSON.stringify(read)}`),
    (reason: RpcError) => reason,
  )
  expect(error).toMatchObject({ code: -32603, message: text, data: { [KEY.gateway]: facts } })
  if (error.status !== undefined) expect(error.status).toBe(200)
  expect(JSON.stringify([result, error.message, error.data])).not.toMatch(
    /127\.0\.0\.1|secret|node_modules|\/tmp|\/dev\/shm|at .*\.ts/,
  )
}

const serve = (kind: FakeKind, more: Partial<GatewaySetup> = {}): GatewaySetup => ({
  servers: { a: fake.of({ kind, tools: ['t'], resources: ['file:///r'] }), b: fake.offering('t') },
  ...more,
})
const both = (downstream: FakeDownstream, handle: Handle): void => {
  for (const method of ['tools/call', 'resources/read']) downstream.on(method, handle)
}

describe.concurrent.each(HOSTS)('to a host over $name', ({ connect }) => {
  describe.each(['legacy http', 'modern http'] as const)('a %s server', (kind) => {
    const status =
      (code: number, headers: Record<string, string> = {}, body = 'secret page'): Handle =>
      ({ response }) => {
        response?.writeHead(code, { 'content-type': 'text/html', ...headers }).end(body)
      }
    test.each<[string, Handle, Wanted]>([
      ['HTTP 400 without JSON-RPC', status(400), { kind: 'bad_response', text: 'A refused the request' }],
      ['HTTP 401', status(401, { 'www-authenticate': 'Bearer' }), { kind: 'auth_required', text: /^sign-in to A is needed/ }],
      [
        'HTTP 403 insufficient_scope',
        status(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="files:write"' }),
        { kind: 'scope_required', text: /^A needs more permission/ },
      ],
      ['HTTP 403', status(403), { kind: 'forbidden', text: 'A denied access' }],
      ['HTTP 405', status(405), { kind: 'not_found', text: 'A has no MCP endpoint at its address' }],
      ['HTTP 410', status(410), { kind: 'not_found', text: 'A has no MCP endpoint at its address' }],
      ['HTTP 406', status(406), { kind: 'bad_response', text: 'A refused the request' }],
      ['HTTP 415', status(415), { kind: 'bad_response', text: 'A refused the request' }],
      ['HTTP 422', status(422), { kind: 'bad_response', text: 'A refused the request' }],
      ['HTTP 413', status(413), { kind: 'too_large', text: 'the request is too large for A' }],
      ['HTTP 431', status(431), { kind: 'too_large', text: 'the request is too large for A' }],
      [
        'HTTP 429 with a long wait',
        status(429, { 'retry-after': '30' }),
        { kind: 'rate_limited', text: 'A is rate limiting; retry after 30 s', retryable: true, executed: 'no' },
      ],
      ['HTTP 500', status(500), { kind: 'downstream_error', text: 'A failed (HTTP 500)', retryable: false }],
      ['HTTP 502', status(502), { kind: 'downstream_error', text: 'A failed (HTTP 502)', retryable: true }],
      ['HTTP 503', status(503), { kind: 'downstream_error', text: 'A failed (HTTP 503)', retryable: true }],
      ['HTTP 504', status(504), { kind: 'downstream_error', text: 'A failed (HTTP 504)', retryable: true }],
      ['HTML instead of an answer', status(200), { kind: 'bad_response', text: 'A sent an unreadable answer' }],
      [
        'JSON that is none',
        status(200, { 'content-type': 'application/json' }, '{"jsonrpc"'),
        { kind: 'bad_response', text: 'A sent an unreadable answer' },
      ],
      [
        'a redirect elsewhere',
        status(302, { location: 'http://127.0.0.1:1/' }),
        { kind: 'bad_response', text: /^A (sent an unreadable answer|refused the request)$/ },
      ],
    ])('B251 B258 %s', async (_name, handle, wanted) => {
      await using gateway = await startGateway(serve(kind))
      await using host = await connect(gateway)
      both(gateway.fake('a'), handle)
      await expectFailure(host, wanted)
    })
    test('F-15 HTTP 429 with a wait of at most 5 s is tried once more', async () => {
      await using gateway = await startGateway(serve(kind))
      await using host = await connect(gateway)
      const a = gateway.fake('a')
      a.on('tools/call', (turn) => {
        if (a.all('tools/call').length > 1) return { content: [] }
        turn.response?.writeHead(429, { 'retry-after': '1' }).end()
        return undefined
      })
      expect(await host.call('tools/call', { name: 'a__t' })).toMatchObject({ content: [] })
      expect(a.all('tools/call')).toHaveLength(2)
    })
    test('F-15 and not twice', async () => {
      await using gateway = await startGateway(serve(kind))
      await using host = await connect(gateway)
      gateway.fake('a').on('tools/call', ({ response }) => void response?.writeHead(429, { 'retry-after': '0' }).end())
      expect(await host.call('tools/call', { name: 'a__t' })).toMatchObject({
        isError: true,
        _meta: { [KEY.gateway]: { kind: 'rate_limited' } },
      })
      expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
    })
    test('B251 a connection that breaks: the outcome is unknown, and nothing is sent twice (B231)', async () => {
      await using gateway = await startGateway(serve(kind))
      await using host = await connect(gateway)
      gateway.fake('a').on('tools/call', ({ response }) => void response?.destroy())
      expect(await host.call('tools/call', { name: 'a__t' })).toMatchObject({
        isError: true,
        content: [{ text: 'connection to A was lost; outcome unknown' }],
        _meta: { [KEY.gateway]: { kind: 'lost', executed: 'unknown' } },
      })
      expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
    })
    test('7.2 what is idempotent is sent once more when its connection breaks', async () => {
      await using gateway = await startGateway(serve(kind))
      await using host = await connect(gateway)
      const a = gateway.fake('a')
      a.on('resources/read', ({ response }) => {
        if (a.all('resources/read').length > 1) return { contents: [{ uri: 'file:///r', text: 'again' }] }
        response?.destroy()
        return undefined
      })
      expect(await host.call('resources/read', { uri: 'a+file:///r' })).toMatchObject({ contents: [{ text: 'again' }] })
    })
  })

  describe.each(['legacy http', 'legacy sse', 'legacy stdio', 'modern http', 'modern stdio'] as const)('a %s server', (kind) => {
    test('7.2 F-02 silence: the time-out is told with its seconds, the call is cancelled below', async () => {
      await using gateway = await startGateway(serve(kind, { options: { a: { timeouts: { idleMs: SECOND_MS } } } }))
      await using host = await connect(gateway)
      both(gateway.fake('a'), fake.never)
      const [, turn] = await Promise.all([
        expectFailure(host, {
          kind: 'timeout',
          text: 'A did not answer within 1 s; the action may still complete (timeouts.idle)',
        }),
        gateway.fake('a').until('tools/call'),
      ])
      if (kind === 'modern http') await turn.closed
      else expect((await gateway.fake('a').until('notifications/cancelled')).params['requestId']).toBe(turn.id)
    })
    test('B144 F-02 progress keeps a call alive, the maximum ends it all the same', async () => {
      // The error names the limit that ended the call; without progress it would be the first one.
      const timeouts = { idleMs: 1_600, totalMs: 2_000 }
      await using gateway = await startGateway(serve(kind, { options: { a: { timeouts } } }))
      await using host = await connect(gateway)
      gateway.fake('a').on('tools/call', (turn) => {
        let progress = 0
        const timer = setInterval(() => turn.progress(++progress), 200)
        void turn.connection.closed.then(() => clearInterval(timer))
        return undefined
      })
      const result = await host.call('tools/call', { name: 'a__t', _meta: { progressToken: 'p' } })
      expect(result).toMatchObject({
        isError: true,
        content: [{ text: 'A did not answer within 2 s; the action may still complete (timeouts.total)' }],
      })
    })
    test.each([
      ['neither result nor error', '{"jsonrpc":"2.0","id":ID}'],
      ['both', '{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}'],
      ['a result that is no object', '{"jsonrpc":"2.0","id":ID,"result":[1]}'],
      ['an error without an integer code', '{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":"secret"}}'],
    ])('7.2 an answer with %s is unreadable', async (_name, text) => {
      await using gateway = await startGateway(serve(kind))
      await using host = await connect(gateway)
      both(gateway.fake('a'), (turn) => turn.finish(text.replace('ID', String(turn.id))))
      await expectFailure(host, { kind: 'bad_response', text: 'A sent an unreadable answer' })
    })
    test('B257 an answer over the cap: the call fails, the server goes on', async () => {
      const limits = { maxMessageBytes: 1024 * 1024 }
      await using gateway = await startGateway(serve(kind, { options: { a: { limits } } }))
      await using host = await connect(gateway)
      const a = gateway.fake('a')
      both(a, () => ({ content: [{ type: 'text', text: 'x'.repeat(2 * 1024 * 1024) }] }))
      await expectFailure(host, { kind: 'too_large', text: /^the answer of A exceeds 1 MiB/ })
      a.off('tools/call')
      expect(await host.call('tools/call', { name: 'a__t' })).not.toHaveProperty('isError')
    })
    test('B143 answers to ids that nobody waits for are ignored', async () => {
      await using gateway = await startGateway(serve(kind))
      await using host = await connect(gateway)
      gateway.fake('a').on('tools/call', (turn) => {
        turn.say('{"jsonrpc":"2.0","id":99999,"result":{"content":[]}}')
        return { content: [{ type: 'text', text: 'mine' }] }
      })
      expect(await host.call('tools/call', { name: 'a__t' })).toMatchObject({ content: [{ text: 'mine' }] })
    })
  })

  describe.each(['legacy http', 'modern http'] as const)('a %s server', (kind) => {
    // The error names the limit that ended the call.
    test.each([
      ['application/json', '{"jsonrpc":', ' ', 'timeouts.total'],
      ['text/event-stream', 'data: ', ' ', 'timeouts.total'],
      ['text/event-stream', '', ': a comment\n', 'timeouts.idle'],
    ])('F-02 an answer as %s that begins with %j and goes on with %j is ended by %s', async (type, begins, goesOn, limit) => {
      const timeouts = { idleMs: 1_600, totalMs: 2_000 }
      await using gateway = await startGateway(serve(kind, { options: { a: { timeouts } } }))
      await using host = await connect(gateway)
      both(gateway.fake('a'), ({ response, closed }) => {
        response?.writeHead(200, { 'content-type': type }).write(begins)
        const timer = setInterval(() => response?.write(goesOn), 200)
        void closed.then(() => clearInterval(timer))
        return undefined
      })
      await expectFailure(host, { kind: 'timeout', text: new RegExp(`\\(${limit}\\)$`) })
    })
  })

  describe.each(['legacy stdio', 'modern stdio'] as const)('a %s server', (kind) => {
    test('B255 that exits answers every call in flight without waiting for its restart, and the others go on', async () => {
      await using gateway = await startGateway(serve(kind, { backoff: { firstMs: HOUR_MS, maxMs: HOUR_MS } }))
      await using host = await connect(gateway)
      const a = gateway.fake('a').on('tools/call', fake.never)
      const calls = [1, 2, 3].map((n) => host.call('tools/call', { name: 'a__t', arguments: { n } }))
      const turns = await a.journal.when(() => (a.all('tools/call').length === 3 ? a.all('tools/call') : undefined))
      for (const connection of new Set(turns.map(({ connection }) => connection))) connection.drop()
      for (const result of await Promise.all(calls))
        expect(result).toMatchObject({
          isError: true,
          content: [{ text: 'A stopped while working; the action may or may not have happened' }],
          _meta: { [KEY.gateway]: { kind: 'exited', executed: 'unknown' } },
        })
      expect(await host.call('tools/call', { name: 'b__t' })).not.toHaveProperty('isError')
    })
  })

  test('7.2 a command that is missing', async () => {
    await using gateway = await startGateway(
      serve('legacy stdio', {
        options: { a: { launch: { command: 'no-such-command-anywhere', args: [], env: { PATH: '/nowhere' }, cwd: '/' } } },
        stateDir: undefined,
      }),
    )
    await using host = await connect(gateway)
    expect(gateway.running.fleet.get('a')?.health$.value).toMatchObject({ state: 'failed', failure: { kind: 'spawn_failed' } })
    expect(await toolNames(host)).toEqual(['b__t'])
  })

  test('7.2 a server that is gone is not reachable', async () => {
    await using gateway = await startGateway(serve('modern http'))
    await using host = await connect(gateway)
    await gateway.fake('a')[Symbol.asyncDispose]()
    gateway.fake('a')[Symbol.asyncDispose] = () => Promise.resolve()
    await expectFailure(host, { kind: 'unreachable', text: 'A is not reachable', executed: 'no', retryable: true })
  })
})

describe.concurrent('7.3 errors of a server', () => {
  const own = async (hostRow: (typeof HOSTS)[number], code: number, data?: JsonMap, method = 'tools/call'): Promise<RpcError> => {
    await using gateway = await startGateway(serve('legacy stdio'))
    await using host = await hostRow.connect(gateway)
    both(gateway.fake('a'), (turn) => turn.fail(code, 'said so', data))
    gateway.fake('a').on('prompts/get', (turn) => turn.fail(code, 'said so', data))
    const params = method === 'resources/read' ? { uri: 'a+file:///r' } : { name: 'a__t' }
    const answer = await host.begin(method, params).response
    if (answer.error === undefined) return expect.fail(`was answered ${JSON.stringify(answer.result)}`)
    return new RpcError(answer.error)
  }
  test.each([-32602, -32603, -1, 7, 1234567, -31999, -32768])('%i reaches both eras as it is', async (code) => {
    for (const row of HOSTS)
      expect(await own(row, code, { any: [1] })).toMatchObject({ code, message: 'said so', data: { any: [1] } })
  })
  test.each([-32600, -32700])('B253 %i was our fault: -32603', async (code) => {
    for (const row of HOSTS) expect(await own(row, code, undefined, 'resources/read')).toMatchObject({ code: -32603 })
  })
  test.each(['tools/call', 'resources/read'])(
    'B253 -32601 in answer to %s: -32603 of kind protocol, HTTP 200',
    async (method) => {
      for (const row of HOSTS)
        expect(await own(row, -32601, undefined, method)).toMatchObject({
          code: -32603,
          data: { [KEY.gateway]: { kind: 'protocol' } },
        })
    },
  )
  test.each([-32020, -32022])('B252 %i: -32603', async (code) => {
    for (const row of HOSTS) expect(await own(row, code, undefined, 'resources/read')).toMatchObject({ code: -32603 })
  })
  const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
  test.each<[string, FakeKind, Handle, JsonMap]>([
    [
      'that a modern server requires',
      'modern http',
      (turn) => turn.fail(-32021, 'no', { requiredCapabilities: { roots: {}, own: { x: 1 } } }),
      { roots: {}, own: { x: 1 } },
    ],
    [
      'that a legacy server asked in vain for',
      'legacy http',
      async (turn) => {
        const { error } = await turn.ask('elicitation/create', FORM)
        return { content: [{ type: 'text', text: error?.message }], isError: true }
      },
      { elicitation: { form: {} } },
    ],
    [
      'that a URL to be visited needs',
      'legacy http',
      (turn) =>
        turn.fail(-32042, 'visit', {
          elicitations: [{ mode: 'url', url: 'https://a.example', elicitationId: 'e', message: 'm' }],
        }),
      { elicitation: { url: {} } },
    ],
  ])('B196 a capability %s is named in an object, with HTTP 400', async (_, kind, handle, requiredCapabilities) => {
    await using gateway = await startGateway(serve(kind))
    await using host = await modernHttp.connect(gateway)
    gateway.fake('a').on('tools/call', handle)
    await expect(host.call('tools/call', { name: 'a__t' })).rejects.toMatchObject({
      code: -32021,
      status: 400,
      data: { requiredCapabilities },
    })
  })
  test.each([undefined, {}, { requiredCapabilities: ['roots'] }, { requiredCapabilities: 'roots' }])(
    'B196 -32021 with %j is no answer that a host could use: -32603',
    async (data) => {
      expect(await own(modernHttp, -32021, data)).toMatchObject({ code: -32603, data: { [KEY.gateway]: { kind: 'protocol' } } })
    },
  )
  test.each([-32000, -32001, -32019])(
    'B254 %i: as it is to legacy hosts, -32603 with the original to modern ones',
    async (code) => {
      expect(await own(legacyHttp, code, { any: 1 })).toMatchObject({ code, data: { any: 1 } })
      expect(await own(modernHttp, code, { any: 1 })).toMatchObject({
        code: -32603,
        message: 'said so',
        data: { original: { code, message: 'said so', data: { any: 1 } } },
      })
    },
  )
  test.each([-32023, -32050, -32099])('B006 %i is undefined: -32603 with the original to everybody', async (code) => {
    for (const row of HOSTS) expect(await own(row, code)).toMatchObject({ code: -32603, data: { original: { code } } })
  })
  test('B007 B103 -32002 of a read: as it is to legacy hosts, -32602 to modern ones, with the exposed URI', async () => {
    const data = { uri: 'file:///r', more: 1 }
    expect(await own(legacyHttp, -32002, data, 'resources/read')).toMatchObject({
      code: -32002,
      data: { uri: 'a+file:///r', more: 1 },
    })
    expect(await own(modernHttp, -32002, data, 'resources/read')).toMatchObject({
      code: -32602,
      data: { uri: 'a+file:///r', more: 1 },
    })
    expect(await own(modernHttp, -32002, undefined, 'resources/read')).toMatchObject({
      code: -32602,
      data: { uri: 'a+file:///r' },
    })
  })
  test('B103 -32602 with a URI of a read is -32002 to a legacy host', async () => {
    const data = { uri: 'file:///r' }
    expect(await own(legacyHttp, -32602, data, 'resources/read')).toMatchObject({ code: -32002, data: { uri: 'a+file:///r' } })
    expect(await own(modernHttp, -32602, data, 'resources/read')).toMatchObject({ code: -32602, data: { uri: 'a+file:///r' } })
  })
  test('other errors of a read keep their code and their data: the URI of the read is not put in', async () => {
    for (const row of HOSTS) {
      const wrong = await own(row, -32602, { any: 1 }, 'resources/read')
      expect([wrong.code, wrong.data]).toEqual([-32602, { any: 1 }])
      const other = await own(row, -1, { uri: 'file:///other' }, 'resources/read')
      expect([other.code, other.data]).toEqual([-1, { uri: 'a+file:///other' }])
    }
  })
})

describe.concurrent('stdio', () => {
  const NOISE = ['starting up…', '{"level":"info"}', '[]', '\u001b[32mok\u001b[0m', '{"jsonrpc":"2.0"', '""']
  test.each(['legacy stdio', 'modern stdio'] as const)(
    'B227 F-05 a %s server that prints banners is served all the same',
    async (kind) => {
      await using gateway = await startGateway(serve(kind))
      await using host = await modernPipe.connect(gateway)
      gateway.fake('a').on('tools/call', (turn) => {
        for (const line of NOISE) turn.connection.say(line)
        turn.connection.stdout(Buffer.from([0xff, 0xfe, 0x0a]))
        turn.connection.stderr('Error: this is only talk\n')
        return { content: [] }
      })
      expect(await host.call('tools/call', { name: 'a__t' })).toMatchObject({ content: [] })
    },
  )
  test('F-05 a hundred garbage lines in ten seconds restart it', async () => {
    await using gateway = await startGateway(serve('modern stdio'))
    await using host = await legacyPipe.connect(gateway)
    const a = gateway.fake('a').on('tools/call', fake.never)
    const call = host.call('tools/call', { name: 'a__t' })
    const { connection } = await a.until('tools/call')
    for (let n = 0; n < 100; n++) connection.say(`garbage ${n}`)
    expect(await call).toMatchObject({ isError: true })
    await connection.closed
    a.off('tools/call')
    expect(await host.call('tools/call', { name: 'a__t' })).not.toHaveProperty('isError')
    expect(a.connections.at(-1)).not.toBe(connection)
  })
  test('B256 a server that floods or hangs costs the others nothing', async () => {
    await using gateway = await startGateway(serve('modern stdio'))
    await using host = await modernHttp.connect(gateway)
    const flood = new AbortController()
    const a = gateway.fake('a').on('tools/call', async (turn) => {
      for (let n = 0; !flood.signal.aborted; n++) {
        turn.progress(n, { message: 'x'.repeat(200) })
        if (n % 100 === 0) await new Promise(setImmediate)
      }
      return { content: [] }
    })
    const flooded = host.begin('tools/call', { name: 'a__t', _meta: { progressToken: 'p' } })
    await a.until('tools/call')
    for (let n = 0; n < 20; n++) await host.call('tools/call', { name: 'b__t' })
    flood.abort()
    flooded.cancel()
  })
})

test('B257 listen.limits.in_flight: over it a call is refused with 503 before it reaches a server, and the text names the option', async () => {
  await using gateway = await startGateway(serve('modern http', { hostLimits: { maxInFlight: 1 } }))
  await using host = await modernHttp.connect(gateway)
  gateway.fake('a').on('tools/call', fake.never)
  const first = host.begin('tools/call', { name: 'a__t' })
  await gateway.fake('a').until('tools/call')
  await expect(host.call('tools/call', { name: 'a__t' })).rejects.toMatchObject({
    code: -32603,
    status: 503,
    message: 'gateway is busy: listen.limits.in_flight (1) reached',
    data: { [KEY.gateway]: { kind: 'overloaded', executed: 'no', retryable: true, retryAfterMs: 1_000 } },
  })
  expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  first.cancel()
})
