/** Tokens of the gateway at a server by client credentials, requested on demand ([ext oauth-client-credentials]; BRIDGING 6.2.8). */
import { Failure } from '../../wire/message/failure.ts'
import type { Credential, Rejection } from './credential.ts'
import { readChallenge } from './challenge.ts'
import { ClientIssuer } from '../authorization-server/client-issuer.ts'
import { canonicalUri, discover, discoverIssuer, issuersOf } from '../authorization-server/discovery.ts'
import type { DiscoveryOptions, Provider } from '../authorization-server/discovery.ts'
import type { OAuthEnvironment } from './environment.ts'
import { noToken } from '../authorization-server/failures.ts'
import { GrantPause } from '../authorization-server/grant-pause.ts'
import { reachOf } from '../fetch/reach.ts'
import type { Reach } from '../fetch/reach.ts'
import type { MachineOptions } from '../credential-options.ts'
import { chooseScopes, union } from '../authorization-server/scopes.ts'
import { isFresh, requestTokens, waitFor } from '../authorization-server/token-endpoint.ts'
import type { Tokens } from '../authorization-server/token-endpoint.ts'

/** Attempts to get the same missing scopes (B247). */
const MOST_STEPS = 2
/** Different missing scopes: a server may invent them. */
const MOST_MISSING = 32

export class MachineCredential implements Credential {
  readonly interactive = undefined
  readonly bearer: { value: string | undefined } = { value: undefined }
  readonly #server: URL
  readonly #reach: Reach
  readonly #options: MachineOptions
  readonly #environment: OAuthEnvironment
  readonly #pause = new GrantPause()
  #tokens: Tokens | undefined
  #scope: string | undefined
  /** Number of attempts by missing scopes, since the server last refused a token as such. */
  readonly #steps = new Map<string, number>()
  #obtaining: Promise<void> | undefined

  constructor(server: URL, options: MachineOptions, environment: OAuthEnvironment) {
    this.#server = server
    this.#reach = reachOf(server, options.isPrivate)
    this.#options = options
    this.#environment = environment
  }

  close(): void {
    this.#environment.secrets(this, [])
  }

  ready(): Promise<void> | undefined {
    const nowMs = this.#environment.now()
    if (this.#tokens !== undefined && isFresh(this.#tokens, nowMs)) return undefined
    return waitFor(this.#obtain(undefined), this.#tokens, nowMs)
  }

  async renew({ used, status, challenge }: Rejection): Promise<void> {
    if (this.#obtaining !== undefined) return this.#obtaining
    if (used !== this.bearer.value) return
    if (status === 403) this.#countStep(readChallenge(challenge).scope ?? '')
    else this.#steps.clear()
    await this.#obtain(challenge ?? '')
  }

  #countStep(missing: string): void {
    const steps = this.#steps.get(missing) ?? 0
    if (steps >= MOST_STEPS || (steps === 0 && this.#steps.size >= MOST_MISSING))
      throw new Failure('scope_required', 'the server wants more scopes, again and again', { executed: 'no' })
    this.#steps.set(missing, steps + 1)
  }

  /** `challenge`: of a refused request, empty if it had none; `undefined`: none was sent yet. */
  #obtain(challenge: string | undefined): Promise<void> {
    return (this.#obtaining ??= this.#request(challenge).finally(() => (this.#obtaining = undefined)))
  }

  async #request(challenge: string | undefined): Promise<void> {
    const { fetch, now, secrets, store } = this.#environment
    const { client, issuer, scopes } = this.#options
    const own = new ClientIssuer(store, this.#server.href, client.id, issuer !== undefined)
    const reach = this.#reach
    const asked = readChallenge(challenge)
    try {
      this.#pause.check()
      // The request goes out without a new token: its challenge may say where the metadata is.
      if (challenge === undefined && issuer === undefined && !(await this.#isDescribed())) return
      const provider = await this.#provider(asked.resourceMetadata)
      own.check(provider.issuer)
      const chosen = chooseScopes({
        configured: scopes,
        challenged: asked.scope,
        ofResource: provider.resourceScopes,
        ofIssuer: undefined,
        before: this.#scope,
      })
      const scope = union(chosen, this.#scope)
      const params = { grant_type: 'client_credentials', scope, resource: provider.resource }
      const tokens = await requestTokens({ provider, client, params, reach, fetch, now })
      own.keep(provider.issuer)
      secrets(this, [tokens.accessToken])
      this.#scope = scope
      this.#tokens = tokens
      this.bearer.value = `Bearer ${tokens.accessToken}`
    } catch (error) {
      if (error instanceof Failure) throw error
      throw noToken(this.#pause.begun(error))
    }
  }

  /** Whether the server's metadata is at a well-known place. */
  async #isDescribed(): Promise<boolean> {
    return (await issuersOf(this.#discovery(undefined))) !== undefined
  }

  #provider(metadataUrl: string | undefined): Promise<Provider> {
    const { issuer } = this.#options
    const discovery = this.#discovery(metadataUrl)
    return issuer === undefined ? discover(discovery) : discoverIssuer(issuer, canonicalUri(this.#server), discovery)
  }

  #discovery(metadataUrl: string | undefined): DiscoveryOptions {
    return { server: this.#server, metadataUrl, reach: this.#reach, fetch: this.#environment.fetch }
  }
}
