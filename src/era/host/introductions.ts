/**
 * What modern hosts say of themselves, request after request, is the same text again: it is read once, as long as it stays the
 * same. Whoever says the same is given the same objects, so that others can remember by them what follows.
 */
import type { Payload } from '../../wire/message/payload.ts'

/** More different texts than this, and the memory begins anew. */
const MAX_KNOWN = 256
/** Texts longer than this are read each time, in bytes. */
const MAX_BYTES = 2_048

export class Introductions<T> {
  readonly #known = new Map<string, T>()
  /** The one that came last: mostly the next one too. */
  #latest: Known<T> | undefined

  /** `read(meta)`, or what it gave for the same text before. What it throws is not remembered. */
  of(meta: Payload, read: (meta: Payload) => T): T {
    const { bytes, start, end } = meta
    const latest = this.#latest
    if (latest !== undefined && bytes.compare(latest.text, 0, latest.text.length, start, end) === 0) return latest.value
    // A progress token makes each text a new one.
    if (end - start > MAX_BYTES || meta.has('progressToken')) return read(meta)
    const value = this.#find(bytes.toString('latin1', start, end), meta, read)
    this.#latest = { text: Buffer.from(bytes.subarray(start, end)), value }
    return value
  }

  #find(text: string, meta: Payload, read: (meta: Payload) => T): T {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const value = read(meta)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(text, value)
    return value
  }
}

interface Known<T> {
  readonly text: Buffer
  readonly value: T
}
