/**
 * Decodes bodies that a server encoded although the request accepts only `identity`, as CDNs and PHP's output handlers do (BRIDGING 3.22).
 * Decodes piece by piece, so that the caller can count the decoded bytes and stop at a decompression bomb (T-24).
 */
import { createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'
import type { Transform } from 'node:stream'
import { ownValue } from '../../../values/own-value.ts'

export interface DecoderEvents {
  /** A decoded piece. The recipient may keep it. */
  onData(piece: Buffer): void
  /** Everything is decoded. Called once. */
  onEnd(): void
  /** The bytes do not match the header. Called once, as the last event. */
  onError(error: Error): void
  /** The input buffer of the decoder is full, or (`false`) accepts more again. */
  onFull(isFull: boolean): void
}

/** `createUnzip` distinguishes `gzip` and `deflate` by their first bytes. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createUnzip,
  'x-gzip': createUnzip,
  deflate: createUnzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

export class ContentDecoder {
  readonly #stream: Transform
  readonly #events: DecoderEvents
  #isEmpty = true

  private constructor(stream: Transform, events: DecoderEvents) {
    this.#stream = stream
    this.#events = events
    stream.on('data', (piece: Buffer) => events.onData(piece))
    stream.once('end', () => events.onEnd())
    stream.once('error', (error) => events.onError(error))
    stream.on('drain', () => events.onFull(false))
  }

  /** `undefined`: an unsupported encoding, or several. `encoding`: the value of `Content-Encoding`. */
  static of(encoding: string, events: DecoderEvents): ContentDecoder | undefined {
    const make = ownValue(DECODERS, encoding.toLowerCase())
    return make && new ContentDecoder(make(), events)
  }

  /** Decodes these bytes, which are valid only during the call. */
  push(chunk: Buffer): void {
    this.#isEmpty = false
    if (!this.#stream.destroyed && !this.#stream.write(Buffer.from(chunk))) this.#events.onFull(true)
  }

  /** All encoded bytes were pushed. No bytes are an empty body in every encoding. */
  end(): void {
    if (this.#isEmpty) this.#events.onEnd()
    else this.#stream.end()
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  /** Stops decoding. */
  destroy(): void {
    this.#stream.removeAllListeners()
    this.#stream.on('error', () => undefined)
    this.#stream.destroy()
  }
}
