/** The time that a run may take. Each part ends its rounds when its share is used up, but never before there are enough rounds for a median. */

/** A point in time, of `performance.now()`; undefined: as long as it takes. */
export type Deadline = number | undefined

/** One for each of three processes of the same. */
const LEAST_ROUNDS = 3

/** Whether a round should not be begun: `done` have ended, which took `roundMs` each. */
export const isOver = (deadline: Deadline, done: number, roundMs: number): boolean =>
  deadline !== undefined && done >= LEAST_ROUNDS && performance.now() + roundMs > deadline

/** Shares a time out among parts that come one after the other: what one leaves is for those behind it. */
export class Budget {
  readonly #endsAt: number | undefined
  #weightLeft: number

  /** `weight`: of all parts together. */
  constructor(minutes: number | undefined, weight: number) {
    this.#endsAt = minutes === undefined ? undefined : performance.now() + minutes * 60_000
    this.#weightLeft = weight
  }

  /** Until when the part that begins now may take. */
  part(weight: number): Deadline {
    if (this.#endsAt === undefined) return undefined
    const share = weight / this.#weightLeft
    this.#weightLeft -= weight
    return performance.now() + Math.max(0, this.#endsAt - performance.now()) * share
  }
}
