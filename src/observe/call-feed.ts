/**
 * Sends changed calls to readers, at most ten times a second. A call is sent when it begins and when it ends; once if both happen within
 * one period. The timer runs only while there are changes.
 */
import type { Recording } from './capture/recording.ts'

export type Reader = (calls: readonly Recording[]) => void

const PERIOD_MS = 100

export class CallFeed implements Disposable {
  readonly #readers = new Set<Reader>()
  #changed = new Set<Recording>()
  #timer: NodeJS.Timeout | undefined

  get readers(): number {
    return this.#readers.size
  }

  /** Returns how to unsubscribe. */
  subscribe(reader: Reader): () => void {
    this.#readers.add(reader)
    return () => {
      this.#readers.delete(reader)
      if (this.#readers.size === 0) this.#changed.clear()
    }
  }

  changed(recording: Recording): void {
    if (this.#readers.size === 0) return
    this.#changed.add(recording)
    this.#timer ??= setTimeout(() => this.#flush(), PERIOD_MS)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#readers.clear()
  }

  #flush(): void {
    this.#timer = undefined
    const changed = [...this.#changed].sort((a, b) => a.id - b.id)
    this.#changed = new Set()
    for (const reader of this.#readers) reader(changed)
  }
}
