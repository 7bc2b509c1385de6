/**
 * One way of a person through an authorization server: the URL to send the browser to, and what comes back with it
 * ([2026-07-28 basic/authorization/security-considerations]; B240, B243, B244). Everything that is compared later is written down
 * before the browser leaves.
 */
import { createHash, randomBytes } from 'node:crypto'
import { asError } from '../../values/as-error.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Reach } from './addresses.ts'
import type { Provider } from './discovery.ts'
import type { Registered } from './registration.ts'
import { checkedUrl } from './safe-fetch.ts'
import { GrantRefused, refusalText } from './token-endpoint.ts'

/** What must be known when the browser comes back. */
export interface Journey {
  readonly provider: Provider
  readonly registered: Registered
  readonly redirectUri: string
  readonly verifier: string
  /** 32 random bytes; the answer that brings it is the one to this question. */
  readonly state: string
  readonly scope: string | undefined
}

/** Throws `Failure` for an authorization server that is not to be trusted with a person. */
export const depart = (
  provider: Provider,
  registered: Registered,
  { redirectUri, scope, reach }: { redirectUri: string; scope: string | undefined; reach: Reach },
): { readonly url: string; readonly journey: Journey } => {
  if (!provider.hasPkce) throw refused(`${provider.issuer} does not say that it takes PKCE with S256`)
  if (provider.authorizationEndpoint === undefined) throw refused(`${provider.issuer} names no authorization endpoint`)
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(32).toString('base64url')
  const url = browserUrl(provider.authorizationEndpoint, reach)
  const params = {
    response_type: 'code',
    client_id: registered.client.id,
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state,
    resource: provider.resource,
    scope,
    prompt: scope?.split(' ').includes('offline_access') === true ? 'consent' : undefined,
  }
  for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
  return { url: url.href, journey: { provider, registered, redirectUri, verifier, state, scope } }
}

/**
 * The code that came back. Who answers is settled before anything else of the answer is looked at, its error text included:
 *
 *     advertised  iss      verdict
 *     yes         present  compared as it stands
 *     yes         absent   refused
 *     no          present  compared as it stands
 *     no          absent   taken
 */
export const arrive = ({ provider }: Journey, answer: URLSearchParams): string => {
  const issuers = answer.getAll('iss')
  if (issuers.length === 0 ? provider.tellsIssuer : issuers.length > 1 || issuers[0] !== provider.issuer)
    throw refused('the answer is not from the authorization server that was asked')
  const error = answer.get('error')
  if (error !== null) {
    const message = refusalText(error, answer.get('error_description'), [])
    throw refused(message, new GrantRefused(error, message))
  }
  const code = answer.get('code')
  if (code === null || code === '') throw refused('the answer holds no code')
  return code
}

/** A URL for a browser: https, or http on this machine; serialised again, so that a shell finds no special character in it (T-11). */
export const browserUrl = (text: string, reach: Reach): URL => {
  try {
    const url = checkedUrl(text, reach)
    url.hash = ''
    return url
  } catch (error) {
    throw refused(`the authorization endpoint is not one to send a person to: ${asError(error).message}`, error)
  }
}

const refused = (message: string, cause?: unknown): Failure => new Failure('auth_required', message, { executed: 'no' }, cause)
