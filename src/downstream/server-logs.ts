/**
 * Logs of servers, for `trunkline logs`: stderr lines of their processes and log messages (`notifications/message`), in order of arrival.
 * At most `limits.stderr` bytes per server are stored, across restarts of its processes.
 */
import type { Payload } from '../wire/message/payload.ts'
import { firstCharacters } from '../values/cut-text.ts'

/** One line. `number` counts over all servers, from 1, in the order of arrival. */
export interface LogLine {
  readonly number: number
  /** Wall clock, ms. */
  readonly atMs: number
  readonly server: string
  /** `stderr` of a process, or a log message of the protocol. */
  readonly from: 'stderr' | 'message'
  /** Level and logger of a log message, as received. */
  readonly level?: string
  readonly logger?: string
  /** The line, or the data of the message, as JSON unless it is a string. */
  readonly text: string
  /** Number of stderr lines dropped before this one by the limit per second. */
  readonly skipped?: number
}

export interface LogQuery {
  /** Keys; empty: all servers. */
  readonly servers: readonly string[]
  /** Lines with a higher number. */
  readonly after: number
  /** Lines since then; wall clock, ms. */
  readonly sinceMs: number
  /** Maximum number of lines; the latest are returned. */
  readonly count: number
}

/** Longer texts of messages are cut, as lines of stderr are. */
const MAX_TEXT = 8 * 1024
/** Longer levels and loggers are cut. */
const MAX_NAME = 200
/** Memory of a stored line besides its text. */
const LINE_OVERHEAD = 128

interface Kept {
  readonly lines: LogLine[]
  bytes: number
}

export class ServerLogs {
  readonly #servers = new Map<string, Kept>()
  readonly #readers = new Set<() => void>()
  readonly #now: () => number
  #number = 0

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** The number of the latest line. */
  get latest(): number {
    return this.#number
  }

  /** Adds a line of stderr. `skipped`: lines dropped before it. */
  printed(server: string, maxBytes: number, text: string, skipped: number): void {
    this.#add(server, maxBytes, { from: 'stderr', text, ...(skipped > 0 && { skipped }) })
  }

  /** Adds a log message. `params`: those of `notifications/message`. */
  logged(server: string, maxBytes: number, params: Payload): void {
    const [level, logger] = ['level', 'logger'].map((key) => shortName(params.text(key)))
    const text = params.text('data') ?? params.raw('data')?.subarray(0, MAX_TEXT).toString() ?? ''
    this.#add(server, maxBytes, {
      from: 'message',
      text: firstCharacters(text, MAX_TEXT),
      ...(level !== undefined && { level }),
      ...(logger !== undefined && { logger }),
    })
  }

  /** Adds a line received by another process of this machine. */
  relayed({ server, ...line }: LogLine, maxBytes: number): void {
    this.#add(server, maxBytes, line)
  }

  /** Drops the lines of all other servers. */
  retain(servers: ReadonlySet<string>): void {
    for (const server of this.#servers.keys()) if (!servers.has(server)) this.#servers.delete(server)
  }

  /** Oldest first. */
  read({ servers, after, sinceMs, count }: LogQuery): readonly LogLine[] {
    const wanted = servers.length === 0 ? [...this.#servers.keys()] : servers
    const lines = wanted.flatMap((server) => this.#servers.get(server)?.lines ?? [])
    const fit = lines.filter(({ number, atMs }) => number > after && atMs >= sinceMs)
    return fit.toSorted((a, b) => a.number - b.number).slice(-count || fit.length)
  }

  /** Resolves when a line is added, or `signal` fires. */
  added(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        this.#readers.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#readers.add(done)
      signal.addEventListener('abort', done)
    })
  }

  #add(server: string, maxBytes: number, line: Omit<LogLine, 'number' | 'atMs' | 'server'>): void {
    let kept = this.#servers.get(server)
    if (kept === undefined) this.#servers.set(server, (kept = { lines: [], bytes: 0 }))
    kept.lines.push({ ...line, number: ++this.#number, atMs: this.#now(), server })
    kept.bytes += costOf(line)
    while (kept.bytes > maxBytes && kept.lines.length > 0) {
      const [first] = kept.lines.splice(0, 1)
      if (first !== undefined) kept.bytes -= costOf(first)
    }
    for (const done of this.#readers) done()
  }
}

const shortName = (name: string | undefined): string | undefined => name && firstCharacters(name, MAX_NAME)

const costOf = ({ text, level = '', logger = '' }: Pick<LogLine, 'text' | 'level' | 'logger'>): number =>
  text.length + level.length + logger.length + LINE_OVERHEAD
