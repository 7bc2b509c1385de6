/** A stream of server-sent events to one host, as the body of an answer. */
import { byteLength, toParts } from '../../../../wire/message/payload.ts'
import type { Parts } from '../../../../wire/message/payload.ts'
import { COMMENT, encodeEvent } from '../../../../wire/framing/sse.ts'
import { BIG_BYTES } from '../../../body-pool.ts'
import type { BodyPool } from '../../../body-pool.ts'
import type { HeldBytes } from '../../../held-bytes.ts'
import type { AnswerBody, OnTaken, ListenerState } from './http-request.ts'

/** Bytes that may wait for a host before a server that sends to this host alone is paused (backpressure). */
const STALLED_BYTES = 256 * 1024

/** Events to one host. The stream of a host that does not read is closed; other hosts are not affected (F-21). */
export class EventStream {
  readonly #response: AnswerBody
  readonly #bodies: BodyPool
  readonly #held: HeldBytes
  readonly #batch: ListenerState['batch']
  /** Small events of this turn of the event loop: they are written together at its end. */
  #gathered: Uint8Array[] = []
  #gatheredBytes = 0
  /** They will be written, and the head of the answer with them or alone. */
  #isScheduled = false
  readonly #writeGathered = (): void => {
    this.#isScheduled = false
    if (this.#gatheredBytes > 0) this.#flush()
    else if (this.isOpen) this.#response.flushHeaders()
  }
  /** Bytes wait for the host: the socket says whether it takes none of them for too long. */
  #isFull = false
  #isTimed = false
  #hasStalled = false
  /** Bytes queued when it stalled. */
  #waiting = 0
  /** Bytes of the largest queued message: one big answer alone does not exceed the limit. */
  #largest = 0
  #lastWriteMs = performance.now()
  #isBrokenOff = false

  constructor(response: AnswerBody, { bodies, batch }: Pick<ListenerState, 'batch' | 'bodies'>) {
    this.#response = response
    this.#batch = batch
    this.#bodies = bodies
    this.#held = bodies.held
    response.on('drain', () => this.#drained())
    response.on('timeout', () => (this.#hasStalled = this.#isFull))
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

  /**
   * One JSON-RPC message. Clients that check the event name know `message` only (B281). `id`: the event id for resumption; the event log
   * then keeps `parts`, so their memory is not reused.
   */
  message(parts: Parts, id?: string): void {
    const event = encodeEvent({ event: 'message', data: parts, ...(id !== undefined && { id }) })
    const bytes = byteLength(event)
    if (bytes < BIG_BYTES) return this.#gather(event, bytes)
    this.#flush()
    this.#largest = Math.max(this.#largest, bytes)
    this.#write(event, bytes, (error) => {
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
    this.#response.finish(this.#take())
    if (this.#response.writableLength > 0) this.#wait(bytes)
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
  }

  /** Sends keep-alive comments, and ends the stream if its host does not read; returns the option of the limit then. */
  sweep(limits: { keepAliveMs: number; stallMs: number; maxQueuedBytes: number }): string | undefined {
    if (this.#response.destroyed) return undefined
    const nowMs = performance.now()
    if (this.#isFull && !this.#isTimed) {
      this.#isTimed = true
      // The socket counts a part of a big event that was taken as traffic.
      this.#response.setTimeout(limits.stallMs)
    }
    if (this.#hasStalled || this.#response.writableLength > this.#largest + limits.maxQueuedBytes) {
      this.#response.destroy()
      return this.#hasStalled ? 'listen.limits.write_stall' : 'listen.limits.max_queued'
    }
    if (this.isOpen && nowMs - this.#lastWriteMs >= limits.keepAliveMs) this.#gather([COMMENT])
    return undefined
  }

  #drained(): void {
    if (this.#isTimed) this.#response.setTimeout(0)
    this.#isFull = this.#isTimed = this.#hasStalled = false
    this.#held.release(this.#waiting)
    this.#waiting = 0
  }

  #gather(event: Parts, bytes = byteLength(event)): void {
    if (!this.isOpen) return
    if (this.#gatheredBytes + bytes > BIG_BYTES) this.#flush()
    this.#schedule()
    this.#gathered.push(...event)
    this.#gatheredBytes += bytes
    this.#largest = Math.max(this.#largest, bytes)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#batch.add(this.#writeGathered)
  }

  #flush(): void {
    const bytes = this.#gatheredBytes
    if (bytes > 0) this.#write(this.#take(), bytes)
  }

  #take(): Parts {
    const parts = this.#gathered
    this.#gathered = []
    this.#gatheredBytes = 0
    return parts
  }

  #write(parts: Parts, bytes: number, onTaken?: OnTaken): void {
    if (!this.isOpen) return
    this.#lastWriteMs = performance.now()
    if (this.#response.send(parts, onTaken)) this.#largest = 0
    else this.#wait(bytes)
  }

  #wait(bytes: number): void {
    this.#waiting += bytes
    this.#held.add(bytes)
    this.#isFull = true
  }
}
