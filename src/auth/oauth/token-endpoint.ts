/** One question to a token endpoint, and how the client proves itself there ([RFC 6749] 2.3, [RFC 7523] 2.2). */
import { createPrivateKey, randomUUID } from 'node:crypto'
import { parseJsonObject } from '../../values/json-object.ts'
import type { Reach } from './addresses.ts'
import type { Provider } from './discovery.ts'
import type { ClientOptions } from './options.ts'
import type { Fetch } from './safe-fetch.ts'

/** What a grant brought. */
export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** Wall clock in milliseconds; `undefined`: it does not say. */
  readonly expiresAt: number | undefined
  /** Granted, where that is not what was asked for. */
  readonly scope: string | undefined
}

/**
 * The authorization server refused, in its own words: `code` is from [RFC 6749] 5.2. The message is for the log and the operator: it
 * has the server's description, without the secrets of the request.
 */
export class GrantRefused extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export type TokenAuth = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

export interface TokenRequest {
  readonly provider: Pick<Provider, 'issuer' | 'tokenEndpoint' | 'tokenAuth'>
  readonly client: ClientOptions
  /** As registered; `undefined`: what the metadata allows. */
  readonly auth?: TokenAuth | undefined
  /** `grant_type` and what it needs; members that are `undefined` are left out. */
  readonly params: Readonly<Record<string, string | undefined>>
  readonly reach: Reach
  readonly fetch: Fetch
  /** Wall clock in milliseconds. */
  readonly now: () => number
}

const ASSERTION_SECONDS = 60
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Rejects with `GrantRefused`, or with an `Error` where there was no usable answer. */
export const requestTokens = async (request: TokenRequest): Promise<Tokens> => tokensOf(await requestGrant(request), request.now)

/** The members of a token endpoint's answer. Rejects as `requestTokens`. */
export const requestGrant = async (request: TokenRequest): Promise<Readonly<Record<string, unknown>>> => {
  const { provider, params, reach, fetch } = request
  const proof = await prove(request)
  const given = Object.entries({ ...params, ...proof.params }).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const { status, text } = await fetch({
    url: provider.tokenEndpoint,
    reach,
    body: new URLSearchParams(given).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...proof.headers },
  })
  const answer = parseJsonObject(text) ?? {}
  // It is away, was too slow, or asks to wait: none is a word about the grant.
  if (status >= 500 || status === 429 || status === 408)
    throw new Error(`${shownOrigin(provider.tokenEndpoint)}: answered HTTP ${status}`)
  if (status >= 400 || typeof answer['error'] === 'string') {
    const code = typeof answer['error'] === 'string' ? answer['error'] : `HTTP ${status}`
    const secrets = given.flatMap(([name, value]) => (SECRET_PARAMS.has(name) ? [value] : []))
    throw new GrantRefused(code, refusalText(code, answer['error_description'], secrets))
  }
  return answer
}

const tokensOf = (answer: Readonly<Record<string, unknown>>, now: () => number): Tokens => {
  const { access_token: accessToken, token_type: type, refresh_token: refresh, expires_in: seconds, scope } = answer
  const isBearer = typeof type !== 'string' || type.toLowerCase() === 'bearer' || type === 'N_A'
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken) || !isBearer)
    throw new Error('the authorization server sent no bearer token')
  return {
    accessToken,
    refreshToken: typeof refresh === 'string' ? refresh : undefined,
    expiresAt: isSeconds(seconds) ? now() + Number(seconds) * 1_000 : undefined,
    scope: typeof scope === 'string' ? scope : undefined,
  }
}

const SECRET_PARAMS = new Set(['subject_token', 'refresh_token', 'code', 'code_verifier', 'client_secret', 'client_assertion'])
const LONGEST_DESCRIPTION = 300

/** Why an authorization server refused. `description`: as it came; whatever of it looks like a token, or is one of `secrets`, is left out. */
export const refusalText = (code: string, description: unknown, secrets: readonly string[]): string => {
  const said = `the authorization server refused: ${JSON.stringify(code.slice(0, 80))}`
  if (typeof description !== 'string' || description === '') return said
  let text = description.slice(0, 4_096)
  for (const secret of secrets) if (secret !== '') text = text.replaceAll(secret, '…')
  text = text.replaceAll(/[\w.-]{40,}/g, '…')
  return `${said} (${JSON.stringify(text.slice(0, LONGEST_DESCRIPTION))})`
}

const shownOrigin = (url: string): string => URL.parse(url)?.origin ?? 'the token endpoint'

/** A key that signs is best; then what was registered; then what the metadata lists, the header before the form. */
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

/** `client_id` always stands in the form: the official Python SDK knows a client by it alone, whatever else proves it. */
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

/** The audience is the issuer, which no other server of the same client can be made to take. */
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
