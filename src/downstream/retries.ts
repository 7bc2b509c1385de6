/**
 * When a call that failed is sent a second time without anybody asking: only where the server cannot have acted on it, or
 * where acting twice is the same as once (BRIDGING 5.3, 7.2; B231, F-15). Never a third time.
 */
import type { Call } from '../rpc/call.ts'
import type { CancelSignal } from '../rpc/cancellation.ts'
import { Failure } from '../wire/failure.ts'

/** Methods that only read. */
const IDEMPOTENT = new Set(['resources/read', 'prompts/get', 'completion/complete'])
/** A host's call waits at most this long for a server that is rate limiting. */
const MAX_WAIT_MS = 5_000

/** How long to wait before sending `call` again after `error`; `undefined`: it is not sent again. */
const retryDelayMs = (error: unknown, { method }: Call): number | undefined => {
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

/** The second attempt after `error`, where that is right; else rejects with `error`. */
export const again = async <T>(error: unknown, call: Call, attempt: () => Promise<T>): Promise<T> => {
  const delayMs = retryDelayMs(error, call)
  if (delayMs === undefined) throw error
  if (delayMs > 0) await pause(delayMs, call.signal)
  if (call.signal.aborted) throw error
  return attempt()
}

/** Resolves early when the host gives up. */
const pause = (ms: number, signal: CancelSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
