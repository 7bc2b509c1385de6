/** Hosts that read slowly: whoever speaks to them alone is read as slowly, and what others use is never held up (F-21). */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { fake } from '../../support/fake-downstream.ts'
import type { FakeSpec } from '../../support/fake-downstream.ts'
import { legacySse, modernHttp } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import { connectHttp } from '../../support/fakes/http-hosts.ts'
import { KEY, MODERN, request } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { openFaultProxy } from '../../support/fault-proxy.ts'
import { slowRelay } from '../../support/faults/slow-relay.ts'

const MESSAGES = 600
const SIZE = 20_000
/** So many times `MESSAGES` is more than the buffers of any system take for a host: Linux gives 4 MB to a sender and up to 32 MB to a reader. */
const BIG_SIZE = 200_000
const MARK = 'words of the server'

/** A tool that says far more than may wait for a host before it answers. */
const chatty: FakeSpec['on'] = {
  'tools/call': async (turn) => {
    const {
      quiet = false,
      size = SIZE,
      restMs = 0,
    } = turn.params['arguments'] as { quiet?: boolean; size?: number; restMs?: number }
    if (quiet) return { content: [] }
    const data = MARK + 'x'.repeat(size)
    for (let at = 0; at < MESSAGES; at++) turn.notify('notifications/message', { level: 'info', data })
    await delay(restMs)
    return { content: [] }
  },
}
const modernBodyOf = (size: number, restMs = 0): string =>
  request(1, 'tools/call', {
    name: 'a__t',
    arguments: { size, restMs },
    _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {}, [KEY.logLevel]: 'info' },
  })
const modernBody = modernBodyOf(SIZE)
const modernHeaders = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'a__t' }

/** Posts over a socket of which little is read at a time; resolves with how many messages came, and whether the answer did. */
const readSlowly = async (
  { url }: TestGateway,
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
  restMs = 2,
  /** Awaited before the first read. */
  before?: Promise<unknown>,
): Promise<{ messages: number; isAnswered: boolean }> => {
  const socket: Socket = connect(Number(url.port), '127.0.0.1')
  const fields = {
    host: 'localhost',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...headers,
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`)
  let [messages, rest, isAnswered] = [0, '', false]
  socket.on('error', () => undefined)
  await before
  socket.on('data', (chunk: Buffer) => {
    const text = rest + chunk.toString('latin1')
    messages += text.split(MARK).length - 1
    isAnswered ||= text.includes('"result"')
    rest = text.slice(-MARK.length + 1)
    if (restMs === 0) return
    socket.pause()
    setTimeout(() => socket.resume(), restMs)
  })
  await new Promise((resolve) => socket.once('close', resolve))
  return { messages, isAnswered }
}

const ALL = { messages: MESSAGES, isAnswered: true }

describe('F-21 a host that reads slowly gets everything, because its source waits', () => {
  test.each(['modern http', 'legacy http'] as const)('from a %s server, on the response to its request', async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['t'], on: chatty }) } })
    expect(await readSlowly(gateway, modernHeaders, modernBody)).toEqual(ALL)
  })

  test.each(['legacy stdio', 'legacy sse'] as const)('from a %s server, on the link of its session', async (kind) => {
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['t'], on: chatty }) } })
    await using host = await connectHttp(gateway, { deaf: true })
    const body = request(7, 'tools/call', { name: 'a__t', arguments: {} })
    expect(await readSlowly(gateway, host.headers(), body, 10)).toEqual(ALL)
  })
})

test('F-21 an HTTP+SSE host that reads one big event slowly keeps its stream: it has not stalled', async () => {
  const text = 'x'.repeat(15_000_000)
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['t'], on: { 'tools/call': () => ({ content: [{ type: 'text', text }] }) } }) },
    hostLimits: { writeStallMs: 1_500 },
  })
  await using relay = await slowRelay(gateway.url, 15)
  await using host = await legacySse.connect({ ...gateway, url: relay.url })
  const { result } = await host.begin('tools/call', { name: 'a__t', arguments: {} }).response
  expect(result?.['content']).toEqual([{ type: 'text', text }])
})

/** A server that answers its calls together, with 400 KB each, once `count` have come. */
const answersTogether = (count: number): FakeSpec => {
  const all = Promise.withResolvers<void>()
  let calls = 0
  return {
    tools: ['t'],
    on: {
      'tools/call': async () => {
        if (++calls === count) all.resolve()
        await all.promise
        return { content: [{ type: 'text', text: 'x'.repeat(400_000) }] }
      },
    },
  }
}
const CALLS = 60
const beginCalls = (host: Host) => Array.from({ length: CALLS }, () => host.begin('tools/call', { name: 'a__t', arguments: {} }))

test.each(['own', 'node'] as const)(
  'F-21 T-23 an HTTP+SSE host that reads slowly gets all of many answers (%s)',
  async (httpServer) => {
    await using gateway = await startGateway({ servers: { a: fake.of(answersTogether(CALLS)) }, host: { httpServer } })
    await using relay = await slowRelay(gateway.url)
    await using host = await legacySse.connect({ ...gateway, url: relay.url })
    const answers = await Promise.all(beginCalls(host).map(({ response }) => response))
    expect(answers.map(({ result }) => JSON.stringify(result).length > 400_000)).toEqual(answers.map(() => true))
    expect(gateway.running.limits.all).toEqual([])
  },
)

test('F-21 T-23 an HTTP+SSE host that reads none of many answers loses its stream, before it counts as stalled', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of(answersTogether(CALLS)) },
    hostLimits: { writeStallMs: 6_000 },
  })
  await using proxy = await openFaultProxy(Number(gateway.url.port))
  await using host = await legacySse.connect({ ...gateway, url: new URL(`http://127.0.0.1:${proxy.port}/mcp`) })
  const ends = beginCalls(host).map(({ response }) => response.catch(() => 'lost'))
  await gateway.fake('a').journal.when(() => (gateway.fake('a').all('tools/call').length === CALLS ? true : undefined))
  proxy.set({ type: 'stall' })
  await gateway.log.until(({ text }) => text === 'listen.limits.max_queued reached')
  proxy.set({ type: 'none' })
  expect(await Promise.all(ends)).toContain('lost')
})

test('F-21 an ended stream of which its host reads nothing is closed', async () => {
  const text = 'x'.repeat(15_000_000)
  const on: FakeSpec['on'] = {
    'tools/call': (turn) => {
      turn.progress(1)
      return { content: [{ type: 'text', text }] }
    },
  }
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy http', tools: ['t'], on }) },
    hostLimits: { writeStallMs: 500 },
  })
  const body = request(1, 'tools/call', {
    name: 'a__t',
    arguments: {},
    _meta: { progressToken: 1, [KEY.version]: MODERN, [KEY.capabilities]: {} },
  })
  const closed = gateway.log.until(({ text }) => text === 'listen.limits.write_stall reached')
  await readSlowly(gateway, modernHeaders, body, 0, closed)
  expect(gateway.running.limits.all).toContainEqual({ option: 'listen.limits.write_stall', server: undefined, count: 1 })
})

test('F-21 a host that reads a burst of events a moment later gets all of it', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['t'], on: chatty }) } })
  // A second user of the pipe, so that it is read all the time.
  await using _other = await modernHttp.connect(gateway)
  expect(await readSlowly(gateway, modernHeaders, modernBodyOf(60_000, 800), 0, delay(600))).toEqual(ALL)
})

test('F-21 a pipe that others use is never held up: the slow host is cut off, everybody else is answered', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['t'], on: chatty }) } })
  await using other = await modernHttp.connect(gateway)
  await using third = await legacySse.connect(gateway)
  const slow = readSlowly(gateway, modernHeaders, modernBodyOf(BIG_SIZE), 50)
  await gateway.log.until(({ text }) => text === 'listen.limits.max_queued reached')
  for (const host of [other, third])
    expect(await host.call('tools/call', { name: 'a__t', arguments: { quiet: true } })).toMatchObject({ content: [] })
  expect((await slow).isAnswered).toBe(false)
  expect(gateway.running.limits.all).toContainEqual({ option: 'listen.limits.max_queued', server: undefined, count: 1 })
})
