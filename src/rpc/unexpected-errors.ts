/**
 * Logs errors that no code expects: an exception of a policy that was plugged in, or a mistake of ours. The caller gets "internal
 * error"; the log has the stack. An error of the same place in the code is logged at most once a minute, with the number of times that
 * it occurred: messages may differ from call to call.
 */
import { Throttle } from '../time/throttle.ts'

const LOG_EVERY_MS = 60_000

export class UnexpectedErrors {
  readonly #log: { error(facts: object, message: string): void }
  readonly #throttle: Throttle

  constructor(log: { error(facts: object, message: string): void }, clock?: () => number) {
    this.#log = log
    this.#throttle = new Throttle(LOG_EVERY_MS, clock)
  }

  /** `facts`: what was under way, for the log line. */
  readonly report = (error: unknown, facts: object, message: string): void => {
    const count = this.#throttle.due(placeOf(error))
    if (count === undefined) return
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#log.error({ ...facts, count, error: text }, message)
  }
}

/** Where it was thrown; of what has no stack, its type. */
const placeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return typeof error
  const { stack = '', name } = error
  const frames = stack.indexOf('\n    at ')
  return frames < 0 ? name : stack.slice(frames)
}
