/** Options of traces and their metrics (`telemetry.otlp`). */

export interface TracingOptions {
  /** The collector; with `http/protobuf` the paths `v1/traces` and `v1/metrics` are added. */
  readonly endpoint: URL
  readonly protocol: 'http/protobuf' | 'grpc'
  /** Sent with every export; usually credentials. */
  readonly headers: Readonly<Record<string, string>>
  /** Share of traces to sample, 0 to 1. A trace that a host began is sampled if the host samples it. */
  readonly rate: number
  /** Spans of failed calls are sent regardless of `rate`. */
  readonly errors: boolean
  /** Whether the four histograms are sent. */
  readonly metrics: boolean
  readonly metricsIntervalMs: number
  /** How long spans are collected before a batch is sent. */
  readonly delayMs: number
  /** Of one export with its retries. */
  readonly timeoutMs: number
  /** Queued spans; further spans are dropped. */
  readonly maxQueued: number
  /** Adds arguments and results of tools to spans. */
  readonly captureArguments: boolean
  readonly serviceName: string
  /** Further attributes of the resource. */
  readonly attributes: Readonly<Record<string, string>>
}

export const DEFAULT_TRACING: Omit<TracingOptions, 'endpoint'> = {
  protocol: 'http/protobuf',
  headers: {},
  rate: 1,
  errors: true,
  metrics: true,
  metricsIntervalMs: 60_000,
  delayMs: 5_000,
  timeoutMs: 10_000,
  maxQueued: 2_048,
  captureArguments: false,
  serviceName: 'trunkline',
  attributes: {},
}
