/** Finding out the era of a server, and keeping it alive (BRIDGING 5.2, 5.3; 8.12). */
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { everyFakeKind, fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp, modernPipe } from '../support/fake-host.ts'
import { KEY, MODERN } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { PER_USER } from '../support/credentials.ts'
import { asPrincipal, startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const linkOf = (gateway: TestGateway): unknown => gateway.running.fleet.get('a')?.link
const healthOf = (gateway: TestGateway): unknown => gateway.running.fleet.get('a')?.health$.value
const methodOf = (body: string): string | undefined => (body === '' ? undefined : (JSON.parse(body) as Message).method)

describe('era detection', () => {
  test.each(everyFakeKind)('B211 a %s server is asked by server/discover first and recognized', async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) }, early: true })
    const bodies: string[] = []
    gateway.fake('a').intercept = (_request, _response, body) => (bodies.push(body), false)
    const { raw } = await gateway.fake('a').journal.until(() => true)
    const first = JSON.parse(bodies.find((body) => body !== '') ?? raw) as Message
    if (kind !== 'legacy sse')
      expect(first).toMatchObject({ method: 'server/discover', params: { _meta: { [KEY.version]: MODERN } } })
    await gateway.ready()
    const transport = { stdio: 'pipe', http: 'http', sse: 'sse' }[kind.split(' ')[1]!]
    expect(linkOf(gateway)).toMatchObject({ era: kind.split(' ')[0], transport })
  })

  type Answer = (response: ServerResponse) => void
  const status =
    (code: number, body = '', headers: Record<string, string> = { 'content-type': 'application/json' }): Answer =>
    (response) =>
      void response.writeHead(code, headers).end(body)
  const error = (code: number, httpStatus = 400): Answer =>
    status(httpStatus, `{"jsonrpc":"2.0","id":0,"error":{"code":${code},"message":"no"}}`)
  const answeringDiscover =
    (answer: Answer, times = Infinity) =>
    (_request: IncomingMessage, response: ServerResponse, body: string): boolean => {
      if (methodOf(body) !== 'server/discover' || times-- <= 0) return false
      answer(response)
      return true
    }

  test.each<[string, Answer]>([
    ['-32601', error(-32601, 200)],
    ['-32601 with 404', error(-32601, 404)],
    ['-32600', error(-32600)],
    ['-32602', error(-32602, 200)],
    ['-32000 with 400', error(-32000)],
    ['-32001', error(-32001, 404)],
    ['another code', error(-1)],
    ['an empty 400', status(400)],
    ['an HTML 404', status(404, '<html>', { 'content-type': 'text/html' })],
    ['405', status(405)],
    ['406', status(406)],
    ['415', status(415)],
    ['422', status(422)],
    [
      '-32022 with legacy versions only',
      status(400, '{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}}'),
    ],
    ['200 with something else', status(200, '{"jsonrpc":"2.0","id":0,"result":{}}')],
  ])('B212 B215 over HTTP %s means legacy', async (_name, answer) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) }, early: true })
    gateway.fake('a').intercept = answeringDiscover(answer)
    await gateway.ready()
    expect(linkOf(gateway)).toMatchObject({ era: 'legacy', transport: 'http' })
  })
  test.each<[string, Answer]>([
    ['-32020', error(-32020)],
    ['-32021 with 200', error(-32021, 200)],
    [
      '-32022 that names our version',
      status(400, `{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"no","data":{"supported":["${MODERN}"]}}}`),
    ],
  ])('B215 over HTTP %s means modern: asked once more', async (_name, answer) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) }, early: true })
    gateway.fake('a').intercept = answeringDiscover(answer, 1)
    await gateway.ready()
    expect(linkOf(gateway)).toMatchObject({ era: 'modern' })
  })
  test.each([401, 403, 408, 425, 429, 502, 503])('B214 HTTP %i says nothing about the era: asked again later', async (code) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) }, early: true })
    const seen: (string | undefined)[] = []
    let refusals = 2
    gateway.fake('a').intercept = (_request, response, body) => {
      seen.push(methodOf(body))
      if (methodOf(body) !== 'server/discover' || refusals-- <= 0) return false
      status(code)(response)
      return true
    }
    await gateway.log.until(({ text }) => text === 'server is ready')
    expect(linkOf(gateway)).toMatchObject({ era: 'modern' })
    expect(seen).not.toContain('initialize')
  })
  describe('5.2 a server over HTTP that breaks at the probe', () => {
    /** Fails at so many probes. */
    const failing = (
      times: number,
      answer: Answer,
    ): { readonly seen: string[]; readonly intercept: FakeDownstream['intercept'] } => {
      const seen: string[] = []
      const intercept = (_request: IncomingMessage, response: ServerResponse, body: string): boolean => {
        const method = methodOf(body)
        if (method === 'server/discover' || method === 'initialize') seen.push(method)
        if (method !== 'server/discover' || times-- <= 0) return false
        answer(response)
        return true
      }
      return { seen, intercept }
    }
    /** As mcp-golang 0.13 behind a supervisor: its process ends at a method that it does not know, and is started again. */
    const broken: Answer = (response) => void response.destroy()
    /** As stateless servers on the SDK of Java, and on Spring AI. */
    const confused = status(500, '{"cause":null}')
    test.each([
      ['breaks the connection twice in a row', broken, ['server/discover', 'server/discover', 'initialize', 'initialize']],
      ['answers 500', confused, ['server/discover', 'initialize', 'initialize']],
    ])('B214 one that %s is asked to initialize, and what was found out is remembered', async (_, answer, expected) => {
      const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
      await using downstream = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x'] }))
      const setup = { servers: {}, fakes: new Map([['a', downstream]]), stateDir, early: true }
      const { seen, intercept } = failing(Infinity, answer)
      downstream.intercept = intercept
      for (let start = 0; start < 2; start++) {
        await using gateway = await startGateway(setup)
        await gateway.log.until(({ text }) => text === 'server is ready')
        expect(linkOf(gateway)).toMatchObject({ era: 'legacy', transport: 'http' })
      }
      expect(seen).toEqual(expected)
      rmSync(stateDir, { recursive: true })
    })
    test.each([
      ['breaks the connection', 1, broken, ['server/discover', 'server/discover']],
      ['breaks the connection', 2, broken, ['server/discover', 'server/discover', 'initialize', 'server/discover']],
      ['answers 500', 1, confused, ['server/discover', 'initialize', 'server/discover']],
      ['answers 500', 2, confused, ['server/discover', 'initialize', 'server/discover', 'initialize', 'server/discover']],
    ])('B214 one that %s %i times and is modern is found to be modern', async (_, times, answer, asked) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) }, early: true })
      const { seen, intercept } = failing(times, answer)
      gateway.fake('a').intercept = intercept
      await gateway.log.until(({ text }) => text === 'server is ready')
      expect(linkOf(gateway)).toMatchObject({ era: 'modern' })
      expect(seen).toEqual(asked)
    })
    test('B214 one that answers everything with 500 is down because of that, and is not asked over HTTP+SSE', async () => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) }, early: true })
      const methods: (string | undefined)[] = []
      gateway.fake('a').intercept = ({ method }, response) => {
        methods.push(method)
        status(500)(response)
        return true
      }
      await gateway.ready()
      expect(healthOf(gateway)).toMatchObject({ state: 'down', failure: { facts: { status: 500 } } })
      expect(new Set(methods)).toEqual(new Set(['POST']))
    })
  })
  describe('5.2 a server that refuses members of capabilities that it does not know', () => {
    const declaredBy = (body: string): unknown => (JSON.parse(body) as { params: { capabilities: unknown } }).params.capabilities
    const PLAIN = { elicitation: {}, sampling: {}, roots: { listChanged: true } }
    const FULL = { ...PLAIN, elicitation: { form: {}, url: {} }, sampling: { tools: {} } }
    /** As stateless servers of Spring AI 1.1 do. */
    const strict = (declared: unknown[]) => (_request: IncomingMessage, response: ServerResponse, body: string) => {
      if (methodOf(body) !== 'initialize') return false
      const capabilities = declaredBy(body)
      declared.push(capabilities)
      if (JSON.stringify(capabilities) === JSON.stringify(PLAIN)) return false
      const { id } = JSON.parse(body) as { id: number }
      status(200, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32603,"message":"Unrecognized field"}}`)(response)
      return true
    }
    test.each([
      ['auto', [FULL, FULL, PLAIN]],
      ['legacy', [FULL, PLAIN]],
    ] as const)('3.22 is asked to initialize once more without them (era: %s)', async (era, expected) => {
      await using gateway = await startGateway({
        servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) },
        options: { a: { era } },
        early: true,
      })
      const declared: unknown[] = []
      gateway.fake('a').intercept = strict(declared)
      await gateway.log.until(({ text }) => text === 'server is ready')
      expect(linkOf(gateway)).toMatchObject({ era: 'legacy', transport: 'http' })
      expect(declared).toEqual(expected)
    })
  })
  test('5.3 the Retry-After of an answer to the probe is kept for the next attempt', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) }, early: true })
    gateway.fake('a').intercept = answeringDiscover(status(503, '', { 'retry-after': '17' }))
    await gateway.ready()
    expect(healthOf(gateway)).toMatchObject({ state: 'down', failure: { facts: { status: 503, retryAfterMs: 17_000 } } })
  })
  test('5.2 a server that redirects elsewhere is told with the request that it redirected, and nothing is sent there', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) },
      options: { a: { transport: 'auto' } },
      early: true,
    })
    // As behind a proxy that ends TLS: the server adds a slash, and thinks that it is asked in the clear.
    gateway.fake('a').intercept = (_request, response) => {
      status(307, '', { location: 'http://mcp.example/mcp/' })(response)
      return true
    }
    await gateway.ready()
    const refusal =
      'the server answered HTTP 307 to "http://mcp.example/mcp/": only 307 and 308 within the same origin are followed'
    expect(healthOf(gateway)).toMatchObject({
      reason: `no MCP endpoint: server/discover: ${refusal}; HTTP+SSE: ${refusal}`,
    })
  })
  test('no common version is an error and no reason to fall back', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) }, early: true })
    const body = '{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"no","data":{"supported":["2099-01-01"]}}}'
    gateway.fake('a').intercept = answeringDiscover(status(400, body))
    await gateway.ready()
    expect(healthOf(gateway)).toMatchObject({ state: 'failed', failure: { kind: 'version' } })
    expect(gateway.fake('a').all('initialize')).toEqual([])
  })
  test('B216 a server of the oldest transport is found behind 405', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy sse', tools: ['x'] }) },
      options: { a: { transport: 'auto' } },
    })
    expect(linkOf(gateway)).toMatchObject({ era: 'legacy', transport: 'sse' })
    await using host = await modernHttp.connect(gateway)
    expect(await host.call('tools/call', { name: 'a__x' })).toHaveProperty('content')
  })
  test('B216 a server of the oldest transport is found behind a JSON-RPC error', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy sse', tools: ['x'] }) },
      options: { a: { transport: 'auto' } },
      early: true,
    })
    gateway.fake('a').intercept = (request, response) => {
      if (request.method !== 'POST' || request.url !== '/mcp') return false
      error(-32000)(response)
      return true
    }
    await gateway.ready()
    expect(linkOf(gateway)).toMatchObject({ era: 'legacy', transport: 'sse' })
  })
  test('B216 a server of the oldest transport that opens an event stream for a POST, too, is found', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy sse', tools: ['x'] }) },
      options: { a: { transport: 'auto', timeouts: { startMs: 2_000 } } },
      early: true,
    })
    // As go-mcp of ThinkInAI: the handler of its SSE path does not look at the method.
    gateway.fake('a').intercept = (_request, response, body) => {
      if (methodOf(body) !== 'server/discover') return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: endpoint\ndata: /message?sessionID=1\n\n')
      return true
    }
    await gateway.ready()
    expect(linkOf(gateway)).toMatchObject({ era: 'legacy', transport: 'sse' })
  })
  test('B217 an endpoint of another origin is refused', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy sse', tools: ['x'] }) },
      backoff: { firstMs: 60_000, maxMs: 60_000 },
      early: true,
    })
    gateway.fake('a').intercept = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: endpoint\ndata: http://127.0.0.1:1/messages\n\n')
      return true
    }
    await gateway.log.until(({ text }) => text.includes('same origin') || text.includes('origin'))
    expect(gateway.fake('a').received).toEqual([])
  })
  test.each([-32601, -32600, -32602, -32000, -1, 5])(
    'B211 B212 over stdio any error (%i) means legacy, on the same pipe',
    async (code) => {
      await using gateway = await startGateway({
        servers: {
          a: fake.of({ kind: 'legacy stdio', tools: ['x'], on: { 'server/discover': (turn) => turn.fail(code, 'no') } }),
        },
      })
      expect(linkOf(gateway)).toMatchObject({ era: 'legacy' })
      expect(gateway.fake('a').connections).toHaveLength(1)
    },
  )
  test('B211 over stdio silence means: initialize, too, and whichever is answered first', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'], on: { 'server/discover': fake.never } }) },
      options: { a: { timeouts: { probeMs: 100 } } },
    })
    expect(linkOf(gateway)).toMatchObject({ era: 'legacy' })
    expect(gateway.fake('a').connections).toHaveLength(1)
  })
  test('B211 over stdio a server that answers server/discover late is started again, and addressed in the modern era only', async () => {
    await using downstream = await FakeDownstream.start(fake.of({ kind: 'modern stdio', tools: ['x'] }))
    const { promise: asked, resolve: initialize } = Promise.withResolvers<void>()
    downstream.on('server/discover', async () => {
      await asked
      return { supportedVersions: [MODERN], capabilities: { tools: {} } }
    })
    // It takes the handshake as well, so that its process is bound to the legacy era.
    downstream.on('initialize', async ({ params }) => {
      initialize()
      await downstream.journal.when(() => (downstream.connections.length > 1 ? true : undefined))
      return { protocolVersion: params['protocolVersion'], capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
    })
    await using gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', downstream]]),
      options: { a: { timeouts: { probeMs: 100 } } },
      early: true,
    })
    await downstream.until('tools/list')
    await gateway.ready()
    expect(linkOf(gateway)).toMatchObject({ era: 'modern' })
    expect(downstream.connections).toHaveLength(2)
  })
  test('B211 over stdio a process that ends at the question is not addressed in the legacy era where the configuration says modern', async () => {
    await using gateway = await startGateway({
      servers: {
        a: fake.of({ kind: 'legacy stdio', tools: ['x'], on: { 'server/discover': (turn) => turn.connection.drop() } }),
      },
      options: { a: { era: 'modern' } },
      early: true,
    })
    await gateway.log.until(({ level, facts }) => level === 'warn' && facts['kind'] === 'exited')
    expect(gateway.fake('a').all('server/discover')).not.toEqual([])
    expect(gateway.fake('a').all('initialize')).toEqual([])
  })
  test('5.2 over stdio a process that ends at the question is legacy: started again, initialize first, remembered (B213)', async () => {
    const exit = (turn: { connection: { drop(): void } }): void => turn.connection.drop()
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using downstream = await FakeDownstream.start(
      fake.of({ kind: 'legacy stdio', tools: ['x'], on: { 'server/discover': exit } }),
    )
    const setup = { servers: {}, fakes: new Map([['a', downstream]]), stateDir, early: true }
    {
      await using gateway = await startGateway(setup)
      await downstream.until('tools/list')
      await gateway.ready()
      expect(linkOf(gateway)).toMatchObject({ era: 'legacy' })
      expect(downstream.connections).toHaveLength(2)
    }
    {
      await using gateway = await startGateway(setup)
      await downstream.until('initialize')
      expect(downstream.all('server/discover')).toEqual([])
      await gateway.ready()
    }
    rmSync(stateDir, { recursive: true })
  })
  test.each(['legacy http', 'legacy stdio'] as const)(
    'B213 a day after a %s server was detected the next start detects it again, once, and links of hosts never do',
    async (kind) => {
      const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
      let probes = 0
      const onPipe: Handle = (turn) => {
        probes++
        turn.fail(-32601, 'Method not found')
      }
      await using downstream = await FakeDownstream.start(fake.of({ kind, tools: ['x'], on: { 'server/discover': onPipe } }))
      downstream.intercept = (_request, _response, body) => {
        if (methodOf(body) === 'server/discover') probes++
        return false
      }
      const setup = { servers: {}, fakes: new Map([['a', downstream]]), stateDir }
      const call = async (gateway: TestGateway): Promise<void> => {
        await using host = await legacyHttp.connect(gateway)
        await host.call('tools/call', { name: 'a__x' })
      }
      await using first = await startGateway(setup)
      const once = probes
      expect(once).toBeGreaterThan(0)
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 25 * 3_600_000 })
      await call(first)
      expect(probes).toBe(once)
      for (let start = 0; start < 2; start++) {
        await using gateway = await startGateway(setup)
        await call(gateway)
        expect(probes).toBe(2 * once)
      }
      rmSync(stateDir, { recursive: true })
    },
  )
  test.each(['legacy http', 'legacy stdio'] as const)(
    'B280 a %s server whose discover result offers legacy versions only is legacy',
    async (kind) => {
      const versions = ['2025-11-25', '2025-06-18', '2024-10-07']
      const on = { 'server/discover': () => ({ supportedVersions: versions, capabilities: {} }) }
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'], on }) }, early: true })
      // go-sdk answers this one request without a session.
      gateway.fake('a').intercept = (_request, response, body) => {
        if (methodOf(body) !== 'server/discover') return false
        status(
          200,
          JSON.stringify({ jsonrpc: '2.0', id: 0, result: { supportedVersions: versions, capabilities: {} } }),
        )(response)
        return true
      }
      await gateway.fake('a').until('tools/list')
      await gateway.ready()
      expect(linkOf(gateway)).toMatchObject({ era: 'legacy', revision: '2025-11-25' })
      expect(gateway.fake('a').connections).toHaveLength(1)
    },
  )
  describe('a program that initializes itself at the first message', () => {
    /** It refuses a second `initialize` of its own, in a way of its own. */
    const spoiled = (refuse: Handle): FakeSpec => {
      const first = new Map<unknown, string | undefined>()
      const see = ({ connection, message }: Turn): void => {
        if (!first.has(connection)) first.set(connection, message.method)
      }
      return fake.of({
        kind: 'legacy stdio',
        tools: ['x'],
        on: {
          'server/discover': (turn) => {
            see(turn)
            turn.fail(-32601, 'Method not found')
          },
          initialize: (turn) => {
            see(turn)
            if (first.get(turn.connection) !== 'initialize') return refuse(turn)
            return { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'f', version: '1' } }
          },
        },
      })
    }
    test.each<[string, Handle]>([
      ['an error', (turn) => turn.fail(-32600, 'Server already initialized')],
      ['its exit', (turn) => turn.connection.drop()],
      ['no answer', fake.never],
    ])('B294 is started once more, initialize first, after %s; what was found out is remembered', async (_name, refuse) => {
      const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
      await using downstream = await FakeDownstream.start(spoiled(refuse))
      const setup = {
        servers: {},
        fakes: new Map([['a', downstream]]),
        stateDir,
        early: true,
        options: { a: { timeouts: { startMs: 2_000 } } },
      }
      {
        await using gateway = await startGateway(setup)
        await downstream.until('tools/list')
        await gateway.ready()
        expect(linkOf(gateway)).toMatchObject({ era: 'legacy', revision: '2025-06-18' })
        expect(downstream.connections).toHaveLength(2)
        expect(gateway.log.entries.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
      }
      downstream.forget()
      {
        await using gateway = await startGateway(setup)
        await downstream.until('initialize')
        expect(downstream.all('server/discover')).toEqual([])
        await gateway.ready()
      }
      rmSync(stateDir, { recursive: true })
    })
    test('B294 and is not started a third time in one attempt', async () => {
      const always = fake.of({
        kind: 'legacy stdio',
        tools: ['x'],
        on: { initialize: (turn) => turn.fail(-32600, 'never') },
      })
      await using gateway = await startGateway({
        servers: { a: always },
        backoff: { firstMs: 60_000, maxMs: 60_000 },
        early: true,
      })
      await gateway.log.until(({ level }) => level === 'warn')
      expect(gateway.fake('a').all('initialize')).toHaveLength(2)
      expect(gateway.fake('a').all('server/discover')).toHaveLength(1)
    })
    test('B294 over HTTP it is asked to initialize once more in a session of its own', async () => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) }, early: true })
      let refusals = 1
      gateway.fake('a').intercept = (_request, response, body) => {
        if (methodOf(body) !== 'initialize' || refusals-- <= 0) return false
        error(-32600)(response)
        return true
      }
      await gateway.fake('a').until('tools/list')
      await gateway.ready()
      expect(linkOf(gateway)).toMatchObject({ era: 'legacy', transport: 'http' })
    })
  })
  test.each(['legacy http', 'legacy sse', 'legacy stdio'] as const)(
    '5.2 a %s server may answer any legacy version and no other',
    async (kind) => {
      await using old = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'], revision: '2024-11-05' }) } })
      expect(linkOf(old)).toMatchObject({ revision: '2024-11-05' })
      await using strange = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'], revision: '2023-01-01' }) } })
      expect(healthOf(strange)).toMatchObject({ state: 'failed', failure: { kind: 'version' } })
      // It has answered: no other process would answer otherwise (B294).
      if (kind === 'legacy stdio') expect(strange.fake('a').connections).toHaveLength(1)
    },
  )
})

describe('headers to a server', () => {
  test('B218 a legacy server gets both types accepted, its session, and the version once it is agreed', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy http', tools: ['x'], revision: '2025-06-18' }) },
      early: true,
    })
    const a = gateway.fake('a')
    const [opening, later] = [await a.until('initialize'), await a.until('tools/list')]
    expect(opening.headers['mcp-session-id']).toBeUndefined()
    expect(opening.headers['mcp-protocol-version']).toBeUndefined()
    expect(later.headers).toMatchObject({
      'mcp-protocol-version': '2025-06-18',
      'mcp-session-id': expect.stringMatching(/^fake-session/) as string,
    })
    for (const { headers } of [opening, later]) {
      expect(headers.accept).toContain('application/json')
      expect(headers.accept).toContain('text/event-stream')
      expect(headers['content-type']).toBe('application/json')
    }
  })
  test('B218 a server of HTTP+SSE gets the version once it is agreed, too', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'legacy sse', tools: ['x'], revision: '2025-06-18' }) },
      early: true,
    })
    const a = gateway.fake('a')
    const [opening, later] = [await a.until('initialize'), await a.until('tools/list')]
    expect(opening.headers['mcp-protocol-version']).toBeUndefined()
    expect(later.headers['mcp-protocol-version']).toBe('2025-06-18')
  })
  test('B218 a modern server gets the version with notifications and answers as well', async () => {
    const server = fake.of({
      kind: 'modern http',
      tools: ['x'],
      on: { 'tools/call': async (turn) => (await turn.ask('ping'), { content: [] }) },
    })
    await using gateway = await startGateway({ servers: { a: server, b: fake.offering('y') } })
    await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
    host.notify('notifications/com.example/hello')
    const told = await gateway.fake('a').until('notifications/com.example/hello')
    await host.call('tools/call', { name: 'x' })
    const answer = await gateway.fake('a').journal.until(({ message }) => message.method === undefined)
    expect([told, answer].map(({ headers }) => headers['mcp-protocol-version'])).toEqual([MODERN, MODERN])
  })
  test('5.3 a stream of a modern server that ends without the answer is not resumed: the era has no such thing', async () => {
    const server = fake.of({
      kind: 'modern http',
      tools: ['x'],
      on: {
        'tools/call': ({ response }) => {
          response?.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 7\ndata:\n\n')
          return undefined
        },
      },
    })
    await using gateway = await startGateway({ servers: { a: server } })
    await using host = await legacyHttp.connect(gateway)
    const methods: unknown[] = []
    gateway.fake('a').intercept = ({ method }) => (methods.push(method), false)
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({
      isError: true,
      _meta: { 'dev.trunkline/gateway': { kind: 'lost', executed: 'unknown' } },
    })
    expect(methods).not.toContain('GET')
  })
  test('B219 a modern server gets what mirrors the final body, encoded', async () => {
    const tool = {
      name: 'wörk',
      inputSchema: {
        type: 'object',
        properties: {
          region: { type: 'string', 'x-mcp-header': 'Region' },
          count: { type: 'integer', 'x-mcp-header': 'Count' },
          dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
          gone: { type: 'string', 'x-mcp-header': 'Gone' },
        },
      },
    }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: [tool], resources: ['file:///r'] }) },
    })
    await using host = await legacyHttp.connect(gateway)
    const { name } = ((await host.call('tools/list'))['tools'] as JsonMap[])[0]!
    await host.call('tools/call', { name, arguments: { region: 'München', count: 42, dry: false, gone: null } })
    const { headers } = await gateway.fake('a').until('tools/call')
    expect(headers).toMatchObject({
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': `=?base64?${Buffer.from('wörk').toString('base64')}?=`,
      'mcp-param-region': `=?base64?${Buffer.from('München').toString('base64')}?=`,
      'mcp-param-count': '42',
      'mcp-param-dry': 'false',
    })
    expect(headers).not.toHaveProperty('mcp-param-gone')
    await host.call('resources/read', { uri: 'a+file:///r' })
    expect((await gateway.fake('a').until('resources/read')).headers).toMatchObject({
      'mcp-name': 'file:///r',
      'mcp-method': 'resources/read',
    })
  })
  test('B219 Mcp-Param-* are computed after exposed URIs got their originals back', async () => {
    const tool = { name: 't', inputSchema: { type: 'object', properties: { file: { type: 'string', 'x-mcp-header': 'File' } } } }
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', tools: [tool], resources: ['file:///r'] }) },
    })
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__t', arguments: { file: 'a+file:///r' } })
    expect((await gateway.fake('a').until('tools/call')).headers['mcp-param-file']).toBe('file:///r')
  })
  test.each(['legacy http', 'modern http'] as const)(
    '5.4 nothing of the host reaches a %s server, but unknown Mcp-Param-* a modern one',
    async (kind) => {
      await using gateway = await startGateway({
        servers: { a: fake.of({ kind, tools: ['x'] }) },
        options: { a: { headers: { 'X-Own': 'set' } } },
      })
      await using host = await modernHttp.connect(gateway)
      const headers = {
        authorization: 'Bearer secret',
        cookie: 'a=1',
        forwarded: 'for=1.2.3.4',
        'x-forwarded-for': '1.2.3.4',
        'mcp-session-id': 'host',
        'last-event-id': '1-1',
        'mcp-param-new': 'kept',
        'x-any': '1',
      }
      await host.call('tools/call', { name: 'a__x' }, { headers })
      const sent = (await gateway.fake('a').until('tools/call')).headers
      expect(sent['x-own']).toBe('set')
      const leaked = Object.keys(headers).filter((name) => name in sent && sent[name] === headers[name as keyof typeof headers])
      expect(leaked).toEqual(kind === 'modern http' ? ['mcp-param-new'] : [])
    },
  )
  test('B221 -32020 to a call: the tools are read again and the call is sent once more with the new headers', async () => {
    const tool = (header: string): JsonMap => ({
      name: 't',
      inputSchema: { type: 'object', properties: { p: { type: 'string', 'x-mcp-header': header } } },
    })
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: [tool('Old')] }) } })
    await using host = await legacyHttp.connect(gateway)
    const a = gateway.fake('a')
    a.offers.tools[0] = tool('New')
    a.on('tools/call', (turn) => {
      if (turn.headers['mcp-param-new'] === 'v') return { content: [] }
      turn.response?.writeHead(400, { 'content-type': 'application/json' })
      turn.response?.end(`{"jsonrpc":"2.0","id":${turn.id},"error":{"code":-32020,"message":"Header mismatch"}}`)
      return undefined
    })
    expect(await host.call('tools/call', { name: 'a__t', arguments: { p: 'v' } })).toEqual({ content: [] })
    expect(a.all('tools/call')).toHaveLength(2)
    a.on('tools/call', (turn) => turn.fail(-32020, 'Header mismatch'))
    await expect(host.call('tools/call', { name: 'a__t', arguments: { p: 'v' } })).rejects.toMatchObject({ code: -32603 })
    expect(a.all('tools/call')).toHaveLength(4)
  })
})

describe('a server that was lost', () => {
  test.each<[string, number, string, 'legacy http' | 'legacy sse']>([
    ['HTTP+SSE', 404, 'Could not find session', 'legacy sse'],
    ['Streamable HTTP', 400, 'Bad Request: No valid session ID provided', 'legacy http'],
  ])(
    'B222 a session of %s that the server answers with %i and a text is renewed, and the call sent again',
    async (_name, code, text, kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
      await using host = await legacyHttp.connect(gateway)
      await host.call('tools/call', { name: 'a__x' })
      let refusals = 1
      gateway.fake('a').intercept = (_request, response, body) => {
        if (methodOf(body) !== 'tools/call' || refusals-- <= 0) return false
        response.writeHead(code).end(text)
        return true
      }
      expect(await host.call('tools/call', { name: 'a__x' })).toHaveProperty('content')
      const [before, after] = gateway.fake('a').all('tools/call')
      expect(after!.connection).not.toBe(before!.connection)
    },
  )
  test('B222 404 with a session: initialized anew without it, the call sent again', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) } })
    await using host = await legacyHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__x' })
    const a = gateway.fake('a')
    for (const connection of a.connections) connection.drop()
    a.forget()
    expect(await host.call('tools/call', { name: 'a__x', arguments: { n: 2 } })).toMatchObject({ content: [{ text: '{"n":2}' }] })
    const opening = await a.until('initialize')
    expect(opening.headers['mcp-session-id']).toBeUndefined()
    expect(a.all('tools/call')).toHaveLength(1)
  })
  test.each(['legacy http', 'legacy sse', 'legacy stdio', 'modern stdio'] as const)(
    'B042 B230 a %s server that goes away stays listed, comes back and is used again',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
      await using host = await modernHttp.connect(gateway)
      const a = gateway.fake('a')
      const before = a.connections.length
      for (const connection of a.connections) connection.drop()
      expect((await host.call('tools/list'))['tools']).toHaveLength(1)
      await a.until('tools/list')
      await gateway.ready()
      expect(await host.call('tools/call', { name: 'a__x' })).not.toHaveProperty('isError')
      expect(a.connections.length).toBeGreaterThan(before)
    },
  )
  test.each(['legacy stdio', 'modern stdio'] as const)(
    'B127 B134 after a restart a %s server is watched again, and subscribers are told to read',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, resources: ['file:///r'] }) } })
      await using host = await legacyHttp.connect(gateway)
      await host.call('resources/subscribe', { uri: 'a+file:///r' })
      const a = gateway.fake('a')
      const watching = kind === 'legacy stdio' ? 'resources/subscribe' : 'subscriptions/listen'
      a.forget()
      for (const connection of a.connections) connection.drop()
      await a.until(watching, ({ raw }) => raw.includes('file:///r'))
      const update = await host.heard.until(({ method }) => method === 'notifications/resources/updated')
      expect(update.params).toEqual({ uri: 'a+file:///r' })
    },
  )
  test('B127 a listen stream that breaks is opened again', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['x'] }) } })
    const a = gateway.fake('a')
    await a.journal.when(() => (a.listens.length > 0 ? true : undefined)).catch(() => undefined)
    for (const turn of a.listens) turn.response?.destroy()
    await a.until('subscriptions/listen')
    a.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
    await using host = await legacyHttp.connect(gateway)
    await a.journal.when(() => (a.listens.length > 0 ? true : undefined))
    a.changed('tools')
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect((await host.call('tools/list'))['tools']).toHaveLength(2)
  })
  test('B127 B134 a listen stream for resources that breaks is opened again, and every subscriber is told to read once', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', resources: ['file:///r'] }) } })
    await using legacy = await legacyHttp.connect(gateway)
    await using modern = await modernHttp.connect(gateway)
    const uri = 'a+file:///r'
    await legacy.call('resources/subscribe', { uri })
    const { messages } = modern.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
    await messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    const a = gateway.fake('a')
    const isOfResource = ({ raw }: { raw: string }): boolean => raw.includes('file:///r')
    a.forget()
    for (const turn of a.listens.filter(isOfResource)) turn.response?.destroy()
    await a.until('subscriptions/listen', isOfResource)
    const updates = [legacy.heard, messages].map((heard) =>
      heard.until(({ method }) => method === 'notifications/resources/updated'),
    )
    expect((await Promise.all(updates)).map(({ params }) => params?.['uri'])).toEqual([uri, uri])
    legacy.heard.clear()
    a.updated('file:///r')
    await legacy.heard.until(({ method }) => method === 'notifications/resources/updated')
  })
  test.each(['legacy http', 'modern http'] as const)(
    'B134 subscriptions go over to a %s server that was started anew on purpose, and end there',
    async (kind) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, resources: ['file:///r'] }) } })
      await using host = await legacyHttp.connect(gateway)
      const uri = 'a+file:///r'
      await host.call('resources/subscribe', { uri })
      const a = gateway.fake('a')
      a.forget()
      gateway.running.fleet.restart('a', 0)
      await host.heard.until(({ method }) => method === 'notifications/resources/updated')
      await a.until(kind === 'legacy http' ? 'resources/subscribe' : 'subscriptions/listen', ({ raw }) =>
        raw.includes('file:///r'),
      )
      const listening = a.listens.find(({ raw }) => raw.includes('file:///r'))
      await host.call('resources/unsubscribe', { uri })
      if (listening === undefined) await a.until('resources/unsubscribe')
      else await listening.closed
    },
  )
  test.each(['legacy http', 'modern http'] as const)(
    'B134 B250 subscriptions of one caller go over to a %s server with a sign-in per caller that was started anew on purpose',
    async (kind) => {
      await using gateway = await startGateway({
        servers: { a: fake.of({ kind, resources: ['file:///r'] }) },
        options: { a: { credential: PER_USER } },
      })
      await using host = await modernPipe.connect(asPrincipal(gateway, 'ann'))
      const uri = 'a+file:///r'
      await host.call('resources/list')
      host.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
      await host.heard.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
      const a = gateway.fake('a')
      a.forget()
      gateway.running.fleet.restart('a', 0)
      await host.heard.until(({ method }) => method === 'notifications/resources/updated')
      host.heard.clear()
      a.updated('file:///r')
      const { params } = await host.heard.until(({ method }) => method === 'notifications/resources/updated')
      expect(params).toMatchObject({ uri })
    },
  )
  test('a server that cannot be asked now: a legacy host is told so, a modern one is watching once it is back', async () => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind: 'modern http', resources: ['file:///r'] }) },
      options: { a: { timeouts: { graceMs: 0 } } },
    })
    const a = gateway.fake('a')
    await using legacy = await legacyHttp.connect(gateway)
    await using modern = await modernHttp.connect(gateway)
    const uri = 'a+file:///r'
    const [downstream] = gateway.running.fleet.downstreams$.value
    let isAway = true
    a.intercept = (_, response) => {
      if (isAway) response.writeHead(503).end()
      return isAway
    }
    const gone = new Promise<void>((resolve) => {
      downstream!.health$.subscribe(({ state }) => state === 'down' && resolve())
    })
    await downstream!.link?.close()
    await gone
    await expect(legacy.call('resources/subscribe', { uri })).rejects.toMatchObject({ code: -32603 })
    const { messages } = modern.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
    await messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    isAway = false
    downstream!.retryNow()
    await messages.until(({ method }) => method === 'notifications/resources/updated')
    a.updated('file:///r')
    await messages.when(() => messages.entries.filter(({ method }) => method?.endsWith('/updated')).at(1))
    expect(legacy.heard.entries.filter(({ method }) => method?.endsWith('/updated'))).toEqual([])
  })
  test('B223 B224 B225 a stream that breaks is resumed by GET with Last-Event-ID, after the retry time', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) } })
    await using host = await legacyHttp.connect(gateway)
    const a = gateway.fake('a')
    let broken: { id: string | number } | undefined
    a.on('tools/call', (turn) => {
      broken = turn
      turn.response?.writeHead(200, { 'content-type': 'text/event-stream' })
      turn.response?.write(': hello\n\nid: e-1\nretry: 50\ndata:\n\n')
      turn.response?.end()
    })
    a.intercept = (request, response) => {
      if (request.headers['last-event-id'] !== 'e-1') return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`: again\n\nid: e-2\ndata: {"jsonrpc":"2.0","id":${broken?.id},"result":{"content":[]}}\n\n`)
      return true
    }
    expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [] })
    expect(a.all('tools/call')).toHaveLength(1)
  })
  test('B041 a stored catalogue is served at once at the next start, the difference is announced', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using downstream = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x'] }))
    const setup = { servers: {}, fakes: new Map([['a', downstream]]), stateDir }
    await (await startGateway(setup))[Symbol.asyncDispose]()
    const { promise: later, resolve: release } = Promise.withResolvers<void>()
    const answer = { protocolVersion: '2025-11-25', capabilities: { tools: {} } }
    downstream.on('initialize', async () => (await later, answer))
    {
      await using gateway = await startGateway({ ...setup, early: true })
      await using host = await legacyHttp.connect(gateway)
      expect((await host.call('tools/list'))['tools']).toHaveLength(1)
      downstream.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
      release()
      await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
      expect((await host.call('tools/list'))['tools']).toHaveLength(2)
    }
    rmSync(stateDir, { recursive: true })
  })
  test('B226 nothing but one line per message is ever written to a child', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['x'] }) } })
    await using host = await modernHttp.connect(gateway)
    const pretty = JSON.stringify(
      { name: 'a__x', arguments: { text: 'two\nlines', nested: [1] }, _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {} } },
      null,
      2,
    )
    const pending = host.sendRaw(`{"jsonrpc":"2.0","id":"p","method":"tools/call","params":${pretty}}`, 'p')
    expect((await pending.response).result).toHaveProperty('content')
    const { raw, params } = await gateway.fake('a').until('tools/call')
    expect(raw).not.toMatch(/[\r\n]/)
    expect(params['arguments']).toEqual({ text: 'two\nlines', nested: [1] })
  })
})
