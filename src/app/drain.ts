/** How long open calls may go on while a gateway ends (`reload.drain`). */

/** The last of the drain time belongs to the servers' processes. */
export const CHILDREN_STOP_MS = 6_000
const POLL_MS = 20

/** Resolves once nothing is in flight, or when the rest of the drain time is left to the servers' processes. */
export const untilAnswered = async (inFlight: () => number, drainMs: number): Promise<void> => {
  const deadlineMs = performance.now() + Math.max(0, drainMs - CHILDREN_STOP_MS)
  while (inFlight() > 0 && performance.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
}
