/**
 * `/healthz` and `/readyz`, which need no credential and accept any `Host` (decision 0020), and how long requests are served after
 * `/readyz` answers 503: proxies send requests until their probes have noticed (`reload.lame_duck`, decision 0120).
 *
 * By default the probes decide. Without a probe in the last minute there is no wait. Else the wait is 5 s, or longer until three probes
 * were refused, as HAProxy needs by default.
 */
import type { HttpRequest } from '../../transport/http1/server/request/http-request.ts'

const PLAIN_TEXT = { 'Content-Type': 'text/plain' }
/** A probe within this time before the end counts. */
const PROBED_WITHIN_MS = 60_000
const LAME_DUCK_MS = 5_000
const MAX_LAME_DUCK_MS = 10_000
const REFUSED_PROBES = 3
/** From the last refused probe until the proxy uses another server. */
const NOTICED_MS = 250

/** True also for `OPTIONS /`, the default of HAProxy's `option httpchk`. A preflight is told apart by its `Origin`. */
export const isHealthCheck = (request: HttpRequest): boolean =>
  request.path === '/readyz' ||
  request.path === '/healthz' ||
  (request.path === '/' && request.method === 'OPTIONS' && request.header('origin') === undefined)

/** Answers a health check. */
export const answerHealth = (request: HttpRequest, readiness: Readiness): void => {
  if (request.path === '/healthz') request.reply(200, PLAIN_TEXT, [Buffer.from('ok\n')])
  else if (readiness.probe()) request.reply(200, PLAIN_TEXT, [Buffer.from('ready\n')])
  else request.reply(503, PLAIN_TEXT, [Buffer.from('stopping\n')])
}

export class Readiness {
  readonly #clock: () => number
  #isReady = true
  #lastProbedMs = -Infinity
  #endedMs = Infinity
  #refused = 0
  /** When probe number `REFUSED_PROBES` was refused. */
  #lastRefusedMs = Infinity

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  /** Counts a probe. Returns whether the gateway is ready. */
  probe(): boolean {
    const nowMs = this.#clock()
    if (this.#isReady) this.#lastProbedMs = nowMs
    else if (++this.#refused === REFUSED_PROBES) this.#lastRefusedMs = nowMs
    return this.#isReady
  }

  /** Sets not ready, and starts the time for proxies to notice. */
  end(): void {
    this.#isReady = false
    this.#endedMs = this.#clock()
  }

  /** Whether proxies have had enough time: `configuredMs`, or what their probes indicate. */
  isNoticed(configuredMs: number | undefined): boolean {
    const forMs = this.#clock() - this.#endedMs
    if (configuredMs !== undefined) return forMs >= configuredMs
    if (this.#endedMs - this.#lastProbedMs > PROBED_WITHIN_MS || forMs >= MAX_LAME_DUCK_MS) return true
    return forMs >= LAME_DUCK_MS && this.#clock() >= this.#lastRefusedMs + NOTICED_MS
  }
}
