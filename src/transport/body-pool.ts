/**
 * Memory for big replies of servers, of whichever transport, used again once the host has its answer.
 *
 * Every megabyte that is allocated and dropped brings the next collection of the whole heap nearer; with 1 MB results those
 * collections were half of what a call costs. So the body of a big reply lies in memory that was used before.
 *
 *   lease ─▶ filled, read ─▶ relayed? ─ yes ─▶ written to the host ─▶ release ─▶ free
 *                                 └ no: the collector's, like any other memory
 *
 * This is safe because only a body that is one response to one host is marked as relayed. Memory that is not released is left to
 * the garbage collector.
 */
import type { Memory } from '../wire/framing/gathered.ts'
import { HeldBytes } from './held-bytes.ts'

/** Smaller bodies are cheap to allocate, and not worth counting. */
export const BIG_BYTES = 64 * 1024
/** Larger ones are rare, and would keep too much. */
const MAX_BYTES = 16 * 1024 * 1024
const MAX_FREE_BYTES = 64 * 1024 * 1024
/** Unused memory is freed after this time, ms. */
const IDLE_MS = 10_000

export class BodyPool implements Memory {
  /** What of bodies is held, in this pool or elsewhere. */
  readonly held = new HeldBytes()
  /** By size, a power of two. */
  readonly #free = new Map<number, ArrayBuffer[]>()
  /** Made here: only these are ever used again. */
  readonly #own = new WeakSet<ArrayBufferLike>()
  readonly #relayed = new WeakSet<ArrayBufferLike>()
  #freeBytes = 0
  #idleTimer: NodeJS.Timeout | undefined

  /** Bytes that wait for their next use. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Memory for a body of `length` bytes, whatever was in it before. */
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

  /** The system has taken all of a host's answer, of which these were the parts. */
  release(parts: readonly Uint8Array[]): void {
    for (const { buffer } of parts) if (this.#relayed.delete(buffer)) this.#keep(buffer as ArrayBuffer)
  }

  giveBack({ buffer }: Buffer): void {
    if (this.#own.has(buffer)) this.#keep(buffer as ArrayBuffer)
  }

  #keep(memory: ArrayBuffer): void {
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
