/**
 * Admission of new calls by calls in flight (total and per principal), bytes held, and overload. Runs for every call, so it uses integers
 * only. Principals are counted only with authentication.
 */
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { BodyPool } from '../../transport/body-pool.ts'
import type { HostOptions } from '../options.ts'
import type { Overload } from './overload.ts'

/** `Retry-After` of refused requests, ms. */
const RETRY_AFTER_MS = 1_000
/** Entries of principals, idle ones included, since adding and removing an entry per call would be expensive. */
const MAX_KEPT = 10_000
/** Returned by `end`: no bytes are held. */
export const NOTHING: number = -1

/** What admission depends on. */
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

  /** Calls in flight of all hosts. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Returns why a call of this principal is refused; `undefined`: it is admitted. `facts.limit` names the option. */
  refuse(principal: string): Failure | undefined {
    const { maxInFlight, maxInFlightPerPrincipal } = this.#source.options.limits
    if (this.#source.overload.shedding === 2) return this.#shed()
    if (this.#inFlight >= maxInFlight) return reached('listen.limits.in_flight', maxInFlight)
    if (this.#source.bodies.held.isFull) return reached('limits.in_flight_bytes', this.#source.bodies.held.max)
    if (principal === SHARED_PRINCIPAL || (this.#byPrincipal.get(principal) ?? 0) < maxInFlightPerPrincipal) return undefined
    return reached('listen.limits.in_flight_per_principal', maxInFlightPerPrincipal)
  }

  /** Returns why a new session is refused; `undefined`: it is admitted. */
  refuseSession(): Failure | undefined {
    return this.#source.overload.shedding > 0 ? this.#shed() : undefined
  }

  #shed(): Failure {
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

/** Returns the failure for a reached limit. `limit`: path of the option. */
export const reached = (limit: string, value: number): Failure => overloaded(`${limit} (${value}) reached`, limit)

const overloaded = (message: string, limit: string | undefined): Failure =>
  new Failure('overloaded', message, {
    executed: 'no',
    retryable: true,
    retryAfterMs: RETRY_AFTER_MS,
    ...(limit !== undefined && { limit }),
  })
