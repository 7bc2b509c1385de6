/** All configured servers, in configuration order; replaced one by one when the configuration changes. */
import { BehaviorSubject } from 'rxjs'
import { Downstream } from './downstream.ts'
import type { DownstreamEnvironment } from './environment.ts'
import type { ServerOptions } from './options.ts'
import { Starts } from './pacing/starts.ts'

export class Fleet {
  readonly downstreams$ = new BehaviorSubject<readonly Downstream[]>([])
  readonly #environment: DownstreamEnvironment
  #isEnding = false
  readonly #leaving = new Map<Downstream, Promise<void>>()
  /** Those that are there now. */
  #byKey: ReadonlyMap<string, Downstream> = new Map()

  /** Everything a server needs, but for what the fleet itself knows. */
  constructor(environment: Omit<DownstreamEnvironment, 'starts' | 'startAfter' | 'isSuccessor' | 'isEnding' | 'sseIds'>) {
    const { sweeper, maxStarts, limits } = environment
    this.#environment = {
      ...environment,
      isEnding: () => this.#isEnding,
      isSuccessor: false,
      sseIds: { next: 1 },
      startAfter: undefined,
      starts: new Starts({ sweeper, max: maxStarts, onWait: () => limits.passed('limits.starts') }),
    }
  }

  /** The gateways that calls are led through, this one first. */
  get gateways(): readonly string[] {
    const behind = this.downstreams$.value.flatMap(({ main }) => main.gateways)
    return [this.#environment.instance, ...new Set(behind)]
  }

  get(key: string): Downstream | undefined {
    return this.#byKey.get(key)
  }

  /** The one that calls of this principal go to. */
  for(key: string, principal: string): Downstream | undefined {
    return this.get(key)?.for(principal)
  }

  /** By its `id`: of those that are there now. */
  find(id: string): Downstream | undefined {
    const at = id.indexOf(' ')
    return at === -1 ? this.get(id) : this.get(id.slice(0, at))?.personal?.find(id.slice(at + 1))
  }

  /** Everything that a session of this principal may have a link to. */
  all(principal: string): readonly Downstream[] {
    return this.downstreams$.value.flatMap((downstream) =>
      downstream.personal === undefined ? downstream : (downstream.personal.find(principal) ?? []),
    )
  }

  /**
   * Makes the fleet match `servers`: what stays keeps its process, links and sessions; what is in `restart`, or gone, is
   * drained for at most `drainMs` and ended.
   */
  apply(servers: readonly ServerOptions[], restart: ReadonlySet<string> = new Set(), drainMs = 0): void {
    const before = new Map(this.#byKey)
    const after = servers.map((options) => {
      const existing = before.get(options.key)
      if (existing === undefined) return new Downstream(options, this.#environment)
      if (restart.has(options.key)) return this.#successor(existing, options, drainMs)
      before.delete(options.key)
      existing.adopt(options)
      return existing
    })
    const known = new Set(this.downstreams$.value)
    this.#byKey = new Map(after.map((downstream) => [downstream.options.key, downstream]))
    this.downstreams$.next(after)
    for (const downstream of after) if (!known.has(downstream)) downstream.start()
    for (const downstream of before.values()) void this.#end(downstream, drainMs)
  }

  /** A caller came with another token: servers whose credential is made of it are tried again for it, if they had been given up. */
  subjectChanged(principal: string): void {
    for (const { options, personal } of this.downstreams$.value)
      if (options.credential?.mode === 'exchange') personal?.find(principal)?.retryNow()
  }

  /** Ends one server's processes and connections and starts it again; false if no server has that key. */
  restart(key: string, drainMs: number): boolean {
    const all = this.downstreams$.value.map(({ options }) => options)
    if (!all.some((options) => options.key === key)) return false
    this.apply(all, new Set([key]), drainMs)
    return true
  }

  async stop(): Promise<void> {
    this.#isEnding = true
    for (const downstream of [...this.#leaving.keys(), ...this.downstreams$.value]) void this.#end(downstream, 0)
    await Promise.all(this.#leaving.values())
    this.downstreams$.complete()
  }

  /** Two processes cannot listen at one URL: there the new process starts after the old one has ended. */
  #successor(old: Downstream, options: ServerOptions, drainMs: number): Downstream {
    const isAlone = old.options.launch === undefined || old.options.url === undefined
    const startAfter = isAlone ? undefined : this.#end(old, drainMs)
    return new Downstream(options, { ...this.#environment, isSuccessor: true, startAfter })
  }

  #end(downstream: Downstream, drainMs: number): Promise<void> {
    const left = downstream.stop(drainMs).finally(() => this.#leaving.delete(downstream))
    this.#leaving.set(downstream, left)
    return left
  }
}
