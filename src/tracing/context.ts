/**
 * W3C trace context in `_meta` ([SEP-414]; BRIDGING 2.6): read from hosts, written for servers. `tracestate` and `baggage` are relayed
 * unchanged, except that a `tracestate` without a valid `traceparent` is removed (W3C Trace Context 3.3).
 */
import { ROOT_CONTEXT, trace, TraceFlags } from '@opentelemetry/api'
import type { Context, Span, SpanContext } from '@opentelemetry/api'
import { parseTraceParent, TraceState } from '@opentelemetry/core'
import type { JsonObject, Payload } from '../wire/message/payload.ts'

/** A longer `tracestate` is relayed, but not part of spans, of which thousands may wait: 512 characters are usual (W3C Trace Context 3.3.1.5). */
const MAX_STATE = 4_096

/** Returns the context of `traceparent` and `tracestate` in `_meta`; `undefined`: absent or invalid. */
export const remoteContext = (meta: Payload | undefined): SpanContext | undefined => {
  const parent = parsed(meta?.text('traceparent'))
  const state = meta?.text('tracestate')
  if (parent === undefined) return undefined
  return {
    ...parent,
    isRemote: true,
    ...(state !== undefined && state.length <= MAX_STATE && { traceState: new TraceState(state) }),
  }
}

/** Parses a `traceparent`; `undefined`: absent or invalid. */
export const parsed = (traceparent: string | undefined): SpanContext | undefined =>
  (traceparent === undefined ? undefined : parseTraceParent(traceparent)) ?? undefined

export const contextOf = (parent: SpanContext | undefined): Context =>
  parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)

export const childContext = (parent: Span): Context => trace.setSpan(ROOT_CONTEXT, parent)

export const formatTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`

/** Makes the span the parent of the receiver's spans. `isOwn`: the trace began here, so a `tracestate` is of another trace. */
export const writeContext = (meta: JsonObject, context: SpanContext, isOwn: boolean): void => {
  meta.set('traceparent', `"${formatTraceparent(context)}"`)
  if (isOwn) meta.delete('tracestate')
}
