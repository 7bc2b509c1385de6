/**
 * A caller's access token, exchanged for a token of the server ([RFC 8693]; BRIDGING 6.2.8, 6.3.1). The caller's token is sent only to the
 * authorization server that issued it, or to a configured one at which no caller signs in; the exchanged token is for this server only.
 * When the caller sends another token, `SubjectTokens` reports it, and the server is tried again.
 */
import { setBounded } from '../../values/bounded-map.ts'
import { Failure } from '../../wire/message/failure.ts'
import { issuerOfPrincipal } from '../identity.ts'
import type { Credential, Rejection } from './credential.ts'
import { canonicalUri, discoverIssuer, isSameIssuer } from '../authorization-server/discovery.ts'
import type { OAuthEnvironment } from './environment.ts'
import { authRequired, noToken } from '../authorization-server/failures.ts'
import { GrantPause } from '../authorization-server/grant-pause.ts'
import { reachOf } from '../fetch/reach.ts'
import type { ExchangeOptions } from '../credential-options.ts'
import { GrantRefused, isFresh, requestTokens, waitFor } from '../authorization-server/token-endpoint.ts'
import type { Tokens } from '../authorization-server/token-endpoint.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
/** Error codes for a refused subject token ([RFC 8693] 2.2.2, [RFC 6749] 5.2). */
const SUBJECT_CODES: ReadonlySet<string> = new Set(['invalid_request', 'invalid_grant', 'invalid_token'])
/** Exchanged tokens kept per caller, whose hosts may use a token each. */
const MOST = 4
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

export class ExchangeCredential implements Credential {
  readonly interactive = undefined
  readonly bearer: { value: string | undefined } = { value: undefined }
  readonly #server: URL
  readonly #options: ExchangeOptions
  readonly #principal: string
  readonly #environment: OAuthEnvironment
  readonly #pause = new GrantPause()
  /** By the caller's token; the oldest is removed first. */
  readonly #exchanged = new Map<string, Tokens>()
  #obtaining: Promise<void> | undefined

  constructor(server: URL, options: ExchangeOptions, principal: string, environment: OAuthEnvironment) {
    this.#server = server
    this.#options = options
    this.#principal = principal
    this.#environment = environment
  }

  close(): void {
    this.#environment.secrets(this, [])
  }

  ready(): Promise<void> | undefined {
    const tokens = this.#exchanged.get(this.#subject() ?? '')
    if (tokens === undefined) return this.#obtain()
    this.bearer.value = bearerOf(tokens)
    const nowMs = this.#environment.now()
    return isFresh(tokens, nowMs) ? undefined : waitFor(this.#obtain(), tokens, nowMs)
  }

  async renew({ used, status }: Rejection): Promise<void> {
    if (this.#obtaining !== undefined) return this.#obtaining
    if (used !== this.bearer.value) return
    if (status === 403) throw new Failure('forbidden', 'the exchanged token does not reach that far', { executed: 'no', status })
    this.#exchanged.delete(this.#subject() ?? '')
    await this.#obtain()
  }

  /** The caller's latest access token. */
  #subject(): string | undefined {
    return this.#environment.subject(this.#principal)
  }

  #obtain(): Promise<void> {
    return (this.#obtaining ??= this.#request().finally(() => (this.#obtaining = undefined)))
  }

  async #request(): Promise<void> {
    const { fetch, isCallerIssuer, now, secrets } = this.#environment
    const { issuer, client, audience, scopes, isPrivate } = this.#options
    const subject = this.#subject()
    if (subject === undefined) throw authRequired('the caller brought no token to exchange')
    const issuedBy = issuerOfPrincipal(this.#principal)
    if (issuedBy !== undefined && isCallerIssuer(issuer) && !isSameIssuer(issuedBy, issuer))
      throw authRequired(
        'the caller signed in at another issuer than credentials.exchange.issuer, which cannot exchange its token',
      )
    const reach = reachOf(new URL(issuer), isPrivate)
    try {
      this.#pause.check()
      const provider = await discoverIssuer(issuer, canonicalUri(this.#server), { reach, fetch })
      const params = {
        grant_type: GRANT,
        subject_token: subject,
        subject_token_type: ACCESS_TOKEN,
        requested_token_type: ACCESS_TOKEN,
        resource: audience === undefined ? provider.resource : undefined,
        audience,
        scope: scopes?.join(' '),
      }
      const tokens = await requestTokens({ provider, client, params, reach, fetch, now })
      setBounded(this.#exchanged, subject, tokens, MOST)
      secrets(
        this,
        [...this.#exchanged.values()].map(({ accessToken }) => accessToken),
      )
      this.bearer.value = bearerOf(tokens)
    } catch (error) {
      const { expiresAt = Infinity } = this.#exchanged.get(subject) ?? { expiresAt: 0 }
      // A valid token is used to its end while the issuer cannot be reached.
      if (error instanceof GrantRefused || expiresAt <= now()) {
        this.#exchanged.delete(subject)
        this.bearer.value = undefined
      }
      // The caller has sent another token during the exchange.
      if (this.#subject() !== subject) return this.#request()
      if (error instanceof Failure) throw error
      const isOfSubject = error instanceof GrantRefused && SUBJECT_CODES.has(error.code)
      if (isOfSubject) this.#environment.subjectRefused(this.#principal, subject)
      throw noToken(this.#pause.begun(error))
    }
  }
}

const bearerOf = ({ accessToken }: Tokens): string => `Bearer ${accessToken}`
