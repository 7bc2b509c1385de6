/** How a request ended, as spans and metrics say it: what failed, with which code, in which words. */
import type { Attributes } from '@opentelemetry/api'
import { Refusal, ServerError } from '../rpc/call.ts'
import type { Call, Outcome } from '../rpc/call.ts'
import { Failure } from '../wire/message/failure.ts'
import { Payload } from '../wire/message/payload.ts'
import type { StreamedResult } from '../wire/result/streamed-result.ts'
import type { StreamEnd } from '../wire/result/streamed-result.ts'

/** `error`: the class of the error (`error.type`), from a short list; absent: it went well. */
export interface End {
  readonly error?: string
  /** The code of the JSON-RPC error, where the host was given one. */
  readonly code?: string
  readonly message?: string
}

const WELL: End = {}

/** A tool that says of itself that it failed, or input that is asked for, is a result. */
export const endOfOutcome = ({ method }: Pick<Call, 'method'>, { kind, result }: Outcome): End => {
  if (method !== 'tools/call' || kind !== 'complete' || !(result instanceof Payload)) return WELL
  return result.raw('isError')?.toString() === 'true' ? { error: 'tool_error' } : WELL
}

/** Of a result that passed on while it came. */
export const endOfStream = (result: StreamedResult, end: StreamEnd): End => {
  if (end === 'aborted') return { error: 'cancelled' }
  if (end !== 'complete') return endOfError(end)
  return endOfOutcome({ method: 'tools/call' }, { kind: 'complete', result })
}

/** A server's error and a refusal are named by their code, a failure of ours by its kind. */
export const endOfError = (error: unknown): End => {
  if (error instanceof ServerError || error instanceof Refusal) {
    const code = String(error.code)
    return { error: code, code, message: error.message }
  }
  return error instanceof Failure ? { error: error.kind, message: error.message } : { error: '_OTHER' }
}

export const endAttributes = ({ error, code }: End): Attributes => ({
  ...(error !== undefined && { 'error.type': error }),
  ...(code !== undefined && { 'rpc.response.status_code': code }),
})
