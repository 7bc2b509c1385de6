/** The health of a server, and the pure function that changes it (DECISIONS 2, RELIABILITY F-04, F-08). */
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'

export type HealthState = 'starting' | 'healthy' | 'degraded' | 'down' | 'failed' | 'draining'

export interface Health {
  readonly state: HealthState
  /** Text for a person; `undefined` for a healthy server. */
  readonly reason: string | undefined
  /** The failure of calls while the server is `down` or `failed`. */
  readonly failure: Failure | undefined
  /** Number of outages; failures without health in between count as one. */
  readonly failures: number
  /** Monotonic time (`performance.now`) of the next attempt; `undefined`: an attempt is running, or none is planned. */
  readonly nextTryAtMs: number | undefined
}

export type HealthEvent =
  | { readonly type: 'dialing' }
  /** The cause may be fixed: lists and calls wait for the server as before the first attempt. */
  | { readonly type: 'woken' }
  | { readonly type: 'ready'; readonly complaints: readonly string[] }
  /** The link ended and is opened again at once, which is not a failure of the server (B289). */
  | { readonly type: 'renewing' }
  /** `isDown`: calls no longer wait for the server. */
  | { readonly type: 'lost'; readonly failure: Failure; readonly nextTryAtMs: number; readonly isDown: boolean }
  | { readonly type: 'hopeless'; readonly failure: Failure }
  | { readonly type: 'stopping' }

export const STARTING: Health = { state: 'starting', reason: undefined, failure: undefined, failures: 0, nextTryAtMs: undefined }

/** The health of a server without a common connection, since each principal has its own. */
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

/** Counts an outage, which lasts from the first failure to the next health, once. A missing sign-in is none. */
const failed = ({ failure: before, failures }: Health, failure: Failure): Pick<Health, 'reason' | 'failure' | 'failures'> => ({
  reason: failure.message,
  failure,
  failures: isOutage(failure) && !isOutage(before) ? failures + 1 : failures,
})

const isOutage = (failure: Failure | undefined): boolean => failure !== undefined && failure.facts.signIn !== true

const HOPELESS: ReadonlySet<FailureKind> = new Set(['spawn_failed', 'version', 'loop'])

/** Whether a person must fix the cause. A start that failed for lack of processes, memory or descriptors is retryable. */
export const isHopeless = ({ kind, facts, retryable }: Failure): boolean =>
  (HOPELESS.has(kind) && !retryable) || facts.signIn === true
