/** What a hostile server, or one host beside another, cannot do (RELIABILITY 3). */
import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { everyFakeKind, fake } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp, toolNames } from '../../support/fake-host.ts'
import { connectHttp } from '../../support/fakes/http-hosts.ts'
import { request } from '../../support/fakes/messages.ts'
import type { Turn } from '../../support/fakes/turn.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { listening } from '../../support/listening.ts'

const textOf = (result: JsonMap): unknown => (result['content'] as JsonMap[])[0]?.['text']
const linesOf = (gateway: TestGateway, pattern: RegExp) => gateway.log.entries.filter(({ text }) => pattern.test(text))

describe('T-19 answers under ids that were not given', () => {
  test('of 10,000 guessed ids none reaches another call', async () => {
    await using gateway = await startGateway({
      servers: { good: fake.of({ kind: 'legacy stdio', tools: ['x'] }), evil: fake.of({ kind: 'legacy stdio', tools: ['x'] }) },
    })
    await using host = await legacyHttp.connect(gateway)
    gateway.fake('good').on('tools/call', fake.never)
    gateway.fake('evil').on('tools/call', fake.never)
    const waiting = Array.from({ length: 20 }, (_, at) => host.begin('tools/call', { name: 'good__x', arguments: { at } }))
    const bait = host.begin('tools/call', { name: 'evil__x' })
    const turn = await gateway.fake('evil').until('tools/call')
    await gateway.fake('good').journal.when(() => gateway.fake('good').all('tools/call')[19])
    const forged = (id: number) => JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'forged' }] } })
    for (let id = 10_000; id >= 0; id--) if (id !== turn.id) turn.connection.say(forged(id))
    await turn.connection.closed
    expect((await bait.response).result).toMatchObject({ isError: true })
    for (const { id, answer } of gateway
      .fake('good')
      .all('tools/call')
      .map((good) => ({ id: good.id, answer: good })))
      answer.answer({ content: [{ type: 'text', text: `true ${id}` }] })
    for (const pending of waiting) expect(textOf((await pending.response).result ?? {})).toMatch(/^true \d+$/)
  })
  test('progress under a token of nobody, and of another, is dropped', async () => {
    await using gateway = await startGateway({ servers: { evil: fake.of({ kind: 'legacy stdio', tools: ['x', 'y'] }) } })
    await using host = await legacyHttp.connect(gateway)
    gateway.fake('evil').on('tools/call', (turn) => {
      if (turn.params['name'] === 'y') return fake.never()
      for (const progressToken of [0, 99, -1, 'p', turn.id + ' ', null, {}])
        turn.notify('notifications/progress', { progressToken, progress: 1 })
      return { content: [] }
    })
    const other = host.begin('tools/call', { name: 'evil__y', _meta: { progressToken: 'p' } })
    await gateway.fake('evil').until('tools/call')
    await host.call('tools/call', { name: 'evil__x' })
    expect([...other.messages.entries, ...host.heard.entries]).toEqual([])
    gateway.fake('evil').all('tools/call')[0]!.answer({ content: [] })
    await other.response
  })
})

/** What every object inherits, or what changes its ancestors. */
const INHERITED = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__']
describe.each(everyTransport)('T-25 over $name', ({ connect }) => {
  test('tools, prompts, resources and arguments may be named like members of every object', async () => {
    const untouched = JSON.stringify(Reflect.ownKeys(Object.prototype).map(String))
    await using gateway = await startGateway({
      servers: { a: fake.of({ tools: INHERITED, prompts: INHERITED, resources: INHERITED.map((name) => `x://${name}`) }) },
    })
    await using host = await connect(gateway)
    expect((await toolNames(host)).toSorted()).toEqual(INHERITED.map((name) => `a__${name}`).toSorted())
    for (const name of INHERITED) {
      const text = `{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"${name}":1}`
      const raw = request('r', 'tools/call', { name: `a__${name}`, arguments: {}, _meta: host.era === 'modern' ? META : {} })
      expect(await host.sendRaw(raw.replace('"arguments":{}', `"arguments":${text}`), 'r').raw).toContain('polluted')
      expect(await host.call('prompts/get', { name: `a__${name}` })).toMatchObject({ messages: [{ content: { text: name } }] })
      expect(await host.call('resources/read', { uri: `a+x://${name}` })).toHaveProperty('contents')
    }
    await expect(host.call('tools/call', { name: '__proto__' })).rejects.toMatchObject({ code: -32602 })
    await expect(host.call('constructor')).rejects.toMatchObject({ code: -32601 })
    expect(JSON.stringify(Reflect.ownKeys(Object.prototype).map(String))).toBe(untouched)
    expect(({} as JsonMap)['polluted']).toBeUndefined()
  })
})
const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }

test('T-24 an answer compressed unasked is no way around the checks of what is in it', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
  await using host = await legacyHttp.connect(gateway)
  const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024, '['))
  for (const encoding of ['gzip', 'br', 'deflate', 'zstd', 'x-gzip', 'gzip, gzip']) {
    gateway.fake('a').on('tools/call', ({ response }) => {
      response?.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding }).end(bomb)
    })
    const result = await host.call('tools/call', { name: 'a__x' })
    expect(result).toMatchObject({ isError: true, _meta: { 'dev.trunkline/gateway': { kind: 'bad_response' } } })
  }
})

test('T-28 no reference of a schema is followed, and no pattern of one is compiled', async () => {
  const asked: string[] = []
  const canary = createServer((incoming, response) => {
    asked.push(incoming.url ?? '')
    response.end('{}')
  })
  await using opened = await listening(canary)
  const $ref = `${opened.url}/schema`
  const pattern = '(a+)+$'
  const inputSchema = {
    $schema: $ref,
    $id: $ref,
    type: 'object',
    properties: { a: { $ref }, b: { type: 'string', pattern } },
    $defs: { x: { $dynamicRef: $ref } },
  }
  const tool = { name: 'x', inputSchema, outputSchema: { $ref, type: 'object' }, icons: [{ src: $ref }] }
  await using gateway = await startGateway({ servers: { a: fake.offering(tool) } })
  for (const { connect } of everyTransport) {
    await using host = await connect(gateway)
    expect((await host.call('tools/list'))['tools']).toMatchObject([{ name: 'a__x', inputSchema }])
    const args = { b: `${'a'.repeat(50_000)}!` }
    expect(textOf(await host.call('tools/call', { name: 'a__x', arguments: args }))).toBe(JSON.stringify(args))
  }
  expect(asked).toEqual([])
})

describe.each(everyFakeKind)('T-29 a %s server', (kind) => {
  test('with endless pages is read to the cap, which is told with its numbers', async () => {
    const page = ({ params }: { params: JsonMap }): JsonMap => {
      const at = Number(params['cursor'] ?? 0)
      return { tools: [{ name: `t${at}`, inputSchema: { type: 'object' } }], nextCursor: String(at + 1) }
    }
    const spec = fake.of({ kind, tools: ['x'], on: { 'tools/list': page } })
    await using gateway = await startGateway({ servers: { a: spec }, options: { a: { limits: { maxPages: 20 } } } })
    await using host = await modernHttp.connect(gateway)
    expect(await toolNames(host)).toHaveLength(20)
    expect(gateway.running.fleet.get('a')?.health$.value).toMatchObject({
      state: 'degraded',
      reason: expect.stringMatching(/20 pages with 20 entries \(limits\.pages\)/) as unknown,
    })
  })
  test('of a hundred thousand entries without a name is read to twice the cap, and what came before is served', async () => {
    const list = ({ id }: Turn): string =>
      `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","tools":[{"name":"x","inputSchema":{}}${',{}'.repeat(100_000)}]}}`
    const spec = fake.of({ kind, tools: ['x'], on: { 'tools/list': (turn) => turn.finish(list(turn)) } })
    await using gateway = await startGateway({ servers: { a: spec } })
    await using host = await modernHttp.connect(gateway)
    expect(await toolNames(host)).toEqual(['a__x'])
    const { value } = gateway.running.fleet.get('a')!.inventory$
    expect(value?.leftOut).toHaveLength(2 * 2_048 - 1)
    expect(value?.warnings).toEqual(['tools/list: 1 entries served, more were offered (limits.tools)'])
  })
  test('may list 2.1 MB at once; 17 MiB end with the limit, never with no tools in silence', async () => {
    const tools = Array.from({ length: 1_030 }, (_, at) => ({ name: `t${at}`, description: 'd'.repeat(2_000), inputSchema: {} }))
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools }) } })
    await using host = await modernHttp.connect(gateway)
    expect(await toolNames(host)).toHaveLength(1_030)
    const a = gateway.fake('a')
    a.offers.tools = [{ name: 'big', inputSchema: {}, _meta: { x: 'd'.repeat(17 * 1024 * 1024) } }]
    a.changed('tools')
    await new Promise<void>((resolve) => {
      const subscription = gateway.running.fleet.get('a')?.inventory$.subscribe((inventory) => {
        if (inventory?.warnings.some((warning) => /tools\/list failed: .*(16 MiB|max_message|16777216)/.test(warning))) resolve()
      })
      void subscription
    })
    expect(await toolNames(host)).toHaveLength(1_030)
  })
})

test('T-30 a merged list is private if any part of it is', async () => {
  const list = (cacheScope: string) => () => ({ tools: [{ name: 'x', inputSchema: {} }], cacheScope, ttlMs: 60_000 })
  const of = (scope: string) => fake.of({ kind: 'modern http', tools: ['x'], on: { 'tools/list': list(scope) } })
  await using gateway = await startGateway({ servers: { a: of('public'), b: of('private') } })
  await using host = await modernHttp.connect(gateway)
  expect((await host.call('tools/list'))['cacheScope']).toBe('private')
  await using own = await modernHttp.connect(gateway, { path: '/servers/a/mcp' })
  expect((await own.call('tools/list'))['cacheScope']).toBe('public')
})
test('T-30 hosts with different views, reading at the same time, never see a line of the other', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('mine_a'), b: fake.offering('mine_b') } })
  const hosts = await Promise.all(
    ['a', 'b'].flatMap((key) =>
      [legacyHttp, modernHttp].map(async ({ connect }) => ({
        key,
        host: await connect(gateway, { path: `/servers/${key}/mcp` }),
      })),
    ),
  )
  for (let round = 0; round < 250; round++) {
    const lists = await Promise.all(hosts.map(async ({ key, host }) => [`mine_${key}`, await toolNames(host)]))
    for (const [own, seen] of lists) expect(seen).toEqual([own])
  }
  for (const { host } of hosts) await host[Symbol.asyncDispose]()
})

test('T-32 sessions beyond the limit take the place of idle ones, never of one in use', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') }, hostLimits: { maxSessions: 5 } })
  await using used = await connectHttp(gateway)
  const idle = []
  for (let at = 0; at < 40; at++) idle.push(await connectHttp(gateway, { deaf: true }))
  expect(await toolNames(used)).toEqual(['a__x'])
  const alive = []
  for (const host of idle) {
    const reply = await send(gateway.url, { headers: host.headers(), body: request(1, 'ping') })
    alive.push(reply.status === 200)
  }
  expect(alive).toEqual(idle.map((_, at) => at >= 36))
})
test('T-32 where every session is in use, a further one is refused with when to try again', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') }, hostLimits: { maxSessions: 2 } })
  await using _one = await connectHttp(gateway)
  await using two = await connectHttp(gateway)
  const body = request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} })
  const reply = await send(gateway.url, { body })
  expect([reply.status, reply.headers['retry-after']]).toEqual([503, '1'])
  expect(await reply.body).toContain('listen.limits.sessions (2)')
  expect(await toolNames(two)).toEqual(['a__x'])
})

test('T-33 an event id opens only streams of its own session, only what followed on that stream', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') }, hostLimits: { sseKeepAliveMs: 20 } })
  const nonces = ['alpha', 'beta']
  gateway.fake('a').on('tools/call', (turn) => {
    turn.progress(1, { message: String((turn.params['arguments'] as JsonMap)['nonce']) })
    return { content: [{ type: 'text', text: String((turn.params['arguments'] as JsonMap)['nonce']) }] }
  })
  const hosts = await Promise.all(nonces.map(() => connectHttp(gateway, { deaf: true })))
  const ids: string[][] = []
  for (const [at, host] of hosts.entries()) {
    const call = { name: 'a__x', arguments: { nonce: nonces[at] }, _meta: { progressToken: 1 } }
    const reply = await send(gateway.url, { headers: host.headers(), body: request(1, 'tools/call', call) })
    await reply.body
    ids.push(reply.events.entries.map(({ id }) => id ?? ''))
  }
  const resume = async (at: number, id: string) => {
    const headers = { ...hosts[at]!.headers(), accept: 'text/event-stream', 'last-event-id': id }
    const reply = await send(gateway.url, { method: 'GET', headers })
    if (reply.status !== 200) return { status: reply.status, text: await reply.body }
    // The comment comes after all that the stream has missed.
    await Promise.race([reply.comments.until(() => true), reply.body])
    reply.close()
    return { status: 200, text: JSON.stringify(reply.events.entries) }
  }
  expect(ids[0]!.filter(Boolean)).not.toEqual([])
  expect((await resume(0, ids[0]![0]!)).text).toContain('alpha')
  for (const id of ids[0]!) expect((await resume(1, id)).text).not.toContain('alpha')
  const forged = [
    '',
    '0',
    '-1',
    '1',
    'zz-1',
    '1-99999',
    '1--1',
    '1-1e9',
    '1-0x0',
    '1-1-1',
    '../1-1',
    '__proto__-0',
    'constructor-0',
    `${'9'.repeat(40)}-1`,
    '1-' + '9'.repeat(40),
    "1-1'",
    '1-1,2-1',
  ]
  for (const id of forged) {
    const { status, text } = await resume(0, id)
    expect([400, 200], id).toContain(status)
    if (status === 400) expect(text).toContain('cannot be resumed')
    expect(text).not.toContain('beta')
  }
  for (const host of hosts) await host[Symbol.asyncDispose]()
})

test('T-34 16 sessions on one server: each question reaches the host of its own call, and its answer that call', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['who'] }) } })
  gateway.fake('a').on('tools/call', async (turn) => {
    const me = (turn.params['arguments'] as JsonMap)['me']
    const schema = { type: 'object', properties: { me: { type: 'string' } } }
    const answer = await turn.ask('elicitation/create', { message: `for ${String(me)}`, requestedSchema: schema })
    return { content: [{ type: 'text', text: JSON.stringify([me, answer.result]) }] }
  })
  const hosts = await Promise.all(
    Array.from({ length: 16 }, async (_, me) => {
      const host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {} }, deaf: true })
      host.answer('elicitation/create', ({ message }) => ({
        action: 'accept',
        content: { me: `${me} heard ${String(message)}` },
      }))
      return host
    }),
  )
  for (let round = 0; round < 3; round++)
    await Promise.all(
      hosts.map(async (host, me) => {
        const [to, answer] = JSON.parse(String(textOf(await host.call('tools/call', { name: 'a__who', arguments: { me } })))) as [
          number,
          JsonMap,
        ]
        expect(to).toBe(me)
        expect(JSON.stringify(answer)).toMatch(new RegExp(`"${me} heard [^"]*for ${me}"`))
      }),
    )
  await using other = await legacyHttp.connect(gateway)
  expect(JSON.stringify(await other.call('tools/call', { name: 'a__who', arguments: { me: 'x' } }))).not.toContain('heard')
  for (const host of hosts) await host[Symbol.asyncDispose]()
  expect(linesOf(gateway, /request failed/)).toEqual([])
})
