/** Every limit is an option, says its name to whoever is refused, and is counted (RELIABILITY 7). */
import { mkdtemp, rm } from 'node:fs/promises'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import schema from '../../schema/v1.json' with { type: 'json' }
import { serverStatuses } from '../../src/admin/state/status.ts'
import { DEFAULT_PARKING } from '../../src/era/host/parking-options.ts'
import { DEFAULT_HOST_LIMITS } from '../../src/host/options.ts'
import { Session } from '../../src/host/session/session.ts'
import { Sessions } from '../../src/host/session/sessions.ts'
import { IdTable } from '../../src/wire/message/id-table.ts'
import { Overflow } from '../../src/gateway/limits/overflow.ts'
import { LimitCounts } from '../../src/rpc/limit-counts.ts'
import type { LimitCount } from '../../src/rpc/limit-counts.ts'
import { FakeDownstream, fake } from '../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, legacyPipe, legacySse, modernHttp, modernPipe } from '../support/fake-host.ts'
import type { Host, TransportRow } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { KEY, MODERN, request } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import { exchangeRaw } from '../support/fakes/raw-tcp.ts'
import type { Turn } from '../support/fakes/turn.ts'
import { overloaded } from '../support/overloaded.ts'
import { PER_USER } from '../support/credentials.ts'
import { asPrincipal, startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

/** What whoever meets the limit is told, or the log where nobody can be told; and what was counted. */
interface Met {
  readonly says: string
  readonly counts: readonly LimitCount[]
}
type Drive = () => Promise<Met>

const CALL = { name: 'a__t', arguments: {} }
const META = { [KEY.version]: MODERN, [KEY.capabilities]: {} }
const modernCall = (args: JsonMap = {}): string => request(1, 'tools/call', { name: 'a__t', arguments: args, _meta: META })
const MIRRORS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'a__t' }
const HEAD =
  'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n'

const server = (on: FakeSpec['on'] = {}, more: Partial<FakeSpec> = {}): FakeSpec =>
  fake.of({ kind: 'modern http', tools: ['t'], on, ...more })
const met = (says: unknown, { running }: TestGateway): Met => ({
  says: typeof says === 'string' ? says : JSON.stringify(says),
  counts: running.limits.all,
})
/** What the answer to a request says, whatever form it takes. */
const answer = (host: Host, method = 'tools/call', params: JsonMap = CALL): Promise<string> =>
  host.begin(method, params).response.then(
    (message) => JSON.stringify(message),
    (error: unknown) => String(error),
  )
/** A gateway and one host of it. */
const over =
  (setup: GatewaySetup, drive: (host: Host, gateway: TestGateway) => Promise<unknown>, row: TransportRow = modernHttp): Drive =>
  async () => {
    await using gateway = await startGateway(setup)
    await using host = await row.connect(gateway)
    return met(await drive(host, gateway), gateway)
  }
/** The same with bytes on a socket. */
const raw =
  (hostLimits: GatewaySetup['hostLimits'], text: string): Drive =>
  async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits })
    return met(await exchangeRaw(gateway.url, text), gateway)
  }
const posted =
  (hostLimits: GatewaySetup['hostLimits'], body: string, headers: Record<string, string> = MIRRORS): Drive =>
  async () => {
    await using gateway = await startGateway({ servers: { a: server() }, hostLimits })
    return met(await (await send(gateway.url, { body, headers })).body, gateway)
  }
/** What the log says of it, now or later. */
const logged = async ({ log }: TestGateway, option: string): Promise<string> =>
  (await log.until(({ text, facts }) => `${text} ${String(facts['error'])}`.includes(option))).text + option
const held: Handle = () => fake.never()
/** One call that is under way, then another. */
const second =
  (setup: Omit<GatewaySetup, 'servers'>, args: JsonMap = {}, row: TransportRow = modernHttp): Drive =>
  () =>
    over(
      { servers: { a: server({ 'tools/call': held }) }, ...setup },
      async (host, gateway) => {
        const first = host.begin('tools/call', { ...CALL, arguments: args })
        await gateway.fake('a').until('tools/call')
        const said = await answer(host)
        first.cancel()
        return said
      },
      row,
    )()
const asSomebody =
  (setup: GatewaySetup, drive: (host: Host, gateway: TestGateway) => Promise<unknown>, capabilities: JsonMap = {}): Drive =>
  async () => {
    await using gateway = await startGateway(setup)
    await using host = await modernPipe.connect(asPrincipal(gateway, 'somebody'), { capabilities })
    return met(await drive(host, gateway), gateway)
  }
const ONCE = { amount: 1, periodMs: 3_600_000, text: '1/h' }
const twice = async (host: Host): Promise<string> => {
  await answer(host)
  return answer(host)
}
const told = (setup: GatewaySetup): Drive => over(setup, async (_, { running }) => JSON.stringify(serverStatuses(running)))
const asksForInput: FakeSpec = fake.of({
  kind: 'legacy stdio',
  tools: ['t'],
  on: { 'tools/call': async (turn: Turn) => ({ content: [], said: await turn.ask('roots/list', {}) }) },
})
const parked = (more: Partial<typeof DEFAULT_PARKING>): GatewaySetup => ({
  servers: { a: asksForInput },
  gateway: { parking: { ...DEFAULT_PARKING, coalesceMs: 0, ...more } },
})
const listing = (more: Partial<FakeSpec>, limits: JsonMap): GatewaySetup => ({
  servers: { a: server({}, more) },
  options: { a: { limits } },
})
/** A session whose host listens to its stream but takes nothing, and a server that has much to say. */
const deaf =
  (hostLimits: GatewaySetup['hostLimits'], option: string): Drive =>
  async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'] }) }, hostLimits })
    await using host = await connectHttp(gateway, { deaf: true })
    await host.call('tools/call', CALL)
    const socket = connect(Number(gateway.url.port), '127.0.0.1')
    socket.on('error', () => undefined)
    const headers = Object.entries({ host: 'localhost', ...host.headers(), accept: 'text/event-stream' })
    socket.write(`GET /mcp HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`)
    await new Promise<void>((resolve) => socket.once('data', () => resolve()))
    socket.pause()
    const link = gateway.fake('a').connections.at(-1)
    const isMet = (): boolean => gateway.running.limits.all.some((each) => each.option === option)
    while (!isMet()) {
      link?.notify('notifications/message', { level: 'info', data: 'x'.repeat(100_000) })
      await new Promise((resolve) => setImmediate(resolve))
    }
    socket.destroy()
    return met(await logged(gateway, option), gateway)
  }
/** A stream of which an event is lost, and a host that comes back for it. */
const resumed =
  (hostLimits: GatewaySetup['hostLimits'], wait: (gateway: TestGateway) => boolean = () => true): Drive =>
  async () => {
    const chatty: Handle = (turn) => {
      for (let step = 1; step <= 4; step++) turn.notify('notifications/message', { level: 'info', data: 'x'.repeat(300) })
      return { content: [] }
    }
    await using gateway = await startGateway({
      servers: { a: server({ 'tools/call': chatty }, { kind: 'legacy http' }) },
      hostLimits,
    })
    await using host = await connectHttp(gateway, { deaf: true })
    await host.call('tools/call', CALL)
    while (!wait(gateway)) await new Promise((resolve) => setTimeout(resolve, 20))
    const headers = { ...host.headers(), accept: 'text/event-stream', 'last-event-id': 'zz-1' }
    return met(await (await send(gateway.url, { method: 'GET', headers })).body, gateway)
  }
const counted =
  (option: string) =>
  ({ running }: TestGateway): boolean =>
    running.limits.all.some((each) => each.option === option)
const deep = (depth: number): JsonMap => (depth === 0 ? {} : { x: deep(depth - 1) })

/** Connections that a request was answered on: idle ones give way to others. */
const usedSockets = (gateway: TestGateway, count: number): Promise<Socket[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(Number(gateway.url.port), '127.0.0.1')
      const body = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} })
      const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n`
      socket.on('error', () => undefined)
      socket.write(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
      await once(socket, 'data')
      return socket
    }),
  )
const crowded =
  (hostLimits: GatewaySetup['hostLimits']): Drive =>
  async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits })
    const sockets = await usedSockets(gateway, 2)
    const says = await exchangeRaw(gateway.url, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    for (const socket of sockets) socket.destroy()
    return met(says, gateway)
  }

/** Who reads the rest of a result that is kept no more. */
const gone = over({ servers: {} }, (host) => answer(host, 'resources/read', { uri: `gateway+result:///${'A'.repeat(22)}` }))

const DRIVES: Readonly<Record<string, Drive>> = {
  'listen.limits.max_body': posted({ maxBodyBytes: 100 }, modernCall({ x: 'y'.repeat(100) })),
  'listen.limits.max_header': raw(
    { maxHeaderBytes: 1_000 },
    `GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: ${'y'.repeat(2_000)}\r\n\r\n`,
  ),
  'listen.limits.header_lines': raw(
    { maxHeaderLines: 10 },
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${Array.from({ length: 10 }, (_, at) => `X${at}: 1\r\n`).join('')}\r\n`,
  ),
  'listen.limits.max_batch': async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits: { maxBatch: 1 } })
    await using host = await connectHttp(gateway, { revision: '2025-03-26', deaf: true })
    const reply = await send(gateway.url, { headers: host.headers(), body: `[${request(1, 'ping')},${request(2, 'ping')}]` })
    return met(await reply.body, gateway)
  },
  'listen.limits.max_depth': posted({ maxDepth: 10 }, modernCall(deep(20))),
  'listen.limits.max_values': posted({ maxValues: 20 }, modernCall({ x: Array.from({ length: 30 }, () => 1) })),
  'listen.limits.max_keys': posted(
    { maxKeysPerObject: 5 },
    modernCall(Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`k${at}`, 1]))),
  ),
  'listen.limits.connections': crowded({ maxConnections: 2 }),
  'listen.limits.connections_per_address': crowded({ maxConnectionsPerAddress: 2, maxConnectionsPerLoopback: 2 }),
  'listen.limits.sessions': async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits: { maxSessions: 1 } })
    await using _session = await legacyHttp.connect(gateway)
    await using _stream = await legacySse.connect(gateway)
    const body = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} })
    const says = await (await send(gateway.url, { body })).body
    const stream = await send(new URL('/sse', gateway.url), { method: 'GET', headers: { accept: 'text/event-stream' } })
    expect([stream.status, await stream.body]).toEqual([503, expect.stringContaining('listen.limits.sessions (1) reached')])
    return met(says, gateway)
  },
  'listen.limits.sessions_per_principal': async () => {
    const counts = new LimitCounts({ warn: () => undefined })
    const sessions = new Sessions(() => ({ ...DEFAULT_HOST_LIMITS, maxSessionsPerPrincipal: 1 }), counts)
    const introduction = { revision: '2025-11-25', capabilities: {}, clientInfo: undefined, hops: 0 } as const
    const one = (): Session =>
      new Session({
        introduction,
        principal: 'p',
        scope: { server: undefined },
        admission: { begin: () => undefined, end: () => -1 },
        transport: 'stdio',
      })
    sessions.add(one())
    const used = sessions.add(one())
    used.posts = new IdTable()
    used.posts.set(1, {} as never)
    let says = ''
    try {
      sessions.add(one())
    } catch (error) {
      says = String(error)
    }
    return { says, counts: counts.all }
  },
  'listen.limits.in_flight': second({ hostLimits: { maxInFlight: 1 } }),
  'limits.rate_per_principal': asSomebody(
    {
      servers: { a: server() },
      gateway: { rates: [{ option: 'limits.rate_per_principal', rate: ONCE, of: { kind: 'principal' } }] },
    },
    twice,
  ),
  'servers.limits.rate': asSomebody(
    {
      servers: { a: server() },
      gateway: { rates: [{ option: 'servers.a.limits.rate', rate: ONCE, of: { kind: 'server', server: 'a' } }] },
    },
    twice,
  ),
  'listen.limits.in_flight_per_principal': asSomebody(
    { servers: { a: server({ 'tools/call': held }) }, hostLimits: { maxInFlightPerPrincipal: 1 } },
    async (host, gateway) => {
      host.begin('tools/call', CALL)
      await gateway.fake('a').until('tools/call')
      return answer(host)
    },
  ),
  'listen.limits.in_flight_per_session': second({ hostLimits: { maxInFlightPerSession: 1 } }, {}, legacyHttp),
  'listen.limits.headers_timeout': raw({ headersTimeoutMs: 200 }, 'GET /mcp HTTP/1.1\r\nHost: local'),
  'listen.limits.request_timeout': raw(
    { headersTimeoutMs: 200, requestTimeoutMs: 400 },
    `${HEAD}Content-Length: 100\r\n\r\n{"jsonrpc"`,
  ),
  'listen.limits.unread_body': async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits: { maxBodyBytes: 1_000, maxUnreadBytes: 1_000_000 } })
    const text = `${HEAD}Content-Length: 90000000\r\n\r\n${'x'.repeat(20_000_000)}`
    await exchangeRaw(gateway.url, text)
    return met(await logged(gateway, 'listen.limits.unread_body'), gateway)
  },
  'listen.limits.session_idle': async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits: { sessionIdleMs: 200 } })
    await using host = await connectHttp(gateway, { deaf: true })
    while (gateway.running.front.sessionCount > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    return met(await (await send(gateway.url, { headers: host.headers(), body: request(2, 'ping') })).body, gateway)
  },
  'listen.limits.session_max': async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits: { sessionMaxMs: 200 } })
    await using host = await connectHttp(gateway, { deaf: true })
    while (gateway.running.front.sessionCount > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    return met(await (await send(gateway.url, { headers: host.headers(), body: request(2, 'ping') })).body, gateway)
  },
  'listen.limits.events': resumed({ maxEvents: 2 }),
  'listen.limits.event_bytes': resumed({ maxEventBytes: 500 }),
  'listen.limits.session_event_bytes': resumed({ maxSessionEventBytes: 500 }),
  'listen.limits.event_age': resumed({ maxEventAgeMs: 100 }, counted('listen.limits.event_age')),
  'listen.limits.event_log': resumed({ maxTotalEventBytes: 500 }),
  'listen.limits.write_stall': deaf({ writeStallMs: 200, maxQueuedBytes: 1e12 }, 'listen.limits.write_stall'),
  'listen.limits.max_queued': deaf({ maxQueuedBytes: 1_000 }, 'listen.limits.max_queued'),
  'listen.limits.loop_lag': over({ servers: { a: server() } }, async (host, { running }) => {
    const reason = 'the event loop is late (listen.limits.loop_lag, 200 ms)'
    overloaded(running.context.overload, { shedding: 2, reason, limit: 'listen.limits.loop_lag' })
    return answer(host)
  }),
  'limits.park_ttl': over(parked({ ttlMs: 100 }), async (_, gateway) => {
    await using host = await modernHttp.connect(gateway, { capabilities: { roots: {} } })
    await host.call('tools/call', CALL)
    return logged(gateway, 'limits.park_ttl')
  }),
  'limits.parked': over(parked({ maxParked: 0 }), async (_, gateway) => {
    await using host = await modernHttp.connect(gateway, { capabilities: { roots: {} } })
    return await answer(host)
  }),
  'limits.parked_per_principal': asSomebody(parked({ maxPerPrincipal: 0 }), (host) => answer(host), { roots: {} }),
  'limits.results': async () => {
    const { says } = await gone()
    const counts = new LimitCounts({ warn: () => undefined })
    new Overflow(() => ({ ttlMs: 1_000, maxBytes: 10 }), counts.hit).keep('p', 'x'.repeat(100), 10)
    return { says, counts: counts.all }
  },
  'limits.result_ttl': async () => {
    const { says } = await gone()
    const counts = new LimitCounts({ warn: () => undefined })
    let nowMs = 0
    const overflow = new Overflow(
      () => ({ ttlMs: 1_000, maxBytes: 1_000 }),
      counts.hit,
      () => nowMs,
    )
    overflow.keep('p', 'one', 10)
    nowMs += 1_000
    overflow.keep('p', 'two', 10)
    overflow.close()
    return { says, counts: counts.all }
  },
  'limits.in_flight_bytes': second({ hostLimits: { maxInFlightBytes: 1_000 } }, { x: 'y'.repeat(2_000) }),
  'limits.starts': async () => {
    const servers = Object.fromEntries(['a', 'b', 'c'].map((key) => [key, server({}, { kind: 'modern stdio' })]))
    await using gateway = await startGateway({ servers, gateway: { maxStarts: 1 } })
    return met('limits.starts', gateway)
  },
  'limits.retry_budget': over({ servers: { a: server() }, gateway: { retryPercent: 0 } }, async (host, gateway) => {
    gateway.fake('a').intercept = (_, response) => {
      response.writeHead(429, { 'retry-after': '0' }).end()
      return true
    }
    return answer(host)
  }),
  'limits.subscriptions': over(
    { servers: { a: server({}, { resources: ['x://1', 'x://2'] }) }, gateway: { maxSubscriptions: 1 } },
    async (host) => {
      await host.call('resources/subscribe', { uri: 'a+x://1' })
      return answer(host, 'resources/subscribe', { uri: 'a+x://2' })
    },
    legacyHttp,
  ),
  'limits.personal_catalogs': async () => {
    const setup = { servers: { a: server() }, options: { a: { credential: PER_USER } }, gateway: { maxPersonalCatalogs: 1 } }
    await using gateway = await startGateway(setup)
    for (const principal of ['ann', 'bob']) {
      await using host = await modernPipe.connect(asPrincipal(gateway, principal))
      await answer(host)
    }
    return met(await logged(gateway, 'limits.personal_catalogs'), gateway)
  },
  'servers.limits.concurrency': second({ options: { a: { limits: { maxConcurrent: 1, maxQueued: 0 } } } }),
  'servers.limits.queue': second({ options: { a: { limits: { maxConcurrent: 1, maxQueued: 0 } } } }),
  'servers.limits.links': async () => {
    const setup = {
      servers: { a: server({ 'tools/call': held }, { kind: 'legacy stdio' }) },
      options: { a: { limits: { maxLinks: 1, maxQueued: 0 } } },
    }
    await using gateway = await startGateway(setup)
    await using host = await modernHttp.connect(gateway, { capabilities: { roots: {} } })
    const first = host.begin('tools/call', CALL)
    await gateway.fake('a').until('tools/call')
    const said = await answer(host)
    first.cancel()
    return met(said, gateway)
  },
  'servers.limits.restarts': over(
    {
      servers: { a: server({ 'tools/call': (turn) => turn.connection.drop() }, { kind: 'legacy stdio' }) },
      options: { a: { limits: { maxRestarts: 1 } } },
    },
    async (host) => {
      await answer(host)
      return answer(host)
    },
    legacyPipe,
  ),
  'servers.limits.log_messages': over(
    {
      servers: {
        a: server(
          {
            'tools/call': (turn) => {
              for (let at = 0; at < 20; at++) turn.notify('notifications/message', { level: 'error', data: at })
              return { content: [] }
            },
          },
          { kind: 'legacy http' },
        ),
      },
      options: { a: { limits: { maxLogMessages: { amount: 5, periodMs: 3_600_000, text: '5/h' } } } },
    },
    async (host, gateway) => {
      const { response, messages } = host.begin('tools/call', CALL)
      await response
      // The first ones reach the host, in order.
      expect(messages.entries.map(({ params }) => params?.['data'])).toEqual([0, 1, 2, 3, 4])
      return logged(gateway, 'limits.log_messages')
    },
    legacyHttp,
  ),
  'servers.limits.stderr': over(
    { servers: { a: server({}, { kind: 'legacy stdio' }) }, options: { a: { limits: { maxStderrBytes: 300 } } } },
    async (_, gateway) => {
      gateway.fake('a').connections.at(-1)?.stderr('some words\n'.repeat(100))
      while (!counted('limits.stderr')(gateway)) await new Promise((resolve) => setTimeout(resolve, 20))
      expect(gateway.running.fleet.get('a')?.dialer.stderrTail(1_000).length).toBeLessThan(10)
      return 'limits.stderr'
    },
  ),
  'servers.limits.write_queue': over(
    {
      servers: { a: server({}, { kind: 'legacy stdio' }) },
      options: { a: { limits: { maxWriteQueueBytes: 100_000 } } },
    },
    async (host, gateway) => {
      await answer(host)
      const child = gateway.fake('a').connections.at(-1)
      if (child?.pid === undefined) throw new Error('the fake has no process')
      process.kill(child.pid, 'SIGSTOP')
      const args = { text: 'x'.repeat(600_000) }
      // The first one lies in the queue until the process goes on; the second one waits behind it.
      const first = answer(host, 'tools/call', { ...CALL, arguments: args })
      const second = answer(host, 'tools/call', { ...CALL, arguments: args })
      const says = await second
      process.kill(child.pid, 'SIGCONT')
      await first
      return says
    },
  ),
  'servers.limits.max_message': over(
    {
      servers: { a: server({ 'tools/call': () => ({ content: [{ type: 'text', text: 'x'.repeat(9_000) }] }) }) },
      options: { a: { limits: { maxMessageBytes: 4_000 } } },
    },
    (host) => answer(host),
  ),
  'servers.limits.tools': told(listing({ tools: ['a', 'b', 'c'] }, { maxTools: 2 })),
  'servers.limits.entries': told(listing({ prompts: ['a', 'b', 'c'] }, { maxEntries: 2 })),
  'servers.limits.pages': told({
    servers: {
      a: server({ 'tools/list': ({ id }) => ({ tools: [], nextCursor: String(id), ttlMs: 0, cacheScope: 'private' }) }),
    },
    options: { a: { limits: { maxPages: 2 } } },
  }),
  'servers.limits.max_text': told(
    listing({ tools: [{ name: 't', description: 'x'.repeat(99), inputSchema: { type: 'object' } }] }, { maxTextBytes: 50 }),
  ),
  'servers.limits.max_schema': told(listing({}, { maxSchemaBytes: 5 })),
  'servers.limits.max_schema_depth': told(
    listing({ tools: [{ name: 't', inputSchema: { type: 'object', properties: { a: {} } } }] }, { maxSchemaDepth: 2 }),
  ),
  'servers.timeouts.start': async () => {
    const setup = { servers: { a: server({ 'server/discover': held }, { kind: 'modern stdio' as const }) } }
    await using gateway = await startGateway({ ...setup, early: true, options: { a: { timeouts: { startMs: 200 } } } })
    return met(await logged(gateway, 'timeouts.start'), gateway)
  },
  'servers.timeouts.wait': async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'limits-'))
    await using a = await FakeDownstream.start(server())
    const setup: GatewaySetup = { servers: {}, fakes: new Map([['a', a]]), stateDir }
    try {
      await (await startGateway(setup))[Symbol.asyncDispose]()
      a.on('server/discover', held)
      await using gateway = await startGateway({ ...setup, options: { a: { timeouts: { connectTimeoutMs: 50 } } }, early: true })
      await using host = await modernHttp.connect(gateway)
      return met(await answer(host), gateway)
    } finally {
      await rm(stateDir, { recursive: true, force: true })
    }
  },
  'servers.timeouts.idle': over(
    { servers: { a: server({ 'tools/call': held }) }, options: { a: { timeouts: { idleMs: 200 } } } },
    (host) => answer(host),
  ),
  'servers.timeouts.total': over(
    { servers: { a: server({ 'tools/call': held }) }, options: { a: { timeouts: { totalMs: 200 } } } },
    (host) => answer(host),
  ),
}

/** Where the option that refuses is another one, or its name says which server. */
const COUNTED_AS: Readonly<Record<string, string>> = {
  'servers.limits.concurrency': 'limits.queue',
  'servers.limits.rate': 'servers.a.limits.rate',
}

/** Durations and sizes that shape an answer and refuse nobody. */
const NO_REFUSAL = new Set([
  'listen.limits.keep_alive',
  'listen.limits.sse_keep_alive',
  'servers.timeouts.probe',
  'servers.timeouts.ping',
  'servers.timeouts.grace',
])

interface Node {
  readonly properties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node
  readonly anyOf?: readonly Node[]
}
const members = (node: Node | undefined): Readonly<Record<string, Node>> =>
  node?.properties ?? node?.anyOf?.map(members).find((found) => Object.keys(found).length > 0) ?? {}
const optionsOf = (): string[] => {
  const { listen, limits, defaults } = members(schema as unknown as Node)
  const names = (prefix: string, node: Node | undefined): string[] =>
    Object.keys(members(node)).map((name) => `${prefix}.${name}`)
  return [
    ...names('listen.limits', members(listen)['limits']),
    ...names('limits', limits),
    ...names('servers.limits', members(defaults)['limits']),
    ...names('servers.timeouts', members(defaults)['timeouts']),
  ]
}

test('every limit of the schema is in this table', () => {
  const options = optionsOf().filter((option) => !NO_REFUSAL.has(option))
  expect(options.length).toBeGreaterThan(40)
  expect(Object.keys(DRIVES).sort()).toEqual(options.sort())
})

test.each(Object.entries(DRIVES))('%s names itself where it refuses, and is counted', async (option, drive) => {
  const { says, counts } = await drive()
  const name = option.replace(/^servers\./, '')
  expect(says).toContain(name.split('.').at(-1))
  expect(says).toMatch(/limits\.|timeouts\./)
  const about = counts.filter((each) => each.option === (COUNTED_AS[option] ?? name))
  const isOfServer = option.startsWith('servers.') && !about[0]?.option.startsWith('servers.')
  expect(about).toEqual([{ option: expect.any(String), server: isOfServer ? 'a' : about[0]?.server, count: expect.any(Number) }])
  expect(about[0]?.count).toBeGreaterThan(0)
})

describe('listen.limits.in_flight counts the calls of every way in', () => {
  test.each(everyTransport)('over $name', async ({ connect: meet }) => {
    await using gateway = await startGateway({ servers: { a: server({ 'tools/call': held }) }, hostLimits: { maxInFlight: 2 } })
    await using first = await meet(gateway)
    await using other = await modernPipe.connect(gateway)
    const a = gateway.fake('a')
    const pending = [first.begin('tools/call', CALL), other.begin('tools/call', CALL)]
    await a.journal.when(() => (a.all('tools/call').length === 2 ? true : undefined))
    expect(gateway.running.context.admission.inFlight).toBe(2)
    expect(await answer(other)).toContain('listen.limits.in_flight (2) reached')
    for (const call of pending) call.cancel()
    while (gateway.running.context.admission.inFlight > 0) await new Promise((resolve) => setImmediate(resolve))
    expect(gateway.running.context.bodies.held.bytes).toBe(0)
  })
})

test('a large answer for which there is no room ends as overloaded, small ones go on, and nothing stays counted', async () => {
  const big: Handle = ({ params }) => ({
    content: [{ type: 'text', text: 'x'.repeat((params['arguments'] as { size: number }).size) }],
  })
  await using gateway = await startGateway({
    servers: { a: server({ 'tools/call': big }) },
    hostLimits: { maxInFlightBytes: 100_000 },
  })
  await using host = await modernHttp.connect(gateway)
  const sized = (size: number): Promise<string> => answer(host, 'tools/call', { name: 'a__t', arguments: { size } })
  expect(await sized(300_000)).toContain('limits.in_flight_bytes (100000) reached')
  expect((await sized(90_000)).length).toBeGreaterThan(90_000)
  expect((await sized(10)).length).toBeLessThan(1_000)
  while (gateway.running.context.bodies.held.bytes > 0) await new Promise((resolve) => setImmediate(resolve))
  expect(gateway.running.context.admission.inFlight).toBe(0)
})
