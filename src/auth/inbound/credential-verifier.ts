/**
 * Resolves a credential to an identity. A credential verified within the last minute is cached and needs no promise. All others are looked
 * up among the static tokens, and then verified by their authorization server.
 */
import type { Admitted } from '../identity.ts'
import type { AuthOptions } from './verify/inbound-options.ts'
import { CredentialCache } from './credential-cache.ts'
import type { TokenRefusal } from '../token-refusal.ts'
import type { Fetch } from '../fetch/safe-fetch.ts'
import { SYSTEM_CLOCK } from './verify/clock.ts'
import type { Clock } from './verify/clock.ts'
import type { ResourceServer } from './verify/resource-server.ts'
import { digestOf, StaticTokens } from './static-tokens.ts'
import { lazily } from '../../values/lazily.ts'

/** Concurrent verifications. Anyone can send any number of tokens, so requests to the authorization server are limited. */
const MAX_PENDING = 256

/** Too many verifications are pending. */
export class VerifierBusy extends Error {}

export class CredentialVerifier {
  readonly #tokens: StaticTokens
  readonly #resourceServer: (() => Promise<ResourceServer>) | undefined
  readonly #cache = new CredentialCache()
  readonly #clock: Clock
  /** By digest in base64url: requests with the same token share one verification. */
  readonly #pending = new Map<string, Promise<Admitted | undefined>>()

  /** `refused` is called for each refused token of an authorization server. */
  constructor(
    { tokens, oauth, map }: AuthOptions,
    fetch: Fetch,
    refused: (why: TokenRefusal) => void = () => undefined,
    clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#clock = clock
    this.#tokens = new StaticTokens(tokens)
    if (oauth === undefined) return
    // Loads its libraries when a token first needs them.
    this.#resourceServer = lazily(async () => {
      const module = await import('./verify/resource-server.ts')
      return new module.ResourceServer(oauth, map, fetch, clock, refused)
    })
  }

  /** The identity of a token; `undefined`: invalid. The promise rejects with `IssuerUnreachable` or `VerifierBusy`. */
  admit(token: string, digest = digestOf(token)): Admitted | undefined | Promise<Admitted | undefined> {
    const nowMs = this.#clock.wallMs()
    const cached = this.#cache.find(digest, nowMs)
    if (cached !== undefined) return cached
    const own = this.#tokens.find(digest)
    if (own === undefined) return this.#resourceServer && this.#verified(token, digest, this.#resourceServer())
    if (own.untilMs <= nowMs) return undefined
    this.#cache.set(digest, own, nowMs)
    return own
  }

  /** Resolves with the authorization server's metadata, unchanged; `undefined`: none is configured. Rejects with `IssuerUnreachable`. */
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
        if (admitted !== undefined) this.#cache.set(digest, admitted, this.#clock.wallMs())
        return admitted
      })
      .finally(() => this.#pending.delete(name))
    this.#pending.set(name, verified)
    return verified
  }
}
