/** Options of parked calls. */

export interface ParkingOptions {
  /** Time limit of the host for one round (`limits.park_ttl`). */
  readonly ttlMs: number
  /** Parked calls in all, and of one authenticated principal (`limits.parked`, `limits.parked_per_principal`). */
  readonly maxParked: number
  readonly maxPerPrincipal: number
  /** Coalescing window: questions within this time share a round. */
  readonly coalesceMs: number
}

export const DEFAULT_PARKING: ParkingOptions = { ttlMs: 600_000, maxParked: 1_000, maxPerPrincipal: 8, coalesceMs: 25 }
