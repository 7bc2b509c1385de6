/** One server floods the gateway while a host calls another one: what the calls of that other one cost (F-05, B256). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openLegacy, openModern } from './hosts.ts'
import { PROGRAM } from '../program.ts'

/** What floods: a tool of the flooding server and its arguments. */
export interface Flood {
  readonly name: string
  readonly tool: string
  readonly arguments: Readonly<Record<string, number>>
  /** Of the flooding server's list. */
  readonly listBytes?: number
}

export const FLOODS: readonly Flood[] = [
  { name: '100,000 log messages', tool: 'logs', arguments: { count: 100_000 } },
  { name: '100,000 messages of progress', tool: 'progress', arguments: { count: 100_000 } },
  { name: 'list_changed 10/s for 15 s, a list of 8 MB', tool: 'changes', arguments: { forMs: 15_000 }, listBytes: 8_000_000 },
]

export interface Flooded {
  readonly name: string
  /** Of calls to the other server, ms: before the flood and while it lasts. */
  readonly quietP99Ms: number
  readonly floodP99Ms: number
  readonly maxMs: number
  /** Calls of the other server that were not answered. */
  readonly failed: number
  /** Of the gateway's process while the flood lasts, as a share of one core. */
  readonly cpu: number
  readonly seconds: number
}

const CALLS = 400
const script = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** `main`: the program; the one of this tree unless given. */
export const flood = async (one: Flood, main = PROGRAM): Promise<Flooded> => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'floods-'))
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const server = (...args: string[]): object => ({
    command: process.execPath,
    args: [script('../children/flooding-server.ts'), ...args],
  })
  const file = join(folder, 'trunkline.json')
  const servers = { loud: server(String(one.listBytes ?? 0)), other: server() }
  await writeFile(file, JSON.stringify({ servers, reload: { watch: false }, state: { dir: join(folder, 'state') } }))
  const child = spawn(process.execPath, [main, 'up', '-c', file, '--listen', '127.0.0.1:0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  stack.defer(async () => {
    const ended = once(child, 'exit')
    child.kill()
    await ended
  })
  const url = await new Promise<URL>((resolve) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      const found = /ready: (\S+)$/.exec(line)?.[1]
      if (found !== undefined) resolve(new URL(found))
    })
  })
  const host = await openModern(url)
  const victim = await openLegacy(url)
  await victim.call('loud__echo', {})
  let failed = 0
  const times: number[] = []
  const call = async (): Promise<void> => {
    const beganMs = performance.now()
    if ((await host.call('other__echo', {})) !== 'done') failed++
    times.push(performance.now() - beganMs)
  }
  const p99 = (): number => times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0
  for (let at = 0; at < 2 * CALLS; at++) {
    if (at === CALLS) times.length = 0
    await call()
  }
  const quietP99Ms = p99()
  times.length = 0
  const before = await cpuMs(child.pid ?? 0)
  const beganMs = performance.now()
  const end = { isOver: false }
  const flooding = victim.call(`loud__${one.tool}`, one.arguments).finally(() => (end.isOver = true))
  while (!end.isOver) await call()
  await flooding
  const elapsedMs = performance.now() - beganMs
  const cpu = ((await cpuMs(child.pid ?? 0)) - before) / elapsedMs
  const floodP99Ms = p99()
  return { name: one.name, quietP99Ms, floodP99Ms, maxMs: times.at(-1) ?? 0, failed, cpu, seconds: elapsedMs / 1_000 }
}

/** User and system time of a process, ms; 100 ticks a second, as on every Linux. */
const cpuMs = async (pid: number): Promise<number> => {
  const { readFile } = await import('node:fs/promises')
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10
}
