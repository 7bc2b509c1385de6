/**
 * Static tokens: made here, handed to a host, known afterwards by their hash alone. All hashes are compared, each in constant time,
 * so that an answer takes as long whichever of them it was (T-31).
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Admitted } from '../identity.ts'
import type { StaticToken } from './inbound-options.ts'

const RANDOM_BYTES = 32
/** By it scanners for leaked secrets know one of ours. */
const PREFIX = 'tlk_'
const HASH_PREFIX = 'sha256:'

/** A new bearer token: 32 random bytes. It is shown once and not stored. */
export const makeToken = (): string => `${PREFIX}${randomBytes(RANDOM_BYTES).toString('base64url')}`

/** SHA-256 of whatever a host presents, 32 bytes. */
export const digestOf = (token: string): Buffer => hash('sha256', token, 'buffer')

/** What stands in `auth.tokens[].hash`. */
export const hashLine = (token: string): string => `${HASH_PREFIX}${digestOf(token).toString('hex')}`

/** The 64 hex characters of a `hashLine`; `undefined` for every other text. */
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

  /** Whose token has this digest, expired or not. */
  find(digest: Buffer): Admitted | undefined {
    let found: Admitted | undefined
    for (const token of this.#tokens) if (timingSafeEqual(token.digest, digest)) found = token.admitted
    return found
  }
}

/** The principal of a static token. */
export const principalOf = (id: string): string => `token:${id}`
