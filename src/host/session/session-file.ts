/**
 * Facts about sessions that outlive the process, by digest of the session's id, each with an expiry. All entries are in memory; a file of
 * the state folder holds a copy. If the file cannot be written, that is logged, and sessions continue.
 */
import type { Log } from '../../values/log.ts'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseOwnJson } from '../../values/own-json.ts'
import { attempt } from '../../values/attempt.ts'

export interface SessionFileOptions {
  /** State folder; `undefined`: nothing outlives the process. */
  readonly folder: string | undefined
  /** Name of the file without `.json`. Log lines name its content by it. */
  readonly name: string
  /** Number of this process among those that share the folder, which write one file each; absent: there is one process. */
  readonly member?: number | undefined
  /** The earliest entries are removed first, by number and by bytes. */
  readonly maxEntries: number
  readonly maxBytes: number
  readonly log: Pick<Log, 'warn'>
}

export interface SessionEntry {
  /** Wall clock in milliseconds. */
  readonly untilMs: number
  /** JSON. */
  readonly text: string
}

/** Pause after a write as a multiple of the write's duration, so that writing takes at most a twentieth of the time. */
const GAPS_PER_WRITE = 20
const MIN_GAP_MS = 10
const MAX_GAP_MS = 1_000

export class SessionFile {
  readonly #options: SessionFileOptions
  readonly #file: string | undefined
  /** In the order in which they were set. */
  readonly #entries = new Map<string, SessionEntry>()
  #bytes = 0
  /** Earliest time of the next write, monotonic. */
  #nextMs = -Infinity
  #timer: NodeJS.Timeout | undefined

  constructor(options: SessionFileOptions) {
    this.#options = options
    const { folder, name, member } = options
    this.#file = folder === undefined ? undefined : join(folder, `${name}${member === undefined ? '' : `-${member}`}.json`)
    if (folder !== undefined) for (const [digest, entry] of readAll(folder, name)) this.#put(digest, entry)
  }

  has(digest: string): boolean {
    return this.#entries.has(digest)
  }

  get(digest: string): SessionEntry | undefined {
    return this.#entries.get(digest)
  }

  /** `text`: JSON. */
  set(digest: string, text: string, untilMs: number): void {
    this.#put(digest, { text, untilMs })
    this.#changed()
  }

  /** False: there was no such entry. */
  delete(digest: string): boolean {
    if (!this.#remove(digest)) return false
    this.#changed()
    return true
  }

  /** Writes a pending change. */
  close(): void {
    if (this.#timer !== undefined) this.#write()
  }

  #put(digest: string, entry: SessionEntry): void {
    this.#remove(digest)
    this.#entries.set(digest, entry)
    this.#bytes += entry.text.length
    const { maxEntries, maxBytes } = this.#options
    for (const [oldest] of this.#entries) {
      if (this.#entries.size <= maxEntries && this.#bytes <= maxBytes) return
      this.#remove(oldest)
    }
  }

  #remove(digest: string): boolean {
    this.#bytes -= this.#entries.get(digest)?.text.length ?? 0
    return this.#entries.delete(digest)
  }

  #changed(): void {
    const waitMs = this.#nextMs - performance.now()
    if (waitMs <= 0) this.#write()
    else this.#timer ??= setTimeout(() => this.#write(), waitMs).unref()
  }

  #write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#file === undefined) return
    const beganMs = performance.now()
    const nowMs = Date.now()
    for (const [digest, { untilMs }] of this.#entries) if (untilMs <= nowMs) this.#remove(digest)
    const rows = [...this.#entries].map(([digest, { untilMs, text }]) => `["${digest}",${untilMs},${text}]`)
    try {
      writeFileSync(`${this.#file}.new`, `[${rows.join(',\n')}]`, { mode: 0o600 })
      renameSync(`${this.#file}.new`, this.#file)
    } catch (error) {
      const { name, log } = this.#options
      log.warn({ file: this.#file, error: String(error) }, `${name.replace('-', ' ')} cannot be written down`)
    }
    const endMs = performance.now()
    this.#nextMs = endMs + Math.min(MAX_GAP_MS, Math.max(MIN_GAP_MS, GAPS_PER_WRITE * (endMs - beganMs)))
  }
}

/** Reads the files of all processes that have shared the folder. The latest entry of a session wins. */
const readAll = (folder: string, name: string): Map<string, SessionEntry> => {
  const own = new RegExp(`^${name}(-\\d+)?\\.json$`)
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => own.test(file)) : []
  const entries = files.flatMap((file) => readEntries(join(folder, file)))
  return new Map(entries.toSorted(([, one], [, other]) => one.untilMs - other.untilMs))
}

/** Returns no entries for a file that is missing or broken. */
const readEntries = (file: string): [string, SessionEntry][] =>
  attempt(() =>
    parseOwnJson<[string, number, unknown?][]>(readFileSync(file, 'utf8'))
      .filter(([digest, untilMs]) => DIGEST.test(digest) && untilMs > Date.now())
      .map(([digest, untilMs, fact]): [string, SessionEntry] => [digest, { untilMs, text: JSON.stringify(fact ?? null) }]),
  ) ?? []

const DIGEST = /^[\w-]{22}$/
