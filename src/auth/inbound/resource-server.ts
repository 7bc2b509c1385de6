/**
 * Tokens of one authorization server: JWTs are verified with its keys, others asked about where that is configured ([RFC 9068] 4,
 * [RFC 7662]; BRIDGING 6.1; B234, T-07). Whatever is wrong with a token, the answer is the same `undefined`.
 */
import { errors, jwtVerify } from 'jose'
import type { Claims } from './claim-value.ts'
import { admittedBy, isUnfit, SKEW_MS } from './claims.ts'
import type { Unfit } from './claims.ts'
import type { Admitted } from '../identity.ts'
import type { ClaimRule, ResourceServerOptions } from './inbound-options.ts'
import { Issuer, IssuerUnreachable } from './issuer.ts'
import { KeySet } from './key-set.ts'
import type { Fetch } from '../oauth/safe-fetch.ts'

/** Signatures with a public key. None with a shared secret: an attacker could sign with the public key as the secret. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Of access tokens; issuers before [RFC 9068] say `JWT` or nothing. */
const TYPES = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt'])
const JWT_FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/

export interface Clock {
  /** Wall clock in milliseconds: what tokens speak of. */
  readonly wallMs: () => number
  /** Monotonic, in milliseconds: how old what we fetched is. */
  readonly monotonicMs: () => number
}

export class ResourceServer {
  readonly issuer: Issuer
  readonly #options: ResourceServerOptions
  readonly #map: readonly ClaimRule[]
  readonly #clock: Clock
  readonly #keys: KeySet
  readonly #origin: string
  readonly #unfit: (why: Unfit) => void

  /** `unfit` is called with why a token was refused, for the operator alone: it holds nothing of the token. */
  constructor(
    options: ResourceServerOptions,
    map: readonly ClaimRule[],
    fetch: Fetch,
    clock: Clock,
    unfit: (why: Unfit) => void = () => undefined,
  ) {
    this.#options = options
    this.#unfit = unfit
    this.#map = map
    this.#clock = clock
    this.#origin = new URL(options.audience).origin
    this.issuer = new Issuer(options.issuer, fetch, clock.monotonicMs)
    this.#keys = new KeySet(() => this.#readKeys(), clock.monotonicMs)
  }

  /** `undefined`: not a good token. Rejects with `IssuerUnreachable` where that cannot be found out now. */
  async verify(token: string): Promise<Admitted | undefined> {
    const source = JWT_FORM.test(token) ? 'jwt' : 'introspection'
    const claims = source === 'jwt' ? await this.#verifyJwt(token) : await this.#introspect(token)
    if (claims === undefined) return undefined
    const { issuer, subject, keepsClaims } = this.#options
    const verdict = admittedBy(claims, { issuer, subject, origin: this.#origin, map: this.#map, source, keepsClaims })
    if (!isUnfit(verdict)) return verdict
    this.#unfit(verdict)
    return undefined
  }

  async #verifyJwt(token: string): Promise<Claims | undefined> {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.#keys.find, {
        issuer: this.issuer.name,
        algorithms: ALGORITHMS,
        requiredClaims: ['exp', 'aud'],
        clockTolerance: SKEW_MS / 1_000,
        currentDate: new Date(this.#clock.wallMs()),
      })
      if (TYPES.has(protectedHeader.typ?.toLowerCase())) return payload
      this.#reject('"typ" is that of another kind of token')
      return undefined
    } catch (error) {
      if (error instanceof IssuerUnreachable) throw error
      // A key that is too short, or of another kind than its header says, is a TypeError of jose.
      if (!(error instanceof errors.JOSEError || error instanceof TypeError)) throw error
      this.#reject(error instanceof errors.JOSEError ? error.message : 'a key that does not fit')
      return undefined
    }
  }

  #reject(reason: string): void {
    this.#unfit({ reason, isSetup: false })
  }

  async #introspect(token: string): Promise<Claims | undefined> {
    const { introspection } = this.#options
    if (introspection === undefined) {
      this.#reject('no JWT, and introspection is not configured')
      return undefined
    }
    const { clientId, clientSecret, endpoint: configured } = introspection
    const endpoint = configured ?? (await this.issuer.metadata()).introspectionEndpoint
    if (endpoint === undefined) throw new IssuerUnreachable(`${this.issuer.name} names no introspection_endpoint`)
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString()
    const basic = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString('base64')
    const text = await this.issuer.ask(endpoint, configured !== undefined, body, {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${basic}`,
    })
    const claims = parsed(text)
    const isOurs = claims?.['active'] === true && (claims['iss'] ?? this.issuer.name) === this.issuer.name
    if (isOurs && this.#isTimely(claims)) return claims
    this.#reject(isOurs ? 'past its end or before its beginning' : 'not active at the issuer')
    return undefined
  }

  /** The authorization server has looked at its clock; we look at ours, as with JWTs. */
  #isTimely({ exp, nbf }: Claims): boolean {
    const nowMs = this.#clock.wallMs()
    const hasBegun = typeof nbf !== 'number' || nbf * 1_000 - SKEW_MS <= nowMs
    return hasBegun && typeof exp === 'number' && exp * 1_000 + SKEW_MS > nowMs
  }

  async #readKeys(): Promise<string> {
    const { jwksUri: configured } = this.#options
    const uri = configured ?? (await this.issuer.metadata()).jwksUri
    if (uri === undefined) throw new IssuerUnreachable(`${this.issuer.name} names no jwks_uri`)
    return this.issuer.ask(uri, configured !== undefined)
  }
}

const parsed = (text: string): Claims | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Claims) : undefined
  } catch {
    return undefined
  }
}
