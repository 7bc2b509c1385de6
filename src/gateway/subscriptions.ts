/**
 * Resource subscriptions, counted per server and URI: a server gets one subscribe for the first subscriber, and one unsubscribe
 * after the last (BRIDGING 3.8; B131–B134).
 */
import type { Reconnected, UpdateAudience } from '../downstream/environment.ts'
import type { Caller } from '../rpc/call.ts'
import { Failure } from '../wire/message/failure.ts'
import { META } from '../wire/protocol/meta.ts'
import { Payload } from '../wire/message/payload.ts'

/** Receives updates; `params` are those of the notification, with the URI this subscriber knows. */
export interface Subscriber {
  updated(params: Payload): void
}

/** How one subscriber knows a resource; of others of the same server, by original URI, whether it may be told of them and as what: views change. */
export interface Interest {
  readonly caller: Caller
  readonly exposed: string
  readonly mayHear: (original: string) => boolean
  readonly expose: (original: string) => string
}

interface Watched {
  /** Another after a restart of the server. */
  downstream: Reconnected
  readonly original: string
  readonly subscribers: Map<Subscriber, Interest>
  /** Settles with whether the server offers it; `undefined`: it could not be asked, and will be when it is back. */
  accepted: Promise<boolean> | undefined
}

const keyOf = (server: string, original: string): string => `${server} ${original}`

export class Subscriptions {
  readonly #watched = new Map<string, Watched>()
  /** Unsubscribe requests under way: a new subscribe waits for them, so that the two cannot arrive in the wrong order. */
  readonly #leaving = new Map<string, Promise<void>>()
  /** Of what no subscriber is left, the latest: servers may go on telling of it. */
  readonly #left = new Set<string>()
  /** How many each subscriber watches. */
  readonly #counts = new Map<Subscriber, number>()
  readonly #max: () => number

  /** `max`: how many one subscriber may watch (`limits.subscriptions`); called each time, since a reload may change it. */
  constructor(max: () => number) {
    this.#max = max
  }

  get size(): number {
    return this.#watched.size
  }

  /**
   * Counts one in. False: the server does not offer subscriptions to it. Rejects if the server cannot be asked now: the subscriber
   * stays counted, and is told to read once when the server is back; and if he watches as many as he may. Idempotent.
   */
  async add(subscriber: Subscriber, downstream: Reconnected, original: string, interest: Interest): Promise<boolean> {
    const key = keyOf(downstream.id, original)
    let watched = this.#watched.get(key)
    if (watched?.subscribers.has(subscriber) !== true) this.#count(subscriber)
    if (watched === undefined) {
      watched = { downstream, original, subscribers: new Map(), accepted: undefined }
      this.#watched.set(key, watched)
      this.#left.delete(key)
    }
    watched.subscribers.set(subscriber, interest)
    const accepted = await (watched.accepted ?? this.#ask(watched))
    if (!accepted) this.#leave(key, watched, subscriber)
    return accepted
  }

  remove(subscriber: Subscriber, server: string, original: string): void {
    const key = keyOf(server, original)
    const watched = this.#watched.get(key)
    if (watched !== undefined) this.#leave(key, watched, subscriber)
  }

  /** A session or stream has ended. */
  release(subscriber: Subscriber): void {
    for (const [key, watched] of this.#watched) if (watched.subscribers.has(subscriber)) this.#leave(key, watched, subscriber)
  }

  /**
   * A server reports a change. The URI may be below what was subscribed: exact subscribers first, else those above it, else
   * everybody at that server, unless the URI itself was unsubscribed. Everyone gets the URI that was reported, in its own spelling.
   * A subscriber that is told on another link still counts as one of that URI: its updates are not everybody's.
   */
  updated(server: string, uri: string, params: Payload, { onLink, isToldElsewhere }: UpdateAudience = {}): void {
    const isConcerned = ({ subscribers }: Watched): boolean =>
      onLink === undefined || [...subscribers.values()].some(({ caller }) => onLink(caller))
    const here = [...this.#watched.values()].filter((one) => one.downstream.id === server && isConcerned(one))
    const exact = here.filter(({ original }) => original === uri)
    const above = here.filter(({ original }) => uri.startsWith(original.endsWith('/') ? original : `${original}/`))
    const others = this.#left.has(keyOf(server, uri)) ? [] : here
    const chosen = exact.length > 0 ? exact : above.length > 0 ? above : others
    const told = new Set<Subscriber>()
    for (const { subscribers, original } of chosen) {
      for (const [subscriber, { caller, exposed, mayHear, expose }] of subscribers) {
        const isTold = onLink?.(caller) !== false && isToldElsewhere?.(caller) !== true
        if (told.has(subscriber) || !isTold || !mayHear(uri)) continue
        told.add(subscriber)
        const copy = withoutOurId(params.fresh())
        copy.set('uri', JSON.stringify(original === uri ? exposed : expose(uri)))
        subscriber.updated(copy)
      }
    }
  }

  /** After a reconnect: watch again, and let everybody read once, since updates may have been missed. */
  async restore(downstream: Reconnected): Promise<void> {
    const here = [...this.#watched.values()].filter((watched) => watched.downstream.id === downstream.id)
    const again = async (watched: Watched): Promise<void> => {
      watched.downstream = downstream
      if (!(await this.#ask(watched).catch(() => false))) return
      for (const [subscriber, { exposed, mayHear }] of watched.subscribers)
        if (mayHear(watched.original)) subscriber.updated(Payload.of({ uri: exposed }))
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
    if (count >= max)
      throw new Failure('overloaded', `limits.subscriptions (${max}) reached`, { executed: 'no', limit: 'limits.subscriptions' })
    this.#counts.set(subscriber, count + 1)
  }

  #keepLeft(key: string): void {
    this.#left.add(key)
    const [oldest] = this.#left
    if (this.#left.size > MAX_LEFT && oldest !== undefined) this.#left.delete(oldest)
  }

  #leave(key: string, watched: Watched, subscriber: Subscriber): void {
    if (!watched.subscribers.delete(subscriber)) return
    const count = (this.#counts.get(subscriber) ?? 1) - 1
    if (count > 0) this.#counts.set(subscriber, count)
    else this.#counts.delete(subscriber)
    if (watched.subscribers.size > 0 || this.#watched.get(key) !== watched) return
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

/** How many URIs that were watched once are remembered. */
const MAX_LEFT = 1_024

/** The id of our own `listen` at the server means nothing to a host. */
const withoutOurId = (params: Payload): Payload => {
  const meta = params.object('_meta')
  if (meta?.has(META.subscriptionId) !== true) return params
  if (meta.members.length === 1) params.delete('_meta')
  else meta.delete(META.subscriptionId)
  return params
}
