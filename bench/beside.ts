/**
 * Small calls, one after another, alone and beside a result of 100 MB that passes to another host; and how far the memory of what is
 * between grows meanwhile. Every round has fresh processes, so that no memory stands on what came before.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { BigHostData } from './big-host.ts'
import { peakMiB, processTree, residentMiB } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import { BIG_TOOL, TOOLS } from './payload.ts'
import { quantile } from './stats.ts'
import type { Place, Subject } from './subjects.ts'

const SECTION = 'small calls beside 100 MB'
/** As many bursts long as it takes for several results to pass. */
const BURSTS = 5

/** Runs `work` while results of 100 MB pass to another host, one after another; its value, and ms that each result took. */
const besideBig = async <T>(data: BigHostData, work: () => Promise<T>): Promise<readonly [value: T, took: readonly number[]]> => {
  const worker = new Worker(new URL('big-host.ts', import.meta.url), { workerData: data })
  const lost = Promise.withResolvers<never>()
  lost.promise.catch(() => {})
  worker.once('error', lost.reject)
  try {
    await Promise.race([once(worker, 'message'), lost.promise])
    const value = await Promise.race([work(), lost.promise])
    worker.postMessage('enough', [])
    const [took] = (await Promise.race([once(worker, 'message'), lost.promise])) as [readonly number[]]
    return [value, took]
  } finally {
    await worker.terminate()
  }
}

const measure = async (
  stage: Stage,
  subject: Subject,
  server: Place,
  effort: Effort,
): Promise<Readonly<Record<Name, number>>> => {
  const roomy: Subject = { ...subject, command: (context) => subject.command({ ...context, largest: '128MiB' }) }
  await using started = await stage.start(roomy, [server])
  await using host = await openHostOf(subject, started.reach, 'legacy')
  const tree = processTree(started.pid)
  const times = async (forMs: number) => {
    const ask = { tool: `${subject.prefix}t100`, size: TOOLS.t100 }
    const { latencies, bad, firstBad } = await host.burst({ ask, inFlight: 1, forMs, meter: () => 0 })
    if (bad > 0) throw new Error(`${bad} bad replies beside 100 MB\n${firstBad}`)
    return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
  }
  await times(effort.warmUpMs)
  const alone = await times(effort.forMs)
  const resident = residentMiB(tree)
  const reach = { url: (started.reach as URL).href, tool: subject.prefix + BIG_TOOL }
  const [beside, took] = await besideBig(reach, () => times(BURSTS * effort.forMs))
  return {
    '100 B alone, p50': alone.p50,
    '100 B alone, p99': alone.p99,
    '100 B beside 100 MB, p50': beside.p50,
    '100 B beside 100 MB, p99': beside.p99,
    '100 MB beside 100 B': quantile(took, 0.5),
    'memory grown by 100 MB': peakMiB(tree) - resident,
  }
}

const UNITS = {
  '100 B alone, p50': 'ms',
  '100 B alone, p99': 'ms',
  '100 B beside 100 MB, p50': 'ms',
  '100 B beside 100 MB, p99': 'ms',
  '100 MB beside 100 B': 'ms',
  'memory grown by 100 MB': 'MiB',
} as const
type Name = keyof typeof UNITS

export const beside = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const server = await stage.server('legacy')
  const chosen = subjects.filter(({ name }) => /^(direct|raw|trunkline)$/.test(name))
  const found = await rotate(
    { rounds: effort.rounds, warmUp: 0 },
    chosen,
    (subject) => measure(stage, subject, server, effort),
    ({ name }, error) => stage.lose(`${name}, beside 100 MB`, error),
  )
  const raw = [...found].find(([{ name }]) => name === 'raw')?.[1]
  return [...found].flatMap(([{ name }, rounds]) =>
    (Object.keys(UNITS) as Name[]).map((what) => {
      const pick = (of: typeof rounds) => of.map((one) => one[what])
      return figure(SECTION, name, what, UNITS[what], pick(rounds), raw && pick(raw))
    }),
  )
}
