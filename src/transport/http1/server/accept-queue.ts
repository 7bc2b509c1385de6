/**
 * When a listener may close without breaking a connection. The kernel completes connections by itself and queues them until we accept
 * them; a close resets those that still wait there, after their hosts have sent requests that no proxy repeats. The queue can be
 * neither read nor shut for new ones, so the close waits for a turn of the event loop that shows it empty, and comes right behind it.
 */

/** For so long only a turn without any event will do: between its look at the queue and the close lies nothing at all. */
const STRICT_MS = 100
/** A flood of new connections cannot put the close off for longer. */
const MAX_MS = 500

/**
 * Calls `close` behind the first turn of the event loop that found no connection waiting, or after `MAX_MS`. `accepted` counts the
 * connections so far: each turn accepts one, where one waits.
 */
export const onceAllAreAccepted = (accepted: () => number, close: () => void): void => {
  const startMs = performance.now()
  let before = { events: -1, accepted: -1 }
  // Runs right behind the poll.
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
