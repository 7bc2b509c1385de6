/**
 * Client registration for a provider without it: Trunkline acts as an authorization server that relays authorization to the provider, with
 * the one client that an administrator registered there ([2026-07-28 basic/security_best_practices], Confused Deputy; BRIDGING 6.3.5).
 *
 *     host ── authorize ──► consent for this client, each time ── sealed state ──► provider
 *     host ◄── our code ─── same browser, state opened ◄────────── its code ────── provider
 *     host ── our code, verifier ──► token ── its code, the same verifier ──► provider
 *
 * No request is stored. State, codes and refresh tokens are sealed, so every replica can continue a flow. A code is valid once because the
 * provider's code in it is. The host's PKCE challenge is relayed, so both sides check it.
 */
import { createHash } from 'node:crypto'
import { Failure } from '../../wire/message/failure.ts'
import { discoverIssuer } from '../authorization-server/discovery.ts'
import type { Provider } from '../authorization-server/discovery.ts'
import { authorizationUrl, checkIssuer, withParams } from '../authorization-server/authorization.ts'
import { authRequired } from '../authorization-server/failures.ts'
import { reachOfIssuer } from '../fetch/reach.ts'
import type { Fetch } from '../fetch/safe-fetch.ts'
import { isGrantEnded, requestGrant } from '../authorization-server/token-endpoint.ts'
import type { Purpose, Seal } from '../seal.ts'
import type { ClientAtIssuer, ResourceServerOptions } from './verify/inbound-options.ts'
import { originOf, plainUri } from './verify/claims.ts'
import type { Clock } from './verify/clock.ts'
import { HostClients, isDocument, isRedirectOf } from './host-clients.ts'
import type { HostClient } from './host-clients.ts'

/** A valid authorization request of a known client. */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly challenge: string
  readonly state: string | undefined
  readonly scope: string | undefined
  readonly resource: string | undefined
}

/** The result of checking an authorization request: ask for consent, redirect with an error, or show an error page. */
export type Asked =
  | { readonly kind: 'consent'; readonly client: HostClient; readonly request: AuthorizationRequest }
  | { readonly kind: 'redirect'; readonly url: string }
  | { readonly kind: 'refused'; readonly reason: string }

export interface TokenAnswer {
  readonly status: number
  readonly body: object
}

const CONSENT: Purpose<{ request: AuthorizationRequest; browser: string }> = 'oauth consent'
const STATE: Purpose<{ c: string; r: string; p: string; s?: string | undefined; b: string }> = 'oauth state'
const CODE: Purpose<{ c: string; r: string; p: string; k: string }> = 'oauth code'
const REFRESH: Purpose<{ c: string; k: string }> = 'oauth refresh'
const CONSENT_MS = 600_000
const CODE_MS = 60_000
/** Concurrent token requests to the provider. */
const MAX_PENDING = 64
/** How long provider metadata is cached. */
const PROVIDER_MS = 600_000
/** How long cached metadata is used again after a failed fetch. */
const RETRY_MS = 30_000
const MAX_PARAM = 2_048
/** Forms of [RFC 7636] 4.1 and 4.2. */
const CHALLENGE = /^[\w-]{43}$/
const VERIFIER = /^[\w.~-]{43,128}$/

export class AuthorizationProxy {
  readonly clients: HostClients
  readonly #options: ResourceServerOptions
  readonly #client: ClientAtIssuer
  readonly #seal: Seal
  readonly #fetch: Fetch
  readonly #clock: Clock
  #provider: { readonly value: Provider; readonly untilMs: number } | undefined
  #discovering: Promise<Provider> | undefined
  #pending = 0

  constructor(options: ResourceServerOptions, client: ClientAtIssuer, seal: Seal, fetch: Fetch, clock: Clock) {
    const isLocal = new URL(options.audience).hostname === '127.0.0.1' || new URL(options.audience).hostname === 'localhost'
    this.clients = new HostClients(seal, fetch, isLocal ? 'loopback' : 'public', clock.monotonicMs)
    this.#options = options
    this.#client = client
    this.#seal = seal
    this.#fetch = fetch
    this.#clock = clock
  }

  /** Returns the proxy's metadata ([RFC 8414]). `issuer`: its identifier, origin and path without a trailing slash. */
  metadata(issuer: string): object {
    const scopes = [...new Set([...this.#options.requestScopes, ...this.#options.scopes])]
    return {
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      registration_endpoint: `${issuer}/oauth/register`,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
      ...(scopes.length > 0 && { scopes_supported: scopes }),
    }
  }

  /**
   * Checks an authorization request. Errors are sent to the redirect URI only after it is verified to be the client's, and only to an
   * application of this machine: anyone can register an https URI, and a link to Trunkline must not lead there by itself.
   */
  async ask(params: URLSearchParams, issuer: string): Promise<Asked> {
    const isRepeated = [...params.keys()].some((name) => name !== 'resource' && params.getAll(name).length > 1)
    if (isRepeated) return { kind: 'refused', reason: 'a parameter of the request is repeated' }
    const id = params.get('client_id') ?? ''
    const client = id.length > 8_192 ? undefined : await this.clients.find(id)
    if (client === undefined) return { kind: 'refused', reason: isDocument(id) ? BAD_DOCUMENT : UNREGISTERED }
    const redirectUri = params.get('redirect_uri') ?? ''
    if (!isRedirectOf(client, redirectUri))
      return { kind: 'refused', reason: 'the application asks to be answered at an address that it did not register' }
    const state = params.get('state') ?? undefined
    const back = (error: string, description: string): Asked =>
      new URL(redirectUri).protocol === 'https:'
        ? { kind: 'refused', reason: description }
        : { kind: 'redirect', url: withParams(redirectUri, { error, error_description: description, state, iss: issuer }) }
    const tooLong = [...params].some(([, value]) => value.length > 8_192) || (state?.length ?? 0) > MAX_PARAM
    if (tooLong) return back('invalid_request', 'a parameter is too long')
    if (params.get('response_type') !== 'code') return back('unsupported_response_type', 'response_type must be code')
    const challenge = params.get('code_challenge') ?? ''
    if (params.get('code_challenge_method') !== 'S256' || !CHALLENGE.test(challenge))
      return back('invalid_request', 'PKCE with S256 is needed: code_challenge and code_challenge_method')
    if (params.get('prompt')?.split(' ').includes('none') === true) return back('consent_required', 'a person must consent')
    const resources = params.getAll('resource')
    if (resources.some((resource) => !this.#isOurs(resource))) return back('invalid_target', 'resource is not of this server')
    const request = {
      clientId: id,
      redirectUri,
      challenge,
      state,
      scope: params.get('scope') ?? undefined,
      resource: resources[0],
    }
    return { kind: 'consent', client, request }
  }

  /** Returns the scopes that the provider is asked for, separated by spaces; `undefined`: none are named. */
  scopeOf({ scope }: AuthorizationRequest): string | undefined {
    return this.#client.scopes?.join(' ') ?? scope
  }

  /** Returns the request as a form field, valid for ten minutes in this browser. */
  sealRequest(request: AuthorizationRequest, browser: string): string {
    return this.#seal.seal(CONSENT, { request, browser }, CONSENT_MS)
  }

  /** Returns the request of a form field; `undefined`: altered, expired, or of another browser. */
  openRequest(sealed: string, browser: string): AuthorizationRequest | undefined {
    const opened = this.#seal.open(CONSENT, sealed)
    return opened?.browser === browser ? opened.request : undefined
  }

  /** Returns the redirect to the host after the person has refused. */
  refuse({ redirectUri, state }: AuthorizationRequest, issuer: string): string {
    return withParams(redirectUri, { error: 'access_denied', state, iss: issuer })
  }

  /** Resolves with the redirect to the provider after the person has consented in `browser`. Rejects with `Failure`. */
  async begin(request: AuthorizationRequest, browser: string, issuer: string): Promise<string> {
    const provider = await this.#providerNow()
    const url = authorizationUrl(provider, reachOfIssuer(this.#options))
    const { clientId, redirectUri, challenge, state, resource } = request
    return withParams(url, {
      response_type: 'code',
      client_id: this.#client.client.id,
      redirect_uri: `${issuer}/oauth/callback`,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      scope: this.scopeOf(request),
      resource: this.#client.sendsResource ? resource : undefined,
      state: this.#seal.seal(STATE, { c: clientId, r: redirectUri, p: challenge, s: state, b: browser }, CONSENT_MS),
    })
  }

  /** Resolves with the redirect to the host after the provider's answer; `undefined`: this browser did not consent. Rejects with `Failure`. */
  async finish(answer: URLSearchParams, browser: string | undefined, issuer: string): Promise<string | undefined> {
    const opened = this.#seal.open(STATE, answer.get('state') ?? '')
    if (opened === undefined || browser === undefined || opened.b !== browser) return undefined
    checkIssuer(await this.#providerNow(), answer)
    const { c: clientId, r: redirectUri, p: challenge, s: state } = opened
    const error = answer.get('error')
    const code = answer.get('code')
    if (error !== null || code === null || code === '') {
      const known = error !== null && /^[a-z_]{1,40}$/.test(error) ? error : 'server_error'
      return withParams(redirectUri, { error: known, state, iss: issuer })
    }
    const own = this.#seal.seal(CODE, { c: clientId, r: redirectUri, p: challenge, k: code }, CODE_MS)
    return withParams(redirectUri, { code: own, state, iss: issuer })
  }

  /** Answers a token request of a host. Only the provider's tokens for Trunkline are relayed. */
  async token(form: URLSearchParams, issuer: string): Promise<TokenAnswer> {
    const clientId = form.get('client_id') ?? ''
    const params = this.#grantOf(form, clientId, issuer)
    if ('error' in params) {
      const isUnknown = params === INVALID_GRANT && !this.clients.mayKnow(clientId)
      // Hosts register again for this error only, as they must after a change of the key.
      return { status: 400, body: isUnknown ? { error: 'invalid_client' } : params }
    }
    if (this.#pending >= MAX_PENDING) return { status: 503, body: { error: 'temporarily_unavailable' } }
    this.#pending++
    try {
      const answer = await requestGrant({
        provider: await this.#providerNow(),
        client: this.#client.client,
        params,
        reach: reachOfIssuer(this.#options),
        fetch: this.#fetch,
        now: this.#clock.wallMs,
      })
      const { access_token: access, token_type: type, expires_in: seconds, scope, refresh_token: refresh } = answer
      if (typeof access !== 'string') throw authRequired('the provider sent no access token')
      return {
        status: 200,
        body: {
          access_token: access,
          token_type: type ?? 'Bearer',
          ...(seconds !== undefined && { expires_in: seconds }),
          ...(typeof scope === 'string' && { scope }),
          ...(typeof refresh === 'string' && { refresh_token: this.#seal.seal(REFRESH, { c: clientId, k: refresh }) }),
        },
      }
    } catch (error) {
      if (isGrantEnded(error)) return { status: 400, body: INVALID_GRANT }
      throw error
    } finally {
      this.#pending--
    }
  }

  /** Returns the parameters of the provider's grant for a host's token request; `error`: the request is invalid. */
  #grantOf(form: URLSearchParams, clientId: string, issuer: string) {
    const kind = form.get('grant_type')
    const resource = form.get('resource') ?? undefined
    if (resource !== undefined && !this.#isOurs(resource)) return { error: 'invalid_target' }
    const passed = this.#client.sendsResource ? resource : undefined
    if (kind === 'refresh_token') {
      const opened = this.#seal.open(REFRESH, form.get('refresh_token') ?? '')
      if (opened?.c !== clientId) return INVALID_GRANT
      return { grant_type: 'refresh_token', refresh_token: opened.k, resource: passed }
    }
    if (kind !== 'authorization_code') return { error: 'unsupported_grant_type' }
    const opened = this.#seal.open(CODE, form.get('code') ?? '')
    const verifier = form.get('code_verifier') ?? ''
    // Hosts of OAuth 2.1 do not repeat the redirect URI (draft 13, 10.2): PKCE protects the code.
    const isGood =
      opened?.c === clientId &&
      opened.r === (form.get('redirect_uri') ?? opened.r) &&
      VERIFIER.test(verifier) &&
      createHash('sha256').update(verifier).digest('base64url') === opened.p
    if (!isGood) return INVALID_GRANT
    return {
      grant_type: 'authorization_code',
      code: opened.k,
      redirect_uri: `${issuer}/oauth/callback`,
      code_verifier: verifier,
      resource: passed,
    }
  }

  #isOurs(resource: string): boolean {
    const origin = originOf(this.#options)
    const uri = plainUri(resource)
    return uri === origin || uri.startsWith(`${origin}/`)
  }

  #providerNow(): Promise<Provider> {
    if (this.#provider !== undefined && this.#provider.untilMs > this.#clock.monotonicMs())
      return Promise.resolve(this.#provider.value)
    return (this.#discovering ??= this.#discover().finally(() => (this.#discovering = undefined)))
  }

  /** Fetches the provider's metadata. While the provider cannot be reached, the cached metadata is used. Rejects with `Failure`. */
  async #discover(): Promise<Provider> {
    const reach = reachOfIssuer(this.#options)
    try {
      const value = await discoverIssuer(this.#options.issuer, '', { reach, fetch: this.#fetch })
      this.#provider = { value, untilMs: this.#clock.monotonicMs() + PROVIDER_MS }
      return value
    } catch (error) {
      const isUnreachable = error instanceof Failure && error.kind === 'unreachable'
      if (!isUnreachable || this.#provider === undefined) throw error
      this.#provider = { ...this.#provider, untilMs: this.#clock.monotonicMs() + RETRY_MS }
      return this.#provider.value
    }
  }
}

const UNREGISTERED = 'the application is not registered here; let it register again'
const BAD_DOCUMENT =
  'the document of the application cannot be read, or lacks its own client_id, a client_name or valid redirect_uris'
const INVALID_GRANT = { error: 'invalid_grant' } as const
