/**
 * Sealed tokens: values that a host stores and returns without being able to read or alter them (`requestState`, cursors). AES-256-GCM;
 * purpose and group are associated data, so a token opens only for the purpose it was made for.
 *
 *     token = base64url( version 1 B | key id 4 B | nonce 12 B | ciphertext | tag 16 B )
 *
 * A mark (a truncated HMAC) protects a text that may be read but must not be forged.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { parseOwnJson } from '../values/own-json.ts'
import { attempt } from '../values/attempt.ts'

export interface SealOptions {
  /** 32 random bytes each. The first seals, all open, so that keys can be rotated. */
  readonly keys: readonly Buffer[]
  /** The same for all instances that may open each other's tokens. */
  readonly group?: string
  /** Wall clock in milliseconds, because tokens outlive the process. */
  readonly now?: () => number
}

/** Never present at run time: it ties a purpose to the type of what it seals. */
declare const HOLDS: unique symbol

/** What a token is for. A token opens only for the purpose it was sealed for, so a token of a `Purpose<T>` contains a `T`. */
export type Purpose<T extends object> = string & { readonly [HOLDS]?: T }

const VERSION = 1
const HEADER = 5
const NONCE = 12
const TAG = 16
const MARK = 16

interface Key {
  readonly id: Buffer
  readonly key: Buffer
}

export class Seal {
  /** The key that seals. */
  readonly #current: Key
  readonly #keys: readonly Key[]
  readonly #group: string
  readonly #now: () => number

  /** Throws `RangeError` for a key that is not 32 bytes long. */
  constructor(options: SealOptions) {
    const keys = options.keys.map((key) => {
      if (key.length !== 32) throw new RangeError(`a seal key has 32 bytes, not ${key.length}`)
      return {
        id: createHash('sha256')
          .update('trunkline seal key id')
          .update(key)
          .digest()
          .subarray(0, HEADER - 1),
        key,
      }
    })
    const [current] = keys
    if (current === undefined) throw new RangeError('a seal needs a key')
    this.#current = current
    this.#keys = keys
    this.#group = options.group ?? ''
    this.#now = options.now ?? Date.now
  }

  /** Returns a token that contains `value` as JSON. `ttlMs`: how long it opens; absent: without expiry. */
  seal<T extends object>(purpose: Purpose<T>, value: NoInfer<T>, ttlMs?: number): string {
    const { id, key } = this.#current
    const header = Buffer.concat([Buffer.of(VERSION), id])
    const nonce = randomBytes(NONCE)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    cipher.setAAD(this.#associated(header, purpose))
    const plain = JSON.stringify(ttlMs === undefined ? { value } : { value, expires: this.#now() + ttlMs })
    return Buffer.concat([header, nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url')
  }

  /** Returns the sealed value; `undefined`: altered, expired, of another purpose or group, or sealed with an unknown key. */
  open<T extends object>(purpose: Purpose<T>, token: string): T | undefined {
    const bytes = Buffer.from(token, 'base64url')
    // Accepts one spelling only: base64url decoding ignores stray characters and spare bits.
    if (bytes.length < HEADER + NONCE + TAG || bytes.toString('base64url') !== token) return undefined
    const header = bytes.subarray(0, HEADER)
    const entry = header[0] === VERSION ? this.#keys.find(({ id }) => id.equals(header.subarray(1))) : undefined
    if (entry === undefined) return undefined
    const decipher = createDecipheriv('aes-256-gcm', entry.key, bytes.subarray(HEADER, HEADER + NONCE), { authTagLength: TAG })
    decipher.setAAD(this.#associated(header, purpose))
    decipher.setAuthTag(bytes.subarray(-TAG))
    return attempt(() => {
      const plain = Buffer.concat([decipher.update(bytes.subarray(HEADER + NONCE, -TAG)), decipher.final()])
      const { value, expires } = parseOwnJson<{ value: T; expires?: number }>(plain.toString())
      return expires !== undefined && expires <= this.#now() ? undefined : value
    })
  }

  /** Returns the mark of a text: 22 characters that only a holder of the key can compute. */
  mark(purpose: string, text: string): string {
    return this.#marked(this.#current.key, purpose, text).toString('base64url')
  }

  /** Whether `mark` was computed with one of the keys. */
  isMark(purpose: string, text: string, mark: string): boolean {
    const given = Buffer.from(mark, 'base64url')
    if (given.length !== MARK || given.toString('base64url') !== mark) return false
    return this.#keys.some(({ key }) => timingSafeEqual(this.#marked(key, purpose, text), given))
  }

  #marked(key: Buffer, purpose: string, text: string): Buffer {
    const own = createHmac('sha256', key).update('trunkline mark').digest()
    return createHmac('sha256', own)
      .update(JSON.stringify([this.#group, purpose, text]))
      .digest()
      .subarray(0, MARK)
  }

  #associated(header: Buffer, purpose: string): Buffer {
    return Buffer.concat([header, Buffer.from(JSON.stringify([this.#group, purpose]))])
  }
}
