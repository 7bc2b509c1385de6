/**
 * Readiness: the answer of `/readyz`, and how long requests are served after it is 503. Proxies notice the end by their probes and send
 * calls until then (`reload.lame_duck`, decision 0120).
 *
 * By default the probes decide. Without a probe in the last minute there is no wait. Else the wait is 5 s, or longer until three probes
 * were refused, as HAProxy needs by default.
 */

/** Age up to which a probe counts. */
const PROBED_WITHIN_MS = 60_000
const LAME_DUCK_MS = 5_000
const MAX_LAME_DUCK_MS = 10_000
const REFUSED_PROBES = 3
/** From the probe's answer to the proxy's next choice of a server. */
const NOTICED_MS = 250

export class Readiness {
  readonly #clock: () => number
  #isReady = true
  #probedBeforeMs = -Infinity
  #endedMs = Infinity
  #refused = 0
  /** When the last probe that matters was refused. */
  #enoughMs = Infinity

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** Counts a probe; returns its answer. */
  probe(): boolean {
    const nowMs = this.#clock()
    if (this.#isReady) this.#probedBeforeMs = nowMs
    else if (++this.#refused === REFUSED_PROBES) this.#enoughMs = nowMs
    return this.#isReady
  }

  /** Becomes not ready, and starts the time for proxies to notice. */
  end(): void {
    this.#isReady = false
    this.#endedMs = this.#clock()
  }

  /** Whether proxies have had that time: `configuredMs`, or what their probes show that they need. */
  isNoticed(configuredMs: number | undefined): boolean {
    const forMs = this.#clock() - this.#endedMs
    if (configuredMs !== undefined) return forMs >= configuredMs
    if (this.#endedMs - this.#probedBeforeMs > PROBED_WITHIN_MS || forMs >= MAX_LAME_DUCK_MS) return true
    return forMs >= LAME_DUCK_MS && this.#clock() >= this.#enoughMs + NOTICED_MS
  }
}
