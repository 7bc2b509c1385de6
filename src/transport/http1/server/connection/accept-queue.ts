/**
 * Closes a listener without resetting connections. The kernel establishes connections and queues them until the process accepts them. A
 * close resets queued connections, whose hosts may have sent requests that no proxy repeats. The queue can be neither read nor
 * closed alone, so the close waits for a turn of the event loop that finds it empty, and follows at once.
 */

/** During this time only a turn without any event is accepted, so that nothing happens between the poll and the close. */
const STRICT_MS = 100
/** The longest delay of the close, also under a flood of new connections. */
const MAX_MS = 500

/**
 * Calls `close` behind the first turn of the event loop that found no connection waiting, or after `MAX_MS`. `accepted` counts the
 * connections so far: each turn accepts one, where one waits.
 */
export const onceAllAreAccepted = (accepted: () => number, close: () => void): void => {
  const startMs = performance.now()
  let before = { events: -1, accepted: -1 }
  // Runs directly after the poll phase.
  const look = (): void => {
    const now = { events: performance.nodeTiming.uvMetricsInfo.events, accepted: accepted() }
    const forMs = performance.now() - startMs
    const isEmpty = now.events === before.events || (forMs >= STRICT_MS && now.accepted === before.accepted)
    if (isEmpty || forMs >= MAX_MS) return close()
    before = now
    setImmediate(look)
  }
  setImmediate(look)
}
