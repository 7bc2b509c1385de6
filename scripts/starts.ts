/**
 * `node scripts/starts.ts [--main FILE] [--rounds 3]`: the cost of broken and idle servers at a start (F-07). `--main`: the program of
 * another tree, for a comparison. Prints medians of the rounds: the time of the first list at the second start with 3 of 30
 * broken servers; the time of three healthy servers beside eight that hang; processes and memory of 24 idle stdio servers.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { PROGRAM } from '../test/support/program.ts'

const { values } = parseArgs({
  options: { main: { type: 'string', default: PROGRAM }, rounds: { type: 'string', default: '3' } },
})
const FAKE = fileURLToPath(new URL('../test/support/children/fake-server.ts', import.meta.url))
const healthy = { command: process.execPath, args: [FAKE] }
const hanging = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'] }
const broken = { command: process.execPath, args: ['-e', 'process.exit(1)'] }
/** How long anything here may take. */
const MAX_MS = 150_000

interface Running {
  readonly child: ChildProcess
  readonly url: URL
  stop(): Promise<void>
}

const start = async (folder: string, servers: object): Promise<Running> => {
  const file = join(folder, 'trunkline.json')
  await writeFile(file, JSON.stringify({ servers, reload: { watch: false }, state: { dir: join(folder, 'state') } }))
  const child = spawn(process.execPath, [values.main, 'up', '-c', file, '--listen', '127.0.0.1:0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit')
    child.kill()
    await ended
  }
  // The address is logged before the servers are ready.
  const url = await new Promise<URL>((resolve) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      const found = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line)?.[0]
      if (found !== undefined) resolve(new URL(found))
    })
  })
  return { child, url, stop }
}

const many = (count: number, name: string, server: object): Record<string, object> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}${index}`, server]))

/** How many servers the tools in a new host's list are of. */
const listOf = async (url: URL): Promise<number> => {
  const host = new Client({ name: 'starts', version: '1' })
  await host.connect(new StreamableHTTPClientTransport(url))
  const servers = new Set<string | undefined>()
  let cursor: string | undefined
  do {
    const page = await host.listTools({ cursor })
    for (const { name } of page.tools) servers.add(name.split('__')[0])
    cursor = page.nextCursor
  } while (cursor !== undefined)
  await host.close()
  return servers.size
}

const inFolder = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), 'starts-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** From the address on until the first list is there, ms, at the second start. */
const secondStart = (): Promise<number> =>
  inFolder(async (folder) => {
    const servers = { ...many(3, 'broken', broken), ...many(27, 'healthy', healthy) }
    const first = await start(folder, servers)
    await until(async () => (await listOf(first.url)) >= 27)
    await sleep(2_000)
    await first.stop()
    const second = await start(folder, servers)
    const beganMs = performance.now()
    await listOf(second.url)
    const tookMs = performance.now() - beganMs
    await second.stop()
    return tookMs
  })

/** Until the tools of three healthy servers behind eight that hang are all listed, s. */
const behindHanging = (): Promise<number> =>
  inFolder(async (folder) => {
    const beganMs = performance.now()
    const running = await start(folder, { ...many(8, 'hanging', hanging), ...many(3, 'healthy', healthy) })
    await until(async () => (await listOf(running.url)) >= 3)
    const tookS = (performance.now() - beganMs) / 1000
    await running.stop()
    return tookS
  })

/** Children of a process and their resident memory together, MiB. */
const children = (pid: number): { readonly count: number; readonly mib: number } => {
  let [count, kib] = [0, 0]
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const status = statusOf(name)
    if (/^PPid:\t(\d+)$/m.exec(status)?.[1] !== String(pid)) continue
    count++
    kib += Number(/^VmRSS:\t *(\d+)/m.exec(status)?.[1] ?? 0)
  }
  return { count, mib: kib / 1024 }
}

const statusOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    // It has ended since.
    return ''
  }
}

const idle = (): Promise<{ readonly count: number; readonly mib: number }> =>
  inFolder(async (folder) => {
    const running = await start(folder, many(24, 'idle', healthy))
    await until(async () => (await listOf(running.url)) >= 24)
    // What is started ahead is started by now.
    await sleep(10_000)
    const found = children(running.child.pid ?? 0)
    await running.stop()
    return found
  })

const until = async (isDone: () => Promise<boolean>): Promise<void> => {
  const endMs = performance.now() + MAX_MS
  while (!(await isDone())) {
    if (performance.now() > endMs) throw new Error(`not there after ${MAX_MS / 1000} s`)
    await sleep(100)
  }
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN

const measured = async (work: () => Promise<number>): Promise<number> => {
  const found: number[] = []
  for (let round = 0; round < Number(values.rounds); round++) found.push(await work())
  return median(found)
}

console.log(`first list at the second start, 3 of 30 servers broken: ${(await measured(secondStart)).toFixed(0)} ms`)
console.log(`three healthy servers behind eight that hang: ${(await measured(behindHanging)).toFixed(1)} s`)
const { count, mib } = await idle()
console.log(`24 idle stdio servers: ${count} processes, ${mib.toFixed(0)} MiB`)
