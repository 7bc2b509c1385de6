/**
 * Who watches which resource: counted per server and URI, so that a server is told once, and told again when nobody is left
 * (BRIDGING 3.8; B131–B134).
 */
import type { Downstream } from '../downstream/downstream.ts'
import type { Reconnected } from '../downstream/environment.ts'
import { META } from '../wire/meta.ts'
import { Payload } from '../wire/payload.ts'

/** Somebody who is told; `params` are those of the notification, with the URI this subscriber knows. */
export interface Subscriber {
  updated(params: Payload): void
}

interface Watched {
  readonly downstream: Downstream
  readonly original: string
  /** Each subscriber with the URI by which it knows the resource. */
  readonly subscribers: Map<Subscriber, string>
  /** Settles with whether the server offers it. */
  accepted: Promise<boolean>
}

const keyOf = (server: string, original: string): string => `${server} ${original}`

export class Subscriptions {
  readonly #watched = new Map<string, Watched>()
  /** Servers that are being told that nobody watches any more: told to watch again only after that, lest the two cross. */
  readonly #leaving = new Map<string, Promise<void>>()

  get size(): number {
    return this.#watched.size
  }

  /** Counts one in. False: the server does not offer subscriptions to it. Idempotent. */
  async add(subscriber: Subscriber, downstream: Downstream, original: string, exposed: string): Promise<boolean> {
    const key = keyOf(downstream.options.key, original)
    let watched = this.#watched.get(key)
    if (watched === undefined) {
      const subscribe = (): Promise<boolean> => downstream.subscribe(original)
      const accepted = this.#leaving.get(key)?.then(subscribe) ?? subscribe()
      watched = { downstream, original, subscribers: new Map(), accepted }
      this.#watched.set(key, watched)
    }
    watched.subscribers.set(subscriber, exposed)
    const accepted = await watched.accepted.catch(() => false)
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
   * everybody at that server. Everyone gets the URI that was reported, in its own spelling.
   */
  updated(server: string, uri: string, params: Payload, expose: (uri: string) => string): void {
    const here = [...this.#watched.values()].filter(({ downstream }) => downstream.options.key === server)
    const exact = here.filter(({ original }) => original === uri)
    const above = here.filter(({ original }) => uri.startsWith(original.endsWith('/') ? original : `${original}/`))
    const chosen = exact.length > 0 ? exact : above.length > 0 ? above : here
    const told = new Set<Subscriber>()
    for (const { subscribers, original } of chosen) {
      for (const [subscriber, spelling] of subscribers) {
        if (told.has(subscriber)) continue
        told.add(subscriber)
        const copy = withoutOurId(params.fresh())
        copy.set('uri', JSON.stringify(original === uri ? spelling : expose(uri)))
        subscriber.updated(copy)
      }
    }
  }

  /** After a reconnect: watch again, and let everybody read once, since updates may have been missed. */
  async restore(downstream: Reconnected): Promise<void> {
    for (const [key, watched] of this.#watched) {
      if (watched.downstream.options.key !== downstream.options.key) continue
      watched.accepted = downstream.subscribe(watched.original)
      if (!(await watched.accepted.catch(() => false))) continue
      for (const [subscriber, spelling] of this.#watched.get(key)?.subscribers ?? [])
        subscriber.updated(Payload.of({ uri: spelling }))
    }
  }

  #leave(key: string, watched: Watched, subscriber: Subscriber): void {
    watched.subscribers.delete(subscriber)
    if (watched.subscribers.size > 0 || this.#watched.get(key) !== watched) return
    this.#watched.delete(key)
    const left = watched.accepted
      .then((accepted) => (accepted ? watched.downstream.unsubscribe(watched.original) : undefined))
      .catch(() => undefined)
      .finally(() => {
        if (this.#leaving.get(key) === left) this.#leaving.delete(key)
      })
    this.#leaving.set(key, left)
  }
}

/** The id of our own `listen` at the server means nothing to a host. */
const withoutOurId = (params: Payload): Payload => {
  const meta = params.object('_meta')
  if (meta?.has(META.subscriptionId) !== true) return params
  if (meta.members.length === 1) params.delete('_meta')
  else meta.delete(META.subscriptionId)
  return params
}
