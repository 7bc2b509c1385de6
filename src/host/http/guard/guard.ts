/**
 * The one guard before all routes: every request to a non-public path needs a credential (BRIDGING 5.1 row 2, 6.1; T-04). It answers 401
 * and 403 itself; the reason is only logged.
 */
import type { Admitted, Identity } from '../../../auth/identity.ts'
import type { BrowserSignIn, BrowserSignIns } from '../../../auth/inbound/browser-sign-in.ts'
import type { AuthorizationProxy } from '../../../auth/inbound/authorization-proxy.ts'
import { CredentialVerifier, VerifierBusy } from '../../../auth/inbound/credential-verifier.ts'
import { entranceScopes, issuersOf, serverOfScope } from '../../../auth/inbound/verify/inbound-options.ts'
import type { AuthOptions } from '../../../auth/inbound/verify/inbound-options.ts'
import { ENDED, endpointRefusal, isForResource, originOf, SKEW_MS } from '../../../auth/inbound/verify/claims.ts'
import { SYSTEM_CLOCK } from '../../../auth/inbound/verify/clock.ts'
import type { Fetch } from '../../../auth/fetch/safe-fetch.ts'
import type { Seal } from '../../../auth/seal.ts'
import type { SubjectTokens } from '../../../auth/subject-tokens.ts'
import { ProtectedResource } from '../../../auth/inbound/protected-resource.ts'
import type { Challenge } from '../../../auth/inbound/protected-resource.ts'
import { serverKeyAt } from '../../../auth/inbound/server-endpoints.ts'
import { digestOf } from '../../../auth/inbound/static-tokens.ts'
import type { HeadNotes, HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { reportRefused } from '../../denials.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { asError } from '../../../values/as-error.ts'
import { lazily } from '../../../values/lazily.ts'
import { TokenLog } from './token-log.ts'

const ISSUER_METADATA = '/.well-known/oauth-authorization-server'
const QUERY_TOKEN = /(^|&)access_token=/
const JSON_DOCUMENT = { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=300' }
const JSON_BODY = { 'Content-Type': 'application/json' }
const SOON = { 'Retry-After': '2' }
const NO_SCOPES: readonly string[] = []

const REASONS = { 400: 'invalid', 401: 'unauthorized', 403: 'forbidden' } as const
const TEXTS = {
  invalid_token: 'a valid access token for this endpoint is needed',
  invalid_request: 'an access token belongs in one Authorization header, and nowhere else',
  insufficient_scope: 'the access token does not reach that far',
} as const
/** Body for a valid token without access, for the person at the host. */
const UNMAPPED = JSON.stringify({
  error: 'access_denied',
  error_description:
    'you are signed in, but your account may use nothing here: no rule of auth.map names it; ask the administrator of Trunkline, whose log has the reason',
})

export class Guard {
  readonly resource: ProtectedResource | undefined
  readonly #verifier: CredentialVerifier
  readonly #context: Pick<ListenerContext, 'log' | 'denied'>
  readonly #commonScopes: readonly string[]
  /** All scopes of the configuration. */
  readonly #scopes: ReadonlySet<string>
  readonly #relaysMetadata: boolean
  readonly #subjects: SubjectTokens
  readonly #path: string
  readonly #log: TokenLog
  readonly #signIns: (() => Promise<BrowserSignIns>) | undefined
  /** `undefined`: hosts register at the issuer. */
  readonly proxy: (() => Promise<AuthorizationProxy>) | undefined
  readonly #origin: string

  /** `path`: of Streamable HTTP. */
  constructor(
    auth: AuthOptions,
    path: string,
    fetch: Fetch,
    seal: Seal,
    context: Pick<ListenerContext, 'log' | 'denied' | 'subjects'>,
  ) {
    this.#subjects = context.subjects
    const { oauth } = auth
    this.resource = oauth && new ProtectedResource(oauth, path)
    const log = new TokenLog(context.log)
    this.#log = log
    const { client, proxiesRegistration = false } = oauth ?? {}
    if (oauth !== undefined && client !== undefined && proxiesRegistration)
      this.proxy = lazily(async () => {
        const module = await import('../../../auth/inbound/authorization-proxy.ts')
        return new module.AuthorizationProxy(oauth, client, seal, fetch, SYSTEM_CLOCK)
      })
    if (oauth !== undefined && issuersOf(oauth).some((issuer) => issuer.client !== undefined))
      this.#signIns = lazily(async () => {
        const module = await import('../../../auth/inbound/browser-sign-in.ts')
        return new module.BrowserSignIns(oauth, fetch, SYSTEM_CLOCK)
      })
    this.#origin = oauth === undefined ? '' : originOf(oauth)
    this.#verifier = new CredentialVerifier(auth, fetch, (why) => log.refused(why))
    this.#context = context
    this.#path = path
    this.#commonScopes = oauth === undefined ? NO_SCOPES : entranceScopes(oauth)
    this.#scopes = new Set(oauth?.scopes)
    this.#relaysMetadata = oauth?.relaysMetadata === true
  }

  /** Returns the challenge for a token without the required scopes. `scopes`: required besides the common ones (B238). */
  readonly challenge = (path: string, scopes: readonly string[]): string =>
    this.resource?.challenge(path, { error: 'insufficient_scope', scopes: [...this.#commonScopes, ...scopes] }) ??
    plainChallenge('insufficient_scope')

  /** Resolves with the principal of a token entered on a sign-in page; `undefined`: invalid. */
  readonly principalOf = async (token: string): Promise<string | undefined> => (await this.identityOf(token))?.principal

  /** Resolves with the issuer at which the owner of a principal can sign in; `undefined`: only a token proves the principal. */
  readonly signInOf = async (principal: string): Promise<BrowserSignIn | undefined> => (await this.#signIns?.())?.of(principal)

  /** Resolves with the identity of a token; `undefined`: invalid at the MCP endpoint. Rejects as `CredentialVerifier.admit`. */
  readonly identityOf = async (token: string): Promise<Identity | undefined> => {
    const admitted = await this.#verifier.admit(token)
    if (admitted === undefined) return undefined
    const { audiences, identity } = admitted
    const isOurs =
      audiences === undefined || this.resource === undefined || isForResource(audiences, this.resource.uriOf(this.#path))
    return isOurs ? identity : undefined
  }

  /** Serves the documents that hosts read before they have a credential. False: another path. */
  serves(request: HttpRequest): boolean {
    const { path } = request
    if (!path.startsWith('/.well-known/')) return false
    const document = this.resource?.documentAt(path)
    const isRelayed = this.#relaysMetadata && path === ISSUER_METADATA
    if (document === undefined && !isRelayed) {
      reportRefused(this.#context, request, 'path', 404)
      request.reply(404, {})
    } else if (request.method !== 'GET') request.reply(405, { Allow: 'GET' })
    else if (document === undefined) this.#relayMetadata(request)
    else request.reply(200, JSON_DOCUMENT, [Buffer.from(document)])
    return true
  }

  /** Returns the identity of a request; `undefined`: the request was refused and answered. A promise only for an uncached credential. */
  check(request: HttpRequest): Admitted | undefined | Promise<Admitted | undefined> {
    if (request.query !== '' && QUERY_TOKEN.test(request.query)) return this.#refuse(request, 400, 'invalid_request')
    const credential = credentialOf(request)
    if (credential === 'repeated') return this.#refuse(request, 400, 'invalid_request')
    if (credential === undefined) return this.#refuse(request, 401, undefined)
    const { token, digest } = credential
    const found = this.#verifier.admit(token, digest)
    return found instanceof Promise ? this.#later(request, token, found) : this.#judge(request, token, found)
  }

  async #later(request: HttpRequest, token: string, verified: Promise<Admitted | undefined>): Promise<Admitted | undefined> {
    let isDisconnected = false
    request.onDisconnect(() => (isDisconnected = true))
    try {
      const admitted = this.#judge(request, token, await verified)
      return isDisconnected ? undefined : admitted
    } catch (error) {
      const status = error instanceof VerifierBusy ? 429 : 503
      this.#log.unverified(asError(error))
      reportRefused(this.#context, request, 'overloaded', status, { detail: 'the token could not be verified' })
      request.reply(status, SOON)
      return undefined
    }
  }

  /** Checks that the token is valid for this endpoint and has the common scopes. */
  #judge(request: HttpRequest, token: string, admitted: Admitted | undefined): Admitted | undefined {
    if (admitted === undefined) return this.#refuse(request, 401, 'invalid_token')
    const { audiences, identity, untilMs, unmapped } = admitted
    const uri = audiences === undefined ? undefined : this.resource?.uriOf(request.path)
    if (audiences !== undefined && uri !== undefined && !isForResource(audiences, uri)) {
      this.#log.refused(endpointRefusal(uri, audiences, this.#origin))
      return this.#refuse(request, 401, 'invalid_token', undefined, identity.principal)
    }
    if (unmapped !== undefined) return this.#refuseUnmapped(request, identity.principal)
    if (audiences !== undefined && this.#subjects.isWanted) {
      // Within the minute of clock skew after its expiry no authorization server exchanges the token, so its calls would fail (F-27).
      const isEnded = Date.now() >= untilMs - SKEW_MS
      if (isEnded) this.#log.refused(ENDED)
      if (isEnded || this.#subjects.isRefused(identity.principal, token))
        return this.#refuse(request, 401, 'invalid_token', undefined, identity.principal)
      this.#subjects.remember(identity.principal, token)
    }
    const { scopes } = identity
    if (scopes === undefined || this.#scopes.size === 0) return admitted
    const required = this.#scopesAt(request.path)
    if (required.every((scope) => includes(scopes, scope))) return admitted
    return this.#refuse(request, 403, 'insufficient_scope', required, identity.principal)
  }

  /** Returns the scopes that a path requires of every caller. The router checks those that an operation requires in addition. */
  #scopesAt(path: string): readonly string[] {
    const server = serverKeyAt(path)
    const scope = `mcp:${server}`
    return server !== undefined && this.#scopes.has(scope) ? [...this.#commonScopes, scope] : this.#commonScopes
  }

  #refuse(
    request: HttpRequest,
    status: 400 | 401 | 403,
    error: Challenge['error'],
    scopes: readonly string[] = this.resource?.advertised(request.path) ?? NO_SCOPES,
    principal?: string,
  ): undefined {
    const { path } = request
    this.#context.log.debug({ path, status, error, client: request.client }, 'a request was refused')
    reportRefused(this.#context, request, REASONS[status], status, { principal, detail: error ?? 'no token' })
    const challenge = this.resource?.challenge(request.path, { error, scopes }) ?? plainChallenge(error)
    const body = { error: error ?? 'invalid_token', error_description: TEXTS[error ?? 'invalid_token'] }
    request.reply(status, { ...JSON_BODY, 'WWW-Authenticate': challenge }, [Buffer.from(JSON.stringify(body))])
    return undefined
  }

  /** Refuses without a challenge, since signing in again would give the same result. */
  #refuseUnmapped(request: HttpRequest, principal: string): undefined {
    reportRefused(this.#context, request, 'forbidden', 403, { principal, detail: 'no rule of auth.map holds' })
    request.reply(403, JSON_BODY, [Buffer.from(UNMAPPED)])
    return undefined
  }

  #relayMetadata(request: HttpRequest): void {
    this.#verifier.issuerMetadata().then(
      (text = '') => request.reply(200, JSON_DOCUMENT, [Buffer.from(text)]),
      (error: unknown) => {
        this.#context.log.warn({ error: asError(error).message }, 'the metadata of the authorization server cannot be relayed')
        request.reply(503, SOON)
      },
    )
  }
}

/** Whether the granted scopes include `scope`. The write scope of a server includes its read scope. */
const includes = (granted: readonly string[], scope: string): boolean =>
  granted.includes(scope) || (serverOfScope(scope) !== undefined && granted.includes(`${scope}:write`))

/** Returns the token of an `Authorization` header; `undefined`: no header, or another scheme. */
const bearerOf = (header: string | undefined): string | undefined =>
  header !== undefined && header.length > 7 && header.slice(0, 7).toLowerCase() === 'bearer ' ? header.slice(7).trim() : undefined

/** Returns token and digest. A token is hashed once for all requests with the same head on one connection. */
const credentialOf = (request: HttpRequest): HeadNotes['credential'] | 'repeated' => {
  const { notes } = request
  if (notes?.credential !== undefined) return notes.credential
  // node:http uses the first of two headers; a proxy may have checked the second.
  if (request.count('authorization') > 1) return 'repeated'
  const token = bearerOf(request.header('authorization'))
  const credential = token === undefined ? undefined : { token, digest: digestOf(token) }
  if (notes !== undefined) notes.credential = credential
  return credential
}

/** Returns the challenge without an authorization server. */
const plainChallenge = (error: Challenge['error']): string =>
  error === undefined ? 'Bearer realm="trunkline"' : `Bearer realm="trunkline", error="${error}"`
