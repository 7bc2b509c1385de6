/** Where and how a listener takes connections: TLS, unix sockets, inherited sockets, and what proxies write before their clients. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, linkSync, lstatSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { Agent, Client, fetch, request } from 'undici'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { makeCertificates } from '../../support/certificates.ts'
import { commandLine } from '../../support/cli.ts'
import { slowRelay } from '../../support/faults/slow-relay.ts'
import { openDoor } from '../../support/http-door.ts'
import { PROGRAM } from '../../support/program.ts'
import { describeWith } from '../../support/programs.ts'
import { trustedProxies } from '../../../src/transport/http1/server/connection/trusted-proxies.ts'
import { freePort } from '../../support/free-port.ts'

const certificate = (): { readonly cert: string; readonly key: string; readonly ca: string } => {
  using made = makeCertificates('localhost')
  return { cert: made.text('server'), key: made.text('server.key'), ca: made.text('ca') }
}

const MODERN = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'a__echo',
    arguments: { text: 'é 💡' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
})
const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'a__echo',
}

describe.each(['own', 'node'] as const)('a listener with TLS whose plain requests %s reads', (choice) => {
  test('answers small, large and streamed bodies on one connection, and takes large ones', async () => {
    const { ca, ...tls } = certificate()
    const large = 'x'.repeat(3_000_000)
    await using door = await openDoor(
      choice,
      (asked) => {
        if (asked.path === '/large') return asked.reply(200, {}, [Buffer.from(large)])
        asked.readBody(8_000_000, (body) => asked.reply(200, {}, [Buffer.from(`${asked.path} ${body.length}`)]))
      },
      { tls },
    )
    const client = new Client(`https://localhost:${door.listening.tcp?.port}`, { connect: { ca } })
    onTestFinished(() => client.close())
    const post = async (path: string, body: string): Promise<string> =>
      (await client.request({ method: 'POST', path, body })).body.text()
    for (let at = 0; at < 20; at++) expect(await post(`/${at}`, 'y'.repeat(at))).toBe(`/${at} ${at}`)
    expect(await post('/upload', large)).toBe('/upload 3000000')
    expect(await post('/large', '')).toBe(large)
    expect(door.sockets.entries).toHaveLength(1)
  })

  test('F-21 a host that reads a big answer slowly gets all of it: it has not stalled', { timeout: 60_000 }, async () => {
    const { ca, ...tls } = certificate()
    const large = 'x'.repeat(20_000_000)
    await using door = await openDoor(choice, (asked) => asked.reply(200, {}, [Buffer.from(large)]), { tls, writeStallMs: 1_500 })
    await using relay = await slowRelay(new URL(`http://127.0.0.1:${door.listening.tcp?.port}`), 15)
    const client = new Client(`https://localhost:${relay.url.port}`, { connect: { ca } })
    onTestFinished(() => client.close())
    const answer = await client.request({ method: 'POST', path: '/', body: '' })
    expect((await answer.body.text()).length).toBe(large.length)
    expect(door.reached.entries).toEqual([])
  })

  test('a renewed certificate is for new connections; open ones go on', async () => {
    const [first, second] = [certificate(), certificate()]
    await using door = await openDoor(choice, (asked) => asked.reply(200, {}, [Buffer.from('ok')]), { tls: first })
    const port = door.listening.tcp?.port ?? 0
    const clients = [first, second].map(({ ca }) => new Client(`https://localhost:${port}`, { connect: { ca } }))
    onTestFinished(async () => void (await Promise.all(clients.map((client) => client.destroy()))))
    const get = (at: number) => clients[at]!.request({ method: 'GET', path: '/' }).then(({ body }) => body.text())
    expect(await get(0)).toBe('ok')
    await expect(get(1)).rejects.toThrow()
    door.listening.renew(second)
    expect(await get(0)).toBe('ok')
    expect(await get(1)).toBe('ok')
  })

  test('plain HTTP is told that HTTPS is spoken, and old TLS is refused; the listener goes on', async () => {
    const { ca, ...tls } = certificate()
    await using door = await openDoor(choice, (asked) => asked.reply(200, {}, []), { tls })
    const port = door.listening.tcp?.port ?? 0
    expect(await door.open('GET / HTTP/1.1\r\nHost: x\r\n\r\n').closed).toMatch(/^HTTP\/1\.1 400 .*listen\.http\.tls/s)
    const old = connectTls({
      port,
      host: 'localhost',
      ca,
      maxVersion: 'TLSv1.1',
      minVersion: 'TLSv1.1',
      ciphers: 'ALL@SECLEVEL=0',
    })
    await once(old, 'error')
    expect(await door.open('\u0016\u0003\u0001garbage that is no handshake').closed).toBeDefined()
    const agent = new Agent({ connect: { ca } })
    onTestFinished(() => agent.close())
    expect((await fetch(`https://localhost:${port}/`, { dispatcher: agent })).status).toBe(200)
  })
})

test.each(['own', 'node'] as const)(
  'the authority of an absolute target is the Host of a request that %s reads',
  async (choice) => {
    await using door = await openDoor(choice, (asked) => asked.reply(200, {}, [Buffer.from(JSON.stringify(asked.headers()))]), {})
    for (const [target, host] of [
      ['/', 'other'],
      ['http://named:1/', 'named:1'],
    ] as const) {
      const reply = await door.open(`GET ${target} HTTP/1.1\r\nHost: other\r\nX-A: b\r\nConnection: close\r\n\r\n`).closed
      expect(JSON.parse(reply?.split('\r\n\r\n')[1] ?? '')).toMatchObject({ host, 'x-a': 'b' })
    }
  },
)

describe.each(['own', 'node'] as const)('connections of trusted proxies whose plain requests %s reads', (choice) => {
  const open = (trusted: readonly string[], more: object = {}) =>
    openDoor(choice, (asked) => asked.reply(200, {}, [Buffer.from(`from ${asked.client}`)]), {
      trusted: trustedProxies(trusted),
      takesProxyHeader: true,
      ...more,
    })
  const GET = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

  test('begin with a PROXY header, in one piece or many, which names their client', async () => {
    await using door = await open(['loopback'])
    expect(await door.open(`PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\n${GET}`).closed).toContain('from 203.0.113.9')
    const wire = door.open()
    for (const piece of `PROXY TCP6 2001:db8::9 ::1 1 2\r\n${GET}`) {
      wire.send(piece)
      await new Promise(setImmediate)
    }
    expect(await wire.closed).toContain('from 2001:db8::9')
    expect(await door.open(`PROXY UNKNOWN\r\n${GET}`).closed).toContain('from 127.0.0.1')
  })

  test('without one are told what is missing', async () => {
    await using door = await open(['loopback'])
    expect(await door.open(GET).closed).toMatch(/^HTTP\/1\.1 400 .*PROXY header was expected.*listen\.http\.proxy_protocol/s)
  })

  test('are not kept while the header does not come (T-23)', async () => {
    await using door = await open(['loopback'], { headersTimeoutMs: 100 })
    expect(await door.open('PROXY TCP4 20').closed).toContain('408')
    expect(door.reached.entries).toContain('listen.limits.headers_timeout')
  })

  test('of a peer that is not trusted it is no request', async () => {
    await using door = await open(['10.0.0.1'])
    expect(await door.open(`PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\n${GET}`).closed).toMatch(/^HTTP\/1\.1 400/)
    expect(await door.open(GET).closed).toContain('from 127.0.0.1')
  })

  test('begin with their request where no PROXY header is configured', async () => {
    await using door = await open(['loopback'], { takesProxyHeader: undefined })
    expect(await door.open(GET).closed).toContain('from 127.0.0.1')
  })

  test('X-Forwarded-For is believed of them, and of no other', async () => {
    for (const [trusted, client] of [
      ['loopback', '203.0.113.9'],
      ['10.0.0.1', '127.0.0.1'],
    ] as const) {
      await using door = await open([trusted], { takesProxyHeader: false, forwarded: () => 'x-forwarded-for' })
      const wire = door.open(GET.replace('\r\n\r\n', '\r\nX-Forwarded-For: 1.1.1.1, 203.0.113.9\r\n\r\n'))
      expect(await wire.closed).toContain(`from ${client}`)
    }
  })
})

test.runIf(process.platform === 'linux')(
  'F-22 a listener that has stopped leaves the socket of its successor, also where that has the number of its own file',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'socket-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'x.sock')
    const door = await openDoor('own', () => undefined, {}, { path, mode: 0o600 })
    // File systems give the number of a removed file to the next one: a second name of the file stands for that.
    linkSync(path, `${path}.next`)
    await door.listening.stopAccepting()
    await vi.waitUntil(() => !existsSync(path))
    renameSync(`${path}.next`, path)
    await door[Symbol.asyncDispose]()
    expect(existsSync(path)).toBe(true)
  },
)

describe('a gateway', () => {
  test('speaks HTTPS, reads a renewed certificate, and refuses a wrong one without a change', async () => {
    using first = makeCertificates('localhost')
    using second = makeCertificates('localhost')
    await using cli = await commandLine({ cert: first.text('server'), key: first.text('server.key') })
    const yaml = 'listen: { http: { tls: { cert: ./cert, key: ./key } } }\n'
    await cli.write('trunkline.yaml', `${yaml}servers: { a: ${cli.fake()} }\n`)
    await using up = await cli.up()
    expect(up.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/mcp$/)
    const url = up.url.replace('127.0.0.1', 'localhost')
    const call = async (ca: string): Promise<string> => {
      const agent = new Agent({ connect: { ca } })
      try {
        return await (await request(url, { method: 'POST', headers: HEADERS, body: MODERN, dispatcher: agent })).body.text()
      } finally {
        await agent.close()
      }
    }
    expect(await call(first.text('ca'))).toContain('é 💡')
    await cli.write('key', second.text('server.key'))
    expect((await cli.here('reload')).stderr).toContain('the key does not belong to the certificate')
    expect(await call(first.text('ca'))).toContain('é 💡')
    await cli.write('cert', second.text('server'))
    await up.said(/configuration reloaded/)
    expect(await call(second.text('ca'))).toContain('é 💡')
    await expect(call(first.text('ca'))).rejects.toThrow(/certificate/)
    expect((await cli.here('ps')).stdout).toContain('https://127.0.0.1')
  }, 60_000)

  test('listens at a unix socket alone, with its permissions; a second one is refused, a stale file replaced, any other kept', async () => {
    await using cli = await commandLine()
    const yaml = `listen: { http: { bind: none }, unix: ./x.sock, unix_mode: "0660" }\nservers: { a: ${cli.fake()} }\n`
    await cli.write('trunkline.yaml', yaml)
    await cli.write('x.sock', 'a file of a person')
    expect(await cli.here('up')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('choose another for listen.unix') as string,
    })
    rmSync(cli.path('x.sock'))
    // What a process left behind that was killed.
    const dead = spawn(process.execPath, [
      '-e',
      `require('net').createServer().listen(${JSON.stringify(cli.path('x.sock'))}, () => process.kill(process.pid, 'SIGKILL'))`,
    ])
    await once(dead, 'exit')
    expect(existsSync(cli.path('x.sock'))).toBe(true)
    await using up = cli.spawn(['up'])
    expect(await up.said(/^trunkline is ready/)).toBe(`trunkline is ready: unix://${cli.path('x.sock')}#/mcp`)
    expect(lstatSync(cli.path('x.sock')).mode & 0o777).toBe(0o660)
    const agent = new Agent({ connect: { socketPath: cli.path('x.sock') } })
    const post = { method: 'POST', headers: HEADERS, body: MODERN, dispatcher: agent } as const
    expect(await (await request('http://any.name/mcp', post)).body.text()).toContain('é 💡')
    await cli.write('trunkline.yaml', yaml.replace('0660', '0600'))
    expect((await cli.here('reload', '-y')).code).toBe(0)
    expect(lstatSync(cli.path('x.sock')).mode & 0o777).toBe(0o600)
    await cli.write('other.yaml', yaml)
    expect((await cli.here('up', '-c', 'other.yaml')).stderr).toContain('is in use')
    await agent.destroy()
    up.signal('SIGTERM')
    expect(await up.ended).toBe(0)
    expect(existsSync(cli.path('x.sock'))).toBe(false)
  }, 60_000)

  test('takes the sockets of systemd, and keeps them from its servers', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tl-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const [socket, other] = [createServer(), createServer()]
    socket.listen(0, '127.0.0.1')
    other.listen(join(folder, 'y.sock'))
    await Promise.all([once(socket, 'listening'), once(other, 'listening')])
    onTestFinished(() => void [socket.close(), other.close()])
    const { port } = socket.address() as { port: number }
    const fds = [socket, other].map((one) => (one as unknown as { _handle: { fd: number } })._handle.fd)
    await using cli = await commandLine()
    const lister =
      'const fs = require("fs"); console.error("descriptors", [3, 4].map((fd) => fs.readlinkSync("/proc/self/fd/" + fd)).join(" "))'
    await cli.write(
      'trunkline.yaml',
      `listen: { systemd: true }\nservers:\n  a: { command: ${JSON.stringify(process.execPath)}, args: [-e, ${JSON.stringify(lister)}] }\n`,
    )
    const child = spawn('sh', ['-c', 'export LISTEN_PID=$$ LISTEN_FDS=2; exec "$0" "$@"', process.execPath, PROGRAM, 'up'], {
      cwd: cli.folder,
      env: cli.env,
      stdio: ['ignore', 'ignore', 'pipe', ...fds],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let said = ''
    await new Promise<void>((resolve) => {
      child.stderr!.on('data', (chunk: Buffer) => {
        said += chunk.toString()
        if (/trunkline is ready/.test(said)) resolve()
      })
      child.once('exit', () => resolve())
    })
    expect(said).toContain(`trunkline is ready: http://127.0.0.1:${port}/mcp`)
    // The test's own server has no listener of ours: the kernel gives connections to both; ours answers at least one of them.
    socket.close()
    other.close()
    expect((await request(`http://127.0.0.1:${port}/healthz`)).statusCode).toBe(200)
    const agent = new Agent({ connect: { socketPath: join(folder, 'y.sock') } })
    onTestFinished(() => agent.close())
    const lines = await vi.waitFor(
      async () => {
        const { stdout } = await cli.here('logs', 'a')
        expect(stdout).toContain('descriptors')
        return stdout
      },
      { timeout: 50_000, interval: 50 },
    )
    expect(lines).not.toContain('socket:')
    child.kill('SIGTERM')
    await once(child, 'exit')
  }, 60_000)

  test('T-04 a socket of systemd that the network can reach is served with auth only, also after a reload', async () => {
    const socket = createServer().listen(0, '127.0.0.1')
    await once(socket, 'listening')
    onTestFinished(() => void socket.close())
    const { fd } = (socket as unknown as { _handle: { fd: number } })._handle
    const auth = `auth: { tokens: [{ id: ci, hash: "sha256:${createHash('sha256').update('a token').digest('hex')}" }] }\n`
    const yaml = `listen: { systemd: true }\nreload: { watch: false }\nservers: { }\n`
    // The test binds loopback addresses only: the process is shown another one.
    await using cli = await commandLine({
      'trunkline.yaml': yaml,
      'seen.cjs': `const { Server } = require('node:net')
        const { address } = Server.prototype
        Server.prototype.address = function () {
          const bound = address.call(this)
          return bound?.address === '127.0.0.1' ? { ...bound, address: '192.0.2.9' } : bound
        }`,
    })
    const serve = () => {
      const child = spawn('sh', ['-c', 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@"', process.execPath, PROGRAM, 'up'], {
        cwd: cli.folder,
        env: { ...cli.env, NODE_OPTIONS: `--require=${cli.path('seen.cjs')}` },
        stdio: ['ignore', 'ignore', 'pipe', fd],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      let said = ''
      child.stderr!.on('data', (chunk: Buffer) => (said += chunk.toString()))
      const saidSoon = (pattern: RegExp) => vi.waitFor(() => expect(said).toMatch(pattern), { timeout: 50_000, interval: 20 })
      return { child, saidSoon }
    }
    const open = serve()
    await open.saidSoon(/192\.0\.2\.9:\d+, can be reached from the network, and hosts are not authenticated: configure auth/)
    await cli.write('trunkline.yaml', auth + yaml)
    const { child, saidSoon } = serve()
    await saidSoon(/trunkline is ready/)
    const { port } = socket.address() as { port: number }
    socket.close()
    const status = async () =>
      (await request(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers: HEADERS, body: MODERN })).statusCode
    expect(await status()).toBe(401)
    await cli.write('trunkline.yaml', yaml)
    child.kill('SIGHUP')
    await saidSoon(/can be reached from the network.*the new configuration is not applied/)
    expect(await status()).toBe(401)
  }, 60_000)

  test('says why no socket was passed, and what a listener is missing', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': 'listen: { systemd: true }\nservers: {}\n' })
    expect((await cli.here('check')).stderr).toContain('no socket was passed to this process (LISTEN_FDS)')
    const wrong = async (listen: string): Promise<string> => {
      await cli.write('trunkline.yaml', `listen: ${listen}\nservers: {}\n`)
      return (await cli.here('check')).stderr
    }
    expect(await wrong('{ http: { bind: none } }')).toContain('there is no address left to listen at')
    expect(await wrong('{ http: { tls: { cert: a } } }')).toContain('"cert" and "key" belong together')
    expect(await wrong('{ http: { tls: { cert: a, key: b } } }')).toContain('ENOENT')
    expect(await wrong('{ http: { proxy_protocol: true } }')).toContain('no proxy is trusted')
    expect(await wrong('{ http: { trusted_proxies: [everything] } }')).toContain('expected an address, a network')
    expect(await wrong(`{ unix: ./${'long'.repeat(40)} }`)).toContain('bytes that fit')
    expect(await wrong('{ unix: x, unix_mode: rw }')).toContain('expected permissions such as "0660"')
  })
})

describeWith(['haproxy'], 'behind HAProxy', () => {
  test.each(['send-proxy', 'send-proxy-v2'])(
    '%s over TLS names the client in the audit log',
    async (word) => {
      using made = makeCertificates('localhost')
      await using cli = await commandLine({ cert: made.text('server'), key: made.text('server.key') })
      await cli.write(
        'trunkline.yaml',
        [
          'listen: { http: { tls: { cert: ./cert, key: ./key }, trusted_proxies: [127.0.0.1], proxy_protocol: true } }',
          'telemetry: { log: { audit: ./audit.ndjson } }',
          `servers: { a: ${cli.fake()} }`,
        ].join('\n'),
      )
      await using up = await cli.up()
      const port = new URL(up.url).port
      const front = await freePort()
      writeFileSync(
        cli.path('haproxy.cfg'),
        [
          'defaults',
          '  mode http',
          '  timeout connect 5s',
          '  timeout client 5s',
          '  timeout server 5s',
          'listen front',
          `  bind 127.0.0.1:${front}`,
          `  server a 127.0.0.1:${port} ${word} check-send-proxy check ssl verify none`,
          '',
        ].join('\n'),
      )
      const haproxy = spawn('haproxy', ['-f', cli.path('haproxy.cfg')], { stdio: 'ignore' })
      onTestFinished(() => void haproxy.kill('SIGTERM'))
      const agent = new Agent({ localAddress: '127.0.0.7' })
      onTestFinished(() => agent.close())
      const ask = () => request(`http://127.0.0.1:${front}/nothing`, { method: 'POST', dispatcher: agent }).catch(() => undefined)
      await vi.waitFor(async () => expect((await ask())?.statusCode).toBe(404), { timeout: 50_000, interval: 50 })
      up.signal('SIGTERM')
      await up.ended
      expect(cli.log('audit.ndjson').map((line) => JSON.parse(line) as object)).toContainEqual(
        expect.objectContaining({
          decision: 'denied',
          path: '/nothing',
          client: '127.0.0.7',
        }),
      )
    },
    60_000,
  )
})
