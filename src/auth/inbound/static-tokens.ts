/**
 * Static tokens: generated here and stored only as hashes. Every hash is compared, each in constant time, so that the time of an answer does
 * not depend on the token (T-31).
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Admitted } from '../identity.ts'
import type { StaticToken } from './verify/inbound-options.ts'

const RANDOM_BYTES = 32
/** Lets scanners for leaked secrets recognise the token. */
const PREFIX = 'tlk_'
const HASH_PREFIX = 'sha256:'

/** Returns a new bearer token with 32 random bytes. */
export const makeToken = (): string => `${PREFIX}${randomBytes(RANDOM_BYTES).toString('base64url')}`

/** Returns the SHA-256 of a token, 32 bytes. */
export const digestOf = (token: string): Buffer => hash('sha256', token, 'buffer')

/** Returns the value for `auth.tokens[].hash`. */
export const hashLine = (token: string): string => `${HASH_PREFIX}${digestOf(token).toString('hex')}`

/** Returns the 64 hex characters of a `hashLine`; `undefined`: another text. */
export const readHash = (text: string): string | undefined => /^sha256:([0-9a-f]{64})$/.exec(text)?.[1]

export class StaticTokens {
  readonly #tokens: readonly { readonly digest: Buffer; readonly admitted: Admitted }[]

  constructor(tokens: readonly StaticToken[]) {
    this.#tokens = tokens.map(({ id, hash, toolsets, expiresMs, isOperator }) => ({
      digest: Buffer.from(hash, 'hex'),
      admitted: {
        identity: { principal: principalOf(id), toolsets, scopes: undefined, ...(isOperator && { isOperator }) },
        untilMs: expiresMs,
        audiences: undefined,
      },
    }))
  }

  /** Returns the credential with this digest, also if it has expired. */
  find(digest: Buffer): Admitted | undefined {
    let found: Admitted | undefined
    for (const token of this.#tokens) if (timingSafeEqual(token.digest, digest)) found = token.admitted
    return found
  }
}

/** Returns the principal of a static token. */
export const principalOf = (id: string): string => `token:${id}`
