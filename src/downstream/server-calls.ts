/**
 * The path of one call at one server: a slot, a link, and a second attempt if the server cannot have executed the first. A modern server
 * is called over the main link. Calls to a legacy server use links of their callers, except methods that do not depend on the caller.
 */
import { withCredential } from '../auth/outbound/credential.ts'
import type { Credential } from '../auth/outbound/credential.ts'
import type { Link } from '../era/server/link.ts'
import { storedMs } from '../era/task-shapes.ts'
import { isBridge } from '../rpc/call.ts'
import type { Call, Outcome } from '../rpc/call.ts'
import { unlessCancelled } from '../rpc/cancellation.ts'
import type { DownstreamEnvironment } from './environment.ts'
import type { EraChanges } from './links/era-changes.ts'
import type { MainLink } from './health/main-link.ts'
import type { Supervisor } from './health/supervisor.ts'
import type { Dialer } from './links/dialer.ts'
import { MainOnly, ModernOnly } from './links/caller-link-opener.ts'
import type { Links, Use } from './links/links.ts'
import type { Offers } from './lists/offers.ts'
import type { ServerOptions } from './options.ts'
import { again, isForgotten, isMismatch } from './pacing/retries.ts'
import { ConcurrencyLimiter } from './pacing/concurrency-limiter.ts'
import type { ServerEras } from './server-eras.ts'
import type { ServerErrors } from './server-errors.ts'
import { within } from '../time/within.ts'

/** Methods whose answer does not depend on the caller: they go over the main link. */
const ON_MAIN_LINK = new Set(['completion/complete'])

interface ServerCallsSource {
  readonly options: () => ServerOptions
  readonly environment: Pick<DownstreamEnvironment, 'faultsOf' | 'retries' | 'soleHost' | 'sweeper'>
  readonly credential: Credential | undefined
  readonly main: MainLink
  readonly supervisor: Supervisor
  readonly links: Links
  readonly offers: Offers
  readonly dialer: Dialer
  readonly eraChanges: EraChanges
  readonly eras: ServerEras
  readonly errors: ServerErrors
}

export class ServerCalls {
  readonly #source: ServerCallsSource
  readonly #main: MainLink
  readonly #limiter: ConcurrencyLimiter
  /** Monotonic time of the end of the last call; later while a task may run that a modern server began. */
  usedMs = -Infinity
  #drained: () => void = () => undefined

  constructor(source: ServerCallsSource) {
    const { limits } = source.options()
    this.#source = source
    this.#main = source.main
    this.#limiter = new ConcurrencyLimiter(limits.maxConcurrent, limits.maxQueued)
  }

  get inFlight(): number {
    return this.#limiter.inUse
  }

  get queued(): number {
    return this.#limiter.queued
  }

  /** Applies limits of a reload. */
  adopt({ limits }: ServerOptions): void {
    this.#limiter.resize(limits.maxConcurrent, limits.maxQueued)
  }

  readonly handle = async (call: Call): Promise<Outcome> => {
    const { credential, eras, errors } = this.#source
    try {
      const waiting = this.#limiter.acquire(call.signal)
      if (waiting !== undefined) await waiting
      call.record?.slotted?.()
    } catch (error) {
      throw errors.located(error)
    }
    let main: Link | undefined
    const attemptLater = async (): Promise<Outcome> => this.#attempt(call, (main = await this.#ready(call)))
    try {
      if (credential !== undefined) return this.#noted(await withCredential(credential, attemptLater))
      main = this.#main.current
      return this.#noted(await (main === undefined ? attemptLater() : this.#attempt(call, main)))
    } catch (error) {
      const last = this.#again(error, call, main).catch((failed: unknown) => {
        throw errors.located(failed, eras.eraFor(call.caller), call)
      })
      return this.#noted(await last)
    } finally {
      this.#limiter.release()
      this.usedMs = Math.max(this.usedMs, this.#source.environment.sweeper.nowMs)
      if (this.#limiter.inUse === 0) this.#drained()
    }
  }

  /** The link of a legacy server's task is kept by `links/`. */
  #noted(outcome: Outcome): Outcome {
    if (outcome.kind === 'task' && this.#main.current?.era === 'modern')
      this.usedMs = Math.max(this.usedMs, this.#source.environment.sweeper.nowMs + storedMs(outcome.result.value('ttlMs')))
    return outcome
  }

  /** Resolves when no call is pending, or after `drainMs`. */
  untilDrained(drainMs: number): Promise<void> {
    return within(drainMs, new Promise((resolve) => (this.#drained = resolve)))
  }

  /** Ends the wait of `untilDrained`. */
  endDrain(): void {
    this.#drained()
  }

  /** Another attempt, with a credential that is renewed if the server rejects it. */
  #attemptLater(call: Call): Promise<Outcome> {
    return withCredential(this.#source.credential, async () => this.#attempt(call, await this.#ready(call)))
  }

  #ready({ signal }: Call): Promise<Link> {
    return unlessCancelled(this.#source.supervisor.ready(), signal)
  }

  #attempt(call: Call, main: Link): Promise<Outcome> {
    if (main.era === 'modern') return this.#goesLegacy(call) ? this.#attemptLegacy(call, main) : this.#send(call, main)
    const { environment, links, options } = this.#source
    if (environment.soleHost !== undefined || isOnMainLink(call)) return this.#overMain(call, main)
    return options().sharing === 'shared' ? this.#attemptShared(call, main) : links.lease(call, this.#onLink)
  }

  #overMain(call: Call, main: Link): Promise<Outcome> {
    return this.#main.over(main, () => this.#send(call, main))
  }

  /** Over the connection of all callers; over the main link if the server takes no second one (decision 0190). */
  async #attemptShared(call: Call, main: Link): Promise<Outcome> {
    try {
      return await this.#source.links.lease(call, this.#onLink)
    } catch (error) {
      if (!(error instanceof MainOnly)) throw error
      return this.#overMain(call, main)
    }
  }

  /** Each attempt of a traced call is a span. */
  #send(call: Call, link: Link): Promise<Outcome> {
    const { key, url, timeouts } = this.#source.options()
    const faulty = this.#source.environment.faultsOf?.({ key, era: link.era, idleMs: timeouts.idleMs })
    const handle = faulty?.(link.handle) ?? link.handle
    const send = call.trace?.sending({ key, url, revision: link.revision }, handle) ?? handle
    return send(call)
  }

  /** Requests the log level, if one is needed, before the call. */
  readonly #onLink: Use = (call, link, level) =>
    level === undefined ? this.#send(call, link) : link.setLevel(level).then(() => this.#send(call, link))

  /** A round that began over the modern link continues there. */
  #goesLegacy({ caller, resume }: Call): boolean {
    return caller.session !== undefined && resume === undefined && this.#source.dialer.mayServeLegacy
  }

  /** Calls a server of both eras over the caller's legacy link; over the main link if the server turns out to be modern only. */
  async #attemptLegacy(call: Call, main: Link): Promise<Outcome> {
    const { eraChanges, links, offers } = this.#source
    const { link } = offers.legacy
    try {
      if (link !== undefined && isOnMainLink(call))
        return await this.#send(call, link).catch((error: unknown) => this.#afterForgotten(error, call, link))
      return await links.lease(call, this.#onLink)
    } catch (error) {
      if (!(error instanceof ModernOnly) && !(await eraChanges.isLegacyRefused(error))) throw error
      return this.#send({ ...call, takesStreams: false }, main)
    }
  }

  /** A server that forgot the session of the link for legacy lists: the call goes over the caller's own link (BRIDGING 5.3). */
  #afterForgotten(error: unknown, call: Call, link: Link): Promise<Outcome> {
    if (!isForgotten(error)) throw error
    this.#source.offers.legacy.rest(link)
    return this.#source.links.lease(call, this.#onLink)
  }

  /** `main`: the main link when `call` was sent. */
  async #again(error: unknown, call: Call, main: Link | undefined): Promise<Outcome> {
    const { environment, eras, eraChanges, offers } = this.#source
    if (await eraChanges.isChange(error, main)) return this.#attemptLater(call)
    // Only modern requests over HTTP have mirrored headers; on other links the error comes from the tool, which has run (B231).
    const hasHeaders = this.#main.current?.transport === 'http' && eras.eraFor(call.caller) === 'modern'
    if (!hasHeaders || !isMismatch(error, call)) return again(error, call, environment.retries, () => this.#attemptLater(call))
    await offers.read()
    const entry = offers.inventory$.value?.lists.tools.find(({ original }) => original === call.target)
    return this.#attemptLater({ ...call, paramHeaders: entry?.paramHeaders ?? [] })
  }
}

const isOnMainLink = ({ method, caller }: Call): boolean => ON_MAIN_LINK.has(method) && !isBridge(caller.scope)
