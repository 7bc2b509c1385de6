/** Requests to a token endpoint, with client authentication ([RFC 6749] 2.3, [RFC 7523] 2.2). */
import { createPrivateKey, randomUUID } from 'node:crypto'
import { firstWords } from '../../values/cut-text.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import type { Reach } from '../fetch/reach.ts'
import type { Provider } from './discovery.ts'
import type { ClientOptions } from '../credential-options.ts'
import type { Fetch } from '../fetch/safe-fetch.ts'

/** The result of a grant. */
export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** Wall clock in milliseconds; `undefined`: not declared. */
  readonly expiresAt: number | undefined
}

/** The authorization server refused the grant. `code`: of [RFC 6749] 5.2. The message contains no secrets of the request. */
export class GrantRefused extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** The authorization server cannot serve requests now. */
export class Unavailable extends Error {
  readonly status: number
  /** The pause that it asks for. */
  readonly retryAfterMs: number | undefined
  constructor(message: string, status: number, retryAfterMs: number | undefined) {
    super(message)
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

/** Codes that mean the same ([RFC 6749] 4.1.2.1, of Entra ID at the token endpoint, too), with a status of 400. */
const UNAVAILABLE: ReadonlySet<unknown> = new Set(['server_error', 'temporarily_unavailable'])

/** Codes that refuse the grant itself: [RFC 6749] 5.2; GitHub; Slack; Entra ID and others. */
const ENDED_GRANT: ReadonlySet<string> = new Set([
  'invalid_grant',
  'bad_refresh_token',
  'bad_verification_code',
  'invalid_refresh_token',
  'interaction_required',
  'login_required',
  'consent_required',
])
const UNKNOWN_CLIENT: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client'])

/** Whether the authorization server refused the code or refresh token: only another sign-in helps. */
export const isGrantEnded = (error: unknown): boolean => error instanceof GrantRefused && ENDED_GRANT.has(error.code)

/** Whether the authorization server refused the client, as one that has forgotten its registration does. */
export const isClientRefused = (error: unknown): boolean => error instanceof GrantRefused && UNKNOWN_CLIENT.has(error.code)

/** Whether the answer was a 4xx without an error of OAuth: of the authorization server, or of a proxy before it. */
export const isUnexplained = (error: unknown): error is GrantRefused =>
  error instanceof GrantRefused && error.code.startsWith('HTTP ')

export type TokenAuth = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

export interface TokenRequest {
  readonly provider: Pick<Provider, 'issuer' | 'tokenEndpoint' | 'tokenAuth'>
  readonly client: ClientOptions
  /** As registered; `undefined`: chosen by the provider's metadata. */
  readonly auth?: TokenAuth | undefined
  /** `grant_type` and its parameters; members that are `undefined` are omitted. */
  readonly params: Readonly<Record<string, string | undefined>>
  readonly reach: Reach
  readonly fetch: Fetch
  /** Wall clock in milliseconds. */
  readonly now: () => number
}

const ASSERTION_SECONDS = 60
/** A token is renewed this long before it expires. */
const RENEW_BEFORE_MS = 30_000
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Whether a token needs no renewal yet. `nowMs`: wall clock. */
export const isFresh = ({ expiresAt = Infinity }: Tokens, nowMs: number): boolean => expiresAt - RENEW_BEFORE_MS > nowMs

/** Returns what a call waits for, given the pending renewal of a token: one that is valid for some seconds more is used meanwhile. */
export const waitFor = (renewed: Promise<void>, tokens: Tokens | undefined, nowMs: number): Promise<void> | undefined => {
  if (tokens === undefined || (tokens.expiresAt ?? Infinity) <= nowMs) return renewed
  renewed.catch(() => undefined)
  return undefined
}

/** Requests tokens. Rejects with `GrantRefused`, or with an `Error` if there was no usable answer. */
export const requestTokens = async (request: TokenRequest): Promise<Tokens> => tokensOf(await requestGrant(request), request.now)

/** Requests a grant, and resolves with the members of the answer. Rejects as `requestTokens`. */
export const requestGrant = async (request: TokenRequest): Promise<Readonly<Record<string, unknown>>> => {
  const { provider, params, reach, fetch } = request
  const proof = await prove(request)
  const given = Object.entries({ ...params, ...proof.params }).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const { status, text, retryAfterMs } = await fetch({
    url: provider.tokenEndpoint,
    reach,
    body: new URLSearchParams(given).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...proof.headers },
  })
  const answer = parseJsonObject(text) ?? {}
  // Unavailable, too slow, or rate limited: not a decision about the grant.
  const isSaid = UNAVAILABLE.has(answer['error'])
  if (isSaid || status >= 500 || status === 429 || status === 408) {
    const said = isSaid ? ` (${String(answer['error'])})` : ''
    throw new Unavailable(`${shownOrigin(provider.tokenEndpoint)}: answered HTTP ${status}${said}`, status, retryAfterMs)
  }
  if (status >= 400 || typeof answer['error'] === 'string') {
    const code = typeof answer['error'] === 'string' ? answer['error'] : `HTTP ${status}`
    const secrets = given.flatMap(([name, value]) => (SECRET_PARAMS.has(name) ? [value] : []))
    throw new GrantRefused(code, refusalText(code, answer['error_description'], secrets))
  }
  return answer
}

const tokensOf = (answer: Readonly<Record<string, unknown>>, now: () => number): Tokens => {
  const { access_token: accessToken, token_type: type, refresh_token: refresh, expires_in: seconds } = answer
  const isBearer = typeof type !== 'string' || type.toLowerCase() === 'bearer' || type === 'N_A'
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken) || !isBearer)
    throw new Error('the authorization server sent no bearer token')
  return {
    accessToken,
    refreshToken: typeof refresh === 'string' ? refresh : undefined,
    expiresAt: isSeconds(seconds) ? now() + Number(seconds) * 1_000 : undefined,
  }
}

const SECRET_PARAMS = new Set(['subject_token', 'refresh_token', 'code', 'code_verifier', 'client_secret', 'client_assertion'])
const LONGEST_DESCRIPTION = 300

/** Returns why an authorization server refused. `secrets`, and parts of `description` that look like tokens, are replaced. */
export const refusalText = (code: string, description: unknown, secrets: readonly string[]): string => {
  const refusal = `the authorization server refused: ${JSON.stringify(code.slice(0, 80))}`
  if (typeof description !== 'string' || description === '') return refusal
  let text = description.slice(0, 4_096)
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '…')
  text = text.replaceAll(/[\w.-]{40,}/g, '…')
  return `${refusal} (${JSON.stringify(firstWords(text, LONGEST_DESCRIPTION))})`
}

const shownOrigin = (url: string): string => URL.parse(url)?.origin ?? 'the token endpoint'

/** Chooses the method: a signing key, then the registered method, then a supported one, with the header before the form. */
const chooseAuth = ({ client, auth, provider }: TokenRequest): TokenAuth => {
  if (client.privateKey !== undefined) return 'private_key_jwt'
  if (auth !== undefined) return auth
  if (client.secret === undefined) return 'none'
  const offered = provider.tokenAuth ?? ['client_secret_basic']
  return offered.includes('client_secret_basic') || !offered.includes('client_secret_post')
    ? 'client_secret_basic'
    : 'client_secret_post'
}

interface Proof {
  readonly params: Readonly<Record<string, string | undefined>>
  readonly headers: Readonly<Record<string, string>>
}

/** Returns the client authentication. `client_id` is always in the form, since the official Python SDK identifies clients only by it. */
const prove = async (request: TokenRequest): Promise<Proof> => {
  const { client } = request
  const { id } = client
  const auth = chooseAuth(request)
  if (auth === 'private_key_jwt')
    return {
      params: { client_id: id, client_assertion_type: JWT_BEARER, client_assertion: await assertion(request) },
      headers: {},
    }
  if (auth === 'client_secret_post') return { params: { client_id: id, client_secret: client.secret }, headers: {} }
  if (auth === 'none') return { params: { client_id: id }, headers: {} }
  const pair = [id, client.secret ?? ''].map((part) => new URLSearchParams({ '': part }).toString().slice(1)).join(':')
  return { params: { client_id: id }, headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } }
}

/** Returns the client assertion. Its audience is the issuer, so that no other authorization server accepts it. */
const assertion = async ({ client, provider, now }: TokenRequest): Promise<string> => {
  const { SignJWT } = await import('jose')
  const seconds = Math.floor(now() / 1_000)
  return new SignJWT({ iss: client.id, sub: client.id, aud: provider.issuer, jti: randomUUID() })
    .setProtectedHeader({ alg: client.algorithm })
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + ASSERTION_SECONDS)
    .sign(createPrivateKey(client.privateKey ?? ''))
}

const isSeconds = (value: unknown): boolean => (typeof value === 'number' || typeof value === 'string') && Number(value) > 0
