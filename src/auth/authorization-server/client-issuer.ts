/**
 * The issuer of a configured client. The client, and with it its secret, is sent to the configured issuer, or else only to the issuer that
 * it was first used at, whatever issuer the server names later (B245).
 */
import { isSameIssuer } from './discovery.ts'
import { authRequired } from './failures.ts'
import type { StoreKey, TokenStore } from './token-store.ts'

export class ClientIssuer {
  readonly #store: TokenStore
  readonly #key: StoreKey<{ issuer: string }>
  readonly #isConfigured: boolean

  /** `server`: its key or URL. `isConfigured`: the configuration names the issuer. */
  constructor(store: TokenStore, server: string, clientId: string, isConfigured: boolean) {
    this.#store = store
    this.#key = ['issuer', server, clientId]
    this.#isConfigured = isConfigured
  }

  /** Throws `Failure` if the client is of another issuer. */
  check(issuer: string): void {
    const known = this.#store.read(this.#key)
    if (this.#isConfigured || known === undefined || isSameIssuer(known.issuer, issuer)) return
    throw authRequired(
      `client_id is of ${known.issuer}, and the server names ${issuer} now; if that is right, set issuer beside client_id`,
    )
  }

  /** Records the issuer after `check`. */
  keep(issuer: string): void {
    const known = this.#store.read(this.#key)
    if (known === undefined || !isSameIssuer(known.issuer, issuer)) this.#store.write(this.#key, { issuer })
  }
}
