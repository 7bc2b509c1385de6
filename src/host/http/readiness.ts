/**
 * Whether `/readyz` says that we are ready, and how long we go on serving after it says that we are not: proxies notice an end by their
 * probes, and go on sending calls until they do (`reload.lame_duck`, decision 0120).
 *
 * Where nothing is configured the probes decide: none in the last minute, and there is nothing to wait for. Else it is 5 s, or longer
 * until three probes were refused, which is what HAProxy takes at its defaults.
 */

/** So long ago a probe counts. */
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

  /** A probe came; returns what it is told. */
  probe(): boolean {
    const nowMs = this.#clock()
    if (this.#isReady) this.#probedBeforeMs = nowMs
    else if (++this.#refused === REFUSED_PROBES) this.#enoughMs = nowMs
    return this.#isReady
  }

  /** Not ready from now on: starts the time that proxies have to notice. */
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
