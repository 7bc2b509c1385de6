/**
 * The lease of this replica in the store: while it is held, no other replica takes over its sessions. A replica without its lease does not
 * serve its sessions, since another one may have taken them over (decision 0165), unless no other replica reaches the store either: then
 * none of them can take over anything.
 *
 *     t   renewed                  fenced (9 s)    the store forgets (10 s)          takes its sessions over
 *     A ────┼────────────────────────────┼────┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈ B
 *
 * Only monotonic clocks are used. Their speeds may differ by a tenth.
 */
import { randomBytes } from 'node:crypto'
import { StoreDown } from '../store/store.ts'
import type { Store } from '../store/store.ts'
import { parseJsonObject } from '../values/json-object.ts'
import { homeOf } from './home.ts'
import type { Home } from './home.ts'

export interface ReplicaTimes {
  /** How long the state of a replica is cached. */
  readonly believedMs: number
  /** Duration of a lease. A replica that cannot be reached counts as lost when its lease has ended. */
  readonly leaseMs: number
  readonly renewMs: number
  /** Polling period of a request that waits for the end of a lease. */
  readonly lookMs: number
}

export const DEFAULT_REPLICA_TIMES: ReplicaTimes = { believedMs: 3_000, leaseMs: 10_000, renewMs: 3_000, lookMs: 500 }

/** Facts about a replica, stored with its lease. */
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
  readonly facts: () => ReplicaFacts | undefined
  /** Called when another replica may have taken over sessions, or the store has lost its data. Called again if it rejects. */
  readonly onFenced: () => Promise<void>
  /** Whether another replica may take over sessions: it reaches the store, or is not known to have ended. */
  readonly mayTake: (home: Home) => Promise<boolean>
}

/** Used share of a lease. The rest allows for clocks of different speeds. */
const USED_PART = 0.9
/** Key of the list of started instances, running or not. */
const NAMES = 'replicas'
const MAX_NAMES = 2_000
const NAMES_MS = 30 * 24 * 3_600_000
/** Key of a random name for the store's data. If it changes, the store has lost its data. */
const EPOCH = 'epoch'
/** Key that exists for a while after a loss of data: replicas may not have written all takeovers again. */
const YOUNG = 'epoch:young'
const AGE: readonly string[] = [EPOCH, YOUNG]
/** Other replicas are listed at every tenth renewal. */
const RENEWALS_PER_LOOK = 10
const MAX_LOOKED_AT = 50
const MAX_WITNESSES = 8

export class Lease {
  readonly #options: LeaseOptions
  #timer: NodeJS.Timeout | undefined
  #renewing: Promise<void> | undefined
  #untilMs = -Infinity
  /** Since when all renewals have succeeded. */
  #sinceMs = Infinity
  #isStarted = false
  #reachesStore = false
  #renewals = 0
  #fence: string | undefined
  #epoch: string | undefined
  /** The epoch in which this replica was added to `NAMES`. */
  #namedIn: string | undefined
  #looks = 0
  /** Other replicas at the latest listing. */
  #witnesses: readonly Home[] = []
  #verdict: { readonly isServing: Promise<boolean>; readonly untilMs: number } | undefined

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** Whether the lease is held: no other replica takes over sessions of this one. */
  get isHeld(): boolean {
    return performance.now() < this.#untilMs
  }

  /** Whether the latest renewal has succeeded. If not, this replica takes over nothing for a while. */
  get reachesStore(): boolean {
    return this.#reachesStore
  }

  /** Counts the checks for sessions that others have taken over. */
  get looks(): number {
    return this.#looks
  }

  /** Takes the lease and renews it periodically. */
  async start(): Promise<void> {
    const { times } = this.#options
    await this.#renew()
    this.#timer = setInterval(() => void this.#renew(), times.renewMs).unref()
  }

  /** Ends the lease, so that others take over the sessions at once. */
  async release(): Promise<void> {
    const { store, self } = this.#options
    clearInterval(this.#timer)
    // A pending renewal would take the lease again.
    await this.#renewing
    await store.delete(leaseOf(self.instance)).catch(() => undefined)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Whether this replica may serve its sessions: it holds its lease, can renew it now, or no other replica reaches the store. */
  async mayServe(): Promise<boolean> {
    if (this.isHeld) return true
    const nowMs = performance.now()
    if (this.#verdict === undefined || this.#verdict.untilMs <= nowMs)
      this.#verdict = { isServing: this.#judge(), untilMs: nowMs + this.#options.times.believedMs }
    return (await this.#verdict.isServing) || this.isHeld
  }

  /**
   * Whether the sessions of a replica that does not answer, or has ended (`isGone`), may be taken over. False while it holds a lease, and
   * while the store does not tell: it has lost its data, or was unavailable, so that no lease could be renewed. Rejects with `StoreDown`.
   */
  async isLost({ instance }: Home, isGone: boolean): Promise<boolean> {
    const [lease, ...age] = await this.#options.store.getAll([leaseOf(instance), ...AGE])
    if (!this.isHeld || !isOld(age)) return false
    return isGone || (lease === undefined && performance.now() - this.#sinceMs >= this.#graceMs)
  }

  /** Whether the store has all takeovers: it has not lost its data recently. Rejects with `StoreDown`. */
  async isStoreOld(): Promise<boolean> {
    return isOld(await this.#options.store.getAll(AGE))
  }

  /** Resolves with all held leases by instance; that of this replica may be missing. Rejects with `StoreDown`. */
  async all(most = MAX_NAMES): Promise<ReadonlyMap<string, string>> {
    const { store, self } = this.#options
    const names = [...new Set([...(await store.range(NAMES)), self.instance])].slice(-most)
    const leases = await store.getAll(names.map(leaseOf))
    return new Map(names.flatMap((name, at) => (leases[at] === undefined ? [] : [[name, leases[at]]])))
  }

  /** Time within which others notice the end of their leases, and write again what the store has lost. */
  get #graceMs(): number {
    return 2 * this.#options.times.renewMs
  }

  async #judge(): Promise<boolean> {
    // The store may be available again.
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
        // Another replica that has just found no lease may take over sessions now, and sets the fence within this time.
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
      // The store logs its own outages. This replica may have told another one that it takes over nothing.
      this.#reachesStore = false
      this.#sinceMs = Infinity
    }
  }

  /** Writes the lease, and checks for takeovers. Resolves with the time from which the lease is held. */
  async #hold(): Promise<number> {
    const { store, self, times, facts, onFenced } = this.#options
    const nowMs = performance.now()
    await store.set(leaseOf(self.instance), JSON.stringify({ url: self.url, ...facts() }), times.leaseMs)
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
    // Within this time earlier takeovers are written again, or the leases of their replicas end.
    await store.set(YOUNG, '1', this.#options.times.leaseMs)
    return store.claim(EPOCH, randomBytes(8).toString('base64url'), NAMES_MS)
  }

  /** Adds this replica to `NAMES`, and lists the others: periodically, and soon after a start or a loss of the store's data. */
  async #lookAround(): Promise<void> {
    const { store, self } = this.#options
    if (this.#namedIn !== this.#epoch) {
      // Names only: leases tell which replicas run.
      await store.append(NAMES, [self.instance], MAX_NAMES, NAMES_MS)
      this.#namedIn = this.#epoch
      this.#renewals = 0
      // The others have not written their names again yet.
      if (this.#witnesses.length > 0) return
    }
    if (++this.#renewals <= 2 || this.#renewals % RENEWALS_PER_LOOK === 0) await this.#findWitnesses()
  }

  async #findWitnesses(): Promise<void> {
    const { self } = this.#options
    const leases = [...(await this.all(MAX_LOOKED_AT))].filter(([instance]) => instance !== self.instance)
    this.#witnesses = leases.slice(-MAX_WITNESSES).flatMap(([instance, lease]) => {
      return homeOf(`${instance} ${readLease(lease).url}`) ?? []
    })
  }
}

const isOld = ([epoch, young]: readonly (string | undefined)[]): boolean => epoch !== undefined && young === undefined

/** Reads a lease. That of another version may have another form: its replica counts, but its `url` is empty. */
export const readLease = (text: string): Partial<ReplicaFacts> & { readonly url: string } => {
  const { url, ...facts } = parseJsonObject(text) ?? {}
  // Cast: facts are only shown.
  return { ...(facts as Partial<ReplicaFacts>), url: typeof url === 'string' ? url : '' }
}

const leaseOf = (instance: string): string => `replica:${instance}`

/** Returns the key of a replica's fence, whose value changes with every takeover from it. */
export const fenceOf = (instance: string): string => `fence:${instance}`
