/** Options for the credentials of hosts and the principals they identify: `auth` of the configuration (BRIDGING 6.1). */
import type { ClientOptions } from '../../credential-options.ts'
import type { ClaimPath } from './claim-value.ts'

export interface AuthOptions {
  readonly tokens: readonly StaticToken[]
  readonly oauth: ResourceServerOptions | undefined
  /** Toolsets by claims of an OAuth token. Empty: each token may use any toolset. */
  readonly map: readonly ClaimRule[]
}

/** A token of `trunkline token new`. */
export interface StaticToken {
  /** Name in logs. The principal is derived from it, so that a renewed token is the same caller. */
  readonly id: string
  /** SHA-256 of the token, 64 hex characters. */
  readonly hash: string
  /** `undefined`: any. */
  readonly toolsets: readonly string[] | undefined
  /** Wall clock in milliseconds; `Infinity`: never. */
  readonly expiresMs: number
  /** Has all rights at the admin listener. */
  readonly isOperator: boolean
}

/** `entrance`: scopes that every request requires; `reads`: also the read scopes of servers; `all`: also their write scopes. */
export type Advertised = 'entrance' | 'reads' | 'all'

/** An authorization server whose tokens are accepted, and how they are checked. */
export interface IssuerOptions {
  /** Exactly as in its metadata and tokens. */
  readonly issuer: string
  /** The claim that names the caller. */
  readonly subject: ClaimPath
  /** Replaces `jwks_uri` of the issuer's metadata. */
  readonly jwksUri: string | undefined
  /** Introspection of tokens that are not JWTs; `undefined`: they are refused. */
  readonly introspection: IntrospectionOptions | undefined
  /** JWTs are introspected as well, because their claims may be incomplete or not meant to be read. */
  readonly introspectsAll: boolean
  /** Allows http at private addresses. */
  readonly allowsHttp: boolean
  /** Trunkline's own client at the issuer; `undefined`: none. */
  readonly client: ClientAtIssuer | undefined
}

/** A client that an administrator registered at the callers' issuer. */
export interface ClientAtIssuer {
  readonly client: ClientOptions
  /** Requested for hosts instead of their own scopes (`registration: proxy`); `undefined`: their own scopes. */
  readonly scopes: readonly string[] | undefined
  /** Whether `resource` of hosts is relayed ([RFC 8707]); some providers refuse it. */
  readonly sendsResource: boolean
}

/** A client id that hosts may use at the issuer. */
export interface HostClientId {
  readonly id: string
  /** Description of the hosts it is for. */
  readonly name: string | undefined
}

/** Trunkline as an OAuth resource server. The inherited members describe the authorization server that hosts are sent to. */
export interface ResourceServerOptions extends IssuerOptions {
  /** Further authorization servers. */
  readonly otherIssuers: readonly IssuerOptions[]
  /** URL of `listen.http.path` as hosts use it, without a slash at its end. */
  readonly audience: string
  /** Other identifiers of Trunkline at the issuers. A token for one of them is valid at every endpoint. */
  readonly otherAudiences: readonly string[]
  /** Scopes of hosts: `mcp:<key>` and `mcp:<key>:write` are required for a server, all others for every request. */
  readonly scopes: readonly string[]
  /** Further scopes that hosts are asked to request for the issuer. Tokens do not need them. */
  readonly requestScopes: readonly string[]
  /** Which of `scopes` are advertised to hosts. */
  readonly advertise: Advertised
  /** By `listen.limits.max_header`: a longer token cannot be sent. */
  readonly maxTokenCharacters: number
  /** Policy rules read the claims. */
  readonly keepsClaims?: boolean
  /** Hosts register at Trunkline, which uses its own client at the issuer. */
  readonly proxiesRegistration: boolean
  readonly hostClients: readonly HostClientId[]
  /** Serves the issuer's metadata at our own origin, for hosts of 2025-03-26. */
  readonly relaysMetadata: boolean
}

export interface IntrospectionOptions {
  /** Replaces `introspection_endpoint` of the issuer's metadata. */
  readonly endpoint: string | undefined
  readonly clientId: string
  readonly clientSecret: string
}

/** A claim with exactly one condition (`has` or `is`). */
export interface ClaimRule {
  readonly claim: ClaimPath
  /** Only for tokens of this issuer; `undefined`: any. */
  readonly issuer: string | undefined
  /** An element of a list, or a word of a text; a leading `/` is ignored. */
  readonly has: string | undefined
  /** The whole value. */
  readonly is: string | undefined
  readonly toolsets: readonly string[]
}

/** Returns the accepted credentials in terms of `auth.mode`. */
export const authMode = (auth: AuthOptions | undefined): 'none' | 'tokens' | 'oauth' | 'any' => {
  if (auth === undefined) return 'none'
  if (auth.oauth === undefined) return 'tokens'
  return auth.tokens.length === 0 ? 'oauth' : 'any'
}

/**
 * Whether hosts are configured with a token. With an authorization server they sign in there, which a header in their file would prevent; a
 * host that cannot sign in gets a token variable by `connect --token-env`.
 */
export const takesTokenByHand = (auth: AuthOptions | undefined): boolean => authMode(auth) === 'tokens'

/** Returns the scopes that every request requires. */
export const entranceScopes = ({ scopes }: ResourceServerOptions): readonly string[] =>
  scopes.filter((scope) => serverOfScope(scope) === undefined)

/**
 * Returns the scopes that challenges and metadata of an endpoint advertise, since hosts request no others. The endpoint of one `server`
 * always advertises the read scope of that server, and no scope of other servers.
 */
export const advertisedScopes = ({ scopes, advertise }: ResourceServerOptions, server: string | undefined): readonly string[] =>
  scopes.filter((scope) => {
    const of = serverOfScope(scope)
    if (of === undefined) return true
    if (server !== undefined && of !== server) return false
    if (advertise === 'all') return true
    return !scope.endsWith(':write') && (server !== undefined || advertise === 'reads')
  })

/** Returns the server key of a scope; `undefined`: not a server's scope. */
export const serverOfScope = (scope: string): string | undefined =>
  scope === 'mcp:connect' ? undefined : /^mcp:([^:]+)(?::write)?$/.exec(scope)?.[1]

/** Returns all accepted authorization servers; the first is the one that hosts are sent to. */
export const issuersOf = (options: ResourceServerOptions): readonly IssuerOptions[] => [options, ...options.otherIssuers]
