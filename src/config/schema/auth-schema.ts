/** What may stand under `auth`: who may come in, and as whom (BRIDGING 6.1). */
import { z } from 'zod'
import { SUBJECT } from '../../auth/inbound/principal.ts'
import { readHash } from '../../auth/inbound/static-tokens.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import { operatorCommand } from '../../operator-command.ts'
import { choice, field, filledText, flag, headerValue, kind, listOf, texts } from './kinds.ts'

const DAY_MS = 86_400_000
const DATE = /^\d{4}-\d{2}-\d{2}$/
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/

/** `2027-06-30`, which ends with that day in UTC, or a moment; as milliseconds of the wall clock. `undefined`: neither. */
export const parseExpiry = (text: unknown): number | undefined => {
  if (typeof text !== 'string' || !(DATE.test(text) || MOMENT.test(text))) return undefined
  const at = Date.parse(text)
  // `Date` takes the 31st of June for the 1st of July.
  if (Number.isNaN(at) || (DATE.test(text) && new Date(at).toISOString().slice(0, 10) !== text)) return undefined
  return DATE.test(text) ? at + DAY_MS : at
}

const expiry = kind('a date such as 2027-06-30 or a moment such as 2027-06-30T12:00:00Z', { type: 'string' }, parseExpiry)

const tokenId = kind(
  'a name of letters, digits, . _ and - (at most 64)',
  { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$|\\$\\{' },
  (value) => (isTokenId(value) ? value : undefined),
)

/** What names a static token. */
export const isTokenId = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(value)

const tokenHash = kind(
  'the hash of a token, sha256: and 64 hex characters',
  { type: 'string', pattern: '^sha256:[0-9a-f]{64}$|\\$\\{' },
  (value) => (typeof value === 'string' ? readHash(value) : undefined),
  `make a token and its hash with ${operatorCommand([], 'token', 'new')}`,
)

/** Tokens and keys travel there: in the clear they do on this machine only. */
export const isSafe = (url: URL): boolean => url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname))
const isPlain = (url: URL, text: string): boolean => url.username === '' && url.password === '' && !/[?#]/.test(text)

/** Kept as it is written, for tokens must spell it so. Whether http may be spoken there is decided where `allow_http` is known. */
const issuerUrl = kind('an https URL without query', { type: 'string', pattern: '^https?://|\\$\\{' }, (value) => {
  if (typeof value !== 'string') return undefined
  const url = URL.parse(value)
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  return url !== null && isHttp && isPlain(url, value) ? value : undefined
})

const AUDIENCE = /^[\x21-\x7e]{1,512}$/

/** Kept as they are written, for tokens must spell them so. */
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

const scope = kind('a scope: visible characters without blanks, " and \\', { type: 'string' }, (value) =>
  typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/.test(value) ? value : undefined,
)

const toolsets = field(
  z.array(filledText),
  'The toolsets it may choose; the first is the one it gets unasked. By default it may choose each.',
)

const staticToken = z.strictObject({
  id: tokenId.meta({ description: 'Names it, and the caller it stands for: a renewed token keeps it.' }),
  hash: tokenHash.meta({ description: 'SHA-256 of the token, as `trunkline token new` prints it.' }),
  toolsets,
  expires: field(expiry, 'The last day (UTC) or the moment it is good.'),
  operator: field(flag, 'It sees everything at the admin listener; any other sees the calls of its own caller there.', false),
})

const introspection = z.strictObject({
  client_id: filledText.meta({ description: 'Who we are at the authorization server.' }),
  client_secret: headerValue.meta({ description: 'And how we prove it.' }),
  endpoint: field(issuerUrl, 'In place of what the metadata of the issuer names.'),
})

const client = z.strictObject({
  client_id: filledText.meta({ description: 'Trunkline as a client that you registered there.' }),
  client_secret: field(filledText, 'Its secret, if it has one.'),
  scopes: field(texts, 'With `registration: proxy`: the scopes to request, in place of those that hosts ask for.'),
  resource: field(flag, 'With `registration: proxy`: pass `resource` of hosts on. `false` for providers that refuse it.', true),
})

const hostClient = z.strictObject({
  client_id: filledText.meta({ description: 'A client that you registered at the issuer for hosts.' }),
  name: field(filledText, 'Which hosts it is for, in words.'),
})

/** What is said of each authorization server. */
const issuerFields = {
  issuer: issuerUrl.meta({ description: 'The authorization server, spelled as in its metadata and its tokens.' }),
  subject: field(
    claimPath,
    'The claim that names the caller, in place of `sub`; with dots, a path into objects. It must be unique and unchangeable at the issuer.',
    SUBJECT,
  ),
  jwks_uri: field(issuerUrl, 'Where its keys are, in place of what its metadata names.'),
  introspection: field(introspection, 'How tokens are looked up that are not JWTs; without it they are refused ([RFC 7662]).'),
  introspect: field(
    choice('opaque', 'always'),
    '`always`: tokens that look like JWTs are looked up as well, for issuers whose tokens hold less than their introspection answers.',
    'opaque',
  ),
  client: field(
    client,
    'Trunkline as a client of its own. With it people who sign in to a server in the browser prove by a sign-in there who they are.',
  ),
  allow_http: field(flag, 'It may have an http:// URL, and is reached over http at private addresses only.', false),
}

const oauth = z.strictObject({
  ...issuerFields,
  issuers: field(
    z.array(z.strictObject(issuerFields)),
    'Further authorization servers whose tokens are accepted. A caller of one is not a caller of another.',
  ),
  audience: field(
    audiences,
    'What tokens must be for: the origin of our endpoints as hosts know it, which opens all of them, or the URL of `listen.http.path`, which opens it alone. Further values stand for the origin, such as `api://…` or a client id; they must name Trunkline alone at the issuer. By default the origin of `listen.http.public_url`.',
  ),
  scopes: field(
    z.array(scope),
    'Scopes that hosts are asked for. `mcp:<key>` is needed for that server alone, `mcp:<key>:write` for its tools that do more than read; every other one to come in at all.',
  ),
  request_scopes: field(
    z.array(scope),
    'Scopes that hosts are told to request beside those, and that no token needs: what the issuer itself insists on, such as `openid`.',
  ),
  advertise: field(
    choice('entrance', 'reads', 'all'),
    'Which of them hosts are told of in challenges and metadata, and so can ask for: those to come in, also those of servers, or also those to write. The endpoint of one server always names its own.',
    'reads',
  ),
  registration: field(
    choice('issuer', 'proxy'),
    '`proxy`: hosts register with us, and people who consent are passed on to the issuer with `client`. For issuers without dynamic registration.',
    'issuer',
  ),
  clients: field(z.array(hostClient), 'Client ids that hosts can be configured with; the status page and `connect` show them.'),
  legacy_metadata: field(
    flag,
    'Answer the metadata of the issuer at `/.well-known/oauth-authorization-server`, where hosts of 2025-03-26 look for it.',
    false,
  ),
})

const rule = z.strictObject({
  when: z
    .strictObject({
      claim: claimPath.meta({
        description: 'A claim of the token; with dots, a path into objects; as a list, the steps of a path whose names have dots.',
      }),
      issuer: field(issuerUrl, 'Only for tokens of this authorization server.'),
      has: field(filledText, 'It is a list with this element, or a text with this word; `dev` and `/dev` are the same.'),
      is: field(filledText, 'It is this.'),
    })
    .refine(({ has, is }) => (has === undefined) !== (is === undefined), {
      message: 'say either "has" or "is"',
      params: { remedy: 'such as { claim: groups, has: sre }' },
    })
    .meta({ description: 'The condition: `claim` and either `has` or `is`.' }),
  toolsets: z.array(filledText).min(1).meta({ description: 'What it gives.' }),
})

export const authSchema = z.strictObject({
  mode: field(
    choice('none', 'tokens', 'oauth', 'any'),
    'What lets a host in: nothing is asked for, on loopback alone; a static token; a token of the authorization server; either. Without it: what is configured beside it.',
  ),
  tokens: field(z.array(staticToken), 'Static tokens, one for each machine that has no user.'),
  oauth: field(oauth, 'An authorization server, and we as its protected resource.'),
  map: field(
    z.array(rule),
    'From claims to toolsets: those of all rules that hold, the first rule’s first. A caller that meets none gets 403.',
  ),
})

export type AuthSection = z.output<typeof authSchema>
