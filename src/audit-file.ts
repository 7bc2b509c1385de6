/**
 * The file of the audit log. At most one write is in progress, and further lines wait in memory. A line that cannot be written is tried
 * again until the memory limit; lost lines are counted, and the next line contains their number (`dropped`).
 */
import type { Log } from './values/log.ts'
import { open as openFile } from 'node:fs/promises'
import { asError } from './values/as-error.ts'
import { ConfigError } from './config/syntax/problems.ts'
import type { AuditSink } from './gateway/audit.ts'

export interface AuditFileOptions {
  /** Absolute path. */
  readonly file: string
  /** `refuse`: calls are refused while the file cannot be written. `drop`: calls continue, and lines are lost. */
  readonly onFailure: 'refuse' | 'drop'
}

/** The operations on a file that are needed; `write` appends. */
export interface AppendHandle {
  write(bytes: Uint8Array, offset: number): Promise<{ readonly bytesWritten: number }>
  close(): Promise<void>
}

/** The state for `ps`. */
export interface AuditState {
  readonly file: string
  /** Since the start. */
  readonly written: number
  readonly dropped: number
  /** Lines that are not in the file yet. */
  readonly waiting: number
  /** Why it cannot be written now. */
  readonly error: string | undefined
}

/** Above this, calls are refused (`refuse`); twice as much may wait, so that open calls can end. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024
const RETRY_MS = 1_000
/** How long the end of the process waits for the last lines. */
const LAST_WRITE_MS = 2_000
const LINE_END = 0x0a

export class AuditFile implements AuditSink, AsyncDisposable {
  readonly #options: AuditFileOptions
  readonly #log: Pick<Log, 'info' | 'error'>
  readonly #open: (file: string) => Promise<AppendHandle>
  #handle: AppendHandle
  #lines: string[] = []
  #waitingBytes = 0
  /** The batch that is being written; `#offset` bytes of it are. */
  #batch: Buffer | undefined
  #batchBytes = 0
  #batchLines = 0
  #offset = 0
  #written = 0
  #dropped = 0
  #unsaid = 0
  #error: string | undefined
  #retry: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #isScheduled = false

  private constructor(
    options: AuditFileOptions,
    handle: AppendHandle,
    log: Pick<Log, 'info' | 'error'>,
    open: (file: string) => Promise<AppendHandle>,
  ) {
    this.#options = options
    this.#handle = handle
    this.#log = log
    this.#open = open
  }

  /** Rejects with `ConfigError` if the file cannot be opened. */
  static async open(options: AuditFileOptions, log: Pick<Log, 'info' | 'error'>, open = openForAppending): Promise<AuditFile> {
    return new AuditFile(options, await open(options.file).catch(explain(options.file)), log, open)
  }

  get trouble(): string | undefined {
    if (this.#options.onFailure === 'drop') return undefined
    return this.#error ?? (this.#waitingBytes > MAX_WAITING_BYTES ? 'the disk is too slow' : undefined)
  }

  get state(): AuditState {
    const waiting = this.#lines.length + this.#batchLines
    return { file: this.#options.file, written: this.#written, dropped: this.#dropped, waiting, error: this.#error }
  }

  write(line: string): void {
    if (this.#waitingBytes > 2 * MAX_WAITING_BYTES) return this.#drop()
    const said = this.#unsaid === 0 ? line : `{"dropped":${this.#unsaid},${line.slice(1)}`
    this.#unsaid = 0
    this.#lines.push(said)
    this.#waitingBytes += said.length
    if (this.#isScheduled) return
    this.#isScheduled = true
    // All lines of one turn of the event loop are written together.
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#error === undefined) this.#flush()
    })
  }

  /** Reopens the file by its name, after rotation renamed it. Rejects with `ConfigError` and keeps the old file. */
  async reopen(): Promise<void> {
    const handle = await this.#open(this.#options.file).catch(explain(this.#options.file))
    await this.#writing
    const old = this.#handle
    this.#handle = handle
    // A line of which the other file has only a part is written again as a whole.
    if (this.#batch !== undefined) this.#offset = this.#batch.subarray(0, this.#offset).lastIndexOf(LINE_END) + 1
    await old.close().catch(() => undefined)
    this.#flush()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#flush()
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, LAST_WRITE_MS)
    await Promise.race([this.#writing, late.promise])
    clearTimeout(timer)
    clearTimeout(this.#retry)
    const { waiting } = this.state
    if (waiting > 0) this.#log.error({ file: this.#options.file, lines: waiting }, 'lines of the audit log are lost')
    const close = (): Promise<void> => this.#handle.close().catch(() => undefined)
    if (this.#writing === undefined) await close()
    else void this.#writing.then(close)
  }

  #drop(): void {
    this.#dropped++
    if (this.#unsaid++ === 0) this.#log.error({ file: this.#options.file }, 'the audit log has no room: lines are dropped')
  }

  #flush(): void {
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined))
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#batch !== undefined || this.#lines.length > 0) {
        this.#batch ??= this.#take()
        const { bytesWritten } = await this.#handle.write(this.#batch, this.#offset)
        this.#offset += bytesWritten
        if (this.#offset < this.#batch.length) continue
        this.#written += this.#batchLines
        this.#waitingBytes -= this.#batchBytes
        this.#batch = undefined
        this.#batchLines = this.#batchBytes = this.#offset = 0
      }
      this.#recovered()
    } catch (error) {
      this.#failed(asError(error))
    }
  }

  #take(): Buffer {
    const batch = Buffer.from(`${this.#lines.join('\n')}\n`)
    this.#batchBytes = this.#waitingBytes
    this.#batchLines = this.#lines.length
    this.#lines = []
    return batch
  }

  #failed({ code, message }: NodeJS.ErrnoException): void {
    const { file, onFailure } = this.#options
    if (this.#error === undefined) {
      const then = onFailure === 'refuse' ? 'calls are refused until it can' : 'lines are dropped once many wait'
      this.#log.error({ file, error: message }, `the audit log cannot be written: ${then} (telemetry.log.audit_on_failure)`)
    }
    this.#error = code ?? message
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => this.#flush(), RETRY_MS)
    this.#retry.unref()
  }

  #recovered(): void {
    if (this.#error === undefined) return
    this.#error = undefined
    this.#log.info({ file: this.#options.file, dropped: this.#dropped }, 'the audit log is written again')
  }
}

/** Opens the file for this user only, and completes an unfinished last line. */
const openForAppending = async (file: string): Promise<AppendHandle> => {
  const handle = await openFile(file, 'a+', 0o600)
  try {
    const status = await handle.stat()
    if (!status.isFile()) throw Object.assign(new Error('it is not a regular file'), { code: 'it is not a regular file' })
    if ((status.mode & 0o077) !== 0) await handle.chmod(0o600)
    const last = Buffer.alloc(1)
    // A killed process may have left an unfinished line.
    if (status.size > 0 && (await handle.read(last, 0, 1, status.size - 1)).bytesRead === 1 && last[0] !== LINE_END)
      await handle.write('\n')
    return { write: (bytes, offset) => handle.write(bytes, offset), close: () => handle.close() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

const explain =
  (file: string) =>
  (error: NodeJS.ErrnoException): never => {
    const message = `${file} cannot be opened (${error.code ?? error.message})`
    throw new ConfigError([{ place: 'telemetry.log.audit', path: '', message, remedy: 'name a file that can be written to' }])
  }
