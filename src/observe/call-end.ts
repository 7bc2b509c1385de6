/** How a call ended: its outcome and facts, for the audit log, the capture of calls, metrics and traces. */
import { Refusal, ServerError } from '../rpc/call.ts'
import type { Outcome } from '../rpc/call.ts'
import type { DenialReason } from '../rpc/record.ts'
import { Failure } from '../wire/message/failure.ts'
import type { FailureKind } from '../wire/message/failure.ts'
import { Payload } from '../wire/message/payload.ts'
import type { StreamedResult, StreamEnd } from '../wire/result/streamed-result.ts'
import type { CallOutcome } from './outcomes.ts'

export interface CallEnd {
  readonly outcome: CallOutcome
  /** Of a refusal: the reason, and the option that caused it. */
  readonly reason?: DenialReason
  readonly rule?: string | undefined
  readonly code?: number
  readonly kind?: FailureKind
  readonly detail?: string
}

/** Reasons of failures by which a call is refused before it is sent. */
const DENIALS: Partial<Record<FailureKind, DenialReason>> = {
  overloaded: 'overloaded',
  shutting_down: 'shutting_down',
  unknown: 'unknown',
  denied: 'unknown',
  policy_denied: 'policy',
  state: 'invalid',
}

/** The end of most calls; one object for all of them. */
export const GOOD_END: CallEnd = { outcome: 'ok' }
/** First byte of `true`. */
const TRUE = 0x74

/** Returns the end for a complete result. */
export const endOfOutcome = (method: string, isAborted: boolean, { kind, result }: Outcome): CallEnd => {
  if (isAborted) return { outcome: 'cancelled' }
  if (kind !== 'complete') return { outcome: kind }
  if (method !== 'tools/call' || !(result instanceof Payload)) return GOOD_END
  const isError = result.member('isError')
  return isError !== undefined && result.bytes[isError.start] === TRUE ? { outcome: 'tool_error' } : GOOD_END
}

/** Returns the end for a streamed result. `isError` is known only if it precedes the content. */
export const endOfStream = (result: StreamedResult, end: StreamEnd): CallEnd => {
  if (end === 'aborted') return { outcome: 'cancelled' }
  if (end !== 'complete') return { outcome: 'failed', kind: end.kind, detail: end.message }
  const isError = result.raw('isError')?.toString()
  return { outcome: isError === undefined ? 'streamed' : isError === 'true' ? 'tool_error' : 'ok' }
}

/** Returns the end for a rejected call. `denied`: reason and rule recorded by the layers. */
export const endOfError = (
  error: unknown,
  isAborted: boolean,
  denied: { readonly reason: DenialReason; readonly rule?: string } | undefined,
): CallEnd => {
  if (error instanceof ServerError) return { outcome: 'error', code: error.code, detail: error.message }
  if (error instanceof Refusal) {
    const { reason, rule } = denied ?? { reason: 'invalid' as const }
    return { outcome: 'refused', reason, rule, code: error.code, detail: error.message }
  }
  if (isAborted) return { outcome: 'cancelled' }
  if (!(error instanceof Failure)) return { outcome: 'failed', detail: 'internal error' }
  const { kind, message, facts } = error
  const denial = kind === 'rate_limited' && facts.limit !== undefined ? kind : DENIALS[kind]
  const reason = error.executed === 'no' ? denial : undefined
  return reason === undefined
    ? { outcome: 'failed', kind, detail: message }
    : { outcome: 'refused', reason, rule: facts.limit ?? denied?.rule, kind, detail: message }
}
