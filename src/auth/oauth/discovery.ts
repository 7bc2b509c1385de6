/**
 * From a server's challenge to the authorization server that speaks for it ([2026-07-28 basic/authorization/authorization-server-discovery];
 * B241, B242): the metadata of the protected resource, then that of its issuer, each from well-known places in a fixed order, each
 * believed only if it names itself as we know it.
 */
import { parseJsonObject } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Reach } from './addresses.ts'
import { AnswerTimeout } from './safe-fetch.ts'
import type { Fetch } from './safe-fetch.ts'

/** An authorization server, and the resource it gives tokens for. */
export interface Provider {
  /** As it names itself; compared as it stands. */
  readonly issuer: string
  /** What tokens are asked for: the resource's own name, or the server's URL. */
  readonly resource: string
  readonly authorizationEndpoint: string | undefined
  readonly tokenEndpoint: string
  readonly registrationEndpoint: string | undefined
  /** Scopes of the resource, and of the authorization server. */
  readonly resourceScopes: readonly string[] | undefined
  readonly scopes: readonly string[] | undefined
  /** Ways of authentication at the token endpoint; `undefined`: it does not say. */
  readonly tokenAuth: readonly string[] | undefined
  /** It takes PKCE with S256, or is of a revision in which all do. */
  readonly hasPkce: boolean
  /** It puts `iss` into every answer of its authorization endpoint ([RFC 9207]). */
  readonly tellsIssuer: boolean
  /** It reads Client ID Metadata Documents. */
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

/**
 * Rejects with `Failure`: `auth_required` where nothing is found, or what is found contradicts itself; `unreachable` where no answer
 * comes.
 */
export const discover = async (options: DiscoveryOptions): Promise<Provider> => {
  const { server } = options
  const resource = await resourceMetadata(options)
  if (resource === undefined) return ofOrigin(options)
  const name = textOf(resource, 'resource')
  if (name === undefined || !covers(name, server)) throw refused(`the metadata is of another resource than ${server.href}`)
  const [issuer] = textsOf(resource, 'authorization_servers') ?? []
  if (issuer === undefined) throw refused('the metadata of the resource names no authorization server')
  const metadata = await issuerMetadata(issuer, options)
  if (metadata === undefined) throw refused(`no metadata of the authorization server ${shown(issuer)}`)
  return providerOf(metadata, issuer, name, textsOf(resource, 'scopes_supported'))
}

/** The authorization servers that the resource names now; `undefined`: it has no metadata. */
export const issuersOf = async (options: DiscoveryOptions): Promise<readonly string[] | undefined> => {
  const resource = await resourceMetadata(options)
  return resource === undefined ? undefined : textsOf(resource, 'authorization_servers')
}

/** As `discover`, at an issuer that the configuration names: of the resource's metadata its name and scopes count alone. */
export const discoverAt = async (issuer: string, options: DiscoveryOptions): Promise<Provider> => {
  const { server } = options
  const resource = await resourceMetadata(options).catch(() => undefined)
  const name = resource && textOf(resource, 'resource')
  const isOwn = resource !== undefined && name !== undefined && covers(name, server)
  const provider = await discoverIssuer(issuer, isOwn ? name : canonicalUri(server), options)
  return { ...provider, resourceScopes: isOwn ? textsOf(resource, 'scopes_supported') : undefined }
}

/** The metadata of an issuer that the configuration names; `resource`: what its tokens are to be good for. */
export const discoverIssuer = async (
  issuer: string,
  resource: string,
  options: Pick<DiscoveryOptions, 'reach' | 'fetch'>,
): Promise<Provider> => {
  const metadata = await issuerMetadata(issuer, options)
  if (metadata === undefined) throw refused(`no metadata of the authorization server ${shown(issuer)}`)
  return providerOf(metadata, issuer, resource, undefined)
}

/**
 * Whether both name one issuer: letter for letter, but that an issuer without a path may end with a slash or not. Frameworks that
 * print a parsed URL (FastMCP) add one to the name that another part of them writes without.
 */
export const isSameIssuer = (one: string, other: string): boolean =>
  one === other || (isRootUrl(one) && isRootUrl(other) && withoutSlash(one) === withoutSlash(other))

const isRootUrl = (text: string): boolean => /^https?:\/\/[^/?#]+\/?$/.test(text)
const withoutSlash = (text: string): string => text.replace(/\/$/, '')

/** The URL without what is no part of a resource's name ([2026-07-28 basic/authorization/index], Canonical Server URI). */
export const canonicalUri = (url: URL): string => {
  const plain = new URL(url)
  plain.hash = ''
  plain.username = ''
  plain.password = ''
  return plain.pathname === '/' && plain.search === '' ? plain.origin : plain.href
}

/** Of the server itself, or of the same origin and above its path. */
const covers = (name: string, server: URL): boolean => {
  const url = URL.parse(name)
  if (url === null || url.origin !== server.origin || url.hash !== '') return false
  if (url.search !== '' && url.search !== server.search) return false
  const path = url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`
  return url.pathname === server.pathname || `${server.pathname}/`.startsWith(path)
}

const resourceMetadata = async ({ server, metadataUrl, reach, fetch }: DiscoveryOptions): Promise<Metadata | undefined> => {
  const wellKnown = `${server.origin}/.well-known/oauth-protected-resource`
  const path = server.pathname.replace(/\/$/, '')
  const places = metadataUrl === undefined ? [...(path === '' ? [] : [wellKnown + path]), wellKnown] : [metadataUrl]
  return firstOf(places, { reach, fetch })
}

/** [RFC 8414] and OpenID Connect Discovery, the path of the issuer inserted or appended. */
const issuerMetadata = (
  issuer: string,
  { reach, fetch }: Pick<DiscoveryOptions, 'reach' | 'fetch'>,
): Promise<Metadata | undefined> => {
  const url = URL.parse(issuer)
  if (url === null) throw refused('the authorization server is not named by a URL')
  const path = url.pathname.replace(/\/$/, '')
  const places = [
    `${url.origin}/.well-known/oauth-authorization-server${path}`,
    `${url.origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${url.origin}${path}/.well-known/openid-configuration`]),
  ]
  return firstOf(places, { reach, fetch })
}

/** Servers of 2025-03-26: their own origin is their authorization server, with endpoints at usual paths. */
const ofOrigin = async ({ server, reach, fetch }: DiscoveryOptions): Promise<Provider> => {
  const { origin } = server
  const metadata = await firstOf([`${origin}/.well-known/oauth-authorization-server`], { reach, fetch })
  const resource = canonicalUri(server)
  if (metadata !== undefined) return providerOf(metadata, origin, resource, undefined)
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

/** What proxies and servers answer that cannot serve a request now. */
const AWAY: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])

/**
 * The first document there is; a place that answers with anything else is passed over, one that cannot be reached as well. After one that
 * does not answer in time no other is asked: all are of one server.
 */
const firstOf = async (
  places: readonly string[],
  { reach, fetch }: Pick<DiscoveryOptions, 'reach' | 'fetch'>,
): Promise<Metadata | undefined> => {
  let trouble: unknown
  for (const url of places) {
    try {
      const { status, text } = await fetch({ url, reach, headers: { 'mcp-protocol-version': '2026-07-28' } })
      const document = status === 200 ? parseJsonObject(text) : undefined
      if (document !== undefined) return document
      if (AWAY.has(status)) trouble ??= new Error(`${new URL(url).origin}: answered HTTP ${status}`)
    } catch (error) {
      trouble ??= error
      if (error instanceof AnswerTimeout) break
    }
  }
  if (trouble instanceof Error)
    throw new Failure(
      'unreachable',
      `metadata cannot be fetched: ${trouble.message}`,
      { executed: 'no', retryable: true },
      trouble,
    )
  return undefined
}

const providerOf = (
  metadata: Metadata,
  issuer: string,
  resource: string,
  resourceScopes: readonly string[] | undefined,
): Provider => {
  const ownName = textOf(metadata, 'issuer')
  if (ownName === undefined || !isSameIssuer(ownName, issuer))
    throw refused(`the metadata of ${shown(issuer)} is of another issuer`)
  const tokenEndpoint = textOf(metadata, 'token_endpoint')
  if (tokenEndpoint === undefined) throw refused(`${shown(issuer)} names no token endpoint`)
  return {
    // From here on it is called as it calls itself: that is what its answers are compared with.
    issuer: ownName,
    resource,
    authorizationEndpoint: textOf(metadata, 'authorization_endpoint'),
    tokenEndpoint,
    registrationEndpoint: textOf(metadata, 'registration_endpoint'),
    resourceScopes,
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

/** As much of a hostile text as a log line needs. */
const shown = (issuer: string): string => JSON.stringify(issuer.slice(0, 200))

const refused = (message: string, cause?: unknown): Failure => new Failure('auth_required', message, { executed: 'no' }, cause)
