/** Checks whether the metadata and keys of each accepted authorization server can be read, for `trunkline check --live`. */
import { createPublicKey } from 'node:crypto'
import { asError } from '../../../values/as-error.ts'
import { isJsonObject, isList, parseJsonObject } from '../../../values/json-object.ts'
import type { Fetch } from '../../fetch/safe-fetch.ts'
import { issuersOf } from './inbound-options.ts'
import type { IssuerOptions, ResourceServerOptions } from './inbound-options.ts'
import { Issuer, IssuerUnreachable, readKeys } from './issuer.ts'
import { ALGORITHMS } from './jwt.ts'

export interface IssuerReport {
  readonly issuer: string
  /** Place in the configuration: `auth.oauth`, `auth.oauth.issuers[0]`. */
  readonly path: string
  /** Number of usable keys; `undefined`: none are needed, or they could not be read. */
  readonly keys: number | undefined
  /** Why its tokens cannot be verified now, with a remedy; `undefined`: they can. */
  readonly error: string | undefined
}

/** Reads the metadata and keys of every issuer. Never rejects. `now`: monotonic, in milliseconds. */
export const reportIssuers = (
  options: ResourceServerOptions,
  fetch: Fetch,
  now: () => number,
): Promise<readonly IssuerReport[]> =>
  Promise.all(
    issuersOf(options).map((one, at) => {
      const path = at === 0 ? 'auth.oauth' : `auth.oauth.issuers[${at - 1}]`
      return reportOf(one, path, new Issuer(one.issuer, fetch, now, one.allowsHttp))
    }),
  )

const reportOf = async (options: IssuerOptions, path: string, issuer: Issuer): Promise<IssuerReport> => {
  const { issuer: name, introspection, introspectsAll, jwksUri } = options
  try {
    const isAsked = introspection !== undefined && introspection.endpoint === undefined
    const metadata = isAsked || (jwksUri === undefined && !introspectsAll) ? await issuer.metadata() : undefined
    if (isAsked && metadata?.introspectionEndpoint === undefined)
      throw new IssuerUnreachable(
        `the metadata of ${name} names no introspection_endpoint`,
        undefined,
        `set ${path}.introspection.endpoint`,
      )
    const keys = introspectsAll ? undefined : await usableKeys(options, issuer, jwksUri ?? metadata?.jwksUri)
    return { issuer: name, path, keys, error: undefined }
  } catch (error) {
    const remedy = error instanceof IssuerUnreachable ? error.remedy : ''
    return { issuer: name, path, keys: undefined, error: asError(error).message + (remedy && `; ${remedy}`) }
  }
}

const usableKeys = async (options: IssuerOptions, issuer: Issuer, uri = ''): Promise<number> => {
  const keys = parseJsonObject(await readKeysAt(options, issuer, uri))?.['keys']
  if (!isList(keys)) throw new IssuerUnreachable(`${uri} is no set of keys`, undefined, 'set jwks_uri beside issuer')
  const usable = keys.filter(isUsable).length
  if (usable > 0) return usable
  throw new IssuerUnreachable(
    keys.length === 0 ? `${uri} holds no keys` : `${uri} holds no key that can check a token (${keys.length} of other kinds)`,
    undefined,
    'have the issuer publish one for RS256, PS256, ES256 or EdDSA: RSA with 2048 bits and more, P-256 to P-521, or Ed25519',
  )
}

const readKeysAt = async (options: IssuerOptions, issuer: Issuer, uri: string): Promise<string> => {
  try {
    return await readKeys(options, issuer)
  } catch (error) {
    if (!(error instanceof IssuerUnreachable) || uri === '') throw error
    const { message, cause, remedy } = error
    const source = options.jwksUri === undefined ? 'jwks_uri of the metadata' : 'jwks_uri beside issuer'
    throw new IssuerUnreachable(`no keys at ${uri} (${source}): ${message}`, cause, remedy || 'set jwks_uri beside issuer')
  }
}

const CURVES: ReadonlySet<unknown> = new Set(['prime256v1', 'secp384r1', 'secp521r1'])
const MIN_RSA_BITS = 2_048

/** Whether a key can verify signatures of tokens. */
const isUsable = (key: unknown): boolean => {
  if (!isJsonObject(key)) return false
  const { use, key_ops: operations, alg } = key
  if (use !== undefined && use !== 'sig') return false
  if (isList(operations) && !operations.includes('verify')) return false
  if (alg !== undefined && !ALGORITHMS.some((known) => known === alg)) return false
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details = {} } = createPublicKey({
      key,
      format: 'jwk',
    })
    if (type === 'rsa') return (details.modulusLength ?? 0) >= MIN_RSA_BITS
    return type === 'ed25519' || (type === 'ec' && CURVES.has(details.namedCurve))
  } catch {
    return false
  }
}
