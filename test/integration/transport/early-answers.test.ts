/**
 * Answers that do not wait for the body (RFC 9112, 9.6): a host that writes all of its request before it reads gets the status and the
 * reason, not a broken pipe; a host that sends for ever holds no connection.
 */
import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { AuthOptions } from '../../../src/auth/inbound/verify/inbound-options.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import type { HttpServerChoice } from '../../../src/transport/http1/server/http-server.ts'
import { fake } from '../../support/fake-downstream.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'
import { openDoor } from '../../support/http-door.ts'
import type { Wire } from '../../support/http-door.ts'
import { describeWith } from '../../support/programs.ts'

const CHOICES: readonly HttpServerChoice[] = ['own', 'node']
const MB = 1_000_000
/** Of bodies, whatever they are refused for. */
const SIZES = [1_500, 6 * MB]
const HUGE = 30 * MB
const TEXT = { 'Content-Type': 'text/plain' }

/** Runs a program while the gateway serves it from this process. */
const run = async (command: string, args: readonly string[]): Promise<string> => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (out += chunk.toString()))
  await once(child, 'close')
  return out
}

/**
 * http.client writes all of a request before it reads; the length is stated, or the body goes in chunks. One process sends them all, on a
 * connection each: a line of JSON says what, another one how it was answered.
 */
const HTTP_CLIENT = `
import http.client, json, sys
for line in sys.stdin:
    port, path, size, headers = json.loads(line)
    conn = http.client.HTTPConnection('127.0.0.1', port, timeout=20)
    body = b' ' * size
    try:
        if headers.get('Transfer-Encoding') == 'chunked':
            conn.request('POST', path, body=iter([body[at:at + 65536] for at in range(0, size, 65536)]), headers=headers, encode_chunked=True)
        else:
            conn.request('POST', path, body=body, headers=headers)
        answer = conn.getresponse()
        said = f'{answer.status} {answer.read().decode()}'
    except Exception as error:
        said = f'{type(error).__name__} {error}'
    conn.close()
    print(json.dumps(said), flush=True)
`

const JSON_HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }

interface Refusal {
  readonly status: number
  readonly says: string
  readonly setup?: Partial<GatewaySetup>
  readonly headers?: Readonly<Record<string, string>>
  readonly path?: string
  /** Of the body; all of `SIZES` by default. */
  readonly sizes?: readonly number[]
  /** Done to a gateway that runs. */
  readonly prepare?: (gateway: TestGateway) => void
}

const TOKENS: AuthOptions = { tokens: [], oauth: undefined, map: [] }
const shed = ({ running }: TestGateway): void => running.front.drain()

/** Refusals that are made before the body is read, or in the middle of it. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a body beyond max_body': {
    status: 413,
    says: 'listen.limits.max_body',
    setup: { hostLimits: { maxBodyBytes: 1_000 } },
    sizes: [...SIZES, HUGE],
  },
  'a body beyond what may be held': {
    status: 503,
    says: 'limits.in_flight_bytes',
    setup: { hostLimits: { maxInFlightBytes: 500, maxBodyBytes: 100 * MB } },
    sizes: [6 * MB],
  },
  'no credential': { status: 401, says: '', setup: { host: { auth: TOKENS } } },
  'another Host': { status: 403, says: 'allowed_hosts', headers: { Host: 'evil.example' } },
  'another path': { status: 404, says: '', path: '/nothing' },
  'another method': { status: 405, says: '', path: '/sse' },
  'another type': { status: 415, says: 'Content-Type', headers: { 'Content-Type': 'text/plain' } },
  'an encoded body': { status: 415, says: 'Content-Encoding', headers: { 'Content-Encoding': 'gzip' } },
  'a gateway that is stopping': { status: 503, says: '', prepare: shed },
  'a connection too many': { status: 503, says: 'listen.limits.connections', setup: { hostLimits: { maxConnections: 0 } } },
}

/** Each refusal, by this client, of a body that is stated and one in chunks. */
const eachRefusal = (
  send: (port: number, path: string, size: number, headers: Record<string, string>) => Promise<string>,
): void => {
  describe.each(CHOICES)('%s', (httpServer) => {
    test.each(Object.entries(REFUSALS))(
      '%s is refused with its reason, whatever the size of the body',
      async (_what, refusal) => {
        const { setup = {}, status, says, path = '/mcp', headers, prepare, sizes = SIZES } = refusal
        await using gateway = await startGateway({
          servers: { a: fake.offering('t') },
          ...setup,
          host: { httpServer, ...setup.host },
        })
        prepare?.(gateway)
        const port = Number(gateway.url.port)
        for (const size of sizes) {
          for (const more of [{}, { 'Transfer-Encoding': 'chunked' }]) {
            const answer = await send(port, path, size, { ...JSON_HEADERS, ...headers, ...more })
            expect(`${size} ${JSON.stringify(more)}: ${answer}`).toContain(`: ${status} `)
            expect(answer).toContain(says)
          }
        }
      },
    )
  })
}

describeWith(['python3'], "a host that uses Python's http.client", () => {
  let client: ChildProcessByStdio<Writable, Readable, null>
  let answers: AsyncIterator<string>
  beforeAll(() => {
    client = spawn('python3', ['-c', HTTP_CLIENT], { stdio: ['pipe', 'pipe', 'inherit'] })
    answers = createInterface({ input: client.stdout })[Symbol.asyncIterator]()
  })
  afterAll(async () => {
    client.stdin.end()
    await once(client, 'exit')
  })

  eachRefusal(async (...request) => {
    client.stdin.write(`${JSON.stringify(request)}\n`)
    const { value } = (await answers.next()) as { readonly value?: string }
    return JSON.parse(value ?? '"the client has ended"') as string
  })
})

describeWith(['curl'], 'a host that uses curl', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trunkline-bodies-'))
    for (const size of [...SIZES, HUGE]) await writeFile(join(folder, String(size)), Buffer.alloc(size, ' '))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const curl = (...args: string[]): Promise<string> => run('curl', ['-sS', '--max-time', '20', ...args])
  const headersOf = (headers: Record<string, string>): string[] =>
    Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const post = (port: number, path: string, size: number, headers: Record<string, string>): Promise<string> =>
    curl(
      ...headersOf(headers),
      '-w',
      '\n%{http_code} \n',
      '--data-binary',
      `@${join(folder, String(size))}`,
      `http://127.0.0.1:${port}${path}`,
    ).then((text) => `: ${text.split('\n').toReversed().join(' ').trim()} ${text}`.replace(/^: +/, ''))

  eachRefusal((port, path, size, headers) => post(port, path, size, { Expect: '', ...headers }))

  test('waits to be asked for its body (Expect: 100-continue): one that is refused is never sent', async () => {
    await using gateway = await startGateway({ servers: {}, hostLimits: { maxBodyBytes: 1_000 } })
    const args = [
      ...headersOf({ ...JSON_HEADERS, Expect: '100-continue' }),
      '--expect100-timeout',
      '15',
      '-w',
      ' %{http_code} %{size_upload}',
    ]
    const send = (size: number): Promise<string> =>
      curl(...args, '--data-binary', `@${join(folder, String(size))}`, gateway.url.href)
    expect(await send(6 * MB)).toMatch(/max_body.* 413 0$/s)
    await writeFile(join(folder, 'small'), '{}')
    expect(await curl(...args, '--data-binary', `@${join(folder, 'small')}`, gateway.url.href)).toMatch(/ 400 2$/)
  })
})

/** What comes is answered at once, read or not. */
const serve = (request: HttpRequest): void => {
  if (request.path === '/kept') return request.reply(401, TEXT, [Buffer.from('kept')])
  if (request.path === '/closed') return request.reply(401, { ...TEXT, Connection: 'close' }, [Buffer.from('closed')])
  request.readBody(1_000, (body) => request.reply(413, TEXT, [Buffer.from(String(body))]))
}

const head = (path: string, framing: string): string => `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n\r\n`
const STATED = 'Content-Length: 90000000'
const CHUNKED = 'Transfer-Encoding: chunked'
/** One chunk of 64 KiB. */
const CHUNK = `10000\r\n${'x'.repeat(65_536)}\r\n`

/** Does not end its side when the other one does. */
const stubborn = (wire: Wire): Wire => {
  wire.socket.removeAllListeners('end')
  return wire
}

/** Sends for as long as it is let. */
const sendForEver = (socket: Socket): void => {
  const more = (): void => {
    while (!socket.destroyed && socket.write(CHUNK));
  }
  socket.on('drain', more)
  more()
}

describe.each(CHOICES)('with %s a host that waits to be asked for its body (Expect: 100-continue)', (choice) => {
  const ask = (path: string, length: number): string => head(path, `Expect: 100-continue\r\nContent-Length: ${length}`)

  test('is asked where it is read', async () => {
    await using door = await openDoor(choice, (request) =>
      request.readBody(1_000, (body) => request.reply(200, TEXT, [Buffer.from(String(body))])),
    )
    const wire = door.open(ask('/read', 5))
    expect(await wire.until((text) => text.includes('\r\n\r\n'))).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    wire.send('hello')
    await wire.until((text) => text.endsWith('hello'))
  })

  test('is not asked where it is refused, and its connection is closed: whether the body comes cannot be known', async () => {
    await using door = await openDoor(choice, serve)
    for (const path of ['/kept', '/closed', '/read']) {
      const wire = door.open(ask(path, 6 * MB))
      expect(await wire.closed).toMatch(/^HTTP\/1\.1 4(01|13) [^]*Connection: close\r\n[^]*(kept|closed|too_large)$/)
    }
    const wire = door.open(ask('/kept', 5) + head('/kept', 'Content-Length: 0'))
    await wire.closed
    expect(door.requests.entries).toHaveLength(4)
  })
})

describe.each(CHOICES)('with %s a host that sends for ever', (choice) => {
  test.each([
    ['/closed', STATED],
    ['/closed', CHUNKED],
    ['/kept', STATED],
    ['/kept', CHUNKED],
    ['/read', STATED],
    ['/read', CHUNKED],
  ])('%s, %s: gets its answer, and is cut off at listen.limits.unread_body', async (path, framing) => {
    await using door = await openDoor(choice, serve, { maxUnreadBytes: 2 * MB })
    const wire = stubborn(door.open(head(path, framing)))
    sendForEver(wire.socket)
    const [socket] = await Promise.all([door.sockets.when(() => door.sockets.entries[0]), wire.closed])
    expect(socket.bytesRead).toBeLessThan(4 * MB)
    expect(wire.text).toMatch(/^HTTP\/1\.1 4(01|13) [^]*(closed|kept|too_large)$/)
    expect(door.reached.entries).toEqual(['listen.limits.unread_body'])
  })

  test('a byte now and then does not keep a connection whose answer was given: listen.limits.request_timeout', async () => {
    await using door = await openDoor(choice, serve, { requestTimeoutMs: 1_200, headersTimeoutMs: 1_000 })
    for (const path of ['/closed', '/kept']) {
      const wire = stubborn(door.open(head(path, STATED)))
      const timer = setInterval(() => wire.send('x'), 50)
      const text = await wire.closed
      clearInterval(timer)
      expect(text).toMatch(/^HTTP\/1\.1 401 [^]*(closed|kept)(HTTP\/1\.1 408[^]*)?$/)
    }
    expect(door.reached.entries.length).toBe(2)
  })

  test('what comes behind a last answer is not carried out, also where the body becomes complete', async () => {
    await using door = await openDoor(choice, serve)
    const wire = door.open(head('/closed', 'Content-Length: 3'))
    await wire.until((text) => text.endsWith('closed'))
    wire.send(`abc${head('/kept', 'Content-Length: 0')}`)
    await wire.closed
    expect(door.requests.entries.map(({ path }) => path)).toEqual(['/closed'])
  })

  test('the listener closes while such a host still sends', async () => {
    const door = await openDoor(choice, serve, { maxUnreadBytes: 1e12 })
    const wire = door.open(head('/closed', STATED))
    await wire.until((text) => text.endsWith('closed'))
    await door[Symbol.asyncDispose]()
    await vi.waitUntil(() => wire.socket.destroyed)
  })
})
