/** Cache hints of merged answers ([2026-07-28 server/utilities/caching], BRIDGING 3.19). */
import type { Freshness } from './inventory.ts'

export interface CacheHints {
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

export interface CacheContext {
  /** Monotonic clock, the one `Freshness` was taken by. */
  readonly nowMs: number
  /** Upper bound of `ttlMs`: the gateway itself can change. */
  readonly capMs: number
  /** Whether a server of the view is still starting: then nothing may be kept. */
  readonly isStarting: boolean
  /** Whether the answer depends on who asks: filtered by principal, or read with a user's credential. */
  readonly isPersonal: boolean
}

/** Hints of a list from those of its contributors: the least remaining lifetime, the most private scope. */
export const listHints = (contributors: readonly Freshness[], context: CacheContext): CacheHints => {
  let ttlMs = context.isStarting ? 0 : lifetime(context.capMs)
  for (const { receivedAtMs, ttlMs: given } of contributors)
    ttlMs = Math.min(ttlMs, lifetime(receivedAtMs + lifetime(given) - context.nowMs))
  const isPrivate = context.isPersonal || contributors.some(({ scope }) => scope !== 'public')
  return { ttlMs, cacheScope: isPrivate ? 'private' : 'public' }
}

/** Hints of a read: the server's own, where it gave any; a scope is only ever lowered (B155). */
export const readHints = (ttlMs: unknown, cacheScope: unknown, isPersonal: boolean): CacheHints => ({
  ttlMs: typeof ttlMs === 'number' ? lifetime(ttlMs) : 0,
  cacheScope: cacheScope === 'public' && !isPersonal ? 'public' : 'private',
})

/** A whole number of milliseconds; negative and absurd values count as none. */
const lifetime = (ms: number): number => (Number.isFinite(ms) ? Math.max(0, Math.floor(ms)) : 0)
