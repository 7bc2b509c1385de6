/**
 * Which replica something belongs to, and the one hop to it. A session of a legacy host and a call that waits for an answer live at the
 * replica where they began: its address is sealed into the session's id and the call's `requestState`, so that finding it takes no look-up
 * (decision 0069). Modern hosts' other requests never come here.
 *
 *     host ── request ──► replica B ── the id says: of A ── the same bytes, Trunkline-Hop ──► replica A ── served, never passed on again
 *
 * The surprise: a request that was passed on is authenticated again by the replica it belongs to, with the host's own credential. The
 * hop's mark proves only that it comes from a replica, and the answer's mark that it is answered by the one that is meant.
 */
import { createHash, randomBytes } from 'node:crypto'
import { asError } from '../values/as-error.ts'
import type { Seal } from '../auth/seal.ts'
import { StoreDown } from '../store/store.ts'
import type { Store } from '../store/store.ts'
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import { formatHome, homeOf } from './home.ts'
import type { Home } from './home.ts'
import { DEFAULT_REPLICA_TIMES, fenceOf, Lease } from './lease.ts'
import type { ReplicaFacts, ReplicaTimes } from './lease.ts'
import { parseOwnJson } from '../values/own-json.ts'
import { Forwarder } from './forwarding.ts'
import type { Forwarded } from './forwarding.ts'

export interface ReplicasOptions {
  readonly self: Home
  readonly seal: Seal
  /** Decides which replica takes over; `undefined`: any may. */
  readonly store: Store | undefined
  readonly log: {
    info(facts: object, message: string): void
    warn(facts: object, message: string): void
  }
  readonly times?: ReplicaTimes
  /** The others are processes of this machine, which trust what this one says of the address of a host. */
  readonly isLocal?: boolean
  /** Of this process, for `ps --all` at another one. */
  readonly facts?: () => ReplicaFacts
  /** Wall clock in milliseconds. */
  readonly now?: () => number
}

export interface ReplicaStatus extends Partial<ReplicaFacts> {
  readonly url: string
  /** It is the one that answers. */
  readonly isSelf: boolean
}

/** Path that replicas ask each other at; for all others it does not exist. */
export const REPLICA_PATH = '/replica'
const HOP = 'trunkline-hop'
/** Asks a replica there whether it reaches the store; the header says so. */
const STORE_QUERY = 'store'
const STORE_HEADER = 'trunkline-store'
const ASKED = 'replica request'
const ANSWERED = 'replica answer'
/** A mark is good for so long; clocks of replicas may differ by less. */
const MARK_MS = 5 * 60_000
const SESSION_MS = 24 * 3_600_000
const MAX_KNOWN = 10_000
/** A replica that has not answered so often in a row is not waited for any longer. */
const MAX_MISSED = 2

/** Status of a replica whose lease has ended, and that does not serve its sessions (409). */
const UNLEASED = 409

type PeerState = 'alive' | 'gone' | 'unreachable'

/** A request at another replica. */
interface Hop {
  readonly to: Home
  readonly breakOff: () => void
  failures: number
}

interface Known {
  readonly state: Promise<PeerState>
  readonly untilMs: number
}

/** A replica keeps its lease and cannot be reached from this one: what it has is not taken from it. */
export class ReplicaAway extends Error {
  constructor({ url }: Home) {
    super(`the replica ${url} cannot be reached, and has not ended`)
    this.name = 'ReplicaAway'
  }
}

export class Replicas {
  readonly #options: ReplicasOptions
  readonly #now: () => number
  readonly #times: ReplicaTimes
  readonly #forwarder = new Forwarder()
  readonly #received = new WeakSet<HttpRequest>()
  /** By instance. */
  readonly #peers = new Map<string, Known>()
  /** By digest of a session's id: where it is since its replica was lost. */
  readonly #takenOver = new Map<string, Home>()
  /** By digest: takeovers that are not sure yet. */
  readonly #takings = new Map<string, Promise<Home>>()
  readonly #hops = new Set<Hop>()
  /** `undefined`: there is no store. */
  readonly #lease: Lease | undefined
  #watch: NodeJS.Timeout | undefined
  #isEnding = false
  #onFenced: (() => Promise<void>) | undefined
  #forwarded = 0
  #takeovers = 0

  constructor(options: ReplicasOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#times = options.times ?? DEFAULT_REPLICA_TIMES
    const { store, self, log, facts } = options
    this.#lease =
      store &&
      new Lease({
        self,
        store,
        times: this.#times,
        log,
        facts,
        onFenced: async () => this.#onFenced?.(),
        mayTake: (home) => this.#reachesStore(home),
      })
  }

  /** This process, as ids and states name it. */
  get home(): string {
    return formatHome(this.#options.self)
  }

  /** Requests that were passed on, and sessions that were taken over. */
  get counts(): { readonly forwarded: number; readonly takenOver: number } {
    return { forwarded: this.#forwarded, takenOver: this.#takeovers }
  }

  /** This replica holds its lease: no other one takes sessions from it. Without a store there are no leases. */
  get isLeased(): boolean {
    return this.#lease === undefined || this.#lease.isHeld
  }

  /** Goes up each time that sessions may have been let go of, because other replicas had taken them. */
  get looks(): number {
    return this.#lease?.looks ?? 0
  }

  /** Whether this replica may serve a session of its own now (`Lease.mayServe`). */
  mayServe(): Promise<boolean> {
    return this.#lease?.mayServe() ?? Promise.resolve(true)
  }

  /**
   * Takes the lease and keeps it. `onFenced`: another replica has taken sessions of this one over, which was thought lost, or the store has lost
   * its data; tried again where it rejects.
   */
  async start(onFenced: () => Promise<void>): Promise<void> {
    this.#onFenced = onFenced
    await this.#lease?.start()
  }

  /** From now on other replicas take sessions of this one over at once. */
  async handOver(): Promise<void> {
    this.#isEnding = true
    await this.#lease?.release()
  }

  close(): void {
    this.#lease?.close()
    clearInterval(this.#watch)
    this.#forwarder.close()
  }

  /**
   * Learns whether another replica has passed this request on. True: it was for this process alone, or for another process at the same
   * address, and is answered.
   */
  receives(request: HttpRequest): boolean {
    if (request.header(HOP) === undefined) return false
    const hop = this.#hopOf(request)
    // Of a host, or too old: a header like any other.
    if (hop === undefined) return false
    const isMeant = hop.to === this.#options.self.instance
    if (isMeant) request.addHeaders({ 'Trunkline-Hop': this.#answerMark(hop.nonce) })
    if (request.path === REPLICA_PATH) this.#answerProbe(request)
    else if (!isMeant) request.reply(421, {})
    else this.#received.add(request)
    return request.path === REPLICA_PATH || !isMeant
  }

  /** Another replica has passed it on: it is served here, or refused. */
  isForwarded(request: HttpRequest): boolean {
    return this.#received.has(request)
  }

  /** Whether a session that another replica has passed on, and that is not at this process, is this one's. Rejects with `StoreDown`. */
  async isOwner(home: string, id: string): Promise<boolean> {
    const { self, store } = this.#options
    const origin = homeOf(home)
    if (store === undefined) return true
    if (origin === undefined) return false
    const key = digestOf(id)
    // What this process has claimed may have to be given back.
    await this.#takings.get(key)?.catch(() => undefined)
    const owner = await this.#ownerOf(key, origin)
    // Written again where the store loses its data.
    if (owner.instance === self.instance && origin.instance !== self.instance) this.#remember(key, self)
    return owner.instance === self.instance
  }

  /** The replica that is asked says that another one serves the session. Learns which. Rejects with `StoreDown`. */
  async refused(id: string): Promise<void> {
    const key = digestOf(id)
    const holder = await this.#holderOf(key)
    if (holder === undefined) this.#takenOver.delete(key)
    else this.#remember(key, holder)
  }

  /**
   * Where something of `home` is served: there, at the replica that has taken it over, or here (`undefined`). `id` names a session that can
   * be taken over; without one there is nothing to take over, and `undefined` says that its replica is lost. Rejects with `StoreDown` or `ReplicaAway`.
   */
  async locate(home: string, id: string | undefined): Promise<Home | undefined> {
    const { self } = this.#options
    const origin = homeOf(home)
    if (origin === undefined) return undefined
    if (id === undefined) return origin.instance !== self.instance && (await this.#isThere(origin)) ? origin : undefined
    const key = digestOf(id)
    let at = this.#takenOver.get(key) ?? origin
    // Of this process, which does not have it: it has ended, or was taken over while this process was cut off.
    if (at.instance === self.instance) at = await this.#ownerOf(key, origin)
    // A second replica may be lost, too; in the third round it is this one's.
    for (let round = 0; round < 3; round++) {
      if (at.instance === self.instance || (await this.#isThere(at, true))) break
      const winner = await this.#takeOver(key, at)
      if (winner.instance === at.instance) break
      at = winner
    }
    return at.instance === self.instance ? undefined : at
  }

  /** Passes the request on; `unsent` and `refused`: it was not served, and what it names may be located again. */
  async forward(request: HttpRequest, body: Buffer | undefined, to: Home): Promise<Forwarded> {
    const { header, isGenuine } = this.#hopTo(to)
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
    if (end !== 'answered') this.#peers.delete(to.instance)
    return end
  }

  /** A replica that stops without a word, or is cut off, breaks no connection: what waits for it is broken off here. */
  async #watchHops(): Promise<void> {
    if (this.#hops.size === 0) {
      clearInterval(this.#watch)
      this.#watch = undefined
    }
    const homes = new Map([...this.#hops].map(({ to }) => [to.instance, to]))
    for (const home of homes.values()) {
      const isAlive = (await this.#stateOf(home)) === 'alive'
      for (const hop of this.#hops) {
        if (hop.to.instance !== home.instance) continue
        hop.failures = isAlive ? 0 : hop.failures + 1
        if (hop.failures >= MAX_MISSED) hop.breakOff()
      }
    }
  }

  /** The replicas that hold a lease, the first to start first; `undefined`: they share no store. Rejects with `StoreDown`. */
  async list(): Promise<readonly ReplicaStatus[] | undefined> {
    const leases = await this.#lease?.all()
    const { instance } = this.#options.self
    return leases && [...leases].map(([name, lease]) => ({ ...parseOwnJson<ReplicaStatus>(lease), isSelf: name === instance }))
  }

  /** Says in the store that this replica has what is named. While the store is away the others do not find it. */
  async keepHome(name: string, ttlMs: number): Promise<void> {
    await this.#options.store?.set(homeKey(name), this.home, ttlMs).catch(() => undefined)
  }

  /** The other replica that has what is named; `undefined`: none, it has ended, or the store is away. */
  async findHome(name: string): Promise<Home | undefined> {
    const home = await this.#options.store?.get(homeKey(name)).catch(() => undefined)
    return home === undefined ? undefined : this.locate(home, undefined)
  }

  /** Whether another replica serves this session since a time when this one could not be reached. */
  async areTakenOver(ids: readonly string[]): Promise<readonly boolean[]> {
    const { store, self } = this.#options
    const keys = ids.map(digestOf)
    const holders = await store?.getAll(keys.map(sessionKey))
    return Promise.all(
      keys.map(async (key, at) => {
        let holder = homeOf(holders?.[at] ?? '')
        // The store has lost that this one took it over.
        if (holder === undefined && this.#takenOver.get(key)?.instance === self.instance)
          holder = homeOf((await store?.claim(sessionKey(key), this.home, SESSION_MS)) ?? '')
        if (holder === undefined || holder.instance === self.instance) return false
        this.#remember(key, holder)
        return true
      }),
    )
  }

  /** Whether a replica serves. `isTaken`: it counts as lost only once its sessions may be taken. Rejects with `StoreDown` or `ReplicaAway`. */
  async #isThere(home: Home, isTaken = false): Promise<boolean> {
    // It may be paused, or cut off from this replica alone: it is lost once its lease has ended.
    const endMs = performance.now() + this.#times.leaseMs + this.#times.lookMs
    for (;;) {
      const state = await this.#stateOf(home)
      if (state === 'alive') return true
      if (this.#lease === undefined || (state === 'gone' && !isTaken)) return false
      if (await this.#lease.isLost(home, state === 'gone')) return false
      if (performance.now() >= endMs) throw new ReplicaAway(home)
      await new Promise((resolve) => setTimeout(resolve, this.#times.lookMs).unref())
    }
  }

  /** Of several replicas that find the same one lost, one takes the session over; returns that one, once it is sure. */
  #takeOver(key: string, from: Home): Promise<Home> {
    const taking = this.#takings.get(key) ?? this.#take(key, from).finally(() => this.#takings.delete(key))
    this.#takings.set(key, taking)
    return taking
  }

  async #take(key: string, from: Home): Promise<Home> {
    const { store, self, log } = this.#options
    if (store === undefined || this.#lease === undefined) return this.#remember(key, self)
    const held = await store.claim(sessionKey(key), this.home, SESSION_MS, formatHome(from))
    const winner = homeOf(held) ?? self
    // The other one, if it was only cut off, sees this with its next renewal and serves the session no longer. A replica that claimed
    // it first may have ended before it said so.
    await store.set(fenceOf(from.instance), randomBytes(8).toString('base64url'), SESSION_MS)
    // This process may have been paused since it found the other one lost.
    if (!(await this.#lease.isLost(from, (await this.#stateOf(from)) === 'gone'))) {
      // Not removed: the other one may have taken it over itself.
      if (winner.instance === self.instance) await store.claim(sessionKey(key), formatHome(from), SESSION_MS, this.home)
      throw new ReplicaAway(from)
    }
    if (winner.instance === self.instance) {
      this.#takeovers++
      log.info({ from: from.url }, 'a session of a replica that is gone is taken over')
    }
    return this.#remember(key, winner)
  }

  /** Who has a session that is not at this process. Rejects with `StoreDown`, also where the store has lost that a moment ago. */
  async #ownerOf(key: string, origin: Home): Promise<Home> {
    const holder = await this.#holderOf(key)
    if (holder === undefined && (await this.#lease?.isStoreOld()) === false)
      throw new StoreDown('the shared store has lost its data: which replica has the session is not known yet (store)')
    return holder ?? origin
  }

  /** The replica that has taken the session over; `undefined`: none. Rejects with `StoreDown`. */
  async #holderOf(key: string): Promise<Home | undefined> {
    return homeOf((await this.#options.store?.get(sessionKey(key))) ?? '')
  }

  #remember(key: string, home: Home): Home {
    const [oldest] = this.#takenOver.keys()
    if (this.#takenOver.size >= MAX_KNOWN && oldest !== undefined) this.#takenOver.delete(oldest)
    this.#takenOver.set(key, home)
    return home
  }

  #stateOf(home: Home): Promise<PeerState> {
    const nowMs = performance.now()
    const known = this.#peers.get(home.instance)
    if (known !== undefined && known.untilMs > nowMs) return known.state
    const state = this.#askState(home)
    this.#peers.delete(home.instance)
    const [oldest] = this.#peers.keys()
    if (this.#peers.size >= MAX_KNOWN && oldest !== undefined) this.#peers.delete(oldest)
    this.#peers.set(home.instance, { state, untilMs: nowMs + this.#times.believedMs })
    // Only a replica that answers is believed to do so for a while; of another one each request asks again, once at a time.
    void state.then((found) => {
      if (found !== 'alive' && this.#peers.get(home.instance)?.state === state) this.#peers.delete(home.instance)
    })
    return state
  }

  async #askState(home: Home): Promise<PeerState> {
    const { header, isGenuine } = this.#hopTo(home)
    try {
      const answer = await this.#forwarder.ask(home.url + REPLICA_PATH, { [HOP]: header })
      if (answer === undefined) return 'unreachable'
      // Without its mark it is another process at the same address: the one that is meant has ended.
      if (!isGenuine(answer.header)) return 'gone'
      if (answer.status === UNLEASED) return 'unreachable'
      return answer.status === 200 ? 'alive' : 'gone'
    } catch (error) {
      return asError(error).code === 'ECONNREFUSED' ? 'gone' : 'unreachable'
    }
  }

  /** Whether another replica reaches the store, or may do so: only where nothing listens at its address it does not. */
  async #reachesStore(home: Home): Promise<boolean> {
    const url = `${home.url}${REPLICA_PATH}?${STORE_QUERY}`
    try {
      const answer = await this.#forwarder.ask(url, { [HOP]: this.#hopTo(home).header })
      return answer === undefined || answer.header(STORE_HEADER) === 'yes'
    } catch (error) {
      return asError(error).code !== 'ECONNREFUSED'
    }
  }

  #answerProbe(request: HttpRequest): void {
    if (request.query === STORE_QUERY)
      request.reply(200, { 'Trunkline-Store': this.#lease?.reachesStore === true ? 'yes' : 'no' })
    else if (this.#isEnding) request.reply(410, {})
    else if (this.isLeased) request.reply(200, {})
    else void this.mayServe().then((isServing) => request.reply(isServing ? 200 : UNLEASED, {}))
  }

  /** `v1 <to> <from> <milliseconds> <nonce> <mark>` */
  #hopTo(to: Home): { header: string; isGenuine: (header: (name: string) => string | undefined) => boolean } {
    const { seal, self } = this.#options
    const nonce = randomBytes(9).toString('base64url')
    const text = `v1 ${to.instance} ${self.instance} ${this.#now()} ${nonce}`
    return {
      header: `${text} ${seal.mark(ASKED, text)}`,
      isGenuine: (header) => seal.isMark(ANSWERED, `${nonce} ${to.instance}`, header(HOP) ?? ''),
    }
  }

  #answerMark(nonce: string): string {
    const { seal, self } = this.#options
    return seal.mark(ANSWERED, `${nonce} ${self.instance}`)
  }

  #hopOf(request: HttpRequest): { readonly to: string; readonly nonce: string } | undefined {
    const header = request.header(HOP) ?? ''
    const cut = header.lastIndexOf(' ')
    const [version, to, , atMs, nonce] = header.slice(0, Math.max(0, cut)).split(' ')
    if (version !== 'v1' || to === undefined || nonce === undefined) return undefined
    if (
      Math.abs(this.#now() - Number(atMs)) > MARK_MS ||
      !this.#options.seal.isMark(ASKED, header.slice(0, cut), header.slice(cut + 1))
    )
      return undefined
    return { to, nonce }
  }
}

const homeKey = (name: string): string => `home:${digestOf(name)}`
const sessionKey = (digest: string): string => `session:${digest}`

const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url').slice(0, 22)
