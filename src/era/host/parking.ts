/**
 * Parked calls. A legacy server requests input during a call; a modern host is asked by ending its request. The call to the server
 * therefore stays open here between the two requests of the host (BRIDGING 3.13, Example A).
 *
 *     host    ──7: call──►              ──8: call, answers, state──►
 *             ◄─7: input_required+state─               ◄─8: result──
 *     parked       │ carrier 7 │  (none: the host asks)    │ carrier 8 │
 *     server  ──────────────── one call, 41, open all the time ────────
 */
import { randomUUID } from 'node:crypto'
import type { Purpose, Seal } from '../../auth/seal.ts'
import { endpointKey, Refusal, SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Call, Handler, Layer, Outcome } from '../../rpc/call.ts'
import { Failure } from '../../wire/message/failure.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { ParkedCall } from './parked-call.ts'
import type { ParkingOptions } from './parking-options.ts'
import { digestOf } from './request-digest.ts'

const PURPOSE: Purpose<Ticket> = 'parked call'

/** Content of a parked call's sealed `requestState`. */
interface Ticket {
  /** The process that holds the call. */
  readonly owner: string
  readonly park: string
  readonly nonce: string
  readonly principal: string
  readonly endpoint: string
  readonly digest: string
}

export class Parking {
  readonly #seal: Seal
  /** Read for each call, since a reload may change them. */
  readonly #options: () => ParkingOptions
  readonly #owner: string
  readonly #calls = new Map<string, ParkedCall>()
  readonly #reached: (option: string) => void
  #isClosing = false

  /** `reached` is called with the option whose limit was reached. `owner`: names this process in states, as other replicas know it. */
  constructor(seal: Seal, options: () => ParkingOptions, reached: (option: string) => void, owner: string = randomUUID()) {
    this.#seal = seal
    this.#owner = owner
    this.#reached = reached
    this.#options = options
  }

  /** Number of calls that wait for a host's next request. */
  get size(): number {
    let parked = 0
    for (const call of this.#calls.values()) if (call.isParked) parked++
    return parked
  }

  /** The process that holds the call of a state; `undefined`: the state is not of a parked call, or has expired. */
  ownerOf(state: string): string | undefined {
    return this.#seal.open(PURPOSE, state)?.owner
  }

  /** Adds `ask` to calls of modern hosts that declare a capability for input. A retry need not declare it again. */
  readonly layer: Layer = (inner) => (call) => {
    const { session, capabilities } = call.caller
    const mayBeAsked =
      capabilities['elicitation'] !== undefined || capabilities['sampling'] !== undefined || capabilities['roots'] !== undefined
    if (session !== undefined || METHODS[call.method]?.mayAskInput !== true) return inner(call)
    const ticket = this.#open(call)
    if (ticket !== undefined) return this.#resume(call, ticket)
    return mayBeAsked ? this.#begin(call, inner) : inner(call)
  }

  /** Ends all parked calls. Calls with a carrying request continue to their outcome (F-22); their questions are declined. */
  close(): void {
    this.#isClosing = true
    for (const call of this.#calls.values()) {
      if (call.isParked) call.abandon()
      else call.stopAsking()
    }
  }

  #open(call: Call): Ticket | undefined {
    const token = call.params.text('requestState')
    return token === undefined ? undefined : this.#seal.open(PURPOSE, token)
  }

  #begin(call: Call, inner: Handler): Promise<Outcome> {
    const id = randomUUID()
    // Computed with the first question, while the request is still there: most calls ask nothing.
    let digest: string | undefined
    const digestNow = (): string => (digest ??= digestOf(call))
    const { principal, scope } = call.caller
    const options = this.#options()
    const ticket = { owner: this.#owner, park: id, principal, endpoint: endpointKey(scope) }
    const issue = (nonce: string): string =>
      this.#seal.seal(PURPOSE, { ...ticket, digest: digestNow(), nonce } satisfies Ticket, options.ttlMs)
    const parked = new ParkedCall(principal, options, {
      issue,
      prepare: digestNow,
      limitReached: () => this.#limitReached(principal),
      expired: () => this.#reached('limits.park_ttl'),
      onEnd: () => this.#calls.delete(id),
    })
    if (this.#isClosing) parked.stopAsking()
    this.#calls.set(id, parked)
    return parked.start(call, inner)
  }

  #resume(call: Call, ticket: Ticket): Promise<Outcome> {
    const { principal, scope } = call.caller
    const isOurs = ticket.principal === principal && ticket.endpoint === endpointKey(scope) && ticket.digest === digestOf(call)
    if (!isOurs) throw new Refusal(-32602, 'invalid or expired requestState')
    const parked = this.#calls.get(ticket.park)
    if (parked !== undefined) return parked.resume(call, ticket.nonce)
    if (ticket.owner === this.#owner) throw new Refusal(-32602, 'requestState already used')
    // The process that held the call has ended, and the call with it (rule 9): the call is not repeated.
    const text = 'the interaction with the server was lost; the action may or may not have happened'
    throw new Failure('lost', text, { told: text, executed: 'unknown' })
  }

  /** The option whose limit forbids another parked call, with its value. */
  #limitReached(principal: string): string | undefined {
    const { maxParked, maxPerPrincipal } = this.#options()
    let all = 0
    let own = 0
    for (const parked of this.#calls.values()) {
      if (!parked.isParked) continue
      all++
      if (parked.principal === principal) own++
    }
    const isShared = principal === SHARED_PRINCIPAL
    if (all < maxParked && (isShared || own < maxPerPrincipal)) return undefined
    const [limit, value] = all >= maxParked ? ['limits.parked', maxParked] : ['limits.parked_per_principal', maxPerPrincipal]
    this.#reached(limit)
    return `${limit} (${value})`
  }
}
