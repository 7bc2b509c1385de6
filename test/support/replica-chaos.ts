/**
 * Three gateway processes behind a balancer without stickiness, with a real redis-server: one replica after the other is killed and started
 * again, the store is paused, a replica is cut off from the store and from the others; hosts of both eras go on calling, all with the id 1.
 * Each of these goes by a clock of its own, so that they overlap. Hosts wait as long as `Retry-After` says, and repeat nothing.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openBalancer } from './balancer.ts'
import { fake, FakeDownstream } from './fake-downstream.ts'
import { openFaultProxy } from './fault-proxy.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { PROGRAM } from './program.ts'
import { freePort } from './free-port.ts'
import { startRedis } from './redis.ts'

export interface ReplicaChaosOptions {
  readonly seconds: number
  /** A replica is killed this often. */
  readonly killEveryMs: number
  /** So many pauses of the store, spread over the run. */
  readonly pauses: number
  readonly pauseMs: number
  /** So often a replica is cut off, between the pauses. */
  readonly cuts: number
  readonly cutMs: number
  /** Of each era. */
  readonly hosts: number
  /** What a host waits between two calls. */
  readonly thinkMs: number
  readonly onEvent?: (text: string) => void
  /** A call failed. */
  readonly onError?: (error: {
    readonly what: string
    readonly isModern: boolean
    readonly tookMs: number
    readonly text: string
  }) => void
}

export interface ReplicaChaosEnd {
  calls: number
  /** By what was seen: `connection`, a kind of the closed list, or an HTTP status. */
  readonly errors: Map<string, number>
  /** Sessions that their host had to begin again. */
  sessionsLost: number
  /** Answers to another call. */
  crossed: number
  /** Calls that a server got twice. */
  doubled: number
  longestMs: number
  kills: number
  pauses: number
  cuts: number
}

const KEY = '0123456789abcdef'.repeat(4)
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'h', version: '1' },
}
const MODERN = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'a__x' }

interface ReplicaProcess {
  readonly port: number
  readonly file: string
  /** What its connections come from, so that the others' wires know them; Linux alone has several loopback addresses. */
  readonly address: string | undefined
  /** How the others reach it, and how it reaches the store. */
  readonly wire: FaultProxy
  readonly storeWire: FaultProxy
  process: ChildProcess | undefined
}

const ADDRESS_FILE = fileURLToPath(new URL('./children/local-address.mjs', import.meta.url))

export const runReplicaChaos = async (options: ReplicaChaosOptions): Promise<ReplicaChaosEnd> => {
  const end: ReplicaChaosEnd = {
    calls: 0,
    errors: new Map(),
    sessionsLost: 0,
    crossed: 0,
    doubled: 0,
    longestMs: 0,
    kills: 0,
    pauses: 0,
    cuts: 0,
  }
  const say = (text: string): void => options.onEvent?.(text)
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-replicas-'))
  const executed = new Set<unknown>()
  await using server = await FakeDownstream.start(fake.of({ kind: 'legacy http', tools: ['x'] }))
  server.on('tools/call', ({ params }) => {
    const { nonce } = params['arguments'] as { nonce: string }
    if (executed.has(nonce)) end.doubled++
    executed.add(nonce)
    return { content: [{ type: 'text', text: nonce }] }
  })
  if (!('url' in server.address)) throw new Error('a fake with a URL')
  await using redis = await startRedis()
  const replicas: ReplicaProcess[] = []
  for (const at of [0, 1, 2]) {
    const port = await freePort()
    const [wire, storeWire] = [await openFaultProxy(port), await openFaultProxy(redis.port)]
    const file = join(folder, `${at}.json`)
    const config = {
      servers: { a: { url: String(server.address.url) } },
      listen: { http: { bind: `127.0.0.1:${port}` } },
      state: { dir: join(folder, String(at)), key: KEY },
      replicas: { url: `http://127.0.0.1:${wire.port}` },
      store: `redis://127.0.0.1:${storeWire.port}`,
      telemetry: { log: { level: 'warn' } },
    }
    writeFileSync(file, JSON.stringify(config))
    const address = process.platform === 'linux' ? `127.0.0.${10 + at}` : undefined
    replicas.push({ port, file, address, wire, storeWire, process: undefined })
  }
  const start = async (replica: ReplicaProcess): Promise<void> => {
    const { address, file, port, wire } = replica
    const preload = address === undefined ? [] : ['--import', ADDRESS_FILE]
    const env = { ...process.env, LOCAL_ADDRESS: address }
    const child = spawn(process.execPath, [...preload, PROGRAM, 'up', '-c', file], { stdio: ['ignore', 'ignore', 'pipe'], env })
    replica.process = child
    child.stderr.resume()
    while (child.exitCode === null) {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
      if (answer?.status === 200) return wire.isOpen ? undefined : wire.resume()
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error('a replica did not start')
  }
  await Promise.all(replicas.map(start))
  await using balancer = await openBalancer(replicas.map(({ port }) => port))

  const over = new AbortController()
  const fail = (what: string, isModern: boolean, startMs: number, text: string): void => {
    end.errors.set(what, (end.errors.get(what) ?? 0) + 1)
    options.onError?.({ what, isModern, tookMs: performance.now() - startMs, text })
  }
  const post = (body: object, headers: Record<string, string>): Promise<Response> =>
    fetch(balancer.url, {
      method: 'POST',
      headers: { ...HEADERS, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    })
  /** One request, counted. `text`: of its answer; `undefined`: it has failed. */
  const ask = async (
    body: object,
    headers: Record<string, string>,
    isGood: (answer: Response, text: string) => boolean,
  ): Promise<Response | undefined> => {
    const isModern = headers === MODERN
    const startMs = performance.now()
    end.calls++
    try {
      const answer = await post({ id: 1, ...body }, headers)
      const text = await answer.text()
      if (isGood(answer, text)) return answer
      fail(/"kind":"(\w+)"/.exec(text)?.[1] ?? String(answer.status), isModern, startMs, text)
      const waitMs = Number(answer.headers.get('retry-after') ?? 0) * 1_000
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
      return answer
    } catch (error) {
      fail('connection', isModern, startMs, String(error))
    } finally {
      end.longestMs = Math.max(end.longestMs, performance.now() - startMs)
    }
    return undefined
  }
  const open = async (): Promise<string | undefined> => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'h', version: '1' } }
    const answer = await ask({ method: 'initialize', params }, {}, ({ headers }) => headers.has('mcp-session-id'))
    const id = answer?.headers.get('mcp-session-id') ?? undefined
    if (id !== undefined) await post({ method: 'notifications/initialized' }, { 'mcp-session-id': id }).catch(() => undefined)
    return id
  }
  let nonces = 0
  /** One call; its session, if that goes on. */
  const call = async (session: string | undefined, isModern: boolean): Promise<string | undefined> => {
    const nonce = `n${nonces++}`
    const params = { name: 'a__x', arguments: { nonce }, ...(isModern && { _meta: META }) }
    const headers = isModern ? MODERN : { 'mcp-session-id': session ?? '' }
    const answer = await ask({ method: 'tools/call', params }, headers, (_, text) => {
      const [, named = nonce] = /"text":"(n\d+)"/.exec(text) ?? []
      if (named !== nonce) end.crossed++
      return text.includes(`"text":"${nonce}"`)
    })
    return answer?.status === 404 ? undefined : session
  }
  const host = async (isModern: boolean): Promise<void> => {
    let session: string | undefined
    let isFirst = true
    while (!over.signal.aborted) {
      if (!isModern && session === undefined) {
        if (!isFirst) end.sessionsLost++
        session = await open()
        isFirst = session === undefined
        continue
      }
      session = await call(session, isModern)
      await new Promise((resolve) => setTimeout(resolve, options.thinkMs))
    }
  }

  const startMs = performance.now()
  const runMs = options.seconds * 1_000
  /** Resolves at that time of the run; false: it is over before. */
  const until = async (atMs: number): Promise<boolean> => {
    if (atMs >= runMs) return false
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, startMs + atMs - performance.now())))
    return true
  }
  const kill = async (): Promise<void> => {
    for (let round = 0; await until((round + 0.5) * options.killEveryMs); round++) {
      const replica = replicas[round % replicas.length]
      if (replica?.process === undefined) continue
      say(`kill replica ${round % replicas.length}`)
      replica.process.kill('SIGKILL')
      end.kills++
      if (replica.process.exitCode === null && replica.process.signalCode === null) await once(replica.process, 'exit')
      replica.wire.shut()
      await start(replica)
    }
  }
  const pause = async (): Promise<void> => {
    for (let round = 0; round < options.pauses && (await until(((round + 0.3) / options.pauses) * runMs)); round++) {
      say('pause the store')
      end.pauses++
      redis.process.kill('SIGSTOP')
      await until(((round + 0.3) / options.pauses) * runMs + options.pauseMs)
      redis.process.kill('SIGCONT')
    }
  }
  const cut = async (): Promise<void> => {
    for (let round = 0; round < options.cuts; round++) {
      const atMs = ((round + 0.7) / options.cuts) * runMs
      const lonely = replicas[round % replicas.length]
      if (lonely === undefined || !(await until(atMs))) return
      say(`cut replica ${round % replicas.length} off`)
      end.cuts++
      const others = replicas.filter((replica) => replica !== lonely && lonely.address !== undefined)
      for (const wire of [lonely.wire, lonely.storeWire]) wire.set({ type: 'swallow' })
      for (const { wire } of others) wire.set({ type: 'swallow', ...(lonely.address !== undefined && { from: lonely.address }) })
      await until(atMs + options.cutMs)
      for (const { wire } of others) {
        wire.set({ type: 'none' })
        wire.reset(lonely.address)
      }
      for (const wire of [lonely.wire, lonely.storeWire]) {
        wire.set({ type: 'none' })
        wire.reset()
      }
    }
  }
  const crowd = Array.from({ length: options.hosts * 2 }, (_, at) => host(at % 2 === 0))
  await Promise.all([kill(), pause(), cut(), until(runMs - 1)])
  over.abort()
  await Promise.all(crowd)
  for (const { process: child } of replicas) {
    child?.kill('SIGKILL')
    if (child !== undefined && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  for (const { wire, storeWire } of replicas) for (const proxy of [wire, storeWire]) await proxy[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
  return end
}

/**
 * What a call may end with: a connection that a killed replica broke, seen by the host or by the balancer (502), and kinds of the closed list: those of
 * RELIABILITY 6, and what a machine that is too busy, or a server that is not connected yet, is told.
 */
export const KNOWN_ERRORS: ReadonlySet<string> = new Set(
  'connection 502 503 lost store_unavailable overloaded starting unreachable shutting_down'.split(' '),
)
