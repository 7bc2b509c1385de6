/** The credential of one server, from its `credentials`. */
import { createPrivateKey } from 'node:crypto'
import type { ClientOptions, CredentialOptions } from '../../../auth/credential-options.ts'
import { isLoopbackHost } from '../../../transport/loopback.ts'
import type { Credentials } from '../../schema/credentials-schema.ts'
import type { ReportProblem } from '../../syntax/problems.ts'
import { attempt } from '../../../values/attempt.ts'

const METHODS = ['bearer', 'oauth', 'client_credentials', 'exchange'] as const

/** `undefined`: the credential, if there is one, never changes. Reports methods that exclude each other. */
export const buildCredential = (
  given: Credentials | undefined,
  url: URL | undefined,
  report: ReportProblem,
): CredentialOptions | undefined => {
  const { oauth, client_credentials: machine, exchange } = given ?? {}
  const [method, other] = METHODS.filter((one) => given?.[one] !== undefined)
  if (other !== undefined) report([other], `"${other}" beside "${method}"`, 'keep one of them')
  if (method !== undefined && method !== 'bearer' && hasAuthorization(given?.headers))
    report(['headers'], `a header Authorization beside "${method}"`, 'keep one of them')
  const isClear = url?.protocol === 'http:' && !isLoopbackHost(url.hostname)
  if (method !== undefined && (oauth ?? machine ?? exchange) !== undefined && isClear)
    report([method], 'tokens are not sent over plain http', 'use an https URL')
  if (oauth !== undefined) return buildOAuth(oauth, report)
  if (exchange !== undefined) return buildExchange(exchange, report)
  return machine === undefined ? undefined : buildMachine(machine, report)
}

const hasAuthorization = (headers: Readonly<Record<string, string>> | undefined): boolean =>
  Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'authorization')

const buildOAuth = (oauth: NonNullable<Credentials['oauth']>, report: ReportProblem): CredentialOptions => {
  const { client_id: id, client_secret: secret, client_metadata_url: document } = oauth
  if (secret !== undefined && id === undefined)
    report(['oauth', 'client_secret'], '"client_secret" without client_id has no effect', 'give the client_id as well')
  if (document !== undefined && id !== undefined)
    report(['oauth', 'client_metadata_url'], '"client_metadata_url" beside client_id has no effect', 'keep one of them')
  if (document !== undefined && (document.protocol !== 'https:' || document.pathname === '/'))
    report(['oauth', 'client_metadata_url'], 'expected an https URL with a path', 'such as https://example.com/client.json')
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

const buildMachine = (machine: NonNullable<Credentials['client_credentials']>, report: ReportProblem): CredentialOptions => ({
  mode: 'client',
  client: buildClient(machine, 'client_credentials', report),
  scopes: machine.scopes,
  issuer: machine.issuer === undefined ? undefined : withoutSlash(machine.issuer),
  isPrivate: machine.private_network ?? false,
})

const buildExchange = (exchange: NonNullable<Credentials['exchange']>, report: ReportProblem): CredentialOptions => ({
  mode: 'exchange',
  issuer: withoutSlash(exchange.issuer),
  client: buildClient(exchange, 'exchange', report),
  audience: exchange.audience,
  scopes: exchange.scopes,
  isPrivate: exchange.private_network ?? false,
})

type GivenClient = Pick<NonNullable<Credentials['exchange']>, 'client_id' | 'client_secret' | 'private_key' | 'algorithm'>

const buildClient = (given: GivenClient, method: string, report: ReportProblem): ClientOptions => {
  const { client_id: id, client_secret: secret, private_key: privateKey, algorithm } = given
  if ((secret === undefined) === (privateKey === undefined))
    report([method], 'expected client_secret or private_key', 'give one of them')
  if (privateKey === undefined && algorithm !== undefined)
    report([method, 'algorithm'], '"algorithm" without private_key has no effect', 'remove it')
  if (privateKey !== undefined && attempt(() => createPrivateKey(privateKey)) === undefined)
    report([method, 'private_key'], 'not a private key in PEM', 'read it from a file: ${file:./key.pem}')
  return { id, secret, privateKey, algorithm: algorithm ?? 'ES256' }
}

/** The issuer as configured: it is compared as a text, and `URL` adds a trailing slash. */
const withoutSlash = ({ href, pathname, search }: URL): string => (pathname === '/' && search === '' ? href.slice(0, -1) : href)
