/** `auth` of a configuration, as the host room takes it: what contradicts itself is told with its place. */
import type { AuthOptions, ResourceServerOptions } from '../../auth/inbound/inbound-options.ts'
import { serverOfScope } from '../../auth/inbound/inbound-options.ts'
import { SUBJECT } from '../../auth/inbound/principal.ts'
import { operatorCommand } from '../../operator-command.ts'
import type { AuthSection } from '../schema/auth-schema.ts'
import type { Problem } from '../syntax/problems.ts'
import { child, nearest, scalars } from '../syntax/tree.ts'
import type { Tree } from '../syntax/tree.ts'

type Complain = (path: readonly PropertyKey[], message: string, remedy: string) => void

/** What else of the configuration it depends on. */
interface Around {
  /** Of Streamable HTTP. */
  readonly path: string
  readonly serverKeys: ReadonlySet<string>
  readonly toolsets: ReadonlySet<string>
  /** There is a policy. */
  readonly keepsClaims: boolean
}

/** `undefined`: everybody who reaches an address may come in. */
export const buildAuth = (
  section: AuthSection | undefined,
  tree: Tree | undefined,
  around: Around,
  problems: Problem[],
): AuthOptions | undefined => {
  if (section === undefined || tree === undefined) return undefined
  const complain: Complain = (path, message, remedy) => {
    const node = nearest(tree, path)
    problems.push({ place: node.place, path: node.path, message, remedy })
  }
  const { tokens, oauth, map } = section
  const mode = section.mode ?? (tokens && oauth ? 'any' : tokens ? 'tokens' : oauth ? 'oauth' : 'none')
  if (mode === 'none') return undefined
  const takesTokens = mode !== 'oauth'
  const takesOauth = mode !== 'tokens'
  if (mode === 'tokens' && tokens === undefined) complain(['mode'], 'mode tokens needs tokens', 'add them under auth.tokens')
  if (mode === 'oauth' && oauth === undefined) complain(['mode'], 'mode oauth needs an authorization server', 'add auth.oauth')
  if (mode === 'any' && !tokens && !oauth) complain(['mode'], 'mode any needs tokens, oauth or both', 'add one of them')
  if (tokens && !takesTokens) complain(['tokens'], 'are not taken in mode oauth', 'say mode "any", or leave them out')
  if (oauth && !takesOauth) complain(['oauth'], 'is not used in mode tokens', 'say mode "any", or leave it out')
  if (map && !oauth) complain(['map'], 'maps claims of OAuth tokens, and auth.oauth is not there', 'give auth.tokens[].toolsets')
  refuseTwice(tokens ?? [], complain)
  const known = (path: readonly PropertyKey[], toolsets: readonly string[] = []): void => {
    for (const [at, name] of toolsets.entries())
      if (!around.toolsets.has(name))
        complain([...path, at], `there is no toolset "${name}"`, 'name one that stands under toolsets')
  }
  for (const [at, { toolsets }] of (tokens ?? []).entries()) known(['tokens', at, 'toolsets'], toolsets)
  for (const [at, { toolsets }] of (map ?? []).entries()) known(['map', at, 'toolsets'], toolsets)
  return {
    tokens: (tokens ?? []).map(({ id, hash, toolsets, expires, operator }) => ({
      id,
      hash,
      toolsets,
      expiresMs: expires ?? Infinity,
      isOperator: operator ?? false,
    })),
    oauth: oauth && buildOauth(oauth, around, complain),
    map: (map ?? []).map(({ when: { claim, has, is }, toolsets }) => ({ claim, has, is, toolsets })),
  }
}

/** Values of the section that no log may show. A token's hash gives no access, but is hidden, too. */
export const secretsOfAuth = (tree: Tree | undefined): readonly string[] => {
  const tokens = child(tree, 'tokens')
  const hashes = tokens?.kind === 'list' ? tokens.items.flatMap((token) => scalars(child(token, 'hash'))) : []
  const secrets = scalars(child(child(child(tree, 'oauth'), 'introspection'), 'client_secret'))
  return [...hashes, ...secrets].map(({ value }) => String(value ?? '').replace(/^sha256:/, '')).filter((text) => text !== '')
}

/** Tokens that have ended already, one sentence each. */
export const warnOfExpired = (auth: AuthOptions | undefined, nowMs: number): readonly string[] =>
  (auth?.tokens ?? [])
    .filter(({ expiresMs }) => expiresMs <= nowMs)
    .map(({ id }) => `auth: the token "${id}" has expired; make another with ${operatorCommand([], 'token', 'new', '--id', id)}`)

const refuseTwice = (tokens: NonNullable<AuthSection['tokens']>, complain: Complain): void => {
  for (const key of ['id', 'hash'] as const) {
    const seen = new Set<string>()
    for (const [at, token] of tokens.entries()) {
      if (seen.has(token[key])) complain(['tokens', at, key], `is the ${key} of another token already`, 'give each its own')
      seen.add(token[key])
    }
  }
}

const buildOauth = (
  oauth: NonNullable<AuthSection['oauth']>,
  { path, serverKeys, keepsClaims }: Around,
  complain: Complain,
): ResourceServerOptions => {
  const { issuer, audience, subject = SUBJECT, scopes = [], advertise = 'reads', jwks_uri: jwksUri, introspection } = oauth
  if (!new URL(audience).pathname.endsWith(path))
    complain(['oauth', 'audience'], `is not the URL of ${path} (listen.http.path)`, `end it with ${path}`)
  for (const [at, scope] of scopes.entries()) {
    const server = serverOfScope(scope)
    if (scope === 'offline_access')
      complain(['oauth', 'scopes', at], 'offline_access is between hosts and the authorization server', 'leave it out')
    else if (server !== undefined && !serverKeys.has(server))
      complain(['oauth', 'scopes', at], `names the server "${server}", which is not configured`, 'name a key of servers')
  }
  return {
    issuer,
    audience,
    subject,
    scopes: [...new Set(scopes)],
    advertise,
    jwksUri,
    introspection: introspection && {
      endpoint: introspection.endpoint,
      clientId: introspection.client_id,
      clientSecret: introspection.client_secret,
    },
    ...(keepsClaims && { keepsClaims }),
    relaysMetadata: oauth.legacy_metadata ?? false,
  }
}
