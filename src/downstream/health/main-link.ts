/** The main link of one server while it takes calls. One that was given up still carries its pending calls (B268). */
import type { Link } from '../../era/server/link.ts'
import { Failure } from '../../wire/message/failure.ts'
import { isForgotten } from '../pacing/retries.ts'
import { isHopeless } from './health.ts'
import type { ServerStates } from './server-state.ts'

export class MainLink {
  readonly #states: ServerStates
  /** Links that were given up and still have pending calls. */
  readonly #retiring = new Set<Link>()
  /** Ends the wait for the link that is up. */
  #onGivenUp: () => void = () => undefined

  constructor(states: ServerStates) {
    this.#states = states
  }

  /** The link while calls may use it. */
  get current(): Link | undefined {
    return this.#states.now.link
  }

  /** The gateways behind the server; empty before the link is open (T-35). */
  get gateways(): readonly string[] {
    return this.#states.now.opened?.gateways ?? []
  }

  /** Runs `use`. Gives the link up if its session is forgotten (BRIDGING 5.3), or if a person must fix the failure. */
  async over<T>(link: Link, use: () => Promise<T>): Promise<T> {
    try {
      return await use()
    } catch (error) {
      const refusal = error instanceof Failure && isHopeless(error) ? error : undefined
      if (refusal !== undefined || isForgotten(error)) this.giveUp(link, refusal)
      throw error
    }
  }

  /** Removes the link, so that another is opened at once; its pending calls end first. */
  giveUp(link: Link, refusal?: Failure): void {
    if (this.current !== link) return
    this.#states.send({ type: 'given-up', link, refusal })
    this.#retiring.add(link)
    void link.retire().finally(() => this.#retiring.delete(link))
    this.#onGivenUp()
  }

  /** Resolves with the reason once the link is closed or given up. */
  async ended(link: Link): Promise<Failure> {
    const givenUp = new Promise<undefined>((resolve) => (this.#onGivenUp = () => resolve(undefined)))
    const failure = await (this.current === link ? Promise.race([link.closed, givenUp]) : undefined)
    return failure ?? this.#states.now.refusal ?? new Failure('lost', 'the connection was closed', { retryable: true })
  }

  async close(): Promise<void> {
    await Promise.all([this.current?.close(), ...[...this.#retiring].map((link) => link.close())])
  }
}
