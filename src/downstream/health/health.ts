/** How a server is doing, as a value, and the pure rules by which it changes (DECISIONS 2, RELIABILITY F-04, F-08). */
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'

export type HealthState = 'starting' | 'healthy' | 'degraded' | 'down' | 'failed' | 'draining'

export interface Health {
  readonly state: HealthState
  /** Why it is not healthy, for a person. */
  readonly reason: string | undefined
  /** What calls are refused with while it is `down` or `failed`. */
  readonly failure: Failure | undefined
  /** Outages so far: failures without health in between are one. */
  readonly failures: number
  /** Monotonic time (`performance.now`) of the next attempt; `undefined`: one is under way, or none is planned. */
  readonly nextTryAtMs: number | undefined
}

export type HealthEvent =
  | { readonly type: 'dialing' }
  /** What it was down for may be mended: lists and calls wait for it as for one that has not been tried yet. */
  | { readonly type: 'woken' }
  | { readonly type: 'ready'; readonly complaints: readonly string[] }
  /** The link ended and is opened again at once, which is no failure of the server (B289). */
  | { readonly type: 'renewing' }
  /** `isDown`: calls wait for it no more. */
  | { readonly type: 'lost'; readonly failure: Failure; readonly nextTryAtMs: number; readonly isDown: boolean }
  | { readonly type: 'hopeless'; readonly failure: Failure }
  | { readonly type: 'stopping' }

export const STARTING: Health = { state: 'starting', reason: undefined, failure: undefined, failures: 0, nextTryAtMs: undefined }

/** Of a server where each principal has its own connection, and no common connection exists. */
export const UNSIGNED: Health = {
  ...STARTING,
  state: 'failed',
  reason: 'needs sign-in',
  failure: new Failure('auth_required', 'needs sign-in', { executed: 'no', signIn: true }),
}

export const nextHealth = (health: Health, event: HealthEvent): Health => {
  switch (event.type) {
    case 'dialing':
      return { ...health, state: health.state === 'down' ? 'down' : 'starting', nextTryAtMs: undefined }
    case 'woken':
      return health.state === 'down' ? STARTING : health
    case 'ready': {
      const reason = event.complaints.length === 0 ? undefined : event.complaints.join('; ')
      return {
        ...health,
        state: reason === undefined ? 'healthy' : 'degraded',
        reason,
        failure: undefined,
        nextTryAtMs: undefined,
      }
    }
    case 'renewing':
      return { ...health, state: 'starting', reason: undefined, failure: undefined, nextTryAtMs: undefined }
    case 'lost':
      return { ...failed(health, event.failure), state: event.isDown ? 'down' : 'starting', nextTryAtMs: event.nextTryAtMs }
    case 'hopeless':
      return { ...failed(health, event.failure), state: 'failed', nextTryAtMs: undefined }
    case 'stopping':
      return { ...health, state: 'draining', nextTryAtMs: undefined }
  }
}

/** An outage lasts from the first failure to the next health, and is counted once. */
const failed = ({ failure: before, failures }: Health, failure: Failure): Pick<Health, 'reason' | 'failure' | 'failures'> => ({
  reason: failure.message,
  failure,
  failures: before === undefined ? failures + 1 : failures,
})

const HOPELESS: ReadonlySet<FailureKind> = new Set(['spawn_failed', 'version', 'loop'])

/**
 * What waiting will not mend: the command is missing, the sign-in missing, no version in common, a circle of gateways. A start that failed
 * for want of processes, memory or descriptors is retryable.
 */
export const isHopeless = ({ kind, facts, retryable }: Failure): boolean =>
  (HOPELESS.has(kind) && !retryable) || facts.signIn === true
