/**
 * W3C trace context in `_meta` ([SEP-414]; BRIDGING 2.6): read of a host, written for a server. `tracestate` and `baggage` stay as the
 * host wrote them, but for a `tracestate` whose `traceparent` says nothing: it then belongs to no trace (W3C Trace Context 3.3).
 */
import { ROOT_CONTEXT, trace, TraceFlags } from '@opentelemetry/api'
import type { Context, Span, SpanContext } from '@opentelemetry/api'
import { parseTraceParent, TraceState } from '@opentelemetry/core'
import type { JsonObject, Payload } from '../wire/message/payload.ts'

/** What `traceparent` in this `_meta` says; `undefined`: nothing, or nothing that can be read. */
export const remoteContext = (meta: Payload | undefined): SpanContext | undefined => {
  const parent = parsed(meta?.text('traceparent'))
  const state = meta?.text('tracestate')
  if (parent === undefined) return undefined
  return { ...parent, isRemote: true, ...(state !== undefined && { traceState: new TraceState(state) }) }
}

/** Of a `traceparent` header. */
export const parsed = (traceparent: string | undefined): SpanContext | undefined =>
  (traceparent === undefined ? undefined : parseTraceParent(traceparent)) ?? undefined

export const contextOf = (parent: SpanContext | undefined): Context =>
  parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)

export const childContext = (parent: Span): Context => trace.setSpan(ROOT_CONTEXT, parent)

/** Makes the span the parent of what the receiver does. `isOwn`: the trace began here, so that no state of another may stand beside it. */
export const writeContext = (meta: JsonObject, { traceId, spanId, traceFlags }: SpanContext, isOwn: boolean): void => {
  const flags = (traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')
  meta.set('traceparent', `"00-${traceId}-${spanId}-${flags}"`)
  if (isOwn) meta.delete('tracestate')
}
