/**
 * Three gateway processes behind a balancer without stickiness, with a real redis-server: one replica after the other is killed and started
 * again, the store is paused, a replica is cut off from the others; hosts of both eras go on calling, all with the id 1.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBalancer } from './balancer.ts'
import { fake, FakeDownstream } from './fake-downstream.ts'
import { openFaultProxy } from './fault-proxy.ts'
import { PROGRAM } from './program.ts'
import { freePort } from './free-port.ts'
import { startRedis } from './redis.ts'

export interface ReplicaChaosOptions {
  readonly seconds: number
  /** A replica is killed this often. */
  readonly killEveryMs: number
  /** A pause of the store between two kills; 0: none. */
  readonly pauseMs: number
  /** Of each era. */
  readonly hosts: number
  readonly onEvent?: (text: string) => void
}

export interface ReplicaChaosEnd {
  calls: number
  /** By what was seen: `connection`, an HTTP status, or a kind of the closed list. */
  readonly errors: Map<string, number>
  /** Sessions that their host had to begin again. */
  sessionsLost: number
  /** Answers to another call. */
  crossed: number
  /** Calls that a server got twice. */
  doubled: number
  longestMs: number
  kills: number
}

const KEY = '0123456789abcdef'.repeat(4)
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'h', version: '1' },
}
const MODERN = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'a__x' }

export const runReplicaChaos = async (options: ReplicaChaosOptions): Promise<ReplicaChaosEnd> => {
  const end: ReplicaChaosEnd = { calls: 0, errors: new Map(), sessionsLost: 0, crossed: 0, doubled: 0, longestMs: 0, kills: 0 }
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
  const replicas: { port: number; file: string; process: ChildProcess | undefined }[] = []
  const wires: Awaited<ReturnType<typeof openFaultProxy>>[] = []
  for (const at of [0, 1, 2]) {
    const port = await freePort()
    const wire = await openFaultProxy(port)
    wires.push(wire)
    const file = join(folder, `${at}.json`)
    const config = {
      servers: { a: { url: String(server.address.url) } },
      listen: { http: { bind: `127.0.0.1:${port}` } },
      state: { dir: join(folder, String(at)), key: KEY },
      replicas: { url: `http://127.0.0.1:${wire.port}` },
      store: redis.url,
      telemetry: { log: { level: 'warn' } },
    }
    writeFileSync(file, JSON.stringify(config))
    replicas.push({ port, file, process: undefined })
  }
  const start = async (at: number): Promise<void> => {
    const replica = replicas[at]
    if (replica === undefined) return
    const child = spawn(process.execPath, [PROGRAM, 'up', '-c', replica.file], { stdio: ['ignore', 'ignore', 'pipe'] })
    replica.process = child
    child.stderr.resume()
    while (child.exitCode === null) {
      const answer = await fetch(`http://127.0.0.1:${replica.port}/readyz`).catch(() => undefined)
      if (answer?.status === 200) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error('a replica did not start')
  }
  await Promise.all([0, 1, 2].map(start))
  await using balancer = await openBalancer(replicas.map(({ port }) => port))

  const over = new AbortController()
  const count = (what: string): void => void end.errors.set(what, (end.errors.get(what) ?? 0) + 1)
  const post = (body: object, headers: Record<string, string>): Promise<Response> =>
    fetch(balancer.url, {
      method: 'POST',
      headers: { ...HEADERS, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    })
  const open = async (): Promise<string | undefined> => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'h', version: '1' } }
    const answer = await post({ id: 1, method: 'initialize', params }, {}).catch(() => undefined)
    await answer?.text().catch(() => '')
    const id = answer?.headers.get('mcp-session-id') ?? undefined
    if (id !== undefined) await post({ method: 'notifications/initialized' }, { 'mcp-session-id': id }).catch(() => undefined)
    return id
  }
  let nonces = 0
  /** One call; its session, if that goes on. */
  const call = async (session: string | undefined, isModern: boolean): Promise<string | undefined> => {
    const nonce = `n${nonces++}`
    const params = { name: 'a__x', arguments: { nonce }, ...(isModern && { _meta: META }) }
    const startMs = performance.now()
    end.calls++
    try {
      const answer = await post({ id: 1, method: 'tools/call', params }, isModern ? MODERN : { 'mcp-session-id': session ?? '' })
      const text = await answer.text()
      if (text.includes(`"text":"${nonce}"`)) return session
      if (/"text":"n\d+"/.test(text)) end.crossed++
      if (answer.status === 404) return undefined
      count(/"kind":"(\w+)"/.exec(text)?.[1] ?? String(answer.status))
    } catch {
      count('connection')
    } finally {
      end.longestMs = Math.max(end.longestMs, performance.now() - startMs)
    }
    return session
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
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const crowd = Array.from({ length: options.hosts * 2 }, (_, at) => host(at % 2 === 0))

  const endMs = performance.now() + options.seconds * 1_000
  for (let round = 0; performance.now() < endMs; round++) {
    const at = round % 3
    const victim = replicas[at]?.process
    await new Promise((resolve) => setTimeout(resolve, options.killEveryMs / 2))
    options.onEvent?.(`kill replica ${at}`)
    victim?.kill('SIGKILL')
    end.kills++
    if (victim !== undefined && victim.exitCode === null && victim.signalCode === null) await once(victim, 'exit')
    await start(at)
    if (options.pauseMs > 0) {
      options.onEvent?.('pause the store')
      redis.process.kill('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, options.pauseMs))
      redis.process.kill('SIGCONT')
    }
    const wire = wires[(at + 1) % 3]
    options.onEvent?.(`cut replica ${(at + 1) % 3} off from the others`)
    wire?.set({ type: 'swallow' })
    await new Promise((resolve) => setTimeout(resolve, options.killEveryMs / 4))
    wire?.set({ type: 'none' })
    wire?.reset()
    await new Promise((resolve) => setTimeout(resolve, options.killEveryMs / 4))
  }
  over.abort()
  await Promise.all(crowd)
  for (const { process: child } of replicas) {
    child?.kill('SIGKILL')
    if (child !== undefined && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  for (const wire of wires) await wire[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
  return end
}
