/**
 * Logs errors that no code expects: a bug, or an exception of a plugged-in layer. The host gets "internal error"; the log gets the
 * stack. Errors of one place in the code are logged at most once a minute, with their count, since their messages may differ.
 */
import type { Log } from '../values/log.ts'
import { Throttle } from '../time/throttle.ts'

const LOG_EVERY_MS = 60_000

export class UnexpectedErrors {
  readonly #log: Pick<Log, 'error'>
  readonly #throttle: Throttle

  constructor(log: Pick<Log, 'error'>, clock?: () => number) {
    this.#log = log
    this.#throttle = new Throttle(LOG_EVERY_MS, clock)
  }

  /** `facts`: the affected call or request, for the log line. */
  readonly report = (error: unknown, facts: object, message: string): void => {
    const count = this.#throttle.due(placeOf(error))
    if (count === undefined) return
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#log.error({ ...facts, count, error: text }, message)
  }
}

/** The stack frames of an error; for any other value, its type. */
const placeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return typeof error
  const { stack = '', name } = error
  const frames = stack.indexOf('\n    at ')
  return frames < 0 ? name : stack.slice(frames)
}
