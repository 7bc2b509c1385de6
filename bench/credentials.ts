/**
 * Credentials of hosts. Every request over HTTP carries a token for every subject; the gateway refuses requests without one. The key that
 * signs JWTs is derived from a constant, so that hosts and servers of the benchmark use the same key without an exchange.
 */
import { createPrivateKey, createPublicKey, hash, sign } from 'node:crypto'

const WORD = 'trunkline bench'
/** Of a PKCS #8 document: what stands before the 32 bytes of an Ed25519 key ([RFC 8410]). */
const ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')
const ISSUER = 'http://127.0.0.1/issuer'
const AUDIENCE = 'http://127.0.0.1/mcp'
const DAY_S = 86_400

const key = createPrivateKey({
  key: Buffer.concat([ED25519, hash('sha256', WORD, 'buffer')]),
  format: 'der',
  type: 'pkcs8',
})

/** The authorization server's keys, which servers of the bench answer at `/jwks`. */
export const JWKS = JSON.stringify({ keys: [{ ...createPublicKey(key).export({ format: 'jwk' }), alg: 'EdDSA', use: 'sig' }] })

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const signed = (claims: object): string => {
  const text = `${part({ alg: 'EdDSA', typ: 'at+jwt' })}.${part(claims)}`
  return `${text}.${sign(undefined, Buffer.from(text), key).toString('base64url')}`
}

const now = Math.floor(Date.now() / 1e3)

/** A static token. */
export const TOKEN = `tlk_${hash('sha256', WORD, 'base64url')}`
/** A token of the authorization server, good for a day. */
export const JWT = signed({ iss: ISSUER, aud: AUDIENCE, sub: 'bench', client_id: 'bench', iat: now, exp: now + DAY_S })

/** `auth` of a gateway that lets in hosts with the static token. */
export const BY_TOKEN = { tokens: [{ id: 'bench', hash: `sha256:${hash('sha256', TOKEN)}` }] }
/** `auth` of a gateway that verifies JWTs; `server`: URL of any server of the bench over HTTP. */
export const byJwt = (server: string) => ({
  oauth: { issuer: ISSUER, audience: AUDIENCE, jwks_uri: new URL('/jwks', server).href },
})
