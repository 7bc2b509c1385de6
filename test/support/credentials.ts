/** Credentials for tests of who may come in: static tokens, and what a configuration says of them. */
import type { AuthOptions, ResourceServerOptions, StaticToken } from '../../src/auth/inbound/verify/inbound-options.ts'
import type { SignInOptions } from '../../src/auth/credential-options.ts'
import { hashLine, readHash } from '../../src/auth/inbound/static-tokens.ts'
import type { AuthorizationServer } from './authorization-server.ts'

/** 32 bytes of one letter; a token by its letter. */
export const tokenOf = (letter: string): string => `tlk_${Buffer.alloc(32, letter).toString('base64url')}`

export const staticToken = (id: string, facts: Partial<StaticToken> = {}): StaticToken => ({
  id,
  hash: readHash(hashLine(tokenOf(id))) ?? '',
  toolsets: undefined,
  expiresMs: Infinity,
  isOperator: false,
  ...facts,
})

/** Static tokens `A` and `B`, of one principal each. */
export const TWO_TOKENS: AuthOptions = { tokens: [staticToken('A'), staticToken('B')], oauth: undefined, map: [] }

/** Each caller signs in at the server for itself; one that asks for no token takes everybody. */
export const PER_USER: SignInOptions = {
  mode: 'user',
  perUser: true,
  client: undefined,
  clientDocument: undefined,
  scopes: undefined,
  isPrivate: false,
}

/** Tokens of `server`, for the endpoint at `audience`. */
export const oauthOf = (
  server: Pick<AuthorizationServer, 'issuer'>,
  audience: string,
  facts: Partial<ResourceServerOptions> = {},
): AuthOptions => ({
  tokens: [],
  map: [],
  oauth: {
    issuer: server.issuer,
    audience,
    subject: 'sub',
    scopes: ['mcp:connect'],
    requestScopes: [],
    advertise: 'reads',
    maxTokenCharacters: 64 * 1_024,
    jwksUri: undefined,
    introspection: undefined,
    introspectsAll: false,
    allowsHttp: false,
    client: undefined,
    otherIssuers: [],
    otherAudiences: [],
    proxiesRegistration: false,
    hostClients: [],
    relaysMetadata: false,
    ...facts,
  },
})

export const bearer = (token: string): { readonly authorization: string } => ({ authorization: `Bearer ${token}` })
