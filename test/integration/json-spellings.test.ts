/**
 * Hosts and servers that write JSON as the standard libraries of PHP and Python do: with escapes in keys, of slashes in PHP and of
 * everything beyond ASCII in both (B269). Every era and transport, in both directions; what is content arrives byte for byte.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { everyFakeKind, fake } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp, modernPipe } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import { KEY, MODERN } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { peer, phpHttp, pythonHttp } from '../support/peers.ts'
import type { ServerAt } from '../support/peers.ts'
import { describeWith } from '../support/programs.ts'

const META = { café: 'é/è', 'x.example/ключ': [1, 'ü'], twice: 1 }

interface Language {
  readonly name: string
  readonly needs: string
  readonly command: string
  readonly extension: string
  readonly http: (era: string) => Promise<ServerAt>
  /** How it writes the key `größe/1`, and `_meta` of every result. */
  readonly key: string
  readonly meta: string
}
const LANGUAGES: readonly Language[] = [
  {
    name: 'PHP',
    needs: 'php',
    command: 'php',
    extension: 'php',
    http: phpHttp,
    key: String.raw`"gr\u00f6\u00dfe\/1"`,
    meta: String.raw`"caf\u00e9":"\u00e9\/\u00e8","x.example\/\u043a\u043b\u044e\u0447":[1,"\u00fc"],"twice":1`,
  },
  {
    name: 'Python',
    needs: 'python3',
    command: 'python3',
    extension: 'py',
    http: pythonHttp,
    key: String.raw`"gr\u00f6\u00dfe/1"`,
    meta: String.raw`"caf\u00e9": "\u00e9/\u00e8", "x.example/\u043a\u043b\u044e\u0447": [1, "\u00fc"], "twice": 1`,
  },
]
const ERAS = ['legacy', 'modern'] as const
const WAYS = ['stdio', 'HTTP'] as const
const CELLS = ERAS.flatMap((era) => WAYS.map((way) => ({ era, way })))

const metaOf = ({ era }: Host): JsonMap =>
  era === 'modern' ? { [KEY.version]: MODERN, [KEY.capabilities]: { elicitation: {} } } : {}
const raw = (host: Host, id: number, params: JsonMap): Promise<string> =>
  host.sendRaw(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { _meta: metaOf(host), ...params } }), id).raw

describe.each(LANGUAGES)('$name', ({ name, needs, command, extension, http, key, meta }) => {
  describeWith([needs], `${name} as a server`, () => {
    const start = async (era: string, way: string): Promise<TestGateway & { peer: ServerAt | undefined }> => {
      const at = way === 'HTTP' ? await http(era) : undefined
      const launch = { command, args: [peer(`server.${extension}`), era, 'stdio'], env: {}, cwd: process.cwd() }
      const options = { a: { launch: at === undefined ? launch : undefined, url: at?.url } }
      return { ...(await startGateway({ servers: { a: fake.offering() }, options })), peer: at }
    }

    test.each(CELLS)(
      'B269 of the $era era over $way: results, errors and what it asks arrive as it wrote them',
      async ({ era, way }) => {
        const gateway = await start(era, way)
        await using _peer = gateway.peer
        await using _gateway = gateway
        for (const { connect } of everyTransport) {
          await using host = await connect(gateway, { capabilities: { elicitation: {} } })
          expect((await host.call('tools/list'))['tools']).toMatchObject([
            { name: 'a__echo', _meta: META },
            { name: 'a__fail' },
            { name: 'a__ask' },
          ])
          const echo = await raw(host, 11, { name: 'a__echo', arguments: { café: 'a/b' } })
          expect(echo).toContain(meta)
          expect(JSON.parse(echo)).toMatchObject({ result: { structuredContent: { café: 1 }, _meta: META } })
          const { result } = JSON.parse(echo) as { result: { content: { text: string }[] } }
          expect(JSON.parse(result.content[0]?.text ?? '')).toMatchObject({ arguments: { café: 'a/b' } })
          const failed = await raw(host, 12, { name: 'a__fail' })
          expect(JSON.parse(failed)).toMatchObject({ error: { message: 'zu groß', data: { größe: 1, 'x/y': { é: 2 } } } })
          expect(failed).toContain(String.raw`"gr\u00f6\u00dfe":`)
        }
        if (era === 'legacy') return
        for (const { connect } of [modernHttp, modernPipe]) {
          await using host = await connect(gateway, { capabilities: { elicitation: {} } })
          const asked = await raw(host, 13, { name: 'a__ask' })
          expect(asked).toContain(key)
          expect(asked).toContain(meta)
          const { requestState } = (JSON.parse(asked) as { result: JsonMap }).result
          const inputResponses = { 'größe/1': { action: 'accept', content: { café: 'x' } } }
          const answered = await raw(host, 14, { name: 'a__ask', requestState, inputResponses })
          const { result } = JSON.parse(answered) as { result: { content: { text: string }[] } }
          expect(JSON.parse(result.content[0]?.text ?? '')).toMatchObject({ answers: inputResponses })
        }
        await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {} } })
        const questions: unknown[] = []
        host.answer('elicitation/create', (params) => {
          questions.push(params['requestedSchema'])
          return { action: 'accept', content: { café: 'x' } }
        })
        const { content } = await host.call('tools/call', { name: 'a__ask' })
        expect(questions).toMatchObject([{ properties: { café: { type: 'string' } } }])
        expect(JSON.parse((content as { text: string }[])[0]?.text ?? '')).toMatchObject({
          answers: { 'größe/1': { action: 'accept' } },
        })
      },
    )
  })

  describeWith([needs], `${name} as a host`, () => {
    const report = async (child: ChildProcess): Promise<unknown> => {
      const lines: string[] = []
      for await (const line of createInterface({ input: child.stderr! })) lines.push(line)
      if (child.exitCode === null) await once(child, 'exit')
      if (lines.length !== 1) throw new Error(lines.join('\n'))
      return JSON.parse(lines[0] ?? '')
    }

    test.each(CELLS)('B269 of the $era era over $way is served by servers of every kind', async ({ era, way }) => {
      for (const kind of everyFakeKind) {
        const text = String.raw`{"content":[],"_meta":{"caf\u00e9":[1.0]}}`
        await using gateway = await startGateway({
          servers: { a: fake.of({ kind, tools: ['echo'], on: { 'tools/call': () => JSON.parse(text) as JsonMap } }) },
        })
        const program = peer(`host.${extension}`)
        const args = way === 'HTTP' ? [program, era, gateway.url.href] : [program, era]
        const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
        if (way === 'stdio') {
          const { input, output } = gateway.openPipe()
          child.stdout.pipe(input)
          output.pipe(child.stdin)
        }
        expect(await report(child)).toMatchObject(['a__echo', { content: [], _meta: { café: [1] } }])
        const [call] = gateway.fake('a').all('tools/call')
        expect(call?.params).toMatchObject({
          name: 'echo',
          arguments: { café: 'a/b' },
          _meta: { café: 'é/è', 'x.example/ключ': 1 },
        })
        expect(call?.raw).toContain(String.raw`"caf\u00e9":`)
      }
    })
  })
})

describe.each(everyTransport)('over $name', ({ connect, era }) => {
  test('B282 null for what is absent is taken as that, in requests and in notifications', async () => {
    await using gateway = await startGateway({ servers: { a: fake.offering('echo'), b: fake.offering('slow') } })
    await using host = await connect(gateway)
    const meta = era === 'modern' ? metaOf(host) : null
    for (const params of [{ cursor: null }, { cursor: '' }])
      expect(await host.call('tools/list', params)).toMatchObject({ tools: [{ name: 'a__echo' }, { name: 'b__slow' }] })
    const params = { name: 'a__echo', arguments: null, _meta: meta, task: null, requestState: null, inputResponses: null }
    const text = JSON.stringify({ jsonrpc: '2.0', id: 50, method: 'tools/call', params, result: null, error: null })
    expect(await host.sendRaw(text, 50).response).toMatchObject({ result: { content: [{ type: 'text' }] } })
    expect(gateway.fake('a').all('tools/call')[0]?.params['arguments']).toBeNull()
    if (era === 'modern') return
    for (const message of [
      { id: 51, method: 'tools/list', params: null },
      { id: 52, method: 'ping', params: null },
    ]) {
      const sent = host.sendRaw(JSON.stringify({ jsonrpc: '2.0', ...message }), message.id)
      expect((await sent.response).error).toBeUndefined()
    }
    const b = gateway.fake('b').on('tools/call', fake.never)
    const pending = host.begin('tools/call', { name: 'b__slow' })
    pending.response.catch(() => undefined)
    const turn = await b.until('tools/call')
    for (const [at, message] of [
      { method: 'notifications/cancelled', params: null },
      { method: 'notifications/roots/list_changed', params: null },
      { method: 'notifications/cancelled', params: { requestId: pending.id, reason: null, _meta: null } },
    ].entries())
      host.sendRaw(JSON.stringify({ jsonrpc: '2.0', ...message }), `no answer ${at}`).response.catch(() => undefined)
    const cancelled = await b.until('notifications/cancelled')
    expect(cancelled.params).toMatchObject({ requestId: turn.id })
    expect(await host.call('ping')).toEqual({})
  })
})

describe.each(everyFakeKind)('a %s server', (kind) => {
  const SCHEMA = '{"type":"object"}'

  test('B282 B288 that writes null for what is absent, and ids as text, serves every host', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['echo', 'fail'] }) } })
    const server = gateway.fake('a')
    const absent = '"error":null,"method":null,"params":null'
    const kindOfResult = server.era === 'modern' ? '"resultType":"complete","ttlMs":null,' : ''
    server.on('tools/list', (turn) => {
      const tools = `[{"name":"echo","inputSchema":${SCHEMA},"outputSchema":null},{"name":"fail","inputSchema":${SCHEMA},"annotations":null}]`
      turn.finish(
        `{"jsonrpc":"2.0","id":"${turn.id}","result":{${kindOfResult}"tools":${tools},"nextCursor":"","_meta":null},${absent}}`,
      )
    })
    server.on('tools/call', (turn) => {
      const isEcho = turn.params['name'] === 'echo'
      const result = `{${kindOfResult}"content":[],"structuredContent":null,"isError":null,"_meta":null}`
      const outcome = isEcho ? `"result":${result},"error":null` : '"error":{"code":7,"message":"no","data":null},"result":null'
      if (server.era === 'legacy') turn.say('{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}')
      turn.finish(`{"method":null,${outcome},"id":"${turn.id}","jsonrpc":"2.0"}`)
    })
    for (const { connect } of everyTransport) {
      await using host = await connect(gateway)
      await host.call('tools/call', { name: 'a__echo' })
      const { tools } = await host.call('tools/list')
      expect(tools).toMatchObject([{ name: 'a__echo' }, { name: 'a__fail' }])
      const result = await host.call('tools/call', { name: 'a__echo' })
      expect(result).toMatchObject({ content: [] })
      expect(result['structuredContent'] ?? null).toBeNull()
      await expect(host.call('tools/call', { name: 'a__fail' })).rejects.toMatchObject({ code: 7, message: 'no' })
    }
  })

  test('B271 with one message that cannot be handled keeps its link, and every other call on it', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['slow', 'bad', 'echo'] }) } })
    const server = gateway.fake('a')
    let release = Promise.withResolvers<void>()
    const bad = String.raw`"${'x'.repeat(60)}\q"`
    server.on('tools/call', async (turn) => {
      if (turn.params['name'] === 'bad') {
        turn.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":${bad},"data":1}}`)
        turn.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${bad}}}`)
        turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"error":{"code":1,"message":${bad}}}`)
        return undefined
      }
      if (turn.params['name'] === 'slow') await release.promise
      return { content: [{ type: 'text', text: String(turn.params['name']) }] }
    })
    for (const { connect, era } of everyTransport) {
      release = Promise.withResolvers<void>()
      server.forget()
      await using host = await connect(gateway)
      const meta = era === 'modern' ? { [KEY.logLevel]: 'debug' } : {}
      const slow = host.call('tools/call', { name: 'a__slow' })
      const { connection } = await server.journal.until(({ params }) => params['name'] === 'slow')
      const failed = await host.call('tools/call', { name: 'a__bad' }, { meta }).catch((error: unknown) => error)
      expect(JSON.stringify(failed)).not.toContain('shutting down')
      expect(failed).toMatchObject({ isError: true, content: [{ text: 'A sent an unreadable answer' }] })
      await expect(host.call('tools/call', { name: 'a__echo' })).resolves.toMatchObject({ content: [{ text: 'echo' }] })
      release.resolve()
      await expect(slow).resolves.toMatchObject({ content: [{ text: 'slow' }] })
      expect(connection.isOpen).toBe(true)
    }
  })

  test('B271 F-31 that needs a capability whose name is no JSON ends that call alone', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['bad', 'echo'] }) } })
    const data = String.raw`{"requiredCapabilities":{"${'x'.repeat(60)}\q":{}}}`
    gateway.fake('a').on('tools/call', (turn) => {
      if (turn.params['name'] === 'echo') return { content: [] }
      return turn.finish(`{"jsonrpc":"2.0","id":${turn.id},"error":{"code":-32021,"message":"no","data":${data}}}`)
    })
    for (const { connect } of everyTransport) {
      await using host = await connect(gateway)
      const failed = await host
        .call('tools/call', { name: 'a__bad' })
        .catch((error: unknown) => ({ isError: error instanceof Error }))
      expect(failed).toMatchObject({ isError: true })
      await host.call('tools/call', { name: 'a__echo' })
    }
  })

  test('B271 F-31 that asks with a text that is no JSON gets an error, and its call goes on', async () => {
    const servers = { a: fake.of({ kind, tools: ['ask'] }), b: fake.of({ kind, tools: ['other'] }) }
    await using gateway = await startGateway({ servers })
    gateway.fake('a').on('tools/call', async (turn) => {
      const { id, answer } = turn.connection.expectAnswer()
      const params = String.raw`{"message":"${'x'.repeat(60)}\q","requestedSchema":{"type":"object"}}`
      turn.say(`{"jsonrpc":"2.0","id":${id},"method":"elicitation/create","params":${params}}`)
      return { content: [{ type: 'text', text: String((await answer).error?.code) }] }
    })
    for (const { connect } of everyTransport) {
      await using host = await connect(gateway, { capabilities: { elicitation: {} } })
      await expect(host.call('tools/call', { name: 'a__ask' })).resolves.toMatchObject({ content: [{ text: '-32603' }] })
    }
  })

  test('B271 F-31 that sends notifications with texts that are no JSON fills no log, and its calls go on', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['tell'] }) } })
    const bad = String.raw`"${'x'.repeat(60)}\q"`
    gateway.fake('a').on('tools/call', (turn) => {
      for (const [method, params] of [
        ['notifications/cancelled', `{"requestId":${bad}}`],
        ['notifications/resources/updated', `{"uri":${bad}}`],
        ['notifications/message', `{"level":"info","data":"d","logger":${bad}}`],
        ['notifications/elicitation/complete', `{"elicitationId":${bad}}`],
        ['notifications/tasks/status', `{"taskId":${bad},"status":"working"}`],
        ['notifications/progress', `{"progressToken":${bad},"progress":1}`],
      ])
        turn.say(`{"jsonrpc":"2.0","method":"${method}","params":${params}}`)
      return { content: [] }
    })
    for (const { connect } of everyTransport) {
      await using host = await connect(gateway)
      await expect(host.call('tools/call', { name: 'a__tell' })).resolves.toMatchObject({ content: [] })
    }
    expect(gateway.log.entries.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('B271 F-31 that asks under an id that is no JSON costs that question alone', async () => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['ask'] }) } })
    const id = String.raw`"${'x'.repeat(60)}\q"`
    gateway.fake('a').on('tools/call', (turn) => {
      turn.say(`{"jsonrpc":"2.0","id":${id},"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}`)
      return { content: [] }
    })
    for (const { connect } of everyTransport) {
      await using host = await connect(gateway, { capabilities: { elicitation: {} } })
      for (let call = 0; call < 2; call++)
        await expect(host.call('tools/call', { name: 'a__ask' })).resolves.toMatchObject({ content: [] })
    }
  })
})
