/**
 * What is seen of the calls of a gateway: begun where they come in, followed through the layers and over the connections to servers,
 * counted, and kept for a while. Off, it stands in no call's way: no layer, no record.
 */
import type { Call, Handler, Layer, Outcome, Scope } from '../rpc/call.ts'
import { IdTable } from '../wire/message/id-table.ts'
import { requestMessage, resultMessage } from '../wire/message/message.ts'
import { join } from '../wire/message/payload.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'
import type { CallDetail, CallRow } from './captured.ts'
import { CallMetrics } from './call-metrics.ts'
import { endOfError, endOfOutcome } from './ends.ts'
import { CallFeed } from './feed.ts'
import type { Filter } from './filter.ts'
import type { CapturedBodies, CaptureOptions, ObserveOptions } from './options.ts'
import { Recording } from './recording.ts'
import type { Begun, RecordingEnvironment } from './recording.ts'
import { Ring } from './ring.ts'
import { maySee } from './viewer.ts'
import type { Viewer } from './viewer.ts'

export interface ObserverOptions {
  readonly options: () => ObserveOptions
  /** A text without secrets. */
  readonly hide: (text: string) => string
  /** The name of the toolset that a scope means. */
  readonly toolsetOf: (scope: Scope) => string | undefined
  /** A limit acted, as is the usual course of things. */
  readonly passed: (option: string) => void
  /** A number for a call that came from no host. */
  readonly nextRef: () => number
  readonly nowMs?: () => number
  readonly wallMs?: () => number
}

/** A page of captured calls, newest first. */
export interface CallPage {
  readonly calls: readonly CallRow[]
  /** The id before which the next page begins; `null`: there is none. */
  readonly next: number | null
  readonly kept: { readonly calls: number; readonly bytes: number; readonly oldest: string | null }
}

/** Methods whose target is a name out of a catalog: of others it may be any text, and is no label. */
const NAMED_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get'])

export class Observer {
  readonly metrics: CallMetrics
  readonly feed = new CallFeed()
  readonly #options: ObserverOptions
  readonly #environment: RecordingEnvironment
  readonly #ring: Ring<Recording>
  readonly #open = new IdTable<Recording>()
  #latest = 0
  #wholeKeepers = 0

  constructor(options: ObserverOptions) {
    const { nowMs = () => performance.now(), wallMs = Date.now, passed, hide, toolsetOf } = options
    this.#options = options
    this.#ring = new Ring(
      () => this.#capture,
      (reason) => passed(reason === 'bytes' ? 'ui.capture.ring' : 'ui.capture.ttl'),
    )
    this.metrics = new CallMetrics(
      () => options.options().metrics.maxSeries,
      () => passed('telemetry.prometheus.series'),
    )
    this.#environment = {
      nowMs,
      wallMs,
      bodies: () => this.bodies,
      keep: () => ({ maxBytes: this.#capture.maxBodyBytes, hide }),
      toolsetOf,
      over: (recording) => this.#over(recording),
      changed: (recording) => this.feed.changed(recording),
    }
  }

  get openCalls(): number {
    return this.#open.size
  }
  get keptCalls(): number {
    return this.#ring.size
  }
  get keptBytes(): number {
    return this.#ring.bytes
  }
  /** The id of the newest call. */
  get latest(): number {
    return this.#latest
  }
  /** What is kept now of calls that end. */
  get bodies(): CapturedBodies {
    return this.#wholeKeepers > 0 ? 'all' : this.#capture.bodies
  }
  get maxReaders(): number {
    return this.#capture.maxReaders
  }

  /** A request came that may become a call. */
  begin(begun: Begun): Recording {
    const recording = new Recording(begun, this.#environment)
    this.#open.set(recording.id, recording)
    this.#latest = recording.id
    this.feed.changed(recording)
    return recording
  }

  /** Stands outside of all layers that decide something. */
  readonly layer: Layer = (inner) => (call) => this.#watch(inner, call)

  async #watch(inner: Handler, call: Call): Promise<Outcome> {
    const { record } = call
    const recording =
      record instanceof Recording ? record : this.begin(ownCall(call, this.#options.nextRef, this.bodies !== 'off'))
    const isOwn = recording !== record
    try {
      const outcome = await inner(recording.started(call))
      if (outcome.result instanceof StreamedResult) recording.streams(outcome.result)
      else recording.settled(endOfOutcome(call.method, call.signal.aborted, outcome))
      if (isOwn && !(outcome.result instanceof StreamedResult))
        recording.answered(resultMessage(String(recording.id), outcome.result.parts()))
      return outcome
    } catch (error) {
      recording.settled(endOfError(error, call.signal.aborted, recording.denied))
      if (isOwn) recording.answered(undefined)
      throw error
    }
  }

  /** Newest first, open ones among them; `before`: an id. */
  page(viewer: Viewer, filter: Filter, limit: number, before = Infinity): CallPage {
    const { nowMs, wallMs } = this.#environment
    this.#ring.expire(nowMs())
    const found: CallRow[] = []
    let next: number | null = null
    const all = [...this.#ring.values(), ...this.#open.values()].sort((a, b) => b.id - a.id)
    for (const recording of all) {
      if (recording.id >= before || !maySee(viewer, recording.begun.principal)) continue
      const row = recording.row()
      if (!filter(row, wallMs())) continue
      if (found.length === limit) {
        next = found.at(-1)?.id ?? null
        break
      }
      found.push(row)
    }
    const [oldest] = this.#ring.values()
    const kept = { calls: this.#ring.size, bytes: this.#ring.bytes, oldest: oldest ? new Date(oldest.atMs).toISOString() : null }
    return { calls: found, next, kept }
  }

  /** `undefined`: it is not kept, or belongs to another caller. */
  find(id: number, viewer: Viewer): CallDetail | undefined {
    const recording = this.#ring.find(id) ?? this.#open.get(id)
    return recording !== undefined && maySee(viewer, recording.begun.principal) ? recording.detail() : undefined
  }

  /** Captured calls since then (monotonic), oldest first. */
  since(ms: number): readonly Recording[] {
    return this.#ring.values().filter(({ keptMs }) => keptMs >= ms)
  }

  /** Both sides of every call are kept until the returned function is called. */
  keepWhole(): () => void {
    this.#wholeKeepers++
    return () => this.#wholeKeepers--
  }

  /** A reader of the feed was one too many. */
  refusedReader(): void {
    this.#options.passed('ui.capture.readers')
  }

  get #capture(): CaptureOptions {
    return this.#options.options().capture
  }

  #over(recording: Recording): void {
    this.#open.delete(recording.id)
    recording.keptMs = this.#environment.nowMs()
    const { admin, metrics } = this.#options.options()
    if (metrics.isOn) this.#count(recording)
    if (!admin.hasUi && this.feed.readers === 0) return
    this.#ring.add(recording)
    this.feed.changed(recording)
  }

  /** A name that no list shows may be made up by its caller: it is no label. */
  #count({ id, begun, end, server, name, isListed, totalMs, traceId }: Recording): void {
    this.metrics.count({
      ref: id,
      traceId,
      method: begun.method,
      server,
      tool: isListed === true && NAMED_METHODS.has(begun.method) ? name : undefined,
      outcome: end?.outcome ?? 'ok',
      era: begun.sessionId === undefined ? 'modern' : 'legacy',
      seconds: totalMs / 1_000,
      at: this.#environment.wallMs() / 1_000,
    })
  }
}

/** A call that no host made: of the command line, of a program around us. Its message is as a host would have sent it. */
const ownCall = ({ ref, method, caller, params }: Call, nextRef: () => number, keepsBodies: boolean): Begun => {
  const own = ref === 0 ? nextRef() : ref
  return {
    ref: own,
    method,
    principal: caller.principal,
    scope: caller.scope,
    revision: caller.revision,
    session: caller.session,
    clientInfo: undefined,
    transport: undefined,
    message: keepsBodies ? join(requestMessage(own, method, params.parts())) : undefined,
  }
}
