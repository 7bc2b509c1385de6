/** Notices a worker whose event loop no longer runs: new connections would still reach it, and wait. */
import type { Exchange } from './exchange.ts'

/** How long a worker may leave pings without an answer. */
export const SILENCE_MS = 30_000
const PING_MS = 2_000

/**
 * Pings the other process until the returned function is called, and calls `silent` once if it does not answer for `SILENCE_MS`. Pings are
 * counted rather than time, since neither process runs while the machine is suspended (F-27).
 */
export const watchLiveness = (exchange: Pick<Exchange, 'request'>, silent: () => void): (() => void) => {
  let unanswered = 0
  const answered = (): void => void (unanswered = 0)
  const timer = setInterval(() => {
    if (unanswered >= SILENCE_MS / PING_MS) {
      clearInterval(timer)
      return silent()
    }
    unanswered++
    // Its end is not silence.
    exchange.request('ping').then(answered, answered)
  }, PING_MS)
  timer.unref()
  return () => clearInterval(timer)
}
