/**
 * One call while it is under way and after: what its parts write down of it (`CallRecord`), and when. Until it ends it refers to the
 * messages themselves; then what is to be kept of them is copied, without secrets, and the rest let go.
 */
import type { Call, HostSession, Question, Scope } from '../rpc/call.ts'
import type { Deviation } from '../rpc/deviation.ts'
import type { CallRecord, Hop } from '../rpc/record.ts'
import { sessionLabel } from '../rpc/session-label.ts'
import type { Envelope } from '../wire/message/envelope.ts'
import { byteLength } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'
import { isModernRevision } from '../wire/protocol/revisions.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'
import { EndsCollector, keepBody, sizeOfBody } from './body.ts'
import type { KeepOptions, KeptBody } from './body.ts'
import type { Ask, CallDetail, CallRow, HostTransport, Lane, TimeSplit } from './captured.ts'
import { diffMessages } from './diff.ts'
import { endOfStream, isErrorOutcome } from './ends.ts'
import type { CallEnd } from './ends.ts'
import type { CapturedBodies } from './options.ts'

/** What is known of a call when it comes. */
export interface Begun {
  readonly ref: number
  readonly method: string
  readonly principal: string
  readonly scope: Scope
  readonly revision: string
  readonly session: HostSession | undefined
  /** What the host says it is: `Implementation`, as parsed JSON. */
  readonly clientInfo: unknown
  readonly transport: HostTransport | undefined
  /** As it came; `undefined`: it came from no host. */
  readonly message: Buffer | undefined
  readonly replayOf?: number | undefined
}

/** What a recording needs of its observer. */
export interface RecordingEnvironment {
  readonly nowMs: () => number
  readonly wallMs: () => number
  readonly bodies: () => CapturedBodies
  readonly keep: () => KeepOptions
  readonly toolsetOf: (scope: Scope) => string | undefined
  /** It ended. */
  readonly over: (recording: Recording) => void
  /** More is known of one that ended. */
  readonly changed: (recording: Recording) => void
}

interface OpenLane {
  readonly hop: Hop
  readonly id: number
  readonly kind: Lane['kind']
  readonly sentMs: number
  firstMs: number | undefined
  doneMs: number | undefined
  end: Lane['end']
  parts: Parts | undefined
  answer: Buffer | undefined
  stream: EndsCollector | undefined
  request: KeptBody | undefined
  response: KeptBody | undefined
}

/** Memory of a call without bodies, about. */
const BASE_SIZE = 1_024

export class Recording implements CallRecord {
  server?: string
  original?: string
  isListed?: boolean
  denied?: NonNullable<CallRecord['denied']>
  needsSignIn?: true
  readonly id: number
  /** What lives on: neither the session nor the message. */
  readonly begun: Omit<Begun, 'ref' | 'session' | 'message'> & { readonly sessionId: string | undefined }
  readonly receivedMs: number
  readonly #environment: RecordingEnvironment
  readonly #atMs: number
  #message: Buffer | undefined
  #name: string | undefined
  #way: Call['way']
  #startedMs: number | undefined
  #slottedMs: number | undefined
  #answeredMs: number | undefined
  #writtenMs: number | undefined
  readonly #lanes: OpenLane[] = []
  #asks: { method: string; fromMs: number; toMs: number | undefined }[] | undefined
  #deviations: Deviation[] | undefined
  #traceId: string | undefined
  #end: CallEnd | undefined
  #isStreamed = false
  #bytesIn: number
  #bytesOut = 0
  #request: KeptBody | undefined
  #response: KeptBody | undefined
  #isOver = false
  size = BASE_SIZE
  keptMs = 0

  constructor(begun: Begun, environment: RecordingEnvironment) {
    this.id = begun.ref
    const { method, principal, scope, revision, session, clientInfo, transport, replayOf } = begun
    this.begun = { method, principal, scope, revision, sessionId: session?.id, clientInfo, transport, replayOf }
    this.#message = begun.message
    this.#bytesIn = begun.message?.length ?? 0
    this.#environment = environment
    this.receivedMs = environment.nowMs()
    this.#atMs = environment.wallMs()
  }

  get isOver(): boolean {
    return this.#isOver
  }
  get end(): CallEnd | undefined {
    return this.#end
  }
  /** As the host named it. */
  get name(): string | undefined {
    return this.#name
  }
  get atMs(): number {
    return this.#atMs
  }
  /** Of its trace, where traces are kept. */
  get traceId(): string | undefined {
    return this.#traceId ?? this.#way?.traceId
  }
  get totalMs(): number {
    return (this.#writtenMs ?? this.#environment.nowMs()) - this.receivedMs
  }

  /** It is on its way through the layers. A host that asks is timed while it thinks. */
  started(call: Call): Call {
    this.#startedMs = this.#environment.nowMs()
    this.#name = call.target
    this.#way = call.way
    this.#bytesIn ||= call.params.end - call.params.start
    const { ask } = call
    return { ...call, record: this, ask: ask && ((question: Question) => this.#timed(question.method, () => ask(question))) }
  }

  slotted(): void {
    this.#slottedMs ??= this.#environment.nowMs()
  }

  sent(parts: Parts, id: number, hop: Hop): void {
    const nowMs = this.#environment.nowMs()
    const { era, revision, transport } = hop
    const last = this.#lanes.at(-1)
    if (last?.end === 'open') {
      last.end = 'lost'
      last.doneMs = nowMs
    }
    const kind = last === undefined ? 'call' : last.end === 'result' ? 'round' : 'retry'
    this.#lanes.push({
      // The link itself may close long before this is forgotten.
      hop: { era, revision, transport },
      id,
      kind,
      sentMs: nowMs,
      firstMs: undefined,
      doneMs: undefined,
      end: 'open',
      parts: this.#mayKeep ? parts : undefined,
      answer: undefined,
      stream: undefined,
      request: undefined,
      response: undefined,
    })
  }

  progressed(): void {
    const lane = this.#lanes.at(-1)
    if (lane !== undefined) lane.firstMs ??= this.#environment.nowMs()
  }

  received({ bytes, error, result }: Envelope): void {
    const lane = this.#lanes.at(-1)
    if (lane === undefined) return
    const nowMs = this.#environment.nowMs()
    lane.firstMs ??= nowMs
    if (result instanceof StreamedResult) {
      if (!this.#mayKeep) return
      const stream = new EndsCollector(this.#environment.keep().maxBytes)
      lane.stream = stream
      return result.tap((chunk) => stream.push(chunk))
    }
    lane.doneMs = nowMs
    lane.end = error === undefined ? 'result' : 'error'
    if (this.#mayKeep) lane.answer = bytes
  }

  deviated(deviation: Deviation): void {
    ;(this.#deviations ??= []).push(deviation)
  }

  /** How it ended, as the layers know it. */
  settled(end: CallEnd): void {
    this.#end = end
  }

  /** Its result passes on while it comes: how it ended is known when that is over. */
  streams(result: StreamedResult): void {
    this.#isStreamed = true
    result.onOver((bytes, end) => {
      this.#bytesOut = bytes
      this.#end = endOfStream(result, end)
      this.answered(undefined)
    })
  }

  /** The answer is ready; `undefined`: there will be none. What is to be kept is copied now, before its memory is used again. */
  answered(parts: Parts | undefined, end?: CallEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    if (end !== undefined) this.#end ??= end
    this.#end ??= { outcome: 'ok' }
    const nowMs = this.#environment.nowMs()
    this.#answeredMs = this.#writtenMs = nowMs
    if (parts !== undefined) this.#bytesOut = byteLength(parts)
    this.#close(nowMs)
    this.#keep(parts)
    this.#environment.over(this)
  }

  /** The system has taken the answer. */
  written(): void {
    this.#writtenMs = this.#environment.nowMs()
    this.#environment.changed(this)
  }

  row(): CallRow {
    const { begun } = this
    const end = this.#end
    const isDone = this.#isOver && end !== undefined
    return {
      id: this.id,
      at: new Date(this.#atMs).toISOString(),
      state: isDone ? 'done' : 'open',
      host: hostOf(begun.clientInfo),
      transport: begun.transport ?? null,
      era: isModernRevision(begun.revision) ? 'modern' : 'legacy',
      revision: begun.revision,
      principal: begun.principal,
      session: begun.sessionId === undefined ? null : sessionLabel(begun.sessionId),
      toolset: this.#environment.toolsetOf(begun.scope) ?? null,
      endpoint: begun.scope.server ?? null,
      method: begun.method,
      name: this.#name ?? null,
      server: this.server ?? null,
      original: this.original ?? null,
      outcome: isDone ? end.outcome : null,
      error:
        isDone && isErrorOutcome(end.outcome)
          ? {
              kind: end.kind ?? end.reason ?? (this.needsSignIn ? 'auth_required' : null),
              code: end.code ?? null,
              message: end.detail ?? null,
            }
          : null,
      ms: this.#split(),
      bytesIn: this.#bytesIn,
      bytesOut: this.#bytesOut,
      tokensOut: Math.ceil(this.#bytesOut / 4),
      rules: [...new Set((this.#deviations ?? []).map(({ rule }) => rule))],
      lanes: this.#lanes.length,
      replayOf: begun.replayOf ?? null,
      traceId: this.traceId ?? null,
    }
  }

  detail(): CallDetail {
    const since = (ms: number | undefined): number | null => (ms === undefined ? null : round(ms - this.receivedMs))
    const [first, last] = [this.#lanes[0], this.#lanes.at(-1)]
    const down = this.#request?.text === undefined || first?.request?.text === undefined
    const up = this.#response?.text === undefined || last?.response?.text === undefined
    return {
      ...this.row(),
      times: {
        received: 0,
        started: since(this.#startedMs),
        slotted: since(this.#slottedMs),
        sent: since(first?.sentMs),
        firstByte: since(last?.firstMs),
        done: since(last?.doneMs),
        answered: since(this.#answeredMs),
        written: since(this.#writtenMs),
      },
      hops: this.#lanes.map((lane) => ({
        kind: lane.kind,
        server: this.server ?? null,
        transport: lane.hop.transport,
        era: lane.hop.era,
        revision: lane.hop.revision,
        requestId: lane.id,
        sent: round(lane.sentMs - this.receivedMs),
        firstByte: since(lane.firstMs),
        done: since(lane.doneMs),
        end: lane.end,
        ...(lane.request && { request: lane.request }),
        ...(lane.response && { response: lane.response }),
      })),
      asks: (this.#asks ?? []).map(({ method, fromMs, toMs }): Ask => ({
        method,
        from: round(fromMs - this.receivedMs),
        to: since(toMs),
      })),
      ...(this.#request && { request: this.#request }),
      ...(this.#response && { response: this.#response }),
      deviations: this.#deviations ?? [],
      diff:
        down && up
          ? null
          : {
              request: down ? [] : diffMessages(this.#request?.text ?? '', first?.request?.text ?? '', 'down'),
              response: up ? [] : diffMessages(last?.response?.text ?? '', this.#response?.text ?? '', 'up'),
            },
    }
  }

  get #mayKeep(): boolean {
    return this.#environment.bodies() !== 'off'
  }

  /** What is open ends with the call. */
  #close(nowMs: number): void {
    for (const ask of this.#asks ?? []) ask.toMs ??= nowMs
    const last = this.#lanes.at(-1)
    if (last?.end !== 'open') return
    last.doneMs = nowMs
    last.end = this.#isStreamed && !isErrorOutcome(this.#end?.outcome ?? 'ok') ? 'result' : 'lost'
  }

  #keep(parts: Parts | undefined): void {
    const bodies = this.#environment.bodies()
    const isKept = bodies === 'all' || (bodies === 'errors' && isErrorOutcome(this.#end?.outcome ?? 'ok'))
    const options = this.#environment.keep()
    if (isKept) {
      if (this.#message !== undefined) this.#request = keepBody([this.#message], options)
      if (parts !== undefined) this.#response = keepBody(parts, options)
    }
    for (const lane of this.#lanes) {
      if (isKept && lane.parts !== undefined) lane.request = keepBody(lane.parts, options)
      if (isKept && lane.answer !== undefined) lane.response = keepBody([lane.answer], options)
      if (isKept && lane.stream !== undefined) lane.response = lane.stream.kept(options)
      lane.parts = lane.answer = lane.stream = undefined
      this.size += 256 + sizeOf(lane.request) + sizeOf(lane.response)
    }
    this.#traceId = this.#way?.traceId
    this.#message = this.#way = undefined
    this.size += sizeOf(this.#request) + sizeOf(this.#response) + (this.#name?.length ?? 0) + (this.#end?.detail?.length ?? 0)
  }

  async #timed<T>(method: string, answer: () => Promise<T>): Promise<T> {
    const ask: { method: string; fromMs: number; toMs: number | undefined } = {
      method,
      fromMs: this.#environment.nowMs(),
      toMs: undefined,
    }
    ;(this.#asks ??= []).push(ask)
    try {
      return await answer()
    } finally {
      ask.toMs ??= this.#environment.nowMs()
    }
  }

  #split(): TimeSplit {
    const nowMs = this.#environment.nowMs()
    const total = (this.#writtenMs ?? nowMs) - this.receivedMs
    const thinking = (this.#asks ?? []).map(({ fromMs, toMs = nowMs }) => [fromMs, toMs] as const)
    let downstream = 0
    for (const { sentMs, doneMs = nowMs } of this.#lanes) {
      const asked = thinking.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, doneMs) - Math.max(from, sentMs)), 0)
      downstream += doneMs - sentMs - asked
    }
    const taking = this.#answeredMs === undefined ? 0 : (this.#writtenMs ?? nowMs) - this.#answeredMs
    const host = thinking.reduce((sum, [from, to]) => sum + to - from, 0) + taking
    return {
      total: round(total),
      host: round(host),
      gateway: round(Math.max(0, total - host - downstream)),
      downstream: round(downstream),
    }
  }
}

const sizeOf = (body: KeptBody | undefined): number => (body === undefined ? 0 : sizeOfBody(body))

/** To a hundredth of a millisecond. */
const round = (ms: number): number => Math.round(ms * 100) / 100

const MAX_HOST_CHARACTERS = 100

const hostOf = (clientInfo: unknown): string | null => {
  if (typeof clientInfo !== 'object' || clientInfo === null) return null
  const { name, version } = clientInfo as { name?: unknown; version?: unknown }
  if (typeof name !== 'string') return null
  return `${name}${typeof version === 'string' ? ` ${version}` : ''}`.slice(0, MAX_HOST_CHARACTERS).toWellFormed()
}
