/**
 * The proof that goes with every request to one server, for one principal or for the gateway itself: its current value, and its
 * renewal after the server refuses it. A `Credential` object gives access to no other credential (B250).
 */
import type { Bearer } from '../../transport/channel/channel.ts'
import type { Journey } from './authorization.ts'
import { Failure } from '../../wire/message/failure.ts'

/** A request that the server refused with 401 or 403. */
export interface Rejection {
  /** What had been sent with it. */
  readonly used: string | undefined
  readonly status: 401 | 403
  /** The server's `WWW-Authenticate`. */
  readonly challenge: string | undefined
}

/** What a person can do for a credential. */
export interface Interactive {
  /** Who must it be; the shared principal where the operator signs in for all. */
  readonly principal: string
  readonly isSignedIn: boolean
  /** Where to send the person, and what to keep until they are back. Rejects with `Failure`. */
  begin(back: Return): Promise<{ readonly url: string; readonly journey: Journey }>
  /** The person is back: the answer becomes tokens. Rejects with `Failure`. */
  finish(journey: Journey, answer: URLSearchParams): Promise<void>
}

/** Where the browser comes back to, and where our metadata document can be read. */
export interface Return {
  readonly redirectUri: string
  readonly document: string | undefined
}

export interface Credential {
  /** `undefined`: no person is needed, ever. */
  readonly interactive: Interactive | undefined
  readonly bearer: Bearer
  /** `undefined`: nothing speaks against sending now. Rejects with `Failure` where only a person can help. */
  ready(): Promise<void> | undefined
  /** Resolves when it is worth trying again; rejects with `Failure` when it is not. */
  renew(rejection: Rejection): Promise<void>
  /** Calls back when it became usable without having been asked, as after a sign-in; absent: that does not happen. */
  onChange?(callback: () => void): void
}

/** A refusal of the server that another token may mend; else `undefined`. */
export const rejectionOf = (error: unknown, used: string | undefined): Rejection | undefined => {
  if (!(error instanceof Failure) || error.facts.signIn === true) return undefined
  const { status, challenge } = error.facts
  if (error.kind === 'auth_required' && status === 401) return { used, status: 401, challenge }
  return error.kind === 'scope_required' ? { used, status: 403, challenge } : undefined
}

/** Refusals that one attempt may meet: a token that has expired, then two that want more scopes (B247). */
const MOST_RENEWALS = 3

/** Does `work` with the credential, renewing it where the server asks for that. */
export const withCredential = async <T>(credential: Credential | undefined, work: () => Promise<T>): Promise<T> => {
  if (credential === undefined) return work()
  for (let renewals = 0; ; renewals++) {
    const wait = credential.ready()
    if (wait !== undefined) await wait
    const used = credential.bearer.value
    try {
      return await work()
    } catch (error) {
      const rejection = rejectionOf(error, used)
      if (rejection === undefined || renewals >= MOST_RENEWALS) throw error
      await credential.renew(rejection)
    }
  }
}
