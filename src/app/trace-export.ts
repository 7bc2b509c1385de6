/** The export of traces (`telemetry.otlp`). OpenTelemetry is loaded only where it is configured; a reload may replace the export. */
import type { Log } from '../values/log.ts'
import type { ServerOptions } from '../downstream/options.ts'
import type { Link } from '../era/server/link.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import type { LimitCounts } from '../rpc/limit-counts.ts'
import type { Redactor } from '../redactor.ts'
import type { TracingOptions } from '../tracing/options.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { VERSION } from '../version.ts'

/** The sources of traces. */
export interface Traced {
  readonly gateway: Gateway
  readonly context: { sessionOpened: ListenerContext['sessionOpened'] }
  readonly redactor: Redactor
  readonly log: Log
  readonly limits: Pick<LimitCounts, 'hit'>
  readonly instance: string
}

export class TraceExport implements AsyncDisposable {
  readonly #traced: Traced
  #tracing: Tracing | undefined

  constructor(traced: Traced) {
    this.#traced = traced
  }

  linkOpened(link: Link, options: ServerOptions): void {
    this.#tracing?.linkOpened(link, options)
  }

  /** Replaces or ends the export; remaining spans of the previous one are sent first. */
  async apply(options: TracingOptions | undefined): Promise<void> {
    const { gateway, context } = this.#traced
    const before = this.#tracing
    this.#tracing = options && (await openTracing(options, this.#traced))
    gateway.trace(this.#tracing?.layer)
    context.sessionOpened = this.#tracing?.sessionOpened
    await before?.[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tracing?.[Symbol.asyncDispose]()
  }
}

/** If OpenTelemetry cannot be loaded, that is logged, and calls continue without traces. */
const openTracing = async (options: TracingOptions, traced: Traced): Promise<Tracing | undefined> => {
  const { gateway, log, limits, instance } = traced
  try {
    const { startTracing } = await import('../tracing/tracing.ts')
    const { hide, hideJson } = traced.redactor
    const toolsetOf = gateway.toolsetOf.bind(gateway)
    return await startTracing(options, { log, hit: limits.hit, version: VERSION, instance, toolsetOf, hide, hideJson })
  } catch (error) {
    log.error({ error: String(error) }, 'no traces are kept: OpenTelemetry cannot be loaded (telemetry.otlp)')
    return undefined
  }
}
