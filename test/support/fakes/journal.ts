/** Things that happened, in order, and a way to wait for one that has not happened yet. */

export class Journal<T> {
  readonly entries: T[] = []
  readonly #waiting = new Set<() => void>()

  push(entry: T): void {
    this.entries.push(entry)
    for (const wake of this.#waiting) wake()
  }

  clear(): void {
    this.entries.length = 0
  }

  /** The first entry that matches, now or later; it stays where it is. */
  until(matches: (entry: T) => boolean): Promise<T> {
    return this.when(() => this.entries.find(matches))
  }

  /** What `find` returns, once it returns something; looked at after each entry. */
  async when<R>(find: () => R | undefined): Promise<R> {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      await promise
      this.#waiting.delete(resolve)
    }
  }
}
