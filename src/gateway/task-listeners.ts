/**
 * Who is told when a task changes: the legacy session that made it, and every stream of a modern host that named it. A server is
 * asked to tell once per task, and no longer when nobody is left (BRIDGING 2.3, 3.7, 3.17).
 */
import type { Downstream } from '../downstream/downstream.ts'
import type { Reconnected } from '../downstream/environment.ts'
import type { Caller, HostSession } from '../rpc/call.ts'
import type { Payload } from '../wire/payload.ts'

/** A stream that named tasks; `params` are those of `notifications/tasks`. */
export interface TaskSubscriber {
  task?(params: Payload): void
}

/** Who follows a task, and under which id he knows it. */
export interface Follower {
  readonly exposed: string
  readonly caller: Caller
}

interface Followed {
  readonly downstream: Downstream
  readonly original: string
  readonly followers: Map<TaskSubscriber, Follower>
}

/** Tasks a session is remembered for. */
const MAX_CREATED = 10_000

const keyOf = (server: string, original: string): string => `${server} ${original}`

export class TaskListeners {
  readonly #followed = new Map<string, Followed>()
  readonly #created = new Map<string, { readonly session: HostSession; readonly exposed: string }>()

  add(subscriber: TaskSubscriber, follower: Follower, downstream: Downstream, original: string): void {
    const key = keyOf(downstream.options.key, original)
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
    for (const [key, { downstream, original, followers }] of this.#followed) {
      if (!followers.delete(subscriber) || followers.size > 0) continue
      this.#followed.delete(key)
      void downstream.unfollowTask(original).catch(() => undefined)
    }
  }

  /** A session made this task: it alone hears of it by `notifications/tasks/status`. */
  created(session: HostSession, server: string, original: string, exposed: string): void {
    const [oldest] = this.#created.keys()
    if (this.#created.size >= MAX_CREATED && oldest !== undefined) this.#created.delete(oldest)
    const key = keyOf(server, original)
    this.#created.set(key, { session, exposed })
    session.onEnd(() => this.#created.delete(key))
  }

  creatorOf(server: string, original: string): { readonly session: HostSession; readonly exposed: string } | undefined {
    return this.#created.get(keyOf(server, original))
  }

  followersOf(server: string, original: string): readonly (readonly [TaskSubscriber, Follower])[] {
    return [...(this.#followed.get(keyOf(server, original))?.followers ?? [])]
  }

  /** After a reconnect the server is asked again. */
  async restore(server: Reconnected): Promise<void> {
    for (const { downstream, original } of this.#followed.values())
      if (downstream.options.key === server.options.key) await downstream.followTask(original)
  }
}
