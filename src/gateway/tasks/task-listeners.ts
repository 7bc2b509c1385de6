/**
 * Receivers of task changes: the legacy session that created the task, and all streams of modern hosts that follow it. A server gets one
 * subscription per task, which ends with the last follower. Ended and expired tasks are removed (BRIDGING 2.3, 3.7, 3.17).
 */
import { storedMs } from '../../era/task-shapes.ts'
import type { Reconnected } from '../../downstream/environment.ts'
import type { Caller, HostSession } from '../../rpc/call.ts'
import type { Payload } from '../../wire/message/payload.ts'

/** A stream that follows tasks. `params`: those of `notifications/tasks`. */
export interface TaskSubscriber {
  task?(params: Payload): void
}

/** A follower of a task, and its id for the task. */
interface Follower {
  readonly exposed: string
  readonly caller: Caller
}

/** A session that created a task. */
interface Creator {
  readonly session: HostSession
  readonly exposed: string
  /** Removes the entry. */
  readonly forget: () => void
}

interface Followed {
  /** Replaced after a restart of the server. */
  downstream: Reconnected
  readonly original: string
  readonly followers: Map<TaskSubscriber, Follower>
  /** Whether the server sends the changes; true also while it is not connected. */
  accepted: Promise<boolean>
}

/** Stored tasks of one session. */
const MAX_CREATED = 1_000

const keyOf = (server: string, original: string): string => `${server} ${original}`

export class TaskListeners {
  readonly #followed = new Map<string, Followed>()
  readonly #created = new Map<string, Set<Creator>>()
  readonly #bySession = new WeakMap<HostSession, Set<Creator>>()

  /** Number of tasks followed by streams, and number of tasks created by sessions. */
  get sizes(): { readonly followed: number; readonly created: number } {
    return { followed: this.#followed.size, created: this.#created.size }
  }

  /** Adds a stream; false: the server does not send the changes of the task. */
  async add(subscriber: TaskSubscriber, follower: Follower, downstream: Reconnected, original: string): Promise<boolean> {
    const key = keyOf(downstream.id, original)
    let followed = this.#followed.get(key)
    if (followed === undefined) {
      followed = { downstream, original, followers: new Map(), accepted: ask(downstream, original) }
      this.#followed.set(key, followed)
    }
    followed.followers.set(subscriber, follower)
    const isAccepted = await followed.accepted
    if (!isAccepted) this.#leave(key, followed, subscriber)
    return isAccepted
  }

  /** Removes a stream that has ended. */
  release(subscriber: TaskSubscriber): void {
    for (const [key, followed] of this.#followed) this.#leave(key, followed, subscriber)
  }

  /** Removes a follower that was notified of the task's end. */
  over(subscriber: TaskSubscriber, server: string, original: string): void {
    const key = keyOf(server, original)
    const followed = this.#followed.get(key)
    if (followed !== undefined) this.#leave(key, followed, subscriber)
  }

  /** Stores the session that created a task; only it gets `notifications/tasks/status`. `ttlMs`: the server's value. */
  created(session: HostSession, server: string, original: string, exposed: string, ttlMs: unknown): void {
    const key = keyOf(server, original)
    const own = this.#ownOf(session)
    for (const earlier of this.#created.get(key) ?? []) if (earlier.session === session) earlier.forget()
    const [oldest] = own
    if (own.size >= MAX_CREATED) oldest?.forget()
    const all = this.#created.get(key) ?? new Set()
    const creator: Creator = {
      session,
      exposed,
      forget: () => {
        clearTimeout(timer)
        own.delete(creator)
        all.delete(creator)
        if (all.size === 0) this.#created.delete(key)
      },
    }
    const timer = setTimeout(creator.forget, storedMs(ttlMs)).unref()
    own.add(creator)
    this.#created.set(key, all.add(creator))
  }

  /** Several only if server processes of several sessions chose the same id. */
  creatorsOf(server: string, original: string): readonly Creator[] {
    return [...(this.#created.get(keyOf(server, original)) ?? [])]
  }

  followersOf(server: string, original: string): readonly (readonly [TaskSubscriber, Follower])[] {
    return [...(this.#followed.get(keyOf(server, original))?.followers ?? [])]
  }

  isFollowing(subscriber: TaskSubscriber, server: string, original: string): boolean {
    return this.#followed.get(keyOf(server, original))?.followers.has(subscriber) === true
  }

  /** Subscribes again after a reconnect. */
  restore(server: Reconnected): void {
    for (const followed of this.#followed.values()) {
      if (followed.downstream.id !== server.id) continue
      followed.downstream = server
      followed.accepted = ask(server, followed.original)
    }
  }

  #leave(key: string, { downstream, original, followers }: Followed, subscriber: TaskSubscriber): void {
    if (!followers.delete(subscriber) || followers.size > 0) return
    this.#followed.delete(key)
    void downstream.unfollowTask(original).catch(() => undefined)
  }

  #ownOf(session: HostSession): Set<Creator> {
    const known = this.#bySession.get(session)
    if (known !== undefined) return known
    const own = new Set<Creator>()
    this.#bySession.set(session, own)
    session.onEnd(() => {
      for (const creator of own) creator.forget()
    })
    return own
  }
}

/** A server that is not connected is asked again once it is. */
const ask = (downstream: Reconnected, original: string): Promise<boolean> => downstream.followTask(original).catch(() => true)
