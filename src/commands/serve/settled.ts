/** Waiting until every server has said what it is, and for what changes afterwards. */
import { auditTime, combineLatest, filter, firstValueFrom, fromEvent, map, merge, of, switchMap, timer } from 'rxjs'
import type { Observable } from 'rxjs'
import type { Health } from '../../downstream/health/health.ts'
import type { Running } from '../../app/running.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'

/** Resolves when no server is on its first way up any more, at the latest after `maxMs`, or when `signal` fires. */
export const settled = async ({ fleet, gateway, configuration }: Running, maxMs: number, signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return
  const all$ = healths(fleet).pipe(
    filter((healths) => healths.every(({ state, failures }) => state !== 'starting' || failures > 0)),
  )
  await firstValueFrom(merge(all$, timer(maxMs), fromEvent(signal, 'abort')), { defaultValue: undefined })
  // The catalog follows its servers a moment later; what is asked next is asked of all that is known.
  if (!signal.aborted) gateway.apply(configuration.gateway)
}

/** How often a time that is shown counts down. */
const TICK_MS = 1_000
/** Changes that come together are one. */
const TOGETHER_MS = 100

/** Whenever what `ps` tells of the servers may have changed, and every second while one of them starts or is tried again. */
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

/** Of the servers as a whole, or as the one caller has them where callers are not told apart. */
const healths = ({ downstreams$ }: Running['fleet']): Observable<readonly Health[]> =>
  downstreams$.pipe(
    map((all) => all.map((downstream) => (downstream.personal?.find(SHARED_PRINCIPAL) ?? downstream).health$)),
    switchMap((all$) => (all$.length === 0 ? of([]) : combineLatest(all$))),
  )
