/**
 * Identifies the person in a browser: the person signs in at the callers' issuer, with Trunkline as its own client (code flow with PKCE,
 * [OpenID Connect Core] 3.1), and the ID token names the principal as access tokens do. No token is stored or passed on; only the
 * principal is compared with that of the link (B248).
 */
import { randomBytes } from 'node:crypto'
import { asError } from '../../values/as-error.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import { authorizationCode, beginAuthorization } from '../authorization-server/authorization.ts'
import type { PendingAuthorization } from '../authorization-server/authorization.ts'
import { discoverIssuer } from '../authorization-server/discovery.ts'
import { authRequired, noToken, unreachable } from '../authorization-server/failures.ts'
import { reachOfIssuer } from '../fetch/reach.ts'
import type { Fetch } from '../fetch/safe-fetch.ts'
import { requestGrant } from '../authorization-server/token-endpoint.ts'
import { SKEW_MS } from './verify/claims.ts'
import type { Claims } from './verify/claim-value.ts'
import { issuersOf } from './verify/inbound-options.ts'
import type { ClientAtIssuer, IssuerOptions, ResourceServerOptions } from './verify/inbound-options.ts'
import { Issuer, IssuerUnreachable, readKeys } from './verify/issuer.ts'
import { KeySet } from './verify/key-set.ts'
import { principalOfClaims } from './verify/principal.ts'
import { verifySignature } from './verify/jwt.ts'
import type { Clock } from './verify/clock.ts'
import { issuerOfPrincipal } from '../identity.ts'
import { sentenceOf } from '../token-refusal.ts'

/** A pending sign-in, to be kept until the browser returns. */
export interface PendingIdentity {
  readonly authorization: PendingAuthorization
  readonly nonce: string
}

export class BrowserSignIn {
  /** Exactly as in its tokens. */
  readonly issuer: string
  readonly #options: IssuerOptions
  readonly #client: ClientAtIssuer
  readonly #fetch: Fetch
  readonly #clock: Clock
  readonly #keys: KeySet

  constructor(options: IssuerOptions, client: ClientAtIssuer, fetch: Fetch, clock: Clock) {
    this.issuer = options.issuer
    this.#options = options
    this.#client = client
    this.#fetch = fetch
    this.#clock = clock
    const issuer = new Issuer(options.issuer, fetch, clock.monotonicMs, options.allowsHttp)
    this.#keys = new KeySet(() => readKeys(options, issuer), clock.monotonicMs)
  }

  /** Resolves with the URL for the browser. `chooses`: lets the person choose another account. Rejects with `Failure`. */
  async begin(redirectUri: string, chooses: boolean): Promise<{ readonly url: string; readonly pending: PendingIdentity }> {
    const reach = reachOfIssuer(this.#options)
    const provider = await discoverIssuer(this.issuer, '', { reach, fetch: this.#fetch })
    const { client } = this.#client
    // PKCE is always sent, since many providers support it without declaring it. `nonce` protects the sign-in as well.
    const { url, pending } = beginAuthorization(
      { ...provider, hasPkce: true },
      { client, auth: undefined },
      { redirectUri, scope: 'openid', reach },
    )
    const nonce = randomBytes(32).toString('base64url')
    const target = new URL(url)
    // No token for a resource is requested, and some providers refuse the parameter.
    target.searchParams.delete('resource')
    target.searchParams.set('nonce', nonce)
    if (chooses) target.searchParams.set('prompt', 'login')
    return { url: target.href, pending: { authorization: pending, nonce } }
  }

  /** Resolves with the principal of the person. Rejects with `Failure` for an invalid answer. */
  async finish({ authorization, nonce }: PendingIdentity, answer: URLSearchParams): Promise<string> {
    const code = authorizationCode(authorization, answer)
    const { provider, registered, redirectUri, verifier } = authorization
    const grant = await requestGrant({
      provider,
      client: registered.client,
      auth: registered.auth,
      params: { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier },
      reach: reachOfIssuer(this.#options),
      fetch: this.#fetch,
      now: this.#clock.wallMs,
    }).catch((error: unknown) => {
      throw noToken(error, 'no identity')
    })
    const idToken = grant['id_token']
    if (typeof idToken !== 'string') throw authRequired(`${this.issuer} sent no ID token: it must be an OpenID provider`)
    const claims = await this.#verified(idToken)
    const wrong = this.#wrongIn(claims, nonce)
    if (wrong !== undefined) throw authRequired(`the ID token of ${this.issuer} is refused: ${wrong}`)
    const principal = principalOfClaims(claims, this.issuer, this.#options.subject, 'jwt')
    if ('refused' in principal) throw authRequired(`the ID token names no caller: ${sentenceOf(principal.refused)}`)
    return principal.name
  }

  async #verified(idToken: string): Promise<Claims> {
    try {
      const { payload } = await verifySignature(idToken, this.#keys)
      return parseJsonObject(Buffer.from(payload).toString()) ?? {}
    } catch (error) {
      if (error instanceof IssuerUnreachable) throw unreachable('the ID token cannot be verified now', error)
      throw authRequired(`the ID token cannot be verified: ${asError(error).message}`, error)
    }
  }

  /** Returns why an ID token is invalid ([OpenID Connect Core] 3.1.3.7). */
  #wrongIn(claims: Claims, nonce: string): string | undefined {
    const { id } = this.#client.client
    const audiences = [claims['aud']].flat()
    const nowMs = this.#clock.wallMs()
    const { exp, azp } = claims
    if (claims['iss'] !== this.issuer) return 'iss is another'
    if (!audiences.includes(id)) return 'aud is another client'
    if ((audiences.length > 1 || azp !== undefined) && azp !== id) return 'azp is another client'
    if (typeof exp !== 'number' || exp * 1_000 + SKEW_MS <= nowMs) return 'exp has passed'
    return claims['nonce'] === nonce ? undefined : 'nonce is another'
  }
}

/** All issuers at which Trunkline is a client. */
export class BrowserSignIns {
  readonly #byIssuer: ReadonlyMap<string, BrowserSignIn>

  constructor(options: ResourceServerOptions, fetch: Fetch, clock: Clock) {
    this.#byIssuer = new Map(
      issuersOf(options).flatMap((one) =>
        one.client === undefined ? [] : [[one.issuer, new BrowserSignIn(one, one.client, fetch, clock)]],
      ),
    )
  }

  /** Returns the issuer at which the owner of a principal signs in; `undefined`: Trunkline is not a client there. */
  of(principal: string): BrowserSignIn | undefined {
    const issuer = issuerOfPrincipal(principal)
    return issuer === undefined ? undefined : this.#byIssuer.get(issuer)
  }
}
