/**
 * Admission of new calls: calls in flight, in all and per principal, held bytes, and overload. It runs for every call, so it uses
 * integers only. Principals are counted only where there is authentication.
 */
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { BodyPool } from '../../transport/body-pool.ts'
import type { HostOptions } from '../options.ts'
import type { Overload } from './overload.ts'

/** `Retry-After` of refused requests, ms. */
const RETRY_AFTER_MS = 1_000
/** Principals without calls that are kept, since adding and removing them for every call would be expensive. */
const MAX_KEPT = 10_000
/** What `end` gives back: nothing is held any more. */
export const NOTHING: number = -1

/** What admission depends on: the limits, how near the process is to them, and the memory that calls hold. */
interface AdmissionSource {
  readonly options: Pick<HostOptions, 'limits'>
  readonly overload: Pick<Overload, 'shedding' | 'reason' | 'limit'>
  readonly bodies: Pick<BodyPool, 'held'>
}

export class Admission {
  readonly #source: AdmissionSource
  readonly #byPrincipal = new Map<string, number>()
  #inFlight = 0

  constructor(source: AdmissionSource) {
    this.#source = source
  }

  /** Calls under way, of all hosts. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Why a call of this principal is refused now; `undefined`: it is admitted. The failure's `limit` names the option. */
  refuse(principal: string): Failure | undefined {
    const { maxInFlight, maxInFlightPerPrincipal } = this.#source.options.limits
    if (this.#source.overload.shedding === 2) return this.shed()
    if (this.#inFlight >= maxInFlight) return reached('listen.limits.in_flight', maxInFlight)
    if (this.#source.bodies.held.isFull) return reached('limits.in_flight_bytes', this.#source.bodies.held.max)
    if (principal === SHARED_PRINCIPAL || (this.#byPrincipal.get(principal) ?? 0) < maxInFlightPerPrincipal) return undefined
    return reached('listen.limits.in_flight_per_principal', maxInFlightPerPrincipal)
  }

  /** Why a new session is refused now; `undefined`: it is admitted. */
  refuseSession(): Failure | undefined {
    return this.#source.overload.shedding > 0 ? this.shed() : undefined
  }

  /** What overload refuses, with the reason. */
  shed(): Failure {
    const { reason, limit } = this.#source.overload
    return overloaded(reason, limit)
  }

  begin(principal: string, bytes: number): void {
    this.#inFlight++
    this.#source.bodies.held.add(bytes)
    if (principal !== SHARED_PRINCIPAL) this.#byPrincipal.set(principal, (this.#byPrincipal.get(principal) ?? 0) + 1)
  }

  end(principal: string, bytes: number): number {
    this.#inFlight--
    this.#source.bodies.held.release(bytes)
    if (principal !== SHARED_PRINCIPAL) this.#leave(principal)
    return NOTHING
  }

  #leave(principal: string): void {
    this.#byPrincipal.set(principal, (this.#byPrincipal.get(principal) ?? 1) - 1)
    if (this.#byPrincipal.size <= MAX_KEPT) return
    for (const [idle, count] of this.#byPrincipal) if (count === 0) this.#byPrincipal.delete(idle)
  }
}

/** A limit of ours, by the path of its option and its value. */
export const reached = (limit: string, value: number): Failure => overloaded(`${limit} (${value}) reached`, limit)

const overloaded = (message: string, limit: string | undefined): Failure =>
  new Failure('overloaded', message, {
    executed: 'no',
    retryable: true,
    retryAfterMs: RETRY_AFTER_MS,
    ...(limit !== undefined && { limit }),
  })
