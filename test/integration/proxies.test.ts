/** Servers that are reached through an HTTP proxy only: their names mean nothing here, and everything to the proxy. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as send } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { connect } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { SafeFetch } from '../../src/auth/fetch/safe-fetch.ts'
import type { ServerOptions } from '../../src/downstream/options.ts'
import { UndiciClient } from '../../src/transport/http1/client/http-client.ts'
import { NO_PROXIES } from '../../src/transport/http1/client/proxy-rules.ts'
import type { ProxyRules } from '../../src/transport/http1/client/proxy-rules.ts'
import type { Failure } from '../../src/wire/message/failure.ts'
import { makeCertificates } from '../support/certificates.ts'
import { FakeDownstream } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { modernHttp } from '../support/fake-host.ts'
import { openHttpProxy } from '../support/fakes/http-proxy.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { gatewayHome, startGatewayAfter } from '../support/gateway-process.ts'
import { describeWith } from '../support/programs.ts'
import { freePort } from '../support/free-port.ts'
import { listening } from '../support/listening.ts'

const rules = (proxy: string): ProxyRules => ({ http: proxy, https: proxy, except: [] })
const ECHO: FakeSpec = { tools: ['echo'], on: { 'tools/call': () => ({ content: [{ type: 'text', text: 'hello' }] }) } }
const HELLO = { content: [{ type: 'text', text: 'hello' }] }

interface Behind extends AsyncDisposable {
  readonly gateway: TestGateway
  readonly port: string
}

/** A gateway whose one server is called `mcp.test`. */
const startBehind = async (spec: FakeSpec, options: (url: URL) => Partial<ServerOptions>, early = false): Promise<Behind> => {
  const downstream = await FakeDownstream.start(spec)
  const { address } = downstream
  if (!('url' in address)) throw new Error('reached over HTTP only')
  const url = new URL(address.url.href)
  url.hostname = 'mcp.test'
  const gateway = await startGateway({
    servers: {},
    fakes: new Map([['a', downstream]]),
    options: { a: { url, ...options(url) } },
    early,
  })
  return {
    gateway,
    port: url.port,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      await downstream[Symbol.asyncDispose]()
    },
  }
}

const callEcho = async (gateway: TestGateway): Promise<unknown> => {
  await using host = await modernHttp.connect(gateway)
  return await host.call('tools/call', { name: 'a__echo' })
}

describe.each(['legacy http', 'legacy sse', 'modern http'] as const)('a %s server behind a proxy', (kind) => {
  test('is reached through it, with the name and password of its URL', async () => {
    await using proxy = await openHttpProxy({ password: 'us er:p@ss' })
    const named = `http://us%20er:p%40ss@127.0.0.1:${proxy.port}`
    await using behind = await startBehind({ ...ECHO, kind }, () => ({ proxies: rules(named) }))
    expect(await callEcho(behind.gateway)).toMatchObject(HELLO)
    expect(proxy.seen.entries.map(({ target }) => new URL(target).host)).toEqual(
      proxy.seen.entries.map(() => `mcp.test:${behind.port}`),
    )
    expect(behind.gateway.fake('a').received.length).toBeGreaterThan(0)
  })

  test('is reached through it with a password that has a percent sign as it is', async () => {
    await using proxy = await openHttpProxy({ password: 'user:50%' })
    await using behind = await startBehind({ ...ECHO, kind }, () => ({
      proxies: rules(`http://user:50%@127.0.0.1:${proxy.port}`),
    }))
    expect(await callEcho(behind.gateway)).toMatchObject(HELLO)
  })

  test('is not reached where the proxy wants another password, and the reason names the proxy, not the password', async () => {
    await using proxy = await openHttpProxy({ password: 'user:right' })
    const wrong = `http://user:wrong-password@127.0.0.1:${proxy.port}`
    await using behind = await startBehind({ ...ECHO, kind }, () => ({ proxies: rules(wrong) }), true)
    const [downstream] = behind.gateway.running.fleet.downstreams$.value
    const reason = await vi.waitUntil(() => downstream?.health$.value.reason)
    expect(reason).toMatch(`through the proxy http://127.0.0.1:${proxy.port}`)
    expect(reason).toMatch('407')
    expect(reason).not.toMatch('wrong-password')
  })
})

test('a server on this machine is never reached through a proxy', async () => {
  await using proxy = await openHttpProxy()
  await using gateway = await startGateway({ servers: { a: ECHO }, options: { a: { proxies: rules(proxy.url) } } })
  expect(await callEcho(gateway)).toMatchObject(HELLO)
  expect(proxy.seen.entries).toEqual([])
})

test('a proxied request has the time-outs it was given, not those of the HTTP client', async () => {
  await using proxy = await openHttpProxy()
  await using downstream = await FakeDownstream.start(ECHO)
  downstream.intercept = () => true
  const client = new UndiciClient({ proxy: new URL(proxy.url) })
  const { promise, resolve } = Promise.withResolvers<Failure>()
  const url = 'url' in downstream.address ? downstream.address.url : undefined
  client.request(
    { method: 'GET', url: new URL(String(url)), headers: {}, headersTimeoutMs: 100 },
    { onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onError: resolve },
  )
  expect(await promise).toMatchObject({ kind: 'timeout' })
  await client.close()
})

test('a proxy that never answers a CONNECT makes the server unreachable', async () => {
  await using proxy = await openHttpProxy({ isSilent: true })
  const client = new UndiciClient({ proxy: new URL(proxy.url), connectTimeoutMs: 200 })
  const { promise, resolve } = Promise.withResolvers<Failure>()
  client.request(
    { method: 'GET', url: new URL('https://mcp.test/'), headers: {} },
    { onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onError: resolve },
  )
  expect(await promise).toMatchObject({ kind: 'unreachable', facts: { executed: 'no' } })
  await client.close()
})

describe('TLS', () => {
  const startSecure = async (names: readonly string[]) => {
    const pem = makeCertificates(...names)
    const downstream = await FakeDownstream.start({ ...ECHO, kind: 'modern http' })
    const { address } = downstream
    if (!('url' in address)) throw new Error('reached over HTTP only')
    const clients: (string | undefined)[] = []
    const server = createServer(
      { cert: pem.text('server'), key: pem.text('server.key'), ca: pem.text('ca'), requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        const socket = request.socket as TLSSocket
        clients.push(socket.authorized ? String(socket.getPeerCertificate().subject.CN) : undefined)
        forward(request, response, address.url)
      },
    )
    const opened = await listening(server)
    return {
      pem,
      port: opened.port,
      clients,
      downstream,
      async [Symbol.asyncDispose]() {
        pem[Symbol.dispose]()
        await opened[Symbol.asyncDispose]()
        await downstream[Symbol.asyncDispose]()
      },
    }
  }
  const gatewayTo = (downstream: FakeDownstream, options: Partial<ServerOptions>, early = false) =>
    startGateway({ servers: {}, fakes: new Map([['a', downstream]]), options: { a: options }, early })

  test('through a proxy by CONNECT, with the authority, certificate and name that the server is configured with', async () => {
    await using secure = await startSecure(['inner.test'])
    await using proxy = await openHttpProxy({ password: 'user:pass' })
    const { pem, port } = secure
    const tls = { ca: pem.text('ca'), cert: pem.text('client'), key: pem.text('client.key'), serverName: 'inner.test' }
    await using gateway = await gatewayTo(secure.downstream, {
      url: new URL(`https://outer.test:${port}/mcp`),
      proxies: rules(`http://user:pass@127.0.0.1:${proxy.port}`),
      tls,
    })
    expect(await callEcho(gateway)).toMatchObject(HELLO)
    expect(new Set(proxy.seen.entries.map(({ method, target }) => `${method} ${target}`))).toEqual(
      new Set([`CONNECT outer.test:${port}`]),
    )
    expect(new Set(secure.clients)).toEqual(new Set(['client']))
  })

  test('without a proxy, and not without the authority', async () => {
    await using secure = await startSecure(['localhost'])
    const url = new URL(`https://localhost:${secure.port}/mcp`)
    const tls = { ca: secure.pem.text('ca'), cert: undefined, key: undefined, serverName: undefined }
    {
      await using gateway = await gatewayTo(secure.downstream, { url, tls })
      expect(await callEcho(gateway)).toMatchObject(HELLO)
      expect(new Set(secure.clients)).toEqual(new Set([undefined]))
    }
    await using untrusting = await gatewayTo(secure.downstream, { url, tls: undefined }, true)
    const [downstream] = untrusting.running.fleet.downstreams$.value
    await vi.waitUntil(() => JSON.stringify(downstream?.health$.value).includes('certificate'))
  })

  test('OAuth and keys: what the environment names is used for them, and a name that is private here is refused', async () => {
    await using secure = await startSecure(['as.test'])
    await using proxy = await openHttpProxy({ password: 'user:pass' })
    const named = rules(`http://user:pass@127.0.0.1:${proxy.port}`)
    await using safe = new SafeFetch({
      lookup: (name, _options, done) =>
        name === 'inside.test' ? done(null, [{ address: '10.0.0.1', family: 4 }]) : done(new Error('unknown here'), []),
    })
    const url = `https://as.test:${secure.port}/.well-known/oauth-authorization-server`
    // The authority is not trusted by this process, so the certificate is as far as it comes.
    await expect(safe.through(() => named)({ url, reach: 'public' })).rejects.toThrow(
      /through the proxy http:\/\/127\.0\.0\.1:\d+: .*cert/,
    )
    expect(proxy.seen.entries).toEqual([
      { method: 'CONNECT', target: `as.test:${secure.port}`, authorization: `Basic ${btoa('user:pass')}` },
    ])
    await expect(safe.through(() => NO_PROXIES)({ url, reach: 'public' })).rejects.toThrow('unknown here')
    for (const refused of ['https://inside.test/', 'https://10.1.2.3/', 'https://169.254.169.254/'])
      await expect(safe.through(() => named)({ url: refused, reach: 'public' })).rejects.toThrow('private network')
    expect(proxy.seen.entries).toHaveLength(1)
  })

  test('a process takes proxy and authority from its environment, and so do its children', async () => {
    await using secure = await startSecure(['mcp.test'])
    await using proxy = await openHttpProxy()
    await using home = await gatewayHome()
    const script =
      'const { env } = process; process.stderr.write(["child", env.HTTPS_PROXY, env.NODE_EXTRA_CA_CERTS, ""].join(" ") + "\\n")'
    const file = await home.write('main', {
      telemetry: { log: { level: 'debug' } },
      servers: {
        a: { url: `https://mcp.test:${secure.port}/mcp` },
        child: { command: process.execPath, args: ['-e', script] },
      },
    })
    const environment = `export HTTPS_PROXY=${proxy.url} NODE_EXTRA_CA_CERTS=${secure.pem.path('ca')}`
    await using gateway = await startGatewayAfter(environment, file)
    await gateway.saw((said) => said.some((line) => line.includes(`child ${proxy.url} ${secure.pem.path('ca')}`)))
    await vi.waitUntil(() => secure.downstream.received.some(({ message }) => message['method'] === 'tools/list'), {
      timeout: 5_000,
    })
    expect(proxy.seen.entries[0]).toMatchObject({ method: 'CONNECT', target: `mcp.test:${secure.port}` })
  })
})

describeWith(['tinyproxy'], 'tinyproxy', () => {
  test('a server is reached through it with a password, and not without', async () => {
    // It resolves names by its machine, which knows no mcp.test; what is behind it does.
    await using beyond = await openHttpProxy()
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-tinyproxy-'))
    const port = await freePort()
    const file = join(folder, 'tinyproxy.conf')
    writeFileSync(
      file,
      [
        `Port ${port}`,
        'Listen 127.0.0.1',
        'Timeout 60',
        'BasicAuth user pass',
        `Upstream http 127.0.0.1:${beyond.port} ".test"`,
        '',
      ].join('\n'),
    )
    const child = spawn('tinyproxy', ['-d', '-c', file], { stdio: 'ignore' })
    const exited = once(child, 'exit')
    try {
      await vi.waitUntil(() => isListening(port), { timeout: 5_000 })
      await using behind = await startBehind({ ...ECHO, kind: 'modern http' }, () => ({
        proxies: rules(`http://user:pass@127.0.0.1:${port}`),
      }))
      expect(await callEcho(behind.gateway)).toMatchObject(HELLO)
      expect(beyond.seen.entries.length).toBeGreaterThan(0)
      await using without = await startBehind(ECHO, () => ({ proxies: rules(`http://127.0.0.1:${port}`) }), true)
      const [downstream] = without.gateway.running.fleet.downstreams$.value
      await vi.waitUntil(() => JSON.stringify(downstream?.health$.value).includes('407'))
    } finally {
      child.kill()
      await exited
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

/** Ends TLS before a server that speaks none. */
const forward = (request: IncomingMessage, response: ServerResponse, to: URL): void => {
  const { method, headers } = request
  const onward = send(new URL(request.url ?? '', to), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 500, answer.headers)
    answer.pipe(response)
  })
  onward.on('error', () => response.destroy())
  response.on('close', () => onward.destroy())
  request.pipe(onward)
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
