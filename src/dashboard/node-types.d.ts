/** Types of answers come from the sources of the server, which are read with these as well: what Node's `performance` has beside a browser's. */
import type { PerformanceNodeTiming } from 'node:perf_hooks'

declare global {
  interface Performance {
    readonly nodeTiming: PerformanceNodeTiming
  }
}
