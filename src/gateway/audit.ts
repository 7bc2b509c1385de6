/**
 * The audit log: one line for each call and for each request that was turned away. A line is made when the decision and its end are
 * known; what is written, and what happens when it cannot be, is up to the sink. The outermost layer: it sees what all others decide.
 */
import { Refusal, ServerError } from '../rpc/call.ts'
import type { Call, Handler, Layer, Outcome, Scope } from '../rpc/call.ts'
import type { CallRecord, Denial, DenialReason } from '../rpc/record.ts'
import { sessionLabel } from '../rpc/session-label.ts'
import { endOfError, endOfOutcome, endOfStream } from '../observe/call-end.ts'
import { Failure } from '../wire/message/failure.ts'
import type { FailureKind } from '../wire/message/failure.ts'
import { byteLength, join, Payload } from '../wire/message/payload.ts'
import type { JsonObject } from '../wire/message/payload.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'

export interface AuditSink {
  /** Takes one line, without its line end. */
  write(line: string): void
  /** Why nothing may be done now that would have to be written down; `undefined`: all is well. */
  readonly trouble: string | undefined
}

export interface AuditOptions {
  readonly sink: AuditSink
  /** Parameters and results are written, too. */
  readonly bodies: boolean
  /** JSON text without secrets. */
  readonly hideJson: (json: string) => string
  /** The toolset that a scope means. */
  readonly toolsetOf: (scope: Scope) => string | undefined
  /** The rule that hides what this call names from its caller; `undefined`: there is no such thing at all. */
  readonly hiddenBy: (call: Call) => string | undefined
}

/** Larger parameters and results are left out of the line, which says so. */
const MAX_BODY_BYTES = 64 * 1024

/** How a call ended, and with what. */
interface End {
  readonly outcome?: string
  readonly result?: JsonObject
  /** Where there is no result that could be measured. */
  readonly bytes?: number
  readonly denied?: { readonly reason: DenialReason; readonly rule?: string | undefined }
  readonly code?: number
  readonly kind?: FailureKind
  readonly detail?: string
}

export class Audit {
  readonly #options: AuditOptions

  constructor(options: AuditOptions) {
    this.#options = options
  }

  readonly layer: Layer = (inner) => (call) => this.#watch(inner, call)

  /** A request was turned away before it was a call. */
  readonly denied = ({ reason, session, ...facts }: Denial): void => {
    const line = {
      time: new Date().toISOString(),
      ...facts,
      session: session === undefined ? undefined : sessionLabel(session),
      decision: 'denied',
      reason,
    }
    this.#options.sink.write(this.#options.hideJson(JSON.stringify(line)))
  }

  async #watch(inner: Handler, call: Call): Promise<Outcome> {
    const record: CallRecord = call.record ?? {}
    const startedMs = performance.now()
    const time = new Date().toISOString()
    // Layers further in change parameters in place: what came is what is written.
    const came = this.#options.bodies ? call.params.bytes.subarray(call.params.start, call.params.end) : undefined
    const write = (end: End): void => this.#write(call, record, time, performance.now() - startedMs, came, end)
    const { trouble } = this.#options.sink
    if (trouble !== undefined) {
      write({ denied: { reason: 'audit' }, detail: trouble })
      throw refusedBecause(trouble)
    }
    try {
      const outcome = await inner(call.record === undefined ? { ...call, record } : call)
      const { result } = outcome
      if (result instanceof StreamedResult) result.onOver((bytes, end) => write({ ...endOfStream(result, end), bytes }))
      else write(endOf(call, outcome))
      return outcome
    } catch (error) {
      write(this.#failedEnd(call, record, error))
      throw error
    }
  }

  #failedEnd(call: Call, record: CallRecord, error: unknown): End {
    const { outcome, reason, rule, code, kind, detail } = endOfError(error, call.signal.aborted, record.denied)
    if (error instanceof ServerError) return { outcome, ...(code !== undefined && { code }) }
    if (reason === undefined) return { outcome, ...(kind && { kind }), ...(detail !== undefined && { detail }) }
    const hidden = error instanceof Refusal && reason === 'unknown' ? this.#options.hiddenBy(call) : rule
    const denied = { reason, rule: hidden }
    return { denied, ...(code !== undefined && { code }), ...(detail !== undefined && { detail }) }
  }

  #write(call: Call, record: CallRecord, time: string, durationMs: number, came: Buffer | undefined, end: End): void {
    const { sink, hideJson, toolsetOf } = this.#options
    const { principal, scope, revision, session } = call.caller
    const denied = end.denied ?? record.denied
    const line = {
      time,
      ref: call.ref,
      trace_id: call.trace?.traceId,
      span_id: call.trace?.spanId,
      principal,
      toolset: toolsetOf(scope),
      endpoint: scope.server,
      session: session === undefined ? undefined : sessionLabel(session.id),
      revision,
      method: call.method,
      name: call.target,
      server: record.server,
      original: record.original,
      decision: denied === undefined ? 'allowed' : 'denied',
      reason: denied?.reason,
      rule: denied?.rule,
      policy: record.policy,
      outcome: denied === undefined ? end.outcome : undefined,
      kind: end.kind,
      code: end.code,
      detail: end.detail,
      durationMs: Math.round(durationMs * 1000) / 1000,
      bytesIn: call.params.end - call.params.start,
      bytesOut: end.bytes ?? (end.result && sizeOf(end.result)),
    }
    const text = JSON.stringify(line)
    sink.write(hideJson(came === undefined ? text : withBodies(text, came, end)))
  }
}

const endOf = ({ method, signal }: Call, outcome: Outcome): End => ({
  ...endOfOutcome(method, signal.aborted, outcome),
  result: outcome.result,
})

/** What came, not what was made of it. */
const sizeOf = (result: JsonObject): number =>
  result instanceof Payload ? result.end - result.start : byteLength(result.parts())

const withBodies = (line: string, came: Buffer, { result, bytes }: End): string => {
  const sent = result === undefined || sizeOf(result) > MAX_BODY_BYTES ? undefined : join(result.parts())
  const bodies = [came.length > MAX_BODY_BYTES ? undefined : `"params":${oneLine(came)}`, sent && `"result":${oneLine(sent)}`]
  const omitted = [
    ...(came.length > MAX_BODY_BYTES ? ['params'] : []),
    ...((result !== undefined || bytes !== undefined) && sent === undefined ? ['result'] : []),
  ]
  const more = [...bodies, omitted.length === 0 ? undefined : `"omitted":${JSON.stringify(omitted)}`]
  return `${line.slice(0, -1)},${more.filter((part) => part !== undefined).join(',')}}`
}

/** Line ends stand between values of JSON, never within one. What is no JSON, as a server may have sent it, becomes a text. */
const oneLine = (bytes: Buffer): string => {
  const json = bytes.toString()
  try {
    JSON.parse(json)
    return json.replaceAll(/[\r\n]+/g, ' ')
  } catch {
    return JSON.stringify(json)
  }
}

const refusedBecause = (trouble: string): Failure =>
  new Failure(
    'store_unavailable',
    `the audit log cannot be written (${trouble}), so that no call is made (telemetry.log.audit)`,
    {
      executed: 'no',
      retryable: true,
      retryAfterMs: 1_000,
      limit: 'telemetry.log.audit',
    },
  )
