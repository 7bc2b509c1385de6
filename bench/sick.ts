/**
 * `npm run bench:sick`: 50 servers of which 10 hang, 10 end at start and 5 flap. Prints how long a new gateway takes to its first
 * answers, and the cost of a call to a healthy server as a ratio to a gateway with only the 25 healthy servers.
 * Both run at the same time and take turns. Exits with 1 if a reply was bad.
 */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cpuMicros } from './cpu.ts'
import { openHost, type Host } from './load.ts'
import { TOOLS } from './payload.ts'
import { startNode } from './process.ts'
import { spread } from './stats.ts'
import { gatewayCommand } from './subjects.ts'

const ROUNDS = 9
const WARM_UP = 3
const BURST_MS = 300
/** One healthy server of each transport. */
const CALLED = { http: 'h-http0__t100', stdio: 'h-stdio0__t100' } as const
type Transport = keyof typeof CALLED

type Servers = Record<string, object>
const repeat = (count: number, name: string, server: object): Servers =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}${index}`, server]))

const stdio = (behaviour: string) => ({
  command: process.execPath,
  args: [join(import.meta.dirname, 'stdio-server.ts'), behaviour],
})

const healthyServers = (url: URL): Servers => ({
  ...repeat(20, 'h-http', { url: url.href }),
  ...repeat(5, 'h-stdio', stdio('healthy')),
})

const sickServers = (silentUrl: string): Servers => ({
  ...repeat(5, 'hang-http', { url: silentUrl }),
  ...repeat(5, 'hang-stdio', stdio('hang')),
  ...repeat(10, 'exit', stdio('exit')),
  ...repeat(5, 'flap', stdio('flap')),
})

interface Measured {
  readonly name: string
  readonly pid: number
  readonly host: Host
  /** Milliseconds of each first answer, and the number of tools in the first list. */
  readonly firsts: Readonly<Record<string, number>>
}

const timed = async <T>(work: Promise<T>): Promise<[T, number]> => {
  const started = performance.now()
  return [await work, performance.now() - started]
}

/** Starts a gateway that knows nothing yet and asks as soon as it listens. */
const measureStart = async (stack: AsyncDisposableStack, root: string, name: string, servers: Servers): Promise<Measured> => {
  const folder = join(root, name)
  await mkdir(folder)
  const { pid, url, readyMs } = stack.use(await startNode(await gatewayCommand(folder, { servers })))
  const [modern, modernMs] = await timed(
    openHost(url, 'modern').then(async (host) => (await host.request('server/discover'), host)),
  )
  const [host, initializeMs] = await timed(openHost(url, 'legacy'))
  const [{ tools }, listMs] = await timed(host.request('tools/list'))
  stack.use(modern)
  stack.use(host)
  const count = Array.isArray(tools) ? tools.length : 0
  const firsts = {
    'ready line': readyMs,
    'server/discover': modernMs,
    'initialize and initialized': initializeMs,
    'first tools/list': listMs,
  }
  return { name, pid, host, firsts: { ...firsts, 'tools in the first list': count } }
}

const run = async (): Promise<boolean> => {
  await using stack = new AsyncDisposableStack()
  const root = await mkdtemp(join(tmpdir(), 'trunkline-sick-'))
  stack.defer(() => rm(root, { recursive: true, force: true }))
  const server = stack.use(await startNode(['bench/server.ts', 'legacy']))
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  stack.defer(() => void silent.close())
  await once(silent, 'listening')
  const healthy = healthyServers(server.url)
  const sick = sickServers(`http://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`)

  const without = await measureStart(stack, root, 'healthy-only', healthy)
  const beside = await measureStart(stack, root, 'with-sick', { ...healthy, ...sick })
  console.log(`ms from the question, ${Object.keys(healthy).length} healthy servers | with ${Object.keys(sick).length} sick ones`)
  for (const [what, value] of Object.entries(without.firsts))
    console.log(`${what}: ${value.toFixed(0)} | ${beside.firsts[what]!.toFixed(0)}`)

  let bad = 0
  const cost = async ({ host, pid }: Measured, transport: Transport): Promise<number> => {
    const options = { ask: { tool: CALLED[transport], size: TOOLS.t100 }, inFlight: 32, forMs: BURST_MS }
    const burst = await host.burst({ ...options, meter: () => cpuMicros([pid]) })
    bad += burst.bad
    if (burst.firstBad !== undefined) console.error(burst.firstBad)
    return burst.used / burst.latencies.length
  }
  for (const transport of ['http', 'stdio'] as const) {
    const ratios: number[] = []
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      const [first, second] = round % 2 === 0 ? [without, beside] : [beside, without]
      const costs = new Map([[first, await cost(first, transport)]])
      costs.set(second, await cost(second, transport))
      if (round >= 0) ratios.push(costs.get(beside)! / costs.get(without)!)
    }
    const { median, q1, q3 } = spread(ratios)
    const figures = `${median.toFixed(2)} (${q1.toFixed(2)}–${q3.toFixed(2)})`
    console.log(
      `CPU of a call to a healthy ${transport} server, with ÷ without the sick: ${figures}, ${ROUNDS} rounds, 32 in flight`,
    )
  }
  console.log(`bad replies: ${bad}`)
  return bad === 0
}

process.exitCode = (await run()) ? 0 : 1
