/**
 * What is seen of the calls of a gateway: begun where they come in, followed through the layers and over the connections to servers,
 * counted, and kept for a while. Off, it is in no call's way: no layer, no record.
 */
import type { Call, Handler, Layer, Outcome, Question, Scope } from '../rpc/call.ts'
import { IdTable } from '../wire/message/id-table.ts'
import { requestMessage, resultMessage } from '../wire/message/message.ts'
import { join } from '../wire/message/payload.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'
import type { Hide } from './capture/body.ts'
import type { CallFacts } from './capture/call-facts.ts'
import { CallRing } from './capture/call-ring.ts'
import { detailOf, rowOf } from './capture/call-view.ts'
import type { CallViewOptions } from './capture/call-view.ts'
import type { CallDetail, CallRow } from './capture/captured.ts'
import { CallMetrics } from './metrics/call-metrics.ts'
import { CallFeed } from './call-feed.ts'
import type { Filter } from './filter.ts'
import { MessageMemory } from './capture/message-memory.ts'
import type { CapturedBodies, CaptureOptions, ObserveOptions } from './options.ts'
import { Recording } from './capture/recording.ts'
import type { Begun, RecordingEnvironment } from './capture/recording.ts'
import { SecretSearch } from './capture/secret-search.ts'
import { maySee } from './viewer.ts'
import type { Viewer } from './viewer.ts'

export interface ObserverOptions {
  readonly options: () => ObserveOptions
  /** A text without secrets. */
  readonly hide: Hide
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

export class Observer implements Disposable {
  readonly metrics: CallMetrics
  readonly feed = new CallFeed()
  readonly #options: ObserverOptions
  readonly #environment: RecordingEnvironment
  readonly #view: CallViewOptions
  readonly #ring: CallRing
  readonly #memory = new MessageMemory()
  readonly #secrets: SecretSearch
  readonly #open = new IdTable<Recording>()
  readonly #nowMs: () => number
  readonly #wallMs: () => number
  #latest = 0
  #wholeKeepers = 0

  constructor(options: ObserverOptions) {
    const { nowMs = () => performance.now(), wallMs = Date.now, passed, hide, toolsetOf } = options
    this.#options = options
    this.#nowMs = nowMs
    this.#wallMs = wallMs
    this.#ring = new CallRing(
      () => this.#capture,
      (reason) => passed(reason === 'bytes' ? 'ui.capture.ring' : 'ui.capture.ttl'),
    )
    this.#secrets = new SecretSearch(this.#ring, hide)
    this.metrics = new CallMetrics(
      () => options.options().metrics.maxSeries,
      () => passed('telemetry.prometheus.series'),
    )
    this.#view = { nowMs, toolsetOf, hide }
    this.#environment = {
      nowMs,
      wallMs,
      bodies: () => this.bodies,
      maxBodyBytes: () => this.#capture.maxBodyBytes,
      memory: this.#memory,
      over: (recording) => this.#over(recording),
      written: (recording) => this.#written(recording),
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

  /** A request came that may become a call. Its owner reports how it ended (`returned` or `rejected`, then `answered`). */
  begin(begun: Begun): Recording {
    const recording = new Recording(begun, this.#environment)
    this.#open.set(recording.id, recording)
    this.#latest = recording.id
    this.feed.changed(recording)
    return recording
  }

  /** Stands outside of all layers that decide something. */
  readonly layer: Layer = (inner) => (call) => {
    const { record } = call
    if (!(record instanceof Recording)) return this.#watch(inner, call)
    record.started(call)
    return inner(call)
  }

  /** A call that nothing has begun to record: of the command line, of a program around us. */
  async #watch(inner: Handler, call: Call): Promise<Outcome> {
    const recording = this.begin(ownCall(call, this.#options.nextRef, this.bodies !== 'off'))
    recording.started(call)
    const { ask } = call
    const timed = ask && ((question: Question) => recording.timed(question, () => ask(question)))
    try {
      const outcome = await inner({ ...call, record: recording, ask: timed })
      recording.returned(call, outcome)
      if (!(outcome.result instanceof StreamedResult))
        recording.answered(resultMessage(String(recording.id), outcome.result.parts()))
      return outcome
    } catch (error) {
      recording.rejected(error, call.signal.aborted)
      recording.answered(undefined)
      throw error
    }
  }

  /** Newest first, open ones among them; `before`: an id. */
  page(viewer: Viewer, filter: Filter, limit: number, before = Infinity): CallPage {
    this.#ring.expire(this.#nowMs())
    const found: CallRow[] = []
    let next: number | null = null
    for (const call of this.#newest(viewer, before)) {
      const row = this.row(call)
      if (!filter(row, this.#wallMs())) continue
      if (found.length === limit) {
        next = found.at(-1)?.id ?? null
        break
      }
      found.push(row)
    }
    const { size, bytes, first } = this.#ring
    const oldest = size === 0 ? null : new Date(this.#ring.atMs(first)).toISOString()
    return { calls: found, next, kept: { calls: size, bytes, oldest } }
  }

  row(call: CallFacts): CallRow {
    return rowOf(call, this.#view)
  }

  /** `undefined`: it is not kept, or belongs to another caller. */
  find(id: number, viewer: Viewer): CallDetail | undefined {
    this.#ring.expire(this.#nowMs())
    const call = this.#ring.find(id) ?? this.#open.get(id)
    return call !== undefined && maySee(viewer, call.principal) ? detailOf(call, this.#view) : undefined
  }

  /** Captured calls since then (monotonic), oldest first. */
  since(ms: number): readonly CallFacts[] {
    const ring = this.#ring
    return [...ring.places()].filter((place) => ring.keptMs(place) >= ms).map((place) => ring.at(place))
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

  [Symbol.dispose](): void {
    this.feed[Symbol.dispose]()
    this.#secrets[Symbol.dispose]()
  }

  get #capture(): CaptureOptions {
    return this.#options.options().capture
  }

  /** By id, the newest first. */
  *#newest(viewer: Viewer, before: number): Generator<CallFacts> {
    const ring = this.#ring
    const kept = [...ring.places()].map((place) => ({ id: ring.idAt(place), place, open: undefined }))
    const open = this.#open.values().map((recording) => ({ id: recording.id, place: undefined, open: recording }))
    const all = [...kept, ...open].filter(({ id }) => id < before).sort((a, b) => b.id - a.id)
    for (const found of all) {
      const principal = found.open?.principal ?? ring.principalAt(found.place ?? ring.first)
      if (maySee(viewer, principal)) yield found.open ?? ring.at(found.place ?? ring.first)
    }
  }

  #over(recording: Recording): void {
    this.#open.delete(recording.id)
    const { admin, metrics } = this.#options.options()
    if (metrics.isOn) this.#count(recording)
    if (!admin.hasUi && this.feed.readers === 0) return
    recording.place = this.#ring.add(recording, recording.answeredMs)
    if (recording.request !== undefined || recording.lanes[0]?.response !== undefined) this.#secrets.wake()
    this.feed.changed(recording)
  }

  #written(recording: Recording): void {
    if (recording.place !== undefined) this.#ring.written(recording.place, recording.writtenMs)
    this.feed.changed(recording)
  }

  /** A name that no list shows may be made up by its caller: it is no label. */
  #count({ id, method, sessionId, end, server, name, isListed, receivedMs, answeredMs, traceId }: Recording): void {
    this.metrics.count({
      ref: id,
      traceId,
      method,
      server,
      tool: isListed === true && NAMED_METHODS.has(method) ? name : undefined,
      outcome: end?.outcome ?? 'ok',
      era: sessionId === undefined ? 'modern' : 'legacy',
      seconds: (answeredMs - receivedMs) / 1_000,
      at: this.#wallMs() / 1_000,
    })
  }
}

/** A call that no host made. Its message is as a host would have sent it. */
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
