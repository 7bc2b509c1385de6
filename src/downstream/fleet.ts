/** All configured servers in configuration order; a reload replaces only those that differ. */
import { BehaviorSubject } from 'rxjs'
import type { Caller } from '../rpc/call.ts'
import { firstRequestId } from '../rpc/first-request-id.ts'
import { SessionWatches } from './calls/session-watches.ts'
import { Downstream } from './downstream.ts'
import type { DownstreamEnvironment, ServerReports } from './environment.ts'
import type { ServerOptions } from './options.ts'
import { Starts } from './pacing/starts.ts'

/** What all servers have in common, without what the fleet itself adds. */
export type FleetEnvironment = Omit<
  DownstreamEnvironment,
  keyof ServerReports | 'starts' | 'startAfter' | 'isSuccessor' | 'isEnding' | 'httpIds'
>

export class Fleet {
  readonly downstreams$ = new BehaviorSubject<readonly Downstream[]>([])
  readonly #environment: Omit<DownstreamEnvironment, keyof ServerReports | 'startAfter' | 'isSuccessor'>
  #reports: ServerReports | undefined
  #isEnding = false
  readonly #leaving = new Map<Downstream, Promise<void>>()
  #byKey: ReadonlyMap<string, Downstream> = new Map()
  /** By key of all servers so far: hosts may still watch resources of a server that was removed. */
  readonly #watches = new Map<string, SessionWatches>()

  constructor(environment: FleetEnvironment) {
    const { sweeper, maxStarts, limits } = environment
    this.#environment = {
      ...environment,
      isEnding: () => this.#isEnding,
      // Other programs, and other replicas, may be clients of a server that sends each answer to all clients: they begin elsewhere.
      httpIds: { next: firstRequestId() },
      starts: new Starts({ sweeper, max: maxStarts, onWait: () => limits.passed('limits.starts') }),
    }
  }

  /** The gateways that calls may pass, this one first. */
  get gateways(): readonly string[] {
    const behind = this.downstreams$.value.flatMap(({ main }) => main.gateways)
    return [this.#environment.instance, ...new Set(behind)]
  }

  get(key: string): Downstream | undefined {
    return this.#byKey.get(key)
  }

  /** The server object for calls of this principal. */
  for(key: string, principal: string): Downstream | undefined {
    return this.get(key)?.for(principal)
  }

  /** The server of a bridge, for this caller; `undefined`: the caller uses the merged endpoint. */
  bridged({ scope, principal }: Pick<Caller, 'scope' | 'principal'>): Downstream | undefined {
    return scope.server === undefined ? undefined : this.for(scope.server, principal)
  }

  /** The server object with this `Downstream.id`, if it exists now. */
  find(id: string): Downstream | undefined {
    const at = id.indexOf(' ')
    return at === -1 ? this.get(id) : this.get(id.slice(0, at))?.personal?.find(id.slice(at + 1))
  }

  /** All server objects that sessions of this principal may have links to. */
  all(principal: string): readonly Downstream[] {
    return this.downstreams$.value.flatMap((downstream) =>
      downstream.personal === undefined ? downstream : (downstream.personal.find(principal) ?? []),
    )
  }

  /** Sets who is told what servers report. Called once, before the first `apply`. */
  reportTo(reports: ServerReports): void {
    this.#reports = reports
  }

  /** Replaces the servers; those that stay keep their links. Others, and those in `restart`, are drained for `drainMs`. */
  apply(servers: readonly ServerOptions[], restart: ReadonlySet<string> = new Set(), drainMs = 0): void {
    const before = new Map(this.#byKey)
    const after = servers.map((options) => {
      const existing = before.get(options.key)
      if (existing === undefined)
        return this.#open(options, { isSuccessor: this.#watches.has(options.key), startAfter: undefined })
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

  /** A principal has a new token: retries failed servers whose credential is derived from it (`exchange`). */
  subjectChanged(principal: string): void {
    for (const { options, personal } of this.downstreams$.value)
      if (options.credential?.mode === 'exchange') personal?.find(principal)?.retryNow()
  }

  /** Stops one server and starts it again; false if no server has that key. */
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

  /** The replacement of a server. A process that listens at a URL starts after the old one has ended. */
  #successor(old: Downstream, options: ServerOptions, drainMs: number): Downstream {
    const isAlone = old.options.launch === undefined || old.options.url === undefined
    const startAfter = isAlone ? undefined : this.#end(old, drainMs)
    const successor = this.#open(options, { isSuccessor: true, startAfter })
    // Their hosts may send no request that would open a connection.
    for (const principal of old.personal?.watching ?? []) successor.for(principal)
    return successor
  }

  #open(options: ServerOptions, order: Pick<DownstreamEnvironment, 'isSuccessor' | 'startAfter'>): Downstream {
    if (this.#reports === undefined) throw new Error('a fleet without `reportTo` has no servers')
    const { key } = options
    const watches = this.#watches.get(key) ?? new SessionWatches((error) => this.#unwatched(key, error))
    this.#watches.set(key, watches)
    return new Downstream(options, { ...this.#environment, ...this.#reports, ...order }, watches)
  }

  #unwatched(server: string, error: unknown): void {
    this.#environment.log.debug({ server, sample: String(error).slice(0, 200) }, 'a resource cannot be watched')
  }

  #end(downstream: Downstream, drainMs: number): Promise<void> {
    const left = downstream.stop(drainMs).finally(() => this.#leaving.delete(downstream))
    this.#leaving.set(downstream, left)
    return left
  }
}
