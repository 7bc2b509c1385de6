/** Options of `auth`; contradictions in it are reported with their places. */
import type { AuthOptions, IssuerOptions, ResourceServerOptions } from '../../../auth/inbound/verify/inbound-options.ts'
import { serverOfScope } from '../../../auth/inbound/verify/inbound-options.ts'
import { SUBJECT } from '../../../auth/inbound/verify/principal.ts'
import { operatorCommand } from '../../../operator-command.ts'
import { isSafe } from '../../schema/auth-schema.ts'
import type { AuthSection } from '../../schema/auth-schema.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem, ReportProblem } from '../../syntax/problems.ts'
import { child, itemsOf, scalarTexts } from '../../syntax/tree.ts'
import type { Tree } from '../../syntax/tree.ts'

/** What else of the configuration it depends on. */
interface AuthContext {
  /** Of Streamable HTTP. */
  readonly path: string
  /** Origin and path under which browsers and hosts reach us, where that is configured. */
  readonly publicUrl: string | undefined
  readonly serverKeys: ReadonlySet<string>
  readonly toolsets: ReadonlySet<string>
  /** There is a policy. */
  readonly keepsClaims: boolean
  /** `listen.limits.max_header` */
  readonly maxHeaderBytes: number
}

/** `undefined`: hosts need no credential. */
export const buildAuth = (
  section: AuthSection | undefined,
  tree: Tree | undefined,
  context: AuthContext,
  problems: Problem[],
): AuthOptions | undefined => {
  if (section === undefined || tree === undefined) return undefined
  const report = reporterAt(tree, problems)
  const { tokens, oauth, map } = section
  const mode = section.mode ?? (tokens && oauth ? 'any' : tokens ? 'tokens' : oauth ? 'oauth' : undefined)
  if (mode === undefined) report([], 'asks hosts for no credential', 'add tokens or oauth, or write mode: none')
  if (mode === undefined || mode === 'none') return undefined
  if (mode === 'tokens' && tokens === undefined) report(['mode'], 'mode tokens needs tokens', 'add them under auth.tokens')
  if (mode === 'oauth' && oauth === undefined) report(['mode'], 'mode oauth needs an authorization server', 'add auth.oauth')
  if (mode === 'any' && !tokens && !oauth) report(['mode'], 'mode any needs tokens, oauth or both', 'add one of them')
  if (tokens && mode === 'oauth') report(['tokens'], 'are not accepted in mode oauth', 'set mode "any", or remove them')
  if (oauth && mode === 'tokens') report(['oauth'], 'is not used in mode tokens', 'set mode "any", or remove it')
  if (map && !oauth) report(['map'], 'maps claims of OAuth tokens, but auth.oauth is missing', 'set auth.tokens[].toolsets')
  checkUnique(tokens ?? [], report)
  const checkToolsets = (path: readonly PropertyKey[], toolsets: readonly string[] = []): void => {
    for (const [at, name] of toolsets.entries())
      if (!context.toolsets.has(name)) report([...path, at], `there is no toolset "${name}"`, 'use a name from toolsets')
  }
  for (const [at, { toolsets }] of (tokens ?? []).entries()) checkToolsets(['tokens', at, 'toolsets'], toolsets)
  const issuers = [oauth?.issuer, ...(oauth?.issuers ?? []).map(({ issuer }) => issuer)]
  for (const [at, { when, toolsets }] of (map ?? []).entries()) {
    checkToolsets(['map', at, 'toolsets'], toolsets)
    if (when.issuer !== undefined && oauth !== undefined && !issuers.includes(when.issuer))
      report(
        ['map', at, 'when', 'issuer'],
        'is not an issuer of auth.oauth',
        'spell it as in auth.oauth.issuer or auth.oauth.issuers',
      )
  }
  return {
    tokens: (tokens ?? []).map(({ id, hash, toolsets, expires, operator }) => ({
      id,
      hash,
      toolsets,
      expiresMs: expires ?? Infinity,
      isOperator: operator ?? false,
    })),
    oauth: oauth && buildOauth(oauth, context, report),
    map: (map ?? []).map(({ when: { claim, issuer, has, is }, toolsets }) => ({ claim, issuer, has, is, toolsets })),
  }
}

/** Values of the section that no log may show. The hash of a token gives no access, but is hidden, too. */
export const secretsOfAuth = (tree: Tree | undefined): readonly string[] => {
  const hashes = itemsOf(child(tree, 'tokens')).flatMap((token) => scalarTexts(child(token, 'hash')))
  const oauth = child(tree, 'oauth')
  const issuers = [oauth, ...itemsOf(child(oauth, 'issuers'))]
  const secrets = issuers.flatMap((issuer) =>
    ['introspection', 'client'].flatMap((part) => scalarTexts(child(child(issuer, part), 'client_secret'))),
  )
  return [...hashes, ...secrets].map((text) => text.replace(/^sha256:/, '')).filter((text) => text !== '')
}

/** One sentence for each token that has expired. */
export const warnOfExpired = (auth: AuthOptions | undefined, nowMs: number): readonly string[] =>
  (auth?.tokens ?? [])
    .filter(({ expiresMs }) => expiresMs <= nowMs)
    .map(({ id }) => `auth: the token "${id}" has expired; make another with ${operatorCommand([], 'token', 'new', '--id', id)}`)

const checkUnique = (tokens: NonNullable<AuthSection['tokens']>, report: ReportProblem): void => {
  for (const key of ['id', 'hash'] as const) {
    const seen = new Set<string>()
    for (const [at, token] of tokens.entries()) {
      if (seen.has(token[key])) report(['tokens', at, key], `is the ${key} of another token already`, 'give each its own')
      seen.add(token[key])
    }
  }
}

const buildOauth = (
  oauth: NonNullable<AuthSection['oauth']>,
  { path, publicUrl, serverKeys, keepsClaims, maxHeaderBytes }: AuthContext,
  report: ReportProblem,
): ResourceServerOptions => {
  const { scopes = [], request_scopes: requestScopes = [], advertise = 'reads', issuers = [] } = oauth
  const given = oauth.audience ?? []
  const audience = endpointOf(given, publicUrl, path)
  if (audience === undefined)
    report(
      ['oauth', ...(oauth.audience === undefined ? [] : ['audience'])],
      oauth.audience === undefined
        ? 'does not say which audience tokens must have'
        : `names neither the origin of our endpoints nor the URL of ${path} (listen.http.path)`,
      'set listen.http.public_url, or auth.oauth.audience to the origin that hosts use, such as https://mcp.example.com',
    )
  const names = [oauth.issuer, ...issuers.map(({ issuer }) => issuer)]
  for (const [at, name] of names.entries())
    if (names.indexOf(name) < at)
      report(['oauth', 'issuers', at - 1, 'issuer'], 'is named already', 'name each authorization server once')
  for (const [name, list] of [
    ['scopes', scopes],
    ['request_scopes', requestScopes],
  ] as const)
    for (const [at, scope] of list.entries())
      if (scope === 'offline_access')
        report(['oauth', name, at], 'offline_access is between hosts and the authorization server', 'leave it out')
  for (const [at, scope] of scopes.entries()) {
    const server = serverOfScope(scope)
    if (server !== undefined && !serverKeys.has(server))
      report(['oauth', 'scopes', at], `names the server "${server}", which is not configured`, 'name a key of servers')
  }
  if (oauth.registration === 'proxy' && oauth.client === undefined)
    report(['oauth', 'registration'], 'proxy needs a client at the issuer', 'register one there, and add auth.oauth.client')
  if (oauth.registration === 'proxy' && oauth.legacy_metadata === true)
    report(['oauth', 'legacy_metadata'], 'has no effect beside registration: proxy', 'leave it out')
  const origin = audience === undefined ? '' : new URL(audience).origin
  return {
    ...buildIssuer(oauth, ['oauth'], report),
    otherIssuers: issuers.map((one, at) => buildIssuer(one, ['oauth', 'issuers', at], report)),
    audience: audience ?? '',
    otherAudiences: given.filter((value) => value !== origin && !value.startsWith(`${origin}/`)),
    scopes: [...new Set(scopes)],
    requestScopes: [...new Set(requestScopes)],
    advertise,
    maxTokenCharacters: maxHeaderBytes,
    ...(keepsClaims && { keepsClaims }),
    proxiesRegistration: oauth.registration === 'proxy',
    hostClients: (oauth.clients ?? []).map(({ client_id: id, name }) => ({ id, name })),
    relaysMetadata: oauth.legacy_metadata ?? false,
  }
}

type IssuerSection = Pick<
  NonNullable<AuthSection['oauth']>,
  'issuer' | 'subject' | 'jwks_uri' | 'introspection' | 'introspect' | 'allow_http' | 'client'
>

const buildIssuer = (section: IssuerSection, path: readonly PropertyKey[], report: ReportProblem): IssuerOptions => {
  const { issuer, subject = SUBJECT, jwks_uri: jwksUri, introspection, introspect, allow_http: allowsHttp = false } = section
  const urls: readonly (readonly [path: readonly PropertyKey[], url: string | undefined])[] = [
    [['issuer'], issuer],
    [['jwks_uri'], jwksUri],
    [['introspection', 'endpoint'], introspection?.endpoint],
  ]
  for (const [own, url] of urls)
    if (url !== undefined && !allowsHttp && !isSafe(new URL(url)))
      report(
        [...path, ...own],
        'tokens and keys are not sent over plain http',
        'use an https URL; inside a private network alone, set allow_http: true beside issuer',
      )
  if (introspect === 'always' && introspection === undefined)
    report([...path, 'introspect'], 'needs introspection', 'add introspection with client_id and client_secret')
  return {
    issuer,
    subject,
    jwksUri,
    introspection: introspection && {
      endpoint: introspection.endpoint,
      clientId: introspection.client_id,
      clientSecret: introspection.client_secret,
    },
    introspectsAll: introspect === 'always',
    allowsHttp,
    client: section.client && {
      client: { id: section.client.client_id, secret: section.client.client_secret, privateKey: undefined, algorithm: '' },
      scopes: section.client.scopes,
      sendsResource: section.client.resource ?? true,
    },
  }
}

/**
 * URL of `listen.http.path` as hosts know it: from the audiences, else from `public_url`, else from the first audience that is an
 * origin. `undefined`: none of them names it.
 */
const endpointOf = (audiences: readonly string[], publicUrl: string | undefined, path: string): string | undefined => {
  const urls = audiences.flatMap((text) => {
    const url = URL.parse(text)
    return url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '' ? [url] : []
  })
  const endpoint = urls.find(({ pathname }) => pathname.endsWith(path))
  if (endpoint !== undefined) return endpoint.href
  if (publicUrl !== undefined) return publicUrl + path
  const first = urls.find(({ pathname }) => pathname === '/')
  return first && first.origin + path
}
