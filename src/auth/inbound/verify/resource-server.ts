/**
 * Verifies tokens of the configured authorization servers: JWTs with the keys of their issuer, other tokens by introspection where that is
 * configured ([RFC 9068] 4, [RFC 7662]; BRIDGING 6.1; B234, T-07). The host gets the same answer for every invalid token; the failed checks
 * are reported to the log and `trunkline token explain`.
 */
import { parseJsonObject } from '../../../values/json-object.ts'
import type { Admitted } from '../../identity.ts'
import type { Fetch } from '../../fetch/safe-fetch.ts'
import { failed, judgeClaims, passed } from './claims.ts'
import type { Clock } from './clock.ts'
import type { ClaimRule, IssuerOptions, ResourceServerOptions } from './inbound-options.ts'
import { Issuer, IssuerUnreachable, readKeys } from './issuer.ts'
import { hasJwtForm, unverifiedIssuer, verifyJwt } from './jwt.ts'
import { KeySet } from './key-set.ts'
import { shownValue } from '../../token-refusal.ts'
import type { Check, TokenRefusal } from '../../token-refusal.ts'

/** The result of examining one token. */
export interface Examination {
  readonly checks: readonly Check[]
  /** `undefined`: the token is invalid. */
  readonly admitted: Admitted | undefined
}

/** An issuer with its fetched metadata and keys. */
interface KnownIssuer {
  readonly options: IssuerOptions
  readonly issuer: Issuer
  readonly keys: KeySet
}

export class ResourceServer {
  readonly #options: ResourceServerOptions
  readonly #issuers: readonly [KnownIssuer, ...KnownIssuer[]]
  readonly #map: readonly ClaimRule[]
  readonly #clock: Clock
  readonly #refused: (why: TokenRefusal) => void

  /** `refused` is called with the first failed check of a token, for the operator only. */
  constructor(
    options: ResourceServerOptions,
    map: readonly ClaimRule[],
    fetch: Fetch,
    clock: Clock,
    refused: (why: TokenRefusal) => void = () => undefined,
  ) {
    this.#options = options
    this.#refused = refused
    this.#map = map
    this.#clock = clock
    const known = (one: IssuerOptions): KnownIssuer => {
      const issuer = new Issuer(one.issuer, fetch, clock.monotonicMs, one.allowsHttp)
      return { options: one, issuer, keys: new KeySet(() => readKeys(one, issuer), clock.monotonicMs) }
    }
    this.#issuers = [known(options), ...options.otherIssuers.map(known)]
  }

  /** The authorization server that hosts are sent to first. */
  get issuer(): Issuer {
    return this.#issuers[0].issuer
  }

  /** Resolves with `undefined` for an invalid token. Rejects with `IssuerUnreachable` if the token cannot be verified now. */
  async verify(token: string): Promise<Admitted | undefined> {
    const { checks, admitted } = await this.examine(token)
    const refusal = checks.find((check) => check.refusal !== undefined)?.refusal
    if (refusal !== undefined) this.#refused(refusal)
    return admitted
  }

  /** Makes all possible checks. Rejects with `IssuerUnreachable` if the issuer is needed and cannot be reached. */
  async examine(token: string): Promise<Examination> {
    const { maxTokenCharacters } = this.#options
    if (token.length > maxTokenCharacters)
      return refuse({
        cause: 'form',
        claim: 'token',
        expected: `at most ${maxTokenCharacters} characters (listen.limits.max_header)`,
        got: `${token.length} characters`,
        remedy: 'leave claims out of access tokens at the issuer, such as long lists of groups, or raise the limit',
      })
    const isJwt = hasJwtForm(token)
    const named = isJwt ? unverifiedIssuer(token) : undefined
    const own = isJwt ? this.#issuers.find(({ options }) => options.issuer === named) : undefined
    if (own !== undefined && !own.options.introspectsAll) return this.#examineJwt(token, own)
    const introspecting = this.#issuers.filter(
      (one) =>
        one.options.introspection !== undefined && (own === undefined ? !isJwt || one.options.introspectsAll : one === own),
    )
    if (introspecting.length > 0) return this.#introspectAt(token, introspecting)
    return refuse(isJwt ? this.#unknownIssuer(named) : NOT_A_JWT)
  }

  async #examineJwt(token: string, { options, keys }: KnownIssuer): Promise<Examination> {
    const { checks, claims } = await verifyJwt(token, keys, options.issuer)
    if (claims === undefined) return { checks, admitted: undefined }
    const verdict = judgeClaims(claims, this.#reading(options, 'jwt'))
    return { ...verdict, checks: [...checks, ...verdict.checks] }
  }

  /** The first issuer at which the token is active decides. An unreachable issuer counts only if no other accepts the token. */
  async #introspectAt(token: string, issuers: readonly KnownIssuer[]): Promise<Examination> {
    let unreachable: IssuerUnreachable | undefined
    let inactive: Examination | undefined
    for (const one of issuers) {
      try {
        const examination = await this.#introspect(token, one)
        if (examination.checks[0]?.refusal === undefined) return examination
        inactive ??= examination
      } catch (error) {
        if (!(error instanceof IssuerUnreachable)) throw error
        unreachable ??= error
      }
    }
    if (unreachable !== undefined || inactive === undefined) throw unreachable ?? new IssuerUnreachable('no issuer to ask')
    return inactive
  }

  async #introspect(token: string, { options, issuer }: KnownIssuer): Promise<Examination> {
    const { introspection } = options
    const { clientId = '', clientSecret = '', endpoint: configured } = introspection ?? {}
    const endpoint = configured ?? (await issuer.metadata()).introspectionEndpoint
    if (endpoint === undefined) throw new IssuerUnreachable(`the metadata of ${issuer.name} names no introspection_endpoint`)
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString()
    const basic = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString('base64')
    const text = await issuer.request(endpoint, configured !== undefined, body, {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${basic}`,
    })
    const claims = parseJsonObject(text)
    if (claims?.['active'] !== true) return refuse(inactiveAt(options.issuer, claims?.['active']))
    if ((claims['iss'] ?? options.issuer) !== options.issuer) return refuse(this.#unknownIssuer(claims['iss']))
    const verdict = judgeClaims(claims, this.#reading(options, 'introspection'))
    return { ...verdict, checks: [passed('activity', `active at ${options.issuer}`), ...verdict.checks] }
  }

  #reading(issuer: IssuerOptions, source: 'jwt' | 'introspection') {
    const { keepsClaims } = this.#options
    return { issuer, resource: this.#options, map: this.#map, source, nowMs: this.#clock.wallMs(), keepsClaims }
  }

  #unknownIssuer(named: unknown): TokenRefusal {
    const own = this.#issuers.map(({ options }) => options.issuer)
    return {
      cause: 'issuer',
      claim: 'iss',
      expected: own.join(' or '),
      got: shownValue(named),
      remedy: issuerRemedy(named, own),
    }
  }
}

const refuse = (refusal: TokenRefusal): Examination => ({ checks: [failed(refusal)], admitted: undefined })

const NOT_A_JWT: TokenRefusal = {
  cause: 'form',
  claim: 'token',
  expected: 'a JWT',
  got: 'an opaque text',
  remedy: 'have the issuer issue JWT access tokens, or configure auth.oauth.introspection',
}

const inactiveAt = (issuer: string, active: unknown): TokenRefusal => ({
  cause: 'activity',
  claim: 'active',
  expected: `true from the introspection endpoint of ${issuer}`,
  got: shownValue(active),
  remedy: 'the token has ended or is of another issuer; otherwise check the client of auth.oauth.introspection',
})

/** Entra ID issues tokens of two versions, under two names. */
const ENTRA_V1 = 'https://sts.windows.net/'

const issuerRemedy = (named: unknown, own: readonly string[]): string => {
  if (typeof named !== 'string') return 'have the host send an access token of the issuer'
  if (own.some((issuer) => trimmed(issuer) === trimmed(named))) return `write auth.oauth.issuer exactly as the token does`
  if (named.startsWith(ENTRA_V1)) return 'set requestedAccessTokenVersion to 2 in the manifest of the application at Entra ID'
  return 'the host signed in elsewhere; if tokens of this issuer are to be accepted, add it to auth.oauth.issuers'
}

const trimmed = (issuer: string): string => issuer.replace(/\/$/, '').toLowerCase()
