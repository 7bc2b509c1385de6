/**
 * Who we are to an authorization server ([2026-07-28 basic/authorization/client-registration]; B245, B246): the configured client,
 * else our metadata document, else a client that is registered as we come. What one issuer knows us by is told no other.
 *
 * A client is registered without `scope`: one that was registered for what the first sign-in took could never step up. Only where a
 * server binds its clients to scopes is it registered again, with those that are wanted.
 */
import { asError } from '../../values/as-error.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import type { Reach } from './addresses.ts'
import type { Provider } from './discovery.ts'
import type { ClientOptions, SignInOptions } from './options.ts'
import type { Fetch } from './safe-fetch.ts'
import { union } from './scopes.ts'
import type { StoreKey, TokenStore } from './store.ts'
import type { TokenAuth } from './token-endpoint.ts'

export interface Registered {
  readonly client: ClientOptions
  readonly auth: TokenAuth | undefined
}

export interface RegistrationOptions {
  readonly provider: Provider
  readonly options: SignInOptions
  readonly redirectUri: string
  /** Where our own metadata document can be read, if anybody can read it. */
  readonly document: string | undefined
  readonly scope: string | undefined
  readonly reach: Reach
  readonly fetch: Fetch
  readonly store: TokenStore
  /** Wall clock in milliseconds. */
  readonly now: () => number
}

interface Stored extends Registered {
  readonly issuer: string
  /** All it may ever ask for, where the server says so; `undefined`: it does not say, and may ask for anything. */
  readonly scope?: string
  /** What was asked for when it was registered again: to ask for the same once more would change nothing. */
  readonly insisted?: string
  readonly expiresAt?: number
}

const AUTHS: readonly TokenAuth[] = ['none', 'client_secret_basic', 'client_secret_post']
/** A client that is about to expire is not begun with. */
const MARGIN_MS = 10 * 60_000

export const clientFor = async (registration: RegistrationOptions): Promise<Registered> => {
  const { provider, options, document } = registration
  if (options.client !== undefined) return { client: options.client, auth: undefined }
  const id = options.clientDocument ?? document
  if (provider.takesDocuments && id !== undefined) return { client: publicClient(id), auth: 'none' }
  if (provider.registrationEndpoint !== undefined) return registered(registration)
  throw new Failure('auth_required', `${provider.issuer} registers no clients: credentials.oauth needs a client_id`, {
    executed: 'no',
  })
}

/** What a client says of itself: the body of a registration, and our metadata document. */
export const clientMetadata = (redirectUri: string, auth: TokenAuth): Record<string, unknown> => ({
  client_name: 'Trunkline',
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: auth,
})

const registered = async (registration: RegistrationOptions): Promise<Registered> => {
  const { provider, redirectUri, scope, store, now } = registration
  const key = keyOf(provider, redirectUri)
  return store.exclusively(key, async () => {
    const known = store.read(key)
    const isGood = known?.issuer === provider.issuer && now() + MARGIN_MS < (known.expiresAt ?? Infinity)
    const isEnough = covers(known?.scope, scope) || (known?.insisted !== undefined && covers(known.insisted, scope))
    if (known !== undefined && isGood && isEnough) return known
    const fresh = await registerAsWanted(registration, isGood ? known?.scope : undefined)
    store.write(key, fresh)
    return fresh
  })
}

/** `bound`: scopes that the client we are known as is bound to, of which nothing is lost. */
const registerAsWanted = async (registration: RegistrationOptions, bound: string | undefined): Promise<Stored> => {
  const wanted = union(bound, registration.scope)
  const free = bound === undefined ? await register(registration, undefined).catch(unlessBadRequest(wanted)) : undefined
  if (free !== undefined && covers(free.scope, wanted)) return free
  const insisted = await register(registration, wanted).catch((error: unknown) => {
    if (free === undefined) throw error
    return free
  })
  return { ...insisted, ...(wanted !== undefined && { insisted: wanted }) }
}

/** A server may take no client that does not say what it will ask for. */
const unlessBadRequest =
  (wanted: string | undefined) =>
  (error: unknown): undefined => {
    if (wanted !== undefined && error instanceof Failure && error.facts.status === 400) return undefined
    throw error
  }

/**
 * The server refuses scopes to a client that is registered: it is bound to others, though its registration did not say so. The next
 * sign-in registers again, with those that it asks for.
 */
export const scopeRefused = (store: TokenStore, { issuer }: Pick<Provider, 'issuer'>, redirectUri: string): Promise<void> => {
  const key = keyOf({ issuer }, redirectUri)
  return store.exclusively(key, async () => {
    const known = store.read(key)
    if (known !== undefined && known.scope === undefined && known.insisted === undefined)
      store.write(key, { ...known, scope: '' })
  })
}

const keyOf = ({ issuer }: Pick<Provider, 'issuer'>, redirectUri: string): StoreKey<Stored> => ['client', issuer, redirectUri]

/** Whether a client that is bound to `bound` may ask for `wanted`. */
const covers = (bound: string | undefined, wanted: string | undefined): boolean => {
  if (bound === undefined || wanted === undefined) return true
  const all = bound.split(' ')
  return wanted.split(' ').every((scope) => all.includes(scope))
}

/** `scope`: what it is to be bound to; `undefined`: nothing is said of scopes. */
const register = async (
  { provider, redirectUri, reach, fetch }: RegistrationOptions,
  scope: string | undefined,
): Promise<Stored> => {
  const offered = provider.tokenAuth ?? ['client_secret_basic']
  const auth = AUTHS.find((method) => offered.includes(method)) ?? 'none'
  const isNative = isLoopbackHost(new URL(redirectUri).hostname)
  const metadata = { ...clientMetadata(redirectUri, auth), application_type: isNative ? 'native' : 'web', scope }
  const { status, text } = await fetch({
    url: provider.registrationEndpoint ?? '',
    reach,
    body: JSON.stringify(metadata),
    headers: { 'content-type': 'application/json' },
  }).catch((error: unknown) => {
    throw away(asError(error).message, error)
  })
  if (status >= 500 || status === 429 || status === 408) throw away(`${provider.issuer} answered HTTP ${status}`)
  const { client_id: id, client_secret: secret, ...rest } = parseJsonObject(text) ?? {}
  if (status >= 300 || typeof id !== 'string')
    throw new Failure('auth_required', `${provider.issuer} did not register us (HTTP ${status})`, { executed: 'no', status })
  const expires = Number(rest['client_secret_expires_at'] ?? 0)
  return {
    issuer: provider.issuer,
    client: { ...publicClient(id), secret: typeof secret === 'string' ? secret : undefined },
    auth:
      AUTHS.find((method) => method === rest['token_endpoint_auth_method']) ?? (typeof secret === 'string' ? undefined : 'none'),
    ...(expires > 0 && { expiresAt: expires * 1_000 }),
    ...(typeof rest['scope'] === 'string' && { scope: rest['scope'] }),
  }
}

const away = (message: string, cause?: unknown): Failure =>
  new Failure('unreachable', `we could not be registered: ${message}`, { executed: 'no', retryable: true }, cause)

const publicClient = (id: string): ClientOptions => ({ id, secret: undefined, privateKey: undefined, algorithm: '' })
