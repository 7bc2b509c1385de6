/**
 * A channel over the pipes of a process that we start: one message per line on its stdin and stdout ([2026-07-28
 * basic/transports/stdio]); what it prints on stderr is kept for people and never taken as failure (B228).
 */
import { Failure } from '../../wire/message/failure.ts'
import { BodyPool } from '../body-pool.ts'
import type { Channel, ChannelEvents, Outgoing } from '../channel/channel.ts'
import type { Launcher } from './launcher.ts'
import { LineWriter } from '../pipe/line-writer.ts'
import { PipeReader } from '../pipe/pipe-reader.ts'
import type { PipeReaderOptions } from '../pipe/pipe-reader.ts'
import { readInPlace } from '../read-in-place.ts'
import type { Launch, ProcessTree, StderrOptions } from './process-group.ts'

export interface ChildProcessOptions extends PipeReaderOptions {
  readonly launch: Launch
  readonly launcher: Launcher
  /** Where long lines are. */
  readonly bodies: BodyPool
  /** Bytes of messages that the process has not read yet. A request beyond waits. */
  readonly maxQueuedBytes: number
  /** How long such a request waits; then it is lost as `overloaded`. */
  readonly queueWaitMs: number
  /** What may wait before `send` says that the process is slow. */
  readonly slowBytes: number
  /** A process that reads nothing for so long is given up. */
  readonly stallMs: number
  /** After the exit, how long stdout is read to its end. */
  readonly drainMs: number
  /** Time for the process to exit after stdin or stdout was closed. */
  readonly exitMs: number
  /** A line of stderr, or one of stdout that is no message; at most 100 a second, and how many were skipped before it. */
  readonly onStderr?: (line: string, skipped: number) => void
  readonly stderr?: StderrOptions
}

const MIB = 1024 * 1024
/** So many lines that are no messages within that time mean that the process is beyond use (F-05). */
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
  readonly #options: ChildProcessOptions
  readonly #settle: (failure: Failure | undefined) => void
  #tree: ProcessTree | undefined
  #reader: PipeReader | undefined
  #writer: LineWriter | undefined
  #events: ChannelEvents | undefined
  /** By id, oldest first. */
  readonly #waiting = new Map<number, WaitingRequest>()
  #halfClosed: NodeJS.Timeout | undefined
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

  /** The process, once it is spawned: its pid, age, exit and last words. */
  get process(): Pick<ProcessTree, 'pid' | 'startedAt' | 'exit' | 'outputBytes' | 'stderrTail'> | undefined {
    return this.#tree
  }

  /** Resolves when the process is spawned, which says nothing about what it is. Rejects with `spawn_failed`. */
  open(events: ChannelEvents): Promise<void> {
    return (this.#opening ??= this.#open(events))
  }

  /**
   * A request that does not fit into the write queue waits for the process to read; it is lost as `overloaded` after `queueWaitMs`. Throws
   * `Failure('overloaded')` for any other message that does not fit, and `Failure('exited')` when there is no process.
   */
  send(message: Outgoing): boolean {
    if (this.#writer === undefined || this.#hasEnded || this.#closing !== undefined)
      throw new Failure('exited', `${this.#options.launch.command} is not running`, { executed: 'no' })
    const { id } = message
    const taken = id !== undefined && this.#waiting.size > 0 ? 'full' : this.#write(this.#writer, message)
    if (taken !== 'full') return taken === 'ok'
    if (id === undefined) throw this.#queueFull()
    this.#waiting.set(id, { message, timer: setTimeout(() => this.#lose(id, this.#queueFull()), this.#options.queueWaitMs) })
    return false
  }

  abandon(id: number): void {
    if (!this.#remove(id)) this.#reader?.forget(id)
  }

  pause(id: number | undefined): (() => void) | undefined {
    const stdout = this.#tree?.stdout
    if (id !== undefined || stdout === undefined || this.#hasEnded) return undefined
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
      // Cast: a launcher throws nothing else.
      this.#end(error as Failure)
      throw error
    }
  }

  #write(writer: LineWriter, message: Outgoing): 'ok' | 'slow' | 'full' {
    const taken = writer.write(message.parts)
    if (taken !== 'full' && message.id !== undefined) this.#reader?.expect(message.id, message.isRelayed)
    return taken
  }

  /** The process has read: writes the requests that fit now, oldest first. */
  readonly #writeWaiting = (): void => {
    for (const [id, { message }] of this.#waiting) {
      if (this.#writer === undefined || this.#write(this.#writer, message) === 'full') return
      this.#remove(id)
    }
  }

  /** Removes a waiting request; false: none of this id waits. */
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
    const unparsable = (reason: string, sample: string): void => {
      events.unparsable(reason, sample)
      // A banner or a line of a log. What begins with a brace was meant as a message, and may hold data of one.
      if (!sample.startsWith('{')) tree.printed(sample)
      if (this.#countUnparsable() >= MAX_UNPARSABLE) this.#giveUp(tree, `wrote ${MAX_UNPARSABLE} lines that are no messages`)
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

  /** Lines of the last ten seconds that were no messages, this one included. */
  #countUnparsable(): number {
    const nowMs = performance.now()
    this.#unparsableMs = [...this.#unparsableMs.filter((at) => nowMs - at < UNPARSABLE_WINDOW_MS), nowMs]
    return this.#unparsableMs.length
  }

  /** Answers that were written before the exit come first (F-09). */
  async #watch(tree: ProcessTree): Promise<void> {
    await tree.exited
    tree.stdout.resume()
    await tree.drained(this.#options.drainMs)
    this.#end(this.#closing === undefined ? tree.failure() : undefined)
    tree.release()
  }

  /** Stdin or stdout is closed. Waits for the exit, which says why; a process that lives on is ended. */
  #expectExit(tree: ProcessTree, what: string): void {
    if (tree.exit !== undefined || this.#closing !== undefined || this.#hasEnded) return
    this.#halfClosed ??= setTimeout(() => {
      if (tree.exit === undefined) this.#giveUp(tree, what)
    }, this.#options.exitMs)
  }

  /** The owner is told at once; the process is stopped in its own time, for which `close` waits. */
  #giveUp(tree: ProcessTree, what: string): void {
    this.#end(new Failure('lost', `${this.#options.launch.command} ${what}`, { retryable: true }))
    void tree.stop()
  }

  /** The one end; settles `closed`. */
  #end(failure: Failure | undefined): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    clearTimeout(this.#halfClosed)
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
