/** How a server is doing, as a value, and the pure rules by which it changes (DECISIONS 2, RELIABILITY F-04, F-08). */
import { Failure } from '../wire/failure.ts'
import type { FailureKind } from '../wire/failure.ts'

export type HealthState = 'starting' | 'healthy' | 'degraded' | 'down' | 'failed' | 'draining'

export interface Health {
  readonly state: HealthState
  /** Why it is not healthy, for a person. */
  readonly reason: string | undefined
  /** What calls are refused with while it is `down` or `failed`. */
  readonly failure: Failure | undefined
  /** How often a link was lost or could not be opened. */
  readonly failures: number
  /** Milliseconds until the next attempt, at the time this was said. */
  readonly nextTryMs: number | undefined
}

export type HealthEvent =
  | { readonly type: 'dialing' }
  | { readonly type: 'ready'; readonly complaints: readonly string[] }
  | { readonly type: 'lost'; readonly failure: Failure; readonly nextTryMs: number; readonly givingUp: boolean }
  | { readonly type: 'hopeless'; readonly failure: Failure }
  | { readonly type: 'stopping' }

export const STARTING: Health = { state: 'starting', reason: undefined, failure: undefined, failures: 0, nextTryMs: undefined }

/** Of a server where each principal has a connection of his own, and nobody the common one. */
export const UNSIGNED: Health = {
  ...STARTING,
  state: 'failed',
  reason: 'needs sign-in',
  failure: new Failure('auth_required', 'needs sign-in', { executed: 'no', signIn: true }),
}

export const nextHealth = (health: Health, event: HealthEvent): Health => {
  switch (event.type) {
    case 'dialing':
      return health.state === 'down'
        ? { ...health, nextTryMs: undefined }
        : { ...health, state: 'starting', nextTryMs: undefined }
    case 'ready': {
      const reason = event.complaints.length === 0 ? undefined : event.complaints.join('; ')
      return { ...health, state: reason === undefined ? 'healthy' : 'degraded', reason, failure: undefined, nextTryMs: undefined }
    }
    case 'lost':
      return {
        state: event.givingUp ? 'down' : 'starting',
        reason: event.failure.message,
        failure: event.failure,
        failures: health.failures + 1,
        nextTryMs: event.nextTryMs,
      }
    case 'hopeless':
      return {
        state: 'failed',
        reason: event.failure.message,
        failure: event.failure,
        failures: health.failures + 1,
        nextTryMs: undefined,
      }
    case 'stopping':
      return { ...health, state: 'draining', nextTryMs: undefined }
  }
}

const HOPELESS: ReadonlySet<FailureKind> = new Set(['spawn_failed', 'version', 'loop'])

/** What waiting will not mend: the command is missing, the sign-in missing, no version in common, a circle of gateways. */
export const isHopeless = ({ kind, facts }: Failure): boolean => HOPELESS.has(kind) || facts.signIn === true
