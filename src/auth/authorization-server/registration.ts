/**
 * The client at an authorization server ([2026-07-28 basic/authorization/client-registration]; B245, B246): the configured client, else our
 * client metadata document, else a dynamically registered client. A client is used only at its own issuer.
 *
 * Registers without `scope`, because a client bound to the scopes of the first sign-in could never step up. Registers again with the wanted
 * scopes only if the server binds clients to scopes. Registers again also if a sign-in got no answer: servers drop registrations without
 * notice, and show that only to the person.
 */
import { parseJsonObject } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import type { Reach } from '../fetch/reach.ts'
import type { Provider } from './discovery.ts'
import { authRequired, unreachable } from './failures.ts'
import type { ClientOptions, SignInOptions } from '../credential-options.ts'
import type { Fetch } from '../fetch/safe-fetch.ts'
import { union } from './scopes.ts'
import type { StoreKey, TokenStore } from './token-store.ts'
import { refusalText } from './token-endpoint.ts'
import type { TokenAuth } from './token-endpoint.ts'

export interface Registered {
  readonly client: ClientOptions
  readonly auth: TokenAuth | undefined
}

export interface RegistrationOptions {
  readonly provider: Provider
  readonly options: SignInOptions
  readonly redirectUri: string
  /** URL of our client metadata document; `undefined`: it cannot be reached. */
  readonly document: string | undefined
  readonly scope: string | undefined
  /** Id of the client whose last sign-in got no answer, or was refused; `undefined`: none. */
  readonly unanswered?: string | undefined
  readonly reach: Reach
  readonly fetch: Fetch
  readonly store: TokenStore
  /** Wall clock in milliseconds. */
  readonly now: () => number
}

/** The stored record. Its members' names are part of the stored form. */
interface Stored extends Registered {
  readonly issuer: string
  /** Scopes the client is bound to; absent: none are declared. */
  readonly scope?: string
  /** Scopes of a repeated registration: repeating it for the same scopes would change nothing. */
  readonly insisted?: string
  readonly expiresAt?: number
}

const AUTHS: readonly TokenAuth[] = ['none', 'client_secret_basic', 'client_secret_post']
/** A client that expires within this time is not used. */
const MARGIN_MS = 10 * 60_000

/** Resolves with the client for a sign-in; registers it if necessary. Rejects with `Failure`. */
export const clientFor = async (registration: RegistrationOptions): Promise<Registered> => {
  const { provider, options, document } = registration
  if (options.client !== undefined) return { client: options.client, auth: undefined }
  const id = options.clientDocument ?? document
  if (provider.takesDocuments && id !== undefined) return { client: publicClient(id), auth: 'none' }
  if (provider.registrationEndpoint !== undefined) return registered(registration)
  throw authRequired(`${provider.issuer} registers no clients: credentials.oauth needs a client_id`)
}

/** Returns the metadata of our client, for a registration and for the client metadata document. */
export const clientMetadata = (redirectUri: string, auth: TokenAuth): Record<string, unknown> => ({
  client_name: 'Trunkline',
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: auth,
})

const registered = async (registration: RegistrationOptions): Promise<Registered> => {
  const { provider, redirectUri, scope, unanswered, store, now } = registration
  const key = keyOf(provider, redirectUri)
  return store.exclusively(key, async () => {
    const known = store.read(key)
    const isValid = known?.issuer === provider.issuer && now() + MARGIN_MS < (known.expiresAt ?? Infinity)
    const isEnough = covers(known?.scope, scope) || (known?.insisted !== undefined && covers(known.insisted, scope))
    const usable = isValid && isEnough ? known : undefined
    if (usable !== undefined && usable.client.id !== unanswered) return usable
    const fresh = await registerFor(registration, isValid ? known?.scope : undefined).catch((error: unknown) => {
      if (usable === undefined) throw error
      return usable
    })
    store.write(key, fresh)
    return fresh
  })
}

/** Registers a client. `bound`: scopes of the present client, which are requested as well. */
const registerFor = async (registration: RegistrationOptions, bound: string | undefined): Promise<Stored> => {
  const wanted = union(bound, registration.scope)
  const free = bound === undefined ? await register(registration, undefined).catch(unlessBadRequest(wanted)) : undefined
  if (free !== undefined && covers(free.scope, wanted)) return free
  const scoped = await register(registration, wanted).catch((error: unknown) => {
    if (free === undefined) throw error
    return free
  })
  return { ...scoped, ...(wanted !== undefined && { insisted: wanted }) }
}

/** Ignores HTTP 400 if scopes are wanted: the server may refuse registrations without `scope`. */
const unlessBadRequest =
  (wanted: string | undefined) =>
  (error: unknown): undefined => {
    if (wanted !== undefined && error instanceof Failure && error.facts.status === 400) return undefined
    throw error
  }

/** The server refused scopes to a client that declared no limit: the next sign-in registers again with its scopes. */
export const scopeRefused = (store: TokenStore, { issuer }: Pick<Provider, 'issuer'>, redirectUri: string): Promise<void> => {
  const key = keyOf({ issuer }, redirectUri)
  return store.exclusively(key, async () => {
    const known = store.read(key)
    if (known !== undefined && known.scope === undefined && known.insisted === undefined)
      store.write(key, { ...known, scope: '' })
  })
}

const keyOf = ({ issuer }: Pick<Provider, 'issuer'>, redirectUri: string): StoreKey<Stored> => ['client', issuer, redirectUri]

/** Whether a client bound to the scopes `bound` may request `wanted`. */
const covers = (bound: string | undefined, wanted: string | undefined): boolean => {
  if (bound === undefined || wanted === undefined) return true
  const all = bound.split(' ')
  return wanted.split(' ').every((scope) => all.includes(scope))
}

/** Sends a registration. `scope`: to bind the client to; `undefined`: omitted. */
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
    throw unreachable('we could not be registered', error)
  })
  if (status >= 500 || status === 429 || status === 408)
    throw unreachable('we could not be registered', new Error(`${provider.issuer} answered HTTP ${status}`))
  const { client_id: id, client_secret: secret, ...rest } = parseJsonObject(text) ?? {}
  if (status >= 300 || typeof id !== 'string') {
    const { error, error_description: description } = rest
    const reason = typeof error === 'string' ? `: ${refusalText(error, description, [])}` : ''
    throw authRequired(`${provider.issuer} did not register us (HTTP ${status})${reason}`, undefined, status)
  }
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

const publicClient = (id: string): ClientOptions => ({ id, secret: undefined, privateKey: undefined, algorithm: '' })
