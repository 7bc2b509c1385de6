/** Bytes of messages that we hold, of all hosts and servers together: bodies under way, and what waits to be taken (RELIABILITY 7). */

export class HeldBytes {
  /** `limits.in_flight_bytes`, of which never more than a quarter of the heap's limit. */
  max: number
  #bytes = 0

  constructor(max = Infinity) {
    this.max = max
  }

  get bytes(): number {
    return this.#bytes
  }
  /** No new work is taken. */
  get isFull(): boolean {
    return this.#bytes >= this.max
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }

  release(bytes: number): void {
    this.#bytes -= bytes
  }

  /** Whether a server's answer of so many bytes may be held: work that was taken may fill the same room once more. */
  hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= 2 * this.max
  }
}
