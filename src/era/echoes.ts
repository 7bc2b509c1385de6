/**
 * While one stream follows another, both say the same, each in its own time. What one of them says first is news; what the other
 * says for the first time within a second is taken for the same, and what it says beyond that is not (BRIDGING 3.7).
 */

/** What two streams say within this time may be the same. */
export const ECHO_MS = 1_000

interface Said {
  readonly atMs: number
  /** The streams it came on. */
  readonly on: Set<string>
}

export class Echoes {
  readonly #said = new Map<string, Said[]>()
  #untilMs = -Infinity

  /** From now on two streams talk, until the given time on the monotonic clock. */
  expect(untilMs: number): void {
    this.#untilMs = untilMs
  }

  /** Whether what stream `key` says of `id` was not said by another before. */
  isNews(id: string, key: string): boolean {
    const nowMs = performance.now()
    if (nowMs > this.#untilMs) {
      this.#said.clear()
      return true
    }
    const recent = (this.#said.get(id) ?? []).filter(({ atMs }) => nowMs - atMs < ECHO_MS)
    const same = recent.find(({ on }) => !on.has(key))
    if (same === undefined) recent.push({ atMs: nowMs, on: new Set([key]) })
    else same.on.add(key)
    this.#said.set(id, recent)
    return same === undefined
  }
}
