/**
 * Receivers of task changes: the legacy session that created the task, and every stream of a modern host that named it. A server
 * gets one request to announce a task's changes, and is released from it after the last follower. A task that has ended or expired
 * is removed (BRIDGING 2.3, 3.7, 3.17).
 */
import type { Reconnected } from '../../downstream/environment.ts'
import type { Caller, HostSession } from '../../rpc/call.ts'
import type { Payload } from '../../wire/message/payload.ts'

/** A stream that named tasks; `params` are those of `notifications/tasks`. */
export interface TaskSubscriber {
  task?(params: Payload): void
}

/** Who follows a task, and under which id he knows it. */
export interface Follower {
  readonly exposed: string
  readonly caller: Caller
}

/** A session that made a task. */
export interface Creator {
  readonly session: HostSession
  readonly exposed: string
  /** The task is over. */
  readonly forget: () => void
}

interface Followed {
  /** Another after a restart of the server. */
  downstream: Reconnected
  readonly original: string
  readonly followers: Map<TaskSubscriber, Follower>
}

/** Tasks that one session is remembered for. */
const MAX_CREATED = 1_000
/** Unlimited tasks are forgotten after this. */
const MAX_KEPT_MS = 24 * 3_600_000

const keyOf = (server: string, original: string): string => `${server} ${original}`

export class TaskListeners {
  readonly #followed = new Map<string, Followed>()
  readonly #created = new Map<string, Set<Creator>>()
  readonly #bySession = new WeakMap<HostSession, Set<Creator>>()

  /** How many tasks are followed by streams, and how many by sessions. */
  get sizes(): { readonly followed: number; readonly created: number } {
    return { followed: this.#followed.size, created: this.#created.size }
  }

  add(subscriber: TaskSubscriber, follower: Follower, downstream: Reconnected, original: string): void {
    const key = keyOf(downstream.id, original)
    let followed = this.#followed.get(key)
    if (followed === undefined) {
      followed = { downstream, original, followers: new Map() }
      this.#followed.set(key, followed)
      void downstream.followTask(original).catch(() => undefined)
    }
    followed.followers.set(subscriber, follower)
  }

  /** A stream has ended. */
  release(subscriber: TaskSubscriber): void {
    for (const [key, followed] of this.#followed) this.#leave(key, followed, subscriber)
  }

  /** A task has ended, as this subscriber was told: nothing more will be said of it. */
  over(subscriber: TaskSubscriber, server: string, original: string): void {
    const key = keyOf(server, original)
    const followed = this.#followed.get(key)
    if (followed !== undefined) this.#leave(key, followed, subscriber)
  }

  /** A session made this task: it alone hears of it by `notifications/tasks/status`. `ttlMs`: as the server said it. */
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
        if (all.size === 0 && this.#created.get(key) === all) this.#created.delete(key)
      },
    }
    const keptMs = typeof ttlMs === 'number' ? Math.min(ttlMs, MAX_KEPT_MS) : MAX_KEPT_MS
    const timer = setTimeout(creator.forget, keptMs).unref()
    own.add(creator)
    this.#created.set(key, all.add(creator))
  }

  /** Several only where servers of several sessions chose the same id. */
  creatorsOf(server: string, original: string): readonly Creator[] {
    return [...(this.#created.get(keyOf(server, original)) ?? [])]
  }

  followersOf(server: string, original: string): readonly (readonly [TaskSubscriber, Follower])[] {
    return [...(this.#followed.get(keyOf(server, original))?.followers ?? [])]
  }

  /** After a reconnect the server is asked again. */
  restore(server: Reconnected): void {
    for (const followed of this.#followed.values()) {
      if (followed.downstream.id !== server.id) continue
      followed.downstream = server
      server.followTask(followed.original).catch(() => undefined)
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
