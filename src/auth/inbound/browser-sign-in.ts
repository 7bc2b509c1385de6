/**
 * Which caller a browser belongs to: the person signs in at the issuer of the callers, with Trunkline as a client of its own (code flow
 * with PKCE, [OpenID Connect Core] 3.1), and the ID token names the caller as its access tokens do.
 *
 * The surprise: no token is kept, and none is given to anyone. Only the name is compared, with that of the caller for whom a link was
 * made (B248).
 */
import { randomBytes } from 'node:crypto'
import { compactVerify } from 'jose'
import { asError } from '../../values/as-error.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import { parseOwnJson } from '../../values/own-json.ts'
import { arrive, depart } from '../oauth/authorization.ts'
import type { Journey } from '../oauth/authorization.ts'
import { discoverIssuer } from '../oauth/discovery.ts'
import { reachOfIssuer } from '../oauth/environment.ts'
import type { Fetch } from '../oauth/safe-fetch.ts'
import { GrantRefused, requestGrant } from '../oauth/token-endpoint.ts'
import { Failure } from '../../wire/message/failure.ts'
import { SKEW_MS } from './claims.ts'
import type { Claims } from './claim-value.ts'
import { issuersOf } from './inbound-options.ts'
import type { ClientAtIssuer, IssuerOptions, ResourceServerOptions } from './inbound-options.ts'
import { Issuer, IssuerUnreachable, readKeys } from './issuer.ts'
import { KeySet } from './key-set.ts'
import { principalOfClaims } from './principal.ts'
import { ALGORITHMS } from './jwt.ts'
import type { Clock } from './resource-server.ts'
import { sentenceOf } from '../refusal.ts'

/** What must be known when the browser is back. */
export interface IdentityJourney {
  readonly journey: Journey
  readonly nonce: string
}

export class BrowserSignIn {
  /** As its tokens spell it. */
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

  /** Where to send the browser. `chooses`: the person is to choose another account than the one of the browser. Rejects with `Failure`. */
  async begin(redirectUri: string, chooses: boolean): Promise<{ readonly url: string; readonly journey: IdentityJourney }> {
    const reach = reachOfIssuer(this.#options)
    const provider = await discoverIssuer(this.issuer, '', { reach, fetch: this.#fetch })
    const { client } = this.#client
    // Many providers take PKCE without saying so. It is sent in any case; what protects a client with a secret besides is `nonce`.
    const { url, journey } = depart(
      { ...provider, hasPkce: true },
      { client, auth: undefined },
      { redirectUri, scope: 'openid', reach },
    )
    const nonce = randomBytes(32).toString('base64url')
    const target = new URL(url)
    // No token for a resource is wanted; some providers refuse the parameter.
    target.searchParams.delete('resource')
    target.searchParams.set('nonce', nonce)
    if (chooses) target.searchParams.set('prompt', 'login')
    return { url: target.href, journey: { journey, nonce } }
  }

  /** The principal of the person who is back. Rejects with `Failure` for an answer that proves nothing. */
  async finish({ journey, nonce }: IdentityJourney, answer: URLSearchParams): Promise<string> {
    const code = arrive(journey, answer)
    const { provider, registered, redirectUri, verifier } = journey
    const grant = await requestGrant({
      provider,
      client: registered.client,
      auth: registered.auth,
      params: { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier },
      reach: reachOfIssuer(this.#options),
      fetch: this.#fetch,
      now: this.#clock.wallMs,
    }).catch((error: unknown) => {
      throw error instanceof GrantRefused ? refused(`no identity: ${error.message}`, error) : away('no identity', error)
    })
    const idToken = grant['id_token']
    if (typeof idToken !== 'string') throw refused(`${this.issuer} sent no ID token: it must be an OpenID provider`)
    const claims = await this.#verified(idToken)
    const wrong = this.#wrongIn(claims, nonce)
    if (wrong !== undefined) throw refused(`the ID token of ${this.issuer} is refused: ${wrong}`)
    const principal = principalOfClaims(claims, this.issuer, this.#options.subject, 'jwt')
    if ('refused' in principal) throw refused(`the ID token names no caller: ${sentenceOf(principal.refused)}`)
    return principal.name
  }

  async #verified(idToken: string): Promise<Claims> {
    try {
      const { payload } = await compactVerify(idToken, this.#keys.find, { algorithms: ALGORITHMS })
      return parseJsonObject(Buffer.from(payload).toString()) ?? {}
    } catch (error) {
      if (error instanceof IssuerUnreachable) throw away('the ID token cannot be verified now', error)
      throw refused(`the ID token cannot be verified: ${asError(error).message}`, error)
    }
  }

  /** [OpenID Connect Core] 3.1.3.7. */
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

/** The sign-ins of all issuers at which Trunkline is a client. */
export class BrowserSignIns {
  readonly #byIssuer: ReadonlyMap<string, BrowserSignIn>

  constructor(options: ResourceServerOptions, fetch: Fetch, clock: Clock) {
    this.#byIssuer = new Map(
      issuersOf(options).flatMap((one) =>
        one.client === undefined ? [] : [[one.issuer, new BrowserSignIn(one, one.client, fetch, clock)]],
      ),
    )
  }

  /** Where the owner of a principal signs in; `undefined`: it is not a caller of an issuer that knows Trunkline as a client. */
  of(principal: string): BrowserSignIn | undefined {
    const issuer = issuerOf(principal)
    return issuer === undefined ? undefined : this.#byIssuer.get(issuer)
  }
}

/** The issuer in a principal that `principalOfClaims` made. */
const issuerOf = (principal: string): string | undefined => {
  if (!principal.startsWith('[')) return undefined
  const [issuer] = parseOwnJson<readonly unknown[]>(principal)
  return typeof issuer === 'string' ? issuer : undefined
}

const refused = (message: string, cause?: unknown): Failure => new Failure('auth_required', message, { executed: 'no' }, cause)

/** The issuer cannot be asked now: nothing is said about the person. */
const away = (message: string, cause: unknown): Failure =>
  new Failure('unreachable', `${message}: ${asError(cause).message}`, { executed: 'no', retryable: true }, cause)
