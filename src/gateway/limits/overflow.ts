/**
 * Stores the rest of results that exceeded a limit, for a limited time. Only the principal of the call can read it, part by part, at
 * `gateway+result:///<random>`. The URI contains the offset of a part, so that reading needs no further state (DECISIONS 5).
 */
import { randomBytes } from 'node:crypto'
import { complete } from '../../rpc/call.ts'
import type { Call, Layer, Outcome } from '../../rpc/call.ts'
import { noteDenial } from '../../rpc/record.ts'
import { unknownName } from '../unknown-name.ts'
import { Payload } from '../../wire/message/payload.ts'
import { cutAt, tokensOf } from './result-limit.ts'

export interface OverflowOptions {
  /** Lifetime of a text. */
  readonly ttlMs: number
  /** Bytes of all texts together; the oldest are removed first. */
  readonly maxBytes: number
}

interface Kept {
  readonly principal: string
  readonly text: string
  readonly partBytes: number
  readonly untilMs: number
}

const SCHEME = 'gateway+result:'
const URI = /^gateway\+result:\/\/\/([\w-]{22})(?:\?from=(\d{1,10}))?$/
/** Memory of one character of a string. */
const CHARACTER_BYTES = 2

/** Whether the URI is one of these. */
const isOverflow = (uri: string | undefined): boolean => uri?.startsWith(SCHEME) === true

export class Overflow {
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>()
  readonly #options: () => OverflowOptions
  readonly #nowMs: () => number
  readonly #reached: (option: string) => void
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  /** `reached` is called with the limit that removed or rejected a text. */
  constructor(options: () => OverflowOptions, reached: (option: string) => void, nowMs: () => number = () => performance.now()) {
    this.#options = options
    this.#reached = reached
    this.#nowMs = nowMs
  }

  /** Answers reads of stored texts. */
  readonly layer: Layer = (inner) => (call) =>
    call.method === 'resources/read' && isOverflow(call.target) ? this.#serve(call) : inner(call)

  async #serve(call: Call): Promise<Outcome> {
    const part = this.read(call.caller.principal, call.target ?? '')
    if (part !== undefined) return complete(part)
    noteDenial(call, 'unknown')
    throw unknownName(call, ' (kept for limits.result_ttl, within limits.results)')
  }

  /** Stores a text and returns the URI of its first part; `undefined`: the text is too large. `partBytes`: UTF-8 bytes of one part. */
  keep(principal: string, text: string, partBytes: number): string | undefined {
    const { ttlMs, maxBytes } = this.#options()
    const bytes = text.length * CHARACTER_BYTES
    if (bytes > maxBytes) {
      this.#reached('limits.results')
      return undefined
    }
    this.#dropExpired()
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes + bytes <= maxBytes) break
      this.#reached('limits.results')
      this.#drop(oldest)
    }
    const id = randomBytes(16).toString('base64url')
    this.#kept.set(id, { principal, text, partBytes, untilMs: this.#nowMs() + ttlMs })
    this.#bytes += bytes
    this.#timer ??= setTimeout(() => this.#expire(), ttlMs).unref()
    return `${SCHEME}///${id}`
  }

  /** The result of `resources/read`; `undefined`: no such text, expired, or of another principal. */
  read(principal: string, uri: string): Payload | undefined {
    const [, id = '', start = '0'] = URI.exec(uri) ?? []
    const kept = this.#kept.get(id)
    const from = Number(start)
    if (kept === undefined || kept.principal !== principal || kept.untilMs <= this.#nowMs()) return undefined
    if (from >= kept.text.length) return undefined
    const to = cutAt(kept.text, from, kept.partBytes)
    const part = kept.text.slice(from, to)
    const left = kept.text.slice(to)
    const more = `\n\n[About ${tokensOf(left)} more tokens follow: read ${SCHEME}///${id}?from=${to}]`
    return Payload.of({ contents: [{ uri, mimeType: 'text/plain', text: left === '' ? part : `${part}${more}` }] })
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#kept.clear()
    this.#bytes = 0
  }

  #expire(): void {
    this.#timer = undefined
    this.#dropExpired()
    const [next] = this.#kept.values()
    if (next !== undefined) this.#timer = setTimeout(() => this.#expire(), next.untilMs - this.#nowMs()).unref()
  }

  #dropExpired(): void {
    const nowMs = this.#nowMs()
    for (const [id, { untilMs }] of this.#kept) {
      if (untilMs > nowMs) continue
      this.#reached('limits.result_ttl')
      this.#drop(id)
    }
  }

  #drop(id: string): void {
    const kept = this.#kept.get(id)
    if (kept === undefined) return
    this.#kept.delete(id)
    this.#bytes -= kept.text.length * CHARACTER_BYTES
  }
}
