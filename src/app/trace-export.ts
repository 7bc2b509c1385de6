/** The traces in force (`telemetry.otlp`). OpenTelemetry is loaded where they are configured; a reload may replace them. */
import type { Log } from '../downstream/environment.ts'
import type { ServerOptions } from '../downstream/options.ts'
import type { Link } from '../era/server/link.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { ListenerContext } from '../host/listener-context.ts'
import type { Redactor } from '../redactor.ts'
import type { TracingOptions } from '../tracing/options.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { VERSION } from '../version.ts'

/** What is traced, and in whose name. */
export interface Traced {
  readonly gateway: Gateway
  readonly context: { sessionOpened: ListenerContext['sessionOpened'] }
  readonly redactor: Redactor
  readonly log: Log
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

  /** Traces from now on as these options say, or not any more; what is left of the ones before is sent first. */
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

/** Traces are never worth the service: where they cannot be kept, that is told, and calls go on without. */
const openTracing = async (options: TracingOptions, traced: Traced): Promise<Tracing | undefined> => {
  const { gateway, log, instance } = traced
  try {
    const { startTracing } = await import('../tracing/tracing.ts')
    const { hide, hideJson } = traced.redactor
    const toolsetOf = gateway.toolsetOf.bind(gateway)
    return await startTracing(options, { log, version: VERSION, instance, toolsetOf, hide, hideJson })
  } catch (error) {
    log.error({ error: String(error) }, 'no traces are kept: OpenTelemetry cannot be loaded (telemetry.otlp)')
    return undefined
  }
}
