/** Measures and logs the overload of this process; warns of few file descriptors, which lead to one. */
import type { Log } from '../values/log.ts'
import { connectionsWithin, openGauges } from '../host/limits/gauges.ts'
import { Overload } from '../host/limits/overload.ts'
import type { HostOptions } from '../host/options.ts'

/** With fewer, a gateway with many sessions may run out of descriptors (F-29). */
const FEW_DESCRIPTORS = 4_096

export interface WatchedOverload {
  readonly overload: Overload
  /** `undefined`: unknown. */
  readonly maxDescriptors: number | undefined
  /** Resolves, with the reason, once the process cannot recover (F-30). */
  readonly exhausted: Promise<string>
}

export const watchOverload = (limits: () => HostOptions['limits'], log: Log): WatchedOverload => {
  const gauges = openGauges()
  const { maxDescriptors } = gauges
  if ((maxDescriptors ?? Infinity) < FEW_DESCRIPTORS)
    log.warn(
      { limit: maxDescriptors, connections: connectionsWithin(maxDescriptors) },
      `few file descriptors (ulimit -n): at least ${FEW_DESCRIPTORS} are recommended`,
    )
  const exhaustion = Promise.withResolvers<string>()
  const overload = new Overload(limits, gauges, {
    changed: (shedding, reason) => {
      const what = ['nothing is refused now', 'new sessions are refused', 'new calls are refused'][shedding]
      if (shedding === 0) log.info({}, `no overload: ${what}`)
      else log.warn({ reason }, `overload: ${what}`)
    },
    exhausted: exhaustion.resolve,
  })
  return { overload, maxDescriptors, exhausted: exhaustion.promise }
}
