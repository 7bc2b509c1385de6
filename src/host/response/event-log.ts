/**
 * Keeps the events of the streams of one legacy session for a while, so that a broken stream can be resumed
 * ([2025-11-25 basic/transports, Resumability and Redelivery]; BRIDGING 5.1). An event id names its stream, so events of another
 * stream are not replayed. At a limit, progress with later progress of the same token is dropped first.
 */
import { byteLength } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import type { HostLimits } from '../options.ts'
import type { EventBudget } from './event-budget.ts'
import type { StoredEvents, StoredStream, StreamOf } from './stored-events.ts'

/** Of one stream, of all streams of a session, and how long either is kept. */
export type EventLogLimits = Pick<HostLimits, 'maxEvents' | 'maxEventBytes' | 'maxSessionEventBytes' | 'maxEventAgeMs'>

export interface LoggedEvent {
  readonly id: string
  readonly parts: Parts
}

interface Kept extends LoggedEvent {
  readonly sequence: number
  readonly bytes: number
  readonly atMs: number
  /** Replaced by a later event of the same stream and key. */
  readonly key: string | undefined
}

interface Stream {
  readonly events: Kept[]
  bytes: number
  next: number
  /** Ended streams are kept for resumption until they are too old. */
  endedAtMs: number | undefined
}

/** Of the first event of a stream after it was restored. */
const FIRST_RESTORED = 1_000_000_000

export class EventLog {
  readonly #limits: EventLogLimits
  /** Of all sessions together. */
  readonly #budget: EventBudget
  readonly #counts: Pick<LimitCounts, 'passed'>
  /** Made by the first: an idle session has none, and there may be ten thousand. */
  #streams: Map<string, Stream> | undefined
  /** Where other replicas find it; `undefined`: there are none. */
  readonly #stored: StoredEvents | undefined
  #bytes = 0
  #nextStream = 1
  #isClosed = false

  constructor(limits: EventLogLimits, budget: EventBudget, counts: Pick<LimitCounts, 'passed'>, stored?: StoredEvents) {
    this.#limits = limits
    this.#stored = stored
    this.#budget = budget
    this.#counts = counts
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A new stream's name; `of`: its request. */
  open(of?: StreamOf): string {
    const name = (this.#nextStream++).toString(36)
    this.#stored?.opened(name, of)
    if (!this.#isClosed) this.#keep(name, { events: [], bytes: 0, next: 0, endedAtMs: undefined })
    return name
  }

  /** Keeps one event and returns its id. `key`: where there is no room, earlier events of it are dropped before others. */
  append(name: string, parts: Parts, key?: string): string {
    const stream = this.#streams?.get(name)
    if (stream === undefined) return `${name}-0`
    const sequence = stream.next++
    const id = `${name}-${sequence}`
    const bytes = byteLength(parts)
    this.#stored?.appended(name, sequence, parts, bytes, key)
    stream.events.push({ id, parts, sequence, bytes, atMs: performance.now(), key })
    this.#weigh(stream, bytes)
    this.#trim(stream)
    this.#budget.makeRoom()
    return id
  }

  /**
   * What followed `eventId` on its own stream. `undefined`: no such stream is kept. A `standing` stream whose event is gone
   * goes on from the oldest kept one.
   */
  after(
    eventId: string,
  ): { readonly stream: string; readonly events: readonly LoggedEvent[]; readonly isEnded: boolean } | undefined {
    const match = /^([0-9a-z]{1,12})-(\d{1,15})$/.exec(eventId)
    const name = match?.[1] ?? ''
    const stream = this.#streams?.get(name)
    const sequence = Number(match?.[2])
    if (stream === undefined || sequence >= stream.next) return undefined
    return {
      stream: name,
      events: stream.events.filter((event) => event.sequence > sequence),
      isEnded: stream.endedAtMs !== undefined,
    }
  }

  end(name: string): void {
    const stream = this.#streams?.get(name)
    if (stream === undefined) return
    stream.endedAtMs = performance.now()
    this.#stored?.ended(name)
  }

  /**
   * Continues with the streams of a session that another replica had. Returns those whose request had no answer there: it will get none
   * from its server any more.
   */
  restore(streams: ReadonlyMap<string, StoredStream>): readonly { readonly name: string; readonly of: StreamOf }[] {
    const unanswered: { name: string; of: StreamOf }[] = []
    const atMs = performance.now()
    for (const [name, { of, events, isEnded }] of streams) {
      // Events that were sent and not stored had numbers below this one.
      const stream: Stream = { events: [], bytes: 0, next: FIRST_RESTORED, endedAtMs: isEnded ? atMs : undefined }
      this.#keep(name, stream)
      this.#nextStream = Math.max(this.#nextStream, Number.parseInt(name, 36) + 1)
      for (const { sequence, text, key } of events) {
        const bytes = Buffer.byteLength(text)
        stream.events.push({ id: `${name}-${sequence}`, parts: [Buffer.from(text)], sequence, bytes, atMs, key })
        this.#weigh(stream, bytes)
      }
      this.#trim(stream)
      if (!isEnded && of !== undefined) unanswered.push({ name, of })
    }
    this.#budget.makeRoom()
    return unanswered
  }

  /** Removes a stream whose events have all arrived. */
  forget(name: string): void {
    const stream = this.#streams?.get(name)
    if (stream === undefined) return
    this.#weigh(stream, -stream.bytes)
    this.#streams?.delete(name)
  }

  /** The session is over: nothing is kept from now on. */
  close(): void {
    this.#isClosed = true
    for (const name of this.#streams?.keys() ?? []) this.forget(name)
  }

  /** Makes room for other sessions; false: nothing is left. A stream that has ended and lost its answer is not kept (400). */
  dropOldest(): boolean {
    for (const [name, stream] of this.#streams ?? []) {
      if (stream.events.length === 0) continue
      this.#drop(stream, overtaken(stream.events) ?? 0)
      if (stream.events.length === 0 && stream.endedAtMs !== undefined) this.#streams?.delete(name)
      return true
    }
    return false
  }

  sweep(nowMs: number): void {
    for (const [name, stream] of this.#streams ?? []) {
      if (stream.endedAtMs !== undefined && nowMs - stream.endedAtMs >= this.#limits.maxEventAgeMs) {
        this.#counts.passed('listen.limits.event_age')
        this.forget(name)
      } else
        while (stream.events[0] !== undefined && nowMs - stream.events[0].atMs >= this.#limits.maxEventAgeMs) {
          this.#counts.passed('listen.limits.event_age')
          this.#drop(stream, 0)
        }
    }
  }

  #keep(name: string, stream: Stream): void {
    this.#streams ??= new Map()
    this.#streams.set(name, stream)
  }

  #trim(stream: Stream): void {
    const { maxEvents, maxEventBytes, maxSessionEventBytes } = this.#limits
    const over = (): string | undefined => {
      if (stream.events.length > maxEvents) return 'listen.limits.events'
      if (stream.bytes > maxEventBytes) return 'listen.limits.event_bytes'
      return this.#bytes > maxSessionEventBytes ? 'listen.limits.session_event_bytes' : undefined
    }
    for (let limit = over(); limit !== undefined && stream.events.length > 1; limit = over()) {
      this.#counts.passed(limit)
      this.#drop(stream, overtaken(stream.events) ?? 0)
    }
  }

  #drop(stream: Stream, index: number): void {
    const [event] = stream.events.splice(index, 1)
    if (event !== undefined) this.#weigh(stream, -event.bytes)
  }

  #weigh(stream: Stream, bytes: number): void {
    stream.bytes += bytes
    this.#bytes += bytes
    this.#budget.weigh(this, bytes)
  }
}

/** Index of the oldest event with a later one of its key. */
const overtaken = (events: readonly Kept[]): number | undefined => {
  const later = new Set<string>()
  let found: number | undefined
  for (let at = events.length - 1; at >= 0; at--) {
    const key = events[at]?.key
    if (key === undefined) continue
    if (later.has(key)) found = at
    later.add(key)
  }
  return found
}
