/** The subscribers of a store's channels. */
type Receive = (message: string) => void

export class Subscribers {
  readonly #byChannel = new Map<string, Set<Receive>>()

  has(channel: string): boolean {
    return (this.#byChannel.get(channel)?.size ?? 0) > 0
  }

  /** Returns how to unsubscribe. */
  add(channel: string, receive: Receive): () => void {
    const receivers = this.#byChannel.get(channel) ?? new Set()
    this.#byChannel.set(channel, receivers.add(receive))
    return () => void receivers.delete(receive)
  }

  deliver(channel: string, message: string): void {
    for (const receive of this.#byChannel.get(channel) ?? []) receive(message)
  }

  clear(): void {
    this.#byChannel.clear()
  }
}
