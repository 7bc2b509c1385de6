/** The legacy sessions that come over HTTP: found by id and principal, ended when idle or too old (BRIDGING 5.1). */
import { Refusal, SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import { Failure } from '../../wire/message/failure.ts'
import { IdTable } from '../../wire/message/id-table.ts'
import { reached } from '../limits/admission.ts'
import { sweepStream } from '../response/exchange.ts'
import type { PostExchange } from '../response/exchange.ts'
import type { HostLimits } from '../options.ts'
import type { Session } from './session.ts'
import type { EventStream } from '../../transport/http1/server/request/event-stream.ts'

/** A session and what of HTTP belongs to it. */
export interface HttpSession {
  readonly session: Session
  /** Requests whose answer is not out yet. */
  readonly posts: IdTable<PostExchange>
  /** The standalone stream; the newest wins. */
  stream: { readonly events: EventStream; readonly name: string } | undefined
  /** When the longest of its credentials ends, wall clock in milliseconds. */
  untilMs: number
  /** Begun in an earlier process. */
  isReopened: boolean
}

/** What requests under way are answered with when their session ends and not by their host. */
export const sessionOver = (why: string): Refusal => new Refusal(-32600, `the session has ended (${why})`)

/** Sweeps are a tenth of a second apart; so much later, the process had been stopped. */
const STOPPED_MS = 5_000

export class Sessions {
  /** Called each time: a reload may have changed them. */
  readonly #limits: () => HostLimits
  readonly #counts: LimitCounts
  readonly #byId = new Map<string, HttpSession>()
  /** A session has ended for good, not with the process. */
  readonly #ended: (session: Session) => void
  #sweptMs = Infinity

  constructor(limits: () => HostLimits, counts: LimitCounts, ended: (session: Session) => void = () => undefined) {
    this.#ended = ended
    this.#limits = limits
    this.#counts = counts
  }

  get size(): number {
    return this.#byId.size
  }
  /** Requests that have not been answered. */
  get inFlight(): number {
    let total = 0
    for (const held of this.#byId.values()) total += held.posts.size
    return total
  }

  /** `untilMs`: end of its credential, wall clock. */
  add(session: Session, untilMs = Infinity): HttpSession {
    const { maxSessions, maxSessionsPerPrincipal } = this.#limits()
    const { principal } = session
    if (this.#byId.size >= maxSessions) this.#makeRoom('listen.limits.sessions', maxSessions)
    const isFull = principal !== SHARED_PRINCIPAL && this.#countOf(principal) >= maxSessionsPerPrincipal
    if (isFull) this.#makeRoom('listen.limits.sessions_per_principal', maxSessionsPerPrincipal, principal)
    const held: HttpSession = { session, posts: new IdTable(), stream: undefined, untilMs, isReopened: false }
    this.#byId.set(session.id, held)
    return held
  }

  /** The session of this id and principal. Sessions of other principals are not found, so that their existence is not revealed. */
  find(id: string, principal: string): HttpSession | undefined {
    const held = this.#byId.get(id)
    return held?.session.principal === principal ? held : undefined
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }
  get ids(): readonly string[] {
    return [...this.#byId.keys()]
  }

  /** The session goes on at another replica: it is closed here and not ended. */
  yield(id: string): void {
    const held = this.#byId.get(id)
    if (held !== undefined) this.#close(held, new Failure('lost', 'the session goes on at another replica'))
  }

  revoke(isRevoked: (principal: string) => boolean): void {
    for (const held of this.#byId.values())
      if (isRevoked(held.session.principal)) this.end(held, sessionOver('its credential is not valid any more'))
  }

  /** `why`: it is not its host that ends it. */
  end(held: HttpSession, why?: Refusal): void {
    this.#ended(held.session)
    this.#close(held, why)
  }

  #close(held: HttpSession, why: Refusal | Failure | undefined): void {
    this.#byId.delete(held.session.id)
    held.session.end(why)
    held.session.log?.close()
    if (why === undefined) held.stream?.events.end()
    else held.stream?.events.breakOff()
  }

  /** The process ends; hosts may go on with their sessions in the next one. */
  endAll(): void {
    for (const held of this.#byId.values()) this.#close(held, new Failure('shutting_down', 'the gateway stops'))
  }

  /** Ends what is idle or too old, if it `mayEnd` here; an open request or a stream that is read keeps a session alive. */
  sweep(nowMs: number, mayEnd = true): void {
    const limits = this.#limits()
    const gapMs = nowMs - this.#sweptMs
    this.#sweptMs = nowMs
    const wallMs = Date.now()
    for (const held of this.#byId.values()) {
      const { session, posts, stream } = held
      // Time in which the process was stopped does not count as idle time (F-27).
      if (gapMs > STOPPED_MS) for (const timed of [session, ...posts.values()]) timed.forgive(gapMs)
      if (stream !== undefined) sweepStream(stream.events, limits, this.#counts)
      // The host may open the stream again with a valid credential.
      if (wallMs >= held.untilMs) stream?.events.breakOff()
      for (const post of posts.values()) post.sweep(nowMs, limits, this.#counts)
      session.log?.sweep(nowMs)
      if (stream !== undefined || posts.size > 0) session.activeMs = nowMs
      const isIdle = nowMs - session.activeMs >= limits.sessionIdleMs
      if (!mayEnd || (!isIdle && nowMs - session.startedMs < limits.sessionMaxMs)) continue
      const limit = isIdle ? 'listen.limits.session_idle' : 'listen.limits.session_max'
      this.#counts.passed(limit)
      this.end(held, sessionOver(limit))
    }
  }

  /** Ends an idle session for a new one; throws where all are in use. */
  #makeRoom(limit: string, value: number, principal?: string): void {
    if (!this.#evictIdle(principal)) throw reached(limit, value)
    this.#counts.hit(limit)
  }

  #countOf(principal: string): number {
    let count = 0
    for (const { session } of this.#byId.values()) if (session.principal === principal) count++
    return count
  }

  /** Ends a session that is not in use, of any principal or of the given one. */
  #evictIdle(principal?: string): boolean {
    for (const held of this.#byId.values()) {
      if (held.posts.size > 0 || held.stream !== undefined) continue
      if (principal !== undefined && held.session.principal !== principal) continue
      this.end(held)
      return true
    }
    return false
  }
}
