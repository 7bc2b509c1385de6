/** Figures of a long run: samples of a gateway's process, the slope of its heap, and the words they are printed in. */
import { readdirSync } from 'node:fs'
import { processTree } from '../../../bench/cpu.ts'
import type { Verdict } from '../referee.ts'
import type { Arena } from './arena.ts'

export interface Sample {
  readonly atMs: number
  readonly heapMiB: number
  readonly rssMiB: number
  readonly loopP99Ms: number
  /** -1 where the system does not tell. */
  readonly descriptors: number
  readonly children: number
}

const MIB = 1024 * 1024

export const takeSample = async (arena: Arena): Promise<Sample> => {
  const { heap, rss, loopP99Ms } = await arena.vitals()
  return {
    atMs: performance.now(),
    heapMiB: heap / MIB,
    rssMiB: rss / MIB,
    loopP99Ms,
    descriptors: countDescriptors(arena.pid),
    children: processTree(arena.pid).length - 1,
  }
}

const countDescriptors = (pid: number): number => {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return -1
  }
}

/** Of the heap over the second half of the samples, by least squares; MiB per hour. */
export const heapSlope = (samples: readonly Sample[]): number => {
  const half = samples.slice(Math.floor(samples.length / 2))
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const hours = half.map(({ atMs }) => atMs / 3_600_000)
  const [hour, heap] = [mean(hours), mean(half.map(({ heapMiB }) => heapMiB))]
  const spread = hours.reduce((sum, at) => sum + (at - hour) ** 2, 0)
  return spread === 0 ? 0 : half.reduce((sum, { heapMiB }, at) => sum + (hours[at]! - hour) * (heapMiB - heap), 0) / spread
}

export const sampleLine = ({ heapMiB, rssMiB, loopP99Ms, descriptors, children }: Sample): string =>
  `heap ${heapMiB.toFixed(1)} MiB, rss ${rssMiB.toFixed(0)} MiB, descriptors ${descriptors}, children ${children}, ` +
  `loop p99 ${loopP99Ms.toFixed(1)} ms`

export const verdictLines = ({ calls, answered, failed, broken, lost, crossed, doubled, untrue }: Verdict): string[] => [
  `calls ${calls}: answered ${answered}, broken ${broken}${Object.entries(failed)
    .map(([kind, count]) => `, ${kind} ${count}`)
    .join('')}`,
  `lost ${lost}, crossed ${crossed}, doubled ${doubled}, said "not executed" of what was ${untrue}`,
]
