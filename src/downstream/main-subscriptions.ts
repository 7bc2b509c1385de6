/** The resources and tasks that the gateway follows at one server over its main link. The gateway subscribes again after a reconnect. */
import { withCredential } from '../auth/outbound/credential.ts'
import type { Credential } from '../auth/outbound/credential.ts'
import type { Link } from '../era/server/link.ts'
import { ServerError } from '../rpc/call.ts'
import type { Reconnected } from './environment.ts'
import type { EraChanges } from './links/era-changes.ts'
import type { MainLink } from './health/main-link.ts'
import type { Supervisor } from './health/supervisor.ts'
import type { ServerOptions } from './options.ts'
import { isForgotten } from './pacing/retries.ts'
import type { ServerErrors } from './server-errors.ts'

interface MainSubscriptionsSource {
  readonly id: string
  readonly options: () => ServerOptions
  readonly credential: Credential | undefined
  readonly main: MainLink
  readonly supervisor: Supervisor
  readonly eraChanges: EraChanges
  readonly errors: ServerErrors
}

export class MainSubscriptions implements Reconnected {
  readonly id: string
  readonly #source: MainSubscriptionsSource
  readonly #followed = new Set<string>()
  /** Pending subscribe requests by URI. */
  readonly #pending = new Map<string, Promise<boolean>>()

  constructor(source: MainSubscriptionsSource) {
    this.id = source.id
    this.#source = source
  }

  get options(): ServerOptions {
    return this.#source.options()
  }

  get isEmpty(): boolean {
    return this.#followed.size === 0
  }

  /** Watches a resource; false if the server does not offer that. Throws `Failure` if the server is not connected. */
  subscribe(uri: string): Promise<boolean> {
    this.#followed.add(`resource ${uri}`)
    const pending = this.#pending.get(uri)
    if (pending !== undefined) return pending
    const subscribing: Promise<boolean> = this.#subscribe(uri)
      .then((accepted) => {
        if (!accepted && this.#pending.get(uri) === subscribing) this.#followed.delete(`resource ${uri}`)
        return accepted
      })
      .finally(() => {
        if (this.#pending.get(uri) === subscribing) this.#pending.delete(uri)
      })
    this.#pending.set(uri, subscribing)
    return subscribing
  }

  async unsubscribe(uri: string): Promise<void> {
    this.#followed.delete(`resource ${uri}`)
    this.#pending.delete(uri)
    await this.#source.main.current?.unsubscribe(uri)
  }

  /** Subscribes to the changes of a task; false if the server does not send them. Throws `Failure` if the server is not connected. */
  async followTask(id: string): Promise<boolean> {
    const { credential, supervisor } = this.#source
    this.#followed.add(`task ${id}`)
    const isAccepted = await withCredential(credential, async () => {
      const link = await supervisor.ready()
      // It may have been unfollowed meanwhile.
      return !this.#followed.has(`task ${id}`) || link.followTask(id)
    }).catch((error: unknown) => {
      if (error instanceof ServerError) return false
      throw error
    })
    if (!isAccepted) this.#followed.delete(`task ${id}`)
    return isAccepted
  }

  async unfollowTask(id: string): Promise<void> {
    this.#followed.delete(`task ${id}`)
    await this.#source.main.current?.unfollowTask(id)
  }

  /** Sends the request again if the server has forgotten the session or has changed its era (BRIDGING 5.3, B268). */
  async #subscribe(uri: string): Promise<boolean> {
    const { credential, eraChanges, errors, main, supervisor } = this.#source
    let link: Link | undefined
    const attempt = async (): Promise<boolean> => {
      const current = (link = await supervisor.ready())
      return main.over(current, () => current.subscribe(uri))
    }
    const ask = (): Promise<boolean> => withCredential(credential, attempt)
    try {
      return await ask().catch(async (error: unknown) => {
        if (!isForgotten(error) && !(await eraChanges.isChange(error, link))) throw error
        return ask()
      })
    } catch (error) {
      if (error instanceof ServerError) return false
      throw errors.located(error)
    }
  }
}
