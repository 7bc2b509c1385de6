/**
 * The token that each caller came with last, in memory only: kept where some server's credential is made of it (RFC 8693), and sent
 * to the authorization server it is from and nowhere else.
 */

/** Callers that are remembered; the one that was first seen is forgotten first, and brings the token again. */
const MOST = 10_000

/** Within it a second token of a caller that is refused, too, is no matter of the token: its host is not sent to sign in again. */
const REFUSAL_MS = 600_000

interface RefusedToken {
  readonly token: string
  readonly atMs: number
}

export class SubjectTokens {
  readonly #tokens = new Map<string, string>()
  /** By principal: the token that its issuer refused to exchange. */
  readonly #refused = new Map<string, RefusedToken>()
  readonly #changed: (principal: string) => void
  #isWanted = false

  readonly #now: () => number

  /**
   * `changed`: called when a caller came with another token than before: what the old one was refused for may be mended. `now`:
   * monotonic, in milliseconds.
   */
  constructor(changed: (principal: string) => void, now: () => number = () => performance.now()) {
    this.#changed = changed
    this.#now = now
  }

  /** Whether any server needs them; if not, none is kept. */
  get isWanted(): boolean {
    return this.#isWanted
  }

  want(isWanted: boolean): void {
    this.#isWanted = isWanted
    if (isWanted) return
    this.#tokens.clear()
    this.#refused.clear()
  }

  /** The issuer of this token refused to exchange it. Of several tokens of a caller within ten minutes the first counts. */
  refuse(principal: string, token: string): void {
    const before = this.#refused.get(principal)
    if (before !== undefined && this.#now() - before.atMs < REFUSAL_MS) return
    this.#refused.delete(principal)
    const [oldest] = this.#refused.keys()
    if (oldest !== undefined && this.#refused.size >= MOST) this.#refused.delete(oldest)
    this.#refused.set(principal, { token, atMs: this.#now() })
  }

  /** Whether this token is good for nothing at its issuer: its host must get another one. */
  isRefused(principal: string, token: string): boolean {
    return this.#refused.get(principal)?.token === token
  }

  remember(principal: string, token: string): void {
    if (!this.#isWanted) return
    const before = this.#tokens.get(principal)
    if (before === token) return
    if (before === undefined && this.#tokens.size >= MOST) this.#forgetOldest()
    this.#tokens.set(principal, token)
    if (before !== undefined) this.#changed(principal)
  }

  of(principal: string): string | undefined {
    return this.#tokens.get(principal)
  }

  #forgetOldest(): void {
    const [oldest] = this.#tokens.keys()
    if (oldest !== undefined) this.#tokens.delete(oldest)
  }
}
