/**
 * One member of a `listen` filter that is a set, and the stream that holds it open. A filter cannot change on an open stream, so
 * a new set opens a new stream, and the old one ends a little after the new one is acknowledged (make before break; BRIDGING 3.7).
 */
import { Failure } from '../wire/failure.ts'
import { Echoes } from './echoes.ts'

export type Filter = Readonly<Record<string, unknown>>

/** A `listen` stream under way. */
export interface ListenStream {
  /** Its subscription id, as JSON text. */
  readonly key: string
  /** What the server agreed to; `undefined`: the stream ended without that. */
  readonly acknowledged: Promise<Filter | undefined>
  readonly ended: Promise<void>
  close(): void
}

const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000
/** A stream that was followed by another goes on so long: what it was about to say, the other may not have heard. */
const LINGER_MS = 1_500

export class WatchedSet {
  readonly #field: 'resourceSubscriptions' | 'taskIds'
  readonly #open: (filter: Filter) => ListenStream
  readonly #onMissed: (id: string) => void
  readonly #ids = new Set<string>()
  /** The stream that stands, and what it was opened for. */
  #stream: ListenStream | undefined
  #asked: ReadonlySet<string> = new Set()
  #accepted: ReadonlySet<string> = new Set()
  readonly #echoes = new Echoes()
  /** Changes of these may have gone unheard. */
  readonly #missed = new Set<string>()
  #isStale = false
  #working: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #retryMs = FIRST_RETRY_MS
  #isClosed = false

  /** `onMissed` hears of what was not watched for a while and is again. */
  constructor(
    field: 'resourceSubscriptions' | 'taskIds',
    open: (filter: Filter) => ListenStream,
    onMissed: (id: string) => void,
  ) {
    this.#field = field
    this.#open = open
    this.#onMissed = onMissed
  }

  /**
   * Adds one URI or id; false if the server's acknowledgement leaves it out. Rejects if the server acknowledges nothing now: it
   * is asked again until it does, or until the id is removed.
   */
  async add(id: string): Promise<boolean> {
    this.#ids.add(id)
    if (!this.#accepted.has(id)) await this.#apply()
    if (this.#accepted.has(id)) return true
    if (!this.#asked.has(id)) {
      this.#missed.add(id)
      throw new Failure('lost', 'the server acknowledges no subscription now', { executed: 'no', retryable: true })
    }
    this.#ids.delete(id)
    return false
  }

  async remove(id: string): Promise<void> {
    this.#missed.delete(id)
    if (this.#ids.delete(id)) await this.#apply()
  }

  /** Whether an update is news: while one stream follows another, both say the same. `key`: the stream it came on. */
  isNews(uri: string, key: string | undefined): boolean {
    return key === undefined || this.#echoes.isNews(uri, key)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
  }

  /** Makes the stream fit the set; changes that come meanwhile are made together. */
  #apply(): Promise<void> {
    this.#isStale = true
    return (this.#working ??= this.#work().finally(() => (this.#working = undefined)))
  }

  async #work(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false
      await this.#replace([...this.#ids])
    }
  }

  async #replace(ids: readonly string[]): Promise<void> {
    const old = this.#stream
    if (ids.length === 0) return this.#stand(undefined, [], undefined)
    const stream = this.#open({ [this.#field]: ids })
    const answer = await stream.acknowledged
    if (answer === undefined) return this.#retryLater()
    if (old !== undefined) this.#echoes.follow(old.key, stream.key)
    void stream.ended.then(() => this.#echoes.forget(stream.key))
    this.#stand(stream, ids, answer[this.#field])
    void stream.ended.then(() => this.#lost(stream))
  }

  #stand(stream: ListenStream | undefined, ids: readonly string[], accepted: unknown): void {
    const old = this.#stream
    this.#stream = stream
    this.#asked = new Set(ids)
    this.#accepted = new Set(Array.isArray(accepted) ? (accepted as string[]) : [])
    if (stream === undefined) old?.close()
    else if (old !== undefined) setTimeout(() => old.close(), LINGER_MS).unref()
    this.#retryMs = FIRST_RETRY_MS
    for (const id of this.#accepted) if (this.#missed.delete(id)) this.#onMissed(id)
  }

  #lost(stream: ListenStream): void {
    if (this.#stream !== stream) return
    for (const id of this.#accepted) this.#missed.add(id)
    this.#stream = undefined
    this.#asked = this.#accepted = new Set()
    this.#retryLater()
  }

  #retryLater(): void {
    if (this.#isClosed || this.#retry !== undefined) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      void this.#apply()
    }, jittered(this.#retryMs)).unref()
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS)
  }
}

export const jittered = (ms: number): number => ms * (0.5 + Math.random() / 2)
