/** Options of the connection to the shared store (`store`). */
import type { TlsSettings } from '../transport/http1/client/http-client.ts'

export interface StoreOptions {
  /** `redis://` or `rediss://` (TLS), with user, password and database number: a server, or nodes of a cluster, or sentinels. */
  readonly urls: readonly string[]
  /** Name of the primary that the sentinels at `urls` watch; `undefined`: `urls` are not sentinels. */
  readonly sentinel: string | undefined
  /** Login at the sentinels; absent: none. The login of the first URL is for the servers. */
  readonly sentinelLogin?: SentinelLogin
  readonly isCluster: boolean
  /** For `rediss://` URLs; absent: the authorities of Node, and no client certificate. */
  readonly tls?: TlsSettings
  /** Prefix of all keys and channels, the same for all replicas. An ACL rule may be `~<prefix>:*` and `&<prefix>:*`. */
  readonly prefix: string
}

export interface SentinelLogin {
  readonly user: string | undefined
  readonly password: string
}

export const DEFAULT_PREFIX = 'trunkline'
