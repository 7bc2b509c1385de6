/** A stream of server-sent events to one host, as the body of an answer. */
import { join } from '../wire/payload.ts'
import type { Parts } from '../wire/payload.ts'
import { COMMENT, encodeEvent } from '../wire/sse.ts'
import type { HeldBytes } from './held-bytes.ts'
import type { AnswerBody } from './http-request.ts'

/** What may wait for a host before whoever speaks to it alone is no longer read. */
const STALLED_BYTES = 256 * 1024

/** Events to one host. A host that does not read loses its stream, never its neighbours (F-21). */
export class EventStream {
  readonly #response: AnswerBody
  readonly #held: HeldBytes
  #stalledSinceMs: number | undefined
  /** What waits since it stalled. */
  #waiting = 0
  #lastWriteMs = performance.now()

  constructor(response: AnswerBody, held: HeldBytes) {
    this.#response = response
    this.#held = held
    response.on('drain', () => this.#drained())
    response.on('close', () => this.#drained())
    response.on('error', () => undefined)
  }

  /** The host takes less than it is given: much waits for it. */
  get isStalled(): boolean {
    return this.#response.writableLength > STALLED_BYTES && !this.#response.destroyed
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed
  }

  onClose(callback: () => void): void {
    this.#response.on('close', callback)
  }

  send(data: Parts, options: { id?: string; event?: string; retryMs?: number } = {}): void {
    const { id, event, retryMs } = options
    const fields = {
      ...(id !== undefined && { id }),
      ...(event !== undefined && { event }),
      ...(retryMs !== undefined && { retry: retryMs }),
    }
    this.#write(join(encodeEvent({ data, ...fields })))
  }

  end(): void {
    if (this.isOpen) this.#response.end()
  }

  /** Keeps the stream alive while it is quiet, and ends it when its host has stopped reading: then the option that says so. */
  sweep(limits: { keepAliveMs: number; stallMs: number; maxQueuedBytes: number }): string | undefined {
    if (this.#response.destroyed) return undefined
    const nowMs = performance.now()
    const isStalled = this.#stalledSinceMs !== undefined && nowMs - this.#stalledSinceMs >= limits.stallMs
    if (isStalled || this.#response.writableLength > this.#largest + limits.maxQueuedBytes) {
      this.#response.destroy()
      return isStalled ? 'listen.limits.write_stall' : 'listen.limits.max_queued'
    }
    if (this.isOpen && nowMs - this.#lastWriteMs >= limits.keepAliveMs) this.#write(COMMENT)
    return undefined
  }

  #drained(): void {
    this.#stalledSinceMs = undefined
    this.#held.release(this.#waiting)
    this.#waiting = 0
  }

  /** Bytes of the largest message still queued: a big answer alone is no reason to cut its host off. */
  #largest = 0

  #write(bytes: Uint8Array): void {
    if (!this.isOpen) return
    this.#lastWriteMs = performance.now()
    if (this.#response.write(bytes)) {
      this.#largest = 0
      return
    }
    this.#largest = Math.max(this.#largest, bytes.length)
    this.#waiting += bytes.length
    this.#held.add(bytes.length)
    this.#stalledSinceMs ??= this.#lastWriteMs
  }
}
