/** How a request ended, as attributes of spans and metrics. */
import type { Attributes } from '@opentelemetry/api'
import type { CallEnd } from '../observe/call-end.ts'
import { isErrorOutcome } from '../observe/outcomes.ts'

export interface SpanEnd {
  /** `error.type`; absent: success. */
  readonly error?: string
  /** The JSON-RPC error code, if the host received one. */
  readonly code?: string
  readonly message?: string | undefined
}

const SUCCESS: SpanEnd = {}

/** A server's error and a refusal are named by their code, a failure by its kind. */
export const spanEndOf = ({ outcome, kind, code, detail: message }: CallEnd): SpanEnd => {
  if (code !== undefined) return { error: String(code), code: String(code), message }
  if (kind !== undefined) return { error: kind, message }
  if (!isErrorOutcome(outcome)) return SUCCESS
  return { error: outcome === 'failed' ? '_OTHER' : outcome }
}

export const endAttributes = ({ error, code }: SpanEnd): Attributes => ({
  ...(error !== undefined && { 'error.type': error }),
  ...(code !== undefined && { 'rpc.response.status_code': code }),
})

/** Returns the code of a host's error, which may be any JSON; `_OTHER`: no code. */
export const codeText = (json: Uint8Array | undefined): string => {
  const code = Number(json?.toString())
  return Number.isSafeInteger(code) ? String(code) : '_OTHER'
}
