/** The latest access token of each caller, in memory, for token exchange (RFC 8693): sent only to its own issuer. */
import { setBounded } from '../values/bounded-map.ts'

/** Callers with a token. The oldest token is removed first; the next request of its caller brings it again. */
const MOST = 10_000

/** If a second token of a caller is refused within this time, the token is not the cause: its host is not asked to sign in again. */
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
  readonly #now: () => number
  #isWanted = false

  /** `changed` is called when a caller uses another token, which the issuer may accept. `now`: monotonic, in milliseconds. */
  constructor(changed: (principal: string) => void, now: () => number = () => performance.now()) {
    this.#changed = changed
    this.#now = now
  }

  /** Whether a server needs tokens; if not, none are kept. */
  get isWanted(): boolean {
    return this.#isWanted
  }

  want(isWanted: boolean): void {
    this.#isWanted = isWanted
    if (isWanted) return
    this.#tokens.clear()
    this.#refused.clear()
  }

  /** Records that the issuer refused to exchange a token. Further tokens of the caller within ten minutes are not recorded. */
  refuse(principal: string, token: string): void {
    const before = this.#refused.get(principal)
    if (before !== undefined && this.#now() - before.atMs < REFUSAL_MS) return
    setBounded(this.#refused, principal, { token, atMs: this.#now() }, MOST)
  }

  /** Whether the issuer refused to exchange this token, so that the host must get another one. */
  isRefused(principal: string, token: string): boolean {
    return this.#refused.get(principal)?.token === token
  }

  remember(principal: string, token: string): void {
    if (!this.#isWanted) return
    const before = this.#tokens.get(principal)
    if (before === token) return
    setBounded(this.#tokens, principal, token, MOST)
    if (before !== undefined) this.#changed(principal)
  }

  of(principal: string): string | undefined {
    return this.#tokens.get(principal)
  }
}
