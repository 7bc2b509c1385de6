/**
 * The token that each caller came with last, in memory only: kept where some server's credential is made of it (RFC 8693), and never
 * sent to anybody but the authorization server it is from.
 */

/** Callers that are remembered; who came first is forgotten first, and brings the token again. */
const MOST = 10_000

export class SubjectTokens {
  readonly #tokens = new Map<string, string>()
  #isWanted = false

  /** Whether any server needs them; if not, none is kept. */
  want(isWanted: boolean): void {
    this.#isWanted = isWanted
    if (!isWanted) this.#tokens.clear()
  }

  hear(principal: string, token: string): void {
    if (!this.#isWanted || this.#tokens.get(principal) === token) return
    if (this.#tokens.size >= MOST) for (const [oldest] of this.#tokens) return this.#replace(oldest, principal, token)
    this.#tokens.set(principal, token)
  }

  of(principal: string): string | undefined {
    return this.#tokens.get(principal)
  }

  #replace(oldest: string, principal: string, token: string): void {
    this.#tokens.delete(oldest)
    this.#tokens.set(principal, token)
  }
}
