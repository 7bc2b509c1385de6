/** `auth`: which callers are let in, and as which principals (BRIDGING 6.1). */
import { z } from 'zod'
import { SUBJECT } from '../../auth/inbound/verify/principal.ts'
import { readHash } from '../../auth/inbound/static-tokens.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import { operatorCommand } from '../../operator-command.ts'
import { choice, field, filledText, flag, headerValue, kind, listOf, parseHttpUrl, scope, texts } from './kinds.ts'

const DAY_MS = 86_400_000
const DATE = /^\d{4}-\d{2}-\d{2}$/
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/

/** `2027-06-30`, which means the end of that day in UTC, or a time; in milliseconds of the wall clock. `undefined`: neither. */
export const parseExpiry = (text: unknown): number | undefined => {
  if (typeof text !== 'string' || !(DATE.test(text) || MOMENT.test(text))) return undefined
  const at = Date.parse(text)
  // `Date` parses the 31st of June as the 1st of July.
  if (Number.isNaN(at) || (DATE.test(text) && new Date(at).toISOString().slice(0, 10) !== text)) return undefined
  return DATE.test(text) ? at + DAY_MS : at
}

const expiry = kind('a date such as 2027-06-30 or a time such as 2027-06-30T12:00:00Z', { type: 'string' }, parseExpiry)

const tokenId = kind(
  'a name of letters, digits, . _ and - (at most 64)',
  { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$|\\$\\{' },
  (value) => (isTokenId(value) ? value : undefined),
)

export const isTokenId = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(value)

const tokenHash = kind(
  'the hash of a token, sha256: and 64 hex characters',
  { type: 'string', pattern: '^sha256:[0-9a-f]{64}$|\\$\\{' },
  (value) => (typeof value === 'string' ? readHash(value) : undefined),
  `make a token and its hash with ${operatorCommand([], 'token', 'new')}`,
)

/** Whether tokens and keys may be sent to the URL: over https, or on this machine. */
export const isSafe = (url: URL): boolean =>
  url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname))
const isPlain = (url: URL, text: string): boolean => url.username === '' && url.password === '' && !/[?#]/.test(text)

/** Not normalised, since tokens must contain the same spelling. `build/hosts/auth.ts` checks `allow_http`. */
const issuerUrl = kind('an https URL without query', { type: 'string', pattern: '^https?://|\\$\\{' }, (value) => {
  const url = parseHttpUrl(value)
  return url !== undefined && isPlain(url, String(value)) ? String(value) : undefined
})

const AUDIENCE = /^[\x21-\x7e]{1,512}$/

/** Not normalised, since tokens must contain the same spelling. */
const audiences = kind(
  'the origin of our endpoints, such as https://mcp.example.com, or a list of it and other values of "aud"',
  { type: ['string', 'array'], items: { type: 'string' } },
  (value) => {
    const list = listOf(value, (item): item is string => typeof item === 'string' && AUDIENCE.test(item))
    return list?.length === 0 ? undefined : list
  },
)

const claimPath = kind(
  'a claim, such as groups or realm_access.roles, or a list of the steps to it',
  { type: ['string', 'array'], items: { type: 'string' }, minLength: 1 },
  (value) => {
    const steps = listOf(value, (step): step is string => typeof step === 'string' && step !== '')
    return steps === undefined || steps.length === 0 ? undefined : typeof value === 'string' ? value : steps
  },
  'such as ["resource_access", "my.client", "roles"]',
)

const toolsets = field(
  z.array(filledText),
  'The toolsets that its caller may choose; the first is the default. Without this option, all of them.',
)

const staticToken = z.strictObject({
  id: tokenId.meta({ description: 'Name of the token and of its caller: a renewed token keeps it.' }),
  hash: tokenHash.meta({ description: 'SHA-256 of the token, as `trunkline token new` prints it.' }),
  toolsets,
  expires: field(expiry, 'The last day (UTC) on which it is valid, or the time at which it expires.'),
  operator: field(
    flag,
    'It gives access to everything at the admin listener; other tokens only to the calls of their own caller.',
    false,
  ),
})

const introspection = z.strictObject({
  client_id: filledText.meta({ description: 'Client id of Trunkline at the authorization server.' }),
  client_secret: headerValue.meta({ description: 'Client secret of Trunkline.' }),
  endpoint: field(issuerUrl, 'Replaces the endpoint in the metadata of the issuer.'),
})

const client = z.strictObject({
  client_id: filledText.meta({ description: 'The client id under which you registered Trunkline there.' }),
  client_secret: field(filledText, 'Its secret, if it has one.'),
  scopes: field(texts, 'With `registration: proxy`: the scopes to request, in place of those of the host.'),
  resource: field(
    flag,
    'With `registration: proxy`: pass on the `resource` of hosts. `false` for providers that refuse it.',
    true,
  ),
})

const hostClient = z.strictObject({
  client_id: filledText.meta({ description: 'A client that you registered at the issuer for hosts.' }),
  name: field(filledText, 'Description of the hosts that use it.'),
})

/** The options of one authorization server. */
const issuerFields = {
  issuer: issuerUrl.meta({ description: 'URL of the authorization server, spelled as in its metadata and its tokens.' }),
  subject: field(
    claimPath,
    'The claim that identifies the caller; with dots, a path into objects. It must be unique and unchangeable at the issuer.',
    SUBJECT,
  ),
  jwks_uri: field(issuerUrl, 'URL of its keys, in place of the one in its metadata.'),
  introspection: field(introspection, 'Introspection ([RFC 7662]) of tokens that are not JWTs; without it they are refused.'),
  introspect: field(
    choice('opaque', 'always'),
    '`always`: JWTs are introspected as well, for issuers whose introspection returns claims that their tokens lack.',
    'opaque',
  ),
  client: field(
    client,
    'Trunkline as a client of this authorization server. It identifies people who sign in to a server in the browser.',
  ),
  allow_http: field(flag, 'Allows an http:// URL at a private address.', false),
}

const oauth = z.strictObject({
  ...issuerFields,
  issuers: field(
    z.array(z.strictObject(issuerFields)),
    'Further authorization servers whose tokens are accepted. Equal subjects of different issuers are different callers.',
  ),
  audience: field(
    audiences,
    'The audience that tokens must have: the origin of the endpoints as hosts know it, which is valid for all of them, or the URL of `listen.http.path`, which is valid for that endpoint only. Further values, such as `api://…` or a client id, count as the origin; at the issuer they must belong to Trunkline only. Default: the origin of `listen.http.public_url`.',
  ),
  scopes: field(
    z.array(scope),
    'Scopes that hosts need. `mcp:<key>` is needed for that server only, `mcp:<key>:write` for its tools that do more than read; every other scope is needed for each request.',
  ),
  request_scopes: field(
    z.array(scope),
    'Further scopes that hosts should request, and that tokens need not have, such as `openid` where the issuer requires it.',
  ),
  advertise: field(
    choice('entrance', 'reads', 'all'),
    'The scopes in challenges and metadata, which hosts then request: `entrance`: those for every request; `reads`: also those of servers; `all`: also those to write. The endpoint of one server always names its own.',
    'reads',
  ),
  registration: field(
    choice('issuer', 'proxy'),
    '`proxy`: hosts register with Trunkline, and people who consent are redirected to the issuer with `client`. For issuers without dynamic registration.',
    'issuer',
  ),
  clients: field(z.array(hostClient), 'Client ids that hosts can be configured with; the status page and `connect` show them.'),
  legacy_metadata: field(
    flag,
    'Serve the metadata of the issuer at `/.well-known/oauth-authorization-server`, where hosts of 2025-03-26 look for it.',
    false,
  ),
})

const rule = z.strictObject({
  when: z
    .strictObject({
      claim: claimPath.meta({
        description:
          'A claim of the token; with dots, a path into objects; as a list, the steps of a path whose names have dots.',
      }),
      issuer: field(issuerUrl, 'Only for tokens of this authorization server.'),
      has: field(filledText, 'The claim is a list with this element, or a text with this word; `dev` and `/dev` are the same.'),
      is: field(filledText, 'The claim equals this text.'),
    })
    .refine(({ has, is }) => (has === undefined) !== (is === undefined), {
      message: 'expects either "has" or "is"',
      params: { remedy: 'such as { claim: groups, has: sre }' },
    })
    .meta({ description: 'The condition: `claim` and either `has` or `is`.' }),
  toolsets: z.array(filledText).min(1).meta({ description: 'The toolsets that it gives access to.' }),
})

export const authSchema = z.strictObject({
  mode: field(
    choice('none', 'tokens', 'oauth', 'any'),
    'The credential that a host needs: none (on loopback only), a static token, a token of the authorization server, or either. Default: by what is configured here.',
  ),
  tokens: field(z.array(staticToken), 'Static tokens, for machines without a user.'),
  oauth: field(oauth, 'An authorization server; Trunkline is its protected resource.'),
  map: field(
    z.array(rule),
    'Toolsets by claims: the caller gets those of all rules that match, in the order of the rules. A caller without a matching rule gets 403.',
  ),
})

export type AuthSection = z.output<typeof authSchema>
