/**
 * The cost of growth, before and after in one process: calls and heap with more sessions, servers and tools, and calls of more sessions at
 * once. A second process that does not grow has a burst beside each burst of the first, so that the load of the machine cancels out.
 */
import type { Deadline } from './budget.ts'
import { callMicros, IN_FLIGHT } from './call-cost.ts'
import { cpuMicros, processTree } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure } from './figures.ts'
import { openInspector } from './inspector.ts'
import { awaitTools } from './lists.ts'
import { type Host, metered, type Ready } from './load.ts'
import { TOOLS } from './payload.ts'
import { start, type Started } from './process.ts'
import { opener, openMany } from './sessions.ts'
import type { Place, Subject } from './subjects.ts'

export const SECTION = 'growth in one process'
const MIB = 1024 * 1024
const ROUNDS = 5
/** Turns that do not count: a process takes up to 2 s of calls, also after a reload, until its code is compiled for what it does now. */
const WARM_UP_ROUNDS = 16
/** Servers among which many calls at once are shared out: one of them takes 256. */
const AMONG = 8
/** One at a time, some, and so many that each is of another session. */
const AT_ONCE = [1, 32, 1_000] as const

type Server = Place & { readonly pid: number }

/** A gateway whose servers can be changed while it runs. */
interface Grower extends Started {
  readonly host: Host
  /** Resolves when hosts see so many tools. */
  serve(servers: readonly Place[], tools: number): Promise<void>
}

const startGrower = async (stage: Stage, trunkline: Subject, servers: readonly Place[]): Promise<Grower> => {
  const folder = await stage.folder(trunkline.name)
  const command = (behind: readonly Place[]) => trunkline.command({ servers: behind, isPiped: false, folder, main: stage.main })
  const { args, ...rest } = await command(servers)
  const started = stage.stack.use(await start({ ...rest, args: ['--inspect=127.0.0.1:0', ...args] }))
  const host = stage.stack.use(await openHostOf(trunkline, started.reach, 'legacy'))
  const serve = async (behind: readonly Place[], tools: number) => {
    await command(behind) // writes the same file
    process.kill(started.pid, 'SIGHUP')
    await awaitTools(host, tools)
  }
  return { ...started, host, serve }
}

const median = (values: readonly number[]): number => values.toSorted((one, other) => one - other)[values.length >> 1]!

/** CPU of a call before and after `grow`, and the heap it added. */
const grown = async (
  stage: Stage,
  trunkline: Subject,
  effort: Effort,
  before: readonly Place[],
  what: string,
  grow: (grower: Grower) => Promise<number>,
): Promise<readonly Figure[]> => {
  const grower = await startGrower(stage, trunkline, before)
  const still = await startGrower(stage, trunkline, before)
  const tool = { tool: `${trunkline.prefix}t100`, size: 't100' } as const
  await using inspector = await openInspector(grower.inspector!)
  const pairs = async () => {
    for (let round = 0; round < WARM_UP_ROUNDS && effort.warmUpMs > 0; round++)
      for (const one of [grower, still]) await callMicros(one, tool, effort.warmUpMs)
    const found: (readonly [grown: number, still: number])[] = []
    for (let round = 0; round < Math.min(ROUNDS, effort.rounds); round++) {
      const first = round % 2 === 0
      const one = await callMicros(first ? grower : still, tool, effort.forMs)
      const other = await callMicros(first ? still : grower, tool, effort.forMs)
      found.push(first ? [one, other] : [other, one])
    }
    return found
  }
  const earlier = await pairs()
  const heap = await inspector.collect()
  const thousands = (await grow(grower)) / 1_000
  const later = await pairs()
  const heapLater = await inspector.collect()
  const usual = median(earlier.map(([grown, still]) => grown / still))
  return [
    figure(
      SECTION,
      trunkline.name,
      `CPU of a call, ${what}`,
      'µs',
      later.map(([grown]) => grown),
      later.map(([, still]) => still * usual),
    ),
    figure(SECTION, trunkline.name, `heap of 1,000 more, ${what}`, 'MiB', [(heapLater - heap) / MIB / thousands]),
  ]
}

/** So many sessions with a call each under way, all at once. */
const crowd = async (trunkline: Subject, reach: URL, count: number): Promise<readonly Ready[]> => {
  const hosts = await openMany(count, opener(trunkline, { reach }, ['legacy', 'legacy'], false))
  return Promise.all(
    hosts.map((host, at) => {
      const key = at % AMONG
      const prefix = trunkline.prefix === '' ? '' : key === 0 ? trunkline.prefix : `s${key}__`
      return host.ready({ ask: { tool: `${prefix}t100`, size: TOOLS.t100 }, inFlight: 1 })
    }),
  )
}

/** CPU of a call by how many are under way at once, each of a session of its own. */
const atOnce = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const server = await stage.server('legacy')
  const levels = AT_ONCE.map((count) => Math.min(count, 2 * effort.sessions))
  const figures: Figure[] = []
  for (const subject of subjects.filter(({ name }) => /^(raw|trunkline)$/.test(name)))
    await stage.attempt(`${subject.name}, calls of many sessions`, async () => {
      const { pid, reach } = await stage.start(subject, Array<Place>(subject.name === 'raw' ? 1 : AMONG).fill(server))
      await using warm = await openHostOf(subject, reach, 'legacy')
      const ask = { tool: `${subject.prefix}t100`, size: TOOLS.t100 }
      await warm.burst({ ask, inFlight: IN_FLIGHT, forMs: 10 * effort.warmUpMs, calls: effort.warmUpCalls, meter: () => 0 })
      const crowds = new Map<number, readonly Ready[]>()
      for (const level of levels) crowds.set(level, await crowd(subject, new URL('/mcp', reach as URL), level))
      const meter = () => cpuMicros(processTree(pid))
      const costs = new Map<number, number[]>(levels.map((level) => [level, []]))
      for (let round = -1; round < Math.min(ROUNDS, effort.rounds); round++)
        for (const [level, ready] of crowds) {
          const { runs, used } = await metered(meter, async () => ({
            runs: await Promise.all(ready.map((one) => one.run(effort.forMs))),
          }))
          const bad = runs.find((run) => run.bad > 0)
          if (bad !== undefined) throw new Error(`bad replies to ${level} sessions at once\n${bad.firstBad}`)
          if (round >= 0) costs.get(level)!.push(used / runs.reduce((sum, { latencies }) => sum + latencies.length, 0))
        }
      for (const ready of crowds.values()) for (const one of ready) one.close()
      const [alone] = levels
      for (const [level, found] of costs)
        figures.push(
          figure(SECTION, subject.name, `CPU of a call, ${level} in flight of as many sessions`, 'µs', found, costs.get(alone!)),
        )
    })
  return figures
}

export const growth = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  _deadline: Deadline,
): Promise<readonly Figure[]> => {
  const trunkline = subjects.find(({ name }) => name === 'trunkline')
  if (trunkline === undefined) return []
  const [sessions, servers, tools] = [10 * effort.sessions, 5 * Math.max(...effort.servers), 10 * effort.sessions]
  const small: Server = await stage.server('legacy')
  const own = await (async () => {
    const direct = new URL(small.url)
    const host = stage.stack.use(await openHostOf({ ...trunkline, prefix: '' }, direct, 'legacy'))
    return ((await host.request('tools/list')) as { tools: readonly object[] }).tools.length
  })()
  const figures: Figure[] = []
  const section = async (what: string, grow: (grower: Grower, inner: Stage) => Promise<number>) => {
    await stage.attempt(what, async () => {
      figures.push(
        ...(await stage.section((inner) => grown(inner, trunkline, effort, [small], what, (grower) => grow(grower, inner)))),
      )
    })
  }
  await section(`1 to ${sessions} sessions that made a call`, async (grower) => {
    await openMany(sessions, opener(trunkline, grower, ['legacy', 'legacy'], true))
    return sessions
  })
  await section(`1 to ${servers} servers of ${own} tools`, async (grower) => {
    await grower.serve(Array<Place>(servers).fill(small), servers * own)
    return servers - 1
  })
  await section(`${own} to ${tools} tools of one server`, async (grower, inner) => {
    await grower.serve([await inner.server('legacy', tools)], tools)
    return tools - own
  })
  figures.push(...(await stage.section((inner) => atOnce(inner, subjects, effort))))
  return figures
}
