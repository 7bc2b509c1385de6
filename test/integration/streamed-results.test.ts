/** Big results pass on while they come (DECISIONS 4): what a host sees of them, and what they cost those beside them. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { modernHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const KIB = 1024
const MIB = 1024 * KIB
const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
type HostEra = 'legacy' | 'modern'
type ServerKind = 'legacy http' | 'modern http'

/** One answer of the server, written by the test. */
interface Answering {
  readonly response: ServerResponse
  readonly id: number
}

interface Stage extends AsyncDisposable {
  readonly gateway: TestGateway
  /** The next call of `a__big` at the server. */
  readonly answering: Promise<Answering>
  /** Posts a call of a tool; resolves with the head of its answer. */
  call(tool: string): Promise<IncomingMessage>
}

const openStage = async (
  era: HostEra,
  kind: ServerKind,
  options: { httpClient?: 'own' | 'undici'; maxMessageBytes?: number; streamAfterMs?: number; writeStallMs?: number } = {},
): Promise<Stage> => {
  const { httpClient = 'own', maxMessageBytes = 16 * MIB, streamAfterMs = 60_000, writeStallMs = 60_000 } = options
  const gateway = await startGateway({
    servers: { a: fake.of({ kind, tools: ['big', 'small'], capabilities: { tools: {}, resources: {} } }) },
    options: { a: { httpClient, limits: { maxMessageBytes } } },
    host: { streamAfterMs, streamAfterLegacyMs: streamAfterMs },
    hostLimits: { writeStallMs },
  })
  const called = Promise.withResolvers<Answering>()
  gateway.fake('a').intercept = (_request, response, body) => {
    if (!body.includes('"tools/call"') || !body.includes('"big"')) return false
    called.resolve({ response, id: (JSON.parse(body) as { id: number }).id })
    return true
  }
  const post = (body: object, headers: Record<string, string>): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const sent = request(gateway.url, {
        method: 'POST',
        agent: false,
        headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      })
      sent
        .on('response', resolve)
        .on('error', reject)
        .end(JSON.stringify({ jsonrpc: '2.0', id: 'mine', ...body }))
    })
  const headers: Record<string, string> = {}
  if (era === 'legacy') {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'host', version: '1' } }
    const welcome = await post({ method: 'initialize', params }, {})
    headers['Mcp-Session-Id'] = String(welcome.headers['mcp-session-id'])
    welcome.resume()
  } else headers['MCP-Protocol-Version'] = '2026-07-28'
  return {
    gateway,
    answering: called.promise,
    call: (tool) => {
      const params = { name: `a__${tool}`, arguments: {}, ...(era === 'modern' && { _meta: MODERN_META }) }
      const mirrors: Record<string, string> = era === 'modern' ? { 'Mcp-Method': 'tools/call', 'Mcp-Name': `a__${tool}` } : {}
      return post({ method: 'tools/call', params }, { ...headers, ...mirrors })
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  }
}

const headOf = (id: number): string =>
  `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[{"type":"text","text":"`
const TAIL = '"},{"type":"resource_link","uri":"file:///x","name":"x"}],"_meta":{"theirs":1}}}'
const PIECE = Buffer.alloc(64 * KIB, 'x')

const readAll = async (answer: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

interface Answer {
  readonly id: string
  readonly result: {
    readonly content: readonly [{ readonly text: string }, { readonly uri: string }]
    readonly resultType?: string
    readonly _meta: Readonly<Record<string, unknown>>
  }
}

const CELLS = (['legacy', 'modern'] as const).flatMap((era) =>
  (['legacy http', 'modern http'] as const).flatMap((kind) =>
    (['own', 'undici'] as const).map((client) => ({ era, kind, client })),
  ),
)
/** A legacy host of a modern server may need its structured content in another shape: such results are read whole. */
const STREAMED = CELLS.filter(({ era, kind }) => era === 'modern' || kind === 'legacy http')

describe.each(STREAMED)('a $era host of a $kind server, $client client', ({ era, kind, client }) => {
  test('sees the beginning of a big result before its end is written, and all of it in the end, in the words of its era', async () => {
    await using stage = await openStage(era, kind, { httpClient: client })
    const calling = stage.call('big')
    const { response, id } = await stage.answering
    const length = headOf(id).length + 2 * PIECE.length + TAIL.length
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': String(length) })
    response.write(headOf(id))
    response.write(Buffer.concat([PIECE, PIECE]))
    const answer = await calling
    expect(answer.headers['content-type']).toBe('application/json')
    const [first] = (await once(answer, 'data')) as [Buffer]
    expect(first.toString()).toContain('"id":"mine"')
    answer.pause()
    response.end(TAIL)
    const { id: mine, result } = JSON.parse(first.toString() + (await readAll(answer))) as Answer
    expect(mine).toBe('mine')
    expect(result.content[0].text).toBe('x'.repeat(128 * KIB))
    expect(result.content[1].uri).toBe('a+file:///x')
    expect(result.resultType).toBe(era === 'modern' ? 'complete' : undefined)
    expect(result._meta['theirs']).toBe(1)
    expect(Object.hasOwn(result._meta, 'io.modelcontextprotocol/serverInfo')).toBe(era === 'modern')
  })

  test('sees the beginning of a big result that keeps coming in small pieces, without a pause', async () => {
    await using stage = await openStage(era, kind, { httpClient: client })
    const calling = stage.call('big')
    const { response, id } = await stage.answering
    const end = MIB - headOf(id).length - TAIL.length
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': String(MIB) })
    response.write(headOf(id))
    // Never ends before the host has seen something.
    let written = 0
    let isSeen = false
    const write = (): void => {
      if (isSeen) return void response.end(`${'x'.repeat(end - written)}${TAIL}`)
      if (written + 8 < end) {
        response.write('xxxxxxxx')
        written += 8
      }
      setImmediate(write)
    }
    write()
    const answer = await calling
    const [first] = (await once(answer, 'data')) as [Buffer]
    isSeen = true
    answer.pause()
    const { result } = JSON.parse(first.toString() + (await readAll(answer))) as Answer
    expect(result.content[0].text).toBe('x'.repeat(end))
  })

  test('F-18: a result that breaks in the middle breaks at the host as well, and never looks complete', async () => {
    await using stage = await openStage(era, kind, { httpClient: client })
    const calling = stage.call('big')
    const { response, id } = await stage.answering
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': String(MIB) })
    response.write(headOf(id))
    response.write(PIECE)
    response.write(PIECE)
    const answer = await calling
    await once(answer, 'data')
    response.destroy()
    await expect(readAll(answer)).rejects.toThrow(/aborted/)
    expect((await stage.call('small')).statusCode).toBe(200)
  })

  test('F-20: a host that leaves in the middle ends it at the server', async () => {
    await using stage = await openStage(era, kind, { httpClient: client })
    const calling = stage.call('big')
    const { response, id } = await stage.answering
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': String(MIB) })
    response.write(headOf(id))
    response.write(Buffer.concat([PIECE, PIECE]))
    const answer = await calling
    await once(answer, 'data')
    const gone = once(response, 'close')
    answer.destroy()
    await gone
    expect(stage.gateway.running.front.inFlight).toBe(0)
  })
})

test.each(['legacy', 'modern'] as const)(
  'T-24: 100 MiB pass to a %s host under a raised limit in little memory, and small calls are answered on the way',
  async (era) => {
    await using stage = await openStage(era, 'legacy http', { maxMessageBytes: 128 * MIB })
    const calling = stage.call('big')
    const { response, id } = await stage.answering
    response.writeHead(200, { 'Content-Type': 'application/json' }).write(headOf(id))
    let read = 0
    let ahead = 0
    const answers: Promise<IncomingMessage>[] = []
    const write = async (): Promise<void> => {
      for (let written = 0; written < 1_600; written++) {
        if (!response.write(PIECE)) await once(response, 'drain')
        ahead = Math.max(ahead, written * PIECE.length - read)
        if (written % 400 === 200) answers.push(stage.call('small'))
      }
      response.end(TAIL)
    }
    const writing = write()
    const answer = await calling
    for await (const chunk of answer) {
      read += (chunk as Buffer).length
      // A host that is slower than its server.
      if (read % 7 === 0) await new Promise(setImmediate)
    }
    await writing
    expect(read).toBeGreaterThan(100 * MIB)
    for (const small of answers) expect((await small).statusCode).toBe(200)
    // Sockets of both sides and what waits between them: a part of the result, never the whole.
    expect(ahead).toBeLessThan(24 * MIB)
  },
)

describe('a result without a length that crosses limits.max_message', () => {
  const crossing = async (stage: Stage, bytes: number): Promise<IncomingMessage> => {
    const calling = stage.call('big')
    const { response, id } = await stage.answering
    response.on('error', () => undefined)
    response.writeHead(200, { 'Content-Type': 'application/json' }).write(headOf(id))
    for (let written = 0; written < bytes; written += PIECE.length) response.write(PIECE)
    return calling
  }

  describe.each(STREAMED)('to a $era host of a $kind server, $client client', ({ era, kind, client }) => {
    test.each([8, 16])('%d MiB: is answered as too large, and the next call is served', async (limit) => {
      await using stage = await openStage(era, kind, { httpClient: client, maxMessageBytes: limit * MIB })
      const answer = await crossing(stage, (limit + 1) * MIB)
      const said = await readAll(answer)
      expect(said).toContain(`the answer of A exceeds ${limit} MiB (limits.max_message)`)
      expect(said).toContain('"id":"mine"')
      expect((await stage.call('small')).statusCode).toBe(200)
    })
  })

  test('is answered as too large on an event stream that has begun', async () => {
    await using stage = await openStage('modern', 'legacy http', { streamAfterMs: 0, maxMessageBytes: 8 * MIB })
    const answer = await crossing(stage, 9 * MIB)
    expect(answer.headers['content-type']).toBe('text/event-stream')
    const said = await readAll(answer)
    expect(said.split('\n\n').filter((event) => event.includes('limits.max_message'))).toHaveLength(1)
  })

  test('breaks visibly where a raised limit let its beginning pass', async () => {
    await using stage = await openStage('modern', 'legacy http', { maxMessageBytes: 20 * MIB })
    const answer = await crossing(stage, 21 * MIB)
    expect(answer.statusCode).toBe(200)
    await expect(readAll(answer)).rejects.toThrow(/aborted/)
    expect((await stage.call('small')).statusCode).toBe(200)
  })
})

test.each(['legacy http', 'modern http', 'legacy sse'] as const)(
  'a result of a %s server in an event over limits.max_message is answered as too large',
  async (kind) => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind, tools: ['big'] }) },
      options: { a: { limits: { maxMessageBytes: MIB } } },
    })
    await using host = await modernHttp.connect(gateway)
    gateway.fake('a').on('tools/call', (turn) => {
      turn.notify('notifications/message', { level: 'info', data: 'opens a stream' })
      return { content: [{ type: 'text', text: 'x'.repeat(2 * MIB) }] }
    })
    const { response } = host.begin('tools/call', { name: 'a__big', arguments: {} })
    expect(JSON.stringify(await response)).toContain('the answer of A exceeds 1 MiB (limits.max_message)')
  },
)

test('F-21: a host that stops reading loses its connection, and the server its reader', async () => {
  await using stage = await openStage('modern', 'legacy http', { maxMessageBytes: 128 * MIB, writeStallMs: 300 })
  const calling = stage.call('big')
  const { response, id } = await stage.answering
  response.on('error', () => undefined)
  const gone = once(response, 'close')
  response.writeHead(200, { 'Content-Type': 'application/json' }).write(headOf(id))
  for (let piece = 0; piece < 600; piece++) response.write(PIECE)
  const answer = await calling
  answer.on('error', () => undefined).pause()
  await gone
  expect((await stage.gateway.log.until(({ text }) => text.includes('trouble with connections'))).facts['error']).toContain(
    'listen.limits.write_stall',
  )
  answer.destroy()
})

test('an answer that has become a stream of events comes as one event', async () => {
  await using stage = await openStage('legacy', 'legacy http', { streamAfterMs: 0 })
  const calling = stage.call('big')
  const { response, id } = await stage.answering
  const answer = await calling
  expect(answer.headers['content-type']).toBe('text/event-stream')
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end(`${headOf(id)}${'x'.repeat(MIB)}${TAIL}`)
  const events = (await readAll(answer)).split('\n\n').filter((event) => event.includes('"result"'))
  expect(events).toHaveLength(1)
  const data = /^data: (.*)$/m.exec(events[0] ?? '')?.[1] ?? ''
  expect((JSON.parse(data) as Answer).result.content[0].text).toBe('x'.repeat(MIB))
})
