/**
 * The state of one server at run time as one record, and the pure function that changes it (RELIABILITY F-04, F-08; BRIDGING 3.1). Code
 * with effects (dialing, timers, closing links) reads this record and sends events; only `reduce` changes it.
 */
import { BehaviorSubject } from 'rxjs'
import type { Link } from '../../era/server/link.ts'
import type { HostSession } from '../../rpc/call.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { LinkOwner } from '../link-owner.ts'
import { isHopeless, nextHealth, STARTING } from './health.ts'
import type { Health } from './health.ts'

export interface ServerState {
  readonly health: Health
  /** `retiring`: the link was given up, and its end has not been handled yet. */
  readonly activity: 'idle' | 'dialing' | 'up' | 'retiring'
  /** The open main link, whose lists may still be read. */
  readonly opened: Link | undefined
  /** The main link, while calls may use it. */
  readonly link: Link | undefined
  /** The reason why the link was given up. */
  readonly refusal: Failure | undefined
  /** Monotonic time since when the link is up. */
  readonly upSinceMs: number | undefined
  /** Monotonic time of the last health. */
  readonly lastUpMs: number
  readonly hasBeenUp: boolean
  /** Monotonic time before which calls do not start the next attempt. */
  readonly notBeforeMs: number
  /** "Needs sign-in" was logged, and no sign-in has happened since. */
  readonly isSignInLogged: boolean
  readonly isStopping: boolean
  /** Whether a server whose main link is modern accepts `initialize`, too; `undefined`: not tried. */
  readonly takesInitialize: boolean | undefined
  /** The link shared by all callers, once the server has announced a change on it: its lists are the common lists. */
  readonly announcer: LinkOwner | undefined
  /** The session of the only host of a pipe, if it is legacy. */
  readonly soleSession: HostSession | undefined
}

export type ServerEvent =
  | { readonly type: 'dialing' }
  | { readonly type: 'opened'; readonly link: Link }
  /** The lists of the open link were read: calls may use it. `complaints`: sentences about problems. */
  | { readonly type: 'ready'; readonly nowMs: number; readonly complaints: readonly string[] }
  /** The lists were read again. `complaints`: sentences about problems. */
  | { readonly type: 'listed'; readonly complaints: readonly string[] }
  /** A link takes no further calls; `refusal`: the reason. */
  | { readonly type: 'given-up'; readonly link: Link; readonly refusal?: Failure | undefined }
  /** The attempt failed, or the link ended. */
  | { readonly type: 'ended'; readonly nowMs: number }
  /** The link ended and is opened again at once, which is not a failure of the server (B289). */
  | { readonly type: 'renewing' }
  /** The next attempt starts in `waitMs`; calls may start it earlier, but not before `notBeforeMs`. */
  | {
      readonly type: 'lost'
      readonly failure: Failure
      readonly nowMs: number
      readonly waitMs: number
      readonly notBeforeMs: number
      readonly graceMs: number
    }
  | { readonly type: 'hopeless'; readonly failure: Failure }
  /** A person asks for another attempt. */
  | { readonly type: 'woken' }
  | { readonly type: 'stopping' }
  | { readonly type: 'takes-initialize'; readonly takesInitialize: boolean | undefined }
  | { readonly type: 'list-announced'; readonly owner: LinkOwner | undefined }
  | { readonly type: 'link-closed'; readonly owner: LinkOwner }
  | { readonly type: 'sole-session'; readonly session: HostSession | undefined }

/** `health`: absent for a server that will be connected. */
export const initialState = ({
  health = STARTING,
  takesInitialize,
}: { readonly health?: Health | undefined; readonly takesInitialize?: boolean | undefined } = {}): ServerState => ({
  health,
  activity: 'idle',
  opened: undefined,
  link: undefined,
  refusal: undefined,
  upSinceMs: undefined,
  lastUpMs: -Infinity,
  hasBeenUp: false,
  notBeforeMs: 0,
  isSignInLogged: false,
  isStopping: false,
  takesInitialize,
  announcer: undefined,
  soleSession: undefined,
})

/** The state after an event; the same object if nothing changes. */
export const reduce = (state: ServerState, event: ServerEvent): ServerState => {
  const { health } = state
  switch (event.type) {
    case 'dialing':
      return { ...state, activity: 'dialing', refusal: undefined, health: nextHealth(health, event) }
    case 'opened':
      return { ...state, opened: event.link }
    case 'ready':
      return {
        ...state,
        activity: 'up',
        link: state.opened,
        upSinceMs: event.nowMs,
        hasBeenUp: true,
        isSignInLogged: false,
        health: nextHealth(health, event),
      }
    case 'listed': {
      const listed = nextHealth(health, { type: 'ready', complaints: event.complaints })
      return state.activity !== 'up' || listed.reason === health.reason ? state : { ...state, health: listed }
    }
    case 'given-up':
      if (state.link !== event.link) return state
      return { ...state, activity: 'retiring', link: undefined, refusal: event.refusal ?? state.refusal }
    case 'ended':
      return {
        ...state,
        activity: 'idle',
        opened: undefined,
        link: undefined,
        upSinceMs: undefined,
        lastUpMs: lastUpAt(state, event.nowMs),
      }
    case 'renewing':
      return { ...state, health: nextHealth(health, event) }
    case 'lost': {
      const { failure, nowMs, waitMs, notBeforeMs, graceMs } = event
      // Within the grace time calls wait for a server that was up, so that a restart fails none of them (BRIDGING 3.1).
      const mayWait = nowMs - state.lastUpMs < graceMs && notBeforeMs - nowMs <= graceMs
      const lost = { type: 'lost', failure, nextTryAtMs: nowMs + waitMs, isDown: !mayWait } as const
      return { ...state, notBeforeMs, health: nextHealth(health, lost) }
    }
    case 'hopeless': {
      const isSignInLogged = state.isSignInLogged || event.failure.facts.signIn === true
      return { ...state, isSignInLogged, health: nextHealth(health, event) }
    }
    case 'woken':
      return health.state === 'down' ? { ...state, health: nextHealth(health, event) } : state
    case 'stopping':
      return { ...state, isStopping: true, health: nextHealth(health, event) }
    case 'takes-initialize':
      return { ...state, takesInitialize: event.takesInitialize }
    case 'list-announced':
      return event.owner?.isolation === 'shared' ? { ...state, announcer: event.owner } : state
    case 'link-closed':
      return state.announcer === event.owner ? { ...state, announcer: undefined } : state
    case 'sole-session':
      return { ...state, soleSession: event.session }
  }
}

const lastUpAt = ({ upSinceMs, lastUpMs }: ServerState, nowMs: number): number => (upSinceMs === undefined ? lastUpMs : nowMs)

/** The end of an attempt or of a link. */
export interface LinkEnd {
  readonly failure: Failure
  /** A process started by Trunkline ended by itself. */
  readonly isCrash: boolean
  readonly nowMs: number
  readonly graceMs: number
  readonly minRetryMs: number
}

/**
 * The step after the end of an attempt or link: `give-up` until a person helps, `renew` the link at once, or `wait` before the next
 * attempt. A link shorter than `minRetryMs` counts as a failed attempt.
 */
export const stepAfter = (
  state: ServerState,
  { failure, isCrash, nowMs, graceMs, minRetryMs }: LinkEnd,
): 'give-up' | 'renew' | 'wait' => {
  // The program of a server that was up within the grace time may be in the middle of an update (BRIDGING 3.1).
  const isBeingReplaced = failure.kind === 'spawn_failed' && nowMs - lastUpAt(state, nowMs) < graceMs
  if (isHopeless(failure) && !isBeingReplaced) return 'give-up'
  const { upSinceMs } = state
  return upSinceMs !== undefined && nowMs - upSinceMs >= minRetryMs && !isCrash ? 'renew' : 'wait'
}

/** Whether a call should not wait for the main link, since it will not be open soon (BRIDGING 7.2). */
export const isWaitingUseless = ({ health: { state }, activity, notBeforeMs }: ServerState, nowMs: number): boolean =>
  state === 'failed' || state === 'draining' || (state === 'down' && activity !== 'dialing' && nowMs < notBeforeMs)

/** The failure of a call without a main link. */
export const refusalOf = ({ health: { failure, nextTryAtMs, reason, state } }: ServerState, nowMs: number): Failure => {
  if (state === 'draining') return new Failure('shutting_down', 'the server is being stopped', { executed: 'no' })
  const isOver = state === 'failed' || state === 'down'
  if (failure === undefined || !isOver)
    return new Failure('starting', `still starting: ${reason ?? 'no answer yet'}`, {
      executed: 'no',
      retryable: true,
      limit: 'timeouts.wait',
    })
  const retryAfterMs = nextTryAtMs === undefined ? undefined : Math.max(0, Math.round(nextTryAtMs - nowMs))
  return new Failure(
    failure.kind,
    failure.message,
    { ...failure.facts, state, executed: 'no', ...(retryAfterMs !== undefined && { retryAfterMs }) },
    failure,
  )
}

/** Holds the state of one server and publishes its health. */
export class ServerStates {
  readonly health$: BehaviorSubject<Health>
  #now: ServerState

  constructor(initial: ServerState) {
    this.#now = initial
    this.health$ = new BehaviorSubject(initial.health)
  }

  get now(): ServerState {
    return this.#now
  }

  send(event: ServerEvent): void {
    const { health } = this.#now
    this.#now = reduce(this.#now, event)
    if (this.#now.health !== health) this.health$.next(this.#now.health)
  }
}
