/**
 * The result of a tool call that is relayed while it is being received (DECISIONS 4): once the `content` of a response has begun, the
 * members before it are a `Payload`, and the rest is a stream.
 *
 *     {"jsonrpc":"2.0","id":7,"result":{"isError":false,"content":[{"type":"text","text":"…"}],"_meta":{}}}
 *     └────────── checked at the end ──┘└─ the payload ─┘└── passes as it comes ──────────────┘ └ held, edited
 *
 * Changes are made as on any other payload, before `pipe`. A member that is set or deleted is removed from the rest; one that is
 * changed inside is held until it is complete. The surprise: unchanged parts are only checked for closed strings, matching brackets and
 * UTF-8, because their beginning is sent before any other error could be found.
 */
import { isUtf8 } from 'node:buffer'
import { EnvelopeError, readServerMessage } from '../message/envelope.ts'
import type { Envelope, Id } from '../message/envelope.ts'
import { Failure } from '../message/failure.ts'
import { join, Payload } from '../message/payload.ts'
import type { Parts } from '../message/payload.ts'
import { findContent } from './result-head.ts'
import type { HeadPlace } from './result-head.ts'
import { ResultWalk } from './result-walk.ts'
import { ScanError } from '../json/scan-error.ts'

/** The receiver of a result. Bytes are only valid until `write` returns. `end` or `fail` is the last call. */
export interface ResultSink {
  write(bytes: Uint8Array): void
  end(): void
  fail(failure: Failure): void
}

/** How a stream ended: complete, failed, or aborted by the receiver. */
export type StreamEnd = 'complete' | 'aborted' | Failure

/** The server's side of the stream. */
export interface ResultSource {
  pause(): void
  resume(): void
  /** The rest is not needed. */
  abort(): void
}

export class StreamedResult extends Payload {
  readonly #id: Id
  readonly #before: Buffer
  readonly #separator: string
  readonly #source: ResultSource
  /** Chunks that were received before `pipe` was called. */
  #waiting: Buffer[]
  #sink: ResultSink | undefined
  /** How the stream ended, if that was before `pipe`. */
  #end: 'complete' | Failure | undefined
  #isDone = false
  #bytes: number
  readonly #onOver: ((bytes: number, end: StreamEnd) => void)[] = []
  #tap: ((chunk: Uint8Array) => void) | undefined
  readonly #cut = new Set<string>()
  readonly #late = new Map<string, Map<string, string | Uint8Array>>()
  #editBlock: ((block: Payload) => void) | undefined
  #walk: ResultWalk | undefined

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
  }

  /**
   * Reads the beginning of the response to request `id`. `more`: too few bytes to decide; `undefined`: it must be read whole, since it is no
   * result with `content`, or the member `after` does not come before `content`.
   */
  static begin(bytes: Buffer, id: Id, source: ResultSource, after?: string): StreamedResult | 'more' | undefined {
    const at = findContent(bytes)
    if (at === 'more' || at === undefined || !isUtf8(bytes.subarray(0, at.keyStart))) return at === 'more' ? at : undefined
    const result = new StreamedResult(bytes, at, id, source)
    return after === undefined || result.member(after) !== undefined ? result : undefined
  }

  /** The message, whose rest follows. */
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

  /** Calls back with each content block that may hold a URI, before it is written. */
  editBlocks(edit: (block: Payload) => void): void {
    this.#editBlock = edit
  }

  /** Calls back once, at the end; `bytes`: the received size of the message. */
  onOver(callback: (bytes: number, end: StreamEnd) => void): void {
    this.#onOver.push(callback)
  }

  /** Calls back with all bytes of the message as received from the server. `chunk` is only valid during the call. */
  tap(callback: (chunk: Uint8Array) => void): void {
    callback(this.#before)
    callback(Buffer.from(`${this.bytes.toString('latin1', this.start, this.end - 1)}${this.#separator}`, 'latin1'))
    for (const chunk of this.#waiting) callback(chunk)
    this.#tap = callback
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

  /** Sends the result to `sink` while it is being received. May be called once. */
  pipe(sink: ResultSink): void {
    this.#sink = sink
    const changes = { cut: this.#cut, late: this.#late, editBlock: this.#editBlock }
    const seen = this.members.map(({ key }) => key)
    this.#walk = new ResultWalk(changes, seen, (bytes) => sink.write(bytes))
    const head = join(super.parts())
    const hasMembers = head.length > 2
    sink.write(head.subarray(0, -1))
    sink.write(Buffer.from(`${hasMembers ? ',' : ''}${this.#separator}`, 'latin1'))
    const waiting = this.#waiting
    this.#waiting = []
    // Resumed before the writes, since the waiting chunks may fill the sink, which pauses the source again.
    if (this.#end === undefined) this.#source.resume()
    for (const chunk of waiting) this.#take(chunk)
    if (this.#end === 'complete') this.finish()
    else if (this.#end !== undefined) this.fail(this.#end)
  }

  /** Resolves with the whole result. Rejects with the `Failure` of the stream. */
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

  /** The sink exerts backpressure. */
  pause(): void {
    if (!this.#isDone) this.#source.pause()
  }
  resume(): void {
    if (!this.#isDone) this.#source.resume()
  }

  /** The receiver no longer needs the result. */
  abort(): void {
    if (!this.#isDone) this.#over('aborted')
    this.#source.abort()
  }

  /** More of the message was received. `chunk` is only valid during the call. */
  push(chunk: Buffer): void {
    if (this.#isDone) return
    this.#tap?.(chunk)
    this.#take(chunk)
  }

  #take(chunk: Buffer): void {
    if (this.#isDone) return
    if (this.#walk === undefined) return void this.#waiting.push(Buffer.from(chunk))
    this.#bytes += chunk.length
    try {
      this.#walk.push(chunk)
    } catch (error) {
      if (!(error instanceof ScanError)) throw error
      this.#source.abort()
      this.fail(new Failure('bad_response', `the response is unusable: ${error.message}`))
    }
  }

  /** The server has sent the whole message. */
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

  /** The rest cannot be received. */
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
    for (const callback of this.#onOver) callback(this.#bytes, end)
  }

  /** Checks that the text around the result is the response to the request. Returns the error, if any. */
  #incomplete(): string | undefined {
    const tail = this.#walk?.tail
    if (tail === undefined) return 'it ends in the middle'
    try {
      const { id } = readServerMessage(Buffer.concat([this.#before, Buffer.from('{}'), tail]))
      return id === this.#id ? undefined : `it answers ${id}`
    } catch (error) {
      if (!(error instanceof EnvelopeError)) throw error
      return error.message
    }
  }
}
