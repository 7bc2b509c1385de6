/**
 * A real authorization server in this process (oidc-provider), on a loopback port: discovery, code flow with PKCE, resource
 * indicators, JWT and opaque access tokens, client credentials, rotated refresh tokens, dynamic registration, introspection. Three
 * users in two groups. People are played by `signIn`: whoever the authorization request hints at logs in and consents to everything.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SignJWT } from 'jose'
import type { JWTHeaderParameters, JWTPayload } from 'jose'
import { Provider } from 'oidc-provider'
import { Journal } from './fakes/journal.ts'
import { listening } from './listening.ts'

/** Groups by user; tokens carry them as `groups`. */
export const USERS = { alice: ['dev'], bob: ['sre'], carol: ['dev', 'sre'] } as const
export type User = keyof typeof USERS

/** A confidential client for client credentials, introspection, and the code flow with `REDIRECT`. */
export const MACHINE = { id: 'machine', secret: 'secret-of-the-machine-client' } as const
/** Trunkline as a client that an administrator registered; its redirect URIs may have any port of the loopback address. */
export const TRUNKLINE = { id: 'trunkline', secret: 'secret-of-trunkline-as-a-client' } as const
/** A public client for the code flow; in contrast to one that registers itself it may ask for any scope. */
export const APP = { id: 'app' } as const
/** Where the code flow of both ends; nobody listens there. */
export const REDIRECT = 'http://127.0.0.1:9/callback'

export interface AuthorizationServerOptions {
  /** Scopes that a resource may grant; by default whatever is asked for of `mcp:…`. */
  readonly scopes?: readonly string[]
  readonly format?: 'jwt' | 'opaque'
  /** What clients that name no scopes at their registration are bound to; by default to none. */
  readonly clientScope?: string
  /** Seconds an access token is good. */
  readonly ttl?: number
}

export interface TokenRequest {
  /** Audience of the token. */
  readonly resource: string
  readonly scope?: string
  readonly clientId?: string
}

export interface TokenReply {
  readonly access_token: string
  readonly refresh_token?: string
  readonly expires_in: number
  readonly scope?: string
  readonly error?: string
}

export interface AuthorizationServer extends AsyncDisposable {
  readonly issuer: string
  /** `GET /path` of every request so far. */
  readonly requests: Journal<string>
  /** Private key that its tokens are signed with now, and its id. */
  readonly key: { readonly id: string; readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  /** A token by client credentials, from the token endpoint. */
  machineToken(request: TokenRequest): Promise<string>
  /** A token of a user by the whole code flow of `MACHINE`. */
  userToken(user: User, request: TokenRequest): Promise<TokenReply>
  /** Posts to the token endpoint as `MACHINE`. */
  exchange(form: Readonly<Record<string, string>>): Promise<TokenReply>
  /** Plays the browser of `user` at an authorization URL; resolves with where it is sent in the end, the code in its query. */
  signIn(url: URL, user: User): Promise<URL>
  /** Signs any claims with its key: what a thief of the key could, and what nobody else can. */
  sign(claims: JWTPayload, header?: Partial<JWTHeaderParameters>, key?: KeyObject): Promise<string>
  /** From now on signs with another key; only that one is published. */
  rotate(): void
  /** From now on every request is answered 503, or none at all (`silent`), or again as it should be. */
  fail(isFailing: boolean | 'silent'): void
}

const DEFAULT_SCOPES = ['mcp:connect', 'mcp:a', 'mcp:a:write', 'mcp:b', 'mcp:b:write', 'mcp:c', 'mcp:d']

export const startAuthorizationServer = async (options: AuthorizationServerOptions = {}): Promise<AuthorizationServer> => {
  const requests = new Journal<string>()
  let isFailing: boolean | 'silent' = false
  let key = makeKey()
  let handle: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end()
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${(request.url ?? '').replace(/\?.*/, '')}`)
    if (isFailing === 'silent') return
    if (isFailing) response.writeHead(503).end()
    else handle(request, response)
  })
  const opened = await listening(server)
  const issuer = opened.url
  const open = (): void => {
    const provider = makeProvider(issuer, key, options)
    const own = provider.callback()
    handle = (request, response) => {
      if (request.url?.startsWith('/interaction/') === true) void interact(provider, request, response)
      else own(request, response)
    }
  }
  open()
  const exchange = async (form: Readonly<Record<string, string>>): Promise<TokenReply> => {
    const reply = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${MACHINE.id}:${MACHINE.secret}`).toString('base64')}` },
      body: new URLSearchParams(form),
    })
    return (await reply.json()) as TokenReply
  }
  const result: AuthorizationServer = {
    issuer,
    requests,
    get key() {
      return key
    },
    exchange,
    machineToken: async ({ resource, scope = 'mcp:connect' }) => {
      const reply = await exchange({ grant_type: 'client_credentials', resource, scope })
      if (reply.error !== undefined) throw new Error(JSON.stringify(reply))
      return reply.access_token
    },
    userToken: async (user, { resource, scope = 'mcp:connect', clientId = MACHINE.id }) => {
      const url = new URL(`${issuer}/auth`)
      // PKCE with the plain words of RFC 7636, appendix B.
      url.search = new URLSearchParams({
        client_id: clientId,
        response_type: 'code',
        redirect_uri: REDIRECT,
        scope: `openid offline_access ${scope}`,
        prompt: 'consent',
        resource,
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      }).toString()
      const code = (await signIn(url, user)).searchParams.get('code') ?? ''
      const reply = await exchange({
        grant_type: 'authorization_code',
        code,
        redirect_uri: REDIRECT,
        resource,
        code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
      })
      if (reply.error !== undefined) throw new Error(JSON.stringify(reply))
      return reply
    },
    signIn,
    sign: (claims, header = {}, own = key.privateKey) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: key.id, typ: 'at+jwt', ...header }).sign(own),
    rotate: () => {
      key = makeKey()
      open()
    },
    fail: (failing) => (isFailing = failing),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return result
}

const makeKey = (): AuthorizationServer['key'] => ({
  id: randomUUID(),
  ...generateKeyPairSync('rsa', { modulusLength: 2048 }),
})

const makeProvider = (issuer: string, key: AuthorizationServer['key'], options: AuthorizationServerOptions): Provider => {
  const { scopes = DEFAULT_SCOPES, format = 'jwt', ttl = 600 } = options
  return new Provider(issuer, {
    jwks: { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.id, use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['not a secret: this server lives as long as a test'] },
    scopes: ['openid', 'offline_access', ...scopes],
    ...(options.clientScope !== undefined && { clientDefaults: { scope: options.clientScope } }),
    clients: [
      {
        client_id: MACHINE.id,
        client_secret: MACHINE.secret,
        grant_types: ['client_credentials', 'authorization_code', 'refresh_token'],
        redirect_uris: [REDIRECT],
        response_types: ['code'],
        application_type: 'native',
      },
      {
        client_id: TRUNKLINE.id,
        client_secret: TRUNKLINE.secret,
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: ['http://127.0.0.1/connect/identity', 'http://127.0.0.1/oauth/callback'],
        response_types: ['code'],
        application_type: 'native',
      },
      {
        client_id: APP.id,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: [REDIRECT],
        response_types: ['code'],
        application_type: 'native',
      },
    ],
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: (_: unknown, { accountId }: { accountId?: string }) => {
      return accountId === undefined ? undefined : { groups: USERS[accountId as User] ?? [] }
    },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: (_: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
      Promise.resolve(client.grantTypeAllowed('refresh_token')),
    ttl: {
      AccessToken: ttl,
      ClientCredentials: ttl,
      IdToken: ttl,
      Grant: 3_600,
      Interaction: 600,
      Session: 3_600,
      RefreshToken: 3_600,
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_: unknown, __: unknown, asked?: string) => asked,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: scopes.join(' '),
          audience: resource,
          accessTokenTTL: ttl,
          accessTokenFormat: format,
          ...(format === 'jwt' && { jwt: { sign: { alg: 'RS256' } } }),
        }),
      },
    },
  })
}

/** Logs in whom the request hints at, then consents to all that is asked. */
const interact = async (provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') {
    const result = { login: { accountId: String(params['login_hint']) } }
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }
  const clientId = String(params['client_id'])
  const grant =
    grantId === undefined ? new provider.Grant({ accountId: session?.accountId, clientId }) : await provider.Grant.find(grantId)
  const scope = typeof params['scope'] === 'string' ? params['scope'] : ''
  grant.addOIDCScope(scope)
  for (const resource of [params['resource']].flat()) if (typeof resource === 'string') grant.addResourceScope(resource, scope)
  const result = { consent: { grantId: await grant.save() } }
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true })
}

/** Follows redirects with cookies, within the authorization server, until it sends the browser elsewhere. */
const signIn = async (url: URL, user: User): Promise<URL> => {
  const start = new URL(url)
  start.searchParams.set('login_hint', user)
  const cookies = new Map<string, string>()
  let at = start
  while (at.origin === start.origin) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const reply = await fetch(at, { redirect: 'manual', headers: { cookie } })
    for (const line of reply.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (name !== undefined && value !== undefined) cookies.set(name, value)
    }
    const location = reply.headers.get('location')
    if (location === null) throw new Error(`the browser of ${user} is stuck: ${reply.status} ${await reply.text()}`)
    at = new URL(location, at)
  }
  return at
}
