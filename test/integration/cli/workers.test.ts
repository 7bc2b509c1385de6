/** `listen.workers`: several processes serve one configuration at one address, as one gateway for hosts and operators. */
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import type { Status } from '../../../src/admin/state/status.ts'
import { MEMBER_STRIDE } from '../../../src/app/member.ts'
import { callTool, openAdmin } from '../../support/admin.ts'
import { commandLine } from '../../support/cli.ts'
import { isAlive, isStopped } from '../../support/pids.ts'
import type { Cli, Up } from '../../support/cli.ts'

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: { readonly result?: { readonly content?: readonly { readonly text: string }[] }; readonly error?: unknown }
}

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
}

/** A host with one connection, which one worker has accepted. */
class OneConnection implements Disposable {
  readonly #url: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  constructor(url: string) {
    this.#url = url
  }

  post(message: object, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        this.#url,
        {
          method: 'POST',
          agent: this.#agent,
          headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
        },
        (answer) => {
          let text = ''
          answer.on('data', (bytes: Buffer) => (text += bytes.toString()))
          answer.on('error', reject)
          answer.on('end', () => {
            const last = text
              .split('\n')
              .findLast((line) => line.startsWith('data: {'))
              ?.slice(6)
            const body = JSON.parse(last ?? (text || '{}')) as Answer['body']
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body })
          })
        },
      )
      sent.on('error', reject)
      sent.end(JSON.stringify({ jsonrpc: '2.0', ...message }))
    })
  }

  /** The id of a new legacy session. */
  async initialize(): Promise<string> {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'host', version: '1' } }
    const { headers } = await this.post({ id: 0, method: 'initialize', params })
    const session = String(headers['mcp-session-id'])
    await this.post({ method: 'notifications/initialized' }, { 'mcp-session-id': session })
    return session
  }

  call(session: string, name: string, args: object = {}): Promise<Answer> {
    return this.post({ id: 1, method: 'tools/call', params: { name, arguments: args } }, { 'mcp-session-id': session })
  }

  modern(name: string, args: object = {}): Promise<Answer> {
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name }
    return this.post({ id: 1, method: 'tools/call', params: { name, arguments: args, _meta: MODERN } }, headers)
  }

  /** Resolves with the head of the stream of a session; `told`: with its first message of that method. */
  async listen(session: string): Promise<{ told: (method: string) => Promise<void> }> {
    const stream = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { accept: 'text/event-stream', 'mcp-session-id': session }
      const sent = request(this.#url, { agent: this.#agent, headers }, resolve)
      sent.on('error', reject)
      sent.end()
    })
    let said = ''
    const waiting = new Set<() => void>()
    stream.on('error', () => undefined)
    stream.on('data', (bytes: Buffer) => {
      said += bytes.toString()
      for (const look of waiting) look()
    })
    return {
      told: (method) =>
        new Promise((resolve) => {
          const look = (): void => {
            if (said.includes(`"${method}"`)) resolve()
          }
          waiting.add(look)
          look()
        }),
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}

/** Each starts five processes and more, one after the other. */
const LIMIT_MS = 120_000

const textOf = ({ body }: Answer): string => body.result?.content?.[0]?.text ?? JSON.stringify(body)

const configure = (cli: Cli, more = ''): Promise<void> =>
  cli.write(
    'trunkline.yaml',
    `listen: { workers: 2 }
reload: { watch: false }
servers:
  one: ${cli.fake('chatty', 'one').replace(/ }$/, ', lifecycle: { sharing: shared, spare: 0 } }')}
  own: ${cli.fake('good', 'own')}
${more}`,
  )

const ps = async (cli: Cli): Promise<Status> => JSON.parse((await cli.here('ps', '--json')).stdout) as Status

/** Two workers whose servers are ready. */
const start = async (cli: Cli, more = ''): Promise<Up> => {
  await configure(cli, more)
  const up = await cli.up()
  await Promise.all(
    [1, 2].flatMap((worker) =>
      ['one', 'own'].map((key) => up.said(new RegExp(`"worker":${worker},"server":"${key}".*is ready`))),
    ),
  )
  return up
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('two workers', () => {
  test(
    'F-25 a policy whose file is gone is in force at both, also at one that was started again',
    async () => {
      await using cli = await commandLine()
      await cli.write('rules-one.yaml', 'policy: { default: deny }\n')
      const up = await start(cli, 'include: [rules-*.yaml]\n')
      const denials = async (): Promise<readonly string[]> => {
        using all = new DisposableStack()
        const hosts = Array.from({ length: 4 }, () => all.use(new OneConnection(up.url)))
        return await Promise.all(
          hosts.map(async (host) => textOf(await host.call(await host.initialize(), 'own__echo', { text: 'a' }))),
        )
      }
      const denied = await denials()
      expect(new Set(denied)).toEqual(new Set([expect.stringContaining('denied by policy')]))
      rmSync(cli.path('rules-one.yaml'))
      expect(await cli.here('reload')).toMatchObject({ code: 2, stderr: expect.stringContaining('the file is gone') as string })
      expect(await denials()).toEqual(denied)
      const { workers = [] } = await ps(cli)
      process.kill(workers[0]?.pid ?? 0, 'SIGKILL')
      await up.said(/the worker serves again/)
      expect(await denials()).toEqual(denied)
    },
    LIMIT_MS,
  )

  test(
    'connections spread over both, a session is served over any connection, what all share is one process, and one reload reaches all',
    async () => {
      await using cli = await commandLine()
      const up = await start(cli)
      const hosts = Array.from({ length: 4 }, () => new OneConnection(up.url))
      using all = new DisposableStack()
      for (const host of hosts) all.use(host)
      const sessions: string[] = []
      for (const host of hosts) sessions.push(await host.initialize())
      const { workers = [], servers } = await ps(cli)
      expect(workers.map(({ worker, restarts }) => ({ worker, restarts }))).toEqual([
        { worker: 1, restarts: 0 },
        { worker: 2, restarts: 0 },
      ])
      const counts = workers.map(({ sessions: count }) => count)
      expect(Math.min(...counts)).toBeGreaterThan(0)
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4)
      expect(servers.find(({ key }) => key === 'one')).toMatchObject({ transport: 'stdio', links: 1 })
      // Every session over every connection, and modern hosts, at both servers.
      for (const host of hosts) {
        for (const session of sessions) {
          expect(textOf(await host.call(session, 'one__echo', { text: 'a' }))).toBe('a')
          expect(textOf(await host.call(session, 'own__echo', { text: 'b' }))).toBe('b')
        }
        expect(textOf(await host.modern('one__echo', { text: 'c' }))).toBe('c')
        expect(textOf(await host.modern('own__echo', { text: 'd' }))).toBe('d')
      }
      // What the shared process prints is seen once, whichever worker made it print.
      const printed = async (): Promise<number> => (await cli.here('logs', 'one')).stdout.split('echo a').length - 1
      while ((await printed()) < 16);
      expect(await printed()).toBe(16)
      // As in one process: that of the lists, and that of all calls.
      expect(new Set(cli.log('one')).size).toBe(2)

      const streams = await Promise.all(hosts.map((host, at) => host.listen(sessions[at] ?? '')))
      await configure(cli, `  later: ${cli.fake('good')}\n`)
      expect(await cli.here('reload')).toMatchObject({ code: 0 })
      await Promise.all(streams.map(({ told }) => told('notifications/tools/list_changed')))
      using another = new OneConnection(up.url)
      for (const session of sessions) expect(textOf(await another.call(session, 'later__echo', { text: 'e' }))).toBe('e')
      expect(new Set(cli.log('one')).size).toBe(2)
    },
    LIMIT_MS,
  )

  test(
    'a worker that is killed takes its own calls along, its sessions go on at the other one, and it is started again, watched as before; SIGTERM ends all',
    async () => {
      await using cli = await commandLine()
      const up = await start(cli, 'admin: { bind: "127.0.0.1:0" }\n')
      const admin = await openAdmin(cli)
      using first = new OneConnection(up.url)
      using second = new OneConnection(up.url)
      const sessions = [await first.initialize(), await second.initialize()]
      await Promise.all(sessions.map((session) => first.call(session, 'own__echo', { text: 'a' })))
      const { workers = [], servers } = await ps(cli)
      const pids = workers.map(({ pid }) => pid ?? 0)
      // Both sessions wait for an answer; one of them is at the worker that is killed.
      const waiting = [first, second].map((host, at) =>
        host.call(sessions[at] ?? '', 'own__wait', { until: cli.path(`go${at}`) }).then(textOf, () => 'lost'),
      )
      await cli.called('own', 2)
      process.kill(pids[0] ?? 0, 'SIGKILL')
      await up.said(/a worker has ended/)
      await Promise.all([0, 1].map((at) => cli.write(`go${at}`, '')))
      const ends = await Promise.all(waiting)
      expect(ends.toSorted()).toEqual(['lost', 'waited'])
      using third = new OneConnection(up.url)
      for (const session of sessions) expect(textOf(await third.call(session, 'own__echo', { text: 'b' }))).toBe('b')
      await up.said(/the worker serves again/)
      const after = (await ps(cli)).workers ?? []
      expect(after.map(({ restarts }) => restarts)).toEqual([1, 0])
      expect(after[1]?.pid).toBe(pids[1])
      // The number of a call tells its worker; those of the killed process are gone with it.
      await vi.waitFor(async () => {
        await callTool(up.url, 'one__echo', { text: 'c' })
        const { calls } = (await admin.ask('GET', '/api/calls')).json as { calls: { id: number }[] }
        expect(new Set(calls.map(({ id }) => id % MEMBER_STRIDE))).toContain(1)
      }, 10_000)

      const children = [...servers, ...(await ps(cli)).servers].flatMap(({ processes }) => processes.map(({ pid }) => pid))
      up.signal('SIGTERM')
      expect(await up.ended).toBe(0)
      const left = [...pids, ...after.map(({ pid }) => pid ?? 0), ...children].filter(isRunning)
      expect(left).toEqual([])
    },
    LIMIT_MS,
  )

  test(
    'F-04 a worker that ends again and again is restarted within seconds: a host would find nothing at the address meanwhile',
    async () => {
      await using cli = await commandLine()
      const up = await start(cli)
      const pauses = (): number[] =>
        up.lines.flatMap((line) => /"nextTryMs":(\d+),"msg":"a worker has ended/.exec(line)?.[1] ?? []).map(Number)
      const pids = async () => (await ps(cli)).workers?.flatMap(({ pid }) => pid ?? [])
      for (let end = 1; end <= 5; end++) {
        await expect.poll(pids, { timeout: 30_000 }).toHaveLength(2)
        process.kill((await pids())?.[0] ?? 0, 'SIGKILL')
        await expect.poll(pauses, { timeout: 10_000 }).toHaveLength(end)
      }
      expect(pauses().filter((ms) => ms > 10_000)).toEqual([])
      up.signal('SIGTERM')
      expect(await up.ended).toBe(0)
    },
    LIMIT_MS,
  )

  test.runIf(process.platform === 'linux')(
    'a worker that is killed while it is sent a message does not end the others',
    async () => {
      await using cli = await commandLine()
      const up = await start(cli)
      const { workers = [] } = await ps(cli)
      const [socket = ''] = readdirSync(cli.path('run/trunkline')).filter((name) => name.endsWith('.sock'))
      using agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), { [Symbol.dispose]: () => agent.destroy() })
      const ask = () => {
        const sent = request({ socketPath: cli.path(`run/trunkline/${socket}`), path: '/status', agent })
        const status = (once(sent, 'response') as Promise<[IncomingMessage]>).then(async ([answer]) => {
          await once(answer.resume(), 'end')
          return answer.statusCode
        })
        sent.end()
        return { sent, status }
      }
      expect(await ask().status).toBe(200)
      // What arrives meanwhile is read in this order: the request, which every worker is asked for, and then the end of one.
      up.signal('SIGSTOP')
      await expect.poll(() => isStopped(up.pid)).toBe(true)
      const asked = ask()
      // What was written to the socket of a process on this machine has arrived.
      await once(asked.sent, 'finish')
      const pid = workers[0]?.pid ?? 0
      process.kill(pid, 'SIGKILL')
      await expect.poll(() => isAlive(pid)).toBe(false)
      up.signal('SIGCONT')
      expect(await asked.status).toBe(200)
      await up.said(/the worker serves again/)
      up.signal('SIGTERM')
      expect(await up.ended).toBe(0)
    },
    LIMIT_MS,
  )

  test.runIf(process.platform === 'linux')(
    'F-22 SIGTERM to all processes during the start ends it with exit code 0',
    async () => {
      await using cli = await commandLine()
      await configure(cli)
      const up = cli.spawn(['up', '--listen', '127.0.0.1:0'])
      const children = (): number[] => {
        try {
          return readFileSync(`/proc/${up.pid}/task/${up.pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
        } catch {
          return []
        }
      }
      const workers = (): number[] =>
        children().filter((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8').includes('TRUNKLINE_WORKER'))
      await vi.waitFor(() => expect(workers()).toHaveLength(2), { timeout: 20_000, interval: 5 })
      const all = workers()
      up.signal('SIGTERM')
      for (const pid of all) process.kill(pid, 'SIGTERM')
      const code = await up.ended
      expect([code, up.lines.filter((line) => /ended|unexpected/.test(line))]).toEqual([0, []])
    },
    LIMIT_MS,
  )

  test('a worker that hangs keeps nobody from seeing the state of the others', async () => {
    await using cli = await commandLine()
    const up = await start(cli)
    const { workers = [] } = await ps(cli)
    const pid = workers[0]?.pid ?? 0
    process.kill(pid, 'SIGSTOP')
    try {
      const seen = await ps(cli)
      expect(seen.workers?.map((worker) => worker.pid)).toEqual([undefined, workers[1]?.pid])
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    up.signal('SIGTERM')
    expect(await up.ended).toBe(0)
  }, 30_000)

  test.runIf(process.platform === 'linux')(
    'F-25 a worker that starts during a reload serves the new configuration',
    async () => {
      await using cli = await commandLine()
      const up = await start(cli)
      const { workers = [] } = await ps(cli)
      const journals = (): string[] =>
        readdirSync(cli.path('state'), { recursive: true, encoding: 'utf8' }).flatMap((name) => /pids-\d+/.exec(name) ?? [])
      const known = new Set(journals())
      process.kill(workers[0]?.pid ?? 0, 'SIGKILL')
      // The new worker has read the configuration, and serves nobody yet.
      const [journal = ''] = await vi.waitFor(
        () => {
          const found = journals().filter((name) => !known.has(name))
          expect(found).toHaveLength(1)
          return found
        },
        { timeout: 20_000, interval: 1 },
      )
      const pid = Number(journal.slice('pids-'.length))
      process.kill(pid, 'SIGSTOP')
      try {
        await configure(cli, `  later: ${cli.fake('good')}\n`)
        expect(await cli.here('reload')).toMatchObject({ code: 0 })
      } finally {
        process.kill(pid, 'SIGCONT')
      }
      await up.said(/the worker serves again/)
      await vi.waitFor(async () => {
        const hosts = Array.from({ length: 4 }, () => new OneConnection(up.url))
        using all = new DisposableStack()
        for (const host of hosts) all.use(host)
        const ends = await Promise.all(hosts.map((host) => host.modern('later__echo', { text: 'a' })))
        expect(ends.map(textOf)).toEqual(['a', 'a', 'a', 'a'])
      }, 10_000)
    },
    LIMIT_MS,
  )

  test(
    'F-25 a worker that restarts while a file is being edited serves what the others serve',
    async () => {
      await using cli = await commandLine()
      const up = await start(cli)
      const { workers = [] } = await ps(cli)
      await cli.write('trunkline.yaml', 'servers: [')
      process.kill(workers[0]?.pid ?? 0, 'SIGKILL')
      await up.said(/the worker serves again/)
      const after = await ps(cli)
      expect(after.workers?.map(({ restarts }) => restarts)).toEqual([1, 0])
      const hosts = Array.from({ length: 4 }, () => new OneConnection(up.url))
      using all = new DisposableStack()
      for (const host of hosts) all.use(host)
      const ends = await Promise.all(hosts.map((host) => host.modern('own__echo', { text: 'a' })))
      expect(ends.map(textOf)).toEqual(['a', 'a', 'a', 'a'])
      up.signal('SIGTERM')
      expect(await up.ended).toBe(0)
    },
    LIMIT_MS,
  )
})
