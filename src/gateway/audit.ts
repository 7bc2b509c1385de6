/**
 * The audit log: one line for each call and for each denied request, written when the outcome is known. The outermost layer, so that it
 * records the decisions of all other layers. The sink decides about write errors.
 */
import { Refusal, ServerError } from '../rpc/call.ts'
import type { Call, Handler, Layer, Outcome, Scope } from '../rpc/call.ts'
import type { CallRecord, Denial, DenialReason } from '../rpc/record.ts'
import { sessionLabel } from '../rpc/session-label.ts'
import { withoutSecrets } from '../observe/capture/body.ts'
import { endOfError, endOfOutcome, endOfStream } from '../observe/call-end.ts'
import { parseJson } from '../values/json-object.ts'
import { Failure } from '../wire/message/failure.ts'
import type { FailureKind } from '../wire/message/failure.ts'
import { byteLength, join, Payload } from '../wire/message/payload.ts'
import type { JsonObject } from '../wire/message/payload.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'

export interface AuditSink {
  /** `line`: without a line end. */
  write(line: string): void
  /** The reason why no call may be made now, since it could not be logged; `undefined`: the log can be written. */
  readonly trouble: string | undefined
}

export interface AuditOptions {
  readonly sink: AuditSink
  /** Whether params and results are written, too. */
  readonly bodies: boolean
  /** Removes secrets from JSON text. */
  readonly hideJson: (json: string) => string
  readonly toolsetOf: (scope: Scope) => string | undefined
  /** The rule that hides the name in this call from its caller; `undefined`: the name does not exist. */
  readonly hiddenBy: (call: Call) => string | undefined
}

/** Larger params and results are omitted; the line says so. */
const MAX_BODY_BYTES = 64 * 1024

interface End {
  readonly outcome?: string
  readonly result?: JsonObject
  /** Size of a result that is not available here. */
  readonly bytes?: number
  readonly denied?: { readonly reason: DenialReason; readonly rule?: string | undefined }
  readonly code?: number
  readonly kind?: FailureKind
  readonly detail?: string
}

/** A call whose line is written at its end. */
interface Begun {
  readonly call: Call
  readonly record: CallRecord
  /** ISO 8601. */
  readonly time: string
  readonly startedMs: number
  /** Absent: bodies are not logged. */
  readonly received: Buffer | undefined
}

export class Audit {
  readonly #options: AuditOptions

  constructor(options: AuditOptions) {
    this.#options = options
  }

  readonly layer: Layer = (inner) => (call) => this.#watch(inner, call)

  /** Logs a request that was denied before it became a call. */
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
    // The params as received: inner layers edit them in place.
    const received = this.#options.bodies ? call.params.bytes.subarray(call.params.start, call.params.end) : undefined
    const begun = { call, record, time, startedMs, received }
    const write = (end: End): void => this.#write(begun, end)
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

  #write({ call, record, time, startedMs, received }: Begun, end: End): void {
    const durationMs = performance.now() - startedMs
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
    sink.write(received === undefined ? hideJson(text) : withoutSecrets(withBodies(text, received, end), hideJson))
  }
}

const endOf = ({ method, signal }: Call, outcome: Outcome): End => ({
  ...endOfOutcome(method, signal.aborted, outcome),
  result: outcome.result,
})

/** Size of a server's result as received, before edits. */
const sizeOf = (result: JsonObject): number =>
  result instanceof Payload ? result.end - result.start : byteLength(result.parts())

const withBodies = (line: string, params: Buffer, { result, bytes }: End): string => {
  const sent = result === undefined || sizeOf(result) > MAX_BODY_BYTES ? undefined : join(result.parts())
  const areParamsLong = params.length > MAX_BODY_BYTES
  const bodies = [areParamsLong ? undefined : `"params":${oneLine(params)}`, sent && `"result":${oneLine(sent)}`]
  const omitted = [
    ...(areParamsLong ? ['params'] : []),
    ...((result !== undefined || bytes !== undefined) && sent === undefined ? ['result'] : []),
  ]
  const more = [...bodies, omitted.length === 0 ? undefined : `"omitted":${JSON.stringify(omitted)}`]
  return `${line.slice(0, -1)},${more.filter((part) => part !== undefined).join(',')}}`
}

/** Replaces line ends, which in JSON occur only between tokens. Invalid JSON of a server becomes a JSON string. */
const oneLine = (bytes: Buffer): string => {
  const json = bytes.toString()
  return parseJson(json) === undefined ? JSON.stringify(json) : json.replaceAll(/[\r\n]+/g, ' ')
}

const refusedBecause = (trouble: string): Failure => {
  const text = `the audit log cannot be written (${trouble}), so that no call is made (telemetry.log.audit)`
  const facts = { executed: 'no', retryable: true, retryAfterMs: 1_000, limit: 'telemetry.log.audit' } as const
  return new Failure('store_unavailable', text, facts)
}
