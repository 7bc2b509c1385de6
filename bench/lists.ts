/**
 * `tools/list` before 1, 10 and 100 servers of 50 tools each, and the memory of these servers. Raw and no proxy are before one server
 * with a list of the same length.
 */
import type { Deadline } from './budget.ts'
import { cpuMicros, processTree, residentMiB } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import { openInspector } from './inspector.ts'
import type { Host } from './load.ts'
import type { HostKind } from './payload.ts'
import { quantile } from './stats.ts'
import type { Place, Subject } from './subjects.ts'

const SECTION = 'lists'
export const TOOLS_EACH = 50
const SETTLE_MS = 60_000

interface Contestant {
  readonly subject: string
  readonly count: number
  readonly host: Host
  readonly pid: number
}

/** Tools on all pages. */
export const countTools = async (host: Host): Promise<number> => {
  let count = 0
  for (let cursor: string | undefined; ;) {
    const page = (await host.request('tools/list', cursor === undefined ? {} : { cursor })) as {
      tools: readonly object[]
      nextCursor?: string
    }
    count += page.tools.length
    if (page.nextCursor === undefined) return count
    cursor = page.nextCursor
  }
}

/** Until the list is whole: servers come one after another. */
export const awaitTools = async (host: Host, count: number): Promise<void> => {
  const until = performance.now() + SETTLE_MS
  for (;;) {
    const found = await countTools(host)
    if (found >= count) return
    if (performance.now() > until) throw new Error(`${found} tools of ${count} after ${SETTLE_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const hostKindOf = (subject: Subject): HostKind => (subject.ssePath === undefined ? 'legacy' : 'http-sse')

const enter = async (
  stage: Stage,
  subject: Subject,
  count: number,
  small: Place,
  large: Place & { pid: number },
): Promise<Contestant> => {
  const aggregates = /^(trunkline|sdk-proxy|mcp-hub)$/.test(subject.name)
  const servers = aggregates ? Array.from({ length: count }, () => small) : [large]
  const prefix = subject.name === 'sdk-proxy' && count > 1 ? 's0__' : subject.prefix
  const isServer = subject.name === 'direct'
  const { pid, reach } = isServer ? { pid: large.pid, reach: new URL(large.url) } : await stage.start(subject, servers)
  const host = stage.stack.use(await openHostOf({ ...subject, prefix }, reach, hostKindOf(subject)))
  await awaitTools(host, count * TOOLS_EACH)
  return { subject: subject.name, count, host, pid }
}

/** What one burst of each contestant found. */
interface Sample {
  readonly p50: number
  readonly cpu: number
}

const measure = async ({ host, pid, subject, count }: Contestant, forMs: number): Promise<Sample> => {
  const meter = () => cpuMicros(processTree(pid))
  const { used, latencies, bad, firstBad } = await host.burst({ ask: 'tools/list', inFlight: 1, forMs, meter })
  if (bad > 0) throw new Error(`${bad} bad replies: ${subject} before ${count} servers\n${firstBad}`)
  return { p50: quantile(latencies, 0.5), cpu: used / latencies.length }
}

const listFigures = async (
  stage: Stage,
  contestants: readonly Contestant[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const found = await rotate(
    effort,
    contestants,
    (one, isWarmUp) => measure(one, isWarmUp ? effort.warmUpMs : effort.forMs),
    ({ subject, count }, error) => stage.lose(`${subject} before ${count} servers`, error),
    deadline,
  )
  return [...found.keys()].flatMap((one) => {
    const raw = [...found.keys()].find(({ subject, count }) => subject === 'raw' && count === one.count)
    const pick = (of: Contestant, field: 'p50' | 'cpu') => found.get(of)!.map((sample) => sample[field])
    const figureOf = (what: string, unit: 'ms' | 'µs', field: 'p50' | 'cpu') =>
      figure(SECTION, one.subject, `${one.count} × ${TOOLS_EACH}, ${what}`, unit, pick(one, field), raw && pick(raw, field))
    return [figureOf('p50', 'ms', 'p50'), figureOf('CPU', 'µs', 'cpu')]
  })
}

/** Memory after a full collection, by number of servers. */
const memoryFigures = async (stage: Stage, trunkline: Subject, small: Place, effort: Effort): Promise<readonly Figure[]> => {
  const figures: Figure[] = []
  for (const count of effort.servers) {
    const started = await stage.start(
      trunkline,
      Array.from({ length: count }, () => small),
      false,
      ['--inspect=127.0.0.1:0'],
    )
    await using host = await openHostOf(trunkline, started.reach, 'legacy')
    await awaitTools(host, count * TOOLS_EACH)
    await using inspector = await openInspector(started.inspector!)
    const heap = (await inspector.collect()) / 1024 / 1024
    figures.push(figure(SECTION, trunkline.name, `resident, ${count} servers`, 'MiB', [residentMiB(processTree(started.pid))]))
    figures.push(figure(SECTION, trunkline.name, `heap, ${count} servers`, 'MiB', [heap]))
    await started[Symbol.asyncDispose]()
  }
  return figures
}

export const lists = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const small = await stage.server('legacy', TOOLS_EACH)
  const contestants: Contestant[] = []
  for (const count of effort.servers) {
    const large = await stage.server('legacy', TOOLS_EACH * count)
    for (const subject of subjects.filter(({ name }) => /^(direct|raw|trunkline|sdk-proxy|mcp-hub)$/.test(name)))
      await stage.attempt(`${subject.name} before ${count} servers`, async () => {
        contestants.push(await enter(stage, subject, count, small, large))
      })
  }
  const trunkline = subjects.find(({ name }) => name === 'trunkline')
  const own = trunkline === undefined ? [] : await memoryFigures(stage, trunkline, small, effort)
  return [...(await listFigures(stage, contestants, effort, deadline)), ...own]
}
