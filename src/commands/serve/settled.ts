/** Waits until every server has started or failed, and reports later changes. */
import { auditTime, combineLatest, filter, firstValueFrom, fromEvent, map, merge, of, switchMap, timer } from 'rxjs'
import type { Observable } from 'rxjs'
import type { Health } from '../../downstream/health/health.ts'
import type { Running } from '../../app/running.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'

/** Resolves when all servers have ended their first start, at the latest after `maxMs`, or when `signal` fires. */
export const settled = async ({ fleet, gateway, configuration }: Running, maxMs: number, signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return
  const all$ = healths(fleet).pipe(
    filter((healths) => healths.every(({ state, failures }) => state !== 'starting' || failures > 0)),
  )
  await firstValueFrom(merge(all$, timer(maxMs), fromEvent(signal, 'abort')), { defaultValue: undefined })
  // Updates the catalog now, so that the next query sees all servers.
  if (!signal.aborted) gateway.apply(configuration.gateway)
}

/** Interval of updates of displayed times. */
const TICK_MS = 1_000
/** Changes within this time are reported as one. */
const TOGETHER_MS = 100

/** Emits when the status of the servers may have changed, and every second while one of them starts or waits for a restart. */
export const statusChanges = ({ fleet, gateway }: Pick<Running, 'fleet' | 'gateway'>): Observable<unknown> => {
  const ticks$ = healths(fleet).pipe(
    switchMap((healths) =>
      healths.some(({ state, nextTryAtMs }) => state === 'starting' || nextTryAtMs !== undefined)
        ? timer(TICK_MS, TICK_MS)
        : of(),
    ),
  )
  return merge(merge(healths(fleet), gateway.feed.catalog$).pipe(auditTime(TOGETHER_MS)), ticks$)
}

/** The health of each server; without authentication, the one for the only caller. */
const healths = ({ downstreams$ }: Running['fleet']): Observable<readonly Health[]> =>
  downstreams$.pipe(
    map((all) => all.map((downstream) => (downstream.personal?.find(SHARED_PRINCIPAL) ?? downstream).health$)),
    switchMap((all$) => (all$.length === 0 ? of([]) : combineLatest(all$))),
  )
