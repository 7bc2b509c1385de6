/** How long to wait before a stream is opened again: what the server asked for, else a back-off. */
import { backoffMs } from '../../time/backoff.ts'

export interface ReconnectOptions {
  /** First wait, doubled with every try. */
  readonly backoffMs: number
  readonly maxBackoffMs: number
  /** Between 0 and 1. */
  readonly random: () => number
}

export const DEFAULT_RECONNECT: ReconnectOptions = { backoffMs: 1_000, maxBackoffMs: 30_000, random: Math.random }

/** A server that asks for no wait at all is still not asked in a loop. */
const MIN_RETRY_MS = 10
const MAX_RETRY_MS = 60 * 60_000

/** Milliseconds before try number `tries` (from 0); `retryMs` is the server's own `retry`, never undercut. */
export const waitBefore = (tries: number, retryMs: number | undefined, options: ReconnectOptions): number => {
  const backoff = backoffMs(tries, { firstMs: options.backoffMs, maxMs: options.maxBackoffMs }, options.random)
  if (retryMs === undefined) return backoff
  return Math.min(Math.max(retryMs, tries === 0 ? MIN_RETRY_MS : backoff), MAX_RETRY_MS)
}

/** `id` if it can stand in a `Last-Event-ID` header, as the bytes of its UTF-8; else it resumes nothing. */
export const asEventId = (id: string | undefined): string | undefined => {
  const bytes = Buffer.from(id ?? '')
  return bytes.length > 0 && bytes.every((byte) => byte >= 0x20 && byte !== 0x7f) ? bytes.toString('latin1') : undefined
}
