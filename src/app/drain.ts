/** Time for open calls while a gateway ends (`reload.drain`). */
import { until } from '../time/within.ts'

/** The end of the drain time, which is left for stopping the servers' processes. */
export const CHILDREN_STOP_MS = 6_000
const POLL_MS = 20

/** Resolves once nothing is in flight, at the latest when `CHILDREN_STOP_MS` of the drain time are left. */
export const untilAnswered = (inFlight: () => number, drainMs: number): Promise<void> =>
  until(() => inFlight() === 0, drainMs - CHILDREN_STOP_MS, POLL_MS)
