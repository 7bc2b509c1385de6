/**
 * When a call that failed is sent a second time without anybody asking: only where the server cannot have acted on it, or
 * where acting twice is the same as once (BRIDGING 5.3, 7.2; B231, F-15). Never a third time.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Call } from '../rpc/call.ts'
import { Failure } from '../wire/failure.ts'

/** Methods that only read. */
const IDEMPOTENT = new Set(['resources/read', 'prompts/get', 'completion/complete'])
/** A host's call waits at most this long for a server that is rate limiting. */
const MAX_WAIT_MS = 5_000

/** How long to wait before sending `call` again after `error`; `undefined`: it is not sent again. */
export const retryDelayMs = (error: unknown, { method }: Call): number | undefined => {
  if (!(error instanceof Failure)) return undefined
  const { kind, executed, facts } = error
  const isUntouched = executed === 'no'
  if (kind === 'session_expired') return isUntouched ? 0 : undefined
  if (kind === 'lost') return isUntouched || IDEMPOTENT.has(method) ? 0 : undefined
  if (kind === 'exited') return isUntouched ? 0 : undefined
  const isRefused = kind === 'rate_limited' || (kind === 'downstream_error' && facts.status === 503 && IDEMPOTENT.has(method))
  const { retryAfterMs } = facts
  return isRefused && retryAfterMs !== undefined && retryAfterMs <= MAX_WAIT_MS ? retryAfterMs : undefined
}

/** Runs `attempt`, and once more where that is right. */
export const attemptTwice = async <T>(call: Call, attempt: () => Promise<T>): Promise<T> => {
  try {
    return await attempt()
  } catch (error) {
    const delayMs = retryDelayMs(error, call)
    if (delayMs === undefined || call.signal.aborted) throw error
    if (delayMs > 0) await wait(delayMs, undefined, { signal: call.signal }).catch(() => Promise.reject(error as Error))
    return attempt()
  }
}
