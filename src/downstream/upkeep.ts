/**
 * Keeps the main link of one server up: dials, waits for the loss, waits, dials again, until it is stopped or only a person can
 * help. Whoever needs the link waits here for it.
 */
import { BehaviorSubject } from 'rxjs'
import type { Link } from '../era/link.ts'
import { Failure } from '../wire/failure.ts'
import { Backoff } from './backoff.ts'
import type { DownstreamEnvironment } from './environment.ts'
import { isHopeless, nextHealth, STARTING } from './health.ts'
import type { Health, HealthEvent } from './health.ts'
import type { ServerOptions } from './options.ts'
import type { Restarts } from './restarts.ts'
import { isForgotten } from './retries.ts'

/** What of a server this needs. */
export interface UpkeepSource {
  readonly options: () => ServerOptions
  /** Whose connection it is, where each has his own. */
  readonly principal: string | undefined
  readonly environment: Pick<DownstreamEnvironment, 'backoff' | 'gate' | 'limits' | 'log'>
  readonly restarts: Restarts
  /** A main link, and all that must be known before calls use it. `opened` hears of the link at once. */
  readonly connect: (opened: (link: Link) => void) => Promise<void>
  /** Settles before the first attempt may be made. */
  readonly mayConnect: () => Promise<unknown>
  /** Sentences about what is not as it should be on a link that is up. */
  readonly complaints: () => readonly string[]
  readonly up: (link: Link) => void
  readonly givenUp: (failure: Failure) => void
}

export class Upkeep {
  readonly health$ = new BehaviorSubject<Health>(STARTING)
  readonly #source: UpkeepSource
  #link: Link | undefined
  /** The same, from when it is open: it is still being read. */
  #opened: Link | undefined
  /** Why a link that was up is given up. */
  #refused: Failure | undefined
  #isWanted = false
  #isStopping = false
  /** It was said that somebody must sign in, and nobody has since. */
  #isSignInTold = false
  #running: Promise<void> | undefined
  #wake: () => void = () => undefined
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
    this.run()
    this.#wake()
  }

  /** The link, waiting for a server that is starting; throws at once where waiting is no use (BRIDGING 7.2). */
  async ready(): Promise<Link> {
    if (this.#link !== undefined) return this.#link
    const { failure, nextTryMs, state } = this.health$.value
    if (state === 'draining') throw new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
    if (failure !== undefined && (state === 'failed' || state === 'down')) {
      const retryAfterMs = nextTryMs === undefined ? {} : { retryAfterMs: Math.round(nextTryMs) }
      throw new Failure(failure.kind, failure.message, { ...failure.facts, ...retryAfterMs, executed: 'no' }, failure)
    }
    this.#isWanted = true
    this.run()
    await this.#untilReady(this.#source.options().timeouts.connectTimeoutMs)
    if (this.#link !== undefined) return this.#link
    if (this.health$.value.failure !== undefined && this.health$.value.state !== 'starting') return this.ready()
    throw new Failure('starting', `still starting: ${this.health$.value.reason ?? 'no answer yet'}`, {
      executed: 'no',
      retryable: true,
      limit: 'timeouts.wait',
    })
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

  /** The link is of no use any more: another is opened. */
  giveUp(link: Link): void {
    if (this.#link !== link) return
    this.#link = undefined
    void link.close()
  }

  /** No more attempts, and nobody waits any longer; the link stays until `close`. */
  drain(): void {
    this.#isStopping = true
    this.#change({ type: 'stopping' })
    this.#wake()
    this.#settleWaiters()
  }

  async close(): Promise<void> {
    await this.#link?.close()
  }

  /** Resolves when nothing is under way any more. */
  async ended(): Promise<void> {
    await this.#running
    this.health$.complete()
  }

  async #keepConnected(): Promise<void> {
    const { environment, options } = this.#source
    const backoff = new Backoff(environment.backoff)
    let lostMs = -Infinity
    while (!this.#isStopping) {
      this.#change({ type: 'dialing' })
      this.#refused = undefined
      let upSinceMs = Infinity
      const failure = await this.#connectOnce(() => (upSinceMs = performance.now()))
      this.#link = this.#opened = undefined
      if (this.#isStopping) return
      const nowMs = performance.now()
      if (upSinceMs < Infinity) lostMs = nowMs
      // The program of a server that ran a moment ago is being replaced: its entries stay for so long (BRIDGING 3.1).
      const isBeingReplaced = failure.kind === 'spawn_failed' && nowMs - lostMs < options().timeouts.graceMs
      if (isHopeless(failure) && !isBeingReplaced) return this.#giveUp(failure)
      const { waitMs: backoffMs, isDown } = backoff.fail(nowMs, nowMs - upSinceMs)
      const waitMs = Math.max(backoffMs, this.#restartMs())
      if (failure.facts.limit !== undefined) environment.limits.hit(failure.facts.limit, options().key)
      environment.log.warn({ server: options().key, kind: failure.kind, nextTryMs: Math.round(waitMs) }, failure.message)
      this.#change({ type: 'lost', failure, nextTryMs: waitMs, givingUp: isDown })
      if (isDown) this.#settleWaiters()
      await this.#pause(waitMs)
    }
  }

  /** From dialing to the loss of the link; resolves with the reason. */
  async #connectOnce(onUp: () => void): Promise<Failure> {
    const { connect, environment, mayConnect, complaints, up } = this.#source
    let link: Link | undefined
    try {
      await mayConnect()
      if (this.#isStopping) throw new Failure('shutting_down', 'stopped before it was started')
      await environment.gate(
        () => connect((opened) => (link = this.#opened = opened)),
        () => this.#isWanted,
      )
      if (link === undefined) throw new Failure('shutting_down', 'stopped before it was started')
      if (this.#isStopping) throw new Failure('shutting_down', 'stopped while it was starting')
      this.#link = link
      this.#isSignInTold = false
      onUp()
      this.#change({ type: 'ready', complaints: complaints() })
      this.#settleWaiters()
      up(link)
      return (await link.closed) ?? this.#refused ?? new Failure('lost', 'the connection was closed', { retryable: true })
    } catch (error) {
      await link?.close()
      return error instanceof Failure
        ? error
        : new Failure('bad_response', `the handshake failed: ${String(error)}`, { executed: 'no' }, error)
    }
  }

  /** How long a process that has ended must not be started again, whatever the back-off says. */
  #restartMs(): number {
    const { options, restarts, environment } = this.#source
    const { launch, key } = options()
    if (launch === undefined) return 0
    restarts.ended()
    if (restarts.waitMs > 0) environment.limits.hit('limits.restarts', key)
    return restarts.waitMs
  }

  #giveUp(failure: Failure): void {
    this.#tell(failure)
    this.#change({ type: 'hopeless', failure })
    this.#source.givenUp(failure)
    this.#settleWaiters()
  }

  /** That somebody has yet to prove who he is, is no error: for the operator something to do, for a caller the usual beginning. */
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
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
