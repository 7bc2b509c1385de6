/**
 * Resource subscriptions, counted per server and URI: a server gets one `resources/subscribe` for the first subscriber, and one
 * `resources/unsubscribe` after the last (BRIDGING 3.8; B131–B134).
 */
import type { Reconnected, UpdateAudience } from '../downstream/environment.ts'
import type { Caller } from '../rpc/call.ts'
import { Failure } from '../wire/message/failure.ts'
import { Payload } from '../wire/message/payload.ts'

/** Receives updates. `params`: those of the notification, with the subscriber's form of the URI. */
export interface Subscriber {
  updated(params: Payload): void
}

/** One subscriber's interest in a resource. */
interface Interest {
  readonly caller: Caller
  /** URI of the subscription. */
  readonly exposed: string
  /** Whether another URI of the same server is shown to the caller, and in which form; evaluated later, since views change. */
  readonly isShown: (original: string) => boolean
  readonly expose: (original: string) => string
}

/** All interests of one subscriber: a host may write one URI in its exposed and in its original form, and expects updates for both. */
interface Watching extends Omit<Interest, 'exposed'> {
  readonly spellings: Set<string>
}

interface Watched {
  /** Replaced after a restart of the server. */
  downstream: Reconnected
  readonly original: string
  readonly subscribers: Map<Subscriber, Watching>
  /** Whether the server offers the subscription; `undefined`: not asked, until the server is connected again. */
  accepted: Promise<boolean> | undefined
}

const keyOf = (server: string, original: string): string => `${server} ${original}`

export class Subscriptions {
  readonly #watched = new Map<string, Watched>()
  /** Pending unsubscribe requests; a new subscribe waits for them, so that the two cannot arrive in the wrong order. */
  readonly #leaving = new Map<string, Promise<void>>()
  /** The latest unsubscribed URIs, for which servers may still send updates. */
  readonly #left = new Set<string>()
  /** Number of watched URIs by subscriber: two spellings of a resource are two. */
  readonly #counts = new Map<Subscriber, number>()
  /** Ended subscribers: the policy may still decide on a subscription of theirs. */
  readonly #released = new WeakSet<Subscriber>()
  readonly #max: () => number

  /** `max`: resources that one subscriber may watch (`limits.subscriptions`); a reload may change it. */
  constructor(max: () => number) {
    this.#max = max
  }

  /**
   * Adds a subscriber; idempotent. False: the server does not offer the subscription, or the subscriber has ended. Rejects if the
   * subscriber has reached its limit, or if the server is not connected; in the second case the subscriber stays, and gets one update
   * when the server is connected again.
   */
  async add(subscriber: Subscriber, downstream: Reconnected, original: string, interest: Interest): Promise<boolean> {
    if (this.#released.has(subscriber)) return false
    const key = keyOf(downstream.id, original)
    let watched = this.#watched.get(key)
    if (watched?.subscribers.get(subscriber)?.spellings.has(interest.exposed) !== true) this.#count(subscriber)
    if (watched === undefined) {
      watched = { downstream, original, subscribers: new Map(), accepted: undefined }
      this.#watched.set(key, watched)
      this.#left.delete(key)
    }
    const spellings = watched.subscribers.get(subscriber)?.spellings ?? new Set()
    watched.subscribers.set(subscriber, { ...interest, spellings: spellings.add(interest.exposed) })
    const accepted = await (watched.accepted ?? this.#ask(watched))
    if (!accepted) this.#remove(key, watched, subscriber)
    return accepted
  }

  /** `exposed`: only what is watched under this URI. Returns whether the subscriber no longer watches the resource. */
  remove(subscriber: Subscriber, server: string, original: string, exposed?: string): boolean {
    const key = keyOf(server, original)
    const watched = this.#watched.get(key)
    const spellings = watched?.subscribers.get(subscriber)?.spellings
    if (watched === undefined || spellings === undefined) return true
    if (exposed !== undefined && spellings.delete(exposed)) this.#uncount(subscriber, 1)
    if (exposed !== undefined && spellings.size > 0) return false
    this.#remove(key, watched, subscriber)
    return true
  }

  /** What a subscriber watches under this URI, also if lists no longer lead to its server. */
  under(subscriber: Subscriber, exposed: string): readonly { readonly server: string; readonly original: string }[] {
    return [...this.#watched.values()].flatMap(({ downstream, original, subscribers }) =>
      subscribers.get(subscriber)?.spellings.has(exposed) === true ? [{ server: downstream.id, original }] : [],
    )
  }

  /** Removes a session or stream that has ended. */
  release(subscriber: Subscriber): void {
    this.#released.add(subscriber)
    for (const [key, watched] of this.#watched) if (watched.subscribers.has(subscriber)) this.#remove(key, watched, subscriber)
  }

  /**
   * Delivers an update of a server. The URI may be below the subscribed one. Recipients are the subscribers of the URI itself, else those
   * of URIs above it, else all subscribers at that server, unless the URI was unsubscribed. Each gets the reported URI in its own form.
   * A subscriber that gets the update on another link still counts as a subscriber of the URI.
   */
  updated(server: string, uri: string, params: Payload, { onLink, isToldElsewhere }: UpdateAudience = {}): void {
    const isConcerned = ({ subscribers }: Watched): boolean =>
      onLink === undefined || [...subscribers.values()].some(({ caller }) => onLink(caller))
    const here = [...this.#watched.values()].filter((one) => one.downstream.id === server && isConcerned(one))
    const exact = here.filter(({ original }) => original === uri)
    const above = here.filter(({ original }) => uri.startsWith(original.endsWith('/') ? original : `${original}/`))
    const others = this.#left.has(keyOf(server, uri)) ? [] : here
    const chosen = exact.length > 0 ? exact : above.length > 0 ? above : others
    const notified = new Set<Subscriber>()
    for (const { subscribers, original } of chosen) {
      for (const [subscriber, { caller, spellings, isShown, expose }] of subscribers) {
        const isMeant = onLink?.(caller) !== false && isToldElsewhere?.(caller) !== true
        if (notified.has(subscriber) || !isMeant || !isShown(uri)) continue
        notified.add(subscriber)
        for (const exposed of original === uri ? spellings : [expose(uri)]) {
          const copy = params.fresh()
          copy.set('uri', JSON.stringify(exposed))
          subscriber.updated(copy)
        }
      }
    }
  }

  /** After a reconnect: subscribes again and sends one update to all subscribers, since updates may have been missed. */
  async restore(downstream: Reconnected): Promise<void> {
    const here = [...this.#watched.values()].filter((watched) => watched.downstream.id === downstream.id)
    const again = async (watched: Watched): Promise<void> => {
      watched.downstream = downstream
      if (!(await this.#ask(watched).catch(() => false))) return
      for (const [subscriber, { spellings, isShown }] of watched.subscribers)
        if (isShown(watched.original)) for (const uri of spellings) subscriber.updated(Payload.of({ uri }))
    }
    await Promise.all(here.map(again))
  }

  #ask(watched: Watched): Promise<boolean> {
    const subscribe = (): Promise<boolean> => watched.downstream.subscribe(watched.original)
    const leaving = this.#leaving.get(keyOf(watched.downstream.id, watched.original))
    const accepted = leaving?.then(subscribe) ?? subscribe()
    watched.accepted = accepted
    accepted.catch(() => {
      if (watched.accepted === accepted) watched.accepted = undefined
    })
    return accepted
  }

  #count(subscriber: Subscriber): void {
    const max = this.#max()
    const count = this.#counts.get(subscriber) ?? 0
    if (count >= max) throw tooMany(max)
    this.#counts.set(subscriber, count + 1)
  }

  #uncount(subscriber: Subscriber, uris: number): void {
    const count = (this.#counts.get(subscriber) ?? 0) - uris
    if (count > 0) this.#counts.set(subscriber, count)
    else this.#counts.delete(subscriber)
  }

  #keepLeft(key: string): void {
    this.#left.add(key)
    const [oldest] = this.#left
    if (this.#left.size > MAX_LEFT && oldest !== undefined) this.#left.delete(oldest)
  }

  #remove(key: string, watched: Watched, subscriber: Subscriber): void {
    const spellings = watched.subscribers.get(subscriber)?.spellings
    if (spellings === undefined) return
    watched.subscribers.delete(subscriber)
    this.#uncount(subscriber, spellings.size)
    if (watched.subscribers.size > 0) return
    this.#watched.delete(key)
    this.#keepLeft(key)
    const left = Promise.resolve(watched.accepted)
      .then((accepted) => (accepted === false ? undefined : watched.downstream.unsubscribe(watched.original)))
      .catch(() => undefined)
      .finally(() => {
        if (this.#leaving.get(key) === left) this.#leaving.delete(key)
      })
    this.#leaving.set(key, left)
  }
}

/** The refusal of a subscription beyond `limits.subscriptions`. */
export const tooMany = (max: number): Failure =>
  new Failure('overloaded', `limits.subscriptions (${max}) reached`, { executed: 'no', limit: 'limits.subscriptions' })

/** Stored unsubscribed URIs. */
const MAX_LEFT = 1_024
