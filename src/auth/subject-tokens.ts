/**
 * The token that each caller came with last, in memory only: kept where some server's credential is made of it (RFC 8693), and sent
 * to the authorization server it is from and nowhere else.
 */

/** Callers that are remembered; the one that was first seen is forgotten first, and brings the token again. */
const MOST = 10_000

export class SubjectTokens {
  readonly #tokens = new Map<string, string>()
  readonly #changed: (principal: string) => void
  #isWanted = false

  /** `changed`: called when a caller came with another token than before: what the old one was refused for may be mended. */
  constructor(changed: (principal: string) => void) {
    this.#changed = changed
  }

  /** Whether any server needs them; if not, none is kept. */
  get isWanted(): boolean {
    return this.#isWanted
  }

  want(isWanted: boolean): void {
    this.#isWanted = isWanted
    if (!isWanted) this.#tokens.clear()
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
