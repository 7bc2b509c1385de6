/** Legacy sessions that go on: after a restart of the gateway (5.1; B276), and after their HTTP+SSE stream broke (7.4; B275). */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { KEY, metaOf } from '../support/fakes/messages.ts'
import type { JsonMap, Message } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const request = (method: string, params: JsonMap = {}): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const INITIALIZE = request('initialize', {
  protocolVersion: '2025-06-18',
  capabilities: { elicitation: {}, roots: {} },
  clientInfo: { name: 'h', version: '1' },
})
const CALL = request('tools/call', { name: 'a__x', arguments: { n: 1 } })

let stateDir: string
let a: FakeDownstream
beforeEach(async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
  a = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x'] }))
})
afterEach(async () => {
  await a[Symbol.asyncDispose]()
  rmSync(stateDir, { recursive: true, maxRetries: 20, retryDelay: 100 })
})

/** Lone answers are JSON, however slow the machine is. */
const start = ({ host, ...more }: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: {}, fakes: new Map([['a', a]]), stateDir, ...more, host: { streamAfterLegacyMs: 60_000, ...host } })

const post = (gateway: TestGateway, body: string, id?: string, path = '/mcp'): Promise<Response> =>
  fetch(new URL(path, gateway.url), {
    method: 'POST',
    headers: { ...HEADERS, ...(id !== undefined && { 'mcp-session-id': id }) },
    body,
  })
const open = async (gateway: TestGateway, path = '/mcp'): Promise<string> => {
  const answer = await post(gateway, INITIALIZE, undefined, path)
  await answer.text()
  const id = answer.headers.get('mcp-session-id') ?? ''
  await post(gateway, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), id, path)
  return id
}

/** The events of a stream, as they come. */
const events = async function* (response: Response): AsyncGenerator<Record<string, string>> {
  let rest = ''
  for await (const chunk of response.body ?? []) {
    rest += Buffer.from(chunk as Uint8Array).toString()
    for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
      const lines = rest.slice(0, end).split('\n')
      rest = rest.slice(end + 2)
      yield Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]))
    }
  }
}

const SET_LEVEL = request('logging/setLevel', { level: 'error' })
const LEVELS = ['debug', 'info', 'error', 'alert']
/** Says a log message of every level in a call. */
const log = (downstream: FakeDownstream): FakeDownstream =>
  downstream.on('tools/call', (turn) => {
    for (const level of LEVELS) turn.notify('notifications/message', { level, data: level })
    return { content: [] }
  })
/** The levels of the log messages in a stream. */
const levelsIn = (text: string): string[] => [...text.matchAll(/"level":"(\w+)"/g)].map(([, level = '']) => level)
const WATCHED = 'x:1'
/** A server of one resource. */
const withResource = (kind: FakeKind): Promise<FakeDownstream> =>
  FakeDownstream.start(fake.of({ kind, tools: ['x'], resources: [WATCHED] }))

/** The standalone stream of a session; `until` resolves with the first message that it accepts. */
const listen = async (gateway: TestGateway, id: string, path = '/mcp') => {
  const response = await fetch(new URL(path, gateway.url), { headers: { accept: 'text/event-stream', 'mcp-session-id': id } })
  const stream = events(response)
  const received: Message[] = []
  return {
    received,
    until: async (accepts: (message: Message) => boolean): Promise<Message> => {
      for (;;) {
        const { value } = (await stream.next()) as { value: Record<string, string> }
        if (value['data'] === undefined || value['data'] === '') continue
        const message = JSON.parse(value['data']) as Message
        received.push(message)
        if (accepts(message)) return message
      }
    },
  }
}
const isUpdate = ({ method }: Message): boolean => method === 'notifications/resources/updated'

describe.each(['legacy http', 'legacy stdio', 'legacy sse', 'modern http'] as const)('what a host set at a %s server', (kind) => {
  test.each(['/mcp', '/servers/a/mcp'])('B276 B147 its log level holds after a restart, at %s', async (path) => {
    await using server = await withResource(kind)
    log(server)
    const fakes = new Map([['a', server]])
    const call = request('tools/call', { name: path === '/mcp' ? 'a__x' : 'x' })
    let id: string
    {
      await using gateway = await start({ fakes })
      id = await open(gateway, path)
      expect(levelsIn(await (await post(gateway, call, id, path)).text())).toContain('info')
      expect(await (await post(gateway, SET_LEVEL, id, path)).json()).toMatchObject({ result: {} })
      // At a bridge a legacy server filters for itself.
      if (path === '/mcp') expect(levelsIn(await (await post(gateway, call, id, path)).text())).toEqual(['error', 'alert'])
    }
    server.forget()
    for (let restart = 0; restart < 2; restart++) {
      await using gateway = await start({ fakes })
      const levels = levelsIn(await (await post(gateway, call, id, path)).text())
      if (path === '/mcp') expect(levels).toEqual(['error', 'alert'])
      const turn = await server.until('tools/call')
      if (server.era === 'modern') expect(metaOf(turn.message)[KEY.logLevel]).toBe('error')
      else {
        const set = server.all('logging/setLevel')
        expect(set.map(({ params }) => params['level'])).toEqual(['error'])
        expect(set[0]?.connection).toBe(turn.connection)
      }
      server.forget()
    }
  })
})

describe.each(['legacy http', 'legacy stdio', 'legacy sse', 'modern http'] as const)('resources of a %s server', (kind) => {
  test.each(['/mcp', '/servers/a/mcp'])(
    'B276 that a host watches are watched after a restart, and it is told to read them, at %s',
    async (path) => {
      await using server = await withResource(kind)
      const fakes = new Map([['a', server]])
      let id: string
      let uri: string
      {
        await using gateway = await start({ fakes })
        id = await open(gateway, path)
        const list = await (await post(gateway, request('resources/list'), id, path)).json()
        uri = (list as { result: { resources: { uri: string }[] } }).result.resources[0]?.uri ?? ''
        expect(await (await post(gateway, request('resources/subscribe', { uri }), id, path)).json()).toMatchObject({
          result: {},
        })
      }
      server.forget()
      await using gateway = await start({ fakes })
      // Its call comes before its stream.
      await (await post(gateway, request('tools/call', { name: path === '/mcp' ? 'a__x' : 'x' }), id, path)).text()
      const stream = await listen(gateway, id, path)
      expect((await stream.until(isUpdate)).params).toEqual({ uri })
      server.updated(WATCHED)
      expect((await stream.until(isUpdate)).params).toMatchObject({ uri })
      expect(await (await post(gateway, request('resources/unsubscribe', { uri }), id, path)).json()).toMatchObject({
        result: {},
      })
      const updates = stream.received.filter(isUpdate).length
      server.updated(WATCHED)
      server.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
      server.changed('tools')
      // Comes after everything that the server says before.
      await stream.until(({ method }) => method === 'notifications/tools/list_changed')
      // A fake of this era tells every connection; at a bridge, that of the host is passed on as it is.
      const own = server.era === 'legacy' && path !== '/mcp' ? 1 : 0
      expect(stream.received.filter(isUpdate)).toHaveLength(updates + own)
      await gateway[Symbol.asyncDispose]()
      expect(readSettingsIn(stateDir)).toEqual([{}])
    },
  )
})

/** What is written down of sessions. */
const readSettingsIn = (folder: string): unknown[] =>
  (JSON.parse(readFileSync(join(folder, 'session-settings.json'), 'utf8')) as unknown[][]).map(([, , settings]) => settings)

describe('what is written down of sessions', () => {
  test('B276 nothing of a host that sets nothing, and nothing of a session that has ended', async () => {
    await using gateway = await start()
    const id = await open(gateway)
    await (await post(gateway, CALL, id)).text()
    expect(readdirSync(stateDir)).not.toContain('session-settings.json')
    await (await post(gateway, SET_LEVEL, id)).text()
    expect(readSettingsIn(stateDir)).toEqual([{ level: 'error' }])
    await fetch(gateway.url, { method: 'DELETE', headers: { 'mcp-session-id': id } })
    await gateway[Symbol.asyncDispose]()
    expect(readSettingsIn(stateDir)).toEqual([])
  })

  test('B276 what was set last is written at the end, also where the disk is slow and is given a pause', async () => {
    await using gateway = await start()
    const id = await open(gateway)
    let ms = performance.now()
    using clock = vi.spyOn(performance, 'now').mockImplementation(() => (ms += 60))
    await (await post(gateway, SET_LEVEL, id)).text()
    clock.mockRestore()
    await (await post(gateway, request('logging/setLevel', { level: 'alert' }), id)).text()
    await gateway[Symbol.asyncDispose]()
    expect(readSettingsIn(stateDir)).toEqual([{ level: 'alert' }])
  })

  test('B276 where it cannot be written, the session goes on at its level', async () => {
    await using gateway = await start()
    // Stands where the file would be written.
    mkdirSync(join(stateDir, 'session-settings.json.new'))
    log(a)
    const id = await open(gateway)
    expect(await (await post(gateway, SET_LEVEL, id)).json()).toMatchObject({ result: {} })
    expect(levelsIn(await (await post(gateway, CALL, id)).text())).toEqual(['error', 'alert'])
    expect(gateway.log.entries.map(({ text }) => text)).toContain('session settings cannot be written down')
  })
})

describe('a session over Streamable HTTP, after a restart', () => {
  test('B276 is served with what its host said, over a link of its own, and told of its lists once', async () => {
    let id: string
    {
      await using gateway = await start()
      id = await open(gateway)
      expect(await (await post(gateway, CALL, id)).json()).toMatchObject({ result: { content: [{ text: '{"n":1}' }] } })
    }
    expect(id).toMatch(/^[\w-]{43,1024}$/)
    a.forget()
    await using gateway = await start()
    // A stream of the process before: its event is known to none.
    const stream = await fetch(gateway.url, {
      headers: { accept: 'text/event-stream', 'mcp-session-id': id, 'last-event-id': '0-7' },
    })
    expect(stream.status).toBe(200)
    expect(await (await post(gateway, CALL, id)).json()).toMatchObject({ result: { content: [{ text: '{"n":1}' }] } })
    const { connection } = await a.until('tools/call')
    expect(connection.declared).toEqual({ elicitation: {}, roots: {} })
    const heard: unknown[] = []
    for await (const { data = '' } of events(stream)) {
      if (data !== '') heard.push((JSON.parse(data) as Message).method)
      if (heard.length === 3) break
    }
    expect(heard).toEqual(['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`))
    // The same session, not a further one.
    await post(gateway, CALL, id)
    expect(gateway.running.fleet.get('a')?.linkCount).toBe(2)
  })

  test('B276 of several streams of the process before one goes on: they would replace each other', async () => {
    let id: string
    {
      await using gateway = await start()
      id = await open(gateway)
    }
    await using gateway = await start()
    const resume = (event: string): Promise<Response> =>
      fetch(gateway.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id, 'last-event-id': event } })
    const first = await resume('zz-7')
    const other = await resume('yy-3')
    expect([first.status, other.status]).toEqual([200, 400])
    expect(await other.text()).toContain('listen.limits.events')
    // Its connection may be broken without a sign.
    const again = await resume('zz-7')
    expect(again.status).toBe(200)
    // The first one has ended.
    await first.text()
    await again.body?.cancel()
  })

  test('B083 B276 an answer to a question of the process before answers no question of this one', async () => {
    a.on('tools/call', async (turn) => {
      const { result } = await turn.ask('elicitation/create', { message: 'Sure?', requestedSchema: { type: 'object' } })
      return { content: [{ type: 'text', text: String(result?.['action']) }] }
    })
    /** Makes a call; the id of its question, and the text of its result. */
    const asked = async (gateway: TestGateway, id: string) => {
      const messages = events(await post(gateway, CALL, id))
      const next = async (): Promise<JsonMap> => {
        for (;;) {
          const { value } = (await messages.next()) as IteratorResult<Record<string, string>, undefined>
          if (value === undefined) return {}
          if (value['data']?.startsWith('{') === true) return JSON.parse(value['data']) as JsonMap
        }
      }
      return { question: (await next())['id'], result: next().catch(() => ({})) }
    }
    const answer = (gateway: TestGateway, session: string, id: unknown, action: string): Promise<Response> =>
      post(gateway, JSON.stringify({ jsonrpc: '2.0', id, result: { action } }), session)
    let session = ''
    let late: unknown
    {
      await using gateway = await start()
      session = await open(gateway)
      const { question, result } = await asked(gateway, session)
      late = question
      void result
    }
    await using gateway = await start()
    const { question, result } = await asked(gateway, session)
    expect(question).not.toBe(late)
    expect((await answer(gateway, session, late, 'accept')).status).toBe(202)
    expect((await answer(gateway, session, question, 'decline')).status).toBe(202)
    expect(await result).toMatchObject({ result: { content: [{ text: 'decline' }] } })
  })

  test('B202 B276 an event id of the process before names no stream of this one', async () => {
    const host = { streamAfterLegacyMs: 0, streamAfterMs: 0 }
    const resume = (gateway: TestGateway, id: string, event?: string): Promise<Response> =>
      fetch(gateway.url, {
        headers: { accept: 'text/event-stream', 'mcp-session-id': id, ...(event !== undefined && { 'last-event-id': event }) },
      })
    let id: string
    let primed: string | undefined
    {
      await using gateway = await start({ host })
      const opened = await post(gateway, INITIALIZE.replace('2025-06-18', '2025-11-25'))
      await opened.text()
      id = opened.headers.get('mcp-session-id') ?? ''
      const stream = await resume(gateway, id)
      for await (const event of events(stream)) {
        primed = event['id']
        break
      }
    }
    await using gateway = await start({ host })
    expect(await (await post(gateway, CALL, id)).text()).toContain('"result"')
    for await (const { data = '' } of events(await resume(gateway, id, primed)))
      if (data !== '') {
        expect(JSON.parse(data)).toMatchObject({ method: 'notifications/tools/list_changed' })
        return
      }
    expect.fail('the stream has ended')
  })

  test.each<[string, (gateway: TestGateway, id: string) => Promise<unknown>, Partial<GatewaySetup>]>([
    ['its host ended', (gateway, id) => fetch(gateway.url, { method: 'DELETE', headers: { 'mcp-session-id': id } }), {}],
    [
      'was idle too long',
      async ({ running }) => {
        while (running.front.sessionCount > 0) await new Promise((resolve) => setImmediate(resolve))
      },
      { hostLimits: { sessionIdleMs: 50 } },
    ],
  ])('B276 stays ended where %s', async (_name, end, more) => {
    let id: string
    {
      await using gateway = await start(more)
      id = await open(gateway)
      await end(gateway, id)
      expect((await post(gateway, CALL, id)).status).toBe(404)
    }
    await using gateway = await start()
    expect((await post(gateway, CALL, id)).status).toBe(404)
  })

  test('B276 does not outlast listen.limits.session_max', async () => {
    let id: string
    {
      await using gateway = await start({ hostLimits: { sessionMaxMs: 1 } })
      id = await open(gateway)
    }
    await using gateway = await start()
    expect((await post(gateway, CALL, id)).status).toBe(404)
  })

  test('B276 is served at its own endpoint, unaltered and under the same key alone', async () => {
    let id: string
    {
      await using gateway = await start()
      id = await open(gateway)
    }
    await using gateway = await start()
    expect((await post(gateway, CALL, id, '/servers/a/mcp')).status).toBe(404)
    const altered = `${id.slice(0, 40)}${id[40] === 'A' ? 'B' : 'A'}${id.slice(41)}`
    expect((await post(gateway, CALL, altered)).status).toBe(404)
    const other = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using stranger = await start({ stateDir: other })
    expect((await post(stranger, CALL, id)).status).toBe(404)
    rmSync(other, { recursive: true })
  })

  test('B276 T-06 outlives a rotation of state.key in two steps, and not the loss of its key', async () => {
    const [before, after] = ['0123456789abcdef'.repeat(4), 'fedcba9876543210'.repeat(4)]
    const folders = Array.from({ length: 4 }, () => mkdtempSync(join(tmpdir(), 'trunkline-test-')))
    const started = (at: number, stateKey: string | readonly string[]) => start({ stateDir: folders[at], stateKey })
    let id: string
    {
      await using gateway = await started(0, before)
      id = await open(gateway)
    }
    for (const [at, keys] of [
      [1, [before, after]],
      [2, [after, before]],
    ] as const) {
      await using gateway = await started(at, keys)
      expect((await post(gateway, CALL, id)).status).toBe(200)
    }
    await using gateway = await started(3, after)
    expect((await post(gateway, CALL, id)).status).toBe(404)
    for (const folder of folders) rmSync(folder, { recursive: true })
  })

  test('B276 a host that says more of itself than an id holds has a session of the process', async () => {
    const capabilities = { experimental: { big: 'x'.repeat(2_000) } }
    const body = request('initialize', { protocolVersion: '2025-06-18', capabilities, clientInfo: { name: 'h', version: '1' } })
    await using gateway = await start()
    const answer = await post(gateway, body)
    const id = answer.headers.get('mcp-session-id') ?? ''
    expect(id).toMatch(/^[\w-]{22}$/)
    expect((await post(gateway, CALL, id)).status).toBe(200)
  })
})

describe('an HTTP+SSE host whose stream broke', () => {
  const connect = async (gateway: TestGateway, headers: Record<string, string> = {}) => {
    const abort = new AbortController()
    const response = await fetch(new URL('/sse', gateway.url), {
      headers: { accept: 'text/event-stream', ...headers },
      signal: abort.signal,
    })
    const stream = events(response)
    const endpoint = (await stream.next()).value as Record<string, string>
    const notified: string[] = []
    const levels: unknown[] = []
    const next = async (): Promise<{ value: Record<string, string>; message: Message }> => {
      const { value } = (await stream.next()) as { value: Record<string, string> }
      const message = JSON.parse(value['data'] ?? '{}') as Message
      if (!('id' in message)) notified.push(message.method ?? '')
      if (message.method === 'notifications/message') levels.push(message.params?.['level'])
      return { value, message }
    }
    return {
      /** Methods of the notifications before the answers that were waited for. */
      notified,
      /** Of the log messages among them. */
      levels,
      until: async (method: string): Promise<void> => {
        while ((await next()).message.method !== method);
      },
      /** Where its messages go. */
      url: new URL(endpoint['data'] ?? '', gateway.url),
      send: (body: string, more: Record<string, string> = {}) =>
        fetch(new URL(endpoint['data'] ?? '', gateway.url), { method: 'POST', headers: { ...HEADERS, ...more }, body }),
      /** The next event that answers a request. */
      answer: async (): Promise<Record<string, string>> => {
        for (;;) {
          const { value, message } = await next()
          if ('id' in message) return value
        }
      },
      break: (): void => abort.abort(),
    }
  }

  test('begins no session with a message that is complete only after its stream has ended', async () => {
    await using gateway = await start()
    const stream = await connect(gateway)
    const message = httpRequest(stream.url, { method: 'POST', headers: { ...HEADERS, 'content-length': INITIALIZE.length } })
    message.write(INITIALIZE.slice(0, 20))
    // Read in the order of its arrival.
    await stream.send('{}')
    stream.break()
    await vi.waitUntil(() => gateway.running.front.sessionCount === 0)
    message.end(INITIALIZE.slice(20))
    const [answer] = (await once(message, 'response')) as [IncomingMessage]
    answer.resume()
    expect(answer.statusCode).toBe(404)
  })

  test.each([false, true])(
    'B275 goes on with what it said, where its client names the last event (restarted: %s)',
    async (isRestarted) => {
      let gateway = await start()
      const first = await connect(gateway)
      await first.send(INITIALIZE)
      const { id = '' } = await first.answer()
      first.break()
      if (isRestarted) {
        await gateway[Symbol.asyncDispose]()
        gateway = await start()
      }
      await using _ = gateway
      const second = await connect(gateway, { 'last-event-id': id })
      expect((await second.send(CALL)).status).toBe(202)
      expect((await second.answer())['data']).toContain('{\\"n\\":1}')
      const changed = ['tools', 'resources', 'prompts'].map((list) => `notifications/${list}/list_changed`)
      expect(second.notified).toEqual(expect.arrayContaining(changed))
      expect((await a.until('tools/call')).connection.declared).toEqual({ elicitation: {}, roots: {} })
      second.break()
    },
  )

  test.each([false, true])(
    'B275 B147 at the level, and with the resources, that it has set (restarted: %s)',
    async (isRestarted) => {
      log(a)
      a.offers.resources.push({ uri: WATCHED, name: 'one' })
      let gateway = await start()
      const first = await connect(gateway)
      await first.send(INITIALIZE)
      const { id = '' } = await first.answer()
      await first.send(SET_LEVEL)
      await first.answer()
      await first.send(request('resources/subscribe', { uri: 'a+x:1' }))
      expect(JSON.parse((await first.answer())['data'] ?? '')).toMatchObject({ result: {} })
      first.break()
      if (isRestarted) {
        await gateway[Symbol.asyncDispose]()
        gateway = await start()
      }
      await using _ = gateway
      const second = await connect(gateway, { 'last-event-id': id })
      await second.until('notifications/resources/updated')
      await second.send(CALL)
      await second.answer()
      expect(second.levels).toEqual(['error', 'alert'])
      second.break()
    },
  )

  test('B275 is as old as its session was: listen.limits.session_max holds for both together', async () => {
    const maxMs = 3_600_000
    await using gateway = await start({ hostLimits: { sessionMaxMs: maxMs } })
    const beforeMs = Date.now()
    const first = await connect(gateway)
    await first.send(INITIALIZE)
    const { id = '' } = await first.answer()
    first.break()
    using clock = vi.spyOn(Date, 'now').mockReturnValue(beforeMs + maxMs - 1_000)
    const second = await connect(gateway, { 'last-event-id': id })
    clock.mockRestore()
    await expect(second.answer()).rejects.toThrow()
    expect(second.notified).toContain('notifications/tools/list_changed')
  })

  test('B276 B293 over Streamable HTTP a session is not taken up where its revision is not spoken any more', async () => {
    const within = (max: '2025-03-26' | '2025-06-18'): Partial<GatewaySetup> => ({
      host: { revisions: { min: '2024-11-05', max } },
    })
    let id: string
    {
      await using gateway = await start()
      id = await open(gateway)
    }
    {
      await using gateway = await start(within('2025-03-26'))
      expect((await post(gateway, CALL, id)).status).toBe(404)
    }
    await using gateway = await start(within('2025-06-18'))
    expect((await post(gateway, CALL, id)).status).toBe(200)
  })

  test('B275 B293 starts again where its revision is not spoken any more', async () => {
    let gateway = await start()
    const first = await connect(gateway)
    await first.send(INITIALIZE)
    const { id = '' } = await first.answer()
    first.break()
    await gateway[Symbol.asyncDispose]()
    gateway = await start({ host: { revisions: { min: '2024-11-05', max: '2025-03-26' } } })
    await using _ = gateway
    const second = await connect(gateway, { 'last-event-id': id })
    await second.send(CALL)
    await second.answer()
    expect((await a.until('tools/call')).connection.declared).toEqual({})
    expect(second.notified).toEqual([])
    second.break()
  })

  test.each([
    [undefined, 'text'],
    ['2025-06-18', 'audio'],
  ])('B275 is served without initialize, in the version of its header (%s), else the oldest', async (version, type) => {
    // Audio is a text to hosts of 2024-11-05.
    a.on('tools/call', () => ({ content: [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }] }))
    await using gateway = await start()
    const host = await connect(gateway)
    await host.send(CALL, version === undefined ? {} : { 'mcp-protocol-version': version })
    const { data = '' } = await host.answer()
    expect(JSON.parse(data)).toMatchObject({ result: { content: [{ type }] } })
    expect((await a.until('tools/call')).connection.declared).toEqual({})
    host.break()
  })

  test('B275 a host that pings first may still initialize', async () => {
    await using gateway = await start()
    const host = await connect(gateway)
    await host.send(request('ping'))
    await host.answer()
    await host.send(INITIALIZE)
    expect(JSON.parse((await host.answer())['data'] ?? '')).toMatchObject({ result: { protocolVersion: '2025-06-18' } })
    await host.send(CALL)
    await host.answer()
    expect((await a.until('tools/call')).connection.declared).toEqual({ elicitation: {}, roots: {} })
    host.break()
  })
})
