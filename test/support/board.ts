/** Named flags that the instances of one test server raise, lower and watch. */

/** A set of flags. */
export interface Board {
  has(flag: string): boolean
  raise(flag: string): void
  lower(flag: string): void
  /** Calls `listener` with each flag that was raised or lowered since, until the returned function is called. */
  watch(listener: (flag: string) => void): () => void
}

export const createBoard = (): Board => {
  const flags = new Set<string>()
  const listeners = new Set<(flag: string) => void>()
  const tell = (flag: string) => {
    for (const listener of listeners) listener(flag)
  }
  return {
    has: (flag) => flags.has(flag),
    raise(flag) {
      flags.add(flag)
      tell(flag)
    },
    lower(flag) {
      flags.delete(flag)
      tell(flag)
    },
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
