/** Waiting until every server has said what it is. */
import { combineLatest, filter, firstValueFrom, fromEvent, map, merge, of, switchMap, timer } from 'rxjs'
import type { Running } from '../../app.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'

/** Resolves when no server is on its first way up any more, at the latest after `maxMs`, or when `signal` fires. */
export const settled = async ({ fleet, gateway, configuration }: Running, maxMs: number, signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return
  const all$ = fleet.downstreams$.pipe(
    map((all) => all.map((downstream) => (downstream.personal?.find(SHARED_PRINCIPAL) ?? downstream).health$)),
    switchMap((all$) => (all$.length === 0 ? of([]) : combineLatest(all$))),
    filter((healths) => healths.every(({ state, failures }) => state !== 'starting' || failures > 0)),
  )
  await firstValueFrom(merge(all$, timer(maxMs), fromEvent(signal, 'abort')), { defaultValue: undefined })
  // The catalog follows its servers a moment later; what is asked next is asked of all that is known.
  if (!signal.aborted) gateway.apply(configuration.gateway)
}
