/**
 * Finds the replica of a session or parked call, and forwards requests to it in one hop. Both belong to the replica where they began: its
 * address is sealed into the session's id and the call's `requestState`, so that no lookup is needed (decision 0069). Other requests of
 * modern hosts are not routed here.
 *
 *     host ── request ──► replica B ── the id says: of A ── the same bytes, Trunkline-Hop ──► replica A ── served, never passed on again
 *
 * A forwarded request is authenticated again by its replica, with the host's own credential.
 */
import { randomBytes } from 'node:crypto'
import { setBounded } from '../values/bounded-map.ts'
import { digestOf } from '../values/digest.ts'
import type { Seal } from '../auth/seal.ts'
import { StoreDown } from '../store/store.ts'
import type { Store } from '../store/store.ts'
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import { formatHome, homeOf } from './home.ts'
import type { Home } from './home.ts'
import { HOP, HopMarks } from './hop-marks.ts'
import { DEFAULT_REPLICA_TIMES, fenceOf, Lease, readLease } from './lease.ts'
import type { ReplicaFacts, ReplicaTimes } from './lease.ts'
import { Forwarder } from './forwarding.ts'
import type { Forwarded } from './forwarding.ts'
import { Peers, REPLICA_PATH, STORE_QUERY, UNLEASED } from './peers.ts'

export interface ReplicasOptions {
  readonly self: Home
  readonly seal: Seal
  /** Decides which replica takes over a session; `undefined`: any may. */
  readonly store: Store | undefined
  readonly log: {
    info(facts: object, message: string): void
    warn(facts: object, message: string): void
  }
  readonly times?: ReplicaTimes
  /** Maximum age of sessions in milliseconds (`listen.limits.session_max`). */
  readonly sessionMaxMs?: () => number
  /** The others are processes of this machine, which trust this one's `X-Forwarded-For`. */
  readonly isLocal?: boolean
  /** Wall clock in milliseconds. */
  readonly now?: () => number
}

export interface ReplicaStatus extends Partial<ReplicaFacts> {
  readonly url: string
  /** It is the replica that answers. */
  readonly isSelf: boolean
}

/** Shortest and longest time for which takeovers are stored; in between for as long as sessions last. */
const SESSION_MS = 24 * 3_600_000
const LONGEST_MS = 365 * SESSION_MS
const MAX_KNOWN = 10_000
/** Attempts to reach this replica at its own URL, one per renewal of a lease. */
const MAX_URL_TRIES = 6
/** Failed probes in a row after which requests to a replica are broken off. */
const MAX_MISSED = 2

/** A forwarded request in flight. */
interface Hop {
  readonly to: Home
  readonly breakOff: () => void
  failures: number
}

/** A replica holds its lease but cannot be reached from this one, so its sessions are not taken over. */
export class ReplicaAway extends Error {
  constructor({ url }: Home) {
    super(`the replica ${url} cannot be reached, and has not ended`)
    this.name = 'ReplicaAway'
  }
}

export class Replicas {
  readonly #options: ReplicasOptions
  readonly #times: ReplicaTimes
  readonly #forwarder = new Forwarder()
  readonly #received = new WeakSet<HttpRequest>()
  readonly #marks: HopMarks
  readonly #peers: Peers
  /** By digest of a session's id: the replica that has taken it over. */
  readonly #takenOver = new Map<string, Home>()
  /** By digest: pending takeovers. */
  readonly #takings = new Map<string, Promise<Home>>()
  readonly #hops = new Set<Hop>()
  /** `undefined`: there is no store. */
  readonly #lease: Lease | undefined
  #watch: NodeJS.Timeout | undefined
  #isEnding = false
  #onFenced: (() => Promise<void>) | undefined
  #facts: (() => ReplicaFacts) | undefined
  #forwarded = 0
  #takeovers = 0

  constructor(options: ReplicasOptions) {
    this.#options = options
    this.#times = options.times ?? DEFAULT_REPLICA_TIMES
    const { store, self, log, seal, now = Date.now } = options
    this.#marks = new HopMarks({ self, seal, log, now })
    const { believedMs } = this.#times
    this.#peers = new Peers({ self, forwarder: this.#forwarder, marks: this.#marks, believedMs })
    this.#lease =
      store &&
      new Lease({
        self,
        store,
        times: this.#times,
        log,
        facts: () => this.#facts?.(),
        onFenced: async () => this.#onFenced?.(),
        mayTake: (home) => this.#peers.reachesStore(home),
      })
  }

  /** The name of this process in ids and states. */
  get home(): string {
    return formatHome(this.#options.self)
  }

  /** Numbers of forwarded requests and of sessions taken over. */
  get counts(): { readonly forwarded: number; readonly takenOver: number } {
    return { forwarded: this.#forwarded, takenOver: this.#takeovers }
  }

  /** Whether this replica holds its lease, so that no other one takes over its sessions. True without a store. */
  get isLeased(): boolean {
    return this.#lease === undefined || this.#lease.isHeld
  }

  /** Increases whenever sessions may have been released because other replicas took them over. */
  get looks(): number {
    return this.#lease?.looks ?? 0
  }

  /** Whether this replica may serve a session of its own now (`Lease.mayServe`). */
  mayServe(): Promise<boolean> {
    return this.#lease?.mayServe() ?? Promise.resolve(true)
  }

  /**
   * Takes the lease and renews it. `facts` are those about this process, for `ps --all` at another one. `onFenced` is called when another
   * replica has taken over sessions of this one, or the store has lost its data. It is called again if it rejects.
   */
  async start(onFenced: () => Promise<void>, facts?: () => ReplicaFacts): Promise<void> {
    this.#onFenced = onFenced
    this.#facts = facts
    await this.#lease?.start()
  }

  /**
   * Asks itself at `replicas.url`, and logs if that does not lead here: the others could not pass requests on. Tried for a while, since a name
   * may be published only when this replica is ready.
   */
  async checkUrl(): Promise<void> {
    const { self, log } = this.#options
    let reason = await this.#peers.unreachedSelf()
    for (let tries = 1; reason !== undefined && tries < MAX_URL_TRIES && !this.#isEnding; tries++) {
      await new Promise((resolve) => setTimeout(resolve, this.#times.renewMs).unref())
      reason = await this.#peers.unreachedSelf()
    }
    if (reason === undefined || this.#isEnding) return
    const text = 'the URL of this replica does not lead to it: no other replica can pass requests on to it (replicas.url)'
    log.warn({ url: self.url, reason }, text)
  }

  /** Lets other replicas take over the sessions of this one at once. */
  async handOver(): Promise<void> {
    this.#isEnding = true
    await this.#lease?.release()
  }

  close(): void {
    this.#isEnding = true
    this.#lease?.close()
    clearInterval(this.#watch)
    this.#forwarder.close()
  }

  /**
   * Checks whether another replica has sent this request. True: it was a probe, or meant for another process at the same address, and is
   * answered.
   */
  receives(request: HttpRequest): boolean {
    if (request.header(HOP) === undefined) return false
    const hop = this.#marks.of(request)
    // Invalid: treated as any header of a host.
    if (hop === undefined) return false
    const isProbe = request.path === REPLICA_PATH
    // A probe is answered at any time: this replica has not ended. A late request is not served, since its sender would send it again.
    const isTaken = hop.to === this.#options.self.instance && (isProbe || this.#marks.isInTime(hop))
    if (isTaken) request.addHeaders({ 'Trunkline-Hop': this.#marks.answer(hop) })
    if (isProbe) this.#answerProbe(request)
    else if (!isTaken) request.reply(421, {})
    else this.#received.add(request)
    return isProbe || !isTaken
  }

  /** Whether another replica has forwarded this request, so that it must not be forwarded again. */
  isForwarded(request: HttpRequest): boolean {
    return this.#received.has(request)
  }

  /** Whether this replica owns a session that is not in this process, for a forwarded request. Rejects with `StoreDown`. */
  async isOwner(home: string, id: string): Promise<boolean> {
    const { self, store } = this.#options
    const origin = homeOf(home)
    if (store === undefined) return true
    if (origin === undefined) return false
    const key = digestOf(id)
    // A pending takeover may fail.
    await this.#takings.get(key)?.catch(() => undefined)
    const owner = await this.#ownerOf(key, origin)
    // Remembered, to be written again if the store loses its data.
    if (owner.instance === self.instance && origin.instance !== self.instance) this.#remember(key, self)
    return owner.instance === self.instance
  }

  /** Updates the owner of a session after a replica has refused its request. Rejects with `StoreDown`. */
  async refused(id: string): Promise<void> {
    const key = digestOf(id)
    const holder = await this.#holderOf(key)
    if (holder === undefined) this.#takenOver.delete(key)
    else this.#remember(key, holder)
  }

  /**
   * Resolves with the replica that serves a session or call of `home`; `undefined`: this one. `id`: of a session, which can be taken over.
   * Without an id `undefined` means that the replica is lost. Rejects with `StoreDown` or `ReplicaAway`.
   */
  async locate(home: string, id: string | undefined): Promise<Home | undefined> {
    const { self } = this.#options
    const origin = homeOf(home)
    if (origin === undefined) return undefined
    if (id === undefined) return origin.instance !== self.instance && (await this.#isServing(origin)) ? origin : undefined
    const key = digestOf(id)
    let at = this.#takenOver.get(key) ?? origin
    // This process does not have the session: it has ended, or was taken over while this process could not be reached.
    if (at.instance === self.instance) at = await this.#ownerOf(key, origin)
    // The replica that took it over may be lost as well; in the third round this one takes over.
    for (let round = 0; round < 3; round++) {
      if (at.instance === self.instance || (await this.#isServing(at, true))) break
      const winner = await this.#takeOver(key, at)
      if (winner.instance === at.instance) break
      at = winner
    }
    return at.instance === self.instance ? undefined : at
  }

  /** Forwards the request. After `unsent` and `refused` it was not served, and its replica may be located again. */
  async forward(request: HttpRequest, body: Buffer | undefined, to: Home): Promise<Forwarded> {
    const { header, isGenuine } = this.#marks.to(to)
    this.#forwarded++
    let hop: Hop | undefined
    const onBegun = (breakOff: () => void): void => {
      hop = { to, breakOff, failures: 0 }
      this.#hops.add(hop)
      this.#watch ??= setInterval(() => void this.#watchHops(), this.#times.believedMs).unref()
    }
    const headers = { [HOP]: header, ...(this.#options.isLocal === true && { 'x-forwarded-for': request.client }) }
    const end = await this.#forwarder.send(request, body, { url: to.url, headers, isGenuine, onBegun })
    if (hop !== undefined) this.#hops.delete(hop)
    if (end !== 'answered') this.#peers.doubt(to)
    return end
  }

  /** Breaks off requests to a replica that does not answer probes: connections to a stopped process do not break. */
  async #watchHops(): Promise<void> {
    if (this.#hops.size === 0) {
      clearInterval(this.#watch)
      this.#watch = undefined
    }
    const homes = new Map([...this.#hops].map(({ to }) => [to.instance, to]))
    for (const home of homes.values()) {
      const isAlive = (await this.#peers.stateOf(home)) === 'alive'
      for (const hop of this.#hops) {
        if (hop.to.instance !== home.instance) continue
        hop.failures = isAlive ? 0 : hop.failures + 1
        if (hop.failures >= MAX_MISSED) hop.breakOff()
      }
    }
  }

  /** Resolves with the replicas that hold a lease, in the order of their starts; `undefined`: no store. Rejects with `StoreDown`. */
  async list(): Promise<readonly ReplicaStatus[] | undefined> {
    const leases = await this.#lease?.all()
    const { instance } = this.#options.self
    return leases && [...leases].map(([name, lease]) => ({ ...readLease(lease), isSelf: name === instance }))
  }

  /** Records in the store that `name` is at this replica. While the store is unavailable, others do not find it. */
  async keepHome(name: string, ttlMs: number): Promise<void> {
    await this.#options.store?.set(homeKey(name), this.home, ttlMs).catch(() => undefined)
  }

  /** Resolves with the other replica that has `name`; `undefined`: none, lost, or the store is unavailable. */
  async findHome(name: string): Promise<Home | undefined> {
    const home = await this.#options.store?.get(homeKey(name)).catch(() => undefined)
    return home === undefined ? undefined : this.locate(home, undefined)
  }

  /** Resolves with whether each session was taken over by another replica. Rejects with `StoreDown`. */
  async areTakenOver(ids: readonly string[]): Promise<readonly boolean[]> {
    const { store, self } = this.#options
    const keys = ids.map(digestOf)
    const holders = await store?.getAll(keys.map(sessionKey))
    return Promise.all(
      keys.map(async (key, at) => {
        let holder = homeOf(holders?.[at] ?? '')
        // The store has lost the takeover by this replica.
        if (holder === undefined && this.#takenOver.get(key)?.instance === self.instance)
          holder = homeOf((await store?.claim(sessionKey(key), this.home, this.#sessionMs)) ?? '')
        if (holder === undefined || holder.instance === self.instance) return false
        this.#remember(key, holder)
        return true
      }),
    )
  }

  /** Whether a replica serves. `takesOver`: it counts as lost only when its sessions may be taken over. Rejects with `StoreDown` or `ReplicaAway`. */
  async #isServing(home: Home, takesOver = false): Promise<boolean> {
    // It may be paused, or unreachable only from here: it is lost when its lease has ended.
    const endMs = performance.now() + this.#times.leaseMs + this.#times.lookMs
    for (;;) {
      const state = await this.#peers.stateOf(home)
      if (state === 'alive') return true
      if (this.#lease === undefined || (state === 'gone' && !takesOver)) return false
      if (await this.#lease.isLost(home, state === 'gone')) return false
      if (performance.now() >= endMs) throw new ReplicaAway(home)
      await new Promise((resolve) => setTimeout(resolve, this.#times.lookMs).unref())
    }
  }

  /** Takes over a session from a lost replica. Resolves with the one replica that has succeeded. */
  #takeOver(key: string, from: Home): Promise<Home> {
    const taking = this.#takings.get(key) ?? this.#take(key, from).finally(() => this.#takings.delete(key))
    this.#takings.set(key, taking)
    return taking
  }

  async #take(key: string, from: Home): Promise<Home> {
    const { store, self, log } = this.#options
    if (store === undefined || this.#lease === undefined) return this.#remember(key, self)
    let held = await store.claim(sessionKey(key), this.home, this.#sessionMs, formatHome(from))
    // What names no replica is of another program: replaced, so that only one replica wins.
    if (homeOf(held) === undefined) held = await store.claim(sessionKey(key), this.home, this.#sessionMs, held)
    const winner = homeOf(held) ?? self
    // If the other replica still runs, it sees the fence at its next renewal, and stops serving the session. Set also if another replica has
    // claimed the session first, which may have ended before it set the fence.
    await store.set(fenceOf(from.instance), randomBytes(8).toString('base64url'), this.#sessionMs)
    // Checked again, since this process may have been paused in between.
    if (!(await this.#lease.isLost(from, (await this.#peers.stateOf(from)) === 'gone'))) {
      // Given back instead of removed, since the other replica may have taken it over itself.
      if (winner.instance === self.instance) await store.claim(sessionKey(key), formatHome(from), this.#sessionMs, this.home)
      throw new ReplicaAway(from)
    }
    if (winner.instance === self.instance) {
      this.#takeovers++
      log.info({ from: from.url }, 'a session of a replica that is gone is taken over')
    }
    return this.#remember(key, winner)
  }

  /** Resolves with the owner of a session that is not in this process. Rejects with `StoreDown`, also if the store has just lost its data. */
  async #ownerOf(key: string, origin: Home): Promise<Home> {
    const holder = await this.#holderOf(key)
    if (holder === undefined && (await this.#lease?.isStoreOld()) === false)
      throw new StoreDown('the shared store has lost its data: which replica has the session is not known yet (store)')
    return holder ?? origin
  }

  get #sessionMs(): number {
    return Math.min(LONGEST_MS, Math.max(SESSION_MS, this.#options.sessionMaxMs?.() ?? 0))
  }

  /** Resolves with the replica that has taken over a session; `undefined`: none. Rejects with `StoreDown`. */
  async #holderOf(key: string): Promise<Home | undefined> {
    return homeOf((await this.#options.store?.get(sessionKey(key))) ?? '')
  }

  #remember(key: string, home: Home): Home {
    setBounded(this.#takenOver, key, home, MAX_KNOWN)
    return home
  }

  #answerProbe(request: HttpRequest): void {
    if (request.query === STORE_QUERY)
      request.reply(200, { 'Trunkline-Store': this.#lease?.reachesStore === true ? 'yes' : 'no' })
    else if (this.#isEnding) request.reply(410, {})
    else void this.mayServe().then((isServing) => request.reply(isServing ? 200 : UNLEASED, {}))
  }
}

const homeKey = (name: string): string => `home:${digestOf(name)}`
const sessionKey = (digest: string): string => `session:${digest}`
