/** Nothing that the generator waits for lasts without end: what takes longer hangs, and is a finding that names it. */

/** For one thing that is waited for; an answer to a request has a limit of its own, `LATE_MS`. */
const STUCK_MS = 30_000

/** The same promise; rejects if it takes longer than that. `what`: a noun phrase. */
export const within = async <T>(what: string, awaited: PromiseLike<T>, ms = STUCK_MS): Promise<T> => {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms / 1_000} s`)), ms)
  try {
    return await Promise.race([awaited, late])
  } finally {
    clearTimeout(timer)
  }
}
