/**
 * The worst neighbour: small calls, one after another, while another host receives big results from the same gateway; and the
 * memory growth by 100 MB.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { BigHostData } from './big-host.ts'
import type { Deadline } from './budget.ts'
import { peakMiB, processTree, residentMiB } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import type { Host } from './load.ts'
import { BIG_PIECE_BYTES, BIG_PIECES, BIG_TOOL, NEIGHBOURS, TOOLS } from './payload.ts'
import type { Started } from './process.ts'
import { quantile } from './stats.ts'
import type { Subject } from './subjects.ts'

export const SECTION = 'the worst neighbour'
const ROUNDS = 7
/** As many bursts long as it takes for several results to pass. */
const BURSTS = 4

/** The tool whose result passes beside; `isPiped`: from a server on a pipe, where nothing but a gateway stands (raw has it over HTTP). */
const BESIDE = {
  '3 MB of objects': { tool: 'objects3m', bytes: NEIGHBOURS.objects3m.bytes, isPiped: false },
  '3 MB of Kubernetes text': { tool: 'k8s3m', bytes: NEIGHBOURS.k8s3m.bytes, isPiped: false },
  'dense lines of 15 MB': { tool: 'dense15m', bytes: NEIGHBOURS.dense15m.bytes, isPiped: true },
  '100 MB': { tool: BIG_TOOL, bytes: BIG_PIECES * BIG_PIECE_BYTES, isPiped: false },
} as const
type Neighbour = keyof typeof BESIDE

/** Runs `work` while big results pass to another host, one after another; its value, and ms that each result took. */
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

interface Contestant {
  readonly subject: Subject
  readonly neighbour: Neighbour
  readonly host: Host
  readonly started: Started
  readonly big: BigHostData
  /** MiB, before any big result. */
  readonly resident: number
}

interface Sample {
  readonly p50: number
  readonly p99: number
  readonly alone: number
  readonly took: number
}

const times = async ({ subject, host }: Pick<Contestant, 'subject' | 'host'>, forMs: number, calls?: number) => {
  const ask = { tool: `${subject.prefix}t100`, size: TOOLS.t100 }
  const limit = calls === undefined ? {} : { calls }
  const { latencies, bad, firstBad } = await host.burst({ ask, inFlight: 1, forMs, meter: () => 0, ...limit })
  if (bad > 0) throw new Error(`${bad} bad replies of 100 B beside a neighbour\n${firstBad}`)
  return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
}

const enter = async (stage: Stage, subject: Subject, neighbour: Neighbour, effort: Effort): Promise<Contestant> => {
  const { tool, bytes, isPiped } = BESIDE[neighbour]
  const isDirectPipe = isPiped && subject.name === 'trunkline'
  const server = await stage.server('legacy')
  const servers = isDirectPipe ? [server, await stage.server('stdio')] : [server]
  const roomy: Subject = { ...subject, command: (context) => subject.command({ ...context, largest: '128MiB' }) }
  const started = await stage.start(roomy, servers)
  const host = stage.stack.use(await openHostOf(subject, started.reach, 'legacy'))
  await times({ subject, host }, 10 * effort.warmUpMs, effort.warmUpCalls)
  const prefix = isDirectPipe ? 's1__' : subject.prefix
  const big = { url: (started.reach as URL).href, tool: prefix + tool, bytes }
  return { subject, neighbour, host, started, big, resident: residentMiB(processTree(started.pid)) }
}

export const tail = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const contestants: Contestant[] = []
  for (const subject of subjects.filter(({ name }) => /^(raw|trunkline)$/.test(name)))
    for (const neighbour of (Object.keys(BESIDE) as Neighbour[]).slice(effort.warmUp === 0 ? -2 : 0))
      await stage.attempt(`${subject.name}, beside ${neighbour}`, async () => {
        contestants.push(await enter(stage, subject, neighbour, effort))
      })
  const found = await rotate(
    { rounds: Math.min(ROUNDS, effort.rounds), warmUp: Math.min(1, effort.warmUp) },
    contestants,
    async (one): Promise<Sample> => {
      const { p99: alone } = await times(one, effort.forMs)
      const [small, took] = await besideBig(one.big, () => times(one, BURSTS * effort.forMs))
      return { ...small, alone, took: quantile(took, 0.5) }
    },
    ({ subject, neighbour }, error) => stage.lose(`${subject.name}, beside ${neighbour}`, error),
    deadline,
  )
  return [...found].flatMap(([one, rounds]) => {
    const raw = [...found].find(([{ subject, neighbour }]) => subject.name === 'raw' && neighbour === one.neighbour)?.[1]
    const of = (what: string, pick: (sample: Sample) => number) =>
      figure(SECTION, one.subject.name, what, 'ms', rounds.map(pick), raw?.map(pick))
    const own = [
      of(`100 B beside ${one.neighbour}, p50`, ({ p50 }) => p50),
      of(`100 B beside ${one.neighbour}, p99`, ({ p99 }) => p99),
      of(`100 B before and after ${one.neighbour}, p99`, ({ alone }) => alone),
      of(`${one.neighbour} beside 100 B`, ({ took }) => took),
    ]
    if (one.neighbour !== '100 MB') return own
    const more = peakMiB(processTree(one.started.pid)) - one.resident
    return [...own, figure(SECTION, one.subject.name, 'memory grown by 100 MB', 'MiB', [more])]
  })
}
