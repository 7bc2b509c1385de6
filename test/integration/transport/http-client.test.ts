/** What every implementation of `HttpClient` owes to the channels. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { UndiciClient, unreachable } from '../../../src/transport/http1/client/http-client.ts'
import type { HttpClient, HttpExchange, HttpRequest } from '../../../src/transport/http1/client/http-client.ts'
import type { ReplyHead } from '../../../src/transport/http1/client/reply-head.ts'
import { NetClient } from '../../../src/transport/http1/client/net-client.ts'
import type { Failure } from '../../../src/wire/message/failure.ts'
import { rawScripted, scripted } from './scripted.ts'
import type { Script } from './scripted.ts'
import { listening } from '../../support/listening.ts'

interface Told {
  readonly calls: string[]
  readonly encodings: unknown[]
  readonly exchange: HttpExchange
  readonly end: Promise<Failure | { status: number | undefined; text: string }>
}

const ask = (client: HttpClient, request: Partial<HttpRequest> & { url: URL }, onChunk?: (told: Told) => void): Told => {
  const calls: string[] = []
  const encodings: unknown[] = []
  const { promise: end, resolve } = Promise.withResolvers<Failure | { status: number | undefined; text: string }>()
  const chunks: Buffer[] = []
  let status: number | undefined
  const exchange = client.request(
    { method: 'GET', headers: {}, ...request },
    {
      onHead: (head) => {
        calls.push('head')
        encodings.push(head.encoding)
        status = head.status
      },
      onData: (chunk) => {
        calls.push('data')
        chunks.push(Buffer.from(chunk))
        onChunk?.(told)
      },
      onEnd: () => {
        calls.push('end')
        resolve({ status, text: Buffer.concat(chunks).toString() })
      },
      onError: (failure) => {
        calls.push('error')
        resolve(failure)
      },
    },
  )
  const told = { calls, encodings, exchange, end }
  return told
}

const hello: Script = (_seen, response) => void response.end('hello')

describe.each([
  ['undici', () => new UndiciClient()],
  ['bare sockets', () => new NetClient(new UndiciClient())],
])('the HTTP client on %s', (_name, create) => {
  // The system's own list: the timer of a connection that is idle is that of its keep-alive (`02`), in hundredths of a second.
  test.runIf(process.platform === 'linux')('F-14 the kernel asks a server that says nothing whether it is there', async () => {
    const answers: ServerResponse[] = []
    await using server = await scripted((_seen, response) => void answers.push(response))
    const client = create()
    const { port } = server.url
    const told = ask(client, { url: server.url })
    // The first request of the file loads undici, which may take a second beside other work.
    await vi.waitUntil(() => answers.length === 1, { timeout: 10_000 })
    const peer = `:${Number(port).toString(16).toUpperCase().padStart(4, '0')}`
    // Of open connections (`01`) only: one that waits for its end may be left of an earlier server of the same port.
    const timers = (): readonly (string | undefined)[] =>
      readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, , to = '', state]) => to.endsWith(peer) && state === '01')
        .map(([, , , , , timer]) => timer)
    await vi.waitUntil(() => timers().every((timer) => timer?.startsWith('02:')) && timers().length > 0, { timeout: 10_000 })
    answers[0]?.end('hello')
    expect(await told.end).toEqual({ status: 200, text: 'hello' })
    await client.close()
  })

  test('sends method, path with query, headers and a body of parts; tells head, data, end', async () => {
    await using server = await scripted(hello)
    const client = create()
    const parts = [Buffer.from('{"a"'), Buffer.from(':1}')]
    const told = ask(client, { method: 'POST', url: new URL('/x?y=%20z', server.url), headers: { 'x-a': 'b' }, body: parts })
    expect(told.calls).toEqual([])
    expect(await told.end).toEqual({ status: 200, text: 'hello' })
    expect(told.calls).toEqual(['head', 'data', 'end'])
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      path: '/x?y=%20z',
      text: '{"a":1}',
      headers: { 'x-a': 'b', 'content-length': '7' },
    })
    await client.close()
  })

  test('a header that is repeated is one list, as two challenges are, and a repeated content type is the first', async () => {
    const head = 'content-type: application/json\r\nwww-authenticate: Basic realm="a"\r\nwww-authenticate: Bearer scope="b"\r\n'
    await using server = await rawScripted((socket) => {
      socket.write(`HTTP/1.1 401 Unauthorized\r\n${head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`)
    })
    const client = create()
    const { promise, resolve, reject } = Promise.withResolvers<ReplyHead>()
    const handler = { onHead: resolve, onData: () => undefined, onEnd: () => undefined, onError: reject }
    client.request({ method: 'GET', url: server.url, headers: {} }, handler)
    expect(await promise).toMatchObject({
      form: 'json',
      headers: { 'www-authenticate': 'Basic realm="a", Bearer scope="b"' },
    })
    await client.close()
  })

  test('uses a connection again, and never two requests on one at once', async () => {
    const connections = new Set<unknown>()
    await using server = await rawScripted((socket, text) => {
      connections.add(socket)
      expect(text.match(/GET /g)).toHaveLength(1)
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    })
    const client = create()
    for (let round = 0; round < 5; round++) await ask(client, { url: server.url }).end
    // The next request may be on its way while the last reply is just being put away.
    expect(connections.size).toBeLessThanOrEqual(2)
    await Promise.all(Array.from({ length: 8 }, () => ask(client, { url: server.url }).end))
    expect(connections.size).toBeGreaterThanOrEqual(8)
    await client.close()
  })

  test('a server that answers before it reads keeps no other request waiting', async () => {
    const isOver = Promise.withResolvers<void>()
    const reply = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', (begun) => {
        if (begun.toString('latin1', 0, 4) === 'POST') socket.pause()
        void isOver.promise.then(() => socket.destroy())
        socket.write(reply)
      })
    })
    await using opened = await listening(server)
    const url = new URL('/mcp', opened.url)
    const client = create()
    // More than the kernel takes for a server that does not read.
    const body = [Buffer.alloc(10), Buffer.alloc(20 << 20)]
    expect(await ask(client, { method: 'POST', url, body }).end).toEqual({ status: 200, text: 'ok' })
    expect(await ask(client, { url }).end).toEqual({ status: 200, text: 'ok' })
    await client.close()
    isOver.resolve()
  })

  test('passes over informational heads', async () => {
    await using server = await rawScripted((socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n')
    })
    const client = create()
    const told = ask(client, { url: server.url })
    expect(await told.end).toEqual({ status: 204, text: '' })
    expect(told.calls).toEqual(['head', 'end'])
    await client.close()
  })

  test('reads nothing while paused, and the server cannot finish', async () => {
    const size = 64 << 20
    let isFlushed = false
    await using server = await scripted((seen, response) => {
      if (seen.path === '/small') response.end('small')
      else response.end(Buffer.alloc(size), () => (isFlushed = true))
    })
    const client = create()
    const { promise: paused, resolve } = Promise.withResolvers<void>()
    const told = ask(client, { url: server.url }, ({ exchange, calls }) => {
      if (calls.length > 2) return
      exchange.pause()
      resolve()
    })
    await paused
    for (let round = 0; round < 50; round++) await ask(client, { url: new URL('/small', server.url) }).end
    expect(told.calls).toEqual(['head', 'data'])
    expect(isFlushed).toBe(false)
    told.exchange.resume()
    const end = await told.end
    expect('text' in end && end.text.length).toBe(size)
    await client.close()
  })

  test.each([
    ['before it is connected', () => Promise.resolve()],
    ['while it waits', (began: () => Promise<unknown>) => began()],
  ])('tells nothing after an abort %s', async (_when, moment) => {
    await using server = await scripted((seen, response) => (seen.path === '/mcp' ? undefined : hello(seen, response)))
    const client = create()
    const told = ask(client, { url: server.url })
    await moment(() => server.until(({ path }) => path === '/mcp'))
    told.exchange.abort()
    await ask(client, { url: new URL('/other', server.url) }).end
    await client.close()
    expect(told.calls).toEqual([])
  })

  test('an abort closes the connection', async () => {
    await using server = await scripted((_seen, response) => void response.write('begun'))
    const client = create()
    ask(client, { url: server.url }, ({ exchange }) => exchange.abort())
    const seen = await server.until(() => true)
    await seen.closed
    await client.close()
  })

  test('no encoding is asked for; an encoded answer is passed on as it is, with the name of its encoding', async () => {
    await using server = await scripted((_seen, response) => response.writeHead(200, { 'content-encoding': 'br' }).end('xx'))
    const client = create()
    const told = ask(client, { url: server.url })
    expect(await told.end).toEqual({ status: 200, text: 'xx' })
    expect(told.encodings).toEqual(['br'])
    expect(server.seen[0]?.headers['accept-encoding']).toBe('identity')
    await client.close()
  })

  test('what was never written is unreachable and not executed; what broke later is lost', async () => {
    const client = create()
    const gone = await scripted(hello)
    await gone[Symbol.asyncDispose]()
    expect(await ask(client, { url: gone.url }).end).toMatchObject({ kind: 'unreachable', executed: 'no', retryable: true })
    const unusable = ask(client, { url: gone.url, headers: { 'x-a': 'line\nbreak' } })
    expect(unusable.calls).toEqual([])
    expect(await unusable.end).toMatchObject({ kind: 'unreachable', executed: 'no' })
    await using plain = await scripted(hello)
    const tls = new URL(plain.url.href.replace('http:', 'https:'))
    expect(await ask(client, { url: tls }).end).toMatchObject({ kind: 'unreachable', executed: 'no' })
    await using server = await scripted((_seen, response) => response.destroy())
    expect(await ask(client, { url: server.url }).end).toMatchObject({ kind: 'lost', executed: 'unknown' })
    await client.close()
  })

  test.each([
    ['another protocol', 'SSH-2.0-x\r\n\r\n'],
    ['line feeds alone', 'HTTP/1.1 200 OK\ncontent-length: 2\n\n{}'],
    ['a head that is too long', `HTTP/1.1 200 OK\r\na: ${'x'.repeat(20_000)}\r\n\r\n`],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello'],
  ])('T-20 what is no HTTP/1.1 is a bad response, not a broken connection: %s', async (_what, text) => {
    await using server = await rawScripted((socket) => void socket.write(text))
    const client = create()
    expect(await ask(client, { url: server.url }).end).toMatchObject({
      kind: 'bad_response',
      executed: 'unknown',
      message: expect.stringContaining('did not speak HTTP/1.1'),
    })
    await client.close()
  })

  test('a head that does not come in time is a timeout', async () => {
    await using server = await scripted(() => undefined)
    const client = create()
    expect(await ask(client, { url: server.url, headersTimeoutMs: 20 }).end).toMatchObject({
      kind: 'timeout',
      executed: 'unknown',
    })
    await client.close()
  })

  test('close breaks what is running', async () => {
    await using server = await rawScripted((socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun'))
    const client = create()
    const { promise: begun, resolve } = Promise.withResolvers<Told>()
    const told = ask(client, { url: server.url }, resolve)
    await begun
    await client.close()
    expect(await told.end).toMatchObject({ kind: 'lost' })
  })
})

test('on bare sockets a server that answers first, and then reads slowly, is not cut off', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.pause()
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    socket.on('error', () => undefined)
    reading.resolve(socket)
  })
  const reading = Promise.withResolvers<Socket>()
  await using opened = await listening(server)
  const client = new NetClient(new UndiciClient())
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const url = new URL(opened.url)
    await ask(client, { method: 'POST', url, body: [Buffer.alloc(64_000_000), Buffer.from('x')] }).end
    const socket = await reading.promise
    const closed = once(socket, 'close')
    for (let at = 0; at < 3; at++) {
      vi.advanceTimersByTime(40_000)
      const target = socket.bytesRead + 15_000_000
      socket.on('data', () => socket.bytesRead > target && socket.pause())
      socket.resume()
      await vi.waitUntil(() => socket.bytesRead > target, { timeout: 20_000 })
      socket.removeAllListeners('data')
    }
    expect(socket.destroyed).toBe(false)
    // The timer decides in a later turn: what arrived while this process stood still counts (F-27).
    for (let minute = 0; minute < 4; minute++) {
      vi.advanceTimersByTime(60_000)
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    }
    socket.resume()
    await closed
    expect(socket.bytesRead).toBeLessThan(64_000_000)
  } finally {
    vi.useRealTimers()
    await client.close()
  }
})

/** Closes a connection with the second request on it unread, as Starlette does after a route that returned nothing. */
const closesAfterEach = (requests: Map<Socket, number>, isClosing: () => boolean) => (socket: Socket) => {
  const count = (requests.get(socket) ?? 0) + 1
  requests.set(socket, count)
  if (count > 1 && isClosing()) return socket.resetAndDestroy()
  socket.write('HTTP/1.1 202 Accepted\r\ncontent-length: 8\r\n\r\nAccepted')
}

const post = (client: HttpClient, url: URL) => ask(client, { method: 'POST', url, body: [Buffer.from('{}')] }).end

describe('a server that closes connections after a response, unannounced,', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))

  test('3.22 loses one request on bare sockets, and no more', async () => {
    const requests = new Map<Socket, number>()
    await using server = await rawScripted(closesAfterEach(requests, () => true))
    const client = new NetClient(new UndiciClient())
    const answered: boolean[] = []
    for (let round = 0; round < 8; round++) answered.push('status' in (await post(client, server.url)))
    expect(answered).toEqual([true, false, true, true, true, true, true, true])
    await client.close()
  })

  test('3.22 gets requests on used connections again once it has kept one open', async () => {
    const requests = new Map<Socket, number>()
    let isClosing = true
    await using server = await rawScripted(closesAfterEach(requests, () => isClosing))
    const client = new NetClient(new UndiciClient())
    await post(client, server.url)
    expect(await post(client, server.url)).toMatchObject({ kind: 'lost' })
    isClosing = false
    await post(client, server.url)
    vi.advanceTimersByTime(500)
    for (let round = 0; round < 3; round++) expect(await post(client, server.url)).toMatchObject({ status: 202 })
    expect([...requests.values()]).toEqual([2, 4])
    await client.close()
  })

  test('3.22 has to close one unannounced: an announced close changes nothing', async () => {
    const requests = new Map<Socket, number>()
    await using server = await rawScripted((socket) => {
      requests.set(socket, (requests.get(socket) ?? 0) + 1)
      const closes = requests.size === 1 ? 'connection: close\r\n' : ''
      socket.write(`HTTP/1.1 202 Accepted\r\n${closes}content-length: 8\r\n\r\nAccepted`)
    })
    const client = new NetClient(new UndiciClient())
    for (let round = 0; round < 4; round++) expect(await post(client, server.url)).toMatchObject({ status: 202 })
    expect([...requests.values()]).toEqual([1, 3])
    await client.close()
  })
})

test('on bare sockets a request reaches the server even if its connection is closed in the same turn', async () => {
  await using server = await scripted(hello)
  const client = new NetClient(new UndiciClient())
  await ask(client, { url: new URL('/first', server.url) }).end
  ask(client, { url: new URL('/cancelled', server.url) }).exchange.abort()
  await server.until(({ path }) => path === '/cancelled')
  expect(server.seen.map(({ path }) => path)).toEqual(['/first', '/cancelled'])
  await client.close()
})

test('F-31 a proxy whose URL cannot be used is unreachable, and nothing else breaks', async () => {
  const client = new UndiciClient({ proxy: new URL('http://user:%ff@127.0.0.1:1') })
  for (let round = 0; round < 2; round++)
    expect(await ask(client, { url: new URL('https://mcp.test/') }).end).toMatchObject({ kind: 'unreachable', executed: 'no' })
  await client.close()
})

test('each address of a name that could not be reached is named', () => {
  const errors = ['::1:3001', '127.0.0.1:3001'].map((address) => new Error(`connect ECONNREFUSED ${address}`))
  const refused = Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' })
  expect(unreachable(refused).message).toBe(
    'cannot connect: ECONNREFUSED: connect ECONNREFUSED ::1:3001, connect ECONNREFUSED 127.0.0.1:3001',
  )
})
