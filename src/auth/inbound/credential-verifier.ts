/**
 * Whose credential this is. One that was found good a moment ago is known at once, without a promise: that is every call but the first
 * of a minute. All others are looked up among the static tokens, and then verified by their authorization server.
 */
import type { Admitted } from '../identity.ts'
import type { AuthOptions } from './inbound-options.ts'
import { KnownCredentials } from './known-credentials.ts'
import type { Refusal } from '../refusal.ts'
import type { Fetch } from '../oauth/safe-fetch.ts'
import type { Clock, ResourceServer } from './resource-server.ts'
import { digestOf, StaticTokens } from './static-tokens.ts'

/** Verifications under way: strangers may send as many tokens as they like, the authorization server is not asked as often. */
const MAX_PENDING = 256

const systemClock: Clock = { wallMs: Date.now, monotonicMs: () => performance.now() }

/** Too much is being verified to take one more. */
export class VerifierBusy extends Error {}

export class CredentialVerifier {
  readonly #tokens: StaticTokens
  readonly #resourceServer: (() => Promise<ResourceServer>) | undefined
  readonly #known = new KnownCredentials()
  readonly #clock: Clock
  /** By digest, in base64url: the same token is verified once at a time. */
  readonly #pending = new Map<string, Promise<Admitted | undefined>>()

  /** `refused` is called with why a token of an authorization server was refused. */
  constructor(
    { tokens, oauth, map }: AuthOptions,
    fetch: Fetch,
    refused: (why: Refusal) => void = () => undefined,
    clock: Clock = systemClock,
  ) {
    this.#clock = clock
    this.#tokens = new StaticTokens(tokens)
    if (oauth === undefined) return
    // Its libraries are read when a token first needs them.
    let made: Promise<ResourceServer> | undefined
    this.#resourceServer = () =>
      (made ??= import('./resource-server.ts').then((room) => new room.ResourceServer(oauth, map, fetch, clock, refused)))
  }

  /**
   * `undefined`: not a good credential. The promise rejects with `IssuerUnreachable` or `VerifierBusy` where that cannot be found out
   * now. `digest`: of the token, by `digestOf`.
   */
  admit(token: string, digest = digestOf(token)): Admitted | undefined | Promise<Admitted | undefined> {
    const nowMs = this.#clock.wallMs()
    const known = this.#known.find(digest, nowMs)
    if (known !== undefined) return known
    const own = this.#tokens.find(digest)
    if (own === undefined) return this.#resourceServer && this.#verified(token, digest, this.#resourceServer())
    if (own.untilMs <= nowMs) return undefined
    this.#known.keep(digest, own, nowMs)
    return own
  }

  /** The authorization server's own metadata, as it came. Rejects with `IssuerUnreachable`; `undefined`: there is none. */
  async issuerMetadata(): Promise<string | undefined> {
    const resourceServer = await this.#resourceServer?.()
    return (await resourceServer?.issuer.metadata())?.text
  }

  #verified(token: string, digest: Buffer, resourceServer: Promise<ResourceServer>): Promise<Admitted | undefined> {
    const name = digest.toString('base64url')
    const before = this.#pending.get(name)
    if (before !== undefined) return before
    if (this.#pending.size >= MAX_PENDING) return Promise.reject(new VerifierBusy('too many tokens are being verified'))
    const verified = resourceServer
      .then((server) => server.verify(token))
      .then((admitted) => {
        if (admitted !== undefined) this.#known.keep(digest, admitted, this.#clock.wallMs())
        return admitted
      })
      .finally(() => this.#pending.delete(name))
    this.#pending.set(name, verified)
    return verified
  }
}
