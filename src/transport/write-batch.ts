/**
 * The small writes of one turn of the event loop, made together at its end.
 *
 * A write to a socket wakes the process that reads it, and that is the dearest part of a small call. Write, work, write, work lets
 * the reader finish and fall asleep each time; one write behind the other finds it awake. With 32 calls in flight on two cores
 * this took about a third off the CPU of a call. A call alone waits for nothing.
 */
export class WriteBatch {
  #writes: (() => void)[] = []

  /** `write` runs before the loop waits for anything again; it must not throw. */
  add(write: () => void): void {
    if (this.#writes.push(write) === 1) setImmediate(() => this.flush())
  }

  flush(): void {
    const writes = this.#writes
    this.#writes = []
    for (const write of writes) write()
  }
}
