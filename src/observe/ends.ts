/** How a call ended, in one word and the facts behind it: the same for the audit log, the capture of calls and the metrics. */
import { Refusal, ServerError } from '../rpc/call.ts'
import type { Outcome } from '../rpc/call.ts'
import type { DenialReason } from '../rpc/record.ts'
import { Failure } from '../wire/message/failure.ts'
import type { FailureKind } from '../wire/message/failure.ts'
import { Payload } from '../wire/message/payload.ts'
import type { StreamedResult, StreamEnd } from '../wire/result/streamed-result.ts'

export const CALL_OUTCOMES = [
  'ok',
  'tool_error',
  'error',
  'failed',
  'refused',
  'cancelled',
  'input_required',
  'task',
  'streamed',
] as const
export type CallOutcome = (typeof CALL_OUTCOMES)[number]

export interface CallEnd {
  readonly outcome: CallOutcome
  /** Of a refusal: why, and the option that says so. */
  readonly reason?: DenialReason
  readonly rule?: string | undefined
  readonly code?: number
  readonly kind?: FailureKind
  readonly detail?: string
}

/** Failures that turn a call away before it was made, and what that is called. */
const DENIALS: Partial<Record<FailureKind, DenialReason>> = {
  overloaded: 'overloaded',
  shutting_down: 'shutting_down',
  unknown: 'unknown',
  denied: 'unknown',
  policy_denied: 'policy',
  state: 'invalid',
}

/** Outcomes that a person looks for when something went wrong. */
const GOOD: ReadonlySet<CallOutcome> = new Set(['ok', 'input_required', 'task', 'streamed'])

export const isErrorOutcome = (outcome: CallOutcome): boolean => !GOOD.has(outcome)

/** Most calls end like this: one object for all of them. */
export const GOOD_END: CallEnd = { outcome: 'ok' }
/** Only `true` begins with it. */
const TRUE = 0x74

/** Of a result that is whole. */
export const endOfOutcome = (method: string, isAborted: boolean, { kind, result }: Outcome): CallEnd => {
  if (isAborted) return { outcome: 'cancelled' }
  if (kind !== 'complete') return { outcome: kind }
  if (method !== 'tools/call' || !(result instanceof Payload)) return GOOD_END
  const isError = result.member('isError')
  return isError !== undefined && result.bytes[isError.start] === TRUE ? { outcome: 'tool_error' } : GOOD_END
}

/** What passed on while it came is not looked into: whether the tool says that it failed is known only where it says so first. */
export const endOfStream = (result: StreamedResult, end: StreamEnd): CallEnd => {
  if (end === 'aborted') return { outcome: 'cancelled' }
  if (end !== 'complete') return { outcome: 'failed', kind: end.kind, detail: end.message }
  const isError = result.raw('isError')?.toString()
  return { outcome: isError === undefined ? 'streamed' : isError === 'true' ? 'tool_error' : 'ok' }
}

/** Of what a call was rejected with; `denied`: what those whom it passed wrote down. */
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
