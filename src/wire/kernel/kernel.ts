/**
 * The scan kernel: skips strings, objects and arrays at 0.1 to 1 ns a byte, where a loop over bytes takes 1 to 4 and a search per quote 1.5
 * to 7. WebAssembly with SIMD, from `assembly/scan.ts`. Bytes are copied into its memory in windows of at most 64 KiB, so that memory is
 * bounded for any length of a message.
 *
 * The surprise: it gives no reasons. Where it returns `DOUBT` (invalid JSON, a limit, more than 4,095 levels) the plain scanner reads
 * the same bytes and decides. It keeps no state between calls: one instance serves the process, and a value that is skipped over
 * several chunks has its own state (`ValueSkip`).
 *
 * Gain: 10 KB of dense results cost 1.07 × raw in place of 1.67, 1 MB 0.65 in place of 2.69 (bench/notes.md).
 */
import { KERNEL_BASE64 } from './binary.ts'

/** The kernel cannot decide, or the bytes end within the value. */
export const DOUBT = -2
/** The value continues after the given bytes. */
export const MORE = -1

/** How much of strings is checked for characters and escapes that JSON does not allow. */
export const CHECK_NOTHING = 0
export const CHECK_BEGINNING = 1
export const CHECK_ALL = 2
type Checks = typeof CHECK_NOTHING | typeof CHECK_BEGINNING | typeof CHECK_ALL

/** How much more a value may hold; `Infinity`: any number. */
export interface SkipLimits {
  readonly maxDepth: number
  readonly maxValues: number
  readonly maxKeysPerObject: number
}

// The memory as `assembly/scan.ts` lays it out: offsets in bytes, then words of the state.
const STATE_START = 3_072
const STACK_START = 4_096
const WINDOW_START = 4_096 + 4 * 4_096
const WINDOW_BYTES = 64 * 1024
const IN_STRING = 0
const ESCAPED = 1
const PLACE = 4
const DEPTH = 5
const VALUES = 6
const QUOTES = 7
const MAX_DEPTH = 9
const STATE_WORDS = 13
/** The first value comes as if behind a colon. */
const AFTER_COLON = 2
const OBJECT_BIT = 0x8000_0000
const NO_LIMIT = 0x7fff_ffff

/** The first window is small, since most values are short. */
const FIRST_WINDOW_BYTES = 2_048
/** Fewer quotes in a window: a native search finds the next one faster. */
const SPARSE_QUOTES = WINDOW_BYTES / 2_048

/** The used part of the API; the types of Node do not declare it. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: object }
}

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly prepare: () => void
  readonly skipString: Skip
  readonly skipValue: Skip
}
type Skip = (length: number) => number

export class Kernel {
  static #shared: Kernel | null | undefined
  readonly #memory: Uint8Array
  readonly #state: Int32Array
  readonly #stack: Uint32Array
  readonly #skipString: Skip
  readonly #skipValue: Skip

  private constructor({ memory, prepare, skipString, skipValue }: Exports) {
    this.#memory = new Uint8Array(memory.buffer)
    this.#state = new Int32Array(memory.buffer, STATE_START, STATE_WORDS)
    this.#stack = new Uint32Array(memory.buffer, STACK_START, (WINDOW_START - STACK_START) / 4)
    this.#skipString = skipString
    this.#skipValue = skipValue
    prepare()
  }

  /** Compiled by the first call; `undefined` where WebAssembly or its SIMD is missing. */
  static get shared(): Kernel | undefined {
    if (Kernel.#shared === undefined) Kernel.#shared = Kernel.#load() ?? null
    return Kernel.#shared ?? undefined
  }

  static #load(): Kernel | undefined {
    // Cast: the types of Node do not declare it.
    const api = (globalThis as { WebAssembly?: WebAssemblyApi }).WebAssembly
    if (api === undefined) return undefined
    try {
      // Cast: `scripts/kernel.ts` has built it.
      return new Kernel(new api.Instance(new api.Module(Buffer.from(KERNEL_BASE64, 'base64'))).exports as Exports)
    } catch {
      return undefined
    }
  }

  /** The offset behind the object or array that begins at `at`, or `DOUBT`. What it counts is in `values`. */
  valueEnd(bytes: Uint8Array, at: number, limits: SkipLimits, checks: Checks): number {
    this.#begin(checks)
    const state = this.#state
    state[PLACE] = AFTER_COLON
    state[MAX_DEPTH] = Math.min(limits.maxDepth, NO_LIMIT)
    state[MAX_DEPTH + 1] = Math.min(limits.maxValues, NO_LIMIT)
    state[MAX_DEPTH + 2] = Math.min(limits.maxKeysPerObject, NO_LIMIT)
    const end = this.#run(this.#skipValue, bytes, at, FIRST_WINDOW_BYTES)
    return end === MORE ? DOUBT : end
  }

  /** Objects, arrays, strings, numbers and words of the value that was skipped, itself included. */
  get values(): number {
    // Cast: the state has this word.
    return this.#state[VALUES]!
  }

  /** The offset behind the closing quote of the string of which `at` is inside, not escaped; `MORE`; or `DOUBT`. All of it is checked. */
  checkedStringEnd(bytes: Uint8Array, at: number): number {
    this.#begin(CHECK_ALL)
    return this.#run(this.#skipString, bytes, at, FIRST_WINDOW_BYTES)
  }

  /**
   * The offset behind the closing quote of the string of which `at` is inside; `isEscaped`: by a backslash before it. `MORE`: the string
   * goes on behind `searchedTo`, where the bytes end or quotes become so rare that a native search is faster.
   */
  stringEnd(bytes: Uint8Array, at: number, isEscaped = false): number {
    this.#begin(CHECK_NOTHING)
    const state = this.#state
    state[ESCAPED] = isEscaped ? 1 : 0
    let size = FIRST_WINDOW_BYTES
    for (let from = at; from < bytes.length;) {
      const to = Math.min(from + size, bytes.length)
      const end = this.#window(this.#skipString, bytes, from, to)
      if (end >= 0) return end
      from = this.searchedTo = to
      // Cast: the state has this word.
      if (size === WINDOW_BYTES && state[QUOTES]! < SPARSE_QUOTES) return MORE
      size = Math.min(4 * size, WINDOW_BYTES)
    }
    return MORE
  }

  /** Where the last `stringEnd` stopped, and whether the byte there is escaped. */
  searchedTo = 0
  get isEscaped(): boolean {
    return this.#state[ESCAPED] === 1
  }

  /** More of a value that is skipped over several chunks. @internal of `ValueSkip`. */
  resume(saved: Int32Array, stack: Uint32Array, bytes: Uint8Array, at: number): number {
    this.#state.set(saved)
    this.#stack.set(stack)
    return this.#run(this.#skipValue, bytes, at, FIRST_WINDOW_BYTES)
  }

  /** The state after it, and the brackets that are open. @internal of `ValueSkip`. */
  save(into: Int32Array): Uint32Array<ArrayBuffer> {
    into.set(this.#state)
    // Cast: the state has this word.
    return this.#stack.slice(0, into[DEPTH]! + 1)
  }

  #begin(checks: Checks): void {
    const state = this.#state
    for (let word = 0; word < STATE_WORDS - 1; word++) state[word] = 0
    state[STATE_WORDS - 1] = checks
  }

  #run(skip: Skip, bytes: Uint8Array, at: number, firstBytes: number): number {
    let size = firstBytes
    for (let from = at; from < bytes.length;) {
      const to = Math.min(from + size, bytes.length)
      const end = this.#window(skip, bytes, from, to)
      if (end !== MORE) return end
      from = to
      size = Math.min(4 * size, WINDOW_BYTES)
    }
    return MORE
  }

  #window(skip: Skip, bytes: Uint8Array, from: number, to: number): number {
    this.#memory.set(bytes.subarray(from, to), WINDOW_START)
    const end = skip(to - from)
    return end >= 0 ? from + end : end
  }
}

/** Skips an object or array over several chunks. Its strings are not checked unless `checks` says so. */
export class ValueSkip {
  readonly #kernel: Kernel
  readonly #state = new Int32Array(STATE_WORDS)
  #stack = new Uint32Array(1)

  constructor(kernel: Kernel, checks: Checks = CHECK_NOTHING) {
    this.#kernel = kernel
    this.#state[PLACE] = AFTER_COLON
    this.#state.fill(NO_LIMIT, MAX_DEPTH, MAX_DEPTH + 3)
    this.#state[STATE_WORDS - 1] = checks
  }

  /** The offset after the value; `MORE`; or `DOUBT`: then no byte of this chunk was read. */
  push(chunk: Uint8Array, at: number): number {
    const end = this.#kernel.resume(this.#state, this.#stack, chunk, at)
    if (end === MORE) this.#stack = this.#kernel.save(this.#state)
    return end
  }

  /** Whether the next byte is inside a string. */
  get isInString(): boolean {
    return this.#state[IN_STRING] === 1
  }
  get isEscaped(): boolean {
    return this.#state[ESCAPED] === 1
  }
  /** The brackets that are open, from the outside in; true: an object. Cast: the state has this word. */
  get open(): readonly boolean[] {
    return Array.from(this.#stack.subarray(1, this.#state[DEPTH]! + 1), (word) => word >= OBJECT_BIT)
  }
}
