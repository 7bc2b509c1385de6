/** One of several processes of a machine that serve one configuration (`listen.workers`), and the numbers of its calls. */

/** One of several processes of a machine: replicas of each other, which pass on what belongs to another one. */
export interface Member {
  /** Names it among them; the supervisor is 0. */
  readonly index: number
  /** The same for all, 32 bytes each. */
  readonly keys: readonly Buffer[]
  /** When the supervisor started, wall clock in milliseconds. Numbers of calls count from there, so that those of all members have one order. */
  readonly sinceMs: number
}

/** Numbers of calls go up by this, so that each member has its own; odd, so that tables by their last bits stay even. */
export const MEMBER_STRIDE = 61
const REFS_PER_MS = 100

/** Returns a new number with each call. Those of members are unique among all, in the order of time. */
export const callNumbers = (member: Member | undefined): (() => number) => {
  let latest = 0
  if (member === undefined) return () => ++latest
  const { index, sinceMs } = member
  return () => {
    latest = Math.max(latest + 1, (Date.now() - sinceMs) * REFS_PER_MS)
    return latest * MEMBER_STRIDE + index
  }
}
