/**
 * Walks a result while it is being received, from the key of its `content` on. Unchanged parts are written as they were received; parts
 * that may change are held until they are complete. Only strings, brackets and UTF-8 are checked. Throws `ScanError`.
 *
 * The scan kernel skips values whose content is not needed, across chunks. The surprise: where the kernel cannot decide, the walk
 * continues in JavaScript at the beginning of that chunk, with the brackets that were open there.
 */
import { isUtf8 } from 'node:buffer'
import { Brackets } from '../json/brackets.ts'
import { META_KEYS, RESULT_KEYS } from '../protocol/deciding-keys.ts'
import { DOUBT, Kernel, MORE, ValueSkip } from '../kernel/kernel.ts'
import { Payload } from '../message/payload.ts'
import { ScanError } from '../json/scan-error.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  afterSpace,
  closingQuote,
  decodeString,
} from '../json/tokens.ts'

/** The changes to apply. */
export interface ResultChanges {
  /** Members to remove. */
  readonly cut: ReadonlySet<string>
  /** Members to add to members of the result that are not received yet, or missing. */
  readonly late: Map<string, Map<string, string | Uint8Array>>
  /** Changes a content block that may hold a URI. */
  readonly editBlock: ((block: Payload) => void) | undefined
}

type Write = (bytes: Uint8Array) => void

/** With fewer bytes of a chunk left, a value is walked here. */
const MIN_KERNEL_BYTES = 128
/** Limit of the bytes behind the result: the id and the version of the message. */
const MAX_TAIL_BYTES = 4 * 1024
/** No relevant key or type is longer. */
const MAX_WORD = 256
/** Blocks of these types have no URI and are passed on at once. */
const PLAIN_TYPES: ReadonlySet<string> = new Set(['text', 'image', 'audio'])

/** The part that is held: a separator with the next key, a member to remove or to change, a block whose type is not known yet or that changes. */
type Held = 'key' | 'cut' | 'member' | 'block' | 'edited block'

export class ResultWalk {
  readonly #changes: ResultChanges
  readonly #seen: Set<string>
  readonly #write: Write
  readonly #open = new Brackets()
  #inString = false
  #isEscaped = false
  /** The value that is being skipped. */
  #skip: ValueSkip | undefined
  /** The kernel could not decide: everything is walked here. */
  #isPlain = false
  #word: string | undefined
  #expectsKey = true
  #key = ''
  #blockKey: string | undefined
  #held: Held | undefined
  #kept: Buffer[] = []
  #carry = Buffer.alloc(0)
  #tail: Buffer[] | undefined
  #tailBytes = 0

  /** `seen`: keys of the members before `content`. */
  constructor(changes: ResultChanges, seen: readonly string[], write: Write) {
    this.#changes = changes
    this.#open.push(true)
    this.#seen = new Set(seen)
    this.#write = write
  }

  /** The bytes after the result; `undefined`: the result is not complete. */
  get tail(): Buffer | undefined {
    return this.#tail && Buffer.concat(this.#tail)
  }

  /** Takes the next bytes. They are only valid during the call. */
  push(chunk: Buffer): void {
    this.#checkText(chunk)
    this.#read(chunk)
  }

  #checkText(chunk: Buffer): void {
    const bytes = this.#carry.length === 0 ? chunk : Buffer.concat([this.#carry, chunk])
    const end = bytes.length - unfinished(bytes)
    if (!isUtf8(bytes.subarray(0, end))) throw syntax('the message is not UTF-8')
    this.#carry = Buffer.from(bytes.subarray(end))
  }

  #read(chunk: Buffer): void {
    if (this.#tail !== undefined) return this.#readTail(chunk)
    let from = 0
    let at = 0
    /** Writes or holds the bytes before `end`. */
    const flush = (end: number): void => {
      if (end > from) {
        const bytes = chunk.subarray(from, end)
        if (this.#held === undefined) this.#write(bytes)
        else this.#kept.push(Buffer.from(bytes))
      }
      from = end
    }
    const release = (end: number): Buffer => {
      flush(end)
      const kept = Buffer.concat(this.#kept)
      this.#kept = []
      this.#held = undefined
      return kept
    }
    while (at < chunk.length) {
      if (this.#skip !== undefined) {
        at = this.#skipOn(chunk, this.#skip)
        continue
      }
      if (this.#inString) {
        at = this.#throughString(chunk, at)
        if (!this.#inString && this.#word !== undefined && this.#wordEnds()) this.#write(release(at))
        continue
      }
      const byte = chunk[at]
      const depth = this.#open.size
      if (byte === QUOTE) {
        this.#inString = true
        this.#word = depth === 1 || this.#held === 'block' ? '' : undefined
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        const end = this.#isOpaque(byte) ? this.#skipFrom(chunk, at) : at
        if (end > at) {
          at = end
          continue
        }
        if (depth === 2 && byte === OPEN_BRACE && this.#key === 'content' && this.#changes.editBlock !== undefined) {
          flush(at)
          this.#held = 'block'
          this.#blockKey = undefined
        }
        this.#open.push(byte === OPEN_BRACE)
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#open.isObject !== (byte === CLOSE_BRACE)) throw syntax('brackets that do not match')
        this.#open.pop()
        if (depth === 3 && (this.#held === 'block' || this.#held === 'edited block')) {
          const block = Payload.at(release(at + 1))
          this.#changes.editBlock?.(block)
          for (const part of block.parts()) this.#write(part)
        } else if (depth === 1) {
          this.#memberEnds(at, release)
          flush(at)
          this.#addLate()
          flush(at + 1)
          this.#tail = []
          return this.#readTail(chunk.subarray(at + 1))
        }
      } else if (depth === 1 && byte === COMMA) {
        this.#memberEnds(at, release)
        flush(at)
        this.#held = 'key'
        this.#expectsKey = true
      } else if (depth === 1 && byte === COLON && this.#held === 'key') {
        if (this.#changes.cut.has(this.#key)) this.#held = 'cut'
        else {
          this.#write(release(at + 1))
          if (this.#changes.late.has(this.#key)) this.#held = 'member'
        }
      } else if (depth === 3 && byte === COMMA && this.#held === 'block') this.#blockKey = undefined
      at++
    }
    flush(chunk.length)
  }

  /** The value of a member of the result is complete. */
  #memberEnds(at: number, release: (end: number) => Buffer): void {
    if (this.#held === 'cut') release(at)
    else if (this.#held === 'member') {
      const bytes = release(at)
      // What is no object, such as null, is absent (B282).
      const isObject = bytes[afterSpace(bytes, 0)] === OPEN_BRACE
      const value = isObject ? Payload.at(bytes, 0, this.#key === '_meta' ? META_KEYS : undefined) : Payload.of({})
      for (const [key, json] of this.#changes.late.get(this.#key) ?? []) value.set(key, json)
      this.#changes.late.delete(this.#key)
      for (const part of value.parts()) this.#write(part)
    }
  }

  /** Adds the members that were to be changed and were not received. */
  #addLate(): void {
    for (const [outer, members] of this.#changes.late) {
      const made = Payload.of({})
      for (const [key, json] of members) made.set(key, json)
      this.#write(Buffer.from(`,${JSON.stringify(outer)}:`))
      for (const part of made.parts()) this.#write(part)
    }
  }

  /** A relevant string is complete. True: the bytes held for it may be written. */
  #wordEnds(): boolean {
    const word = decoded(this.#word ?? '')
    this.#word = undefined
    const depth = this.#open.size
    if (depth === 1 && this.#expectsKey) {
      this.#checkKey(word)
      this.#key = word
      this.#expectsKey = false
    } else if (depth === 3 && this.#held === 'block') {
      if (this.#blockKey === undefined) this.#blockKey = word
      else if (this.#blockKey === 'type') {
        if (PLAIN_TYPES.has(word)) return true
        this.#held = 'edited block'
      }
    }
    return false
  }

  #checkKey(key: string): void {
    const variant = RESULT_KEYS.has(key) ? undefined : RESULT_KEYS.variantOf(key)
    if (variant !== undefined) throw syntax(`the key ${JSON.stringify(key)} differs from "${variant}" only in case`)
    if (!RESULT_KEYS.has(key)) return
    if (this.#seen.has(key)) throw syntax(`duplicate key "${key}"`)
    this.#seen.add(key)
  }

  /** Whether nothing inside the object or array that begins here may change. */
  #isOpaque(byte: number): boolean {
    const depth = this.#open.size
    if (depth === 1) return this.#key !== 'content'
    return depth > 2 || byte !== OPEN_BRACE || this.#key !== 'content' || this.#changes.editBlock === undefined
  }

  /** Returns the offset behind the value at `at`, or the end of the chunk; `at`: the value must be walked here. */
  #skipFrom(chunk: Buffer, at: number): number {
    const kernel = this.#isPlain || chunk.length - at < MIN_KERNEL_BYTES ? undefined : Kernel.shared
    if (kernel === undefined) return at
    const skip = new ValueSkip(kernel)
    const end = skip.push(chunk, at)
    if (end === DOUBT) {
      this.#isPlain = true
      return at
    }
    if (end !== MORE) return end
    this.#skip = skip
    return chunk.length
  }

  /** Returns the offset behind the value, or the end of the chunk; 0: the value must be walked here from now on. */
  #skipOn(chunk: Buffer, skip: ValueSkip): number {
    const end = skip.push(chunk, 0)
    if (end === MORE) return chunk.length
    this.#skip = undefined
    if (end !== DOUBT) return end
    this.#isPlain = true
    for (const isObject of skip.open) this.#open.push(isObject)
    this.#inString = skip.isInString
    this.#isEscaped = skip.isEscaped
    this.#word = undefined
    return 0
  }

  /** Returns the offset behind the string, or the end of the chunk. */
  #throughString(chunk: Buffer, from: number): number {
    const first = this.#isEscaped ? from + 1 : from
    const quote = closingQuote(chunk, first, this.#isPlain)
    const end = quote === -1 ? chunk.length : quote
    let back = end
    if (quote === -1) while (back > first && chunk[back - 1] === BACKSLASH) back--
    this.#isEscaped = (end - back) % 2 === 1
    this.#inString = quote === -1
    this.#addToWord(chunk, from, end)
    return quote === -1 ? end : end + 1
  }

  #addToWord(chunk: Buffer, from: number, to: number): void {
    if (this.#word !== undefined && this.#word.length < MAX_WORD)
      this.#word += chunk.toString('latin1', from, Math.min(to, from + MAX_WORD))
  }

  #readTail(chunk: Buffer): void {
    this.#tailBytes += chunk.length
    if (this.#tailBytes > MAX_TAIL_BYTES) throw syntax('too much behind the result')
    this.#tail?.push(Buffer.from(chunk))
  }
}

/** Decodes a string whose bytes were read as latin1. A string that is too long to be relevant is returned as it is. */
const decoded = (word: string): string => {
  if (word.length >= MAX_WORD || !MAY_DIFFER.test(word)) return word
  const bytes = Buffer.from(word, 'latin1')
  return decodeString(Buffer.concat([Buffer.from('"'), bytes, Buffer.from('"')]), 1, bytes.length + 1)
}
/** An escape, or a character outside ASCII. */
const MAY_DIFFER = /[\\\u0080-\u00ff]/

/** The number of bytes at the end that are the beginning of an incomplete character: 0 to 3. */
const unfinished = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}

const syntax = (what: string): ScanError => new ScanError('syntax', what, 0)
