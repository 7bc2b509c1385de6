/** `store`: a URL, a list of them, or a map with `url`, `sentinel` with a user and password, `cluster`, `prefix` and `tls`. */
import { DEFAULT_PREFIX } from '../../store/store-options.ts'
import type { StoreOptions } from '../../store/store-options.ts'
import { isJsonObject } from '../../values/json-object.ts'
import { kind, listOf } from './kinds.ts'

/** `tls` contains paths of files, which are read later. */
export interface StoreEntry extends Omit<StoreOptions, 'tls'> {
  readonly tls: Readonly<Partial<Record<TlsMember, string>>> | undefined
}
type TlsMember = 'ca' | 'cert' | 'key' | 'server_name'

const MEMBERS = new Set(['url', 'sentinel', 'sentinel_user', 'sentinel_password', 'cluster', 'prefix', 'tls'])
const TLS_MEMBERS: readonly string[] = ['ca', 'cert', 'key', 'server_name'] satisfies TlsMember[]
const TEXT = { type: 'string', minLength: 1 } as const
const URL_TEXT = { type: 'string', pattern: '^rediss?://|\\$\\{' } as const
const URLS = { anyOf: [URL_TEXT, { type: 'array', minItems: 1, items: URL_TEXT }] } as const

export const storeKind = kind<StoreEntry>(
  'a URL such as redis://127.0.0.1:6379, or { url: […], cluster: true } or { url: […], sentinel: name-of-the-primary }',
  {
    anyOf: [
      ...URLS.anyOf,
      {
        type: 'object',
        properties: {
          url: URLS,
          sentinel: TEXT,
          sentinel_user: TEXT,
          sentinel_password: TEXT,
          cluster: { type: 'boolean' },
          prefix: { type: 'string', pattern: '^[A-Za-z0-9:_.-]{1,64}$' },
          tls: {
            type: 'object',
            properties: Object.fromEntries(TLS_MEMBERS.map((name) => [name, TEXT])),
            additionalProperties: false,
          },
        },
        required: ['url'],
        additionalProperties: false,
      },
    ],
  },
  (value) => parseStore(typeof value === 'string' || Array.isArray(value) ? { url: value } : value),
  'schemes are redis and rediss (TLS); user, password and database stand in the URL; a cluster has database 0 only',
)

const parseStore = (value: unknown): StoreEntry | undefined => {
  if (!isJsonObject(value) || Object.keys(value).some((name) => !MEMBERS.has(name))) return undefined
  const { url, sentinel, sentinel_user: user, sentinel_password: password, cluster = false, prefix = DEFAULT_PREFIX, tls } = value
  const urls = listOf(url, isStoreUrl)
  const isGood =
    urls !== undefined &&
    urls.length > 0 &&
    isTextOrAbsent(sentinel) &&
    isTextOrAbsent(user) &&
    isTextOrAbsent(password) &&
    (password === undefined ? user === undefined : sentinel !== undefined) &&
    typeof cluster === 'boolean' &&
    typeof prefix === 'string' &&
    /^[A-Za-z0-9:_.-]{1,64}$/.test(prefix) &&
    !(cluster && sentinel !== undefined) &&
    // A cluster has database 0 only.
    !(cluster && urls.some((text) => /[1-9]/.test(new URL(text).pathname))) &&
    isTls(tls) &&
    // Several addresses are those of a cluster or of sentinels.
    (urls.length === 1 || cluster || sentinel !== undefined)
  if (!isGood) return undefined
  return {
    urls,
    sentinel,
    ...(password !== undefined && { sentinelLogin: { user, password } }),
    isCluster: cluster,
    prefix,
    tls,
  }
}

const isTextOrAbsent = (value: unknown): value is string | undefined =>
  value === undefined || (typeof value === 'string' && value !== '')

const isTls = (tls: unknown): tls is StoreEntry['tls'] =>
  tls === undefined ||
  (isJsonObject(tls) &&
    Object.entries(tls).every(([name, value]) => TLS_MEMBERS.includes(name) && typeof value === 'string' && value !== ''))

const isStoreUrl = (text: unknown): text is string => {
  const url = typeof text === 'string' ? URL.parse(text) : null
  return url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname)
}
