/**
 * Inside a gateway's process, loaded with `--import`: answers on the IPC channel how that process is doing, and does to it what
 * it is told.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'

/** What a gateway's process says of itself. */
export interface Vitals {
  /** After a full collection, bytes. */
  readonly heap: number
  readonly rss: number
  /** 99th percentile since the last question, ms. */
  readonly loopP99Ms: number
}

/** What can go wrong inside of a process. */
export type Provocation = 'throw' | 'reject' | 'lag' | 'fill' | 'recover'

const ballast: number[][] = []
let lagging: NodeJS.Timeout | undefined
const PROVOCATIONS: Readonly<Record<Provocation, () => void>> = {
  throw: () =>
    void setImmediate(() => {
      throw new Error('provoked')
    }),
  reject: () => void Promise.reject(new Error('provoked')),
  /** Every turn of the event loop takes 400 ms. */
  lag: () => {
    lagging = setInterval(() => {
      for (const untilMs = performance.now() + 400; performance.now() < untilMs;);
    }, 1)
  },
  /** The heap is filled to a little over 95 % of `--max-old-space-size`, with what no collection takes away. */
  fill: () => {
    const mebibytes = Number(/max-old-space-size=(\d+)/.exec(process.execArgv.join(' '))?.[1])
    const isFull = (): boolean => {
      const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith('new_'))
      return spaces.reduce((used, { space_used_size: size }) => used + size, 0) >= 0.955 * mebibytes * 1024 * 1024
    }
    for (;;) {
      ballast.push(Array.from({ length: 20_000 }, (_, at) => at + 0.5))
      if (!isFull()) continue
      globalThis.gc?.()
      if (isFull()) return
    }
  },
  recover: () => {
    clearInterval(lagging)
    ballast.length = 0
    globalThis.gc?.()
  },
}

const RESOLUTION_MS = 10
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
process.on('message', (order: 'vitals' | Provocation) => {
  if (order !== 'vitals') return PROVOCATIONS[order]()
  const loopP99Ms = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS)
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  delay.reset()
  process.send?.({ heap: heapUsed, rss, loopP99Ms } satisfies Vitals)
})
// Whoever started us has gone without a word: nobody else would end us.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
// The question alone must not keep a gateway alive that has ended.
process.channel?.unref()
