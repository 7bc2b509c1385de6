/** Cache hints of merged answers ([2026-07-28 server/utilities/caching], BRIDGING 3.19). */
import type { Payload } from '../../wire/message/payload.ts'
import type { Freshness } from '../inventory.ts'

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

/**
 * Corrects the hints of a read within its result: the server's own stay, byte for byte, unless they are no lifetime (B149), or
 * would let a shared cache answer another caller (B155). A scope is only ever lowered.
 */
export const correctReadHints = (result: Payload, isPersonal: boolean): void => {
  const ttlMs = result.value('ttlMs')
  if (ttlMs !== undefined && !(typeof ttlMs === 'number' && lifetime(ttlMs) === ttlMs))
    result.set('ttlMs', String(typeof ttlMs === 'number' ? lifetime(ttlMs) : 0))
  if (!result.has('cacheScope')) return
  const scope = result.text('cacheScope')
  if (scope !== 'private' && (isPersonal || scope !== 'public')) result.set('cacheScope', '"private"')
}

/** A whole number of milliseconds; negative and absurd values count as none. */
const lifetime = (ms: number): number => (Number.isFinite(ms) ? Math.max(0, Math.floor(ms)) : 0)
