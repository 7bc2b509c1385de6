/**
 * Credentials of the admin listener in addition to `auth`: one-time keys, which the command line prints and a page exchanges for a token;
 * these tokens; and the token in a file that only the owner of the process can read, for programs.
 *
 * Only the SHA-256 of keys and tokens is stored. They are random, so the time of a lookup reveals nothing.
 */
import { randomBytes } from 'node:crypto'
import { lstat, readFile, rename, writeFile } from 'node:fs/promises'
import { digestOf, makeToken } from '../../auth/inbound/static-tokens.ts'
import { setBounded } from '../../values/bounded-map.ts'

/** How long a link is valid. */
const KEY_MS = 10 * 60_000
/** Idle time after which a page needs another link. */
const TOKEN_IDLE_MS = 12 * 3_600_000
/** Most keys and most tokens; the oldest is removed first. */
const MOST = 64

export class AdminCredentials {
  readonly #nowMs: () => number
  /** Times of expiry by digest. */
  readonly #keys = new Map<string, number>()
  readonly #tokens = new Map<string, number>()
  #fileToken: string | undefined

  /** `fileToken`: the token in the file. */
  constructor(fileToken: string | undefined, nowMs: () => number = () => performance.now()) {
    this.#fileToken = fileToken === undefined ? undefined : nameOf(fileToken)
    this.#nowMs = nowMs
  }

  /** A key for one link. */
  mintKey(): string {
    const key = randomBytes(32).toString('base64url')
    setBounded(this.#keys, nameOf(key), this.#nowMs() + KEY_MS, MOST)
    return key
  }

  /** The token for a key, which is valid once; `undefined`: the key is invalid or expired. */
  trade(key: string): string | undefined {
    const name = nameOf(key)
    const untilMs = this.#keys.get(name)
    this.#keys.delete(name)
    if (untilMs === undefined || untilMs <= this.#nowMs()) return undefined
    const token = makeToken()
    setBounded(this.#tokens, nameOf(token), this.#nowMs() + TOKEN_IDLE_MS, MOST)
    return token
  }

  /** Whether the token gives an operator's access: that of a page or of the file. */
  admits(token: string): boolean {
    const name = nameOf(token)
    if (name === this.#fileToken) return true
    const untilMs = this.#tokens.get(name)
    if (untilMs === undefined) return false
    this.#tokens.delete(name)
    if (untilMs <= this.#nowMs()) return false
    setBounded(this.#tokens, name, this.#nowMs() + TOKEN_IDLE_MS, MOST)
    return true
  }

  /** Invalidates the token of a page that was closed. */
  end(token: string): void {
    this.#tokens.delete(nameOf(token))
  }
}

/**
 * The token of the file, which is created if it does not exist, and replaced if others could read it. Rejects where the file cannot be
 * written: there is no such token then.
 */
export const readTokenFile = async (file: string): Promise<string> => {
  const found = await lstat(file).catch(() => undefined)
  if (found?.isFile() === true) {
    const isPrivate = process.platform === 'win32' || (found.mode & 0o077) === 0
    const text = isPrivate ? (await readFile(file, 'utf8')).trim() : ''
    if (/^tlk_[\w-]{43}$/.test(text)) return text
  } else if (found !== undefined) throw new Error(`${file} is not a file; remove it`)
  const token = makeToken()
  const made = `${file}.${process.pid}`
  await writeFile(made, `${token}\n`, { mode: 0o600, flag: 'wx' })
  await rename(made, file)
  return token
}

const nameOf = (secret: string): string => digestOf(secret).toString('base64url')
