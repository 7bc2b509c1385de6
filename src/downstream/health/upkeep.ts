/**
 * Keeps the main link of one server up: dials, waits for the loss, dials again, until it is stopped or only a person can help.
 * Calls that need the link wait here for it. A link that was good and is opened again at once was no failure (B289); while a server
 * is down, a call or a list brings the next attempt forward (F-04).
 */
import { BehaviorSubject } from 'rxjs'
import type { Link } from '../../era/server/link.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Backoff } from '../pacing/backoff.ts'
import type { DownstreamEnvironment } from '../environment.ts'
import { isHopeless, nextHealth, STARTING } from './health.ts'
import type { Health, HealthEvent } from './health.ts'
import type { ServerOptions } from '../options.ts'
import type { Restarts } from '../pacing/restarts.ts'
import { isForgotten } from '../pacing/retries.ts'

/** What of a server this needs. */
export interface UpkeepSource {
  readonly options: () => ServerOptions
  /** Whose connection it is, where each has his own. */
  readonly principal: string | undefined
  readonly environment: Pick<DownstreamEnvironment, 'backoff' | 'limits' | 'log' | 'starts'>
  readonly restarts: Restarts
  /**
   * Opens a main link and reads all that must be known before calls use it. `opened` receives the link before that; `isWanted`: a
   * call waits for it.
   */
  readonly connect: (opened: (link: Link) => void, isWanted: () => boolean) => Promise<void>
  /** A process of ours ended by itself, so that `failure` is a crash. */
  readonly isCrash: (failure: Failure) => boolean
  /** Settles before the first attempt may be made. */
  readonly mayConnect: () => Promise<unknown>
  /** Sentences about what is not as it should be on a link that is up. */
  readonly complaints: () => readonly string[]
  /** `isAgain`: after a loss, or after attempts that failed. */
  readonly up: (link: Link, isAgain: boolean) => void
  /** An attempt failed or the link was lost, in a way that is a failure. */
  readonly failed: () => void
  readonly givenUp: (failure: Failure) => void
}

export class Upkeep {
  readonly health$ = new BehaviorSubject<Health>(STARTING)
  readonly #source: UpkeepSource
  #link: Link | undefined
  /** The same, from when it is open: it is still being read. */
  #opened: Link | undefined
  /** Links that were given up and still carry calls. */
  readonly #retiring = new Set<Link>()
  /** Ends the use of the link that is up. */
  #retired: () => void = () => undefined
  /** Why a link that was up is given up. */
  #refused: Failure | undefined
  #isStopping = false
  #hasBeenUp = false
  /** An attempt is under way. */
  #isDialing = false
  /** Monotonic time before which nothing brings the next attempt forward. */
  #notBeforeMs = 0
  /** Monotonic time of the last health. */
  #lastUpMs = -Infinity
  /** "Needs sign-in" was logged, and no sign-in has happened since. */
  #isSignInTold = false
  #running: Promise<void> | undefined
  /** Ends the wait for the next attempt after so many milliseconds. */
  #wakeIn: (ms: number) => void = () => undefined
  readonly #waiters = new Set<() => void>()

  constructor(source: UpkeepSource) {
    this.#source = source
  }

  /** The link, while it is up. */
  get link(): Link | undefined {
    return this.#link
  }

  /** The gateways it leads through; none that is not open yet (T-35). */
  get gateways(): readonly string[] {
    return this.#opened?.gateways ?? []
  }

  /** Starts in the background, if it is not running. */
  run(): void {
    if (this.#isStopping || this.#running !== undefined) return
    this.#running = this.#keepConnected().finally(() => (this.#running = undefined))
  }

  /** Skips the wait before the next attempt, and begins again where it had been given up. */
  retryNow(): void {
    if (this.health$.value.state === 'down') this.#change({ type: 'woken' })
    this.run()
    this.#wakeIn(0)
  }

  /** Brings the next attempt forward, as far as that is allowed; waits for nothing. */
  hurry(): void {
    if (this.#isDialing || this.#link !== undefined) return
    const waitMs = Math.max(0, this.#notBeforeMs - performance.now())
    if (waitMs <= this.#source.environment.backoff.minRetryMs) this.#wakeIn(waitMs)
  }

  /**
   * The link. Waits for a server that is starting, and for one attempt at a server that is down; throws at once where waiting is
   * of no use (BRIDGING 7.2).
   */
  async ready(): Promise<Link> {
    if (this.#link !== undefined) return this.#link
    const { state } = this.health$.value
    const isHopelessNow = state === 'failed' || (state === 'down' && !this.#isDialing && performance.now() < this.#notBeforeMs)
    if (isHopelessNow || state === 'draining') throw this.#refusal()
    const ready = this.#untilReady(this.#source.options().timeouts.connectTimeoutMs)
    this.#source.environment.starts.review()
    this.run()
    this.hurry()
    await ready
    if (this.#link !== undefined) return this.#link
    throw this.#refusal()
  }

  /** Why there is no link. */
  #refusal(): Failure {
    const { failure, nextTryAtMs, reason, state } = this.health$.value
    if (state === 'draining') return new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    const isOver = state === 'failed' || state === 'down'
    if (failure === undefined || !isOver)
      return new Failure('starting', `still starting: ${reason ?? 'no answer yet'}`, {
        executed: 'no',
        retryable: true,
        limit: 'timeouts.wait',
      })
    const retryAfterMs = nextTryAtMs === undefined ? undefined : Math.max(0, Math.round(nextTryAtMs - performance.now()))
    return new Failure(
      failure.kind,
      failure.message,
      { ...failure.facts, state, executed: 'no', ...(retryAfterMs !== undefined && { retryAfterMs }) },
      failure,
    )
  }

  /**
   * Uses the link. One whose session the server has forgotten is of no use any more: another is opened (5.3). One that turns out to
   * be hopeless is given up.
   */
  async over<T>(link: Link, use: () => Promise<T>): Promise<T> {
    try {
      return await use()
    } catch (error) {
      const isHopelessly = error instanceof Failure && isHopeless(error)
      if ((isForgotten(error) || isHopelessly) && this.#link === link) {
        if (isHopelessly) this.#refused = error
        this.giveUp(link)
      }
      throw error
    }
  }

  /** The link is of no use for further calls: another is opened at once. Calls that are under way on it end first (B268). */
  giveUp(link: Link): void {
    if (this.#link !== link) return
    this.#link = undefined
    this.#retiring.add(link)
    void link.retire().finally(() => this.#retiring.delete(link))
    this.#retired()
  }

  /** Stops attempts and settles all waiting calls; the link stays until `close`. */
  drain(): void {
    this.#isStopping = true
    this.#change({ type: 'stopping' })
    this.#wakeIn(0)
    this.#settleWaiters()
  }

  async close(): Promise<void> {
    await Promise.all([this.#link?.close(), ...[...this.#retiring].map((link) => link.close())])
  }

  /** Resolves when nothing is under way any more. */
  async ended(): Promise<void> {
    await this.#running
    this.health$.complete()
  }

  async #keepConnected(): Promise<void> {
    const { environment, isCrash, options } = this.#source
    const { minRetryMs } = environment.backoff
    const backoff = new Backoff(environment.backoff)
    while (!this.#isStopping) {
      this.#change({ type: 'dialing' })
      this.#refused = undefined
      const startedMs = performance.now()
      let upSinceMs: number | undefined
      const failure = await this.#connectOnce(() => (upSinceMs = performance.now()))
      this.#link = this.#opened = undefined
      if (this.#isStopping) return
      const nowMs = performance.now()
      const upMs = upSinceMs === undefined ? 0 : nowMs - upSinceMs
      if (upSinceMs !== undefined) this.#lastUpMs = nowMs
      // The program of a server that ran a moment ago is being replaced: its entries stay for so long (BRIDGING 3.1).
      const isBeingReplaced = failure.kind === 'spawn_failed' && nowMs - this.#lastUpMs < options().timeouts.graceMs
      if (isHopeless(failure) && !isBeingReplaced) return this.#giveUp(failure)
      const hasCrashed = isCrash(failure)
      if (upSinceMs !== undefined && upMs >= minRetryMs && !hasCrashed) this.#renew(failure)
      else {
        const { waitMs, isCrashLoop } = backoff.fail(nowMs, { upMs, isCrash: hasCrashed })
        const earliestMs = isCrashLoop ? waitMs : hasCrashed ? this.#restartMs() : 0
        await this.#waitAfter(failure, Math.max(waitMs, earliestMs), Math.max(startedMs + minRetryMs, nowMs + earliestMs))
      }
    }
  }

  /** Opens the link again at once. Nothing is counted: whether the server is away, the attempt will show. */
  #renew({ kind, message }: Failure): void {
    const { environment, options } = this.#source
    environment.log.info({ server: options().key, kind }, `the link has ended and is opened again: ${message}`)
    this.#change({ type: 'renewing' })
  }

  /** `notBeforeMs`: no call brings the next attempt forward beyond that. */
  async #waitAfter(failure: Failure, waitMs: number, notBeforeMs: number): Promise<void> {
    const { environment, failed, options } = this.#source
    const { key, timeouts } = options()
    const nowMs = performance.now()
    this.#notBeforeMs = notBeforeMs
    if (failure.facts.limit !== undefined) environment.limits.hit(failure.facts.limit, key)
    environment.log.warn({ server: key, kind: failure.kind, nextTryMs: Math.round(waitMs) }, failure.message)
    // Within the grace time calls wait for a server that was good: a restart should fail none of them (BRIDGING 3.1).
    const mayWait = nowMs - this.#lastUpMs < timeouts.graceMs && notBeforeMs - nowMs <= timeouts.graceMs
    this.#change({ type: 'lost', failure, nextTryAtMs: nowMs + waitMs, isDown: !mayWait })
    failed()
    if (!mayWait) this.#settleWaiters()
    const waiting = this.#pause(waitMs)
    if (this.#waiters.size > 0) this.hurry()
    await waiting
  }

  /** From dialing to the loss of the link; resolves with the reason. */
  async #connectOnce(onUp: () => void): Promise<Failure> {
    const { connect, mayConnect, complaints, up } = this.#source
    const isAgain = this.#hasBeenUp || this.health$.value.failures > 0
    let link: Link | undefined
    this.#isDialing = true
    try {
      await mayConnect()
      if (this.#isStopping) throw new Failure('shutting_down', 'stopped before it was started')
      await connect(
        (opened) => (link = this.#opened = opened),
        () => this.#waiters.size > 0 || this.#isStopping,
      )
      if (link === undefined) throw new Failure('shutting_down', 'stopped before it was started')
      if (this.#isStopping) throw new Failure('shutting_down', 'stopped while it was starting')
      this.#link = link
      this.#isDialing = false
      this.#hasBeenUp = true
      this.#isSignInTold = false
      onUp()
      this.#change({ type: 'ready', complaints: complaints() })
      this.#settleWaiters()
      up(link, isAgain)
      const retired = new Promise<undefined>((resolve) => (this.#retired = () => resolve(undefined)))
      const failure = await Promise.race([link.closed, retired])
      return failure ?? this.#refused ?? new Failure('lost', 'the connection was closed', { retryable: true })
    } catch (error) {
      await link?.close()
      return error instanceof Failure
        ? error
        : new Failure('bad_response', `the handshake failed: ${String(error)}`, { executed: 'no' }, error)
    } finally {
      this.#isDialing = false
    }
  }

  /** How long a process that has ended must not be started again, whatever the back-off says. */
  #restartMs(): number {
    const { options, restarts, environment } = this.#source
    const { key } = options()
    restarts.ended()
    if (restarts.waitMs > 0) environment.limits.hit('limits.restarts', key)
    return restarts.waitMs
  }

  #giveUp(failure: Failure): void {
    this.#tell(failure)
    this.#change({ type: 'hopeless', failure })
    this.#source.failed()
    this.#source.givenUp(failure)
    this.#settleWaiters()
  }

  /** A missing sign-in is no error: it is logged once, as `warn` for the operator and as `info` for a caller. */
  #tell({ kind, facts, message }: Failure): void {
    const { environment, options, principal } = this.#source
    const { log } = environment
    const { key } = options()
    if (facts.signIn !== true) {
      log.error({ server: key, kind }, message)
      return
    }
    if (this.#isSignInTold) return
    this.#isSignInTold = true
    if (principal === undefined) log.warn({ server: key, kind }, message)
    else log.info({ server: key, principal, kind }, message)
  }

  #change(event: HealthEvent): void {
    this.health$.next(nextHealth(this.health$.value, event))
  }

  #untilReady(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiters.delete(done)
        resolve()
      }
      const timer = setTimeout(done, timeoutMs)
      this.#waiters.add(done)
    })
  }

  #settleWaiters(): void {
    for (const done of this.#waiters) done()
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wakeIn = () => undefined
        resolve()
      }
      const endsAtMs = performance.now() + ms
      let timer = setTimeout(done, ms)
      this.#wakeIn = (earlierMs) => {
        if (performance.now() + earlierMs >= endsAtMs) return
        clearTimeout(timer)
        timer = setTimeout(done, earlierMs)
      }
    })
  }
}
