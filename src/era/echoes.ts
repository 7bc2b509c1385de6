/**
 * While one stream follows another, both say the same, each in its own time. What one of the two says first is news, what the other
 * says for the first time within a second is taken for the same, and what it says beyond that is not (BRIDGING 3.7). Only of a stream
 * and the one that follows it: of streams further apart nobody knows what both have heard.
 */

/** What two streams say within this time may be the same. */
const ECHO_MS = 1_000

/** What one of two streams has said of an id and the other has not: when, oldest first, on the monotonic clock. */
interface Ahead {
  readonly key: string
  readonly atMs: number[]
}

interface Pair {
  readonly older: string
  readonly newer: string
  /** By id. */
  readonly ahead: Map<string, Ahead>
}

export class Echoes {
  #pairs: readonly Pair[] = []

  /** From now on both talk, until one of them is forgotten. Streams go by their keys. */
  follow(older: string, newer: string): void {
    this.#pairs = [...this.#pairs, { older, newer, ahead: new Map() }]
  }

  /** A stream says no more: nothing waits for it to say the same. */
  forget(key: string): void {
    this.#pairs = this.#pairs.filter(({ older, newer }) => older !== key && newer !== key)
  }

  /** Whether what stream `key` says of `id` was not said by the one before or after it. */
  isNews(id: string, key: string): boolean {
    let isNews = true
    for (const { older, newer, ahead } of this.#pairs)
      if ((key === older || key === newer) && isRepeated(ahead, id, key)) isNews = false
    return isNews
  }
}

const isRepeated = (pair: Map<string, Ahead>, id: string, key: string): boolean => {
  const nowMs = performance.now()
  const ahead = pair.get(id)
  const recent = ahead?.atMs.filter((atMs) => nowMs - atMs < ECHO_MS) ?? []
  if (ahead === undefined || ahead.key === key || recent.length === 0) {
    pair.set(id, { key, atMs: ahead?.key === key ? [...recent, nowMs] : [nowMs] })
    return false
  }
  pair.set(id, { key: ahead.key, atMs: recent.slice(1) })
  return true
}
