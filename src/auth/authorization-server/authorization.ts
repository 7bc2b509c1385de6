/**
 * An authorization code flow: the URL for the browser, and the check of the authorization response
 * ([2026-07-28 basic/authorization/security-considerations]; B240, B243, B244). Everything to be compared later is recorded before the
 * browser is redirected.
 */
import { createHash, randomBytes } from 'node:crypto'
import { asError } from '../../values/as-error.ts'
import { authRequired } from './failures.ts'
import type { Reach } from '../fetch/reach.ts'
import type { Provider } from './discovery.ts'
import type { Registered } from './registration.ts'
import { checkedUrl } from '../fetch/safe-fetch.ts'
import { GrantRefused, refusalText } from './token-endpoint.ts'

/** A flow whose authorization response is awaited. */
export interface PendingAuthorization {
  readonly provider: Provider
  readonly registered: Registered
  readonly redirectUri: string
  readonly verifier: string
  /** 32 random bytes that identify the response. */
  readonly state: string
  readonly scope: string | undefined
}

/** Begins a flow. Throws `Failure` if the authorization server lacks PKCE or a valid authorization endpoint. */
export const beginAuthorization = (
  provider: Provider,
  registered: Registered,
  { redirectUri, scope, reach }: { redirectUri: string; scope: string | undefined; reach: Reach },
): { readonly url: string; readonly pending: PendingAuthorization } => {
  if (!provider.hasPkce) throw authRequired(`${provider.issuer} does not say that it takes PKCE with S256`)
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(32).toString('base64url')
  const url = withParams(authorizationUrl(provider, reach), {
    response_type: 'code',
    client_id: registered.client.id,
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state,
    resource: provider.resource,
    scope,
    prompt: scope?.split(' ').includes('offline_access') === true ? 'consent' : undefined,
  })
  return { url, pending: { provider, registered, redirectUri, verifier, state, scope } }
}

/** Returns the code of an authorization response. Throws `Failure` for an error, or for a response of another issuer. */
export const authorizationCode = ({ provider }: PendingAuthorization, answer: URLSearchParams): string => {
  checkIssuer(provider, answer)
  const error = answer.get('error')
  if (error !== null) {
    const message = refusalText(error, answer.get('error_description'), [])
    throw authRequired(message, new GrantRefused(error, message))
  }
  const code = answer.get('code')
  if (code === null || code === '') throw authRequired('the answer holds no code')
  return code
}

/**
 * Throws `Failure` if an authorization response is of another issuer. Must be called before anything else of the response is read, also
 * its error text:
 *
 *     advertised  iss      verdict
 *     yes         present  compared exactly
 *     yes         absent   refused
 *     no          present  compared exactly
 *     no          absent   accepted
 */
export const checkIssuer = (provider: Pick<Provider, 'issuer' | 'tellsIssuer'>, answer: URLSearchParams): void => {
  const issuers = answer.getAll('iss')
  if (issuers.length === 0 ? provider.tellsIssuer : issuers.length > 1 || issuers[0] !== provider.issuer)
    throw authRequired('the answer is not from the authorization server that was asked')
}

/** Returns the URL of the authorization endpoint. Throws `Failure` if the provider has none, or an invalid one. */
export const authorizationUrl = ({ authorizationEndpoint, issuer }: Provider, reach: Reach): URL => {
  if (authorizationEndpoint === undefined) throw authRequired(`${issuer} names no authorization endpoint`)
  return browserUrl(authorizationEndpoint, reach)
}

/** Returns a URL with query parameters added or replaced; those that are `undefined` are omitted. */
export const withParams = (base: URL | string, params: Readonly<Record<string, string | undefined>>): string => {
  const url = new URL(base)
  for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** Returns a URL for a browser: https, or http on this machine. Serialized again, so that it has no special characters of a shell (T-11). */
export const browserUrl = (text: string, reach: Reach): URL => {
  try {
    const url = checkedUrl(text, reach)
    url.hash = ''
    return url
  } catch (error) {
    throw authRequired(`the authorization endpoint cannot be opened in a browser: ${asError(error).message}`, error)
  }
}
