/**
 * What modern hosts say of themselves, request after request, is the same text again: it is read once, as long as it stays the
 * same. Whoever says the same is given the same objects, so that others can remember by them what follows.
 */
import type { Payload } from '../wire/payload.ts'

/** More different texts than this, and the memory begins anew. */
const MAX_KNOWN = 256
/** Texts longer than this are read each time, in bytes. */
const MAX_BYTES = 2_048

export class Introductions<T> {
  readonly #known = new Map<string, T>()

  /** `read(meta)`, or what it gave for the same text before. What it throws is not remembered. */
  of(meta: Payload, read: (meta: Payload) => T): T {
    // A progress token makes each text a new one.
    if (meta.end - meta.start > MAX_BYTES || meta.has('progressToken')) return read(meta)
    const text = meta.bytes.toString('latin1', meta.start, meta.end)
    let known = this.#known.get(text)
    if (known !== undefined) return known
    known = read(meta)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(text, known)
    return known
  }
}
