/** A request that is sent on to another replica: what arrives there, what comes back, and whether it may have been served. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Forwarder } from '../../../src/replicas/forwarding.ts'
import type { Peer } from '../../../src/replicas/forwarding.ts'
import { JOIN_BELOW_BYTES } from '../../../src/transport/http1/server/request/http-request.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import { freePort } from '../../support/free-port.ts'
import { listening } from '../../support/listening.ts'

const forwarder = new Forwarder()
afterEach(() => forwarder.close())

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A process that answers so, and the URL of its replica. */
const peerThat = async (answer: Answer): Promise<string> => {
  const server = await listening(createServer({ keepAliveTimeout: 60_000 }, answer))
  onTestFinished(() => server[Symbol.asyncDispose]())
  return `${server.url}/prefix`
}

/** A host's request, and what its host gets. */
const makeHost = (facts: object = {}) => {
  const got: unknown[] = []
  const host = { got, disconnect: (): void => undefined }
  const request = {
    method: 'POST',
    path: '/mcp',
    query: 'a=1',
    headers: () => ({ 'mcp-session-id': 's', connection: 'keep-alive', 'content-length': '99', 'trunkline-hop': 'forged' }),
    onDisconnect: (callback: () => void) => void (host.disconnect = callback),
    reply: (status: number, headers: object, pieces: readonly Buffer[]) =>
      void got.push(status, headers, Buffer.concat(pieces).toString()),
    fail: () => void got.push('fail'),
    replyInPieces: (status: number, headers: object) => ({
      begin: () => void got.push(status, headers),
      write: (bytes: Buffer) => void got.push(bytes.toString()),
      end: () => void got.push('end'),
      break: () => void got.push('break'),
    }),
    ...facts,
  }
  // Cast: what sending on needs of a request.
  return Object.assign(host, { request: request as unknown as HttpRequest })
}
const peerAt = (url: string, facts: Partial<Peer> = {}): Peer => ({
  url,
  headers: { 'trunkline-hop': 'mark', 'x-absent': undefined },
  isGenuine: () => true,
  onBegun: () => undefined,
  ...facts,
})
const textOf = async (request: IncomingMessage): Promise<string> => Buffer.concat(await request.toArray()).toString()

test('a request arrives as it came, without the headers of its connection, and with those of the replica', async () => {
  const arrived: unknown[] = []
  const url = await peerThat((request, response) => {
    void textOf(request).then((text) => {
      const { host: _, connection: __, ...headers } = request.headers
      arrived.push(request.method, request.url, headers, text)
      response.end()
    })
  })
  const { request } = makeHost()
  expect(await forwarder.send(request, Buffer.from('{}'), peerAt(url))).toBe('answered')
  expect(arrived).toEqual([
    'POST',
    '/prefix/mcp?a=1',
    { 'mcp-session-id': 's', 'content-length': '2', 'trunkline-hop': 'mark' },
    '{}',
  ])
  arrived.length = 0
  const plain = makeHost({ method: 'GET', query: '' })
  expect(await forwarder.send(plain.request, undefined, peerAt(url))).toBe('answered')
  expect(arrived).toEqual(['GET', '/prefix/mcp', { 'mcp-session-id': 's', 'trunkline-hop': 'mark' }, ''])
})

describe('an answer', () => {
  test('that is small is relayed in one piece, with its headers', async () => {
    const url = await peerThat((_, response) => {
      response.writeHead(202, { 'Content-Type': 'text/plain', 'X-Two': 'b', 'Trunkline-Hop': 'm', 'Content-Length': 4 })
      response.write('ab')
      setImmediate(() => response.end('cd'))
    })
    const { request, got } = makeHost()
    expect(await forwarder.send(request, undefined, peerAt(url))).toBe('answered')
    expect(got).toEqual([202, { 'Content-Type': 'text/plain', 'X-Two': 'b' }, 'abcd'])
  })

  test.each([
    ['of unknown length', {}],
    ['that is large', { 'content-length': JOIN_BELOW_BYTES }],
  ])('%s is relayed as it comes', async (_, headers) => {
    const more = Promise.withResolvers<undefined>()
    const url = await peerThat((_request, response) => {
      response.writeHead(200, headers)
      response.write('first')
      void more.promise.then(() => response.end('x'.repeat(JOIN_BELOW_BYTES - 5)))
    })
    const { request, got } = makeHost()
    const end = forwarder.send(request, undefined, peerAt(url))
    await vi.waitFor(() => expect(got).toEqual([200, {}, 'first']))
    more.resolve(undefined)
    expect(await end).toBe('answered')
    expect(got.at(-1)).toBe('end')
    expect(got.slice(2, -1).join('')).toHaveLength(JOIN_BELOW_BYTES)
  })

  test.each<[string, Record<string, number>, readonly unknown[]]>([
    ['in pieces', {}, [200, {}, 'ab', 'break']],
    ['of known length', { 'content-length': 4 }, ['fail']],
  ])('%s that breaks off ends irregularly for the host, too', async (_, headers, expected) => {
    const url = await peerThat((_request, response) => {
      response.writeHead(200, headers)
      response.write('ab')
      setTimeout(() => response.destroy(), 20)
    })
    const { request, got } = makeHost()
    expect(await forwarder.send(request, undefined, peerAt(url))).toBe('answered')
    expect(got).toEqual(expected)
  })

  test.each<[string, Record<string, number>, readonly unknown[]]>([
    ['in pieces', {}, [200, {}, 'ab', 'break']],
    ['of known length', { 'content-length': 4 }, ['fail']],
  ])('%s that is broken off here is answered, so that no other answer follows', async (_, headers, expected) => {
    const url = await peerThat((_request, response) => {
      response.writeHead(200, headers)
      response.write('ab')
    })
    let breakOff = (): void => undefined
    const began = Promise.withResolvers<undefined>()
    const isGenuine = (): boolean => {
      setImmediate(() => began.resolve(undefined))
      return true
    }
    const { request, got } = makeHost()
    const end = forwarder.send(request, undefined, peerAt(url, { isGenuine, onBegun: (given) => (breakOff = given) }))
    await began.promise
    breakOff()
    expect([await end, got]).toEqual(['answered', expected])
  })

  test('that is all here, but not yet with a slow host, ends irregularly where it is broken off', async () => {
    const url = await peerThat((_request, response) => {
      response.write('ab')
      response.end('cd')
    })
    let breakOff = (): void => undefined
    const got: string[] = []
    const { request } = makeHost({
      replyInPieces: (_status: number, _headers: object, onFull: () => void) => ({
        begin: () => undefined,
        write: (bytes: Buffer) => (got.push(bytes.toString()), onFull()),
        end: () => void got.push('end'),
        break: () => void got.push('break'),
      }),
    })
    const end = forwarder.send(request, undefined, peerAt(url, { onBegun: (given) => (breakOff = given) }))
    await vi.waitFor(() => expect(got).toEqual(['ab']))
    // Until the rest has come.
    await new Promise((resolve) => setTimeout(resolve, 50))
    breakOff()
    expect([await end, got]).toEqual(['answered', ['ab', 'break']])
  })

  test('that changes the protocol is of another process', async () => {
    const url = await peerThat((request) => {
      request.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n')
    })
    const { request, got } = makeHost()
    expect([await forwarder.send(request, undefined, peerAt(url)), got]).toEqual(['refused', []])
  })

  test('of another process is not relayed, and its mark is read from its headers', async () => {
    const url = await peerThat((_, response) => response.writeHead(200, { 'trunkline-hop': 'of another' }).end('secret'))
    const { request, got } = makeHost()
    const isGenuine = vi.fn((header: (name: string) => string | undefined) => header('trunkline-hop') === 'right')
    expect(await forwarder.send(request, undefined, peerAt(url, { isGenuine }))).toBe('refused')
    expect(got).toEqual([])
    expect(isGenuine.mock.calls[0]?.[0]('trunkline-hop')).toBe('of another')
  })
})

test('an answer may take longer than a connection', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const began = Promise.withResolvers<ServerResponse>()
  const url = await peerThat((_, response) => began.resolve(response))
  const { request, got } = makeHost()
  const end = forwarder.send(request, undefined, peerAt(url))
  const response = await began.promise
  vi.advanceTimersByTime(60_000)
  response.writeHead(200, { 'content-length': 0 }).end()
  expect([await end, got]).toEqual(['answered', [200, { 'content-length': undefined }, '']])
})

describe('without an answer', () => {
  test('a request that met no process was not sent', async () => {
    const { request, got } = makeHost()
    const end = forwarder.send(request, undefined, peerAt(`http://127.0.0.1:${await freePort()}`))
    expect([await end, got]).toEqual(['unsent', []])
  })

  test('a request that was sent may have been served, over a connection that was used before as well', async () => {
    let count = 0
    const url = await peerThat((request, response) => (count++ === 0 ? response.end() : request.socket.destroy()))
    const { request } = makeHost()
    const end = (): Promise<string> => forwarder.send(request, undefined, peerAt(url))
    expect([await end(), await end()]).toEqual(['answered', 'lost'])
    expect(await end()).toBe('lost')
  })

  test('a request that is broken off may have been served', async () => {
    const began = Promise.withResolvers<undefined>()
    const url = await peerThat(() => began.resolve(undefined))
    let breakOff = (): void => undefined
    const end = forwarder.send(makeHost().request, undefined, peerAt(url, { onBegun: (given) => (breakOff = given) }))
    await began.promise
    breakOff()
    expect(await end).toBe('lost')
  })

  test('a request whose host has left ends at the other replica, too, and is not sent elsewhere', async () => {
    const began = Promise.withResolvers<IncomingMessage>()
    const url = await peerThat((request) => began.resolve(request))
    const host = makeHost()
    const end = forwarder.send(host.request, undefined, peerAt(url))
    const { socket } = await began.promise
    const closed = once(socket, 'close')
    host.disconnect()
    expect(await end).toBe('answered')
    await closed
  })
})

describe('a question of our own', () => {
  test('has a status and headers, over a connection that is used again', async () => {
    const sockets = new Set<unknown>()
    const url = await peerThat((request, response) => {
      sockets.add(request.socket)
      response.writeHead(410, { 'x-is': request.headers['x-asked'] ?? '' }).end('not read')
    })
    let asked = 0
    // One that is not free yet is not used again.
    while (sockets.size === asked) {
      const word = String(asked++)
      const answer = await forwarder.ask(url, { 'x-asked': word })
      expect([answer?.status, answer?.header('x-is'), answer?.header('x-none')]).toEqual([410, word, undefined])
      await new Promise(setImmediate)
    }
  })

  test('is given up after two seconds, and its connection closed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const began = Promise.withResolvers<IncomingMessage>()
    const url = await peerThat((request) => began.resolve(request))
    const answer = forwarder.ask(url, {})
    const { socket } = await began.promise
    const closed = once(socket, 'close')
    vi.advanceTimersByTime(2_000)
    expect(await answer).toBeUndefined()
    await closed
  })

  test('fails with the reason where nothing listens', async () => {
    await expect(forwarder.ask(`http://127.0.0.1:${await freePort()}`, {})).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})

test('a forwarder that is closed keeps no connection', async () => {
  const own = new Forwarder()
  const closed = Promise.withResolvers<undefined>()
  const url = await peerThat((request, response) => {
    request.socket.once('close', () => closed.resolve(undefined))
    response.end()
  })
  await own.ask(url, {})
  own.close()
  await closed.promise
})
