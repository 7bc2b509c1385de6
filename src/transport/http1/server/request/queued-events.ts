/**
 * The writes of events that wait for a host, oldest first. The surprise: a socket reports a write only when all of it is out, and joins
 * waiting writes into one. The caller therefore says how many bytes the system has taken.
 */

/** One write: its bytes, and those of them that are not answers. */
interface Queued {
  readonly bytes: number
  readonly others: number
}

export class QueuedEvents {
  #writes: Queued[] = []
  #bytes = 0
  /** Taken bytes of the oldest write. */
  #begun = 0
  /** All `others` that were ever added, were removed, and had been added at the mark. */
  #added = 0
  #removed = 0
  #marked = 0

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes - this.#begun
  }

  /** Bytes behind the oldest write. That one may have any size: one big event alone exceeds no limit. */
  get bytesBehind(): number {
    return this.#bytes - (this.#writes[0]?.bytes ?? 0)
  }

  /** Bytes behind the oldest write, without answers. */
  get othersBehind(): number {
    return this.#othersBefore(this.#added)
  }

  /** The bytes of `othersBehind` that waited already at the last mark. */
  get markedBehind(): number {
    return this.#othersBefore(this.#marked)
  }

  mark(): void {
    this.#marked = this.#added
  }

  add(bytes: number, others: number): void {
    this.#writes.push({ bytes, others })
    this.#bytes += bytes
    this.#added += others
  }

  /** The system has taken `bytes` more. Returns how many of them waited here; framing is not counted here. */
  take(bytes: number): number {
    const before = this.bytes
    this.#begun += bytes
    let whole = 0
    for (const write of this.#writes) {
      if (this.#begun < write.bytes) break
      this.#begun -= write.bytes
      this.#bytes -= write.bytes
      this.#removed += write.others
      whole++
    }
    this.#writes.splice(0, whole)
    if (this.#writes.length === 0) this.#begun = 0
    return before - this.bytes
  }

  #othersBefore(end: number): number {
    return Math.max(0, end - this.#removed - (this.#writes[0]?.others ?? 0))
  }
}
