/**
 * Decodes bodies that a server encoded although it was asked for `identity`, as CDNs and PHP's output handlers do (BRIDGING 3.22).
 * Decodes piece by piece, so that the caller can count the decoded bytes and stop in the middle of a bomb (T-24).
 */
import { createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'
import type { Transform } from 'node:stream'

export interface DecoderEvents {
  /** A decoded piece, which may be kept. */
  onData(piece: Buffer): void
  /** Everything is decoded, once. */
  onEnd(): void
  /** The bytes are not what the header says, once; nothing comes afterwards. */
  onError(error: Error): void
  /** The decoder has enough to do, or takes more again. */
  onFull(isFull: boolean): void
}

/** `gzip` and `deflate` are told apart by their first bytes. */
const FORMS: Readonly<Record<string, () => Transform>> = {
  gzip: createUnzip,
  'x-gzip': createUnzip,
  deflate: createUnzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

export class ContentDecoder {
  readonly #stream: Transform

  private constructor(stream: Transform, events: DecoderEvents) {
    this.#stream = stream
    stream.on('data', (piece: Buffer) => events.onData(piece))
    stream.once('end', () => events.onEnd())
    stream.once('error', (error) => events.onError(error))
    stream.on('drain', () => events.onFull(false))
    this.#onFull = () => events.onFull(true)
  }

  readonly #onFull: () => void

  /** `undefined`: an encoding that is not known, or several. `encoding`: the value of `Content-Encoding`. */
  static of(encoding: string, events: DecoderEvents): ContentDecoder | undefined {
    const make = Object.hasOwn(FORMS, encoding.toLowerCase()) ? FORMS[encoding.toLowerCase()] : undefined
    return make && new ContentDecoder(make(), events)
  }

  /** Takes encoded bytes, which are lent. */
  push(chunk: Buffer): void {
    if (!this.#stream.destroyed && !this.#stream.write(Buffer.from(chunk))) this.#onFull()
  }

  /** No more encoded bytes come. */
  end(): void {
    this.#stream.end()
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  /** Decodes no more. */
  destroy(): void {
    this.#stream.removeAllListeners()
    this.#stream.on('error', () => undefined)
    this.#stream.destroy()
  }
}
