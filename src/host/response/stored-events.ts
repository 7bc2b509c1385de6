/**
 * Copies the event log of a session to the shared store, so that another replica can resume its streams after this one has ended. Events
 * are written 10 ms later in batches, so that no host waits for the store. A crash loses the events of the last 10 ms.
 */
import { parseOwnJson } from '../../values/own-json.ts'
import type { Id } from '../../wire/message/envelope.ts'
import { join } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { HostLimits } from '../options.ts'
import type { Store } from '../../store/store.ts'

/** The request of a stream. */
export interface StreamOf {
  readonly id: Id
  readonly method: string
}

/** A stream read from the store. */
export interface StoredStream {
  readonly of: StreamOf | undefined
  readonly events: { readonly sequence: number; readonly text: string; readonly key: string | undefined }[]
  isEnded: boolean
}

type Entry =
  | readonly ['open', stream: string, id?: Id, method?: string]
  /** With the request, since the first entries of a stream are dropped first. */
  | readonly ['event', stream: string, sequence: number, text: string, key: string | null, id?: Id, method?: string]
  | readonly ['end', stream: string]

const WRITE_AFTER_MS = 10
/** Larger events are not copied, so another replica cannot replay them. */
const MAX_EVENT_BYTES = 256 * 1024
/** Entries per session in the store, as a multiple of `maxEvents`. */
const ENTRIES_PER_EVENT = 2

export interface StoredEventsOptions {
  /** Those of the event log. */
  readonly limits: () => Pick<HostLimits, 'maxEvents' | 'maxSessionEventBytes' | 'maxEventAgeMs'>
  /** False: another replica may own the session, and write events under the same stream names. */
  readonly mayWrite: () => boolean
}

export class StoredEvents {
  readonly #store: Store
  readonly #key: string
  readonly #limits: StoredEventsOptions['limits']
  readonly #mayWrite: () => boolean
  /** Requests of the open streams. */
  readonly #requests = new Map<string, StreamOf>()
  /** Bytes of the latest entries, with those of `#pending`, as many as the store may keep. */
  readonly #sizes: number[] = []
  #bytes = 0
  /** The store keeps entries of another replica, too, until these alone reach a limit. */
  #isFull = false
  #pending: string[] = []

  /** `name`: digest of the session's id. */
  constructor(store: Store, name: string, { limits, mayWrite }: StoredEventsOptions) {
    this.#store = store
    this.#key = keyOf(name)
    this.#limits = limits
    this.#mayWrite = mayWrite
  }

  get #maxEntries(): number {
    return this.#limits().maxEvents * ENTRIES_PER_EVENT
  }

  opened(stream: string, of: StreamOf | undefined): void {
    if (of !== undefined) this.#requests.set(stream, of)
    this.#add(of === undefined ? ['open', stream] : ['open', stream, of.id, of.method])
  }

  appended(stream: string, sequence: number, parts: Parts, bytes: number, key: string | undefined): void {
    if (bytes > MAX_EVENT_BYTES) return
    const event = ['event', stream, sequence, join(parts).toString(), key ?? null] as const
    const of = this.#requests.get(stream)
    this.#add(of === undefined ? event : [...event, of.id, of.method])
  }

  ended(stream: string): void {
    this.#requests.delete(stream)
    this.#add(['end', stream])
  }

  #add(entry: Entry): void {
    const text = JSON.stringify(entry)
    const bytes = Buffer.byteLength(text)
    this.#sizes.push(bytes)
    this.#bytes += bytes
    while (
      this.#sizes.length > this.#maxEntries ||
      (this.#bytes > this.#limits().maxSessionEventBytes && this.#sizes.length > 1)
    ) {
      this.#bytes -= this.#sizes.shift() ?? 0
      this.#isFull = true
    }
    if (this.#pending.push(text) === 1) setTimeout(() => this.#write(), WRITE_AFTER_MS).unref()
    while (this.#pending.length > this.#sizes.length) this.#pending.shift()
  }

  #write(): void {
    const entries = this.#pending
    this.#pending = []
    if (!this.#mayWrite()) return
    // While the store is unavailable, only this replica can resume the streams.
    const max = this.#isFull ? this.#sizes.length : this.#maxEntries
    this.#store.append(this.#key, entries, max, this.#limits().maxEventAgeMs).catch(() => undefined)
  }
}

/** Resolves with the streams of a session by name, in the order of opening. Rejects with `StoreDown`. */
export const readStored = async (store: Store, name: string): Promise<ReadonlyMap<string, StoredStream>> => {
  const streams = new Map<string, StoredStream>()
  const streamOf = (stream: string, of?: StreamOf): StoredStream => {
    const known = streams.get(stream) ?? { of, events: [], isEnded: false }
    streams.set(stream, known)
    return known
  }
  for (const text of await store.range(keyOf(name))) {
    const entry = parseOwnJson<Entry>(text)
    if (entry[0] === 'open') streamOf(entry[1], requestOf(entry[2], entry[3]))
    else if (entry[0] === 'end') streamOf(entry[1]).isEnded = true
    else {
      const [, stream, sequence, text, key, id, method] = entry
      streamOf(stream, requestOf(id, method)).events.push({ sequence, text, key: key ?? undefined })
    }
  }
  return streams
}

const requestOf = (id: Id | undefined, method = ''): StreamOf | undefined => (id === undefined ? undefined : { id, method })
const keyOf = (name: string): string => `events:${name}`
