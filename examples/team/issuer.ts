/**
 * A small authorization server (oidc-provider): three users in two groups, whose tokens say so in `groups`. People are played: whoever
 * the authorization request hints at logs in and consents. Yours is the one of your organisation; Trunkline issues no tokens itself.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

const GROUPS: Readonly<Record<string, readonly string[]>> = { alice: ['dev'], bob: ['sre'], carol: ['dev', 'sre'] }
/** Nobody listens there: the code is read off the address. */
const REDIRECT = 'http://127.0.0.1:9/callback'
const SCOPES = ['mcp:connect', 'mcp:desk']
// The words of RFC 7636, appendix B.
const [VERIFIER, CHALLENGE] = ['dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk', 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM']

export interface Issuer extends AsyncDisposable {
  readonly issuer: string
  /** An access token of a user for one resource, as a host gets it: by the code flow with PKCE. */
  tokenOf(user: string, resource: string): Promise<string>
  /** Plays the browser of a user at an authorization URL; where it is sent in the end. */
  signIn(url: URL, user: string): Promise<URL>
}

/** Listens on a free port of 127.0.0.1. */
export const startIssuer = async (): Promise<Issuer> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, CONFIGURATION)
  const handle = provider.callback()
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.startsWith('/interaction/') === true) void interact(provider, request, response)
    else handle(request, response)
  })
  return {
    issuer,
    signIn,
    tokenOf: async (user, resource) => {
      const url = new URL(`${issuer}/auth`)
      url.search = new URLSearchParams({
        client_id: 'host',
        response_type: 'code',
        redirect_uri: REDIRECT,
        scope: 'openid mcp:connect',
        resource,
        code_challenge: CHALLENGE,
        code_challenge_method: 'S256',
      }).toString()
      const code = (await signIn(url, user)).searchParams.get('code') ?? ''
      const form = { grant_type: 'authorization_code', client_id: 'host', redirect_uri: REDIRECT, code, resource }
      const body = new URLSearchParams({ ...form, code_verifier: VERIFIER })
      const reply = await fetch(`${issuer}/token`, { method: 'POST', body })
      return ((await reply.json()) as { access_token: string }).access_token
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const CONFIGURATION = {
  cookies: { keys: ['not a secret: this server lives as long as the check'] },
  scopes: ['openid', 'offline_access', ...SCOPES],
  clients: [
    {
      client_id: 'host',
      token_endpoint_auth_method: 'none',
      redirect_uris: [REDIRECT],
      response_types: ['code'],
      application_type: 'native',
    },
  ],
  findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_: unknown, { accountId = '' }: { accountId?: string }) => ({ groups: GROUPS[accountId] ?? [] }),
  interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
  ttl: { AccessToken: 600, IdToken: 600, Interaction: 600, Grant: 3_600, Session: 3_600, RefreshToken: 3_600 },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true }, // Trunkline registers itself for the desk
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_: unknown, audience: string) => ({
        audience,
        scope: SCOPES.join(' '),
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
}

/** Logs in whom the request hints at, then consents to all that is asked. */
const interact = async (provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { prompt, params, session } = await provider.interactionDetails(request, response)
  const { login_hint: accountId, client_id: clientId, scope, resource } = params as Record<string, string>
  if (prompt.name === 'login')
    return provider.interactionFinished(request, response, { login: { accountId } }, { mergeWithLastSubmission: false })
  const grant = new provider.Grant({ accountId: session?.accountId, clientId: clientId ?? '' })
  grant.addOIDCScope(scope ?? '')
  grant.addResourceScope(resource ?? '', scope ?? '')
  const result = { consent: { grantId: await grant.save() } }
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true })
}

/** Follows redirects with cookies, within the authorization server, until it sends the browser elsewhere. */
const signIn = async (url: URL, user: string): Promise<URL> => {
  const cookies = new Map<string, string>()
  let at = new URL(url)
  at.searchParams.set('login_hint', user)
  while (at.origin === url.origin) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const reply = await fetch(at, { redirect: 'manual', headers: { cookie } })
    for (const line of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = reply.headers.get('location')
    if (location === null) throw new Error(`the browser of ${user} is stuck: ${reply.status} ${await reply.text()}`)
    at = new URL(location, at)
  }
  return at
}
