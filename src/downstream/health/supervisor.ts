/**
 * Keeps the main link of one server up: dials, waits for the loss, dials again, until the server is stopped or a person must help. Calls
 * wait here for the link. `server-state.ts` decides the next step; this file executes it. While a server is down, a call or a list starts
 * the next attempt earlier (F-04).
 */
import type { Link } from '../../era/server/link.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { DownstreamEnvironment } from '../environment.ts'
import type { ServerOptions } from '../options.ts'
import { Backoff } from '../pacing/backoff.ts'
import type { Restarts } from '../pacing/restarts.ts'
import type { MainLink } from './main-link.ts'
import { isWaitingUseless, refusalOf, stepAfter } from './server-state.ts'
import type { ServerStates } from './server-state.ts'
import { within } from '../../time/within.ts'

interface SupervisorSource {
  readonly options: () => ServerOptions
  /** Present if each principal has its own connection. */
  readonly principal: string | undefined
  readonly environment: Pick<DownstreamEnvironment, 'backoff' | 'limits' | 'log' | 'starts'>
  readonly restarts: Restarts
  readonly states: ServerStates
  readonly main: MainLink
  /** Opens a main link, passes it to `opened`, and reads its lists. `isWanted`: whether a call waits for the link. */
  readonly connect: (opened: (link: Link) => void, isWanted: () => boolean) => Promise<void>
  /** Whether the failure is a crash: a process started by Trunkline ended by itself. */
  readonly isCrash: (failure: Failure) => boolean
  /** Settles when an attempt may start. */
  readonly mayConnect: () => Promise<unknown>
  /** Sentences about problems of a link that is up. */
  readonly complaints: () => readonly string[]
  /** `isAgain`: after a loss or failed attempts. */
  readonly up: (link: Link, isAgain: boolean) => void
  /** Called after each failure. */
  readonly failed: () => void
  readonly givenUp: (failure: Failure) => void
}

export class Supervisor {
  readonly #source: SupervisorSource
  readonly #states: ServerStates
  readonly #main: MainLink
  #running: Promise<void> | undefined
  /** The link was given up because nothing uses it. */
  #isResting = false
  /** Shortens the wait for the next attempt to this time. */
  #wakeIn: (ms: number) => void = () => undefined
  readonly #waiters = new Set<() => void>()

  constructor(source: SupervisorSource) {
    this.#source = source
    this.#states = source.states
    this.#main = source.main
  }

  /** Whether it connects, or keeps the server connected. */
  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /** Starts connecting in the background, if that is not running. */
  run(): void {
    if (this.#states.now.isStopping || this.#running !== undefined) return
    const running = this.#keepConnected().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
  }

  /** Closes the link once its calls have ended; the next call opens another one. */
  rest(): void {
    const { link } = this.#states.now
    if (link === undefined) return
    const { environment, options } = this.#source
    environment.log.info({ server: options().key }, 'nothing uses the server; it is stopped until its next use')
    this.#isResting = true
    this.#main.giveUp(link)
  }

  /** Starts the next attempt now, also for a failed server. */
  retryNow(): void {
    this.#states.send({ type: 'woken' })
    this.run()
    this.#wakeIn(0)
  }

  /** Starts the next attempt as early as `notBeforeMs` allows; does not wait for it. */
  hurry(): void {
    const { activity, link, notBeforeMs } = this.#states.now
    if (activity === 'dialing' || link !== undefined) return
    const waitMs = Math.max(0, notBeforeMs - performance.now())
    if (waitMs <= this.#source.environment.backoff.minRetryMs) this.#wakeIn(waitMs)
  }

  /** The main link. Waits while the server starts, and for one attempt while it is down; throws if that is useless (7.2). */
  async ready(): Promise<Link> {
    const { link } = this.#states.now
    if (link !== undefined) return link
    if (isWaitingUseless(this.#states.now, performance.now())) throw refusalOf(this.#states.now, performance.now())
    const ready = this.#untilReady(this.#source.options().timeouts.connectTimeoutMs)
    this.#source.environment.starts.review()
    this.run()
    this.hurry()
    await ready
    const { current } = this.#main
    if (current !== undefined) return current
    throw refusalOf(this.#states.now, performance.now())
  }

  /** Settles after one attempt; never rejects. */
  async tried(): Promise<void> {
    await this.ready().catch(() => undefined)
  }

  /** Stops attempts and settles all waiting calls; the link stays until it is closed. */
  drain(): void {
    this.#states.send({ type: 'stopping' })
    this.#wakeIn(0)
    this.#settleWaiters()
  }

  /** Resolves when the background work has ended. */
  async ended(): Promise<void> {
    await this.#running
    this.#states.health$.complete()
  }

  async #keepConnected(): Promise<void> {
    const { environment, isCrash: isCrashOf, options } = this.#source
    const { minRetryMs } = environment.backoff
    const backoff = new Backoff(environment.backoff)
    while (!this.#states.now.isStopping) {
      this.#states.send({ type: 'dialing' })
      const startedMs = performance.now()
      const failure = await this.#connectOnce()
      const nowMs = performance.now()
      const before = this.#states.now
      this.#states.send({ type: 'ended', nowMs })
      if (before.isStopping) return
      if (this.#isResting) {
        this.#isResting = false
        this.#states.send({ type: 'renewing' })
        // A call may wait by now.
        if (this.#waiters.size > 0) continue
        this.#running = undefined
        return
      }
      const isCrash = isCrashOf(failure)
      const { graceMs } = options().timeouts
      const step = stepAfter(before, { failure, isCrash, nowMs, graceMs, minRetryMs })
      if (step === 'give-up') return this.#giveUp(failure)
      if (step === 'renew') this.#renew(failure)
      else {
        const upMs = before.upSinceMs === undefined ? 0 : nowMs - before.upSinceMs
        const { waitMs, isCrashLoop } = backoff.fail(nowMs, { upMs, isCrash })
        const earliestMs = isCrashLoop ? waitMs : isCrash ? this.#restartMs() : requestedMs(failure)
        await this.#waitAfter(failure, Math.max(waitMs, earliestMs), Math.max(startedMs + minRetryMs, nowMs + earliestMs))
      }
    }
  }

  /** Logs that the link is opened again at once; not counted as a failure. */
  #renew({ kind, message }: Failure): void {
    const { environment, options } = this.#source
    environment.log.info({ server: options().key, kind }, `the link has ended and is opened again: ${message}`)
    this.#states.send({ type: 'renewing' })
  }

  /** `notBeforeMs`: calls do not start the next attempt before this time. */
  async #waitAfter(failure: Failure, waitMs: number, notBeforeMs: number): Promise<void> {
    const { environment, failed, options } = this.#source
    const { key, timeouts } = options()
    if (failure.facts.limit !== undefined) environment.limits.hit(failure.facts.limit, key)
    environment.log.warn({ server: key, kind: failure.kind, nextTryMs: Math.round(waitMs) }, failure.message)
    const { graceMs } = timeouts
    this.#states.send({ type: 'lost', failure, nowMs: performance.now(), waitMs, notBeforeMs, graceMs })
    failed()
    if (this.#states.now.health.state === 'down') this.#settleWaiters()
    const waiting = this.#pause(waitMs)
    if (this.#waiters.size > 0) this.hurry()
    await waiting
  }

  /** From dialing to the loss of the link; resolves with the reason. */
  async #connectOnce(): Promise<Failure> {
    const { connect, mayConnect, complaints, up } = this.#source
    const { hasBeenUp, health } = this.#states.now
    let link: Link | undefined
    try {
      await mayConnect()
      if (this.#states.now.isStopping) throw new Failure('shutting_down', 'stopped before it was started')
      await connect(
        (opened) => {
          link = opened
          this.#states.send({ type: 'opened', link: opened })
        },
        () => this.#waiters.size > 0 || this.#states.now.isStopping,
      )
      if (link === undefined) throw new Failure('shutting_down', 'stopped before it was started')
      if (this.#states.now.isStopping) throw new Failure('shutting_down', 'stopped while it was starting')
      this.#states.send({ type: 'ready', nowMs: performance.now(), complaints: complaints() })
      this.#settleWaiters()
      up(link, hasBeenUp || health.failures > 0)
      return await this.#main.ended(link)
    } catch (error) {
      await link?.close()
      return error instanceof Failure
        ? error
        : new Failure('bad_response', `the handshake failed: ${String(error)}`, { executed: 'no' }, error)
    }
  }

  /** Time until an ended process may be started again (`limits.restarts`), independent of the back-off. */
  #restartMs(): number {
    const { options, restarts, environment } = this.#source
    const { key } = options()
    restarts.ended(true)
    if (restarts.waitMs > 0) environment.limits.hit('limits.restarts', key)
    return restarts.waitMs
  }

  #giveUp(failure: Failure): void {
    this.#log(failure)
    this.#states.send({ type: 'hopeless', failure })
    this.#source.failed()
    this.#source.givenUp(failure)
    this.#settleWaiters()
  }

  /** Logs the failure. A missing sign-in is logged once, as `warn` for the operator and as `info` for a principal. */
  #log({ kind, facts, message }: Failure): void {
    const { environment, options, principal } = this.#source
    const { log } = environment
    const { key } = options()
    if (facts.signIn !== true) log.error({ server: key, kind }, message)
    else if (this.#states.now.isSignInLogged) return
    else if (principal === undefined) log.warn({ server: key, kind }, message)
    else log.info({ server: key, principal, kind }, message)
  }

  #untilReady(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiters.add(resolve)
    return within(timeoutMs, promise).finally(() => this.#waiters.delete(resolve))
  }

  #settleWaiters(): void {
    for (const done of this.#waiters) done()
    this.#waiters.clear()
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

/** The longest `Retry-After` of a server that is waited for (BRIDGING 5.3). */
const MAX_REQUESTED_MS = 30_000

/** The delay that a server has requested with its HTTP status. */
const requestedMs = ({ facts: { status, retryAfterMs = 0 } }: Failure): number =>
  status === undefined ? 0 : Math.min(retryAfterMs, MAX_REQUESTED_MS)
