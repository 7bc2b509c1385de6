/** Options of the admin listener, the capture of calls, and metrics. */

/** Port 0: the system chooses a port. */
export interface BindAddress {
  readonly host: string
  readonly port: number
}

export interface AdminOptions {
  /** Empty: the listener is closed until `trunkline open` requests it. */
  readonly addresses: readonly BindAddress[]
  /** Allowed host names besides the loopback names: lower case, without port. */
  readonly allowedHosts: readonly string[]
  readonly maxConnections: number
  /** The OAuth scope that makes a caller an operator. */
  readonly operatorScope: string
  /** Serves the dashboard and its API, and captures calls while the listener is open. */
  readonly hasUi: boolean
  /** The dashboard may restart, reload, approve, and call tools that are not read-only. */
  readonly mayWrite: boolean
}

/** Calls whose messages are kept: none, those with an error outcome, or all. */
export type CapturedBodies = 'off' | 'errors' | 'all'

export interface CaptureOptions {
  readonly bodies: CapturedBodies
  /** Memory of all captured calls together. */
  readonly maxBytes: number
  readonly maxAgeMs: number
  /** Bytes kept of one message. Of a larger one, only beginning and end are kept. */
  readonly maxBodyBytes: number
  /** Concurrent readers of the feed. */
  readonly maxReaders: number
}

export interface MetricsOptions {
  /** False: nothing is counted. */
  readonly isOn: boolean
  readonly path: string
  /** Tools and prompts with their own series; all further ones are counted as `other`. */
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

/** Address of the listener if it is requested and none is configured. */
export const DEFAULT_ADMIN_ADDRESS: BindAddress = { host: '127.0.0.1', port: 7421 }
