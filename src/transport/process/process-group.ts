/**
 * A downstream server's process and everything it starts: one process group, spawned, watched and stopped as one.
 *
 * Used for servers that communicate over their pipes, and for servers that are started here but communicate at their URL. The
 * surprise: it waits for `exit` only, never for `close`, which is not emitted while a grandchild holds a pipe (F-01).
 */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { Failure } from '../../wire/message/failure.ts'
import { OutputTail, statedReason } from './output-tail.ts'

/** The process to start. */
export interface Launch {
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment (T-13). Only Node itself adds a variable to it (`NODE_V8_COVERAGE`). */
  readonly env: Readonly<Record<string, string>>
  /** Absolute path. */
  readonly cwd: string
}

export interface StopTimes {
  /** From the end of stdin to SIGTERM. */
  readonly eofMs: number
  /** From SIGTERM to SIGKILL. */
  readonly termMs: number
  /** From SIGKILL until the stop no longer waits for the exit. */
  readonly killMs: number
}

export const DEFAULT_STOP_TIMES: StopTimes = { eofMs: 2000, termMs: 3000, killMs: 1000 }

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Limits of the kept part of stderr. */
export interface StderrOptions {
  readonly maxBytes: () => number
  /** An older line was dropped in favour of newer ones. */
  readonly onDropped: () => void
}

export interface ProcessTreeOptions {
  /** For messages: the command as configured. */
  readonly name: string
  /** Whether the process leads its own group. False on Windows only. */
  readonly isGroup: boolean
  readonly stop: StopTimes
  /** A line of stderr, or a line of stdout that is not a message, and how many were skipped before it. At most 100 a second. */
  readonly onStderr?: (line: string, skipped: number) => void
  readonly stderr?: StderrOptions
}

/** Output of the wrapper of a `Launcher` if it could not start the command. */
const WRAPPER_FAILED = /^setpriv: failed to execute /

export class ProcessTree {
  readonly pid: number
  /** Wall clock, ms. */
  readonly startedAt = Date.now()
  readonly stdin: Writable
  /** Read by the owner, or handed to `drainStdout`. */
  readonly stdout: Readable
  /** Resolves when the process has exited, even if another process still holds its pipes. */
  readonly exited: Promise<Exit>
  readonly #child: ChildProcessWithoutNullStreams
  readonly #options: ProcessTreeOptions
  readonly #output: OutputTail
  #exit: Exit | undefined
  #stopping: Promise<void> | undefined

  /** `child` has been spawned. */
  constructor(child: ChildProcessWithoutNullStreams, pid: number, options: ProcessTreeOptions) {
    this.#child = child
    this.#options = options
    this.pid = pid
    this.stdin = child.stdin
    this.stdout = child.stdout
    this.#output = new OutputTail({ ...options.stderr, ...(options.onStderr && { onLine: options.onStderr }) })
    this.#keep(child.stderr)
    // A broken pipe is reported by the exit, or by the owner of stdin.
    for (const stream of [child.stdin, child.stdout, child.stderr, child]) stream.on('error', () => {})
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#exit = { code, signal }
        this.#signal('SIGKILL')
        resolve(this.#exit)
      })
    })
  }

  /** How it ended; `undefined` while it runs. */
  get exit(): Exit | undefined {
    return this.#exit
  }

  /** Bytes it has written to stdout and stderr so far. */
  get outputBytes(): number {
    return bytesRead(this.#child.stdout) + bytesRead(this.#child.stderr)
  }

  /** The last lines of stderr, oldest first. */
  stderrTail(count: number): string[] {
    return this.#output.last(count)
  }

  /** Keeps a line of stdout with the lines of stderr. For a server that printed it on stdout between its messages. */
  printed(line: string): void {
    this.#output.add(line)
  }

  /** Treats stdout like stderr. For a server that communicates at its URL. */
  drainStdout(): void {
    this.#keep(this.stdout)
  }

  /** After the exit: resolves when stdout and stderr have been read to their ends, at the latest after `ms`. */
  async drained(ms: number): Promise<void> {
    await within(ms, Promise.all([ended(this.stdout), ended(this.#child.stderr)]))
  }

  /** Why it ended, once it has: `spawn_failed` if the command could not even be executed. */
  failure(): Failure {
    const lines = this.stderrTail(REASON_LINES)
    const last = lines.at(-1) ?? ''
    if (WRAPPER_FAILED.test(last))
      return new Failure('spawn_failed', `spawn ${this.#options.name}: ${last.replace(WRAPPER_FAILED, '')}`, { executed: 'no' })
    const { code, signal } = this.#exit ?? { code: null, signal: null }
    const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
    const reason = statedReason(lines)
    return new Failure('exited', `${this.#options.name} ${how}${reason === undefined ? '' : `: ${reason}`}`, { retryable: true })
  }

  /**
   * Ends stdin, then sends SIGTERM and SIGKILL to the whole group (B229, F-10). Resolves when the process has exited, at the latest
   * `killMs` after SIGKILL.
   */
  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop())
  }

  /** Kills the whole group without waiting for it. */
  kill(): void {
    this.#signal('SIGKILL')
  }

  /** Closes the pipes. A process outside of the group may still hold them. */
  release(): void {
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream.destroy()
  }

  #keep(stream: Readable): void {
    const pipe = this.#output.pipe()
    stream.on('data', (chunk: Buffer) => pipe.push(chunk))
    stream.once('end', () => pipe.end())
  }

  async #stop(): Promise<void> {
    const { eofMs, termMs, killMs } = this.#options.stop
    this.stdin.end()
    if (!(await within(eofMs, this.exited))) {
      this.#signal('SIGTERM')
      if (!(await within(termMs, this.exited))) {
        this.#signal('SIGKILL')
        await within(killMs, this.exited)
      }
    }
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(this.#options.isGroup ? -this.pid : this.pid, signal)
    } catch {
      // No process of the group is left.
    }
  }
}

/** Number of lines of stderr that are searched for the reason of the exit. A stack trace fits. */
const REASON_LINES = 60

/** Resolves with whether `work` was done within `ms`. */
const within = async (ms: number, work: Promise<unknown>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)))
  const done = await Promise.race([late, work.then(() => true)])
  clearTimeout(timer)
  return done
}

/** The pipes of a child are sockets, which count bytes. The type of `spawn` does not declare this. */
const bytesRead = (pipe: Readable): number => (pipe instanceof Socket ? pipe.bytesRead : 0)

const ended = (stream: Readable): Promise<void> =>
  new Promise((resolve) => {
    if (stream.readableEnded || stream.destroyed) resolve()
    else stream.once('end', resolve).once('close', resolve)
  })
