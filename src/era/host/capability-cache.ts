/** Parses each text of `_meta` once: modern hosts repeat it. Equal texts yield the same object, a key of other caches. */
import type { Payload } from '../../wire/message/payload.ts'

/** The cache is cleared when it holds this many texts. */
const MAX_KNOWN = 256
/** Longer texts are parsed each time. */
const MAX_BYTES = 2_048

export class CapabilityCache<T> {
  readonly #known = new Map<string, T>()
  /** One-entry cache in front of `#known`. */
  #latest: Known<T> | undefined

  /** `read(meta)`, or its earlier result for the same text. Errors are not cached. */
  of(meta: Payload, read: (meta: Payload) => T): T {
    const { bytes, start, end } = meta
    const latest = this.#latest
    if (latest !== undefined && bytes.compare(latest.text, 0, latest.text.length, start, end) === 0) return latest.value
    // Each request has another progress token.
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
