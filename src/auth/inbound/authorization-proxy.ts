/**
 * Registration for hosts whose provider has none: Trunkline as an authorization server that passes people and codes on to the provider, with
 * the one client that an administrator registered there ([2026-07-28 basic/security_best_practices], Confused Deputy; BRIDGING 6.3.5).
 *
 *     host ── authorize ──► consent for this client, each time ── sealed state ──► provider
 *     host ◄── our code ─── same browser, state opened ◄────────── its code ────── provider
 *     host ── our code, verifier ──► token ── its code, the same verifier ──► provider
 *
 * The surprise: no request is stored. What must come back is sealed, so every replica can go on with it; a code is good once because the
 * provider's code in it is. The host's challenge goes to the provider as it is: PKCE is checked here and there.
 */
import { createHash } from 'node:crypto'
import { Failure } from '../../wire/message/failure.ts'
import { discoverIssuer } from '../oauth/discovery.ts'
import type { Provider } from '../oauth/discovery.ts'
import { reachOfIssuer } from '../oauth/environment.ts'
import { browserUrl } from '../oauth/authorization.ts'
import type { Fetch } from '../oauth/safe-fetch.ts'
import { GrantRefused, requestGrant } from '../oauth/token-endpoint.ts'
import type { Purpose, Seal } from '../seal.ts'
import type { ClientAtIssuer, ResourceServerOptions } from './inbound-options.ts'
import type { Clock } from './resource-server.ts'
import { HostClients, isRedirectOf } from './host-clients.ts'
import type { HostClient } from './host-clients.ts'

/** What a host asks for, once it is certain which host. */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly challenge: string
  readonly state: string | undefined
  readonly scope: string | undefined
  readonly resource: string | undefined
}

/** What becomes of a request to authorize: a question to the person, an error for the host, or a page where no host is certain. */
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
/** Requests to the provider at a time. */
const MAX_PENDING = 64
/** Provider metadata is read again after it. */
const PROVIDER_MS = 600_000
/** Until a provider that could not be reached is asked again, where it is known what it said before. */
const RETRY_MS = 30_000
const MAX_PARAM = 2_048
/** Of [RFC 7636] 4.1 and 4.2. */
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

  /** [RFC 8414] metadata of the proxy. `issuer`: its own identifier, origin and path without a slash at the end. */
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

  /** Judges a request to authorize. An error goes to a redirect URI only after that URI is certain to be the client's. */
  async ask(params: URLSearchParams, issuer: string): Promise<Asked> {
    const repeated = [...params.keys()].find((name) => name !== 'resource' && params.getAll(name).length > 1)
    if (repeated !== undefined) return { kind: 'refused', reason: 'a parameter of the request is repeated' }
    const id = params.get('client_id') ?? ''
    const client = id.length > 8_192 ? undefined : await this.clients.find(id)
    if (client === undefined) return { kind: 'refused', reason: 'the application is not registered here; let it register again' }
    const redirectUri = params.get('redirect_uri') ?? ''
    if (!isRedirectOf(client, redirectUri))
      return { kind: 'refused', reason: 'the application asks to be answered at an address that it did not register' }
    const state = params.get('state') ?? undefined
    const back = (error: string, description: string): Asked => ({
      kind: 'redirect',
      url: answerUrl(redirectUri, { error, error_description: description, state, iss: issuer }),
    })
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

  /** The request as a form field: valid for ten minutes, in this browser. */
  sealRequest(request: AuthorizationRequest, browser: string): string {
    return this.#seal.seal(CONSENT, { request, browser }, CONSENT_MS)
  }

  /** `undefined`: altered, too old, or of another browser. */
  openRequest(sealed: string, browser: string): AuthorizationRequest | undefined {
    const opened = this.#seal.open(CONSENT, sealed)
    return opened?.browser === browser ? opened.request : undefined
  }

  /** The person refused. */
  refuse({ redirectUri, state }: AuthorizationRequest, issuer: string): string {
    return answerUrl(redirectUri, { error: 'access_denied', state, iss: issuer })
  }

  /** The person consented in `browser`: where to send it. Rejects with `Failure`. */
  async depart(request: AuthorizationRequest, browser: string, issuer: string): Promise<string> {
    const provider = await this.#providerNow()
    if (provider.authorizationEndpoint === undefined)
      throw new Failure('auth_required', `${provider.issuer} names no authorization endpoint`, { executed: 'no' })
    const url = browserUrl(provider.authorizationEndpoint, reachOfIssuer(this.#options))
    const { clientId, redirectUri, challenge, state, resource } = request
    const params = {
      response_type: 'code',
      client_id: this.#client.client.id,
      redirect_uri: `${issuer}/oauth/callback`,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      scope: this.#client.scopes?.join(' ') ?? request.scope,
      resource: this.#client.sendsResource ? resource : undefined,
      state: this.#seal.seal(STATE, { c: clientId, r: redirectUri, p: challenge, s: state, b: browser }, CONSENT_MS),
    }
    for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
    return url.href
  }

  /** The provider sent the browser back: where the host gets its answer. `undefined`: this browser did not consent. Rejects with `Failure`. */
  async arrive(answer: URLSearchParams, browser: string | undefined, issuer: string): Promise<string | undefined> {
    const opened = this.#seal.open(STATE, answer.get('state') ?? '')
    if (opened === undefined || browser === undefined || opened.b !== browser) return undefined
    const provider = await this.#providerNow()
    const issuers = answer.getAll('iss')
    if (issuers.length === 0 ? provider.tellsIssuer : issuers.length > 1 || issuers[0] !== provider.issuer)
      throw new Failure('auth_required', 'the answer is not from the authorization server that was asked', { executed: 'no' })
    const { c: clientId, r: redirectUri, p: challenge, s: state } = opened
    const error = answer.get('error')
    const code = answer.get('code')
    if (error !== null || code === null || code === '') {
      const known = error !== null && /^[a-z_]{1,40}$/.test(error) ? error : 'server_error'
      return answerUrl(redirectUri, { error: known, state, iss: issuer })
    }
    const own = this.#seal.seal(CODE, { c: clientId, r: redirectUri, p: challenge, k: code }, CODE_MS)
    return answerUrl(redirectUri, { code: own, state, iss: issuer })
  }

  /** A token request of a host. Nothing of the provider but its tokens for Trunkline leaves here. */
  async token(form: URLSearchParams, issuer: string): Promise<TokenAnswer> {
    const clientId = form.get('client_id') ?? ''
    const params = this.#grantOf(form, clientId, issuer)
    if ('error' in params) return { status: 400, body: params }
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
      if (typeof access !== 'string') throw new Failure('auth_required', 'the provider sent no access token', { executed: 'no' })
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
      if (error instanceof GrantRefused && error.code === 'invalid_grant') return { status: 400, body: INVALID_GRANT }
      throw error
    } finally {
      this.#pending--
    }
  }

  /** The provider's grant behind a host's; `error`: there is none for this client. */
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
    const isGood =
      opened?.c === clientId &&
      opened.r === form.get('redirect_uri') &&
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
    const { origin } = new URL(this.#options.audience)
    return resource === origin || resource.startsWith(`${origin}/`)
  }

  #providerNow(): Promise<Provider> {
    if (this.#provider !== undefined && this.#provider.untilMs > this.#clock.monotonicMs())
      return Promise.resolve(this.#provider.value)
    return (this.#discovering ??= this.#discover().finally(() => (this.#discovering = undefined)))
  }

  /** Rejects with `Failure`. While the provider cannot be reached, what it said before holds. */
  async #discover(): Promise<Provider> {
    const reach = reachOfIssuer(this.#options)
    try {
      const value = await discoverIssuer(this.#options.issuer, '', { reach, fetch: this.#fetch })
      this.#provider = { value, untilMs: this.#clock.monotonicMs() + PROVIDER_MS }
      return value
    } catch (error) {
      const isAway = error instanceof Failure && error.kind === 'unreachable'
      if (!isAway || this.#provider === undefined) throw error
      this.#provider = { ...this.#provider, untilMs: this.#clock.monotonicMs() + RETRY_MS }
      return this.#provider.value
    }
  }
}

const INVALID_GRANT = { error: 'invalid_grant' } as const

/** A redirect URI with an answer, whatever parameters of its own it has. */
const answerUrl = (redirectUri: string, params: Readonly<Record<string, string | undefined>>): string => {
  const url = new URL(redirectUri)
  for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}
