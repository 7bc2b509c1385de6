/**
 * The store that replicas share, as each of them reaches it: over the simulated network, from which it may be cut off. It is the
 * product's own store in memory, and the product's own messages to a store in another process.
 */
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { operateStore, RelayedStore } from '../../../src/store/relayed-store.ts'
import type { Store } from '../../../src/store/store.ts'
import type { SimulatedClock } from './clock.ts'
import type { SimulatedNetwork } from './network.ts'
import { runAt, SimulatedNode } from './node.ts'

/** Name of its machine. */
export const STORE = 'store'
/** What may be there while no host is connected, besides the leases of replicas (decision 0071). */
const AT_REST = /^(?:replicas|epoch|(?:session|fence|ended|settings|lists|rate):.+)$/

const LEASE = 'replica:'

/** Is told of what a replica has claimed. */
export type Claimed = (session: string, by: SimulatedNode) => void

export class SimulatedStore {
  readonly #clock: SimulatedClock
  readonly #network: SimulatedNetwork
  readonly #claimed: Claimed
  readonly #memory: MemoryStore
  readonly #links = new Map<RelayedStore, SimulatedNode>()
  readonly #seen = new Set<string>()
  /** By instance: the process that has written its lease. */
  readonly #leased = new Map<string, SimulatedNode>()
  readonly #node = new SimulatedNode(STORE)

  constructor(clock: SimulatedClock, network: SimulatedNetwork, claimed: Claimed) {
    this.#clock = clock
    this.#network = network
    this.#claimed = claimed
    this.#memory = new MemoryStore({
      now: () => clock.nowMs,
      published: (channel, message) => {
        for (const [link, node] of this.#links)
          this.#carry(this.#node, node, () => runAt(node, () => link.published(channel, message)))
      },
    })
  }

  /** The way of one replica to it. */
  linkOf(node: SimulatedNode): Store {
    const link = new RelayedStore(<T>(operation: unknown, args: readonly unknown[]) => {
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      this.#carry(node, this.#node, () => {
        const [key] = args
        this.#seen.add(String(key))
        if (operation === 'set' && String(key).startsWith(LEASE)) this.#leased.set(String(key).slice(LEASE.length), node)
        operateStore(this.#memory, operation, args).then((result) => {
          if (operation === 'claim' && result === args[1] && String(key).startsWith('session:')) {
            // A replica that is not sure of what it has claimed gives it back in the name of the other one.
            const [instance = ''] = String(result).split(' ', 1)
            this.#claimed(String(key).slice('session:'.length), this.#leased.get(instance) ?? node)
          }
          this.#carry(this.#node, node, () => resolve(result as T))
        }, reject)
      })
      return promise
    })
    this.#links.set(link, node)
    return link
  }

  /** It stands still for `ms`; what was asked meanwhile is done afterwards. */
  pause(ms: number): void {
    this.#node.pausedUntilMs = this.#clock.nowMs + ms
  }

  /** Everything is lost, as with a replica of the store that had nothing yet when it took over. */
  async lose(): Promise<void> {
    await this.#memory[Symbol.asyncDispose]()
  }

  resume(): void {
    this.#node.pausedUntilMs = 0
  }

  /** Keys that are there though no host is connected; `running`: the replicas whose leases may be. */
  async leftOver(running: ReadonlySet<string>): Promise<readonly string[]> {
    const left: string[] = []
    for (const key of this.#seen) {
      const isThere = (await this.#memory.get(key)) !== undefined || (await this.#memory.range(key)).length > 0
      const isLease = key.startsWith(LEASE) && running.has(key.slice(LEASE.length))
      if (isThere && !isLease && !AT_REST.test(key)) left.push(key)
    }
    return left
  }

  #carry(from: SimulatedNode, to: SimulatedNode, run: () => void): void {
    const { random, maxDelayMs } = this.#network
    const arrive = (): void => {
      if (to.isDead) return
      const partedMs = this.#network.partedUntilMs(from, to)
      const untilMs = Math.max(partedMs, to.pausedUntilMs)
      if (untilMs <= this.#clock.nowMs) return run()
      // What a network without a way holds back may be lost with its connection, too.
      if (partedMs > this.#clock.nowMs && random.chance(0.5)) return
      this.#clock.after(untilMs - this.#clock.nowMs, arrive)
    }
    this.#clock.after(random.next() * maxDelayMs, arrive)
  }
}
