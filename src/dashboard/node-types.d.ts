/** Answer types are imported from the server sources, which need these members of Node's `performance` that browsers lack. */
import type { PerformanceNodeTiming } from 'node:perf_hooks'

declare global {
  interface Performance {
    readonly nodeTiming: PerformanceNodeTiming
  }
}
