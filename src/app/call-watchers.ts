/** Switches the capture and counting of calls: on while at least one watcher needs it (`trunkline tail`, the dashboard, metrics). */
import type { Gateway } from '../gateway/gateway.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import type { Observer } from '../observe/observer.ts'

/** Returns a function that starts watching; its result stops watching again. */
export const watchedBy = (
  observer: Observer,
  context: { observer: ListenerContext['observer'] },
  gateway: Gateway,
): (() => () => void) => {
  let watchers = 0
  const observe = (count: number): void => {
    watchers += count
    context.observer = watchers === 0 ? undefined : observer
    if (watchers < 2) gateway.observe(context.observer)
  }
  return () => {
    observe(1)
    let isWatching = true
    return () => {
      if (isWatching) observe(-1)
      isWatching = false
    }
  }
}
