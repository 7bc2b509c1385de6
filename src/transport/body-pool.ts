/**
 * A pool of memory for big replies of servers and big requests of hosts, for all transports. A buffer is used again after the host has its
 * answer.
 *
 * Allocated and dropped megabytes cause collections of the whole heap; with 1 MB results those collections were half of the cost of
 * a call. Bodies of big replies are therefore kept in pooled memory.
 *
 *   lease ─▶ filled, read ─▶ relayed? ─ yes ─▶ written to the host ─▶ release ─▶ free
 *                                 └ no: the collector's, like any other memory
 *
 * This is safe because only a body that is one response to one host is marked as relayed. Memory that is not released is left to
 * the garbage collector. The body of a request is used again if it went to a server, the system has taken all bytes of every time it was
 * sent, and the call has ended well.
 *
 * Gain: nearly half of the CPU of a call of 1 MB × 32 (decision 0012).
 */
import type { ExpectedSize, Memory } from '../wire/framing/gathered.ts'
import { HeldBytes } from './held-bytes.ts'

/** Smaller bodies are cheap to allocate, and not worth counting. */
export const BIG_BYTES = 64 * 1024
/** What the system gives at once, and what stays in the cache of a processor. */
const READ_BYTES = 64 * 1024
/** Larger bodies are rare, and would use too much of the pool. */
const MAX_BYTES = 16 * 1024 * 1024
/** 32 results of 1 MB to a host on a pipe are released together, each with the memory it grew from. */
const MAX_FREE_BYTES = 128 * 1024 * 1024
/** Unused memory is freed after this time, ms. */
const IDLE_MS = 10_000

export class BodyPool implements Memory {
  /** Memory that reads of all connections go through: what is read is handled at once. */
  readonly reads = Buffer.allocUnsafeSlow(READ_BYTES)
  /** Bytes of bodies that are held, in this pool or elsewhere. */
  readonly held = new HeldBytes()
  /** Events of servers: each reply has a stream of its own, whose memory would grow from the smallest size each time. */
  readonly events: ExpectedSize = { bytes: 0, maxTimes: 4 }
  /** By size, a power of two. */
  readonly #free = new Map<number, ArrayBufferLike[]>()
  /** Buffers of this pool; only these are used again. */
  readonly #own = new WeakSet<ArrayBufferLike>()
  readonly #relayed = new WeakSet<ArrayBufferLike>()
  /** Bodies of requests: how many writes of each are under way. -1: it was not sent. */
  readonly #requests = new WeakMap<ArrayBufferLike, number>()
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

  /** Memory for the body of a host's request. */
  leaseRequest(length: number): Buffer {
    const body = this.lease(length)
    if (this.#own.has(body.buffer)) this.#requests.set(body.buffer, -1)
    return body
  }

  /** A message with these parts is being written to a server; `undefined`: no body of a request is among them. Call back when all is taken. */
  sending(parts: readonly Uint8Array[]): ((error?: Error | null) => void) | undefined {
    const body = parts.find(({ buffer }) => this.#requests.has(buffer))?.buffer
    if (body === undefined) return undefined
    this.#requests.set(body, Math.max(0, this.#requests.get(body) ?? 0) + 1)
    return (error) => {
      const open = this.#requests.get(body)
      // What failed is never used again, since it counts as being written.
      if (!error && open !== undefined) this.#requests.set(body, open - 1)
    }
  }

  /** The host has its answer, and the request is no longer needed. */
  releaseRequest({ buffer }: Buffer): void {
    const open = this.#requests.get(buffer)
    if (this.#requests.delete(buffer) && open === 0) this.#keep(buffer)
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
    this.#requests.delete(buffer)
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
