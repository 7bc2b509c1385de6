/**
 * Logs errors that no code expects: an exception of a policy that was plugged in, or a mistake of ours. The caller gets "internal
 * error"; the log has the stack. The same error is logged at most once a minute, with the number of times that it occurred.
 */
const LOG_EVERY_MS = 60_000
/** Different errors that are remembered. Beyond it all are forgotten, and the next one is logged at once. */
const MAX_KINDS = 100

interface Kind {
  /** Occurrences since it was logged. */
  count: number
  loggedMs: number
}

export class UnexpectedErrors {
  readonly #log: { error(facts: object, message: string): void }
  readonly #clock: () => number
  readonly #kinds = new Map<string, Kind>()

  constructor(log: { error(facts: object, message: string): void }, clock: () => number = () => performance.now()) {
    this.#log = log
    this.#clock = clock
  }

  /** `facts`: what was under way, for the log line. */
  readonly report = (error: unknown, facts: object, message: string): void => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    if (this.#kinds.size >= MAX_KINDS && !this.#kinds.has(text)) this.#kinds.clear()
    const kind = this.#kinds.get(text) ?? { count: 0, loggedMs: -Infinity }
    this.#kinds.set(text, kind)
    kind.count++
    const nowMs = this.#clock()
    if (nowMs - kind.loggedMs < LOG_EVERY_MS) return
    this.#log.error({ ...facts, count: kind.count, error: text }, message)
    kind.count = 0
    kind.loggedMs = nowMs
  }
}
