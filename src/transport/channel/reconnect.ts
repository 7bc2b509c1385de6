/** The delay before a stream is opened again: the server's `retry`, otherwise a back-off. */
import { backoffMs } from '../../time/backoff.ts'

export interface ReconnectOptions {
  /** First delay, doubled with every attempt. */
  readonly backoffMs: number
  readonly maxBackoffMs: number
  /** A stream that was open this long counts as a success: the next delay is the first one again. */
  readonly steadyMs: number
  /** Between 0 and 1. */
  readonly random: () => number
}

export const DEFAULT_RECONNECT: ReconnectOptions = {
  backoffMs: 1_000,
  maxBackoffMs: 30_000,
  steadyMs: 10_000,
  // Looked up at each use: a simulation replaces it.
  random: () => Math.random(),
}

/** Minimum for a `retry` of 0, against a busy loop. */
const MIN_RETRY_MS = 10
const MAX_RETRY_MS = 60 * 60_000

/** Milliseconds before attempt `tries` (from 0); at least `retryMs`, the server's own `retry`. */
export const waitBefore = (tries: number, retryMs: number | undefined, options: ReconnectOptions): number => {
  const backoff = backoffMs(tries, { firstMs: options.backoffMs, maxMs: options.maxBackoffMs }, options.random)
  if (retryMs === undefined) return backoff
  return Math.min(Math.max(retryMs, tries === 0 ? MIN_RETRY_MS : backoff), MAX_RETRY_MS)
}

/** Whether a stream that was opened at `openedMs` (monotonic) was no failed attempt. Proxies end streams after a fixed time. */
export const wasSteady = (openedMs: number, { steadyMs }: ReconnectOptions): boolean => performance.now() - openedMs >= steadyMs

/** `id` as the UTF-8 bytes of a `Last-Event-ID` header. `undefined` if a header cannot hold it: the stream is then not resumed. */
export const asEventId = (id: string | undefined): string | undefined => {
  const bytes = Buffer.from(id ?? '')
  return bytes.length > 0 && bytes.every((byte) => byte >= 0x20 && byte !== 0x7f) ? bytes.toString('latin1') : undefined
}
