/**
 * The `Downstream` objects of a server where each principal has its own credential. Each principal has its own object, so that no other
 * principal reaches its connection, lists and tasks (B250; BRIDGING 6.3 rule 4).
 */
import { filter } from 'rxjs'
import type { Observable } from 'rxjs'
import type { Inventory } from '../catalog/inventory.ts'
import type { Sweepable } from '../rpc/sweeper.ts'
import type { ServerOptions } from './options.ts'

/** The operations used on the `Downstream` of one principal. */
interface PersonalDownstream {
  readonly inventory$: Observable<Inventory | undefined>
  readonly isUsed: boolean
  /** Monotonic time until which it has been used, in the future for a task that its server keeps. */
  readonly usedMs: number
  readonly isWatched: boolean
  readonly outages: number
  readonly crashes: number
  start(): void
  stop(drainMs?: number): Promise<void>
  adopt(options: ServerOptions): void
}

interface PersonalSource<D extends PersonalDownstream> {
  readonly options: () => ServerOptions
  readonly make: (principal: string) => D
  readonly listed: (principal: string, inventory: Inventory) => void
  readonly nowMs: () => number
}

interface Entry<D> {
  readonly downstream: D
  usedMs: number
}

export class Personal<D extends PersonalDownstream> implements Sweepable {
  readonly #source: PersonalSource<D>
  readonly #entries = new Map<string, Entry<D>>()
  /** Of objects that no longer exist. */
  #pastOutages = 0
  #pastCrashes = 0

  constructor(source: PersonalSource<D>) {
    this.#source = source
  }

  /** The principal's object, started on first use. */
  of(principal: string): D {
    const nowMs = this.#source.nowMs()
    const known = this.#entries.get(principal)
    if (known !== undefined) {
      known.usedMs = nowMs
      return known.downstream
    }
    const downstream = this.#source.make(principal)
    this.#entries.set(principal, { downstream, usedMs: nowMs })
    downstream.inventory$
      .pipe(filter((inventory) => inventory !== undefined))
      .subscribe((inventory) => this.#source.listed(principal, inventory))
    downstream.start()
    return downstream
  }

  /** The principal's object, if it exists now. */
  find(principal: string): D | undefined {
    return this.#entries.get(principal)?.downstream
  }

  /** Principals whose hosts watch resources or tasks. */
  get watching(): readonly string[] {
    return [...this.#entries].flatMap(([principal, { downstream }]) => (downstream.isWatched ? [principal] : []))
  }

  /** Outages since the start. */
  get outages(): number {
    return this.all.reduce((sum, { outages }) => sum + outages, this.#pastOutages)
  }

  /** Processes that ended by themselves since the start. */
  get crashes(): number {
    return this.all.reduce((sum, { crashes }) => sum + crashes, this.#pastCrashes)
  }

  get all(): readonly D[] {
    return [...this.#entries.values()].map(({ downstream }) => downstream)
  }

  /** Closes connections that have been idle too long; their lists stay, and the next use opens them again. */
  sweep(nowMs: number): void {
    const { idleStopMs } = this.#source.options()
    for (const [principal, entry] of this.#entries) {
      const { downstream } = entry
      if (downstream.isUsed) entry.usedMs = nowMs
      if (downstream.isUsed || nowMs - Math.max(entry.usedMs, downstream.usedMs) < idleStopMs) continue
      this.#entries.delete(principal)
      this.#pastOutages += downstream.outages
      this.#pastCrashes += downstream.crashes
      void downstream.stop()
    }
  }

  adopt(options: ServerOptions): void {
    for (const downstream of this.all) downstream.adopt(options)
  }

  async stop(drainMs: number): Promise<void> {
    await Promise.all(this.all.map((downstream) => downstream.stop(drainMs)))
  }
}
