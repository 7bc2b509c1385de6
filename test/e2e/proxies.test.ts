/** Real proxies with the configurations of docs/proxies.md before two replicas: hosts of every kind, and a rolling restart under calls. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { FakeDownstream } from '../support/fake-downstream.ts'
import { legacyHttp, legacySse, modernHttp } from '../support/fake-host.ts'
import { KEY, MODERN } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import type { TestGateway } from '../support/gateway.ts'
import { gatewayHome, startGatewayProcess } from '../support/gateway-process.ts'
import { describeWith } from '../support/programs.ts'

const PAGE = readFileSync(new URL('../../docs/proxies.md', import.meta.url), 'utf8')

interface Proxy {
  readonly program: string
  /** Of the block in the page. */
  readonly language: string
  /** What the page takes for granted around the block. */
  readonly around?: (block: string, folder: string) => string
  readonly args: (file: string, folder: string) => readonly string[]
  /** What keeps a caller on one replica, and what spreads calls instead. */
  readonly spread: readonly [sticky: string | RegExp, even: string]
}

const APACHE_MODULES = ['mpm_event', 'authz_core', 'slotmem_shm', 'proxy', 'proxy_http', 'proxy_balancer', 'lbmethod_byrequests']

const PROXIES: readonly Proxy[] = [
  {
    program: 'nginx',
    language: 'nginx',
    args: (file, folder) => ['-c', file, '-e', join(folder, 'nginx.log'), '-g', `daemon off; pid ${join(folder, 'nginx.pid')};`],
    spread: [/ {4}hash .*\n/, ''],
  },
  {
    program: 'haproxy',
    language: 'haproxy',
    args: (file) => ['-db', '-f', file],
    spread: ['balance source', 'balance roundrobin'],
  },
  {
    program: 'caddy',
    language: 'caddyfile',
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    spread: ['lb_policy ip_hash', 'lb_policy random'],
  },
  {
    program: 'apache2',
    language: 'apache',
    around: (block, folder) => `
ServerRoot ${folder}
ServerName localhost
PidFile ${join(folder, 'apache.pid')}
ErrorLog ${join(folder, 'apache.log')}
Listen 127.0.0.1:8080
${APACHE_MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
${block}`,
    args: (file) => ['-D', 'FOREGROUND', '-f', file],
    spread: [' status=+H', ''],
  },
  {
    program: 'varnishd',
    language: 'vcl',
    args: (file, folder) => ['-F', '-j', 'none', '-a', '127.0.0.1:8080', '-f', file, '-n', join(folder, 'varnish')],
    spread: [/callers\.backend\(.*?\);/, 'turns.backend();'],
  },
]

/** Two replicas behind a proxy. `isEven`: calls are spread over both. */
const startBehind = async ({ program, language, around, args, spread }: Proxy, isEven: boolean) => {
  await using stack = new AsyncDisposableStack()
  const downstream = stack.use(
    await FakeDownstream.start({ kind: 'modern http', tools: ['echo'], on: { 'tools/call': () => ({ content: [] }) } }),
  )
  const home = stack.use(await gatewayHome())
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const url = 'url' in downstream.address ? downstream.address.url.href : ''
  const start = async (port: number) => {
    const file = await home.write(`at-${port}`, { servers: { a: { url } } })
    return startGatewayProcess(file, '--listen', `127.0.0.1:${port}`)
  }
  const replicas = [await start(ports[0]), await start(ports[1])]
  stack.defer(async () => void (await Promise.all(replicas.map((replica) => replica.stop()))))
  const block = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(PAGE)?.[1] ?? ''
  const whole = around?.(block, home.folder) ?? block
  const told = whole.replace('7421', String(ports[0])).replace('7422', String(ports[1])).replace('8080', String(ports[2]))
  const file = join(home.folder, `${program}.conf`)
  writeFileSync(file, isEven ? told.replace(...spread) : told)
  const words = args(file, home.folder).map((word) => word.replace('8080', String(ports[2])))
  const child = spawn(program, words, { stdio: 'ignore', env: { ...process.env, HOME: home.folder } })
  const exited = once(child, 'exit')
  stack.defer(async () => {
    child.kill()
    await exited
  })
  const endpoint = new URL(`http://127.0.0.1:${ports[2]}/mcp`)
  await vi.waitUntil(
    () =>
      send(new URL('/readyz', endpoint), { method: 'GET' }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    {
      timeout: 60_000,
      interval: 50,
    },
  )
  const kept = stack.move()
  return { endpoint, ports, replicas, start, downstream, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'a__echo', arguments: {}, _meta: { [KEY.version]: MODERN, [KEY.capabilities]: {} } },
})
const HEADERS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': 'a__echo' }

// Side by side: most of their time goes by in start-ups, probes and drains.
describe.concurrent.each(PROXIES)('$program', (proxy) => {
  describeWith([proxy.program], `behind ${proxy.program}`, () => {
    test('hosts of every kind are served, and bodies of 3.5 MB', async () => {
      await using behind = await startBehind(proxy, false)
      const gateway = { url: behind.endpoint } as TestGateway
      for (const { connect } of [modernHttp, legacyHttp, legacySse]) {
        await using host = await connect(gateway)
        expect(await host.call('tools/call', { name: 'a__echo', arguments: { text: 'x'.repeat(3_500_000) } })).toMatchObject({
          content: [],
        })
      }
    }, 120_000)

    test('F-22 no modern call fails while one replica after the other is restarted', async () => {
      await using behind = await startBehind(proxy, true)
      const { endpoint, ports, replicas, start } = behind
      const failed: unknown[] = []
      let calls = 0
      const load = { isOver: false }
      const worker = async (): Promise<void> => {
        while (!load.isOver) {
          calls++
          const end = await send(endpoint, { headers: HEADERS, body: CALL }).then(
            async (reply) => (reply.status === 200 ? undefined : `${reply.status} ${await reply.body}`),
            String,
          )
          if (end !== undefined) failed.push(end)
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
      }
      const workers = Array.from({ length: 4 }, worker)
      const passed = async (more: number): Promise<void> => {
        const from = calls
        await vi.waitUntil(() => calls >= from + more, { timeout: 30_000 })
      }
      for (const at of [0, 1] as const) {
        // Long enough for the proxy to have found the replica that was started before.
        await passed(600)
        await replicas[at]?.stop()
        replicas[at] = await start(ports[at])
      }
      await passed(100)
      load.isOver = true
      await Promise.all(workers)
      expect(failed).toEqual([])
      expect(calls).toBeGreaterThan(1_000)
    }, 120_000)
  })
})
