/** One of several processes on a machine that serve one configuration (`listen.workers`), and the numbers of its calls. */

/** The members are replicas of each other: a request that belongs to another one is passed on. */
export interface Member {
  /** Identifies the member; the supervisor is 0. */
  readonly index: number
  /** The same for all members, 32 bytes each. */
  readonly keys: readonly Buffer[]
  /** Start of the supervisor, wall clock in milliseconds: the origin of call numbers, so that those of all members have one order. */
  readonly sinceMs: number
}

/** The distance between call numbers of one member; odd, so that hash tables by the last bits are used evenly. */
export const MEMBER_STRIDE = 61
const REFS_PER_MS = 100

/** Returns a function for new call numbers, which are unique among all members and increase with time. */
export const callNumbers = (member: Member | undefined): (() => number) => {
  let latest = 0
  if (member === undefined) return () => ++latest
  const { index, sinceMs } = member
  return () => {
    latest = Math.max(latest + 1, (Date.now() - sinceMs) * REFS_PER_MS)
    return latest * MEMBER_STRIDE + index
  }
}
