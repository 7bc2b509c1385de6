/**
 * Records the calls of a gateway: from a listener through the layers and the connections to servers. Counts them and keeps recent ones. If
 * observation is off, there is no layer and no record.
 */
import { randomUUID } from 'node:crypto'
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
  /** Removes secrets from a text. */
  readonly hide: Hide
  /** Returns the toolset of a scope. */
  readonly toolsetOf: (scope: Scope) => string | undefined
  /** Counts a limit that acts in normal operation. */
  readonly passed: (option: string) => void
  /** Returns the reference number for a call without a host. */
  readonly nextRef: () => number
  readonly nowMs?: () => number
  readonly wallMs?: () => number
}

/** A page of captured calls, newest first. */
export interface CallPage {
  readonly calls: readonly CallRow[]
  /** `before` of the next page; `null`: this is the last page. */
  readonly next: number | null
  readonly kept: { readonly calls: number; readonly bytes: number; readonly oldest: string | null }
}

/** Methods whose target is a catalog name. Other targets may be any text, and are not used as labels. */
const NAMED_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get'])

export class Observer implements Disposable {
  /** Identifies this process: its call numbers have no meaning in another one. */
  readonly run = randomUUID()
  readonly metrics: CallMetrics
  readonly feed = new CallFeed()
  readonly #options: ObserverOptions
  readonly #environment: RecordingEnvironment
  readonly #view: CallViewOptions
  readonly #ring: CallRing
  readonly #memory = new MessageMemory()
  readonly #secrets: SecretSearch
  readonly #open = new IdTable<Recording>()
  #latest = 0
  #wholeKeepers = 0

  constructor(options: ObserverOptions) {
    const { nowMs = () => performance.now(), wallMs = Date.now, passed, hide, toolsetOf } = options
    this.#options = options
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
  /** The calls whose messages are kept now. */
  get bodies(): CapturedBodies {
    return this.#wholeKeepers > 0 ? 'all' : this.#capture.bodies
  }
  get maxReaders(): number {
    return this.#capture.maxReaders
  }

  /** Begins the recording of a request. The caller reports its end: `returned` or `rejected`, then `answered`. */
  begin(begun: Begun): Recording {
    const recording = new Recording(begun, this.#environment)
    this.#open.set(recording.id, recording)
    this.#latest = recording.id
    this.feed.changed(recording)
    return recording
  }

  /** Must be outside of all layers that decide about a call. Also records calls that no listener has begun to record. */
  readonly layer: Layer = (inner) => (call) => {
    const { record } = call
    if (!(record instanceof Recording)) return this.#watch(inner, call)
    record.started(call)
    return inner(call)
  }

  /** Records a call that did not come from a host: of the command line, or of a program that embeds the gateway. */
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

  /** Returns captured and open calls, newest first. `before`: an id. */
  page(viewer: Viewer, filter: Filter, limit: number, before = Infinity): CallPage {
    this.#ring.expire(this.#environment.nowMs())
    const found: CallRow[] = []
    let next: number | null = null
    for (const call of this.#newest(viewer, before)) {
      const row = this.row(call)
      if (!filter(row, this.#environment.wallMs())) continue
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

  /** Returns a call; `undefined`: not kept, or of another caller. */
  find(id: number, viewer: Viewer): CallDetail | undefined {
    this.#ring.expire(this.#environment.nowMs())
    const call = this.#ring.find(id) ?? this.#open.get(id)
    return call !== undefined && maySee(viewer, call.principal) ? detailOf(call, this.#view) : undefined
  }

  /** Returns the calls that ended since `ms` (monotonic), oldest first. */
  since(ms: number): readonly CallFacts[] {
    const ring = this.#ring
    return [...ring.places()].filter((place) => ring.keptMs(place) >= ms).map((place) => ring.at(place))
  }

  /** Keeps the messages of all calls until the returned function is called. */
  keepWhole(): () => void {
    this.#wholeKeepers++
    return () => this.#wholeKeepers--
  }

  /** Counts a reader of the feed that was refused. */
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

  /** Counts a call. A name that is not listed may be invented by the caller, and is not used as a label. */
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
      at: this.#environment.wallMs() / 1_000,
    })
  }
}

/** Returns the facts of a call without a host, with the message that a host would have sent. */
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
