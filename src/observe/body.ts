/**
 * A message as it is kept: whole up to a limit, else its beginning and its end, and without secrets in either case. Secrets go by value
 * (`hide`) and, as values that come while we run are not known, by the name of the member that holds them.
 */
import { byteLength, join } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'

export interface KeptBody {
  /** Bytes of the message itself. */
  readonly bytes: number
  /** The whole of it. */
  readonly text?: string
  /** In place of it. */
  readonly head?: string
  readonly tail?: string
  readonly omitted?: number
  /** It passed on while it came: what is kept is its beginning. */
  readonly streamed?: true
}

export interface KeepOptions {
  readonly maxBytes: number
  /** A text without secrets. */
  readonly hide: (text: string) => string
}

/** Members whose values are never kept, whatever they are. */
const SECRET_MEMBER =
  /("(?:[\w-]{0,40}[_-])?(?:authorization|cookie|password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|access[_-]?token|refresh[_-]?token|id[_-]?token|client[_-]?secret|bearer)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*)/gi
/** A secret across the cut is looked for with so much around it. */
const MARGIN = 4_096

export const keepBody = (parts: Parts, { maxBytes, hide }: KeepOptions, isStreamed = false): KeptBody => {
  const bytes = byteLength(parts)
  const mark = isStreamed ? { streamed: true as const } : {}
  if (bytes <= maxBytes) return { bytes, text: withoutSecrets(join(parts).toString(), hide), ...mark }
  const half = Math.floor(maxBytes / 2)
  const head = withoutSecrets(slice(parts, 0, half + MARGIN), hide).slice(0, half)
  const tail = withoutSecrets(slice(parts, bytes - half - MARGIN, bytes), hide).slice(-half)
  return { bytes, head: head.toWellFormed(), tail: tail.toWellFormed(), omitted: bytes - 2 * half, ...mark }
}

/** Memory that it takes, about. */
export const sizeOfBody = ({ text = '', head = '', tail = '' }: KeptBody): number => 64 + text.length + head.length + tail.length

const withoutSecrets = (text: string, hide: (text: string) => string): string => hide(text).replace(SECRET_MEMBER, '$1"***"')

/** The bytes from `start` to `end` as text, without joining the rest. */
const slice = (parts: Parts, start: number, end: number): string => {
  const found: Uint8Array[] = []
  let at = 0
  for (const part of parts) {
    const from = Math.max(0, start - at)
    const to = Math.min(part.length, end - at)
    if (from < to) found.push(part.subarray(from, to))
    at += part.length
    if (at >= end) break
  }
  return join(found).toString()
}

/** Collects the beginning and the end of a message that passes on while it comes. */
export class EndsCollector {
  readonly #half: number
  readonly #head: Buffer[] = []
  #tail: Buffer[] = []
  #headBytes = 0
  #tailBytes = 0
  #bytes = 0

  constructor(maxBytes: number) {
    this.#half = Math.floor(maxBytes / 2) + MARGIN
  }

  /** `chunk` is lent. */
  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length
    const room = Math.min(chunk.length, this.#half - this.#headBytes)
    if (room > 0) this.#head.push(Buffer.from(chunk.subarray(0, room)))
    this.#headBytes += Math.max(0, room)
    const rest = chunk.subarray(Math.max(0, room))
    if (rest.length === 0) return
    this.#tail.push(Buffer.from(rest.subarray(-this.#half)))
    this.#tailBytes += Math.min(rest.length, this.#half)
    // The oldest pieces go once the newer ones are enough without them.
    for (let first = this.#tail[0]; first !== undefined && this.#tailBytes - first.length >= this.#half; first = this.#tail[0]) {
      this.#tail.shift()
      this.#tailBytes -= first.length
    }
  }

  kept({ maxBytes, hide }: KeepOptions): KeptBody {
    if (this.#bytes === this.#headBytes + this.#tailBytes && this.#bytes <= maxBytes)
      return { ...keepBody([...this.#head, ...this.#tail], { maxBytes, hide }), streamed: true }
    const half = Math.floor(maxBytes / 2)
    const head = withoutSecrets(Buffer.concat(this.#head).toString(), hide).slice(0, half)
    const tail = withoutSecrets(Buffer.concat(this.#tail).toString(), hide).slice(-half)
    return {
      bytes: this.#bytes,
      head: head.toWellFormed(),
      tail: tail.toWellFormed(),
      omitted: Math.max(0, this.#bytes - 2 * half),
      streamed: true,
    }
  }
}
