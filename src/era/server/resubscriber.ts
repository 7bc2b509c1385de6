/**
 * A set of watched ids, which is one member of a `listen` filter, and the streams that carry it. Each id is on exactly one stream: the
 * filter of an open stream cannot change, and go-sdk ends an id on a newer stream together with the older one. New ids open a further
 * stream. A stream closes once none of its ids is wanted. A refused stream is split until only the refused id fails (BRIDGING 3.7,
 * 3.22; B284).
 */
import { backoffMs } from '../../time/backoff.ts'
import type { BackoffRange } from '../../time/backoff.ts'
import { isList } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'

export type Filter = Readonly<Record<string, unknown>>

/** A requested or open `listen` stream. */
export interface ListenStream {
  /** Its subscription id, as JSON text. */
  readonly key: string
  /** The filter that the server acknowledged; `undefined`: the stream ended before. */
  readonly acknowledged: Promise<Filter | undefined>
  readonly ended: Promise<void>
  /** The error with which the server ended the stream, if any. */
  readonly refusal: () => unknown
  close(): void
}

/** Delay before a broken or refused stream is opened again. */
export const RETRY: BackoffRange = { firstMs: 1_000, maxMs: 30_000 }
/** A stream that stood for this long was no failure, so that the next one is opened soon. Some servers end each stream at once. */
export const STEADY_MS = 5_000

/** The answer for one id. `lost`: the server did not answer. An object: its error. */
type Answer = 'accepted' | 'refused' | 'lost' | { readonly refusal: unknown }

interface Standing {
  readonly stream: ListenStream
  readonly sinceMs: number
  readonly ids: ReadonlySet<string>
}

export class Resubscriber {
  readonly #field: 'resourceSubscriptions' | 'taskIds'
  readonly #open: (filter: Filter) => ListenStream
  readonly #onMissed: (id: string) => void
  /** Wanted ids. */
  readonly #ids = new Set<string>()
  /** Acknowledged streams. */
  readonly #standing = new Set<Standing>()
  /** Ids of pending requests, with the promise of the answer. */
  readonly #asking = new Map<string, Promise<Answer>>()
  /** Ids of the stream that is opened at the end of this turn of the event loop. */
  #batch: { readonly ids: Set<string>; readonly answers: Promise<ReadonlyMap<string, Answer>> } | undefined
  /** Ids whose changes may have been lost. */
  readonly #missed = new Set<string>()
  #retry: NodeJS.Timeout | undefined
  #failures = 0
  #isClosed = false

  /** `onMissed` is called with ids that are watched again after a gap. */
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
   * Adds one URI or id; false if the server's acknowledgement does not contain it. Rejects with the server's error if it refuses the id.
   * Rejects with `Failure('lost')` if the server does not answer now; the request is repeated until it does or the id is removed.
   */
  async add(id: string): Promise<boolean> {
    this.#ids.add(id)
    const answer = await this.#ask(id)
    if (answer === 'accepted') return true
    if (answer !== 'lost') {
      this.#ids.delete(id)
      if (answer === 'refused') return false
      throw answer.refusal
    }
    throw new Failure('lost', 'the server acknowledges no subscription now', { executed: 'no', retryable: true })
  }

  remove(id: string): void {
    this.#missed.delete(id)
    this.#ids.delete(id)
    this.#closeUnwanted()
  }

  /** Whether an update must be relayed: the URI is wanted, and the update arrived on its stream. `key`: the stream of the update. */
  isNews(uri: string, key: string | undefined): boolean {
    const holder = this.#holderOf(uri)
    if (holder === undefined) return true
    return this.#ids.has(uri) && (key === undefined || holder.stream.key === key || !this.#isOurs(key))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
  }

  #holderOf(id: string): Standing | undefined {
    for (const standing of this.#standing) if (standing.ids.has(id)) return standing
    return undefined
  }

  #isOurs(key: string): boolean {
    return [...this.#standing].some(({ stream }) => stream.key === key)
  }

  #ask(id: string): Promise<Answer> {
    if (this.#holderOf(id) !== undefined) return Promise.resolve('accepted')
    let answer = this.#asking.get(id)
    if (answer === undefined) {
      answer = this.#join(id).finally(() => this.#asking.delete(id))
      this.#asking.set(id, answer)
    }
    return answer
  }

  /** Ids of one turn of the event loop share one request. */
  async #join(id: string): Promise<Answer> {
    const ids = this.#batch?.ids ?? new Set<string>()
    this.#batch ??= {
      ids,
      answers: new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        this.#batch = undefined
        return this.#listen([...ids])
      }),
    }
    ids.add(id)
    const answers = await this.#batch.answers
    const answer = answers.get(id) ?? 'lost'
    const isClosed = answer === 'accepted' && this.#ids.has(id) && this.#holderOf(id) === undefined
    if (answer !== 'lost' && !isClosed) return answer
    // An id that was removed and added again meanwhile is on no stream, and would not be requested again.
    this.#lose([id])
    return 'lost'
  }

  /** Opens a stream for these ids; if the server refuses several, one stream for each half. */
  async #listen(all: readonly string[]): Promise<ReadonlyMap<string, Answer>> {
    const ids = all.filter((id) => this.#ids.has(id))
    if (this.#isClosed || ids.length === 0) return new Map()
    const stream = this.#open({ [this.#field]: ids })
    const answer = await stream.acknowledged
    if (answer !== undefined) return this.#stand(stream, ids, answer[this.#field])
    const refusal = stream.refusal()
    if (refusal === undefined) return this.#lose(ids)
    if (ids.length === 1) return this.#refuse(ids, { refusal })
    const middle = Math.ceil(ids.length / 2)
    const halves = await Promise.all([this.#listen(ids.slice(0, middle)), this.#listen(ids.slice(middle))])
    return new Map(halves.flatMap((half) => [...half]))
  }

  #stand(stream: ListenStream, asked: readonly string[], answer: unknown): ReadonlyMap<string, Answer> {
    const agreed = new Set(isList(answer) ? answer : [])
    const standing: Standing = { stream, sinceMs: performance.now(), ids: new Set(asked.filter((id) => agreed.has(id))) }
    this.#standing.add(standing)
    void stream.ended.then(() => this.#ended(standing))
    for (const id of standing.ids) if (this.#missed.delete(id)) this.#onMissed(id)
    this.#closeUnwanted()
    const refused = this.#refuse(asked.filter((id) => !agreed.has(id)))
    return new Map<string, Answer>([...refused, ...[...standing.ids].map((id) => [id, 'accepted'] as const)])
  }

  /** Refused ids are not requested until they are added again. */
  #refuse(ids: readonly string[], answer: Answer = 'refused'): ReadonlyMap<string, Answer> {
    for (const id of ids) this.#missed.delete(id)
    return new Map(ids.map((id) => [id, answer]))
  }

  #closeUnwanted(): void {
    for (const standing of this.#standing) {
      if ([...standing.ids].some((id) => this.#ids.has(id))) continue
      this.#standing.delete(standing)
      standing.stream.close()
    }
  }

  /** A stream ended that this class did not close. */
  #ended(standing: Standing): void {
    if (!this.#standing.delete(standing)) return
    if (performance.now() - standing.sinceMs >= STEADY_MS) this.#failures = 0
    this.#lose([...standing.ids])
  }

  #lose(ids: readonly string[]): ReadonlyMap<string, Answer> {
    const wanted = ids.filter((id) => this.#ids.has(id))
    for (const id of wanted) this.#missed.add(id)
    if (wanted.length > 0) this.#retryLater()
    return new Map(ids.map((id) => [id, 'lost']))
  }

  #retryLater(): void {
    if (this.#isClosed || this.#retry !== undefined) return
    this.#retry = setTimeout(
      () => {
        this.#retry = undefined
        for (const id of this.#missed) if (this.#ids.has(id)) void this.#ask(id)
      },
      backoffMs(this.#failures++, RETRY),
    ).unref()
  }
}
