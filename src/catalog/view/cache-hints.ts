/** Cache hints of merged answers ([2026-07-28 server/utilities/caching], BRIDGING 3.19). */
import type { Payload } from '../../wire/message/payload.ts'
import type { Freshness } from '../inventory.ts'

export interface CacheHints {
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

export interface CacheContext {
  /** Monotonic time, of the clock of `Freshness`. */
  readonly nowMs: number
  /** Upper bound of `ttlMs`, since the gateway itself can change. */
  readonly capMs: number
  /** Whether a server of the view is still starting: then nothing may be cached. */
  readonly isStarting: boolean
  /** Whether the answer depends on the caller: filtered by principal, or read with a user's credential. */
  readonly isPersonal: boolean
}

/** Hints of a merged list: the shortest remaining lifetime and the most private scope of its contributors. */
export const listHints = (contributors: readonly Freshness[], context: CacheContext): CacheHints => {
  let ttlMs = context.isStarting ? 0 : lifetime(context.capMs)
  for (const { receivedAtMs, ttlMs: given } of contributors)
    ttlMs = Math.min(ttlMs, lifetime(receivedAtMs + lifetime(given) - context.nowMs))
  const isPrivate = context.isPersonal || contributors.some(({ scope }) => scope !== 'public')
  return { ttlMs, cacheScope: isPrivate ? 'private' : 'public' }
}

/**
 * Corrects the hints in the result of a read. The server's hints stay byte for byte, except an invalid lifetime (B149) and a scope that
 * would let a shared cache answer another caller (B155).
 */
export const correctReadHints = (result: Payload, isPersonal: boolean): void => {
  const ttlMs = result.value('ttlMs')
  if (ttlMs !== undefined && !(typeof ttlMs === 'number' && lifetime(ttlMs) === ttlMs))
    result.set('ttlMs', String(typeof ttlMs === 'number' ? lifetime(ttlMs) : 0))
  if (!result.has('cacheScope')) return
  const scope = result.text('cacheScope')
  if (scope !== 'private' && (isPersonal || scope !== 'public')) result.set('cacheScope', '"private"')
}

/** A whole number of milliseconds; 0 for negative and non-finite values. */
const lifetime = (ms: number): number => (Number.isFinite(ms) ? Math.max(0, Math.floor(ms)) : 0)
