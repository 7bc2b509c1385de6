/**
 * Rows of calls for those who watch: gathered, and handed out ten times a second at most. A call is told when it begins and when it ends;
 * of one that ends meanwhile, once. The timer runs only while there is something to tell.
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

  /** Returns how to stop. */
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
    this.#timer ??= setTimeout(() => this.#tell(), PERIOD_MS)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#readers.clear()
  }

  #tell(): void {
    this.#timer = undefined
    const changed = [...this.#changed].sort((a, b) => a.id - b.id)
    this.#changed = new Set()
    for (const reader of this.#readers) reader(changed)
  }
}
