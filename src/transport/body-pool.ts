/**
 * A pool of memory for big replies of servers, for all transports. A buffer is used again after the host has its answer.
 *
 * Allocated and dropped megabytes cause collections of the whole heap; with 1 MB results those collections were half of the cost of
 * a call. Bodies of big replies are therefore kept in pooled memory.
 *
 *   lease ─▶ filled, read ─▶ relayed? ─ yes ─▶ written to the host ─▶ release ─▶ free
 *                                 └ no: the collector's, like any other memory
 *
 * This is safe because only a body that is one response to one host is marked as relayed. Memory that is not released is left to
 * the garbage collector.
 *
 * Gain: nearly half of the CPU of a call of 1 MB × 32 (decision 0012).
 */
import type { Memory } from '../wire/framing/gathered.ts'
import { HeldBytes } from './held-bytes.ts'

/** Smaller bodies are cheap to allocate, and not worth counting. */
export const BIG_BYTES = 64 * 1024
/** Larger bodies are rare, and would use too much of the pool. */
const MAX_BYTES = 16 * 1024 * 1024
const MAX_FREE_BYTES = 64 * 1024 * 1024
/** Unused memory is freed after this time, ms. */
const IDLE_MS = 10_000

export class BodyPool implements Memory {
  /** Bytes of bodies that are held, in this pool or elsewhere. */
  readonly held = new HeldBytes()
  /** By size, a power of two. */
  readonly #free = new Map<number, ArrayBufferLike[]>()
  /** Buffers of this pool; only these are used again. */
  readonly #own = new WeakSet<ArrayBufferLike>()
  readonly #relayed = new WeakSet<ArrayBufferLike>()
  #freeBytes = 0
  #idleTimer: NodeJS.Timeout | undefined

  /** Free bytes. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Memory for a body of `length` bytes, with any content. */
  lease(length: number): Buffer {
    if (length < BIG_BYTES || length > MAX_BYTES) return Buffer.allocUnsafe(length)
    const size = 2 ** Math.ceil(Math.log2(length))
    const memory = this.#free.get(size)?.pop()
    if (memory !== undefined) this.#freeBytes -= size
    const leased = memory ?? Buffer.allocUnsafeSlow(size).buffer
    if (memory === undefined) this.#own.add(leased)
    return Buffer.from(leased, 0, length)
  }

  /** `body` is one response to one host and is not kept after it was sent. */
  relayed(body: Buffer): void {
    if (body.length >= BIG_BYTES && this.#own.has(body.buffer)) this.#relayed.add(body.buffer)
  }

  /** The system has accepted all bytes of a host's answer with these parts. */
  release(parts: readonly Uint8Array[]): void {
    for (const { buffer } of parts) if (this.#relayed.delete(buffer)) this.#keep(buffer)
  }

  giveBack({ buffer }: Buffer): void {
    if (this.#own.has(buffer)) this.#keep(buffer)
  }

  #keep(memory: ArrayBufferLike): void {
    const size = memory.byteLength
    if (this.#freeBytes + size > MAX_FREE_BYTES) return
    const free = this.#free.get(size)
    if (free === undefined) this.#free.set(size, [memory])
    else free.push(memory)
    this.#freeBytes += size
    if (this.#idleTimer === undefined) this.#idleTimer = setTimeout(() => this.#drop(), IDLE_MS).unref()
    else this.#idleTimer.refresh()
  }

  #drop(): void {
    this.#idleTimer = undefined
    this.#free.clear()
    this.#freeBytes = 0
  }
}
