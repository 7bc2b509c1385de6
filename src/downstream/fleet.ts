/** All configured servers, in configuration order: started a few at a time, replaced one by one when the configuration changes. */
import PQueue from 'p-queue'
import { BehaviorSubject } from 'rxjs'
import { Downstream } from './downstream.ts'
import type { DownstreamEnvironment } from './environment.ts'
import type { ServerOptions } from './options.ts'

/** Servers starting at the same time (RELIABILITY 7). */
const STARTS_AT_ONCE = 4

export class Fleet {
  readonly downstreams$ = new BehaviorSubject<readonly Downstream[]>([])
  readonly #environment: DownstreamEnvironment
  readonly #starts = new PQueue({ concurrency: STARTS_AT_ONCE })
  readonly #leaving = new Set<Promise<void>>()

  /** Everything a server needs, but for the gate, which is the fleet's own. */
  constructor(environment: Omit<DownstreamEnvironment, 'gate'>) {
    this.#environment = {
      ...environment,
      gate: (start, isWanted) => this.#starts.add(start, { priority: isWanted() ? 1 : 0 }),
    }
  }

  get(key: string): Downstream | undefined {
    return this.downstreams$.value.find((downstream) => downstream.options.key === key)
  }

  /**
   * Makes the fleet match `servers`: what stays keeps its process, links and sessions; what is in `restart`, or gone, is
   * drained and ended.
   */
  apply(servers: readonly ServerOptions[], restart: ReadonlySet<string> = new Set()): void {
    const before = new Map(this.downstreams$.value.map((downstream) => [downstream.options.key, downstream]))
    const after = servers.map((options) => {
      const existing = before.get(options.key)
      if (existing === undefined || restart.has(options.key)) return new Downstream(options, this.#environment)
      before.delete(options.key)
      existing.options = options
      return existing
    })
    this.downstreams$.next(after)
    for (const downstream of after) downstream.start()
    for (const downstream of before.values()) this.#end(downstream)
  }

  async stop(): Promise<void> {
    for (const downstream of this.downstreams$.value) this.#end(downstream)
    await Promise.all(this.#leaving)
    this.downstreams$.complete()
  }

  #end(downstream: Downstream): void {
    const left = downstream.stop().finally(() => this.#leaving.delete(left))
    this.#leaving.add(left)
  }
}
