/** Options of traces and their metrics (`telemetry.otlp`). */

export interface TracingOptions {
  /** The collector; with `http/protobuf` the paths `v1/traces` and `v1/metrics` are added. */
  readonly endpoint: URL
  readonly protocol: 'http/protobuf' | 'grpc'
  /** Sent with every export; credentials, as a rule. */
  readonly headers: Readonly<Record<string, string>>
  /** Share of the traces begun here that are kept, 0 to 1. A trace that a host began is kept where the host keeps it. */
  readonly rate: number
  /** Spans of a call that failed are sent whatever `rate` says. */
  readonly errors: boolean
  /** Whether the four histograms are sent. */
  readonly metrics: boolean
  readonly metricsIntervalMs: number
  /** How long spans wait until a batch of them is sent. */
  readonly delayMs: number
  /** One export, its retries together. */
  readonly timeoutMs: number
  /** Spans that wait to be sent; more are dropped. */
  readonly maxQueued: number
  /** Arguments and results of tools are attributes of their spans. */
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
