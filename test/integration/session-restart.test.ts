/** Legacy sessions that go on: after a restart of the gateway (5.1; B276), and after their HTTP+SSE stream broke (7.4; B275). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
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
  rmSync(stateDir, { recursive: true })
})

const start = (more: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: {}, fakes: new Map([['a', a]]), stateDir, ...more })

const post = (gateway: TestGateway, body: string, id?: string, path = '/mcp'): Promise<Response> =>
  fetch(new URL(path, gateway.url), {
    method: 'POST',
    headers: { ...HEADERS, ...(id !== undefined && { 'mcp-session-id': id }) },
    body,
  })
const open = async (gateway: TestGateway): Promise<string> => {
  const answer = await post(gateway, INITIALIZE)
  await answer.text()
  const id = answer.headers.get('mcp-session-id') ?? ''
  await post(gateway, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), id)
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

  test.each<[string, (gateway: TestGateway, id: string) => Promise<unknown>, Partial<GatewaySetup>]>([
    ['its host ended', (gateway, id) => fetch(gateway.url, { method: 'DELETE', headers: { 'mcp-session-id': id } }), {}],
    [
      'was idle too long',
      async (gateway, id) => {
        while ((await post(gateway, request('ping'), id)).status !== 404) await new Promise((resolve) => setTimeout(resolve, 200))
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
    return {
      /** Methods of the notifications before the answers that were waited for. */
      notified,
      send: (body: string, more: Record<string, string> = {}) =>
        fetch(new URL(endpoint['data'] ?? '', gateway.url), { method: 'POST', headers: { ...HEADERS, ...more }, body }),
      /** The next event that answers a request. */
      answer: async (): Promise<Record<string, string>> => {
        for (;;) {
          const { value } = (await stream.next()) as { value: Record<string, string> }
          const message = JSON.parse(value['data'] ?? '{}') as Message
          if ('id' in message) return value
          notified.push(message.method ?? '')
        }
      },
      break: (): void => abort.abort(),
    }
  }

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
