/**
 * Finds the authorization server of an MCP server ([2026-07-28 basic/authorization/authorization-server-discovery]; B241, B242): reads the
 * metadata of the protected resource, then that of its issuer, each from well-known URLs in a fixed order. A document is accepted only if it
 * names the expected resource or issuer.
 */
import { parseJsonObject } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import { authRequired, unreachable } from './failures.ts'
import type { Reach } from '../fetch/reach.ts'
import { AnswerTimeout } from '../fetch/safe-fetch.ts'
import type { Fetch } from '../fetch/safe-fetch.ts'

/** An authorization server, and the resource to request tokens for. */
export interface Provider {
  /** Its own spelling, which is compared exactly. */
  readonly issuer: string
  /** The resource's own identifier, or the server's URL. */
  readonly resource: string
  readonly authorizationEndpoint: string | undefined
  readonly tokenEndpoint: string
  readonly registrationEndpoint: string | undefined
  /** `scopes_supported` of the resource. */
  readonly resourceScopes: readonly string[] | undefined
  /** `scopes_supported` of the authorization server. */
  readonly scopes: readonly string[] | undefined
  /** Authentication methods of the token endpoint; `undefined`: not declared. */
  readonly tokenAuth: readonly string[] | undefined
  /** Supports PKCE with S256 (assumed for servers of 2025-03-26 without metadata). */
  readonly hasPkce: boolean
  /** Adds `iss` to every authorization response ([RFC 9207]). */
  readonly tellsIssuer: boolean
  /** Supports Client ID Metadata Documents. */
  readonly takesDocuments: boolean
}

export interface DiscoveryOptions {
  readonly server: URL
  /** `resource_metadata` of the challenge. */
  readonly metadataUrl: string | undefined
  readonly reach: Reach
  readonly fetch: Fetch
}

type Metadata = Readonly<Record<string, unknown>>

/** Rejects with `Failure`: `auth_required` if metadata is missing or contradictory, `unreachable` if it cannot be fetched. */
export const discover = async (options: DiscoveryOptions): Promise<Provider> => {
  const { server } = options
  const resource = await resourceMetadata(options)
  if (resource === undefined) return ofOrigin(options)
  const name = textOf(resource, 'resource')
  if (name === undefined || !covers(name, server)) throw authRequired(`the metadata is of another resource than ${server.href}`)
  const provider = await firstUsable(textsOf(resource, 'authorization_servers') ?? [], name, options)
  return { ...provider, resourceScopes: textsOf(resource, 'scopes_supported') }
}

/** The largest number of authorization servers that are asked for their metadata. */
const MOST_ISSUERS = 5

/**
 * Of several authorization servers the client selects one ([RFC 9728] 7.6): the first with usable metadata. One that cannot be reached now
 * is not passed over, so that a short outage does not register clients elsewhere. Rejects with the failure of the first.
 */
const firstUsable = async (issuers: readonly string[], resource: string, options: DiscoveryOptions): Promise<Provider> => {
  let failure: Failure | undefined
  for (const issuer of issuers.slice(0, MOST_ISSUERS)) {
    try {
      return await discoverIssuer(issuer, resource, options)
    } catch (error) {
      if (!(error instanceof Failure) || error.kind !== 'auth_required') throw error
      failure ??= error
    }
  }
  throw failure ?? authRequired('the metadata of the resource names no authorization server')
}

/** Resolves with the authorization servers that the resource names; `undefined`: it has no metadata. */
export const issuersOf = async (options: DiscoveryOptions): Promise<readonly string[] | undefined> => {
  const resource = await resourceMetadata(options)
  return resource === undefined ? undefined : textsOf(resource, 'authorization_servers')
}

/** As `discover`, but with a configured issuer: only identifier and scopes are taken from the resource's metadata. */
export const discoverAt = async (issuer: string, options: DiscoveryOptions): Promise<Provider> => {
  const { server } = options
  const resource = await resourceMetadata(options).catch(() => undefined)
  const name = resource && textOf(resource, 'resource')
  const isOwn = resource !== undefined && name !== undefined && covers(name, server)
  const provider = await discoverIssuer(issuer, isOwn ? name : canonicalUri(server), options)
  return { ...provider, resourceScopes: isOwn ? textsOf(resource, 'scopes_supported') : undefined }
}

/** Reads the metadata of an issuer. `resource`: to request tokens for. Rejects as `discover`. */
export const discoverIssuer = async (
  issuer: string,
  resource: string,
  options: Pick<DiscoveryOptions, 'reach' | 'fetch'>,
): Promise<Provider> => {
  const url = URL.parse(issuer)
  if (url === null) throw authRequired('the authorization server is not named by a URL')
  const metadata = await firstOf(issuerMetadataUrls(url), options, (found) => isOfIssuer(found, issuer))
  if (metadata === undefined) throw authRequired(`no metadata of the authorization server ${shown(issuer)}`)
  return providerOf(metadata, issuer, resource)
}

/** Whether both texts name one issuer: equal, or a URL without a path with a slash at its end, which FastMCP adds. */
export const isSameIssuer = (one: string, other: string): boolean =>
  one === other || (isRootUrl(one) && isRootUrl(other) && withoutSlash(one) === withoutSlash(other))

const isRootUrl = (text: string): boolean => /^https?:\/\/[^/?#]+\/?$/.test(text)
const withoutSlash = (text: string): string => text.replace(/\/$/, '')

/** Returns a server's URL as a resource identifier ([2026-07-28 basic/authorization/index], Canonical Server URI). */
export const canonicalUri = (url: URL): string => {
  const plain = new URL(url)
  plain.hash = ''
  plain.username = ''
  plain.password = ''
  return plain.pathname === '/' && plain.search === '' ? plain.origin : plain.href
}

/** Whether a resource identifier is the server's URL, or a URL above it at the same origin. */
const covers = (name: string, server: URL): boolean => {
  const url = URL.parse(name)
  if (url === null || url.origin !== server.origin || url.hash !== '') return false
  if (url.search !== '' && url.search !== server.search) return false
  const path = url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`
  return url.pathname === server.pathname || `${server.pathname}/`.startsWith(path)
}

const resourceMetadata = async ({ server, metadataUrl, reach, fetch }: DiscoveryOptions): Promise<Metadata | undefined> => {
  const wellKnown = `${server.origin}/.well-known/oauth-protected-resource`
  // A query belongs to the identifier of the resource as well ([RFC 9728] 3.1).
  const own = server.pathname.replace(/\/$/, '') + server.search
  const urls = metadataUrl === undefined ? [...(own === '' ? [] : [wellKnown + own]), wellKnown] : [metadataUrl]
  return firstOf(urls, { reach, fetch }, (found) => covers(textOf(found, 'resource') ?? '', server))
}

/** Returns the metadata URLs of an issuer: [RFC 8414] and OpenID Connect Discovery with the path inserted, then with the path first. */
export const issuerMetadataUrls = ({ origin, pathname }: URL): readonly string[] => {
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
  ]
}

/** Servers of 2025-03-26: the server's origin is the authorization server, with default endpoints if it has no metadata. */
const ofOrigin = async ({ server, reach, fetch }: DiscoveryOptions): Promise<Provider> => {
  const { origin } = server
  const metadata = await firstOf([`${origin}/.well-known/oauth-authorization-server`], { reach, fetch }, () => true)
  const resource = canonicalUri(server)
  if (metadata !== undefined) return providerOf(metadata, origin, resource)
  return {
    issuer: origin,
    resource,
    authorizationEndpoint: `${origin}/authorize`,
    tokenEndpoint: `${origin}/token`,
    registrationEndpoint: `${origin}/register`,
    resourceScopes: undefined,
    scopes: undefined,
    tokenAuth: undefined,
    hasPkce: true,
    tellsIssuer: false,
    takesDocuments: false,
  }
}

/** Statuses of proxies and servers that cannot serve a request now. */
const UNAVAILABLE: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])

/**
 * Resolves with the first document that is expected, else with the first one found; `undefined`: there is none. Other answers and errors are
 * skipped, but a timeout ends the search, since all URLs are at one server.
 */
const firstOf = async (
  urls: readonly string[],
  { reach, fetch }: Pick<DiscoveryOptions, 'reach' | 'fetch'>,
  isExpected: (document: Metadata) => boolean,
): Promise<Metadata | undefined> => {
  let other: Metadata | undefined
  let trouble: unknown
  for (const url of urls) {
    try {
      const { status, text } = await fetch({ url, reach, headers: { 'mcp-protocol-version': '2026-07-28' } })
      const document = status === 200 ? parseJsonObject(text) : undefined
      if (document !== undefined && isExpected(document)) return document
      other ??= document
      if (UNAVAILABLE.has(status)) trouble ??= new Error(`${new URL(url).origin}: answered HTTP ${status}`)
    } catch (error) {
      trouble ??= error
      if (error instanceof AnswerTimeout) break
    }
  }
  if (other !== undefined) return other
  if (trouble instanceof Error) throw unreachable('metadata cannot be fetched', trouble)
  return undefined
}

const isOfIssuer = (metadata: Metadata, issuer: string): boolean => isSameIssuer(textOf(metadata, 'issuer') ?? '', issuer)

const providerOf = (metadata: Metadata, issuer: string, resource: string): Provider => {
  const ownName = textOf(metadata, 'issuer')
  if (ownName === undefined || !isOfIssuer(metadata, issuer))
    throw authRequired(`the metadata of ${shown(issuer)} is of another issuer`)
  const tokenEndpoint = textOf(metadata, 'token_endpoint')
  if (tokenEndpoint === undefined) throw authRequired(`${shown(issuer)} names no token endpoint`)
  return {
    // Its own spelling, with which its responses are compared.
    issuer: ownName,
    resource,
    authorizationEndpoint: textOf(metadata, 'authorization_endpoint'),
    tokenEndpoint,
    registrationEndpoint: textOf(metadata, 'registration_endpoint'),
    resourceScopes: undefined,
    scopes: textsOf(metadata, 'scopes_supported'),
    tokenAuth: textsOf(metadata, 'token_endpoint_auth_methods_supported'),
    hasPkce: textsOf(metadata, 'code_challenge_methods_supported')?.includes('S256') === true,
    tellsIssuer: metadata['authorization_response_iss_parameter_supported'] === true,
    takesDocuments: metadata['client_id_metadata_document_supported'] === true,
  }
}

const textOf = (metadata: Metadata, member: string): string | undefined => {
  const value = metadata[member]
  return typeof value === 'string' ? value : undefined
}

const textsOf = (metadata: Metadata, member: string): readonly string[] | undefined => {
  const value = metadata[member]
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined
}

/** Quotes and shortens an untrusted text. */
const shown = (issuer: string): string => JSON.stringify(issuer.slice(0, 200))
