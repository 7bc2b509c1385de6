/** What may be seen of a running gateway, and by whom: the admin listener, the capture of calls, the metrics. */

/** One address that is bound; port 0 lets the system choose. */
export interface BindAddress {
  readonly host: string
  readonly port: number
}

export interface AdminOptions {
  /** Empty: the listener is closed until `trunkline open` asks for it. */
  readonly addresses: readonly BindAddress[]
  /** Names beside the loopback ones that the `Host` header may carry, lower case, without port. */
  readonly allowedHosts: readonly string[]
  readonly maxConnections: number
  /** The OAuth scope that makes a caller an operator. */
  readonly operatorScope: string
  /** The dashboard and its API are served, and calls are captured while the listener is open. */
  readonly hasUi: boolean
  /** The dashboard may restart, reload, approve, and call tools that do more than read. */
  readonly mayWrite: boolean
}

/** Which bodies are kept: none, those of calls that did not end well, or all. */
export type CapturedBodies = 'off' | 'errors' | 'all'

export interface CaptureOptions {
  readonly bodies: CapturedBodies
  /** Bytes of all captured calls together. */
  readonly maxBytes: number
  readonly maxAgeMs: number
  /** Bytes kept of one message: a larger one loses its middle. */
  readonly maxBodyBytes: number
  /** Readers of the feed at one time. */
  readonly maxReaders: number
}

export interface MetricsOptions {
  /** False: nothing is counted. */
  readonly isOn: boolean
  readonly path: string
  /** Tools, prompts and servers that have series of their own; all further ones are counted as `other`. */
  readonly maxSeries: number
}

export interface ObserveOptions {
  readonly admin: AdminOptions
  readonly capture: CaptureOptions
  readonly metrics: MetricsOptions
}

const MIB = 1024 * 1024

export const DEFAULT_OBSERVE: ObserveOptions = {
  admin: {
    addresses: [],
    allowedHosts: [],
    maxConnections: 128,
    operatorScope: 'trunkline:operator',
    hasUi: true,
    mayWrite: false,
  },
  capture: { bodies: 'errors', maxBytes: 32 * MIB, maxAgeMs: 3_600_000, maxBodyBytes: 64 * 1024, maxReaders: 16 },
  metrics: { isOn: true, path: '/metrics', maxSeries: 1_000 },
}

/** Where the listener is opened when it is asked for and no address is configured. */
export const DEFAULT_ADMIN_ADDRESS: BindAddress = { host: '127.0.0.1', port: 7421 }
