/** What may stand under `auth`: who may come in, and as whom (BRIDGING 6.1). */
import { z } from 'zod'
import { SUBJECT } from '../../auth/inbound/principal.ts'
import { readHash } from '../../auth/inbound/static-tokens.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import { operatorCommand } from '../../operator-command.ts'
import { choice, field, filledText, flag, headerValue, kind } from './kinds.ts'

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
const isSafe = (url: URL): boolean => url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname))
const isPlain = (url: URL, text: string): boolean => url.username === '' && url.password === '' && !/[?#]/.test(text)

/** Kept as it is written, for tokens must spell it so. */
const issuerUrl = kind(
  'an https URL without query (http on this machine only)',
  { type: 'string', pattern: '^https?://|\\$\\{' },
  (value) => {
    const url = typeof value === 'string' ? URL.parse(value) : null
    return url !== null && isSafe(url) && isPlain(url, value as string) ? (value as string) : undefined
  },
)

const audienceUrl = kind(
  'the URL of our endpoint as hosts know it, such as https://mcp.example.com/mcp',
  { type: 'string', pattern: '^https?://|\\$\\{' },
  (value) => {
    const url = typeof value === 'string' ? URL.parse(value) : null
    return url !== null && /^https?:$/.test(url.protocol) && isPlain(url, value as string) && !url.pathname.endsWith('/')
      ? url.href
      : undefined
  },
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

const oauth = z.strictObject({
  issuer: issuerUrl.meta({ description: 'The authorization server, spelled as in its metadata and its tokens.' }),
  audience: audienceUrl.meta({
    description: 'URL of `listen.http.path` as hosts know it: tokens must be for it, or for a path above it.',
  }),
  subject: field(
    filledText,
    'The claim that names the caller, in place of `sub`; with dots, a path into objects. It must be unique and unchangeable at the issuer.',
    SUBJECT,
  ),
  scopes: field(
    z.array(scope),
    'Scopes that hosts are asked for. `mcp:<key>` is needed for that server alone, `mcp:<key>:write` for its tools that do more than read; every other one to come in at all.',
  ),
  advertise: field(
    choice('entrance', 'reads', 'all'),
    'Which of them hosts are told of in challenges and metadata, and so can ask for: those to come in, also those of servers, or also those to write. The endpoint of one server always names its own.',
    'reads',
  ),
  jwks_uri: field(issuerUrl, 'Where its keys are, in place of what its metadata names.'),
  introspection: field(introspection, 'How tokens are looked up that are no JWTs; without it they are refused ([RFC 7662]).'),
  legacy_metadata: field(
    flag,
    'Answer the metadata of the issuer at `/.well-known/oauth-authorization-server`, where hosts of 2025-03-26 look for it.',
    false,
  ),
})

const rule = z.strictObject({
  when: z
    .strictObject({
      claim: filledText.meta({ description: 'A claim of the token; with dots, a path into objects.' }),
      has: field(filledText, 'It is a list with this element, or a text with this word.'),
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
    'From claims to toolsets: those of all rules that hold, the first rule’s first. Who meets none gets nothing.',
  ),
})

export type AuthSection = z.output<typeof authSchema>
