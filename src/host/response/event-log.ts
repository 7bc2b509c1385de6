/**
 * The recent events of all streams of one legacy session, for the resumption of broken streams
 * ([2025-11-25 basic/transports, Resumability and Redelivery]; BRIDGING 5.1). An event id contains its stream, so only events of that
 * stream are replayed. At a limit, progress that later progress of the same token has replaced is dropped first.
 */
import { byteLength } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import type { HostLimits } from '../options.ts'
import type { EventBudget } from './event-budget.ts'
import type { StoredEvents, StoredStream, StreamOf } from './stored-events.ts'

/** Limits per stream (`maxEvents`, `maxEventBytes`) and per session. */
export type EventLogLimits = Pick<HostLimits, 'maxEvents' | 'maxEventBytes' | 'maxSessionEventBytes' | 'maxEventAgeMs'>

export interface LoggedEvent {
  readonly id: string
  readonly parts: Parts
}

/** A stream by its name, with the events that its host has not received. */
export interface ResumedStream {
  readonly stream: string
  /** The last event that its host has received. */
  readonly lastEventId: string
  readonly events: readonly LoggedEvent[]
  readonly isEnded: boolean
}

interface Kept extends LoggedEvent {
  readonly sequence: number
  readonly bytes: number
  readonly atMs: number
  /** A later event of the same stream and key replaces this one. */
  readonly key: string | undefined
}

interface Stream {
  readonly events: Kept[]
  bytes: number
  next: number
  /** Monotonic; `undefined`: not ended. Ended streams are kept for `maxEventAgeMs`. */
  endedAtMs: number | undefined
}

/** Sequence number of the first event after a stream was restored. */
const FIRST_RESTORED = 1_000_000_000

export class EventLog {
  readonly #limits: () => EventLogLimits
  /** Limit of all sessions together. */
  readonly #budget: EventBudget
  readonly #counts: Pick<LimitCounts, 'passed'>
  /** Created with the first stream, since there may be ten thousand idle sessions. */
  #streams: Map<string, Stream> | undefined
  /** Copy for other replicas; `undefined`: none are configured. */
  readonly #stored: StoredEvents | undefined
  #bytes = 0
  #nextStream: number
  #isClosed = false

  /** `first`: number of the first stream. A session may have had streams in an earlier process, whose event ids must name none of this log. */
  constructor(
    limits: () => EventLogLimits,
    budget: EventBudget,
    counts: Pick<LimitCounts, 'passed'>,
    stored?: StoredEvents,
    first = 1,
  ) {
    this.#limits = limits
    this.#nextStream = first
    this.#stored = stored
    this.#budget = budget
    this.#counts = counts
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Opens a stream and returns its name. `of`: its request. */
  open(of?: StreamOf): string {
    const name = (this.#nextStream++).toString(36)
    this.#stored?.opened(name, of)
    if (!this.#isClosed) this.#keep(name, { events: [], bytes: 0, next: 0, endedAtMs: undefined })
    return name
  }

  /** Adds an event and returns its id. At a limit, earlier events with the same `key` are dropped before others. */
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

  /** Returns the events after `eventId` on its stream; `undefined`: the stream is not kept. */
  after(eventId: string): ResumedStream | undefined {
    const match = /^([0-9a-z]{1,12})-(\d{1,15})$/.exec(eventId)
    const name = match?.[1] ?? ''
    const stream = this.#streams?.get(name)
    const sequence = Number(match?.[2])
    if (stream === undefined || sequence >= stream.next) return undefined
    return {
      stream: name,
      lastEventId: eventId,
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

  /** Adds the streams of a session that another replica had. Returns those without an answer, which is lost with that replica. */
  restore(streams: ReadonlyMap<string, StoredStream>): readonly { readonly name: string; readonly of: StreamOf }[] {
    const unanswered: { name: string; of: StreamOf }[] = []
    const atMs = performance.now()
    for (const [name, { of, events, isEnded }] of streams) {
      // Events that were sent but not stored have lower numbers.
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

  /** Removes a stream. */
  forget(name: string): void {
    const stream = this.#streams?.get(name)
    if (stream === undefined) return
    this.#weigh(stream, -stream.bytes)
    this.#streams?.delete(name)
  }

  /** Removes all streams, and keeps no further events. */
  close(): void {
    this.#isClosed = true
    for (const name of this.#streams?.keys() ?? []) this.forget(name)
  }

  /** Drops one event; false: there is none. An ended stream is removed with its last event, since its answer is lost. */
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
    const { maxEventAgeMs } = this.#limits()
    for (const [name, stream] of this.#streams ?? []) {
      if (stream.endedAtMs !== undefined && nowMs - stream.endedAtMs >= maxEventAgeMs) {
        this.#counts.passed('listen.limits.event_age')
        this.forget(name)
      } else
        while (stream.events[0] !== undefined && nowMs - stream.events[0].atMs >= maxEventAgeMs) {
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
    const { maxEvents, maxEventBytes, maxSessionEventBytes } = this.#limits()
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

/** Returns the index of the oldest event that a later event of the same key has replaced. */
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
