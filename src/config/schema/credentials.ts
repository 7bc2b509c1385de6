/** `servers.<key>.credentials`: how we prove to a server who is calling; one way at a time. */
import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'
import { isLoopbackHost } from '../../transport/loopback.ts'
import type { ClientOptions, CredentialOptions } from '../../auth/oauth/credential-options.ts'
import { choice, field, filledText, flag, headerValue, httpUrl, texts } from './kinds.ts'

const PRIVATE_NETWORK = 'Its authorization server may stand in a private network; else only public addresses are reached.'

const oauthSchema = z.strictObject({
  per_user: field(flag, '`true`: every caller signs in for itself. `false`: the operator does, for all.', false),
  issuer: field(httpUrl, 'The authorization server, in place of the one that the server names.'),
  scopes: field(texts, 'Scopes to ask for. They are the last word: what the server names or asks for later adds nothing.'),
  offline_access: field(
    flag,
    '`false`: `offline_access` is not added to the scopes where the authorization server lists it.',
    true,
  ),
  client_id: field(filledText, 'A client that was registered by hand. Without it we say who we are, or register as we come.'),
  client_secret: field(filledText, 'Its secret, if it has one.'),
  client_metadata_url: field(httpUrl, 'Our client metadata document, if it is not served by us: an https URL with a path.'),
  private_network: field(flag, PRIVATE_NETWORK, false),
})

const clientSchema = z.strictObject({
  client_id: filledText.meta({ description: 'The client.' }),
  client_secret: field(filledText, 'Its secret.'),
  private_key: field(filledText, 'Or its private key, in PEM: it signs a proof for every token (`private_key_jwt`).'),
  algorithm: field(choice('ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'), 'Of that key.', 'ES256'),
  scopes: field(texts, 'Scopes to ask for, in place of those the server names.'),
  issuer: field(httpUrl, 'The authorization server, where the MCP server does not name it.'),
  private_network: field(flag, PRIVATE_NETWORK, false),
})

const exchangeSchema = z.strictObject({
  issuer: httpUrl.meta({ description: 'Who issued the token that callers bring, and exchanges it.' }),
  client_id: filledText.meta({ description: 'Who we are to the issuer.' }),
  client_secret: field(filledText, 'Its secret.'),
  private_key: field(filledText, 'Or its private key, in PEM.'),
  algorithm: field(choice('ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'), 'Of that key.', 'ES256'),
  audience: field(filledText, 'What the new token is for, as the issuer names it, in place of the URL of the server.'),
  scopes: field(texts, 'Scopes to ask for.'),
  private_network: field(flag, PRIVATE_NETWORK, false),
})

export const credentialsSchema = z.strictObject({
  bearer: field(headerValue, 'A token, sent as `Authorization: Bearer …`.'),
  headers: field(z.record(z.string(), headerValue), 'Headers that hold secrets.'),
  oauth: field(oauthSchema, 'A person signs in with OAuth.'),
  client_credentials: field(clientSchema, 'The gateway signs in with OAuth, as a client of its own.'),
  exchange: field(
    exchangeSchema,
    'The token that the caller brought is exchanged for one of the server (RFC 8693); needs `auth.oauth`.',
  ),
})

type Credentials = z.output<typeof credentialsSchema>
type Complain = (path: readonly string[], message: string, remedy: string) => void

const WAYS = ['bearer', 'oauth', 'client_credentials', 'exchange'] as const

/** `undefined`: nothing that changes while we run. Complains of what cannot go together. */
export const buildCredential = (
  given: Credentials | undefined,
  url: URL | undefined,
  complain: Complain,
): CredentialOptions | undefined => {
  const { oauth, client_credentials: machine, exchange } = given ?? {}
  const [way, other] = WAYS.filter((one) => given?.[one] !== undefined)
  if (other !== undefined) complain([other], `"${other}" beside "${way}"`, 'keep one of them')
  if (way !== undefined && way !== 'bearer' && hasAuthorization(given?.headers))
    complain(['headers'], `a header Authorization beside "${way}"`, 'keep one of them')
  const isClear = url?.protocol === 'http:' && !isLoopbackHost(url.hostname)
  if (way !== undefined && (oauth ?? machine ?? exchange) !== undefined && isClear)
    complain([way], 'tokens are not sent over plain http', 'use an https URL')
  if (oauth !== undefined) return buildOAuth(oauth, complain)
  if (exchange !== undefined) return buildExchange(exchange, complain)
  return machine === undefined ? undefined : buildMachine(machine, complain)
}

const hasAuthorization = (headers: Readonly<Record<string, string>> | undefined): boolean =>
  Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'authorization')

const buildOAuth = (oauth: NonNullable<Credentials['oauth']>, complain: Complain): CredentialOptions => {
  const { client_id: id, client_secret: secret, client_metadata_url: document } = oauth
  if (secret !== undefined && id === undefined)
    complain(['oauth', 'client_secret'], '"client_secret" without client_id has no effect', 'give the client_id as well')
  if (document !== undefined && id !== undefined)
    complain(['oauth', 'client_metadata_url'], '"client_metadata_url" beside client_id has no effect', 'keep one of them')
  if (document !== undefined && (document.protocol !== 'https:' || document.pathname === '/'))
    complain(['oauth', 'client_metadata_url'], 'expected an https URL with a path', 'such as https://example.com/client.json')
  return {
    mode: 'user',
    perUser: oauth.per_user ?? false,
    client: id === undefined ? undefined : { id, secret, privateKey: undefined, algorithm: '' },
    clientDocument: document?.href,
    scopes: oauth.scopes,
    issuer: oauth.issuer === undefined ? undefined : withoutSlash(oauth.issuer),
    offline: oauth.offline_access ?? true,
    isPrivate: oauth.private_network ?? false,
  }
}

const buildMachine = (machine: NonNullable<Credentials['client_credentials']>, complain: Complain): CredentialOptions => ({
  mode: 'client',
  client: buildClient(machine, 'client_credentials', complain),
  scopes: machine.scopes,
  issuer: machine.issuer === undefined ? undefined : withoutSlash(machine.issuer),
  isPrivate: machine.private_network ?? false,
})

const buildExchange = (exchange: NonNullable<Credentials['exchange']>, complain: Complain): CredentialOptions => ({
  mode: 'exchange',
  issuer: withoutSlash(exchange.issuer),
  client: buildClient(exchange, 'exchange', complain),
  audience: exchange.audience,
  scopes: exchange.scopes,
  isPrivate: exchange.private_network ?? false,
})

type GivenClient = Pick<NonNullable<Credentials['exchange']>, 'client_id' | 'client_secret' | 'private_key' | 'algorithm'>

const buildClient = (given: GivenClient, way: string, complain: Complain): ClientOptions => {
  const { client_id: id, client_secret: secret, private_key: privateKey, algorithm } = given
  if ((secret === undefined) === (privateKey === undefined))
    complain([way], 'expected client_secret or private_key', 'give one of them')
  if (privateKey === undefined && algorithm !== undefined)
    complain([way, 'algorithm'], '"algorithm" without private_key has no effect', 'remove it')
  if (privateKey !== undefined && !isPrivateKey(privateKey))
    complain([way, 'private_key'], 'not a private key in PEM', 'read it from a file: ${file:./key.pem}')
  return { id, secret, privateKey, algorithm: algorithm ?? 'ES256' }
}

/** An issuer is compared as it is written, and `URL` adds a trailing slash. */
const withoutSlash = ({ href, pathname, search }: URL): string => (pathname === '/' && search === '' ? href.slice(0, -1) : href)

const isPrivateKey = (text: string): boolean => {
  try {
    createPrivateKey(text)
    return true
  } catch {
    return false
  }
}
