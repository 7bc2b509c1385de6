/**
 * The credential for the requests to one server, of one principal or of the gateway: its current value, and its renewal after the server
 * has refused it. A `Credential` object gives access to no other credential (B250).
 */
import type { Bearer } from '../../transport/channel/channel.ts'
import type { PendingAuthorization } from '../authorization-server/authorization.ts'
import { Failure } from '../../wire/message/failure.ts'

/** A request that the server refused with 401 or 403. */
export interface Rejection {
  /** The `Authorization` value of the request. */
  readonly used: string | undefined
  readonly status: 401 | 403
  /** The server's `WWW-Authenticate`. */
  readonly challenge: string | undefined
}

/** The sign-in of a person for a credential. */
export interface Interactive {
  /** The principal who must sign in; the shared principal if the operator signs in for all. */
  readonly principal: string
  /** Resolves with the URL for the browser, and the flow to keep for `finish`. Rejects with `Failure`. */
  begin(back: Return): Promise<{ readonly url: string; readonly pending: PendingAuthorization }>
  /** Exchanges the authorization response for tokens. Rejects with `Failure`. */
  finish(pending: PendingAuthorization, answer: URLSearchParams): Promise<void>
}

/** The redirect URI, and the URL of our client metadata document. */
export interface Return {
  readonly redirectUri: string
  readonly document: string | undefined
}

export interface Credential {
  /** `undefined`: no sign-in of a person. */
  readonly interactive: Interactive | undefined
  readonly bearer: Bearer
  /** Resolves when a request may be sent; `undefined`: at once. Rejects with `Failure`, such as a needed sign-in. */
  ready(): Promise<void> | undefined
  /** Resolves when the request may be tried again. Rejects with `Failure` if that is useless. */
  renew(rejection: Rejection): Promise<void>
  /** Calls back when the credential became usable without a request, as after a sign-in. Absent: that does not happen. */
  onChange?(callback: () => void): void
  /** Calls back when the sign-in has ended: nothing can be sent before there is another. Absent: that does not happen. */
  onEnd?(callback: (failure: Failure) => void): void
  /** It is used no longer: it learns of no change, and its tokens are hidden only as long as texts may contain them. */
  close(): void
}

/** Returns the rejection if another token may be accepted; `undefined`: another kind of error. */
export const rejectionOf = (error: unknown, used: string | undefined): Rejection | undefined => {
  if (!(error instanceof Failure) || error.facts.signIn === true) return undefined
  const { status, challenge } = error.facts
  if (error.kind === 'auth_required' && status === 401) return { used, status: 401, challenge }
  return error.kind === 'scope_required' ? { used, status: 403, challenge } : undefined
}

/** Rejections per request: one for an expired token, two for missing scopes (B247). */
const MOST_RENEWALS = 3

/** Runs `work` with the credential, and runs it again after a renewal if the server rejects the credential. */
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
      if (rejection === undefined) throw error
      if (renewals >= MOST_RENEWALS) throw lastOf(credential, rejection, error)
      await credential.renew(rejection)
    }
  }
}

/** Returns the failure after the last renewal. A person gets other tokens by another sign-in, which reads the server's metadata again. */
const lastOf = ({ interactive }: Credential, { status }: Rejection, error: unknown): unknown =>
  interactive === undefined || status !== 401
    ? error
    : new Failure(
        'auth_required',
        'needs sign-in: the server refuses every renewed token',
        { executed: 'no', signIn: true },
        error,
      )
