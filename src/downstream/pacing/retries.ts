/**
 * When a call that failed is sent a second time without anybody asking: only where the server cannot have acted on it, or
 * where acting twice is the same as once (BRIDGING 5.3, 7.2; B231, F-15). Never a third time.
 */
import { ServerError } from '../../rpc/call.ts'
import type { Call } from '../../rpc/call.ts'
import { pause } from '../../time/pause.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { RetryBudget } from './retry-budget.ts'

/** Methods that only read. */
const IDEMPOTENT = new Set(['resources/read', 'prompts/get', 'completion/complete'])
/** A host's call waits at most this long for a server that is rate limiting. */
const MAX_WAIT_MS = 5_000

/** The server refused a message, unread, because it has forgotten our session. */
export const isForgotten = (error: unknown): boolean =>
  error instanceof Failure && error.kind === 'session_expired' && error.executed === 'no'

/** The server wants other `Mcp-Param-*` headers than its list of tools said when we read it (B221). */
export const isMismatch = (error: unknown, { method }: Call): boolean =>
  error instanceof ServerError && error.code === -32020 && method === 'tools/call'

/** How long to wait before sending `call` again after `error`; `undefined`: it is not sent again. */
const retryDelayMs = (error: unknown, { method }: Call): number | undefined => {
  if (!(error instanceof Failure)) return undefined
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
 * The second attempt after `error`, where that is right and within the budget; else rejects with `error`. A session that is found
 * gone by it, with the connection that broke, does not count: the server refused that attempt unread.
 */
export const again = async <T>(error: unknown, call: Call, budget: RetryBudget, attempt: () => Promise<T>): Promise<T> => {
  const delayMs = retryDelayMs(error, call)
  if (delayMs === undefined) throw error
  // A lost session costs no retry budget: all its calls share one new handshake.
  // Cast: nothing but a `Failure` has a delay.
  if (!isForgotten(error) && !budget.take(call.ref)) throw withoutBudget(error as Failure)
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

/** What was sent once may have been executed, whatever became of a later attempt. */
const inDoubt = (first: unknown, last: unknown): unknown => {
  if (!(first instanceof Failure) || !(last instanceof Failure)) return last
  const isDoubtful = first.executed === 'unknown' && first.kind !== 'rate_limited' && last.executed === 'no'
  return isDoubtful ? new Failure(last.kind, last.message, { ...last.facts, executed: 'unknown' }, last) : last
}

const withoutBudget = (error: Failure): Failure =>
  new Failure(error.kind, `${error.message}; not sent again`, { ...error.facts, limit: 'limits.retry_budget' }, error)
