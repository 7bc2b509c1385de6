/**
 * The endpoints as OAuth protected resources: their URIs, their metadata documents, and the challenges for hosts without a valid token
 * ([RFC 9728], [RFC 6750] 3; BRIDGING 6.1; B232, B233, B264).
 *
 *     /mcp, /mcp/<toolset>       resource …/mcp: a toolset is below it
 *     /sse, /messages, below     resource …/sse
 *     /servers/<key>/messages    resource …/servers/<key>/sse
 *     /servers/<key>/mcp, /sse   resource …/servers/<key>/mcp or /sse, also for unknown servers: the caller is not authenticated yet
 */
import { advertisedScopes, issuersOf } from './verify/inbound-options.ts'
import type { ResourceServerOptions } from './verify/inbound-options.ts'
import { serverKeyAt, streamBeside } from './server-endpoints.ts'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** `error`: code of [RFC 6750] 3.1; `undefined`: the request had no credential. */
export interface Challenge {
  readonly error: 'invalid_token' | 'invalid_request' | 'insufficient_scope' | undefined
  /** All scopes that the operation requires. */
  readonly scopes: readonly string[]
}

export class ProtectedResource {
  readonly #options: ResourceServerOptions
  /** `listen.http.path`. */
  readonly #path: string
  readonly #origin: string
  /** Path prefix of a proxy. */
  readonly #prefix: string

  constructor(options: ResourceServerOptions, path: string) {
    const { origin, pathname } = new URL(options.audience)
    this.#options = options
    this.#path = path
    this.#origin = origin
    this.#prefix = pathname.slice(0, -path.length)
  }

  /** Returns the URI that the audience of a token must equal or contain at a path (B234). */
  uriOf(path: string): string {
    if (path === this.#path) return this.#options.audience
    return this.#origin + this.#prefix + streamBeside(path)
  }

  /** Returns the metadata document at a path as JSON text; `undefined`: not the document of an endpoint. */
  documentAt(path: string): string | undefined {
    if (path !== WELL_KNOWN && !path.startsWith(`${WELL_KNOWN}/`)) return undefined
    const named = path.slice(WELL_KNOWN.length)
    const own = named.startsWith(`${this.#prefix}/`) ? named.slice(this.#prefix.length) : named
    const resource = own === '' ? this.#path : this.#resourceAbove(own)
    if (resource === undefined) return undefined
    const scopes = this.#requested(this.advertised(resource))
    return JSON.stringify({
      resource: this.#origin + this.#prefix + resource,
      authorization_servers: this.#authorizationServers(),
      ...(scopes.length > 0 && { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
      resource_name: 'Trunkline',
    })
  }

  /** URL under which hosts reach the gateway: the issuer identifier of the registration proxy. */
  get base(): string {
    return this.#origin + this.#prefix
  }

  /** Only the registration proxy if it is configured, since some hosts also try other entries than the first. */
  #authorizationServers(): readonly string[] {
    const { proxiesRegistration } = this.#options
    return proxiesRegistration ? [this.base] : issuersOf(this.#options).map(({ issuer }) => issuer)
  }

  /** Returns the scopes that a host without a credential should request at a path. */
  advertised(path: string): readonly string[] {
    return advertisedScopes(this.#options, serverKeyAt(path))
  }

  /** Returns the value of `WWW-Authenticate` at a path. */
  challenge(path: string, { error, scopes }: Challenge): string {
    const named = this.#resourceAbove(path) ?? this.#path
    const requested = this.#requested(scopes)
    const facts = [
      ...(error === undefined ? [] : [`error="${error}"`]),
      ...(requested.length === 0 ? [] : [`scope="${requested.join(' ')}"`]),
      `resource_metadata="${this.#origin}${WELL_KNOWN}${this.#prefix}${named}"`,
    ]
    return `Bearer ${facts.join(', ')}`
  }

  /** Adds the scopes that the issuer needs in every request, since hosts request exactly the advertised scopes. */
  #requested(scopes: readonly string[]): readonly string[] {
    return [...new Set([...this.#options.requestScopes, ...scopes])]
  }

  /** Returns the path of the resource that contains an endpoint; `undefined`: not an endpoint. */
  #resourceAbove(path: string): string | undefined {
    if (path === this.#path || path.startsWith(`${this.#path}/`)) return this.#path
    if (/^\/(sse|messages)(\/|$)/.test(path)) return '/sse'
    return serverKeyAt(path) === undefined ? undefined : streamBeside(path)
  }
}
