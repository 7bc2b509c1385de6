/**
 * Facts about sessions that outlive the process: by digest of the session's id, each with an end, in one file of the state folder. The
 * surprise: all of it is in memory, and the file is a copy. Where it cannot be written, a line in the log says so, and sessions go on.
 */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseOwnJson } from '../../values/own-json.ts'

export interface SessionFileOptions {
  /** Of state; `undefined`: a later process knows nothing. */
  readonly folder: string | undefined
  /** Of the file, without `.json`; what it holds, for the log. */
  readonly name: string
  /** Of several processes that share the folder, each writes a file of its own; absent: there is one. */
  readonly member?: number | undefined
  /** The entries that were set first go first. */
  readonly maxEntries: number
  readonly maxBytes: number
  readonly log: { warn(facts: object, message: string): void }
}

export interface SessionEntry {
  /** Wall clock. */
  readonly untilMs: number
  /** JSON. */
  readonly text: string
}

/** After a write, so many times as long as it took pass until the next, at most `MAX_GAP_MS`; the first is made at once. */
const GAPS_PER_WRITE = 20
const MIN_GAP_MS = 10
const MAX_GAP_MS = 1_000

export class SessionFile {
  readonly #options: SessionFileOptions
  readonly #file: string | undefined
  /** The one that was set last is the last. */
  readonly #entries = new Map<string, SessionEntry>()
  #bytes = 0
  /** When the next write may be made. */
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

  /** False: there is no such entry. */
  delete(digest: string): boolean {
    if (!this.#remove(digest)) return false
    this.#changed()
    return true
  }

  /** Writes what is not written yet. */
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

/** Of all processes that have shared the folder; of several entries of one session the latest. */
const readAll = (folder: string, name: string): Map<string, SessionEntry> => {
  const own = new RegExp(`^${name}(-\\d+)?\\.json$`)
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => own.test(file)) : []
  const entries = files.flatMap((file) => readEntries(join(folder, file)))
  return new Map(entries.toSorted(([, one], [, other]) => one.untilMs - other.untilMs))
}

/** A file that is missing or broken lists nothing. */
const readEntries = (file: string): [string, SessionEntry][] => {
  try {
    const rows = parseOwnJson<[string, number, unknown?][]>(readFileSync(file, 'utf8'))
    const good = rows.filter(([digest, untilMs]) => DIGEST.test(digest) && untilMs > Date.now())
    return good.map(([digest, untilMs, fact]) => [digest, { untilMs, text: JSON.stringify(fact ?? null) }])
  } catch {
    return []
  }
}

const DIGEST = /^[\w-]{22}$/
