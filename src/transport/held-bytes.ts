/** Bytes of messages in memory, of all hosts and servers: bodies being read, and queued writes (RELIABILITY 7). */

export class HeldBytes {
  /** `limits.in_flight_bytes`, at most a quarter of the heap's limit. */
  max: number
  #bytes = 0

  constructor(max = Infinity) {
    this.max = max
  }

  get bytes(): number {
    return this.#bytes
  }
  /** New calls are refused. */
  get isFull(): boolean {
    return this.#bytes >= this.max
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }

  release(bytes: number): void {
    this.#bytes -= bytes
  }

  /** Whether a server's answer of this size may be held. Answers to admitted calls may use the limit a second time. */
  hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= 2 * this.max
  }
}
