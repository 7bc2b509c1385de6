/** Legacy sessions over Streamable HTTP: found by id and principal, ended when idle or too old (BRIDGING 5.1). */
import { Refusal, SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { IdTable } from '../../wire/message/id-table.ts'
import { reached } from '../limits/admission.ts'
import { sweepStream } from '../response/exchange.ts'
import type { PostExchange } from '../response/exchange.ts'
import type { HostLimits } from '../options.ts'
import type { Session } from './session.ts'
import type { EventStream } from '../../transport/http1/server/request/event-stream.ts'

/** A session and its HTTP exchanges. */
export interface HttpSession {
  readonly session: Session
  /** Requests that have not been answered; created with the first, like `streamNames`: most of possibly ten thousand sessions are idle. */
  posts: IdTable<PostExchange> | undefined
  /** The latest standalone stream. `continues`: the name of that of an earlier process. */
  stream: { readonly events: EventStream; readonly name: string; readonly continues: string | undefined } | undefined
  /** Names of the standalone streams in the event log, oldest first. */
  streamNames: string[] | undefined
  /** Latest end of its credentials, wall clock in milliseconds. */
  untilMs: number
  /** The session began in an earlier process. */
  isReopened: boolean
}

/** Answer to requests in flight when the gateway ends their session. */
export const sessionOver = (why: string): Refusal => new Refusal(-32600, `the session has ended (${why})`)

const isInUse = ({ posts, stream }: HttpSession): boolean => stream !== undefined || (posts?.size ?? 0) > 0

/** Sweeps are 100 ms apart. After a longer gap than this the process had been stopped. */
const STOPPED_MS = 5_000

export class Sessions {
  /** Read each time, since a reload may change them. */
  readonly #limits: () => HostLimits
  readonly #counts: LimitCounts
  readonly #byId = new Map<string, HttpSession>()
  /** Called when a session has ended and cannot be continued by a later process. */
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
    for (const entry of this.#byId.values()) total += entry.posts?.size ?? 0
    return total
  }
  /** Whether a call waits for an answer of its host. */
  get isAsking(): boolean {
    return [...this.#byId.values()].some(({ session }) => session.isAsking)
  }

  /** Adds a session. Throws a `Failure` at a session limit. `untilMs`: end of its credential, wall clock. */
  add(session: Session, untilMs = Infinity): HttpSession {
    const { maxSessions, maxSessionsPerPrincipal } = this.#limits()
    const { principal } = session
    if (this.#byId.size >= maxSessions) this.#makeRoom('listen.limits.sessions', maxSessions)
    const isFull = principal !== SHARED_PRINCIPAL && this.#countOf(principal) >= maxSessionsPerPrincipal
    if (isFull) this.#makeRoom('listen.limits.sessions_per_principal', maxSessionsPerPrincipal, principal)
    const entry: HttpSession = {
      session,
      posts: undefined,
      stream: undefined,
      streamNames: undefined,
      untilMs,
      isReopened: false,
    }
    this.#byId.set(session.id, entry)
    return entry
  }

  /** Returns a session of this principal. Sessions of other principals are not found, so that their existence is not revealed. */
  find(id: string, principal: string): HttpSession | undefined {
    const entry = this.#byId.get(id)
    return entry?.session.principal === principal ? entry : undefined
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }
  get ids(): readonly string[] {
    return [...this.#byId.keys()]
  }

  /** Closes a session that continues at another replica. */
  release(id: string): void {
    const entry = this.#byId.get(id)
    if (entry !== undefined) this.#close(entry, new Failure('lost', 'the session goes on at another replica'))
  }

  /** Ends the sessions of revoked principals. */
  revoke(isRevoked: (principal: string) => boolean): void {
    for (const entry of this.#byId.values())
      if (isRevoked(entry.session.principal)) this.end(entry, sessionOver('its credential is no longer valid'))
  }

  /** Ends a session. `why`: answer to its requests in flight; `undefined`: its host ends it. */
  end(entry: HttpSession, why?: Refusal): void {
    this.#ended(entry.session)
    this.#close(entry, why)
  }

  #close(entry: HttpSession, why: Refusal | Failure | undefined): void {
    this.#byId.delete(entry.session.id)
    entry.session.end(why)
    entry.session.log?.close()
    if (why === undefined) entry.stream?.events.end()
    else entry.stream?.events.breakOff()
  }

  /** Closes all sessions because the process ends. Hosts may continue them in the next process. */
  endAll(): void {
    for (const entry of this.#byId.values()) this.#close(entry, new Failure('shutting_down', 'the gateway stops'))
  }

  /** Ends sessions that are idle or too old, if `mayEnd`. A session with a pending request or an open stream is not idle. */
  sweep(nowMs: number, mayEnd = true): void {
    const limits = this.#limits()
    const gapMs = nowMs - this.#sweptMs
    this.#sweptMs = nowMs
    const wallMs = Date.now()
    for (const entry of this.#byId.values()) {
      const { session, posts, stream } = entry
      // Time in which the process was stopped is not idle time (F-27).
      const unanswered = posts !== undefined && posts.size > 0 ? posts.values() : []
      if (gapMs > STOPPED_MS) for (const timed of [session, ...unanswered]) timed.excludePause(gapMs)
      if (stream !== undefined) sweepStream(stream.events, limits, this.#counts)
      // The host may reopen the stream with a valid credential.
      if (wallMs >= entry.untilMs) stream?.events.breakOff()
      for (const post of unanswered) post.sweep(nowMs, limits, this.#counts)
      session.log?.sweep(nowMs)
      if (isInUse(entry)) session.activeMs = nowMs
      const isIdle = nowMs - session.activeMs >= limits.sessionIdleMs
      if (!mayEnd || (!isIdle && nowMs - session.startedMs < limits.sessionMaxMs)) continue
      const limit = isIdle ? 'listen.limits.session_idle' : 'listen.limits.session_max'
      this.#counts.passed(limit)
      this.end(entry, sessionOver(limit))
    }
  }

  /** Ends an idle session to make room; throws a `Failure` if all are in use. */
  #makeRoom(limit: string, value: number, principal?: string): void {
    if (!this.#evictIdle(principal)) throw reached(limit, value)
    this.#counts.hit(limit)
  }

  #countOf(principal: string): number {
    let count = 0
    for (const { session } of this.#byId.values()) if (session.principal === principal) count++
    return count
  }

  /** Ends the longest idle session without pending requests and stream, of any principal or of the given one. False: there is none. */
  #evictIdle(principal?: string): boolean {
    let longest: HttpSession | undefined
    for (const entry of this.#byId.values()) {
      const { session } = entry
      if (isInUse(entry) || (principal !== undefined && session.principal !== principal)) continue
      if (longest === undefined || session.activeMs < longest.session.activeMs) longest = entry
    }
    if (longest !== undefined) this.end(longest)
    return longest !== undefined
  }
}
