/**
 * The types of values in a configuration. Each is a zod schema with two parts: the parser, which returns what the code uses
 * (milliseconds, bytes, lists), and the JSON Schema for editors and the documentation, which also accepts texts with variables.
 */
import { z } from 'zod'
import type { Address } from '../../host/options.ts'
import { isProxyEntry } from '../../transport/http1/server/connection/trusted-proxies.ts'
import { isInteger, isList } from '../../values/json-object.ts'
import {
  DURATION_PATTERN,
  formatDuration,
  formatSize,
  parseDuration,
  parseRate,
  parseSize,
  RATE_PATTERN,
  SIZE_PATTERN,
} from './units.ts'

type Json = Readonly<Record<string, unknown>>
export type Kind<T> = z.ZodPipe<z.ZodUnknown, z.ZodTransform<T>>

/** A text with a variable, such as `${VAR}`. */
const VARIABLE: Json = { type: 'string', pattern: '\\$\\{' }

/** `parse` returns `undefined` for an invalid value; the message is then `expected <expected>, got …`. */
export const kind = <T>(expected: string, json: Json, parse: (value: unknown) => T | undefined, remedy = ''): Kind<T> =>
  z
    .unknown()
    .meta(json)
    .transform((value, context): T => {
      const parsed = parse(value)
      if (parsed !== undefined) return parsed
      context.addIssue({ code: 'custom', message: `expected ${expected}`, params: { remedy } })
      return z.NEVER
    })

const matching = (expected: string, pattern: RegExp): Kind<string> =>
  kind(expected, { type: 'string', pattern: `(${pattern.source})|\\$\\{` }, (value) =>
    typeof value === 'string' && pattern.test(value) ? value : undefined,
  )

/** `30s`, in milliseconds; more than 0. */
export const duration = kind(
  'a duration such as 30s',
  {
    id: 'duration',
    title: 'Duration',
    description: 'A number and `ms`, `s`, `m` or `h`: `500ms`, `30s`, `1.5h`. At most 24 days.',
    type: 'string',
    pattern: `${DURATION_PATTERN}|\\$\\{`,
  },
  (value) => parseDuration(value) || undefined,
  'write a number above 0 with ms, s, m or h, at most 596h',
)

/** As `duration`, or `0s`. */
export const pause = kind(
  'a duration such as 200ms, or 0s',
  { $ref: '#/$defs/duration' },
  parseDuration,
  'write a number with ms, s, m or h, at most 596h',
)

/** As `duration`, or `never`: `Infinity`. */
export const durationOrNever = kind(
  'a duration such as 30m, or never',
  { anyOf: [{ $ref: '#/$defs/duration' }, { const: 'never' }] },
  (value) => (value === 'never' ? Infinity : parseDuration(value) || undefined),
  'write a number above 0 with ms, s, m or h, at most 596h',
)

/** `4MiB`, in bytes; more than 0. */
export const size = kind(
  'a size such as 4MiB',
  {
    id: 'size',
    title: 'Size',
    description: 'A number and `B`, `kB`, `MB`, `GB` (thousands) or `KiB`, `MiB`, `GiB`: `64KiB`, `4MiB`, `16MB`.',
    type: 'string',
    pattern: `${SIZE_PATTERN}|\\$\\{`,
  },
  (value) => parseSize(value) || undefined,
  'write a number above 0 with KiB, MiB or GiB',
)

/** `20/s`: a number of calls in a time. */
export const rate = kind(
  'a rate such as 20/s',
  {
    id: 'rate',
    title: 'Rate',
    description:
      'A number of calls and a time: `20/s`, `100/m`, `5/2m`. This many calls may arrive at once; tokens are refilled evenly over the time.',
    type: 'string',
    pattern: `${RATE_PATTERN}|\\$\\{`,
  },
  parseRate,
  'write calls / time, with ms, s, m or h',
)

/** A whole number, or its digits from a variable. */
export const count = (minimum: number, maximum: number): Kind<number> =>
  kind(
    minimum === maximum ? String(minimum) : `a whole number from ${minimum} to ${maximum}`,
    { anyOf: [{ type: 'integer', minimum, maximum }, VARIABLE] },
    (value) => parseCount(value, minimum, maximum),
  )

const parseCount = (value: unknown, minimum: number, maximum: number): number | undefined => {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return isInteger(number) && number >= minimum && number <= maximum ? number : undefined
}

/** The most workers of one supervisor. */
export const MAX_WORKERS = 60

/** Number of processes that serve hosts; `auto`: one for each core. */
export const workers = kind<'auto' | number>(
  `a whole number from 1 to ${MAX_WORKERS}, or auto`,
  { anyOf: [{ type: 'integer', minimum: 1, maximum: MAX_WORKERS }, { const: 'auto' }, VARIABLE] },
  (value) => (value === 'auto' ? value : parseCount(value, 1, MAX_WORKERS)),
)

/** A large number: `60`, `12k`, `1.5k`. */
export const amount = kind(
  'a number such as 60 or 12k',
  {
    anyOf: [
      { type: 'integer', minimum: 1, maximum: 1_000_000_000 },
      { type: 'string', pattern: '^\\d+(\\.\\d+)?k?$|\\$\\{' },
    ],
  },
  (value) => {
    const [, digits, thousands] = /^(\d{1,9}(?:\.\d+)?)(k?)$/.exec(String(value)) ?? []
    const number = Math.round(Number(digits) * (thousands === 'k' ? 1_000 : 1))
    return Number.isSafeInteger(number) && number > 0 ? number : undefined
  },
)

/** A share from 0 to 1, such as `0.1`, or its digits from a variable. */
export const share = kind('a number from 0 to 1', { anyOf: [{ type: 'number', minimum: 0, maximum: 1 }, VARIABLE] }, (value) => {
  const number = typeof value === 'string' && /^(0|1|0?\.\d{1,9}|1\.0+)$/.test(value) ? Number(value) : value
  return typeof number === 'number' && number >= 0 && number <= 1 ? number : undefined
})

/** `true` or `false`, or the same words from a variable. */
export const flag = kind('true or false', { anyOf: [{ type: 'boolean' }, VARIABLE] }, (value) =>
  typeof value === 'boolean' ? value : value === 'true' ? true : value === 'false' ? false : undefined,
)

export const choice = <const T extends string>(...words: readonly T[]): Kind<T> =>
  kind(`one of ${words.join(', ')}`, { anyOf: [{ enum: words }, VARIABLE] }, (value) => words.find((word) => word === value))

export const text = kind('a text', { type: 'string' }, (value) =>
  typeof value === 'string' && !value.includes('\0') ? value : undefined,
)

export const filledText = kind('a text that is not empty', { type: 'string', minLength: 1 }, (value) =>
  typeof value === 'string' && value !== '' && !value.includes('\0') ? value : undefined,
)

/** An argument, or the value of an environment variable: numbers keep the digits that were typed. */
export const argument = kind('a text or a number', { type: ['string', 'number', 'boolean'] }, (value) =>
  typeof value === 'string' && !value.includes('\0') ? value : undefined,
)

/** The value of an HTTP header: visible ASCII, blanks and Latin-1. */
export const headerValue = kind('a header value in one line', { type: ['string', 'number', 'boolean'] }, (value) =>
  typeof value === 'string' && /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value) ? value.trim() : undefined,
)

/** A list of items, or one item as a list; `undefined` if one of them is invalid. */
export const listOf = <T>(value: unknown, isItem: (item: unknown) => item is T): readonly T[] | undefined => {
  const list = isList(value) ? value : [value]
  return list.every(isItem) ? list : undefined
}

/** One text or a list of texts. */
export const texts = kind('a text or a list of texts', { type: ['string', 'array'], items: { type: 'string' } }, (value) => {
  const isText = (item: unknown): item is string => typeof item === 'string' && item !== '' && !item.includes('\0')
  return listOf(value, isText)
})

/** An OAuth scope. */
export const scope = kind('a scope: visible characters without blanks, " and \\', { type: 'string' }, (value) =>
  typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/.test(value) ? value : undefined,
)

/** The `http` or `https` URL in a text; `undefined`: there is none. */
export const parseHttpUrl = (value: unknown): URL | undefined => {
  const url = typeof value === 'string' ? URL.parse(value) : null
  return url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '' ? url : undefined
}

/** The same without user name and password. */
export const parsePlainUrl = (value: unknown): URL | undefined => {
  const url = parseHttpUrl(value)
  return url?.username === '' && url.password === '' ? url : undefined
}

export const httpUrl = kind(
  'a URL with http:// or https:// and without user name and password',
  {
    id: 'url',
    title: 'URL',
    description: 'Absolute, `http` or `https`. User name and password belong in `credentials`.',
    type: 'string',
    pattern: '^https?://|\\$\\{',
  },
  parsePlainUrl,
)

export const proxyUrl = kind(
  'none, or a URL such as http://proxy.example.com:3128',
  { type: 'string', pattern: '^(none|https?://.+)$|\\$\\{' },
  (value) => (value === 'none' ? value : parseHttpUrl(value)),
  'HTTP proxies are supported, SOCKS is not',
)

const ADDRESS_PATTERN = /^(?:\[([\da-fA-F:.]+)\]|([\w.-]+)):(\d{1,5})$/

/** `127.0.0.1:7420`, `[::1]:7420`, `localhost:0`; `undefined` for anything else. With port 0 the system chooses one. */
export const parseAddress = (value: unknown): Address | undefined => {
  const [, six, four, digits] = (typeof value === 'string' ? ADDRESS_PATTERN.exec(value) : null) ?? []
  const host = six ?? four
  const port = Number(digits)
  return host !== undefined && port < 65_536 ? { host, port } : undefined
}

/** One address or a list of them. */
export const addresses = kind(
  'an address such as 127.0.0.1:7420, or a list of them',
  {
    id: 'address',
    title: 'Address',
    description:
      '`host:port` or a list of them: `127.0.0.1:7420`, `localhost:7420`, `[::1]:7420`. With port 0 the system chooses one.',
    type: ['string', 'array'],
    items: { type: 'string' },
  },
  (value) => parseAddresses(value),
)

const parseAddresses = (value: unknown): readonly Address[] | undefined => {
  const list = (Array.isArray(value) ? value : [value]).map(parseAddress)
  return list.length > 0 && list.every((address) => address !== undefined) ? list : undefined
}

/** `none`, or addresses. */
export const addressesOrNone = kind(
  'an address such as 127.0.0.1:7420, a list of them, or none',
  { type: ['string', 'array'], items: { type: 'string' }, description: '`host:port`, a list of them, or `none`.' },
  (value) => (value === 'none' ? [] : parseAddresses(value)),
)

/** Permissions of a file in octal digits, with quotes or without. */
export const fileMode = kind(
  'permissions such as "0660"',
  { anyOf: [{ type: 'string', pattern: '^(0o?)?[0-7]{3}$' }, { type: 'integer' }, VARIABLE] },
  (value) => /^(?:0o?)?([0-7]{3})$/.exec(String(value))?.[1],
)

/** Peers that may name the address of their client. */
export const proxyEntry = kind('an address, a network such as 10.0.0.0/8, loopback or unix', { type: 'string' }, (value) =>
  typeof value === 'string' && isProxyEntry(value) ? value : undefined,
)

export const urlPath = matching('a path such as /mcp', /^(\/[A-Za-z0-9._~-]+)+$/)
export const hostName = matching('a host name such as gateway.example.com', /^(\[[\da-fA-F:.]+\]|[\w.-]+)(:\d{1,5})?$/)
export const exposedName = matching('a name of letters, digits, _ and - (at most 128)', /^[A-Za-z0-9_-]{1,128}$/)

export const origin = kind(
  'an origin such as https://app.example.com',
  { type: 'string', pattern: '^[a-z][a-z0-9+.-]*://[^/]+$|\\$\\{' },
  (value) => (typeof value === 'string' && /^[a-z][a-z0-9+.-]*:\/\/[^/\s*]+$/.test(value) ? value : undefined),
)

/** An `http` or `https` URL without query; its path, without a final `/`, is the prefix that a proxy adds to our paths. */
export const publicUrl = kind(
  'a URL such as https://mcp.example.com or https://example.com/gateway',
  { type: 'string', pattern: '^https?://[^/?#]+[^?#]*$|\\$\\{' },
  (value) => {
    const url = typeof value === 'string' && !/[?#*\s]/.test(value) ? parsePlainUrl(value) : undefined
    if (url === undefined) return undefined
    let path = url.pathname
    while (path.endsWith('/')) path = path.slice(0, -1)
    return path === '' || /^(\/[A-Za-z0-9._~-]+)+$/.test(path) ? url.origin + path : undefined
  },
)

/** One or two keys of 32 bytes each, as hex digits or base64; returned as hex digits in lower case. The first seals, both open. */
export const sealKeys = kind(
  '32 random bytes as base64 or hex digits, or two such keys',
  { type: ['string', 'array'], minItems: 1, maxItems: 2, items: { type: 'string' } },
  (value) => {
    const texts = (Array.isArray(value) ? value : [value]).flatMap((text) =>
      typeof text === 'string' ? text.trim().split(/[\s,]+/) : [''],
    )
    const keys = texts.map(parseSealKey)
    const isGood =
      keys.length >= 1 && keys.length <= 2 && new Set(keys).size === keys.length && keys.every((key) => key !== undefined)
    return isGood ? keys : undefined
  },
  'make one with: openssl rand -base64 32',
)

/** Hex digits in lower case. A key of one repeated byte is a placeholder, not a secret. */
const parseSealKey = (text: string): string | undefined => {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  const isOneForm = /^([0-9a-f]{64}|[A-Za-z0-9+/_-]{43}=?)$/i.test(text)
  return isOneForm && bytes.length === 32 && bytes.some((byte) => byte !== bytes[0]) ? bytes.toString('hex') : undefined
}

/** A prefix: the form of a server key. */
export const prefixKind = matching(
  'a prefix such as gh (a-z, 0-9 and -, at most 20, beginning with a letter)',
  /^[a-z][a-z0-9-]{0,19}$/,
)

/** A member of a section: its description, and its default. `member`: see `fieldsOf`. */
export const field = <S extends z.ZodType>(schema: S, description: string, initial?: unknown, member?: string) =>
  schema.optional().meta({ description, ...(initial !== undefined && { initial }), ...(member !== undefined && { member }) })

export const durationField = (description: string, milliseconds: number) =>
  field(duration, description, formatDuration(milliseconds))
export const sizeField = (description: string, bytes: number) => field(size, description, formatSize(bytes))
export const countField = (description: string, number: number, minimum = 1, maximum = 1_000_000) =>
  field(count(minimum, maximum), description, number)

/** Members of `D` with a value of this type. */
type MembersOf<D, T> = { [K in keyof D]: D[K] extends T ? K : never }[keyof D] & string

/**
 * Fields that set a member of the options of the code. Each names this member, whose value in `defaults` is its default; `fillFrom` sets
 * it.
 */
export const fieldsOf = <D extends object>(defaults: D) => ({
  of: <S extends z.ZodType>(member: keyof D & string, schema: S, description: string, initial: unknown = defaults[member]) =>
    field(schema, description, initial, member),
  duration: (member: MembersOf<D, number>, description: string) =>
    field(duration, description, formatDuration(Number(defaults[member])), member),
  size: (member: MembersOf<D, number>, description: string) =>
    field(size, description, formatSize(Number(defaults[member])), member),
  count: (member: MembersOf<D, number>, description: string, minimum = 1, maximum = 1_000_000) =>
    field(count(minimum, maximum), description, defaults[member], member),
})
