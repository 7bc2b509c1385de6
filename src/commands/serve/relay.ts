/**
 * One host on a pair of streams, served by a gateway of another process over a pipe, and by the one after it when that ends: the host
 * keeps its pipe and its session (B296).
 *
 *   host ⇄ relay ⇄ gateway          lines both ways
 *   host ⇄ relay                    no gateway: lines of the host wait; connecting is tried until `giveUpMs`
 *   host ⇄ relay ⇄ next gateway     introduced, told what the host had set; then what waited
 *   host ⇄ relay ⇄ gateway in here  where none came in time
 */
import { once } from 'node:events'
import type { Duplex, Readable, Writable } from 'node:stream'
import { LineFramer } from '../../wire/framing/lines.ts'
import { notificationMessage } from '../../wire/message/message.ts'
import { join } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { RELAY } from '../../wire/protocol/relay.ts'
import { Conversation } from './conversation.ts'

export interface RelayOptions {
  readonly input: Readable
  readonly output: Writable
  /** A pipe to a process that takes hosts; `undefined`: there is none now. Rejects where no process will take this one. */
  readonly connect: () => Promise<Duplex | undefined>
  /** Serves in this process. */
  readonly inline: () => Promise<Duplex>
  /** The process is to end. */
  readonly interrupted: AbortSignal
  /** How long a gateway may be away, and how often it is looked for, in milliseconds. */
  readonly giveUpMs: number
  readonly retryMs: number
  /** Tells the operator. */
  readonly remark: (text: string) => void
}

/** No message is larger than this: the limits of gateways are far below. */
const MAX_LINE_BYTES = 512 * 1024 * 1024
/** What may wait for a gateway before the host is not read any more. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const NEWLINE = Buffer.from('\n')

/**
 * Serves the host with `first`, if there is one, and with the pipes that follow. Resolves when the host has left and what it asked is
 * answered, or on `interrupted`.
 */
export const relay = async (first: Duplex | undefined, options: RelayOptions): Promise<void> => {
  const relaying = new Relaying(options)
  if (first !== undefined) await relaying.serve(first)
  while (!relaying.isOver) {
    const next = await relaying.next()
    if (next !== undefined) await relaying.serve(next)
  }
}

class Relaying {
  readonly #options: RelayOptions
  readonly #conversation = new Conversation()
  readonly #hostLines: LineFramer
  /** Lines of the host that no gateway has been given. */
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Takes lines of the host. */
  #link: Duplex | undefined
  /** Its gateway stops: it is given no new work. */
  #isDraining = false
  #hasLeft = false
  #left = new AbortController()
  #isFirst = true

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

  /** The host has left, and there is nothing to be done for it any more. */
  get isOver(): boolean {
    return this.#hasLeft && (this.#options.interrupted.aborted || (this.#conversation.isIdle && this.#waiting.length === 0))
  }

  /** Serves the host with this pipe until it ends. */
  async serve(link: Duplex): Promise<void> {
    const closed = new Promise<void>((resolve) => link.once('close', resolve))
    const lines = framer((line) => this.#fromGateway(line, link))
    const tell = (parts: Parts): void => this.#tell(parts)
    link.on('error', () => link.destroy())
    link.once('end', () => (this.#link = undefined))
    link.on('data', (chunk: Buffer) => {
      this.#options.output.cork()
      lines.push(chunk)
      this.#options.output.uncork()
      if (this.#options.output.writableNeedDrain) this.#rest(link, this.#options.output)
    })
    this.#isDraining = false
    if (this.#isFirst) this.#open(link)
    else
      this.#conversation
        .takeUp((parts) => void link.write(join([...parts, NEWLINE])), tell)
        .then(
          () => this.#open(link),
          (error: Error) => {
            this.#options.remark(error.message)
            link.destroy()
          },
        )
    this.#isFirst = false
    await closed
    this.#link = undefined
    this.#conversation.lost(tell)
  }

  /** A pipe to the next gateway; `undefined`: the host left while it was looked for. */
  async next(): Promise<Duplex | undefined> {
    const { connect, inline, giveUpMs, retryMs, remark } = this.#options
    remark('the running process ended; its host waits for the next one')
    const endMs = performance.now() + giveUpMs
    while (!this.isOver) {
      const link = await connect()
      if (link !== undefined) {
        remark('attached to the running process again')
        return link
      }
      if (performance.now() >= endMs) {
        remark(`no process of this configuration runs for ${Math.round(giveUpMs / 1_000)} s; serving here`)
        return inline()
      }
      await Promise.race([new Promise((resolve) => setTimeout(resolve, retryMs)), this.#leaving()])
    }
    return undefined
  }

  async #leaving(): Promise<void> {
    if (this.#hasLeft) await new Promise(() => undefined)
    await once(this.#left.signal, 'abort')
  }

  /** From now on the gateway takes lines of the host: first those that waited. */
  #open(link: Duplex): void {
    if (link.destroyed || link.readableEnded) return
    this.#link = link
    for (const line of this.#waiting.splice(0)) this.#fromHost(line)
    this.#waitingBytes = 0
    this.#options.input.resume()
    if (this.#hasLeft) link.end()
  }

  #fromHost(line: Buffer): void {
    const link = this.#link
    if (link === undefined || (this.#isDraining && this.#conversation.asks(line))) return this.#hold(line)
    this.#conversation.fromHost(line)
    link.cork()
    link.write(line)
    const isTaken = link.write(NEWLINE)
    link.uncork()
    if (!isTaken) this.#rest(this.#options.input, link)
  }

  #hold(line: Buffer): void {
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

  /** Reads no more until the other side has taken what there is. */
  #rest(source: Readable, sink: Writable): void {
    source.pause()
    const goOn = (): void => {
      source.resume()
    }
    sink.once('drain', goOn)
    sink.once('close', goOn)
  }

  #leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#left.abort()
    // The gateway answers what it was asked, and ends the pipe.
    this.#link?.end()
  }
}

const framer = (line: (bytes: Buffer) => void): LineFramer =>
  new LineFramer({ line, overflow: () => undefined, discarded: () => undefined }, { maxBytes: MAX_LINE_BYTES })
