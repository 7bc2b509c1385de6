/** Retries of failed calls: once, if the call cannot have been executed, or is idempotent (BRIDGING 5.3, 7.2; B231, F-15). */
import { ServerError } from '../../rpc/call.ts'
import type { Call } from '../../rpc/call.ts'
import { pause } from '../../time/pause.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { RetryBudget } from './retry-budget.ts'

/** Methods that only read. */
const IDEMPOTENT = new Set(['resources/read', 'prompts/get', 'completion/complete'])
/** Longest wait for a server that limits its rate. */
const MAX_WAIT_MS = 5_000

/** Whether the server refused a message, unread, because it has forgotten the session. */
export const isForgotten = (error: unknown): boolean =>
  error instanceof Failure && error.kind === 'session_expired' && error.executed === 'no'

/** Whether the server expects other `Mcp-Param-*` headers than its last known tool list (B221). */
export const isMismatch = (error: unknown, { method }: Call): boolean =>
  error instanceof ServerError && error.code === -32020 && method === 'tools/call'

/** The delay before `call` is sent again after `error`; `undefined`: it is not sent again. */
const retryDelayMs = (error: Failure, { method }: Call): number | undefined => {
  const { kind, executed, facts } = error
  const isUntouched = executed === 'no'
  if (isForgotten(error)) return 0
  if (kind === 'lost') return isUntouched || IDEMPOTENT.has(method) ? 0 : undefined
  if (kind === 'exited') return isUntouched ? 0 : undefined
  const isRefused = kind === 'rate_limited' || (kind === 'downstream_error' && facts.status === 503 && IDEMPOTENT.has(method))
  const { retryAfterMs } = facts
  return isRefused && retryAfterMs !== undefined && retryAfterMs <= MAX_WAIT_MS ? retryAfterMs : undefined
}

/**
 * Makes the second attempt after `error` if it is allowed and within the budget; else rejects with `error`. If the second attempt finds
 * that the session was lost, one more follows, since the server has refused that attempt unread.
 */
export const again = async <T>(error: unknown, call: Call, budget: RetryBudget, attempt: () => Promise<T>): Promise<T> => {
  if (!(error instanceof Failure)) throw error
  const delayMs = retryDelayMs(error, call)
  if (delayMs === undefined) throw error
  // A lost session costs no retry budget: all its calls share one new handshake.
  if (!isForgotten(error) && !budget.take(call.ref)) throw withoutBudget(error)
  if (delayMs > 0) await pause(delayMs, call.signal)
  if (call.signal.aborted) throw error
  try {
    return await attempt()
  } catch (second) {
    if (!isForgotten(second) || isForgotten(error) || call.signal.aborted) throw inDoubt(error, second)
  }
  try {
    return await attempt()
  } catch (third) {
    throw inDoubt(error, third)
  }
}

/** The last error; if the first attempt may have been executed, that remains possible. */
const inDoubt = (first: Failure, last: unknown): unknown => {
  if (!(last instanceof Failure)) return last
  const isDoubtful = first.executed === 'unknown' && last.executed === 'no'
  return isDoubtful ? new Failure(last.kind, last.message, { ...last.facts, executed: 'unknown' }, last) : last
}

const withoutBudget = (error: Failure): Failure =>
  new Failure(error.kind, `${error.message}; not sent again`, { ...error.facts, limit: 'limits.retry_budget' }, error)
