/** Plain requests read by us (`listen.http.server: own`): a host can see no difference to node:http, which reads them with `node`. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request as nodeRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Pool } from 'undici'
import { describe, expect, test, vi } from 'vitest'
import type { BodyWriter } from '../../../src/transport/http1/server/request/body-writer.ts'
import type { EventStream } from '../../../src/transport/http1/server/request/event-stream.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import type { HttpServerChoice, HttpServerOptions } from '../../../src/transport/http1/server/http-server.ts'
import { corpus, unpack } from '../../support/corpus.ts'
import type { Packed } from '../../support/corpus.ts'
import { isNodes, openDoor, taken } from '../../support/http-door.ts'
import type { Door, Wire } from '../../support/http-door.ts'

const BOTH: readonly HttpServerChoice[] = ['own', 'node']
const HOST = 'Host: localhost\r\n'
const post = (path: string, body = '', headers = ''): string =>
  `POST ${path} HTTP/1.1\r\n${HOST}${headers}Content-Length: ${body.length}\r\n\r\n${body}`
const GET = `GET /get HTTP/1.1\r\n${HOST}\r\n`

const bare = (method: string): string => `${method} /a HTTP/1.1\r\n${HOST}Origin: http://a.example\r\n\r\n`
const chunked = (chunks: string, path = '/a'): string =>
  `POST ${path} HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${chunks}`
const cut = (text: string, size: number): string[] =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size))

const TEXT = { 'Content-Type': 'text/plain' }
const MAX_BODY_BYTES = 1_000
/** Answers with what was asked. */
const echo = (request: HttpRequest): void =>
  request.readBody(MAX_BODY_BYTES, (body) => {
    if (!Buffer.isBuffer(body)) return request.reply(413, TEXT, [Buffer.from(body)])
    request.reply(200, TEXT, [Buffer.from(`${request.method} ${request.path} ${request.query} `), body])
  })
const reply = (request: HttpRequest, text = 'late'): void => request.reply(200, TEXT, [Buffer.from(text)])

type Serve = (request: HttpRequest) => void
/** Paths beside those that echo. */
const ROUTES: Readonly<Record<string, Serve>> = {
  '/big': (request) =>
    request.readBody(4_000_000, (body) => {
      if (!Buffer.isBuffer(body)) return request.reply(413, TEXT, [Buffer.from(body)])
      request.reply(200, TEXT, [Buffer.from(`${body.length} ${createHash('sha256').update(body).digest('hex')}`)])
    }),
  '/unread': (request) => request.reply(200, TEXT, [Buffer.from('not read')]),
  '/refused': (request) => request.reply(401, { Connection: 'close' }),
  '/accepted': (request) => request.reply(202, {}),
  '/nothing': (request) => request.reply(204, {}),
  '/hold': () => undefined,
  '/fail': (request) => request.fail(),
  '/size': (request) => {
    const size = Number(request.query)
    request.reply(200, TEXT, [Buffer.alloc(Math.floor(size / 3), 'a'), Buffer.alloc(size - Math.floor(size / 3), 'b')])
  },
  '/pieces': (request) => {
    const body = request.replyInPieces(
      200,
      TEXT,
      () => undefined,
      () => undefined,
    )
    body.write(Buffer.alloc(100_000, 'p'))
    body.end()
  },
  '/events': (request) => {
    const stream = request.openEvents({ 'X-A': 'b' })
    stream.message([Buffer.from('{"a":1}')], '7')
    stream.end()
  },
  '/extra': (request) => {
    request.addHeaders({ 'Access-Control-Allow-Origin': 'http://a.example', Vary: 'Origin' })
    request.reply(503, { 'Retry-After': '1', Connection: 'close' })
  },
  '/bad-header': (request) => {
    try {
      request.reply(200, { 'X-A': 'a\r\nX-Forged: b' }, [Buffer.from('x')])
    } catch {
      request.fail()
    }
  },
  '/bad-stream': (request) => {
    try {
      request.openEvents({ 'X-A': 'a\nX-Forged: b' })
    } catch {
      request.fail()
    }
  },
}
const serve: Serve = (request) => (ROUTES[request.path] ?? echo)(request)

/** Sends pieces, each once the one before has been taken. */
const sendPieces = async (door: Door, wire: Wire, pieces: readonly string[]): Promise<void> => {
  const socket = await door.sockets.when(() =>
    door.sockets.entries.find(({ remotePort }) => remotePort === wire.socket.localPort),
  )
  let sent = 0
  for (const piece of pieces) {
    wire.send(piece)
    sent += piece.length
    await taken(socket, sent)
  }
}
const connected = async (door: Door): Promise<Wire> => {
  const wire = door.open()
  await once(wire.socket, 'connect')
  return wire
}

/** A request whose host has gone. */
const abandoned = async (door: Door): Promise<HttpRequest> => {
  const wire = await connected(door)
  wire.send(post('/hold'))
  const held = await door.requests.until(({ path }) => path === '/hold')
  const gone = new Promise<void>((resolve) => held.onDisconnect(resolve))
  wire.socket.destroy()
  await gone
  return held
}

/** Asks for small answers that the host does not take, one after the other, until our end is as it should be; returns how many. */
const fillUp = async (door: Door, wire: Wire, isSo: (socket: Socket) => boolean): Promise<number> => {
  for (let count = 1; ; count++) {
    wire.send(post('/size?60000'))
    const socket = await door.sockets.when(() => door.sockets.entries[0])
    await vi.waitUntil(() => socket.bytesWritten >= count * 60_000, { interval: 1 })
    if (isSo(socket)) return count
  }
}

interface Scenario {
  readonly pieces: readonly string[]
  readonly statuses: readonly number[]
  /** The connection is closed behind the last answer. */
  readonly closes?: true
  readonly options?: Partial<HttpServerOptions>
}
const FORM = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n'
const BIG_HEAD = post('/a', '{}', `X: ${'a'.repeat(3_000)}\r\n`)
const MANY_LINES = post('/a', '{}', Array.from({ length: 20 }, (_, at) => `X-${at}: a\r\n`).join(''))

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'one request': { pieces: [post('/a?b=c', '{"a":1}', FORM)], statuses: [200] },
  'no body': { pieces: [post('/a')], statuses: [200] },
  'head and body in two writes': { pieces: [post('/a', '{}').slice(0, -2), '{}'], statuses: [200] },
  'head and body cut anywhere, again and again': {
    pieces: [5, 30, 60].flatMap((at) => [post('/a', '{"a":1}').slice(0, at), post('/a', '{"a":1}').slice(at)]),
    statuses: [200, 200, 200],
  },
  'a byte at a time': { pieces: (post('/a', '{}') + post('/b', '{}')).split(''), statuses: [200, 200] },
  'two in one write': { pieces: [post('/a', '1') + post('/b', '2')], statuses: [200, 200] },
  'twenty in one write': { pieces: [post('/a', '1').repeat(20)], statuses: Array.from({ length: 20 }, () => 200) },
  'one and a half, and the rest': {
    pieces: [post('/a', '1') + post('/b', '2').slice(0, 30), post('/b', '2').slice(30)],
    statuses: [200, 200],
  },
  'plain and GET in one write': { pieces: [post('/a', '1') + GET], statuses: [200, 200] },
  'plain and garbage in one write': {
    pieces: [`${post('/a', '1')}\x16\x03\x01garbage\r\n\r\n`],
    statuses: [400],
    closes: true,
  },
  'OPTIONS, POST, DELETE, GET, POST': {
    pieces: [bare('OPTIONS'), post('/a', '1'), bare('DELETE'), GET, post('/b', '2')],
    statuses: [200, 200, 200, 200, 200],
  },
  'OPTIONS and half of one, and the rest': {
    pieces: [bare('OPTIONS') + bare('OPTIONS').slice(0, 20), bare('OPTIONS').slice(20)],
    statuses: [200, 200],
  },
  'a GET with a body': { pieces: [GET.replace('\r\n\r\n', '\r\nContent-Length: 1\r\n\r\n1'), GET], statuses: [200, 200] },
  'a body in many pieces, and another': {
    pieces: [...cut(post('/a', 'x'.repeat(900)), 70), ...cut(post('/a', 'y'.repeat(700)), 70), post('/a', '1')],
    statuses: [200, 200, 200],
  },
  'a body in two pieces, the second with the next request': {
    pieces: [post('/a', '12').slice(0, -1), `2${post('/b', '3')}`, post('/c')],
    statuses: [200, 200, 200],
  },
  'a body of 1 MB in pieces': { pieces: [...cut(post('/big', 'x'.repeat(1_000_000)), 60_000), post('/a')], statuses: [200, 200] },
  'a body over the limit, in pieces': {
    pieces: [post('/a', 'x'.repeat(MAX_BODY_BYTES + 1)).slice(0, -500)],
    statuses: [413],
    closes: true,
  },
  'a body that is not waited for, and the next request': {
    pieces: [...cut(post('/unread', 'x'.repeat(900)), 400), post('/a', '1')],
    statuses: [200, 200],
  },
  'a body that is not waited for, with the next request behind it': {
    pieces: [...cut(post('/unread', 'x'.repeat(900)) + post('/b', '2'), 400), post('/a', '1')],
    statuses: [200, 200, 200],
  },
  'a big body that is not waited for': {
    pieces: [...cut(post('/unread', 'x'.repeat(500_000)), 60_000), post('/a', '1')],
    statuses: [200, 200],
  },
  'a refused body in pieces, and nothing behind it is carried out': {
    pieces: [post('/refused', '1234').slice(0, -2)],
    statuses: [401],
    closes: true,
  },
  'plain, GET, plain, one after the other': { pieces: [post('/a', '1'), GET, post('/b', '2')], statuses: [200, 200, 200] },
  'another length, another head': {
    pieces: [post('/a', '1'), post('/a', '22'), post('/b', '1', 'X: y\r\n')],
    statuses: [200, 200, 200],
  },
  'chunked, as .NET and Go write it, in one write and in several': {
    pieces: [chunked('5\r\nhello\r\n0\r\n\r\n'), ...cut(chunked('5\r\nhello\r\n0\r\n\r\n'), 40), post('/b')],
    statuses: [200, 200, 200],
  },
  'chunked in several chunks, an empty one, and a byte at a time': {
    pieces: [
      chunked('5\r\nhello\r\n1F\r\n' + 'x'.repeat(31) + '\r\n0\r\n\r\n'),
      chunked('0\r\n\r\n'),
      ...cut(chunked('5\r\nhello\r\n0\r\n\r\n'), 1),
    ],
    statuses: [200, 200, 200],
  },
  'chunked with an extension and a trailer': {
    pieces: [chunked('5;a=b\r\nhello\r\n0\r\n\r\n'), chunked('5\r\nhello\r\n0\r\nX: y\r\n\r\n'), post('/b')],
    statuses: [200, 200, 200],
  },
  'chunked over the limit of bodies': {
    pieces: [chunked(`3e9\r\n${'x'.repeat(1_001)}\r\n0\r\n\r\n`)],
    statuses: [413],
    closes: true,
  },
  'chunked beyond what is kept': {
    pieces: [...cut(chunked(`30d40\r\n${'x'.repeat(200_000)}\r\n0\r\n\r\n`, '/big'), 60_000), post('/b')],
    statuses: [200, 200],
  },
  'chunked and two requests in one write': {
    pieces: [chunked('5\r\nhello\r\n0\r\n\r\n') + post('/b')],
    statuses: [200, 200],
  },
  'chunked, and no chunks': { pieces: [chunked('hello\r\n')], statuses: [400], closes: true },
  'chunked, and broken behind the first chunk': {
    pieces: [chunked('5\r\nhelloworld\r\n0\r\n\r\n')],
    statuses: [400],
    closes: true,
  },
  'a length and chunks': {
    pieces: [post('/a', '0\r\n\r\n', 'Transfer-Encoding: chunked\r\n')],
    statuses: [400],
    closes: true,
  },
  chunked: {
    pieces: [`POST /a HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, post('/b')],
    statuses: [200, 200],
  },
  'Connection: close': { pieces: [post('/a', '1', 'Connection: close\r\n')], statuses: [200], closes: true },
  'HTTP/1.0': { pieces: [post('/a', '1').replace('/1.1', '/1.0')], statuses: [200], closes: true },
  'a body over the limit': { pieces: [post('/a', 'x'.repeat(MAX_BODY_BYTES + 1))], statuses: [413], closes: true },
  'a request behind a body over the limit': {
    pieces: [post('/a', 'x'.repeat(MAX_BODY_BYTES + 1)) + post('/b')],
    statuses: [413],
    closes: true,
  },
  'a head over max_header': { pieces: [BIG_HEAD], statuses: [431], closes: true, options: { maxHeaderBytes: 2_000 } },
  'more lines than header_lines': { pieces: [MANY_LINES], statuses: [431], closes: true, options: { maxHeaderLines: 20 } },
  'answers without a body': { pieces: [post('/accepted'), post('/nothing'), post('/size?0')], statuses: [202, 204, 200] },
  'a small answer': { pieces: [post('/size?100')], statuses: [200] },
  'the biggest answer that is joined': { pieces: [post(`/size?${64 * 1024 - 1}`), post('/a')], statuses: [200, 200] },
  'the smallest that is not': { pieces: [post(`/size?${64 * 1024}`), post('/a')], statuses: [200, 200] },
  'an answer of 5 MB': { pieces: [post('/size?5000000') + post('/a')], statuses: [200, 200] },
  'an answer in pieces': { pieces: [post('/pieces'), post('/a')], statuses: [200, 200] },
  'events, and the next request': { pieces: [post('/events'), post('/a')], statuses: [200, 200] },
  'headers of ours, and a connection that we do not keep': { pieces: [post('/extra')], statuses: [503], closes: true },
  'a failure before the answer': { pieces: [post('/fail')], statuses: [500], closes: true },
}

const play = async (choice: HttpServerChoice, scenario: Scenario): Promise<string[]> => {
  await using door = await openDoor(choice, serve, scenario.options)
  const wire = await connected(door)
  const [sent, answers] = await Promise.all([sendPieces(door, wire, scenario.pieces), wire.answers(scenario.statuses.length)])
  expect(sent).toBeUndefined()
  if (scenario.closes) expect(await wire.closed).toBe(answers.join(''))
  return answers
}
const statusesOf = (answers: readonly string[]): number[] => answers.map((answer) => Number(answer.slice(9, 12)))

describe('own and node answer byte for byte the same to', () => {
  test.each(Object.entries(SCENARIOS))('%s', async (_what, scenario) => {
    const [own, node] = await Promise.all([play('own', scenario), play('node', scenario)])
    expect(statusesOf(own)).toEqual(scenario.statuses)
    expect(own).toEqual(node)
  })

  test('T-22 every broken request of the corpus, with a good one behind it', async () => {
    const all = async (choice: HttpServerChoice): Promise<string[]> => {
      await using door = await openDoor(choice, serve, { headersTimeoutMs: 500, requestTimeoutMs: 800, keepAliveTimeoutMs: 100 })
      const rows = corpus('bad-requests') as (readonly [name: string, ...packed: Packed])[]
      return await Promise.all(rows.map(async ([name, ...packed]) => `${name}: ${await door.open(unpack(packed) + GET).closed}`))
    }
    const [own, node] = await Promise.all([all('own'), all('node')])
    expect(own.length).toBeGreaterThanOrEqual(100)
    expect(own).toEqual(node)
  })

  test.each([
    ['a request', post('/a', '1')],
    ['half a head', post('/a', '1').slice(0, 20)],
    ['half a body', post('/a', '12').slice(0, -1)],
    ['nothing', ''],
    ['two requests', post('/a', '1') + post('/b', '2')],
    ['a request and half of one', post('/a', '1') + post('/b', '2').slice(0, 30)],
    ['a request and a GET', post('/a', '1') + GET],
    ['OPTIONS', bare('OPTIONS')],
    ['half of OPTIONS', bare('OPTIONS').slice(0, 20)],
    ['half a body that is not waited for', post('/unread', '12').slice(0, -1)],
    ['half a chunk', chunked('5\r\nhel')],
    ['chunks without their last one', chunked('5\r\nhello\r\n')],
    ['chunks', chunked('5\r\nhello\r\n0\r\n\r\n')],
    ['a request whose answer is big', post('/size?300000')],
  ])('%s, and an end', async (_what, text) => {
    const say = async (choice: HttpServerChoice): Promise<string> => {
      await using door = await openDoor(choice, serve)
      const wire = await connected(door)
      wire.socket.end(text, 'latin1')
      return await wire.closed
    }
    expect(await say('own')).toBe(await say('node'))
  })
})

describe.each(BOTH)('with %s', (choice) => {
  test('answers come in the order of requests, whichever is ready first, and none is lost', async () => {
    await using door = await openDoor(choice, serve)
    const wire = await connected(door)
    wire.send(post('/hold'))
    const held = await door.requests.until(({ path }) => path === '/hold')
    const [socket] = door.sockets.entries
    const rest = post('/a', '1') + GET + post('/b', '2')
    wire.send(rest)
    if (socket !== undefined) await taken(socket, post('/hold').length + rest.length)
    reply(held)
    const bodies = (await wire.answers(4)).map((answer) => answer.split('\r\n\r\n')[1])
    expect(bodies).toEqual(['late', 'POST /a  1', 'GET /get  ', 'POST /b  2'])
  })

  test('more than 64 KiB that come before their turn wait, and are answered', async () => {
    await using door = await openDoor(choice, serve)
    const wire = await connected(door)
    wire.send(post('/hold'))
    const held = await door.requests.until(({ path }) => path === '/hold')
    const early = post('/a', 'x'.repeat(900)).repeat(300)
    wire.send(early)
    const [socket] = door.sockets.entries
    if (socket !== undefined) await taken(socket, 66 * 1024)
    reply(held)
    expect(statusesOf(await wire.answers(301))).toEqual(Array.from({ length: 301 }, () => 200))
  })

  test('a connection is kept over 1,000 requests', async () => {
    await using door = await openDoor(choice, serve)
    const wire = await connected(door)
    for (let at = 1; at <= 1_000; at++) {
      wire.send(post('/accepted', 'x'.repeat(at % 12)))
      await door.requests.when(() => (door.requests.entries.length === at ? true : undefined))
      if (at % 50 === 0) await wire.answers(at)
    }
    expect(await wire.answers(1_000)).toHaveLength(1_000)
    expect(door.sockets.entries).toHaveLength(1)
  })

  test('who has left before its request is taken up is a disconnect too, told later, and its stream is closed', async () => {
    await using door = await openDoor(choice, () => undefined)
    const wire = door.open(GET)
    const request = await door.requests.until(() => true)
    const gone = new Promise<void>((resolve) => request.onDisconnect(resolve))
    wire.socket.destroy()
    await gone
    // The socket has told everybody by then.
    await new Promise((resolve) => setImmediate(resolve))
    let isTold = false
    const late = new Promise<void>((resolve) =>
      request.onDisconnect(() => {
        isTold = true
        resolve()
      }),
    )
    // Whoever asks has not finished its own beginning.
    expect(isTold).toBe(false)
    await late
    await new Promise<void>((resolve) => request.openEvents({}).onClose(resolve))
  })

  test('who ends its side while a request is under way, having said more or not, gets no answer, and that is a disconnect', async () => {
    await using door = await openDoor(choice, serve)
    for (const early of ['', post('/a'), post('/a').slice(0, 30)]) {
      door.requests.clear()
      const wire = await connected(door)
      wire.send(post('/hold'))
      const held = await door.requests.until(({ path }) => path === '/hold')
      const gone = new Promise<void>((resolve) => held.onDisconnect(resolve))
      wire.socket.end(early, 'latin1')
      await gone
      reply(held)
      expect(await wire.closed).not.toContain('late')
    }
  })

  test('a host that goes before its answer is told of once; one that was answered, not at all', async () => {
    const gone: string[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    await using door = await openDoor(choice, (request) => {
      request.onDisconnect(() => gone.push(request.path))
      if (request.path === '/hold') request.onDisconnect(resolve)
      serve(request)
    })
    const wire = await connected(door)
    await wire.send(post('/a')).answers(1)
    await wire.send(post('/size?100000')).answers(2)
    await wire.send(post('/events')).answers(3)
    wire.send(post('/hold'))
    const held = await door.requests.until(({ path }) => path === '/hold')
    wire.socket.destroy()
    await promise
    reply(held)
    expect(gone).toEqual(['/hold'])
  })

  test('an answer that is given when its host has just gone harms nobody', async () => {
    await using door = await openDoor(choice, serve)
    for (const answer of [
      (request: HttpRequest) => reply(request),
      (request: HttpRequest) => request.reply(200, TEXT, [Buffer.alloc(200_000)]),
      (request: HttpRequest) => request.fail(),
      (request: HttpRequest) => request.openEvents({}).message([Buffer.from('x')]),
    ]) {
      door.requests.clear()
      answer(await abandoned(door))
    }
    expect(statusesOf(await door.open(post('/a')).answers(1))).toEqual([200])
    expect(door.bodies.held.bytes).toBe(0)
  })

  test('a stream that is opened for a host that has gone is not open', async () => {
    await using door = await openDoor(choice, serve)
    expect((await abandoned(door)).openEvents({}).isOpen).toBe(false)
  })

  test('a host that goes in a stream ends it, once', async () => {
    const seen: string[] = []
    const streams: EventStream[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    await using door = await openDoor(choice, (request) => {
      request.onDisconnect(() => seen.push('gone'))
      const stream = request.openEvents({})
      stream.onClose(() => {
        seen.push('closed')
        resolve()
      })
      stream.message([Buffer.from('1')])
      streams.push(stream)
    })
    const wire = door.open(post('/'))
    await wire.until((text) => text.includes('data: 1\n\n'))
    wire.socket.destroy()
    await promise
    expect(seen.toSorted()).toEqual(['closed', 'gone'])
    expect(streams.map(({ isOpen }) => isOpen)).toEqual([false])
  })

  test('a stream goes on when its host sends its next request early, which is answered behind it', async () => {
    const streams: EventStream[] = []
    await using door = await openDoor(choice, (request) => {
      if (request.path === '/stream') streams.push(request.openEvents({}))
      else serve(request)
    })
    const wire = await connected(door)
    await wire.send(post('/stream')).until((text) => text.includes('\r\n\r\n'))
    wire.send(post('/a', '1'))
    const [socket] = door.sockets.entries
    if (socket !== undefined) await taken(socket, post('/stream').length + post('/a', '1').length)
    for (const text of ['1', '2']) {
      streams[0]?.message([Buffer.from(text)])
      expect(await wire.until((came) => came.includes(`data: ${text}\n\n`))).not.toContain('POST /a')
    }
    streams[0]?.end()
    expect((await wire.answers(2)).at(-1)).toMatch(/POST \/a {2}1$/)
  })

  test('who goes in the middle of a body is told of once, and nothing stays held', async () => {
    const gone: string[] = []
    await using door = await openDoor(choice, (request) => {
      request.onDisconnect(() => gone.push(request.path))
      serve(request)
    })
    const wire = await connected(door)
    wire.send(post('/big', 'x'.repeat(500_000)).slice(0, -1))
    const socket = await door.sockets.when(() => door.sockets.entries[0])
    await taken(socket, 500_000)
    expect(door.bodies.held.bytes).toBeGreaterThan(400_000)
    wire.socket.destroy()
    await expect.poll(() => gone).toEqual(['/big'])
    expect(door.bodies.held.bytes).toBe(0)
  })

  test('F-30 bodies beyond what may be held in all are refused, and their connections closed', async () => {
    await using door = await openDoor(choice, serve)
    door.bodies.held.max = 100_000
    const wire = await connected(door)
    wire.send(post('/big', 'x'.repeat(500_000)))
    expect(statusesOf([await wire.closed])).toEqual([413])
    expect(door.bodies.held.bytes).toBe(0)
  })

  test('a failure in an answer that has begun breaks the connection', async () => {
    await using door = await openDoor(choice, (request) => {
      request.openEvents({}).message([Buffer.from('1')])
      setImmediate(() => request.fail())
    })
    const came = await door.open(post('/')).closed
    expect(came).toContain('data: 1')
    expect(came).not.toMatch(/0\r\n\r\n$/)
  })

  test('a stream that is broken off sends what was written, and no mark of an end', async () => {
    const streams: EventStream[] = []
    await using door = await openDoor(choice, (request) => {
      const stream = request.openEvents({})
      stream.message([Buffer.alloc(8 * 1024 * 1024, '#')])
      stream.breakOff()
      stream.message([Buffer.from('too late')])
      streams.push(stream)
    })
    const came = await door.open(post('/')).closed
    expect(came.replaceAll(/[^#]/g, '')).toHaveLength(8 * 1024 * 1024)
    expect(came).toMatch(/\n\n\r\n$/)
    expect(came).not.toMatch(/\r\n0\r\n\r\n$/)
    expect(came).not.toContain('too late')
    expect(streams.map(({ isOpen }) => isOpen)).toEqual([false])
  })

  test('F-21 a body that comes faster than its host reads is held back, and arrives whole', async () => {
    const flow: string[] = []
    const { promise: full, resolve: onFull } = Promise.withResolvers<void>()
    let body: BodyWriter | undefined
    await using door = await openDoor(choice, (request) => {
      body = request.replyInPieces(
        200,
        { ...TEXT, Connection: 'close' },
        () => {
          flow.push('full')
          onFull()
        },
        () => {
          flow.push('drained')
          body?.end()
        },
      )
    })
    const wire = await connected(door)
    wire.socket.pause()
    wire.send(post('/'))
    await door.requests.until(() => true)
    for (let piece = 0; piece < 16; piece++) body?.write(Buffer.alloc(1024 * 1024, '#'))
    await full
    wire.socket.resume()
    const answer = await wire.closed
    expect(answer.replaceAll(/[^#]/g, '')).toHaveLength(16 * 1024 * 1024)
    expect(answer).toMatch(/\r\n0\r\n\r\n$/)
    expect(flow).toEqual(['full', 'drained'])
  })

  test('F-21 a host that takes nothing of a big answer loses its connection, is counted, and nothing stays held', async () => {
    await using door = await openDoor(choice, serve, { writeStallMs: 200 })
    const wire = await connected(door)
    wire.socket.pause()
    wire.send(post('/size?30000000'))
    const { bodies } = door
    const held = await door.requests.when(() => door.requests.entries[0])
    const gone = new Promise<void>((resolve) => held.onDisconnect(resolve))
    expect(bodies.held.bytes).toBe(30_000_000)
    expect(await door.reached.until(() => true)).toBe('listen.limits.write_stall')
    await gone
    await expect.poll(() => bodies.held.bytes).toBe(0)
    expect(door.reached.entries).toEqual(['listen.limits.write_stall'])
  })

  test.each(['/bad-header', '/bad-stream'])('T-20 a line break in a header of an answer makes it a 500, at %s', async (path) => {
    await using door = await openDoor(choice, serve)
    const answer = await door.open(post(path)).closed
    expect(answer).toMatch(/^HTTP\/1\.1 500 /)
    expect(answer).not.toContain('Forged')
  })

  test('T-23 a silent connection, half a head and half a body are answered 408 with the option that says so', async () => {
    await using door = await openDoor(choice, serve, { headersTimeoutMs: 200, requestTimeoutMs: 400 })
    const slow = [post('/a').slice(0, 20), post('/a', '12').slice(0, -1)].map((text) => door.open(text))
    const kept = door.open(post('/a'))
    await kept.answers(1)
    kept.send(post('/a', '1').slice(0, 20))
    const [silent, head, body, again] = await Promise.all([door.open(), ...slow, kept].map(({ closed }) => closed))
    const says = (option: string): RegExp => new RegExp(`HTTP/1\\.1 408 Request Timeout\r\n[^]*\r\n\r\n${option} `)
    expect(silent).toMatch(says('listen.limits.headers_timeout'))
    expect(head).toMatch(says('listen.limits.headers_timeout'))
    expect(again).toMatch(says('listen.limits.headers_timeout'))
    expect(body).toMatch(says('listen.limits.request_timeout'))
    expect(door.reached.entries.toSorted()).toEqual([
      ...Array.from({ length: 3 }, () => 'listen.limits.headers_timeout'),
      'listen.limits.request_timeout',
    ])
  })

  test('an idle connection is closed', async () => {
    await using door = await openDoor(choice, serve, { keepAliveTimeoutMs: 1_000 })
    const wire = door.open(post('/a'))
    const [answer] = await wire.answers(1)
    expect(answer).toContain('Keep-Alive: timeout=1\r\n')
    expect(await wire.closed).toBe(answer)
  })

  test('once it stops accepting, idle connections are closed, new ones refused, and what is under way is answered', async () => {
    await using door = await openDoor(choice, serve)
    const [idle, busy] = [await connected(door), await connected(door)]
    await idle.send(post('/a')).answers(1)
    busy.send(post('/hold'))
    const held = await door.requests.until(({ path }) => path === '/hold')
    const stopped = door.listening.stopAccepting()
    expect(statusesOf([await idle.closed])).toEqual([200])
    await stopped
    const late = door.open()
    const [error] = (await once(late.socket, 'error')) as [NodeJS.ErrnoException]
    expect(error.code).toBe('ECONNREFUSED')
    reply(held)
    const [answer] = await busy.answers(1)
    expect(answer).toContain('late')
  })

  test('F-22 connections that the kernel has completed before it stops accepting are served', async () => {
    await using door = await openDoor(choice, serve)
    const waiting = Array.from({ length: 20 }, () => door.open(post('/a')))
    await door.listening.stopAccepting()
    const answers = await Promise.all(waiting.map(({ closed }) => closed))
    expect(statusesOf(answers)).toEqual(waiting.map(() => 200))
    expect(answers.every((answer) => answer.includes('Connection: close\r\n'))).toBe(true)
  })

  test('closing sends what has been answered, and ends everything', async () => {
    const streams: EventStream[] = []
    await using door = await openDoor(choice, (request) => {
      if (request.path === '/stream') streams.push(request.openEvents({}))
      else serve(request)
    })
    const [idle, silent, half, held, stream, answered] = await Promise.all(Array.from({ length: 6 }, () => connected(door)))
    await idle?.send(post('/a')).answers(1)
    half?.send(post('/a').slice(0, 20))
    held?.send(post('/hold'))
    stream?.send(post('/stream'))
    await stream?.until((text) => text.includes('\r\n\r\n'))
    await door.requests.until(({ path }) => path === '/hold')
    answered?.send(post('/b'))
    await door.requests.until(({ path }) => path === '/b')
    await door.listening.close()
    const all = await Promise.all([idle, silent, half, held, stream, answered].map((wire) => wire!.closed))
    expect(all.map((text) => statusesOf(text === '' ? [] : [text ?? '']))).toEqual([[200], [], [], [], [200], [200]])
    expect(streams.map(({ isOpen }) => isOpen)).toEqual([false])
  })

  test('F-21 a host that takes none of its small answers loses its connection, and is counted', async () => {
    await using door = await openDoor(choice, serve, { writeStallMs: 200 })
    const wire = await connected(door)
    wire.socket.pause()
    await fillUp(door, wire, ({ writableLength }) => writableLength > 0)
    const [socket] = door.sockets.entries
    expect(await door.reached.until(() => true)).toBe('listen.limits.write_stall')
    await expect.poll(() => socket?.destroyed).toBe(true)
  })

  test('T-22 bytes that are no request put nothing into the answer that is being written', async () => {
    await using door = await openDoor(choice, (request) => request.openEvents({}).message([Buffer.from('begun')]))
    const wire = door.open(GET)
    await wire.until((text) => text.includes('begun'))
    wire.send('no request\r\n\r\n')
    // The fast path looks at them after the answer.
    if (choice === 'own') wire.socket.destroy()
    expect(statusesOf((await wire.closed).split(/(?=HTTP\/1\.1 )/))).toEqual([200])
  })

  test('a body that is asked for once its host has gone counts as held by nobody', async () => {
    await using door = await openDoor(choice, serve)
    const wire = door.open(`POST /hold HTTP/1.1\r\n${HOST}Content-Length: 100000\r\n\r\n${'x'.repeat(50_000)}`)
    const held = await door.requests.until(({ path }) => path === '/hold')
    await vi.waitUntil(() => door.sockets.entries[0]!.bytesRead > 50_000, { interval: 1 })
    const gone = new Promise<void>((resolve) => held.onDisconnect(resolve))
    wire.socket.destroy()
    await gone
    held.readBody(1_000_000, () => undefined)
    // Its bytes would be counted in the next tick.
    await new Promise((resolve) => setImmediate(resolve))
    expect(door.bodies.held.bytes).toBe(0)
  })

  test('clients that are in use take its answers', async () => {
    await using door = await openDoor(choice, serve)
    const origin = `http://127.0.0.1:${door.listening.tcp?.port}`
    const pool = new Pool(origin, { connections: 2 })
    const byUndici = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const answer = await pool.request({ method: 'POST', path: `/u?${at}`, body: `{"n":${at}}` })
        return await answer.body.text()
      }),
    )
    await pool.close()
    expect(byUndici).toEqual(Array.from({ length: 20 }, (_, at) => `POST /u ${at} {"n":${at}}`))
    const agent = new Agent({ keepAlive: true, maxSockets: 2 })
    const byNode = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const request = nodeRequest(`${origin}/size?${at * 10_000}`, { method: 'POST', agent }).end('{}')
        const [answer] = (await once(request, 'response')) as [IncomingMessage]
        return (await answer.toArray()).reduce((sum: number, piece: Buffer) => sum + piece.length, 0) as number
      }),
    )
    agent.destroy()
    expect(byNode).toEqual(Array.from({ length: 20 }, (_, at) => at * 10_000))
    const byFetch = await fetch(`${origin}/events`, { method: 'POST', body: '{}' })
    expect(await byFetch.text()).toContain('data: {"a":1}\n\n')
    expect(door.sockets.entries.length).toBeLessThanOrEqual(5)
  })
})

describe('with own', () => {
  test('plain requests stay with us, and the first other one makes the connection node:http’s, with no listener left behind', async () => {
    await using door = await openDoor('own', serve)
    await using other = await openDoor('node', serve)
    const [wire, theirs] = [await connected(door), await connected(other)]
    await wire.send(post('/a')).answers(1)
    await wire.send(post('/size?100000')).answers(2)
    await wire.send(post('/events')).answers(3)
    const [socket, native] = [door.sockets.entries[0], other.sockets.entries[0]]
    if (socket === undefined || native === undefined) throw new Error('no connection')
    expect(isNodes(socket)).toBe(false)
    expect(socket.listenerCount('timeout') + socket.listenerCount('drain')).toBe(0)
    await wire.send(post('/big', 'x'.repeat(1_000_000))).answers(4)
    await wire.send(bare('OPTIONS')).answers(5)
    await wire.send(GET).answers(6)
    await wire.send(bare('DELETE')).answers(7)
    await wire.send(chunked('2\r\n{}\r\n0\r\n\r\n')).answers(8)
    expect(isNodes(socket)).toBe(false)
    expect(socket.listenerCount('timeout') + socket.listenerCount('drain')).toBe(0)
    await wire.send(bare('PUT')).answers(9)
    await theirs.send(bare('PUT')).answers(1)
    expect(isNodes(socket)).toBe(true)
    for (const event of ['data', 'end', 'error', 'close', 'timeout', 'drain', 'pause', 'resume'])
      expect([event, socket.listenerCount(event)]).toEqual([event, native.listenerCount(event)])
  })

  test('what is under way when it stops accepting is told that its connection ends, and a stream that had begun ends with it', async () => {
    const streams: EventStream[] = []
    await using door = await openDoor('own', (request) => {
      if (request.path === '/stream') streams.push(request.openEvents({}))
      else serve(request)
    })
    const [held, stream, half] = [await connected(door), await connected(door), await connected(door)]
    held.send(post('/hold'))
    const request = await door.requests.until(({ path }) => path === '/hold')
    await stream.send(post('/stream')).until((text) => text.includes('\r\n\r\n'))
    await sendPieces(door, half, [post('/a').slice(0, 30)])
    await door.listening.stopAccepting()
    reply(request)
    expect(await held.closed).toMatch(/\r\nConnection: close\r\n[^]*late$/)
    streams[0]?.end()
    expect(await stream.closed).toMatch(/0\r\n\r\n$/)
    half.send(post('/a').slice(30))
    expect(await half.closed).toMatch(/^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n/)
  })

  test('behind an answer that closes the connection no request is carried out', async () => {
    await using door = await openDoor('own', (request) => {
      if (request.path === '/last') request.reply(200, { Connection: 'close' }, [Buffer.alloc(60_000)])
      else serve(request)
    })
    const wire = await connected(door)
    wire.socket.pause()
    await fillUp(door, wire, ({ writableLength }) => writableLength > 0)
    const [socket] = door.sockets.entries
    if (socket === undefined) throw new Error('no connection')
    wire.send(post('/last'))
    await vi.waitUntil(() => socket.writableLength > 64 * 1024, { interval: 1 })
    const before = socket.bytesRead
    wire.send(post('/a'))
    await taken(socket, before + post('/a').length)
    wire.socket.resume()
    await wire.closed
    expect(door.requests.entries.at(-1)?.path).toBe('/last')
  })

  test('F-21 who does not take small answers is read no more until it does, and then misses none', async () => {
    await using door = await openDoor('own', serve)
    const wire = await connected(door)
    wire.socket.pause()
    const count = await fillUp(door, wire, ({ writableNeedDrain }) => writableNeedDrain)
    expect(door.sockets.entries[0]?.isPaused()).toBe(true)
    wire.send(post('/a')).send(post('/b'))
    wire.socket.resume()
    expect(await wire.answers(count + 2)).toHaveLength(count + 2)
  })

  test('an answer that waits for its host is not touched by the answers to others', async () => {
    await using door = await openDoor('own', serve)
    const [slow, quick] = [await connected(door), await connected(door)]
    slow.socket.pause()
    const count = await fillUp(door, slow, ({ writableLength }) => writableLength > 0)
    for (let at = 1; at <= 20; at++) await quick.send(post('/a', '!'.repeat(900))).answers(at)
    slow.socket.resume()
    const [first, ...others] = await slow.answers(count)
    expect(first).toMatch(/\r\n\r\na{20000}b{40000}$/)
    expect(others.filter((answer) => answer !== first)).toEqual([])
    expect(others).toHaveLength(count - 1)
  })

  test('T-23 max_header and header_lines hold for the next request too', async () => {
    await using door = await openDoor('own', serve, { maxHeaderBytes: 2_000, maxHeaderLines: 20 })
    for (const text of [BIG_HEAD, MANY_LINES]) {
      const wire = door.open(post('/a'))
      await wire.answers(1)
      expect(statusesOf([(await wire.send(text).answers(2))[1] ?? ''])).toEqual([431])
    }
  })
})
