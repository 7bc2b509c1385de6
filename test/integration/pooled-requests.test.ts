/**
 * Long requests of hosts lie in memory that is used again once their answer is out (decision 0175). Whatever happens beside it, hosts that
 * cancel, hosts that leave and servers that answer before they read, every server gets what its host sent, byte for byte.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { expect, test, vi } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { listening } from '../support/listening.ts'
import { markedText, randomMark } from '../support/marked-text.ts'

const KIB = 1024
/** More than the kernel takes for a server that does not read, and no more than the pool keeps. */
const HUGE_BYTES = 14_000 * KIB
/** What the pool has memory for. */
const SIZES = [128 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB]
const AT_ONCE = { interval: 1, timeout: 10_000 }

interface Args {
  readonly nonce: string
  readonly text: string
}

/** What a server says of the arguments that it got. */
const verdictOn = ({ nonce, text }: Args): string => `${nonce} ${text.length} ${text === markedText(nonce, text.length)}`
const saidOf = (text: string): JsonMap => ({ content: [{ type: 'text', text }] })

const textOf = (result: unknown): string | undefined => (result as { content: { text: string }[] }).content[0]?.text

const callOf = async (host: Host, length: number, isGivenUp = false): Promise<boolean> => {
  const nonce = randomMark()
  const pending = host.begin('tools/call', { name: 'a__x', arguments: { nonce, text: markedText(nonce, length) } })
  if (isGivenUp) {
    pending.response.catch(() => undefined)
    pending.cancel()
    return true
  }
  const { result } = await pending.response
  const [block] = (result ?? {})['content'] as { text: string }[]
  return block?.text === `${nonce} ${length} true`
}

/** A modern host that sends most of a long request, and goes once the gateway has it; by the end the gateway has nothing of it. */
const leaveInTheMiddle = async ({ url, running }: TestGateway): Promise<void> => {
  const { held } = running.context.bodies
  const begun = 800 * KIB
  await vi.waitFor(() => expect(held.bytes).toBe(0), AT_ONCE)
  const socket = connect(Number(url.port), url.hostname)
  await once(socket, 'connect')
  const head = `POST /mcp HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n`
  socket.write(`${head}Content-Length: ${900 * KIB}\r\n\r\n${markedText(randomMark(), begun)}`)
  await vi.waitFor(() => expect(held.bytes).toBe(begun), AT_ONCE)
  socket.destroy()
  await vi.waitFor(() => expect(held.bytes).toBe(0), AT_ONCE)
}

test.each<FakeKind>(['legacy http', 'modern http', 'legacy stdio', 'legacy sse'])(
  'long arguments reach a %s server whole, beside hosts that cancel and leave',
  async (kind) => {
    await using gateway = await startGateway({
      servers: {
        a: fake.of({
          kind,
          tools: ['x'],
          on: {
            'tools/call': async (turn) => {
              await new Promise((resolve) => setTimeout(resolve, Math.random() * 10))
              return saidOf(verdictOn(turn.params?.['arguments'] as Args))
            },
          },
        }),
      },
    })
    const { bodies } = gateway.running.context
    const givenBack = vi.spyOn(bodies, 'giveBack')
    await using first = await legacyHttp.connect(gateway)
    await using second = await modernHttp.connect(gateway)
    const hosts = [first, second, first, second]
    for (let round = 0; round < 12; round++) {
      const length = Math.floor(60 * KIB + Math.random() * 900 * KIB)
      const isGivenUp = round % 4 === 3
      const right = await Promise.all(hosts.map((host, at) => callOf(host, length + at, isGivenUp && at < 2)))
      expect(right).toEqual([true, true, true, true])
      await leaveInTheMiddle(gateway)
    }
    // What a body lay in before it grew, or before its host left, is used again; a whole one only if it did not go to a pipe.
    const grown = new Set(givenBack.mock.calls.map(([{ buffer }]) => buffer))
    const pooled = SIZES.flatMap((size) => Array.from({ length: 16 }, () => size)).flatMap((size) => {
      const { freeBytes } = bodies
      const { buffer } = bodies.lease(size)
      return bodies.freeBytes < freeBytes ? [buffer] : []
    })
    expect(pooled.length).toBeGreaterThan(0)
    expect(pooled.some((memory) => !grown.has(memory))).toBe(kind !== 'legacy stdio')
  },
  60_000,
)

test('answers of two servers on pipes and calls of two hosts, of all sizes at once, through one memory: each is whole', async () => {
  const echo = () =>
    fake.of({
      kind: 'legacy stdio',
      tools: ['x'],
      on: {
        'tools/call': ({ params }) => {
          const args = params?.['arguments'] as Args
          return saidOf(args.text)
        },
      },
    })
  await using gateway = await startGateway({ servers: { a: echo(), b: echo() } })
  await using first = await legacyHttp.connect(gateway)
  await using second = await modernHttp.connect(gateway)
  const lengths = [1, 500, 9_000, 70_000, 400_000]
  for (let round = 0; round < 8; round++) {
    const calls = lengths.flatMap((length) =>
      [first, second].flatMap((host) => ['a__x', 'b__x'].map((name) => ({ host, name, length }))),
    )
    const right = await Promise.all(
      calls.map(async ({ host, name, length }) => {
        const nonce = randomMark()
        const text = markedText(nonce, length + round)
        return textOf(await host.call('tools/call', { name, arguments: { nonce, text } })) === text
      }),
    )
    expect(right).not.toContain(false)
  }
}, 60_000)

test('T-34 the _meta of a short request is its own, not what lies now where the same was in a long one', async () => {
  const on = { 'tools/call': () => saidOf('done') }
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'], on }) } })
  await using first = await legacyHttp.connect(gateway)
  await using second = await modernHttp.connect(gateway)
  const _meta = { 'example/conversation': 'mine' }
  const long = { name: 'a__x', arguments: { text: 'x'.repeat(200 * KIB) } }
  await first.call('tools/call', { ...long, _meta })
  for (let round = 0; round < 3; round++) await second.call('tools/call', { ...long, arguments: { text: '?'.repeat(200 * KIB) } })
  await first.call('tools/call', { name: 'a__x', arguments: {}, _meta })
  expect(gateway.fake('a').all('tools/call').at(-1)?.params).toEqual({ name: 'x', arguments: {}, _meta })
}, 60_000)

const RESULTS: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
  'tools/list': { tools: [{ name: 'x', inputSchema: { type: 'object' } }] },
}
const textFrom = async (request: IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = []
  for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

test('memory of a request that its server has answered and not read is not used again before it is sent', async () => {
  /** What the server reads of the long request, once it may: until then most of it is still to be written. */
  const late: Promise<string>[] = []
  const mayRead = Promise.withResolvers<void>()
  const answer = (id: unknown, result: object): string => JSON.stringify({ jsonrpc: '2.0', id, result })
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      if (request.method !== 'POST') return void response.writeHead(405).end()
      response.setHeader('Content-Type', 'application/json')
      if (Number(request.headers['content-length']) > HUGE_BYTES) {
        const [begun] = (await once(request, 'data')) as [Buffer]
        request.pause()
        const id = Number(/"id":(\d+)/.exec(begun.toString('latin1', 0, 200))?.[1])
        response.end(answer(id, saidOf('early')))
        const rest = mayRead.promise.then(() => textFrom(request))
        late.push(rest.then((text) => begun.toString() + text))
        return
      }
      const {
        id,
        method = '',
        params,
      } = JSON.parse(await textFrom(request)) as { id?: number; method?: string; params?: { arguments: Args } }
      if (id === undefined) return void response.writeHead(202).end()
      response.end(answer(id, RESULTS[method] ?? (method === 'tools/call' ? saidOf(verdictOn(params!.arguments)) : {})))
    }
    void serve()
  })
  // Else Node ends the connection of an answered request after 5 s.
  server.keepAliveTimeout = 0
  await using opened = await listening(server)
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy http' }) },
    options: { a: { url: new URL('/mcp', opened.url) } },
    hostLimits: { maxBodyBytes: 2 * HUGE_BYTES },
  })
  await using slow = await legacyHttp.connect(gateway)
  await using fast = await legacyHttp.connect(gateway)
  const nonce = randomMark()
  const text = markedText(nonce, HUGE_BYTES)
  const early = await slow.call('tools/call', { name: 'a__x', arguments: { nonce, text } })
  expect(early).toMatchObject(saidOf('early'))
  for (let round = 0; round < 5; round++) expect(await callOf(fast, HUGE_BYTES - 1_000)).toBe(true)
  mayRead.resolve()
  const sent = JSON.parse(await late[0]!) as { params: { arguments: Args } }
  expect(verdictOn(sent.params.arguments)).toBe(`${nonce} ${HUGE_BYTES} true`)
}, 60_000)
