/** Inside a gateway's process: answers every message on the IPC channel with how that process is doing. Loaded with `--import`. */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** What a gateway's process says of itself. */
export interface Vitals {
  /** After a full collection, bytes. */
  readonly heap: number
  readonly rss: number
  /** 99th percentile since the last question, ms. */
  readonly loopP99Ms: number
}

const RESOLUTION_MS = 10
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
process.on('message', () => {
  const loopP99Ms = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS)
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  delay.reset()
  process.send?.({ heap: heapUsed, rss, loopP99Ms } satisfies Vitals)
})
// The question alone must not keep a gateway alive that has ended.
process.channel?.unref()
