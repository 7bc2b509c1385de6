/**
 * Relays one host on a pair of streams to the gateway of another process over a pipe, and to the next one when that ends: the host keeps
 * its pipe and its session (B296).
 *
 *   host ⇄ relay ⇄ gateway           lines in both directions
 *   host ⇄ relay                     no gateway: lines of the host wait; the relay tries to connect until `giveUpMs`
 *   host ⇄ relay ⇄ next gateway      gets the handshake and settings of the host, then the waiting lines
 *   host ⇄ relay ⇄ gateway in here   if there was none in time
 */
import { duplexPair } from 'node:stream'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { HostStreams } from '../../app/environment.ts'
import { pause } from '../../time/pause.ts'
import { LineFramer } from '../../wire/framing/lines.ts'
import { notificationMessage } from '../../wire/message/message.ts'
import { join } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { RELAY } from '../../wire/protocol/relay.ts'
import { cancelledBy, Conversation } from './conversation.ts'

export interface RelayOptions {
  readonly input: Readable
  readonly output: Writable
  /** A pipe to a process that accepts hosts; `undefined`: there is none now. Rejects where no process will accept this one. */
  readonly connect: () => Promise<Duplex | undefined>
  /** Serves in this process. */
  readonly inline: () => Promise<Duplex>
  /** The process is to end. */
  readonly interrupted: AbortSignal
  /** How long a gateway may be missing, and the interval of attempts to connect, in milliseconds. */
  readonly giveUpMs: number
  readonly retryMs: number
  /** Prints a line for the operator. */
  readonly remark: (text: string) => void
}

/** Larger than any message: the limits of gateways are far below. */
const MAX_LINE_BYTES = 512 * 1024 * 1024
/** Bytes that may wait for a gateway before reading from the host is paused. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const NEWLINE = Buffer.from('\n')

/**
 * Serves the host with `first`, if there is one, and with the pipes that follow. Resolves when the host has disconnected and its requests
 * are answered, or on `interrupted`.
 */
export const relay = async (first: Duplex | undefined, options: RelayOptions): Promise<void> => {
  const session = new RelaySession(options)
  if (first !== undefined) await session.serve(first)
  while (!session.isOver) {
    const next = await session.next()
    if (next !== undefined) await session.serve(next)
  }
}

/** A pipe to a gateway in this process, which serves the other end. If it fails, the pipe breaks with its error. */
export const pipeTo = (serve: (streams: HostStreams) => Promise<unknown>): Duplex => {
  const [ours, theirs] = duplexPair()
  serve({ input: theirs, output: theirs }).catch((error: Error) => ours.destroy(error))
  return ours
}

class RelaySession {
  readonly #options: RelayOptions
  readonly #conversation = new Conversation()
  readonly #hostLines: LineFramer
  /** Lines of the host that were sent to no gateway. */
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** The pipe to the gateway that gets lines of the host. */
  #link: Duplex | undefined
  /** The gateway stops: it gets no new work. */
  #isDraining = false
  #hasLeft = false
  #left = new AbortController()
  /** Since when no gateway gets the lines of the host, in milliseconds. */
  #missingSinceMs: number | undefined
  /** Why the latest gateway did not continue the session, or the one in here has failed. */
  #refusal: Error | undefined
  #isInline = false

  constructor(options: RelayOptions) {
    const { input, output, interrupted } = options
    this.#options = options
    this.#hostLines = framer((line) => this.#fromHost(line))
    input.on('data', (chunk: Buffer) => this.#hostLines.push(chunk))
    input.once('end', () => {
      this.#hostLines.end()
      this.#leave()
    })
    input.on('error', () => this.#leave())
    output.on('error', () => this.#leave())
    if (interrupted.aborted) this.#leave()
    else interrupted.addEventListener('abort', () => this.#leave(), { once: true })
  }

  /** The host has disconnected, and none of its requests is pending. */
  get isOver(): boolean {
    return this.#hasLeft && (this.#options.interrupted.aborted || (this.#conversation.isIdle && this.#waiting.length === 0))
  }

  /** Serves the host with this pipe until it ends. */
  async serve(link: Duplex): Promise<void> {
    const closed = new Promise<void>((resolve) => link.once('close', resolve))
    const lines = framer((line) => this.#fromGateway(line, link))
    const tell = (parts: Parts): void => this.#tell(parts)
    link.on('error', (error: Error) => {
      if (this.#isInline) this.#refusal = error
      link.destroy()
    })
    link.once('end', () => (this.#link = undefined))
    link.on('data', (chunk: Buffer) => {
      this.#options.output.cork()
      lines.push(chunk)
      this.#options.output.uncork()
      if (this.#options.output.writableNeedDrain) this.#pauseUntilDrained(link, this.#options.output)
    })
    this.#isDraining = false
    // Before the first gateway there is nothing to send.
    this.#conversation
      .resume((parts) => void link.write(join([...parts, NEWLINE])), tell)
      .then(
        () => this.#open(link),
        (error: Error) => {
          this.#options.remark(error.message)
          this.#refusal = error
          link.destroy()
        },
      )
    await closed
    this.#link = undefined
    this.#conversation.lost(tell)
  }

  /** A pipe to the next gateway; `undefined`: the host disconnected meanwhile. Rejects if the one in here has refused the session or failed. */
  async next(): Promise<Duplex | undefined> {
    const { connect, inline, giveUpMs, remark } = this.#options
    remark('the running process ended; its host waits for the next one')
    const endMs = (this.#missingSinceMs ??= performance.now()) + giveUpMs
    const refusal = this.#refusal
    if (refusal !== undefined && this.#isInline) throw refusal
    // One that has refused the session, such as under load, is not asked again at once.
    if (refusal !== undefined) await this.#pause()
    while (!this.isOver) {
      const link = refusal !== undefined && performance.now() >= endMs ? undefined : await connect()
      if (link !== undefined) {
        remark('attached to the running process again')
        return link
      }
      if (performance.now() >= endMs) {
        remark(`no process of this configuration runs for ${Math.round(giveUpMs / 1_000)} s; serving here`)
        this.#isInline = true
        return inline()
      }
      await this.#pause()
    }
    return undefined
  }

  /** Until the next attempt to connect, or until the host disconnects. */
  #pause(): Promise<boolean> {
    return pause(this.#options.retryMs, this.#hasLeft ? new AbortController().signal : this.#left.signal)
  }

  /** From now on the gateway gets the lines of the host, the waiting ones first. */
  #open(link: Duplex): void {
    if (link.destroyed || link.readableEnded) return
    this.#link = link
    this.#missingSinceMs = undefined
    this.#refusal = undefined
    for (const line of this.#waiting.splice(0)) this.#fromHost(line)
    this.#waitingBytes = 0
    this.#options.input.resume()
    if (this.#hasLeft) link.end()
  }

  #fromHost(line: Buffer): void {
    const link = this.#link
    if (link === undefined || (this.#isDraining && this.#isLeftToNext(line))) return this.#hold(line)
    this.#conversation.fromHost(line)
    link.cork()
    link.write(line)
    const hasRoom = link.write(NEWLINE)
    link.uncork()
    if (!hasRoom) this.#pauseUntilDrained(this.#options.input, link)
  }

  #isLeftToNext(line: Buffer): boolean {
    return this.#conversation.startsWork(line) || cancelledBy(line, this.#waiting) !== -1
  }

  #hold(line: Buffer): void {
    const at = cancelledBy(line, this.#waiting)
    if (at !== -1) {
      const [cancelled] = this.#waiting.splice(at, 1)
      this.#waitingBytes -= cancelled?.length ?? 0
      return
    }
    this.#waiting.push(line)
    this.#waitingBytes += line.length
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#options.input.pause()
  }

  #fromGateway(line: Buffer, link: Duplex): void {
    const end = this.#conversation.fromGateway(line, (parts) => this.#tell(parts))
    if (end === 'host') this.#tell([line])
    else if (end === 'draining') {
      this.#isDraining = true
      link.write(join([...notificationMessage(RELAY.holding), NEWLINE]))
    }
  }

  #tell(parts: Parts): void {
    const { output } = this.#options
    if (output.destroyed || output.writableEnded) return
    for (const part of parts) output.write(part)
    output.write(NEWLINE)
  }

  /** Backpressure: pauses `source` until `sink` has room. */
  #pauseUntilDrained(source: Readable, sink: Writable): void {
    source.pause()
    const goOn = (): void => {
      sink.off('drain', goOn)
      sink.off('close', goOn)
      source.resume()
    }
    sink.on('drain', goOn)
    sink.on('close', goOn)
  }

  #leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#left.abort()
    // The gateway answers pending requests, and ends the pipe.
    this.#link?.end()
  }
}

const framer = (line: (bytes: Buffer) => void): LineFramer =>
  new LineFramer({ line, overflow: () => undefined, discarded: () => undefined }, { maxBytes: MAX_LINE_BYTES })
