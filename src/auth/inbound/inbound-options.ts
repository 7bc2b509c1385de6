/** The credentials that are accepted from the network, and the principals they stand for: `auth` of the configuration (BRIDGING 6.1). */
import type { ClientOptions } from '../oauth/options.ts'
import type { ClaimPath } from './claim-value.ts'

export interface AuthOptions {
  readonly tokens: readonly StaticToken[]
  readonly oauth: ResourceServerOptions | undefined
  /** Toolsets by the claims of an OAuth token. Empty: each token may use any toolset. */
  readonly map: readonly ClaimRule[]
}

/** A credential made by `trunkline token new`. */
export interface StaticToken {
  /** Names it in logs; the principal is made of it, so that a renewed token is the same caller. */
  readonly id: string
  /** SHA-256 of the token, 64 hex characters. */
  readonly hash: string
  /** `undefined`: any. */
  readonly toolsets: readonly string[] | undefined
  /** Wall clock in milliseconds; `Infinity`: never. */
  readonly expiresMs: number
  /** Sees and does everything at the admin listener. */
  readonly isOperator: boolean
}

/** `entrance`: those to come in; `reads`: also those of servers; `all`: also those to write. */
export type Advertised = 'entrance' | 'reads' | 'all'

/** An authorization server whose tokens are accepted, and how they are checked. */
export interface IssuerOptions {
  /** As its metadata and tokens spell it. */
  readonly issuer: string
  /** The claim that names the caller. */
  readonly subject: ClaimPath
  /** In place of what the issuer's metadata says. */
  readonly jwksUri: string | undefined
  /** How tokens are looked up that are not JWTs; `undefined`: they are refused. */
  readonly introspection: IntrospectionOptions | undefined
  /** Tokens that look like JWTs are looked up as well: their claims may be incomplete, or theirs alone to read. */
  readonly introspectsAll: boolean
  /** It may be reached over http at private addresses. */
  readonly allowsHttp: boolean
  /** Trunkline as a client of its own there; `undefined`: it is none. */
  readonly client: ClientAtIssuer | undefined
}

/** A client that an administrator registered at the issuer of the callers. */
export interface ClientAtIssuer {
  readonly client: ClientOptions
  /** Requested for hosts in place of the scopes that they ask for (`registration: proxy`); `undefined`: what they ask for. */
  readonly scopes: readonly string[] | undefined
  /** Whether `resource` of hosts is passed on ([RFC 8707]); some providers refuse it. */
  readonly sendsResource: boolean
}

/** A client id that hosts may use at the issuer. */
export interface HostClientId {
  readonly id: string
  /** Which hosts it is for, in words. */
  readonly name: string | undefined
}

/** We as an OAuth resource server. The authorization server that hosts are sent to is the first of all. */
export interface ResourceServerOptions extends IssuerOptions {
  /** Further authorization servers. */
  readonly otherIssuers: readonly IssuerOptions[]
  /** URL of `listen.http.path` as hosts know it, without a slash at its end. */
  readonly audience: string
  /** Identifiers of Trunkline at the issuers that are not URLs of its endpoints. A token for one of them is valid at every endpoint. */
  readonly otherAudiences: readonly string[]
  /** What hosts are asked for: `mcp:<key>` and `mcp:<key>:write` limit a server, all others are needed to come in. */
  readonly scopes: readonly string[]
  /** What hosts are asked to request beside them, for the issuer's sake alone: no token needs one of these. */
  readonly requestScopes: readonly string[]
  /** Which of `scopes` hosts are told of before they ask for anything in particular. */
  readonly advertise: Advertised
  /** A longer one could not be sent: `listen.limits.max_header`. */
  readonly maxTokenCharacters: number
  /** Rules of a policy read the claims. */
  readonly keepsClaims?: boolean
  /** Hosts register with us, and we pass them on with our own client. */
  readonly proxiesRegistration: boolean
  /** Client ids that hosts may be configured with. */
  readonly hostClients: readonly HostClientId[]
  /** Answer the issuer's metadata at our own origin, for hosts of 2025-03-26. */
  readonly relaysMetadata: boolean
}

export interface IntrospectionOptions {
  /** In place of what the issuer's metadata says. */
  readonly endpoint: string | undefined
  readonly clientId: string
  readonly clientSecret: string
}

/** A claim, and exactly one condition. */
export interface ClaimRule {
  readonly claim: ClaimPath
  /** Only for tokens of this issuer; `undefined`: of any. */
  readonly issuer: string | undefined
  /** One element of a list, or one word of a text; with or without a `/` at its beginning. */
  readonly has: string | undefined
  /** The whole value. */
  readonly is: string | undefined
  readonly toolsets: readonly string[]
}

/** What lets a host in, in the words of `auth.mode`. */
export const authMode = (auth: AuthOptions | undefined): 'none' | 'tokens' | 'oauth' | 'any' => {
  if (auth === undefined) return 'none'
  if (auth.oauth === undefined) return 'tokens'
  return auth.tokens.length === 0 ? 'oauth' : 'any'
}

/**
 * Whether hosts are given a token by hand. With an authorization server they sign in there, which a header in their own file would
 * prevent; one that cannot sign in gets its variable by `connect --token-env`.
 */
export const takesTokenByHand = (auth: AuthOptions | undefined): boolean => authMode(auth) === 'tokens'

/** Scopes that are needed to come in at all. */
export const entranceScopes = ({ scopes }: ResourceServerOptions): readonly string[] =>
  scopes.filter((scope) => serverOfScope(scope) === undefined)

/**
 * Scopes that a host is told of at an endpoint, in its challenge and its metadata: it can ask for no others. At the endpoint of one
 * `server`, what that server takes is always among them, and of other servers nothing is.
 */
export const advertisedScopes = ({ scopes, advertise }: ResourceServerOptions, server: string | undefined): readonly string[] =>
  scopes.filter((scope) => {
    const of = serverOfScope(scope)
    if (of === undefined) return true
    if (server !== undefined && of !== server) return false
    if (advertise === 'all') return true
    return !scope.endsWith(':write') && (server !== undefined || advertise === 'reads')
  })

/** Key of the server that a scope is about. */
export const serverOfScope = (scope: string): string | undefined =>
  scope === 'mcp:connect' ? undefined : /^mcp:([^:]+)(?::write)?$/.exec(scope)?.[1]

/** All authorization servers whose tokens are accepted, the one that hosts are sent to first. */
export const issuersOf = (options: ResourceServerOptions): readonly IssuerOptions[] => [options, ...options.otherIssuers]
