/**
 * Scans a large message while it is being received, so that no single turn of the event loop reads all of it. Stores where its large
 * values end, how far its list of content blocks is read, and the state of the scan kernel in the incomplete value.
 *
 * The surprise: there is no second scanner. The scan of the message starts again at each step, skips at once what is stored here, and
 * is aborted at the end of the received bytes. Only for messages of servers, which are read without limits.
 *
 * Gain: the longest turn of a line of 15 MB takes 7 ms of CPU in place of 34 (bench/notes.md).
 */
import { CHECK_BEGINNING, DOUBT, Kernel, MORE, ValueSkip } from '../kernel/kernel.ts'
import type { Member } from './scan.ts'
import { ScanError } from './scan-error.ts'
import { BACKSLASH, restOfString, stringEnd } from './tokens.ts'

/** How far a list is read. */
export class ListProgress {
  /** Offset of the next element; 0: none is read. */
  at = 0
  /** The members found in the elements before `at`, and possibly in one that is read again. */
  readonly found: Member[] = []
  #count = 0

  /** All elements before `at` are read. */
  reached(at: number): void {
    this.at = at
    this.#count = this.found.length
  }

  /** Removes what was found behind `at`. */
  resume(): void {
    this.found.length = this.#count
  }
}

/** Thrown to abort a scan. Shared, since creating an error costs more than a step. */
const NOT_YET = new Error('the message is incomplete')

/**
 * Smaller messages are read in one go, which takes at most 4 ms. Below the 2 MiB that Node reads from a pipe in one turn: otherwise the turn that
 * reaches this size would scan 4 MiB.
 */
export const AHEAD_FROM_BYTES = 1536 * 1024
/** Bytes of each later step. */
const STEP_BYTES = 1024 * 1024
/** Skipping a smaller value again is faster than a lookup. */
const MIN_KNOWN_BYTES = 4 * 1024

export interface AheadOptions {
  readonly firstBytes?: number
  readonly stepBytes?: number
  /** Ends of smaller values are not stored. Must exceed the part of a string that is checked byte by byte. */
  readonly minKnownBytes?: number
}

export class ScanAhead {
  readonly #stepBytes: number
  readonly #minKnownBytes: number
  /** Ends of large objects, arrays and strings, by their start. */
  readonly #ends = new Map<number, number>()
  readonly #lists = new Map<number, ListProgress>()
  /** The incomplete object or array: its start, and the offset up to which it is read. */
  #open: { readonly start: number; to: number; readonly skip: ValueSkip } | undefined
  /** The incomplete string: its start, and the offset at which the search for its end continues. */
  #string: { readonly start: number; readonly to: number } | undefined
  #nextBytes: number
  /** The kernel is missing or could not decide: the rest of the message is read in one go. */
  #isOff = Kernel.shared === undefined
  #isComplete = false

  constructor({ firstBytes = AHEAD_FROM_BYTES, stepBytes = STEP_BYTES, minKnownBytes = MIN_KNOWN_BYTES }: AheadOptions = {}) {
    this.#nextBytes = firstBytes
    this.#minKnownBytes = minKnownBytes
    this.#stepBytes = stepBytes
  }

  /** Calls `scan` if enough bytes for a step have been received. Ignores the `ScanError` of an incomplete message. */
  step(receivedBytes: number, scan: () => void): void {
    if (receivedBytes < this.#nextBytes || this.#isOff) return
    const before = this.#progress()
    try {
      scan()
    } catch (error) {
      if (error !== NOT_YET && !(error instanceof ScanError)) throw error
    }
    // After a step without progress (a run of backslashes), the next one waits until twice as much is received.
    this.#nextBytes = this.#progress() > before ? receivedBytes + this.#stepBytes : 2 * receivedBytes
  }

  /** All bytes are received: no later scan is aborted. */
  complete(): void {
    this.#isComplete = true
  }

  /** Returns the offset behind the object or array at `at`, or `undefined` if the scanner must read it. Aborts the scan if it is incomplete. */
  valueEnd(bytes: Buffer, at: number): number | undefined {
    const known = this.#ends.get(at)
    if (known !== undefined || this.#isOff) return known
    const open = this.#open?.start === at ? this.#open : this.#isComplete ? undefined : this.#begin(at)
    if (open === undefined) return undefined
    const end = open.skip.push(bytes, open.to)
    if (end === DOUBT) {
      this.#isOff = true
      this.#open = undefined
    } else if (end === MORE) open.to = bytes.length
    else {
      if (this.#open === open) this.#open = undefined
      if (end - at >= this.#minKnownBytes) this.#ends.set(at, end)
      return end
    }
    if (this.#isComplete) return undefined
    throw NOT_YET
  }

  /** Returns the offset behind the string at `at`. Throws `ScanError` if it is incomplete; the next search continues there. */
  stringEnd(bytes: Buffer, at: number): number {
    const known = this.#ends.get(at)
    if (known !== undefined) return known
    if (bytes.length - at < this.#minKnownBytes) return stringEnd(bytes, at, false)
    try {
      const end = this.#string?.start === at ? restOfString(bytes, this.#string.to) : stringEnd(bytes, at, false)
      if (end - at >= this.#minKnownBytes) this.#ends.set(at, end)
      return end
    } catch (error) {
      if (error instanceof ScanError && error.offset === bytes.length)
        this.#string = { start: at, to: beforeBackslashes(bytes, at + 1) }
      throw error
    }
  }

  /** The progress of the list that begins at `at`. */
  list(at: number): ListProgress {
    let progress = this.#lists.get(at)
    if (progress === undefined) this.#lists.set(at, (progress = new ListProgress()))
    progress.resume()
    return progress
  }

  #begin(start: number): { readonly start: number; to: number; readonly skip: ValueSkip } | undefined {
    const kernel = Kernel.shared
    if (kernel === undefined) return undefined
    return (this.#open = { start, to: start, skip: new ValueSkip(kernel, CHECK_BEGINNING) })
  }

  /** Grows with every byte that will not be read again. */
  #progress(): number {
    let furthest = Math.max(this.#open?.to ?? 0, this.#string?.to ?? 0)
    for (const { at } of this.#lists.values()) furthest = Math.max(furthest, at)
    for (const end of this.#ends.values()) furthest = Math.max(furthest, end)
    return furthest
  }
}

/** Returns the offset of the backslashes at the end of the bytes: whether they escape the next byte is decided once it is there. */
const beforeBackslashes = (bytes: Buffer, first: number): number => {
  let at = bytes.length
  while (at > first && bytes[at - 1] === BACKSLASH) at--
  return at
}
