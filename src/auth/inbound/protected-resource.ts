/**
 * Our endpoints as protected resources: the URI each is known by, the document that describes it, and what a host is told that has to
 * authenticate ([RFC 9728], [RFC 6750] 3; BRIDGING 6.1; B232, B233, B264).
 *
 *     /mcp, /mcp/<toolset>       resource …/mcp: a toolset is below it
 *     /sse, /messages, below     resource …/sse
 *     /servers/<key>/messages    resource …/servers/<key>/sse
 *     /servers/<key>/mcp, /sse   resource …/servers/<key>/mcp or /sse, also for unknown servers: the caller is not authenticated yet
 */
import { advertisedScopes, issuersOf } from './inbound-options.ts'
import type { ResourceServerOptions } from './inbound-options.ts'
import { serverKeyAt, streamBeside } from './server-endpoints.ts'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** `error`: what of [RFC 6750] 3.1 is the matter; `undefined`: no credential came. */
export interface Challenge {
  readonly error: 'invalid_token' | 'invalid_request' | 'insufficient_scope' | undefined
  /** All that the operation needs. */
  readonly scopes: readonly string[]
}

export class ProtectedResource {
  readonly #options: ResourceServerOptions
  /** Of `listen.http.path`. */
  readonly #path: string
  readonly #origin: string
  /** What stands before our paths where hosts see them, behind a proxy. */
  readonly #before: string

  constructor(options: ResourceServerOptions, path: string) {
    const { origin, pathname } = new URL(options.audience)
    this.#options = options
    this.#path = path
    this.#origin = origin
    this.#before = pathname.slice(0, -path.length)
  }

  /** The URI that a token must be for, or for one above it, at a path of ours (B234). */
  uriOf(path: string): string {
    if (path === this.#path) return this.#options.audience
    return this.#origin + this.#before + streamBeside(path)
  }

  /** The document at a path of ours as JSON text; `undefined`: no endpoint has its document there. */
  documentAt(path: string): string | undefined {
    if (path !== WELL_KNOWN && !path.startsWith(`${WELL_KNOWN}/`)) return undefined
    const named = path.slice(WELL_KNOWN.length)
    const own = this.#before !== '' && named.startsWith(`${this.#before}/`) ? named.slice(this.#before.length) : named
    const resource = own === '' ? this.#path : this.#resourceAbove(own)
    if (resource === undefined) return undefined
    const scopes = this.#requested(this.advertised(resource))
    return JSON.stringify({
      resource: this.#origin + this.#before + resource,
      authorization_servers: this.#authorizationServers(),
      ...(scopes.length > 0 && { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
      resource_name: 'Trunkline',
    })
  }

  /** Where hosts reach us: the identifier of the registration proxy. */
  get base(): string {
    return this.#origin + this.#before
  }

  /** With a proxy for registration that alone, since hosts try the first and some the others. */
  #authorizationServers(): readonly string[] {
    const { proxiesRegistration } = this.#options
    return proxiesRegistration ? [this.base] : issuersOf(this.#options).map(({ issuer }) => issuer)
  }

  /** What a host is to ask for that comes to this path without a credential. */
  advertised(path: string): readonly string[] {
    return advertisedScopes(this.#options, serverKeyAt(path))
  }

  /** Value of `WWW-Authenticate` at a path. */
  challenge(path: string, { error, scopes }: Challenge): string {
    const named = this.#resourceAbove(path) ?? this.#path
    const requested = this.#requested(scopes)
    const facts = [
      ...(error === undefined ? [] : [`error="${error}"`]),
      ...(requested.length === 0 ? [] : [`scope="${requested.join(' ')}"`]),
      `resource_metadata="${this.#origin}${WELL_KNOWN}${this.#before}${named}"`,
    ]
    return `Bearer ${facts.join(', ')}`
  }

  /** With what the issuer wants to be asked for: hosts request what they are told of, and nothing else. */
  #requested(scopes: readonly string[]): readonly string[] {
    return [...new Set([...this.#options.requestScopes, ...scopes])]
  }

  /** The path of the document's `resource` that an endpoint has. */
  #resourceAbove(path: string): string | undefined {
    if (path === this.#path || path.startsWith(`${this.#path}/`)) return this.#path
    if (/^\/(sse|messages)(\/|$)/.test(path)) return '/sse'
    return serverKeyAt(path) === undefined ? undefined : streamBeside(path)
  }
}
