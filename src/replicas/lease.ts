/**
 * The lease of this replica in the store: while it is held, no other replica takes sessions from it. A replica whose lease has ended serves
 * its sessions no longer, since another one may have taken them (decision 0165). The surprise: where the other replicas do not reach the
 * store either, it goes on, because none of them can take anything.
 *
 *     t   renewed                  fenced (9 s)    the store forgets (10 s)          takes its sessions over
 *     A ────┼────────────────────────────┼────┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈ B
 *
 * Wall clocks have no part in it. Clocks may run at speeds that differ by a tenth.
 */
import { randomBytes } from 'node:crypto'
import { StoreDown } from '../store/store.ts'
import type { Store } from '../store/store.ts'
import { parseOwnJson } from '../values/own-json.ts'
import { homeOf } from './home.ts'
import type { Home } from './home.ts'

export interface ReplicaTimes {
  /** What was found out about a replica is believed for so long. */
  readonly believedMs: number
  /** A replica that cannot be reached counts as lost so long after it last renewed its lease. */
  readonly leaseMs: number
  readonly renewMs: number
  /** How often a request looks whether the lease of its replica has ended. */
  readonly lookMs: number
}

export const DEFAULT_REPLICA_TIMES: ReplicaTimes = { believedMs: 3_000, leaseMs: 10_000, renewMs: 3_000, lookMs: 500 }

/** What a replica says of itself with its lease. */
export interface ReplicaFacts {
  readonly version: string
  readonly sessions: number
  /** Wall clock in milliseconds. */
  readonly startedAtMs: number
}

export interface LeaseOptions {
  readonly self: Home
  readonly store: Store
  readonly times: ReplicaTimes
  readonly log: { warn(facts: object, message: string): void }
  readonly facts: (() => ReplicaFacts) | undefined
  /** Another replica may have taken sessions of this one over, or the store has lost what was taken; tried again where it rejects. */
  readonly onFenced: () => Promise<void>
  /** Whether another replica may take sessions: it reaches the store, or is not known to have ended. */
  readonly mayTake: (home: Home) => Promise<boolean>
}

/** Part of its time that a replica uses of its lease: the rest is for clocks that run at different speeds. */
const USED_PART = 0.9
/** Instances that were started, whether they run or not. */
const NAMES = 'replicas'
const MAX_NAMES = 2_000
const NAMES_MS = 30 * 24 * 3_600_000
/** Names what the store has kept so far: another one, or none, says that it has lost all. */
const EPOCH = 'epoch'
/** There for a while after that: what replicas have taken over is not all in the store again. */
const YOUNG = 'epoch:young'
const AGE: readonly string[] = [EPOCH, YOUNG]
/** The others are looked for with one renewal of so many. */
const RENEWALS_PER_LOOK = 10
const MAX_LOOKED_AT = 50
const MAX_WITNESSES = 8

export class Lease {
  readonly #options: LeaseOptions
  #timer: NodeJS.Timeout | undefined
  #renewing: Promise<void> | undefined
  #untilMs = -Infinity
  /** Since when each renewal was written. */
  #sinceMs = Infinity
  #isStarted = false
  #reachesStore = false
  #renewals = 0
  #fence: string | undefined
  #epoch: string | undefined
  /** The epoch in which the others find the name of this replica. */
  #namedIn: string | undefined
  #looks = 0
  /** Others that were there when the store was last asked. */
  #witnesses: readonly Home[] = []
  #verdict: { readonly isServing: Promise<boolean>; readonly untilMs: number } | undefined

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** No other replica takes sessions from this one. */
  get isHeld(): boolean {
    return performance.now() < this.#untilMs
  }

  /** Whether the latest renewal was written. Where it was not, this replica takes nothing for a while. */
  get reachesStore(): boolean {
    return this.#reachesStore
  }

  /** Goes up each time that this replica looks which of its sessions others have taken. */
  get looks(): number {
    return this.#looks
  }

  /** Takes it and keeps it. */
  async start(): Promise<void> {
    const { times } = this.#options
    await this.#renew()
    this.#timer = setInterval(() => void this.#renew(), times.renewMs).unref()
  }

  /** From now on others take sessions of this one over. */
  async release(): Promise<void> {
    const { store, self } = this.#options
    clearInterval(this.#timer)
    // One that is under way would take it again.
    await this.#renewing
    await store.delete(leaseOf(self.instance)).catch(() => undefined)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Whether sessions of this replica are served here now: it holds its lease, or takes it again at once, or no other replica reaches the store. */
  async mayServe(): Promise<boolean> {
    if (this.isHeld) return true
    const nowMs = performance.now()
    if (this.#verdict === undefined || this.#verdict.untilMs <= nowMs)
      this.#verdict = { isServing: this.#judge(), untilMs: nowMs + this.#options.times.believedMs }
    return (await this.#verdict.isServing) || this.isHeld
  }

  /**
   * Whether a replica that does not answer, or has ended (`isGone`), is lost: its sessions may be taken. Not while it holds a lease, nor
   * where the store cannot know: it has lost its data, or was away, so that no lease could be renewed. Rejects with `StoreDown`.
   */
  async isLost({ instance }: Home, isGone: boolean): Promise<boolean> {
    const [lease, ...age] = await this.#options.store.getAll([leaseOf(instance), ...AGE])
    if (!this.isHeld || !isOld(age)) return false
    return isGone || (lease === undefined && performance.now() - this.#sinceMs >= this.#graceMs)
  }

  /** Whether the store knows which replica took what: it has not lost its data a moment ago. Rejects with `StoreDown`. */
  async isStoreOld(): Promise<boolean> {
    return isOld(await this.#options.store.getAll(AGE))
  }

  /** The leases that are held, by instance; that of this replica may be missing. Rejects with `StoreDown`. */
  async all(most = MAX_NAMES): Promise<ReadonlyMap<string, string>> {
    const { store, self } = this.#options
    const names = [...new Set([...(await store.range(NAMES)), self.instance])].slice(-most)
    const leases = await store.getAll(names.map(leaseOf))
    return new Map(names.flatMap((name, at) => (leases[at] === undefined ? [] : [[name, leases[at]]])))
  }

  /** Others have noticed by then that their leases have ended, or have written again what the store has lost. */
  get #graceMs(): number {
    return 2 * this.#options.times.renewMs
  }

  async #judge(): Promise<boolean> {
    // The store may be there again.
    await this.#renew()
    if (this.isHeld) return true
    if (this.#reachesStore) return false
    const may = await Promise.all(this.#witnesses.map((home) => this.#options.mayTake(home)))
    return !may.includes(true)
  }

  #renew(): Promise<void> {
    return (this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined)))
  }

  async #renewOnce(): Promise<void> {
    const { log, times } = this.#options
    const endedMs = this.#untilMs
    const isLapsed = this.#isStarted && !this.isHeld
    this.#isStarted = true
    try {
      let heldFromMs = await this.#hold()
      if (isLapsed) {
        // A replica that found no lease a moment ago takes sessions now, and says so by then.
        await new Promise((resolve) => setTimeout(resolve, times.renewMs / 3).unref())
        heldFromMs = await this.#hold()
        if (endedMs !== -Infinity)
          log.warn({ lateMs: Math.round(heldFromMs - endedMs) }, 'the lease of this replica had ended, and is taken again')
      }
      if (isLapsed || this.#sinceMs === Infinity) this.#sinceMs = heldFromMs
      this.#untilMs = heldFromMs + times.leaseMs * USED_PART
      await this.#lookAround()
    } catch (error) {
      if (!(error instanceof StoreDown)) throw error
      // The store says of itself that it is away. This one may have told another replica that it takes nothing.
      this.#reachesStore = false
      this.#sinceMs = Infinity
    }
  }

  /** Writes the lease, and looks whether anything was taken; returns from when on it is held. */
  async #hold(): Promise<number> {
    const { store, self, times, facts, onFenced } = this.#options
    const nowMs = performance.now()
    await store.set(leaseOf(self.instance), JSON.stringify({ url: self.url, ...facts?.() }), times.leaseMs)
    const [fence, known] = await store.getAll([fenceOf(self.instance), EPOCH])
    const epoch = known ?? (await this.#beginEpoch())
    if (fence !== this.#fence || (this.#epoch !== undefined && epoch !== this.#epoch)) {
      this.#looks++
      await onFenced()
    }
    this.#reachesStore = true
    this.#fence = fence
    this.#epoch = epoch
    return nowMs
  }

  async #beginEpoch(): Promise<string> {
    const { store } = this.#options
    // What was taken before is written again by then, or the lease of the replica that took it has ended.
    await store.set(YOUNG, '1', this.#options.times.leaseMs)
    return store.claim(EPOCH, randomBytes(8).toString('base64url'), NAMES_MS)
  }

  /** Lets the others find this replica, and finds them: now and then, and soon after a start or the loss of the store's data. */
  async #lookAround(): Promise<void> {
    const { store, self } = this.#options
    if (this.#namedIn !== this.#epoch) {
      // Names alone: whether one runs, its lease says.
      await store.append(NAMES, [self.instance], MAX_NAMES, NAMES_MS)
      this.#namedIn = this.#epoch
      this.#renewals = 0
      // The others have written nothing again yet.
      if (this.#witnesses.length > 0) return
    }
    if (++this.#renewals <= 2 || this.#renewals % RENEWALS_PER_LOOK === 0) await this.#findWitnesses()
  }

  async #findWitnesses(): Promise<void> {
    const { self } = this.#options
    const leases = [...(await this.all(MAX_LOOKED_AT))].filter(([instance]) => instance !== self.instance)
    this.#witnesses = leases.slice(-MAX_WITNESSES).flatMap(([instance, lease]) => {
      const { url } = parseOwnJson<{ readonly url: string }>(lease)
      return homeOf(`${instance} ${url}`) ?? []
    })
  }
}

const isOld = ([epoch, young]: readonly (string | undefined)[]): boolean => epoch !== undefined && young === undefined

const leaseOf = (instance: string): string => `replica:${instance}`

/** Changes with every takeover from a replica. */
export const fenceOf = (instance: string): string => `fence:${instance}`
