/**
 * Closes a listener without resetting connections. The kernel establishes connections and queues them until the process accepts them. A
 * close resets the queued connections, and a proxy does not repeat requests that were already sent on them. Node cannot read the queue.
 * So the close waits for a turn of the event loop without a new connection and follows at once.
 */

/** During this time only a turn without any event is accepted. Then no connection is queued between the poll and the close. */
const STRICT_MS = 100
/** The longest delay of the close, also under a flood of new connections. */
const MAX_MS = 500

/**
 * Calls `close` after the first turn of the event loop without a queued connection, at the latest after `MAX_MS`. `accepted`: the number
 * of connections so far. Each turn accepts one queued connection.
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
