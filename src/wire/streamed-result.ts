/**
 * The result of a tool call that passes on while it still comes (DECISIONS 4): a response of a server whose `content` has begun is
 * a `Payload` of the members before it, and a stream of everything behind.
 *
 *     {"jsonrpc":"2.0","id":7,"result":{"isError":false,"content":[{"type":"text","text":"…"}],"_meta":{}}}
 *     └────────── checked at the end ──┘└─ the payload ─┘└── passes as it comes ──────────────┘ └ held, edited
 *
 * Changes are made as on any other payload, and before `pipe`. A member that is set or deleted is left out wherever it comes later;
 * one that is changed inside is held until it is whole. The surprise: what nobody changes is checked for closed strings, matching
 * brackets and UTF-8 only, since by the time a deeper mistake could be seen its beginning has left.
 */
import { isUtf8 } from 'node:buffer'
import { EnvelopeError, readServerMessage } from './envelope.ts'
import type { Envelope, Id } from './envelope.ts'
import { Failure } from './failure.ts'
import { join, Payload } from './payload.ts'
import type { Parts } from './payload.ts'
import { ScanError, Scanner } from './scan.ts'

/** Where the result goes. Bytes are lent until `write` returns; after `end` or `fail` nothing comes. */
export interface ResultSink {
  write(bytes: Uint8Array): void
  end(): void
  fail(failure: Failure): void
}

/** How a stream ended: whole, broken, or because nobody wanted the rest. */
export type StreamEnd = 'complete' | 'aborted' | Failure

/** The server's side of the stream. */
export interface ResultSource {
  pause(): void
  resume(): void
  /** Nobody wants the rest. */
  abort(): void
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
/** A result that has said so much and has no `content` yet is read whole. */
const MAX_HEAD_BYTES = 16 * 1024
/** What stands behind the result of a message: its id, its version. */
const MAX_TAIL_BYTES = 4 * 1024
/** As `NO_LIMITS` of the scanner. */
const MAX_DEPTH = 512
/** No key or type that matters is longer. */
const MAX_WORD = 256
/** Blocks that hold no URI of their own: they pass from here on. */
const PLAIN_TYPES: ReadonlySet<string> = new Set(['text', 'image', 'audio'])

/** What is being kept back: a separator and its key, a member to leave out, one to change, a block whose type is not known yet, or one to change. */
type Held = 'key' | 'cut' | 'member' | 'block' | 'edited block'

export class StreamedResult extends Payload {
  readonly #id: Id
  readonly #before: Buffer
  readonly #separator: string
  readonly #source: ResultSource
  /** What has come and was not passed on, because nobody has said where to. */
  #waiting: Buffer[]
  #sink: ResultSink | undefined
  /** How it ended before that. */
  #end: 'complete' | Failure | undefined
  #isDone = false
  #bytes: number
  #onOver: ((bytes: number, end: StreamEnd) => void) | undefined
  #editBlock: ((block: Payload) => void) | undefined
  /** Members that are left out where they come. */
  readonly #cut = new Set<string>()
  /** Members to put into a member that has not come yet. */
  readonly #late = new Map<string, Map<string, string | Uint8Array>>()
  readonly #seen: Set<string>

  #stack: number[] = [CLOSE_BRACE]
  #inString = false
  #isEscaped = false
  #word: string | undefined
  #expectsKey = true
  #key = ''
  #blockKey: string | undefined
  #held: Held | undefined
  #kept: Buffer[] = []
  #carry = Buffer.alloc(0)
  #tail: Buffer[] | undefined
  #tailBytes = 0

  private constructor(bytes: Buffer, at: HeadPlace, id: Id, source: ResultSource) {
    const head = bytes.toString('latin1', at.resultStart, at.keyStart).trimEnd()
    const isEmpty = head === '{'
    const whole = Payload.at(Buffer.from(`${isEmpty ? head : head.slice(0, -1)}}`, 'latin1'))
    super(whole.bytes, whole, whole.members)
    this.#id = id
    this.#before = Buffer.from(bytes.subarray(0, at.resultStart))
    this.#separator = bytes.toString('latin1', at.resultStart + head.length, at.keyStart)
    this.#source = source
    this.#waiting = [Buffer.from(bytes.subarray(at.keyStart))]
    this.#bytes = at.keyStart
    this.#seen = new Set(this.members.map(({ key }) => key))
  }

  /**
   * Reads the beginning of the response to request `id`. `more`: it may become one that streams; `undefined`: it is to be read
   * whole, as it is no result whose `content` has begun, or the member `after` has not come before that.
   */
  static begin(bytes: Buffer, id: Id, source: ResultSource, after?: string): StreamedResult | 'more' | undefined {
    const at = findContent(bytes)
    if (at === 'more' || at === undefined || !isUtf8(bytes.subarray(0, at.keyStart))) return at === 'more' ? at : undefined
    const result = new StreamedResult(bytes, at, id, source)
    return after === undefined || result.member(after) !== undefined ? result : undefined
  }

  /** As a message of its own, of which the rest is to come. */
  get envelope(): Envelope {
    return {
      bytes: this.bytes,
      kind: 'response',
      id: this.#id,
      method: '',
      params: undefined,
      result: this,
      error: undefined,
    }
  }

  /** Calls back with each content block that may hold a URI, before it passes on. */
  editBlocks(edit: (block: Payload) => void): void {
    this.#editBlock = edit
  }

  /** Calls back once, when nothing more comes; `bytes`: of the message, as far as it came. */
  onOver(callback: (bytes: number, end: StreamEnd) => void): void {
    this.#onOver = callback
  }

  override has(key: string): boolean {
    return key === 'content' || super.has(key)
  }

  override set(key: string, json: string | Uint8Array | Parts): void {
    this.#cut.add(key)
    super.set(key, json)
  }

  override delete(key: string): void {
    this.#cut.add(key)
    super.delete(key)
  }

  override setIn(outer: string, key: string, json: string | Uint8Array): void {
    if (this.member(outer) !== undefined) return super.setIn(outer, key, json)
    let late = this.#late.get(outer)
    if (late === undefined) this.#late.set(outer, (late = new Map()))
    late.set(key, json)
  }

  override parts(): Parts {
    throw new Error('a streamed result has no parts: pipe it, or collect it')
  }

  /** Sends everything to `sink`, as it comes. Once. */
  pipe(sink: ResultSink): void {
    this.#sink = sink
    const head = join(super.parts())
    const hasMembers = head.length > 2
    sink.write(head.subarray(0, -1))
    sink.write(Buffer.from(`${hasMembers ? ',' : ''}${this.#separator}`, 'latin1'))
    const waiting = this.#waiting
    this.#waiting = []
    // First, as the sink may be full of what waits.
    if (this.#end === undefined) this.#source.resume()
    for (const chunk of waiting) this.push(chunk)
    if (this.#end === 'complete') this.finish()
    else if (this.#end !== undefined) this.fail(this.#end)
  }

  /** The whole result, once it is there. Rejects with the `Failure` that broke it. */
  collect(): Promise<Parts> {
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = []
      this.pipe({
        write: (bytes) => void parts.push(Buffer.from(bytes)),
        end: () => resolve([Buffer.concat(parts)]),
        fail: reject,
      })
    })
  }

  /** The place it goes to is full, or has room again. */
  pause(): void {
    if (!this.#isDone) this.#source.pause()
  }
  resume(): void {
    if (!this.#isDone) this.#source.resume()
  }

  /** Nobody wants it any more. */
  abort(): void {
    if (!this.#isDone) this.#over('aborted')
    this.#source.abort()
  }

  /** More of the message has come; `chunk` is lent. */
  push(chunk: Buffer): void {
    if (this.#isDone) return
    if (this.#sink === undefined) return void this.#waiting.push(Buffer.from(chunk))
    this.#bytes += chunk.length
    try {
      this.#checkText(chunk)
      this.#read(chunk, this.#sink)
    } catch (error) {
      if (!(error instanceof ScanError)) throw error
      this.#source.abort()
      this.fail(new Failure('bad_response', `the response is unusable: ${error.message}`))
    }
  }

  /** The message is complete, as far as the server is concerned. */
  finish(): void {
    if (this.#isDone) return
    if (this.#sink === undefined) {
      this.#end ??= 'complete'
      return
    }
    const reason = this.#incomplete()
    if (reason !== undefined) return this.fail(new Failure('bad_response', `the response is unusable: ${reason}`))
    this.#over('complete')
    this.#sink.end()
  }

  /** The rest will not come. */
  fail(failure: Failure): void {
    if (this.#isDone) return
    if (this.#sink === undefined) {
      this.#end ??= failure
      return
    }
    this.#over(failure)
    this.#sink.fail(failure)
  }

  #over(end: StreamEnd): void {
    this.#isDone = true
    this.#onOver?.(this.#bytes, end)
  }

  /** What is around the result is a response to our request, like any other. */
  #incomplete(): string | undefined {
    if (this.#tail === undefined) return 'it ends in the middle'
    try {
      const { id } = readServerMessage(Buffer.concat([this.#before, Buffer.from('{}'), ...this.#tail]))
      return id === this.#id ? undefined : `it answers ${id}`
    } catch (error) {
      if (!(error instanceof EnvelopeError)) throw error
      return error.message
    }
  }

  #checkText(chunk: Buffer): void {
    const bytes = this.#carry.length === 0 ? chunk : Buffer.concat([this.#carry, chunk])
    const end = bytes.length - unfinished(bytes)
    if (!isUtf8(bytes.subarray(0, end))) throw syntax('the message is not UTF-8')
    this.#carry = Buffer.from(bytes.subarray(end))
  }

  #read(chunk: Buffer, sink: ResultSink): void {
    if (this.#tail !== undefined) return this.#readTail(chunk)
    let from = 0
    let at = 0
    /** Everything before `end` goes where the zone it is in says. */
    const flush = (end: number): void => {
      if (end > from) {
        const bytes = chunk.subarray(from, end)
        if (this.#held === undefined) sink.write(bytes)
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
      if (this.#inString) {
        at = this.#throughString(chunk, at)
        if (!this.#inString && this.#word !== undefined && this.#wordEnds()) sink.write(release(at))
        continue
      }
      const byte = chunk[at]
      const depth = this.#stack.length
      if (byte === QUOTE) {
        this.#inString = true
        this.#word = depth === 1 || this.#held === 'block' ? '' : undefined
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (depth === MAX_DEPTH) throw syntax(`more than ${MAX_DEPTH} levels`)
        if (depth === 2 && byte === OPEN_BRACE && this.#key === 'content' && this.#editBlock !== undefined) {
          flush(at)
          this.#held = 'block'
          this.#blockKey = undefined
        }
        this.#stack.push(byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET)
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#stack.pop() !== byte) throw syntax('brackets that do not match')
        if (depth === 3 && (this.#held === 'block' || this.#held === 'edited block')) {
          const block = Payload.at(release(at + 1))
          this.#editBlock?.(block)
          for (const part of block.parts()) sink.write(part)
        } else if (depth === 1) {
          this.#memberEnds(at, release, sink)
          flush(at)
          this.#addLate(sink)
          flush(at + 1)
          this.#tail = []
          return this.#readTail(chunk.subarray(at + 1))
        }
      } else if (depth === 1 && byte === COMMA) {
        this.#memberEnds(at, release, sink)
        flush(at)
        this.#held = 'key'
        this.#expectsKey = true
      } else if (depth === 1 && byte === COLON && this.#held === 'key') {
        if (this.#cut.has(this.#key)) this.#held = 'cut'
        else {
          sink.write(release(at + 1))
          if (this.#late.has(this.#key)) this.#held = 'member'
        }
      } else if (depth === 3 && byte === COMMA && this.#held === 'block') this.#blockKey = undefined
      at++
    }
    flush(chunk.length)
  }

  /** The value of a member of the result is over. */
  #memberEnds(at: number, release: (end: number) => Buffer, sink: ResultSink): void {
    if (this.#held === 'cut') release(at)
    else if (this.#held === 'member') {
      const value = Payload.at(release(at))
      for (const [key, json] of this.#late.get(this.#key) ?? []) value.set(key, json)
      this.#late.delete(this.#key)
      for (const part of value.parts()) sink.write(part)
    }
  }

  /** Members that were to be changed inside and never came. */
  #addLate(sink: ResultSink): void {
    for (const [outer, members] of this.#late) {
      const made = Payload.of({})
      for (const [key, json] of members) made.set(key, json)
      sink.write(Buffer.from(`,${JSON.stringify(outer)}:`))
      for (const part of made.parts()) sink.write(part)
    }
  }

  /** A string that matters is complete; true: what was kept back for it may pass. */
  #wordEnds(): boolean {
    const word = this.#word ?? ''
    this.#word = undefined
    const depth = this.#stack.length
    if (depth === 1 && this.#expectsKey) {
      if (word.includes('\\')) throw syntax('a key of the result must not be escaped')
      if (this.#seen.has(word)) throw syntax(`duplicate key "${word}"`)
      this.#seen.add(word)
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

  /** Returns where the string ends, or the end of the chunk. */
  #throughString(chunk: Buffer, from: number): number {
    let at = from
    if (this.#isEscaped) at++
    this.#isEscaped = false
    for (;;) {
      const quote = chunk.indexOf(QUOTE, at)
      const end = quote === -1 ? chunk.length : quote
      let back = end
      while (back > at && chunk[back - 1] === BACKSLASH) back--
      const isOdd = (end - back) % 2 === 1
      if (quote === -1) {
        this.#isEscaped = isOdd
        this.#spell(chunk, from, end)
        return end
      }
      at = quote + 1
      if (isOdd) continue
      this.#inString = false
      this.#spell(chunk, from, quote)
      return at
    }
  }

  #spell(chunk: Buffer, from: number, to: number): void {
    if (this.#word !== undefined && this.#word.length < MAX_WORD)
      this.#word += chunk.toString('latin1', from, Math.min(to, from + MAX_WORD))
  }

  #readTail(chunk: Buffer): void {
    this.#tailBytes += chunk.length
    if (this.#tailBytes > MAX_TAIL_BYTES) throw syntax('too much behind the result')
    this.#tail?.push(Buffer.from(chunk))
  }
}

interface HeadPlace {
  /** Of the result's brace, and of the key of `content`. */
  readonly resultStart: number
  readonly keyStart: number
}

const KEY = Buffer.from('"content"')

/** Ends a scan that has seen enough; one for all, since making an error costs more than the scan. */
const FOUND = new Error('found')

/** Where `content` begins, if all before it is there. */
const findContent = (bytes: Buffer): HeadPlace | 'more' | undefined => {
  const head = bytes.subarray(0, MAX_HEAD_BYTES)
  const scanner = new Scanner(head, { strict: false })
  let resultStart = -1
  try {
    scanner.members((key) => {
      if (key !== 'result' || scanner.peek() !== OPEN_BRACE) return false
      resultStart = scanner.position
      scanner.members((name) => {
        if (name === 'content' && scanner.peek() === OPEN_BRACKET) throw FOUND
        return false
      })
      return true
    })
  } catch (error) {
    if (error === FOUND) return { resultStart, keyStart: head.lastIndexOf(KEY, scanner.position) }
    if (!(error instanceof ScanError)) throw error
    return bytes.length < MAX_HEAD_BYTES && error.kind === 'syntax' && error.offset >= head.length - 6 ? 'more' : undefined
  }
  return undefined
}

/** Bytes at the end that begin a character of which the rest is to come: 0 to 3. */
const unfinished = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}

const syntax = (what: string): ScanError => new ScanError('syntax', what, 0)
