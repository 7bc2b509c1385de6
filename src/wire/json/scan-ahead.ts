/**
 * What is known of a large message before all of it has been received, so that no single turn of the event loop has to read it whole:
 * where its large values end, how far its list of content blocks is read, and the state of the scan kernel in the value that is
 * incomplete.
 *
 * The surprise: there is no second scanner. The scan of the message is begun again each time, finds at once what is known here, and is
 * broken off at the end of the received bytes. Only for messages of servers, which are read without limits.
 *
 * Gain: the longest turn of a line of 15 MB takes 7 ms of CPU in place of 34 (bench/notes.md).
 */
import { CHECK_BEGINNING, DOUBT, Kernel, MORE, ValueSkip } from '../kernel/kernel.ts'
import type { Member } from './scan.ts'
import { ScanError } from './scan-error.ts'
import { restOfString, stringEnd } from './tokens.ts'

/** How far a list is read. */
export class ListProgress {
  /** Offset of the next element; 0: nothing is read. */
  at = 0
  /** What was found in the elements before it, and perhaps of one that is read again. */
  readonly found: Member[] = []
  #count = 0

  /** The elements before `at` are read. */
  reached(at: number): void {
    this.at = at
    this.#count = this.found.length
  }

  /** Forgets what was found behind `at`. */
  resume(): void {
    this.found.length = this.#count
  }
}

/** Thrown to break off a scan; shared, since creating an error costs more than a step. */
const NOT_YET = new Error('the rest of the message is to come')

/** Smaller messages are read at once: 2 MiB take 4 ms at most. */
export const AHEAD_FROM_BYTES = 2 * 1024 * 1024
/** Bytes that are read at a time after that. */
const STEP_BYTES = 1024 * 1024
/** Smaller values are skipped again faster than they are looked up. */
const MIN_KNOWN_BYTES = 4 * 1024

export interface AheadOptions {
  readonly firstBytes?: number
  readonly stepBytes?: number
  /** Values of fewer bytes are read again; more than the beginning of a string that is checked byte by byte. */
  readonly minKnownBytes?: number
}

export class ScanAhead {
  readonly #stepBytes: number
  readonly #minKnownBytes: number
  /** Ends of large objects, arrays and strings by their beginning. */
  readonly #ends = new Map<number, number>()
  readonly #lists = new Map<number, ListProgress>()
  /** The value that is incomplete: where it begins, and up to where it is read. */
  #open: { readonly start: number; to: number; readonly skip: ValueSkip } | undefined
  /** The string that is incomplete: where it begins, and where the search for its end goes on. */
  #string: { readonly start: number; readonly to: number } | undefined
  #nextBytes: number
  /** The kernel is missing, or could not decide: the rest is read at once. */
  #isOff = Kernel.shared === undefined
  #isComplete = false

  constructor({ firstBytes = AHEAD_FROM_BYTES, stepBytes = STEP_BYTES, minKnownBytes = MIN_KNOWN_BYTES }: AheadOptions = {}) {
    this.#nextBytes = firstBytes
    this.#minKnownBytes = minKnownBytes
    this.#stepBytes = stepBytes
  }

  /** Calls `scan` on what has been received, if that is enough for a step. `scan` may throw what a beginning of a message causes. */
  step(receivedBytes: number, scan: () => void): void {
    if (receivedBytes < this.#nextBytes || this.#isOff) return
    const before = this.#progress()
    try {
      scan()
    } catch (error) {
      if (error !== NOT_YET && !(error instanceof ScanError)) throw error
    }
    // Where a scan learned nothing, such as in a run of backslashes, the next one waits until there is twice as much.
    this.#nextBytes = this.#progress() > before ? receivedBytes + this.#stepBytes : 2 * receivedBytes
  }

  /** All bytes are there: from here on nothing is broken off. */
  complete(): void {
    this.#isComplete = true
  }

  /** The offset behind the object or array at `at`; `undefined`: it is not known. Breaks the scan off where the bytes end within it. */
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

  /** The offset behind the string at `at`. Throws `ScanError` where the bytes end within it; the next search goes on there. */
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

  /** How far the list at `at` is read. */
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

  /** Grows with each byte that need not be read again. */
  #progress(): number {
    let furthest = Math.max(this.#open?.to ?? 0, this.#string?.to ?? 0)
    for (const { at } of this.#lists.values()) furthest = Math.max(furthest, at)
    for (const end of this.#ends.values()) furthest = Math.max(furthest, end)
    return furthest
  }
}

const BACKSLASH = 0x5c

/** Where the backslashes begin with which the bytes end, so that the next byte is not taken for what it is not. */
const beforeBackslashes = (bytes: Buffer, first: number): number => {
  let at = bytes.length
  while (at > first && bytes[at - 1] === BACKSLASH) at--
  return at
}
