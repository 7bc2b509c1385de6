/** A stream of server-sent events to one host, as the body of an answer. */
import { byteLength, toParts } from '../../../../wire/message/payload.ts'
import type { Parts } from '../../../../wire/message/payload.ts'
import { COMMENT, encodeEvent } from '../../../../wire/framing/sse.ts'
import { BIG_BYTES } from '../../../body-pool.ts'
import type { BodyPool } from '../../../body-pool.ts'
import type { HeldBytes } from '../../../held-bytes.ts'
import type { AnswerBody, OnTaken, ListenerState } from './http-request.ts'
import { QueuedEvents } from './queued-events.ts'

/** Bytes that may wait for a host before a server that sends to this host alone is paused (backpressure). */
const STALLED_BYTES = 256 * 1024
/** Time in which a host may take a burst of events that are not answers. */
const BURST_MS = 1_000
/** Answers count against `max_queued` when the host has taken nothing for this part of `write_stall`. */
const SILENT_PART = 0.25

/** Options of `listen.limits`. */
export interface StreamLimits {
  readonly keepAliveMs: number
  readonly stallMs: number
  readonly maxQueuedBytes: number
}

/** Events to one host. The stream of a host that does not read is closed; other hosts are not affected (F-21). */
export class EventStream {
  readonly #response: AnswerBody
  readonly #bodies: BodyPool
  readonly #held: HeldBytes
  readonly #batch: ListenerState['batch']
  readonly #events: ListenerState['events']
  /** Small events of this turn of the event loop: they are written together at its end. */
  #gathered: Uint8Array[] = []
  #gatheredBytes = 0
  /** Those of them that are not answers. */
  #gatheredOthers = 0
  /** They will be written, and the head of the answer with them or alone. */
  #isScheduled = false
  readonly #writeGathered = (): void => {
    this.#isScheduled = false
    if (this.#gatheredBytes > 0) this.#flush()
    else if (this.isOpen) this.#response.flushHeaders()
  }
  /** What waits for the host; the socket says whether it takes none of it for too long. `undefined`: nothing waits. */
  #queue: QueuedEvents | undefined
  #isTimed = false
  #hasStalled = false
  /** Bytes of the connection that the system had taken at the last sweep, and when that changed last. */
  #taken = 0
  #takenMs = 0
  #markedMs = 0
  #lastWriteMs = performance.now()
  #isBrokenOff = false

  constructor(response: AnswerBody, { bodies, batch, events }: Pick<ListenerState, 'batch' | 'bodies' | 'events'>) {
    this.#response = response
    this.#batch = batch
    this.#events = events
    this.#bodies = bodies
    this.#held = bodies.held
    response.on('drain', () => this.#drained())
    response.on('timeout', () => (this.#hasStalled = this.#queue !== undefined))
    response.on('close', () => this.#drained())
    response.on('error', () => undefined)
    this.#schedule()
  }

  /** Backpressure: many bytes are queued for the host. */
  get isStalled(): boolean {
    return this.#response.writableLength > STALLED_BYTES && !this.#response.destroyed
  }

  get isOpen(): boolean {
    return !this.#isBrokenOff && !this.#response.writableEnded && !this.#response.destroyed
  }

  /** Also where the host disconnected before the stream was opened. */
  onClose(callback: () => void): void {
    if (this.#response.closed) process.nextTick(callback)
    else this.#response.on('close', callback)
  }

  /** A message that is bounded elsewhere: the answer to a call in flight, or an event of the event log. Otherwise as `message`. */
  answer(parts: Parts, id?: string): void {
    this.#send(parts, id, true)
  }

  /**
   * One JSON-RPC message. Clients that check the event name know `message` only (B281). `id`: the event id for resumption; the event log
   * then keeps `parts`, so their memory is not reused.
   */
  message(parts: Parts, id?: string): void {
    this.#send(parts, id, false)
  }

  #send(parts: Parts, id: string | undefined, isAnswer: boolean): void {
    const event = encodeEvent({ event: 'message', data: parts, ...(id !== undefined && { id }) })
    const bytes = byteLength(event)
    const others = isAnswer ? 0 : bytes
    if (bytes < BIG_BYTES) return this.#gather(event, bytes, others)
    this.#flush()
    this.#write(event, bytes, others, (error) => {
      if (!error && id === undefined) this.#bodies.release(event)
    })
  }

  /** The first event of HTTP+SSE: where messages are posted to. */
  endpoint(uri: string): void {
    this.#gather(encodeEvent({ event: 'endpoint', data: toParts(uri) }))
  }

  /** An id to resume from, before anything is sent ([2025-11-25 basic/transports]). */
  prime(id: string): void {
    this.#gather(encodeEvent({ id, data: [] }))
  }

  /** The stream is complete. */
  end(): void {
    if (!this.isOpen) return
    const bytes = this.#gatheredBytes
    const others = this.#gatheredOthers
    this.#response.finish(this.#take())
    if (this.#response.writableLength === 0) return
    this.#wait(bytes, others)
    this.#events.finishing?.(this)
  }

  /** Ends the stream so that the client resumes it after `retryMs`. `retry` is sent only here: some parsers fail on it (B281). */
  endForPolling(retryMs: number): void {
    this.#gather(encodeEvent({ retry: retryMs, data: [] }))
    this.end()
  }

  /**
   * Closes the connection after the written bytes, without the final chunk: the client sees a broken stream and opens another one.
   * Some clients treat a cleanly ended stream as a quiet one (BRIDGING 3.22).
   */
  breakOff(): void {
    if (!this.isOpen) return
    this.#flush()
    this.#isBrokenOff = true
    this.#response.breakOff()
    if (this.#queue !== undefined) this.#events.finishing?.(this)
  }

  /** Sends keep-alive comments, and ends the stream if its host does not read; returns the option of the limit then. */
  sweep(limits: StreamLimits): string | undefined {
    if (this.#response.destroyed) return undefined
    const nowMs = performance.now()
    if (this.#queue !== undefined && !this.#isTimed) {
      this.#isTimed = true
      // The socket counts a part of a big event that was taken as traffic.
      this.#response.setTimeout(limits.stallMs)
    }
    if (this.#hasStalled || (this.#queue !== undefined && this.#isOver(this.#queue, limits, nowMs))) {
      this.#response.destroy()
      return this.#hasStalled ? 'listen.limits.write_stall' : 'listen.limits.max_queued'
    }
    if (this.isOpen && nowMs - this.#lastWriteMs >= limits.keepAliveMs) this.#gather([COMMENT])
    return undefined
  }

  /**
   * Whether more than `max_queued` waits behind the event being taken (F-21). A host that reads gets all its answers: they are bounded by its
   * calls and by `limits.in_flight_bytes`. Other events count after `BURST_MS`, and at once while memory is full.
   */
  #isOver(queue: QueuedEvents, { stallMs, maxQueuedBytes }: StreamLimits, nowMs: number): boolean {
    // Without a count of the system: what the stream has reported.
    const taken = this.#response.takenBytes ?? this.#taken + Math.max(0, queue.bytes - this.#response.writableLength)
    if (taken > this.#taken) {
      this.#held.release(queue.take(taken - this.#taken))
      this.#taken = taken
      this.#takenMs = nowMs
    }
    if (nowMs - this.#takenMs >= stallMs * SILENT_PART && queue.bytesBehind > maxQueuedBytes) return true
    if (this.#held.isFull && queue.othersBehind > maxQueuedBytes) return true
    if (nowMs - this.#markedMs < BURST_MS) return false
    if (queue.markedBehind > maxQueuedBytes) return true
    this.#markedMs = nowMs
    queue.mark()
    return false
  }

  #drained(): void {
    if (this.#isTimed) this.#response.setTimeout(0)
    this.#isTimed = this.#hasStalled = false
    this.#held.release(this.#queue?.bytes ?? 0)
    this.#queue = undefined
  }

  #gather(event: Parts, bytes = byteLength(event), others = 0): void {
    if (!this.isOpen) return
    if (this.#gatheredBytes + bytes > BIG_BYTES) this.#flush()
    this.#schedule()
    this.#gathered.push(...event)
    this.#gatheredBytes += bytes
    this.#gatheredOthers += others
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#batch.add(this.#writeGathered)
  }

  #flush(): void {
    const bytes = this.#gatheredBytes
    const others = this.#gatheredOthers
    if (bytes > 0) this.#write(this.#take(), bytes, others)
  }

  #take(): Parts {
    const parts = this.#gathered
    this.#gathered = []
    this.#gatheredBytes = this.#gatheredOthers = 0
    return parts
  }

  #write(parts: Parts, bytes: number, others: number, onTaken?: OnTaken): void {
    if (!this.isOpen) return
    this.#lastWriteMs = performance.now()
    const isTaken = this.#response.send(parts, onTaken)
    // A small write is accepted while earlier ones wait, and is behind them.
    if (!isTaken || this.#queue !== undefined) this.#wait(bytes, others)
  }

  #wait(bytes: number, others: number): void {
    this.#held.add(bytes)
    if (this.#queue !== undefined) return this.#queue.add(bytes, others)
    this.#queue = new QueuedEvents()
    this.#queue.add(bytes, others)
    this.#queue.mark()
    this.#taken = this.#response.takenBytes ?? 0
    this.#takenMs = this.#markedMs = performance.now()
  }
}
