/**
 * A person's credential at one server: a token that is refreshed while its refresh token is valid, and the sign-in otherwise (BRIDGING
 * 6.2, 6.4).
 *
 *     no token ──────────────┐                    ┌─ refreshed ──► try again
 *     401 ── refresh token? ─┼─ no ──► sign in    │
 *                            └─ yes ─► one refresh┴─ refused ───► sign in
 *     403 insufficient_scope ──► sign in, with the union of scopes
 */
import { asError } from '../../values/as-error.ts'
import { setBounded } from '../../values/bounded-map.ts'
import { Failure } from '../../wire/message/failure.ts'
import { authorizationCode, beginAuthorization } from '../authorization-server/authorization.ts'
import type { PendingAuthorization } from '../authorization-server/authorization.ts'
import { readChallenge } from './challenge.ts'
import { ClientIssuer } from '../authorization-server/client-issuer.ts'
import type { Credential, Interactive, Rejection, Return } from './credential.ts'
import { discover, discoverAt, discoverIssuer, isSameIssuer, issuersOf } from '../authorization-server/discovery.ts'
import type { DiscoveryOptions, Provider } from '../authorization-server/discovery.ts'
import type { OAuthEnvironment } from './environment.ts'
import { noToken } from '../authorization-server/failures.ts'
import { GrantPause } from '../authorization-server/grant-pause.ts'
import { reachOf } from '../fetch/reach.ts'
import type { SignInOptions } from '../credential-options.ts'
import { clientFor, scopeRefused } from '../authorization-server/registration.ts'
import type { Registered } from '../authorization-server/registration.ts'
import { AnswerTimeout } from '../fetch/safe-fetch.ts'
import { chooseScopes, union } from '../authorization-server/scopes.ts'
import type { StoreKey } from '../authorization-server/token-store.ts'
import {
  GrantRefused,
  isClientRefused,
  isFresh,
  isGrantEnded,
  isUnexplained,
  requestTokens,
  Unavailable,
  waitFor,
} from '../authorization-server/token-endpoint.ts'
import type { Tokens } from '../authorization-server/token-endpoint.ts'

export interface UserCredentialOptions {
  /** Server key. */
  readonly key: string
  readonly server: URL
  /** Who signs in; the shared principal if the operator signs in for all. */
  readonly principal: string
  readonly signIn: SignInOptions
}

/** The stored record: the tokens, and everything needed to refresh them. Its members' names are part of the stored form. */
interface Held extends Tokens {
  readonly provider: Pick<Provider, 'issuer' | 'resource' | 'tokenEndpoint' | 'tokenAuth'>
  readonly registered: Registered
  /** Requested scopes, to which stepping up adds. */
  readonly asked: string | undefined
}

/** Sign-ins for the same missing scopes (B247). */
const MOST_STEPS = 2
/** Different missing scopes: a server may invent them. */
const MOST_MISSING = 32

const MOVED = 'the server has another authorization server now'

export class UserCredential implements Credential, Interactive {
  readonly interactive = this
  readonly bearer: { value: string | undefined } = { value: undefined }
  readonly principal: string
  readonly #options: UserCredentialOptions
  readonly #environment: OAuthEnvironment
  readonly #pause = new GrantPause()
  readonly #storeKey: StoreKey<Held>
  readonly #listeners = new Set<() => void>()
  readonly #endListeners = new Set<(failure: Failure) => void>()
  #held: Held | undefined
  /** Issuer and scopes of the latest sign-in, which the next one keeps, also after this one has ended (B247). */
  #before: { readonly issuer: string; readonly asked: string | undefined } | undefined
  /** `WWW-Authenticate` of the latest rejection, for the next sign-in; empty: the rejection had none. */
  #challenge: string | undefined
  /** Id of the client of a sign-in without an answer: the authorization server may have forgotten its registration. */
  #unanswered: string | undefined
  #refreshing: Promise<void> | undefined
  /** Number of sign-ins that requested missing scopes, by these scopes; the latest last. */
  readonly #steps = new Map<string, number>()
  readonly #unwatch: () => void

  constructor(options: UserCredentialOptions, environment: OAuthEnvironment) {
    this.principal = options.principal
    this.#options = options
    this.#environment = environment
    this.#storeKey = ['tokens', options.key, options.server.href, options.principal]
    this.#adopt(this.#stored())
    this.#unwatch = environment.store.watch(this.#storeKey, () => this.#changedElsewhere())
  }

  close(): void {
    this.#unwatch()
    this.#listeners.clear()
    this.#endListeners.clear()
    this.#environment.secrets(this, [])
  }

  /** Applies a sign-in or refresh of another replica. */
  #changedElsewhere(): void {
    const wasSignedIn = this.isSignedIn
    this.#adopt(this.#stored())
    this.#challenge = undefined
    if (!wasSignedIn) this.#changed()
    else if (!this.isSignedIn) this.#ended('the sign-in has ended')
  }

  #changed(): void {
    for (const changed of this.#listeners) changed()
  }

  get isSignedIn(): boolean {
    return this.#held !== undefined
  }

  onChange(callback: () => void): void {
    this.#listeners.add(callback)
  }

  onEnd(callback: (failure: Failure) => void): void {
    this.#endListeners.add(callback)
  }

  ready(): Promise<void> | undefined {
    if (this.#held === undefined) {
      this.#adopt(this.#stored())
      // A request without a token is sent first: a sign-in begins with the server's challenge.
      if (this.#held === undefined)
        return this.#challenge === undefined ? undefined : this.#findElsewhere(undefined, 'not signed in yet')
      // Another process of the folder has signed in.
      this.#changed()
    }
    const nowMs = this.#environment.now()
    if (isFresh(this.#held, nowMs) || this.#held.refreshToken === undefined) return undefined
    return waitFor(this.#refresh(), this.#held, nowMs)
  }

  async renew({ used, status, challenge }: Rejection): Promise<void> {
    if (this.#refreshing !== undefined) return this.#refreshing
    if (used !== this.bearer.value) return
    this.#challenge = challenge ?? ''
    if (status === 403) return this.#stepUp()
    if (this.#held?.refreshToken === undefined) return this.#findElsewhere(used, 'the server refuses the token')
    await this.#refresh()
  }

  /** Looks for another token than `used`: of another process, or of a replica whose sign-in was missed. Rejects if there is none. */
  async #findElsewhere(used: string | undefined, why: string): Promise<void> {
    await this.#environment.store.refresh(this.#storeKey)
    const stored = this.#stored()
    if (stored !== undefined) this.#adopt(stored)
    if (this.bearer.value === used) throw this.#needsSignIn(why)
  }

  async begin({ redirectUri, document }: Return): Promise<{ readonly url: string; readonly pending: PendingAuthorization }> {
    const { key, signIn, server } = this.#options
    const { fetch, store, now } = this.#environment
    const challenge = readChallenge(this.#challenge)
    const discovery = this.#discovery(challenge.resourceMetadata)
    const provider = signIn.issuer === undefined ? await discover(discovery) : await discoverAt(signIn.issuer, discovery)
    if (signIn.client !== undefined) {
      const own = new ClientIssuer(store, key, signIn.client.id, signIn.issuer !== undefined)
      own.check(provider.issuer)
      own.keep(provider.issuer)
    }
    const scope = chooseScopes({
      configured: signIn.scopes,
      challenged: challenge.scope,
      ofResource: provider.resourceScopes,
      ofIssuer: provider.scopes,
      before: this.#before?.issuer === provider.issuer ? this.#before.asked : undefined,
      offline: signIn.offline ?? true,
    })
    const reach = reachOf(server, signIn.isPrivate)
    const unanswered = this.#unanswered
    const options = signIn
    const registered = await clientFor({ provider, options, redirectUri, document, scope, unanswered, reach, fetch, store, now })
    this.#unanswered = registered.client.id
    return beginAuthorization(provider, registered, { redirectUri, scope, reach })
  }

  async finish(pending: PendingAuthorization, answer: URLSearchParams): Promise<void> {
    const { provider, registered, redirectUri, verifier, scope } = pending
    this.#unanswered = undefined
    const code = await this.#codeOf(pending, answer)
    const tokens = await this.#request(provider, registered, {
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
      resource: provider.resource,
    }).catch((error: unknown) => {
      if (isClientRefused(error)) this.#unanswered = registered.client.id
      throw noToken(error)
    })
    const held: Held = { ...tokens, provider: storedProvider(provider), registered, asked: scope }
    await this.#environment.store.exclusively(this.#storeKey, async () => this.#keep(held))
    this.#countSteps(scope)
    this.#challenge = undefined
    this.#changed()
  }

  async #codeOf(pending: PendingAuthorization, answer: URLSearchParams): Promise<string> {
    try {
      return authorizationCode(pending, answer)
    } catch (error) {
      const { cause } = asError(error)
      if (cause instanceof GrantRefused && cause.code === 'invalid_scope')
        await scopeRefused(this.#environment.store, pending.provider, pending.redirectUri)
      throw error
    }
  }

  /** Counts a sign-in for all missing scopes that it requested. `offline_access` is not a scope of the server. */
  #countSteps(scope: string | undefined): void {
    const requested = union(scope, 'offline_access')
    for (const [missing, steps] of this.#steps) if (union(requested, missing) === requested) this.#steps.set(missing, steps + 1)
  }

  /** Requests a sign-in for the missing scopes; after two of them more scopes do not help. */
  #stepUp(): never {
    const missing = readChallenge(this.#challenge).scope ?? ''
    const { scopes } = this.#options.signIn
    if (scopes !== undefined && missing !== '' && !missing.split(' ').every((scope) => scopes.includes(scope)))
      throw new Failure(
        'forbidden',
        `the server wants the scopes ${missing}; credentials.oauth.scopes does not name all of them`,
        { executed: 'no', status: 403 },
      )
    const steps = this.#steps.get(missing) ?? 0
    if (steps >= MOST_STEPS)
      throw new Failure('forbidden', 'the server wants more scopes than signing in has brought', { executed: 'no', status: 403 })
    setBounded(this.#steps, missing, steps, MOST_MISSING)
    throw this.#needsSignIn('the server wants more scopes', 'scope_required')
  }

  #refresh(): Promise<void> {
    return (this.#refreshing ??= this.#refreshOnce().finally(() => (this.#refreshing = undefined)))
  }

  /** Refreshes once for all waiting calls of all processes: a second process finds the tokens of the first (F-17). */
  async #refreshOnce(): Promise<void> {
    const { store } = this.#environment
    const before = this.#held?.accessToken
    await store.exclusively(this.#storeKey, async () => {
      const held = this.#stored()
      if (held !== undefined && held.accessToken !== before) return this.#adopt(held)
      if (held?.refreshToken === undefined) throw this.#lost('no longer signed in')
      if (this.#challenge !== undefined && !(await this.#isStillTrusted(held))) throw this.#lost(MOVED)
      try {
        this.#pause.check()
        const { registered, refreshToken } = held
        let { provider } = held
        const params = { grant_type: 'refresh_token', refresh_token: refreshToken, resource: provider.resource }
        const tokens = await this.#request(provider, registered, params).catch(async (error: unknown) => {
          const moved = mayHaveMoved(error) ? await this.#movedFrom(provider) : undefined
          if (moved === undefined) throw error
          return this.#request((provider = moved), registered, params)
        })
        this.#keep({ ...held, ...tokens, provider, refreshToken: tokens.refreshToken ?? refreshToken })
      } catch (error) {
        if (isClientRefused(error)) this.#unanswered = held.registered.client.id
        if (isGrantEnded(error) || isClientRefused(error)) {
          // A process that could not be locked out may have renewed it meanwhile: its tokens are not removed.
          await store.refresh(this.#storeKey)
          const latest = this.#stored()
          if (latest !== undefined && latest.accessToken !== before) return this.#adopt(latest)
          store.remove(this.#storeKey)
          throw this.#lost(`the sign-in has ended: ${asError(error).message}`)
        }
        // The tokens are kept: a later renewal may work.
        if (isUnexplained(error)) throw this.#needsSignIn(`the token could not be renewed (${error.code})`)
        // No request with the expired token is sent, so no challenge of the server can show this.
        if (!(await this.#isStillTrusted(held))) throw this.#lost(MOVED)
        // Signing in again would not remove any other cause.
        throw noToken(this.#pause.begun(error), 'the token could not be renewed')
      }
    })
  }

  /** The provider with another token endpoint; `undefined`: the metadata of its issuer names the same, or cannot be read. */
  async #movedFrom({ issuer, resource, tokenEndpoint: before }: Held['provider']): Promise<Held['provider'] | undefined> {
    const found = await discoverIssuer(issuer, resource, this.#discovery(undefined)).catch(() => undefined)
    const now = found?.tokenEndpoint
    return found === undefined || now === before ? undefined : storedProvider(found)
  }

  /** Whether the server still names the issuer of the refresh token, which is sent only to that issuer (B245). */
  async #isStillTrusted({ provider }: Held): Promise<boolean> {
    const { resourceMetadata } = readChallenge(this.#challenge)
    const { signIn } = this.#options
    if (signIn.issuer !== undefined) return isSameIssuer(signIn.issuer, provider.issuer)
    const issuers = await issuersOf(this.#discovery(resourceMetadata)).catch(() => undefined)
    return issuers === undefined || issuers.some((issuer) => isSameIssuer(issuer, provider.issuer))
  }

  #request(
    provider: Held['provider'],
    { client, auth }: Registered,
    params: Record<string, string | undefined>,
  ): Promise<Tokens> {
    const { fetch, now } = this.#environment
    const reach = reachOf(this.#options.server, this.#options.signIn.isPrivate)
    return requestTokens({ provider, client, auth, params, reach, fetch, now })
  }

  #discovery(metadataUrl: string | undefined): DiscoveryOptions {
    const { server, signIn } = this.#options
    return { server, metadataUrl, reach: reachOf(server, signIn.isPrivate), fetch: this.#environment.fetch }
  }

  #stored(): Held | undefined {
    return this.#environment.store.read(this.#storeKey)
  }

  #keep(held: Held): void {
    this.#environment.store.write(this.#storeKey, held)
    this.#adopt(held)
  }

  #adopt(held: Held | undefined): void {
    this.#held = held
    this.bearer.value = held && `Bearer ${held.accessToken}`
    if (held === undefined) return
    const { accessToken, refreshToken, registered, provider, asked } = held
    this.#before = { issuer: provider.issuer, asked }
    const secrets = [accessToken, refreshToken, registered.client.secret].filter((secret) => secret !== undefined)
    this.#environment.secrets(this, secrets)
  }

  #lost(why: string): Failure {
    this.#adopt(undefined)
    this.#steps.clear()
    return this.#ended(why)
  }

  #ended(why: string): Failure {
    const failure = this.#needsSignIn(why)
    for (const ended of this.#endListeners) ended(failure)
    return failure
  }

  #needsSignIn(why: string, kind: 'auth_required' | 'scope_required' = 'auth_required'): Failure {
    return new Failure(kind, `needs sign-in: ${why}`, { executed: 'no', signIn: true })
  }
}

/** Whether a token endpoint may be elsewhere by now: it is not found, or does not accept connections. */
const mayHaveMoved = (error: unknown): boolean =>
  isUnexplained(error) || !(error instanceof GrantRefused || error instanceof Unavailable || error instanceof AnswerTimeout)

/** Returns the members of a provider that refreshing needs. */
const storedProvider = ({ issuer, resource, tokenEndpoint, tokenAuth }: Provider): Held['provider'] => ({
  issuer,
  resource,
  tokenEndpoint,
  tokenAuth,
})
