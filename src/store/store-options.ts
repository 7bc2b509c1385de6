/** Where the shared store of several replicas is (`store`), and how it is reached. */
export interface StoreOptions {
  /** `redis://` or `rediss://` (TLS), with user, password and database number: the server, or several of a cluster or of sentinels. */
  readonly urls: readonly string[]
  /** Name of the primary that the sentinels at `urls` watch; `undefined`: they are no sentinels. */
  readonly sentinel: string | undefined
  /** As whom the sentinels are asked; absent: without a login. What the first URL says is for the servers. */
  readonly sentinelLogin?: SentinelLogin
  readonly isCluster: boolean
  /** Of `rediss://` URLs; `undefined`: what Node trusts, and no certificate of our own. */
  readonly tls?: StoreTls
  /** What every key begins with. Replicas of one gateway have the same; an ACL rule may be `~<prefix>:*` and `&<prefix>:*`. */
  readonly prefix: string
}

export interface SentinelLogin {
  readonly user: string | undefined
  readonly password: string
}

/** Texts in PEM. */
export interface StoreTls {
  /** Authorities in place of those that Node trusts. */
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** In the servers' certificates, in place of the host that is connected to. */
  readonly serverName: string | undefined
}

export const DEFAULT_PREFIX = 'trunkline'
