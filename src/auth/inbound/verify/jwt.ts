/** Verifies JWT access tokens: form, algorithm, type and signature ([RFC 7515], [RFC 9068] 4; T-07). `claims.ts` checks the claims. */
import { compactVerify, decodeProtectedHeader, errors } from 'jose'
import type { CompactVerifyResult, JWTVerifyGetKey, ProtectedHeaderParameters } from 'jose'
import { parseJsonObject } from '../../../values/json-object.ts'
import { shownValue } from '../../token-refusal.ts'
import type { Check, TokenRefusal } from '../../token-refusal.ts'
import type { Claims } from './claim-value.ts'
import { failed, passed } from './claims.ts'
import { IssuerUnreachable } from './issuer.ts'
import type { KeySet } from './key-set.ts'
import { attempt } from '../../../values/attempt.ts'

/** Signature algorithms with public keys. None with a shared secret: an attacker could sign with the public key as the secret. */
export const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Values of `typ` for access tokens. Issuers before [RFC 9068] use `JWT` or nothing. */
const TYPES = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt'])
const JWT_FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/

export interface VerifiedJwt {
  readonly checks: readonly Check[]
  /** `undefined`: a check failed. */
  readonly claims: Claims | undefined
}

/** Whether a token may be a JWT: three base64url parts. */
export const hasJwtForm = (token: string): boolean => JWT_FORM.test(token)

/** Verifies a token. `keys`: of `issuer`. Rejects with `IssuerUnreachable` if the keys cannot be read now. */
export const verifyJwt = async (token: string, keys: KeySet, issuer: string): Promise<VerifiedJwt> => {
  const header = attempt(() => decodeProtectedHeader(token))
  if (header === undefined) return { checks: [failed(UNREADABLE)], claims: undefined }
  const checks = [passed('issuer', issuer), algorithmCheck(header.alg), typeCheck(header.typ)]
  if (checks.some(({ refusal }) => refusal !== undefined)) return { checks, claims: undefined }
  let claims: Claims | undefined
  try {
    const { payload } = await verifySignature(token, keys)
    claims = parseJsonObject(Buffer.from(payload).toString())
  } catch (error) {
    return { checks: [...checks, failed(signatureRefusal(error, header, issuer))], claims: undefined }
  }
  if (claims === undefined) return { checks: [failed(UNREADABLE)], claims: undefined }
  return { checks: [...checks, passed('signature', `${header.alg} by key ${shownValue(header.kid)}`)], claims }
}

/** A token that names no key may be of one that is not fetched yet. Rejects with an error of jose, or of `keys`. */
export const verifySignature = async (token: string, keys: KeySet): Promise<CompactVerifyResult> => {
  try {
    return await verifyByAny(token, keys.find)
  } catch (error) {
    const isNamed = decodeProtectedHeader(token).kid !== undefined
    if (isNamed || !(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    if (!(await keys.fetchFor(token.slice(token.lastIndexOf('.') + 1)))) throw error
    return verifyByAny(token, keys.find)
  }
}

/** Tries each key that fits the header, since issuers with several keys may name none. */
const verifyByAny = async (token: string, findKey: JWTVerifyGetKey): Promise<CompactVerifyResult> => {
  const options = { algorithms: ALGORITHMS }
  try {
    return await compactVerify(token, findKey, options)
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    for await (const key of error) {
      const verified = await compactVerify(token, key, options).catch(unlessOther)
      if (verified !== undefined) return verified
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

const unlessOther = (error: unknown): undefined => {
  if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
}

const UNREADABLE: TokenRefusal = {
  cause: 'form',
  claim: 'token',
  expected: 'a JWT with a header and claims as JSON objects',
  got: 'another text',
  remedy: 'have the host send the access token of the issuer as it received it',
}

const algorithmCheck = (alg: unknown): Check =>
  typeof alg === 'string' && ALGORITHMS.includes(alg)
    ? passed('algorithm', alg)
    : failed({
        cause: 'algorithm',
        claim: 'alg',
        expected: 'RS256 or another signature with a public key',
        got: shownValue(alg),
        remedy: 'choose such a signature for access tokens at the issuer',
      })

const typeCheck = (typ: unknown): Check =>
  (typ === undefined || typeof typ === 'string') && TYPES.has(typ?.toLowerCase())
    ? passed('type', typ ?? 'no typ')
    : failed({
        cause: 'type',
        claim: 'typ',
        expected: '"at+jwt" or "JWT"',
        got: shownValue(typ),
        remedy: 'have the host send its access token, not another kind of token',
      })

/** Returns why the signature is refused. Rethrows errors that are not about the token. */
const signatureRefusal = (error: unknown, { alg, kid }: ProtectedHeaderParameters, issuer: string): TokenRefusal => {
  if (error instanceof IssuerUnreachable) throw error
  if (error instanceof errors.JWKSNoMatchingKey)
    return {
      cause: 'key',
      claim: 'kid',
      expected: `a key for ${shownValue(alg)} that ${issuer} publishes`,
      got: shownValue(kid),
      remedy: 'the key is withdrawn, or the token is of another issuer; check jwks_uri in its metadata',
    }
  // jose throws a TypeError for a key that is too short or does not fit the header.
  if (!(error instanceof errors.JOSEError || error instanceof TypeError)) throw error
  return {
    cause: 'signature',
    claim: 'signature',
    expected: `one by key ${shownValue(kid)} of ${issuer}`,
    got: error instanceof errors.JWSSignatureVerificationFailed ? 'another' : `unusable (${error.message.slice(0, 100)})`,
    remedy: 'the token was altered or forged; if not, the issuer publishes another key under this name',
  }
}

/** Returns the issuer before verification, to choose the keys. The signature then covers the same text. */
export const unverifiedIssuer = (token: string): unknown =>
  parseJsonObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())?.['iss']
