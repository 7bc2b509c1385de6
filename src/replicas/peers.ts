/** The other replicas as this one reaches them: each is asked at its own address, and the answer is believed for a short time. */
import { asError } from '../values/as-error.ts'
import { setBounded } from '../values/bounded-map.ts'
import type { Forwarder } from './forwarding.ts'
import type { Home } from './home.ts'
import { HOP } from './hop-marks.ts'
import type { HopMarks } from './hop-marks.ts'

/** Path for requests of replicas to each other; 404 for all other clients. */
export const REPLICA_PATH = '/replica'
/** Query of a request whether the replica reaches the store, and the header of its answer. */
export const STORE_QUERY = 'store'
const STORE_HEADER = 'trunkline-store'
/** Status of a probe at a replica that has lost its lease and does not serve its sessions. */
export const UNLEASED = 409
const MAX_KNOWN = 10_000

type PeerState = 'alive' | 'gone' | 'unreachable'

interface Known {
  readonly state: Promise<PeerState>
  readonly untilMs: number
}

interface PeersSource {
  readonly self: Home
  readonly forwarder: Forwarder
  readonly marks: HopMarks
  /** How long the state of a replica is believed. */
  readonly believedMs: number
}

export class Peers {
  readonly #source: PeersSource
  /** By instance. */
  readonly #known = new Map<string, Known>()

  constructor(source: PeersSource) {
    this.#source = source
  }

  stateOf(home: Home): Promise<PeerState> {
    const nowMs = performance.now()
    const known = this.#known.get(home.instance)
    if (known !== undefined && known.untilMs > nowMs) return known.state
    const state = this.#probe(home)
    setBounded(this.#known, home.instance, { state, untilMs: nowMs + this.#source.believedMs }, MAX_KNOWN)
    // Only the state `alive` is cached; other replicas are probed again by the next request, one probe at a time.
    void state.then((found) => {
      if (found !== 'alive' && this.#known.get(home.instance)?.state === state) this.#known.delete(home.instance)
    })
    return state
  }

  /** The next request probes it again. */
  doubt(home: Home): void {
    this.#known.delete(home.instance)
  }

  /** Why a request to the URL of this replica does not reach it; `undefined`: it does. */
  async unreachedSelf(): Promise<string | undefined> {
    const { self } = this.#source
    const { header, isGenuine } = this.#source.marks.to(self)
    try {
      const answer = await this.#source.forwarder.ask(self.url + REPLICA_PATH, { [HOP]: header })
      if (answer === undefined) return 'no answer within 2 s'
      return isGenuine(answer.header) ? undefined : `another process answers there, with status ${answer.status}`
    } catch (error) {
      return asError(error).message
    }
  }

  /** Whether another replica may reach the store. False only if it says so, or nothing listens at its address. */
  async reachesStore(home: Home): Promise<boolean> {
    const url = `${home.url}${REPLICA_PATH}?${STORE_QUERY}`
    try {
      const answer = await this.#source.forwarder.ask(url, { [HOP]: this.#source.marks.to(home).header })
      return answer === undefined || answer.header(STORE_HEADER) === 'yes'
    } catch (error) {
      return asError(error).code !== 'ECONNREFUSED'
    }
  }

  async #probe(home: Home): Promise<PeerState> {
    const { header, isGenuine } = this.#source.marks.to(home)
    try {
      const answer = await this.#source.forwarder.ask(home.url + REPLICA_PATH, { [HOP]: header })
      if (answer === undefined) return 'unreachable'
      // Without its mark another process at the same address has answered: the intended one has ended.
      if (!isGenuine(answer.header)) return 'gone'
      if (answer.status === UNLEASED) return 'unreachable'
      return answer.status === 200 ? 'alive' : 'gone'
    } catch (error) {
      return asError(error).code === 'ECONNREFUSED' ? 'gone' : 'unreachable'
    }
  }
}
