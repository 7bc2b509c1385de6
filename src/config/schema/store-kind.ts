/** `store`: a URL, a list of them, or a map with `url`, `sentinel`, `cluster` and `prefix`. */
import { DEFAULT_PREFIX } from '../../store/store-options.ts'
import type { StoreOptions } from '../../store/store-options.ts'
import { kind } from './kinds.ts'

const MEMBERS = new Set(['url', 'sentinel', 'cluster', 'prefix'])
const URL_TEXT = { type: 'string', pattern: '^rediss?://|\\$\\{' } as const
const URLS = { anyOf: [URL_TEXT, { type: 'array', minItems: 1, items: URL_TEXT }] } as const

export const storeKind = kind<StoreOptions>(
  'a URL such as redis://127.0.0.1:6379, or { url: […], cluster: true } or { url: […], sentinel: name-of-the-primary }',
  {
    anyOf: [
      ...URLS.anyOf,
      {
        type: 'object',
        properties: {
          url: URLS,
          sentinel: { type: 'string', minLength: 1 },
          cluster: { type: 'boolean' },
          prefix: { type: 'string', pattern: '^[A-Za-z0-9:_.-]{1,64}$' },
        },
        required: ['url'],
        additionalProperties: false,
      },
    ],
  },
  (value) => parseStore(typeof value === 'string' || Array.isArray(value) ? { url: value } : value),
  'schemes are redis and rediss (TLS); user, password and database stand in the URL',
)

const parseStore = (value: unknown): StoreOptions | undefined => {
  if (typeof value !== 'object' || value === null || Object.keys(value).some((name) => !MEMBERS.has(name))) return undefined
  const { url, sentinel, cluster = false, prefix = DEFAULT_PREFIX } = value as Readonly<Record<string, unknown>>
  const urls = (Array.isArray(url) ? url : [url]) as unknown[]
  const isGood =
    urls.length > 0 &&
    urls.every(isStoreUrl) &&
    (sentinel === undefined || (typeof sentinel === 'string' && sentinel !== '')) &&
    typeof cluster === 'boolean' &&
    typeof prefix === 'string' &&
    /^[A-Za-z0-9:_.-]{1,64}$/.test(prefix) &&
    !(cluster && sentinel !== undefined) &&
    // Several addresses are those of a cluster or of sentinels.
    (urls.length === 1 || cluster || sentinel !== undefined)
  return isGood ? { urls: urls as string[], sentinel: sentinel as string | undefined, isCluster: cluster, prefix } : undefined
}

const isStoreUrl = (text: unknown): boolean => {
  const url = typeof text === 'string' ? URL.parse(text) : null
  return url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname)
}
