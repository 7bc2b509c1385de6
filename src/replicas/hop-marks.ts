/**
 * The header of requests between replicas, `v1 <to> <from> <milliseconds> <nonce> <mark>`. The mark of a request proves only that it is from
 * a replica; the mark of its answer proves that the intended replica has answered.
 */
import { randomBytes } from 'node:crypto'
import type { Seal } from '../auth/seal.ts'
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import { setBounded } from '../values/bounded-map.ts'
import type { Home } from './home.ts'

export const HOP = 'trunkline-hop'
/** Purposes of marks. */
const REQUEST = 'replica request'
const ANSWER = 'replica answer'
/** Validity of the mark of a request; clocks of replicas must differ by less. */
const MARK_MS = 5 * 60_000
const MAX_KNOWN = 10_000

/** What the mark of a request says. */
interface Mark {
  readonly to: string
  readonly from: string
  /** Wall clock of `from` in milliseconds. */
  readonly atMs: number
  readonly nonce: string
}

/** The header of a request to another replica, and how to check the mark of the answer. */
interface MarkedHop {
  readonly header: string
  readonly isGenuine: (header: (name: string) => string | undefined) => boolean
}

interface HopMarksSource {
  readonly self: Home
  readonly seal: Seal
  readonly log: { warn(facts: object, message: string): void }
  /** Wall clock in milliseconds. */
  readonly now: () => number
}

export class HopMarks {
  readonly #source: HopMarksSource
  /** Instances whose requests were late. */
  readonly #late = new Map<string, true>()

  constructor(source: HopMarksSource) {
    this.#source = source
  }

  to({ instance }: Home): MarkedHop {
    const { seal, self, now } = this.#source
    const nonce = randomBytes(9).toString('base64url')
    const text = `v1 ${instance} ${self.instance} ${now()} ${nonce}`
    return {
      header: `${text} ${seal.mark(REQUEST, text)}`,
      isGenuine: (header) => seal.isMark(ANSWER, `${nonce} ${instance}`, header(HOP) ?? ''),
    }
  }

  /** The mark of an answer of this replica. */
  answer({ nonce }: Mark): string {
    const { seal, self } = this.#source
    return seal.mark(ANSWER, `${nonce} ${self.instance}`)
  }

  /** The mark of a received request; `undefined`: it has no valid one. */
  of(request: HttpRequest): Mark | undefined {
    const header = request.header(HOP) ?? ''
    const cut = header.lastIndexOf(' ')
    const [version, to, from, atMs, nonce] = header.slice(0, Math.max(0, cut)).split(' ')
    if (version !== 'v1' || to === undefined || from === undefined || nonce === undefined) return undefined
    if (!this.#source.seal.isMark(REQUEST, header.slice(0, cut), header.slice(cut + 1))) return undefined
    return { to, from, atMs: Number(atMs), nonce }
  }

  /** Whether a mark is valid at this time. If not, it was repeated later, or the clocks differ: the log says so once for each replica. */
  isInTime({ from, atMs }: Mark): boolean {
    const { log, now } = this.#source
    const apartMs = atMs - now()
    if (Math.abs(apartMs) <= MARK_MS) return true
    if (!this.#late.has(from)) {
      const text = 'the clocks of two replicas differ by more than 5 min: requests between them are refused'
      log.warn({ replica: from, apartMs }, text)
    }
    setBounded(this.#late, from, true, MAX_KNOWN)
    return false
  }
}
