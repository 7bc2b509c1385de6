/** The policy of a running gateway (`policy`), and the connection to its decision service. A reload may replace both. */
import type { Log } from '../values/log.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { PolicyOptions } from '../policy/options.ts'
import { Throttle } from '../time/throttle.ts'
import { JsonPoster } from '../transport/http1/client/json-poster.ts'
import type { ProxyRules } from '../transport/http1/client/proxy-rules.ts'

/** Minimum time between warnings about the policy service. */
const SERVICE_WARNING_MS = 60_000

export interface Judged {
  readonly gateway: Gateway
  readonly proxies: () => ProxyRules
  readonly log: Log
}

export class PolicyInForce implements AsyncDisposable {
  readonly #judged: Judged
  readonly #warnings = new Throttle(SERVICE_WARNING_MS)
  #poster: JsonPoster | undefined

  constructor(judged: Judged) {
    this.#judged = judged
  }

  /** Makes this the policy for calls and lists. */
  async apply(options: PolicyOptions | undefined): Promise<void> {
    const { gateway, proxies } = this.#judged
    const before = this.#poster
    const opened = options && (await openPolicy(options))
    const service = options?.service
    this.#poster = service && new JsonPoster(service, proxies)
    const decisions =
      service &&
      this.#poster &&
      opened &&
      new opened.DecisionService(service, this.#poster, { failed: (error) => this.#warn(error) })
    gateway.judgeBy(opened?.policy, decisions)
    // Calls may wait for its decision.
    void before?.close()
  }

  #warn(error: string): void {
    if (this.#warnings.due() !== undefined)
      this.#judged.log.warn({ error }, 'the policy service does not answer (policy.service)')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#poster?.[Symbol.asyncDispose]()
  }
}

/** Loads the CEL library only where there is a policy. */
const openPolicy = async (options: PolicyOptions) => {
  const [{ Policy }, { DecisionService }] = await Promise.all([
    import('../policy/policy.ts'),
    import('../policy/decision-service.ts'),
  ])
  return { policy: new Policy(options), DecisionService }
}
