/**
 * A channel over the pipes of a process that the gateway starts: one message per line on its stdin and stdout ([2026-07-28
 * basic/transports/stdio]). Lines on stderr are kept as diagnostics and never count as a failure (B228).
 */
import { Failure } from '../../wire/message/failure.ts'
import type { Id } from '../../wire/message/envelope.ts'
import { BodyPool } from '../body-pool.ts'
import type { Channel, ChannelEvents, ChannelLimits, Outgoing } from '../channel/channel.ts'
import type { Launcher } from './launcher.ts'
import { LineWriter } from '../pipe/line-writer.ts'
import { PipeReader } from '../pipe/pipe-reader.ts'
import type { PipeReaderOptions } from '../pipe/pipe-reader.ts'
import { readInPlace } from '../read-in-place.ts'
import type { Launch, ProcessTree, StderrOptions } from './process-group.ts'

export interface ChildProcessOptions extends PipeReaderOptions {
  readonly launch: Launch
  readonly launcher: Launcher
  /** Memory of long lines. */
  readonly bodies: BodyPool
  /** Maximum bytes of messages that the process has not read yet. A request over it waits. */
  readonly maxQueuedBytes: number
  /** How long such a request waits; then it is lost as `overloaded`. */
  readonly queueWaitMs: number
  /** Queued bytes above which `send` returns false. */
  readonly slowBytes: number
  /** A process that reads nothing for this time is stopped. */
  readonly stallMs: number
  /** How long stdout is read after the exit. */
  readonly drainMs: number
  /** Time for the process to exit after stdin or stdout was closed. */
  readonly exitMs: number
  /** A line of stderr, or a line of stdout that is not a message, and how many were skipped before it. At most 100 a second. */
  readonly onStderr?: (line: string, skipped: number) => void
  readonly stderr?: StderrOptions
}

const MIB = 1024 * 1024
/** A process is unrecoverable after this number of lines that are not messages within `UNPARSABLE_WINDOW_MS` (F-05). */
const MAX_UNPARSABLE = 100
const UNPARSABLE_WINDOW_MS = 10_000

export const DEFAULT_CHILD_PROCESS: Omit<ChildProcessOptions, 'launch' | 'launcher' | 'bodies' | 'onStderr' | 'stderr'> = {
  maxMessageBytes: 16 * MIB,
  unclaimedMs: 5000,
  maxQueuedBytes: 4 * MIB,
  queueWaitMs: 10_000,
  slowBytes: MIB,
  stallMs: 30_000,
  drainMs: 200,
  exitMs: 1000,
}

/** A request that does not fit into the write queue yet. */
interface WaitingRequest {
  readonly message: Outgoing
  readonly timer: NodeJS.Timeout
}

export class ChildProcessChannel implements Channel {
  readonly kind = 'pipe'
  readonly closed: Promise<Failure | undefined>
  #options: ChildProcessOptions
  readonly #settle: (failure: Failure | undefined) => void
  #tree: ProcessTree | undefined
  #reader: PipeReader | undefined
  #writer: LineWriter | undefined
  #events: ChannelEvents | undefined
  /** By id, oldest first. */
  readonly #waiting = new Map<number, WaitingRequest>()
  #exitTimer: NodeJS.Timeout | undefined
  #opening: Promise<void> | undefined
  #closing: Promise<void> | undefined
  #hasEnded = false
  #unparsableMs: number[] = []

  constructor(options: Pick<ChildProcessOptions, 'launch' | 'launcher'> & Partial<ChildProcessOptions>) {
    this.#options = { ...DEFAULT_CHILD_PROCESS, bodies: new BodyPool(), ...options }
    const { promise, resolve } = Promise.withResolvers<Failure | undefined>()
    this.closed = promise
    this.#settle = resolve
  }

  /** The process, once it is spawned: its pid, start time, exit and output. */
  get process(): Pick<ProcessTree, 'pid' | 'startedAt' | 'exit' | 'outputBytes' | 'stderrTail'> | undefined {
    return this.#tree
  }

  /** Resolves when the process is spawned; the process may still not be an MCP server. Rejects with `spawn_failed`. */
  open(events: ChannelEvents): Promise<void> {
    return (this.#opening ??= this.#open(events))
  }

  /**
   * A request that does not fit into the write queue waits for the process to read; it is lost as `overloaded` after `queueWaitMs`. One that
   * comes after the exit, while stdout is still read, is lost as `exited`, not executed. Throws `Failure('overloaded')` for any other message
   * that does not fit, and `Failure('exited')` if the process is not running.
   */
  send(message: Outgoing): boolean {
    if (this.#writer === undefined || this.#hasEnded || this.#closing !== undefined)
      throw new Failure('exited', `${this.#options.launch.command} is not running`, { executed: 'no' })
    const { id } = message
    const written = id !== undefined && this.#waiting.size > 0 ? 'full' : this.#write(this.#writer, message)
    if (written !== 'full') return written === 'ok'
    if (id === undefined) throw this.#queueFull()
    this.#waiting.set(id, { message, timer: setTimeout(() => this.#lose(id, this.#queueFull()), this.#options.queueWaitMs) })
    return false
  }

  withdraw(id: number): boolean {
    return this.#remove(id)
  }

  abandon(id: number): void {
    if (!this.#remove(id)) this.#reader?.forget(id)
  }

  resize({ maxMessageBytes, maxQueuedBytes }: ChannelLimits): void {
    this.#options = { ...this.#options, maxMessageBytes, maxQueuedBytes }
    this.#reader?.resize(maxMessageBytes)
    this.#writer?.resize(maxQueuedBytes)
    this.#writeWaiting()
  }

  pause(id: number | undefined): (() => void) | undefined {
    const tree = this.#tree
    // After the exit little is left to read, and the time for it is short.
    if (id !== undefined || tree === undefined || tree.exit !== undefined || this.#hasEnded) return undefined
    const { stdout } = tree
    stdout.pause()
    return () => void stdout.resume()
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #open(events: ChannelEvents): Promise<void> {
    const { launcher, launch, onStderr, stderr } = this.#options
    try {
      if (this.#closing !== undefined) throw new Failure('exited', 'the channel was closed', { executed: 'no' })
      this.#tree = await launcher(launch, { ...(onStderr && { onStderr }), ...(stderr && { stderr }) })
      this.#connect(this.#tree, events)
    } catch (error) {
      // Cast: a launcher throws only `Failure`.
      this.#end(error as Failure)
      throw error
    }
  }

  #write(writer: LineWriter, message: Outgoing): 'ok' | 'slow' | 'full' {
    // After the exit, or behind a broken pipe, nothing is read any more: a request waits for the end of the channel.
    if (message.id !== undefined && this.#tree?.stdin.writable !== true) return 'full'
    const written = writer.write(message.parts)
    if (written !== 'full' && message.id !== undefined) this.#reader?.expect(message.id, message.isRelayed)
    return written
  }

  /** The process has read: writes the requests that fit now, oldest first. */
  readonly #writeWaiting = (): void => {
    for (const [id, { message }] of this.#waiting) {
      if (this.#writer === undefined || this.#write(this.#writer, message) === 'full') return
      this.#remove(id)
    }
  }

  /** Removes a waiting request; false: there is none with this id. */
  #remove(id: number): boolean {
    clearTimeout(this.#waiting.get(id)?.timer)
    return this.#waiting.delete(id)
  }

  #lose(id: number, failure: Failure): void {
    this.#remove(id)
    this.#events?.lost(id, failure)
  }

  #queueFull(): Failure {
    const why = `limits.write_queue (${this.#options.maxQueuedBytes} bytes) reached: the server has not read what was sent before`
    return new Failure('overloaded', why, {
      executed: 'no',
      retryable: true,
      retryAfterMs: 1_000,
      limit: 'limits.write_queue',
    })
  }

  #connect(tree: ProcessTree, events: ChannelEvents): void {
    this.#events = events
    const { maxQueuedBytes, slowBytes, stallMs } = this.#options
    const unparsable = (reason: string, sample: string, requestId?: Id): void => {
      events.unparsable(reason, sample, requestId)
      // A banner or a log line. A line that begins with a brace is a broken message and may contain its data.
      if (!sample.startsWith('{')) tree.printed(sample)
      if (this.#countUnparsable() >= MAX_UNPARSABLE) this.#giveUp(tree, `wrote ${MAX_UNPARSABLE} lines that are not messages`)
    }
    const reader = new PipeReader(
      {
        receive: (message, during) => events.receive(message, during),
        lost: (id, failure) => events.lost(id, failure),
        unparsable,
      },
      this.#options,
      this.#options.bodies,
    )
    const onStall = (): void => this.#giveUp(tree, `read nothing for ${stallMs / 1000} s`)
    this.#reader = reader
    this.#writer = new LineWriter(tree.stdin, { maxQueuedBytes, slowBytes, stallMs, onStall, onTaken: this.#writeWaiting })
    if (readInPlace(tree.stdout, this.#options.bodies.reads, (bytes) => reader.push(bytes, true)) === undefined)
      tree.stdout.on('data', (chunk: Buffer) => reader.push(chunk))
    tree.stdout.once('end', () => {
      reader.end()
      this.#expectExit(tree, 'closed its stdout')
    })
    tree.stdin.once('error', () => this.#expectExit(tree, 'closed its stdin'))
    void this.#watch(tree)
  }

  /** Number of lines in the last ten seconds that were not messages, including this one. */
  #countUnparsable(): number {
    const nowMs = performance.now()
    this.#unparsableMs = [...this.#unparsableMs.filter((at) => nowMs - at < UNPARSABLE_WINDOW_MS), nowMs]
    return this.#unparsableMs.length
  }

  /** Responses that were written before the exit are read first (F-09). */
  async #watch(tree: ProcessTree): Promise<void> {
    await tree.exited
    tree.stdout.resume()
    await tree.drained(this.#options.drainMs)
    this.#end(this.#closing === undefined ? tree.failure() : undefined)
    tree.release()
  }

  /** Stdin or stdout is closed. Waits for the exit, which has the reason. A process that does not exit is stopped. */
  #expectExit(tree: ProcessTree, what: string): void {
    if (tree.exit !== undefined || this.#closing !== undefined || this.#hasEnded) return
    this.#exitTimer ??= setTimeout(() => {
      if (tree.exit === undefined) this.#giveUp(tree, what)
    }, this.#options.exitMs)
  }

  /** Reports the failure at once, and stops the process in the background. `close` waits for the stop. */
  #giveUp(tree: ProcessTree, what: string): void {
    this.#end(new Failure('lost', `${this.#options.launch.command} ${what}`, { retryable: true }))
    void tree.stop()
  }

  /** Ends the channel once; settles `closed`. */
  #end(failure: Failure | undefined): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    clearTimeout(this.#exitTimer)
    this.#writer?.dispose()
    this.#reader?.[Symbol.dispose]()
    const unsent = failure ?? new Failure('shutting_down', 'the channel was closed')
    for (const id of this.#waiting.keys())
      this.#lose(id, new Failure(unsent.kind, unsent.message, { ...unsent.facts, executed: 'no' }))
    this.#settle(failure)
  }

  async #close(): Promise<void> {
    await this.#opening?.catch(() => {})
    this.#writer?.flush()
    await this.#tree?.stop()
    if (this.#tree?.exit === undefined) this.#end(undefined)
    await this.closed
    this.#tree?.release()
  }
}
