/**
 * A store at a Redis or Valkey server. Every command or script has one key, so that it is atomic and works with a cluster. A connection is
 * replaced if its server hangs or takes no writes (decision 0228). The library is loaded with this file, which is imported only if `store` is
 * configured.
 */
import { Cluster, Redis } from 'ioredis'
import { decodedLogin } from '../values/url-login.ts'
import type { StoreOptions } from './store-options.ts'
import type { Store } from './store.ts'
import { Subscribers } from './subscribers.ts'

/** Sets the value if the key is absent, or holds this value or the one to replace. */
const CLAIM = `
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] and held ~= ARGV[3] then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]`
const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`
const APPEND = `
redis.call('RPUSH', KEYS[1], unpack(ARGV, 3))
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[1]), -1)
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`
const ADD = `
local sum = redis.call('INCRBY', KEYS[1], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return sum`

const CONNECT_MS = 2_000
/** Longest pause between two attempts to connect. */
const MAX_PAUSE_MS = 1_000
/** A connection on which nothing arrives for this time, although commands wait, is closed: its server may be down or replaced. */
const SILENT_MS = 2_000

export interface RedisLog {
  debug(facts: object, message: string): void
  warn(facts: object, message: string): void
}

export class RedisStore implements Store {
  readonly #prefix: string
  readonly #connection: Redis | Cluster
  readonly #subscriber: Redis | Cluster
  readonly #subscribers = new Subscribers()
  readonly #log: RedisLog

  /** Connects in the background, and reconnects after a failure. Operations without a connection fail. */
  constructor(options: StoreOptions, log: RedisLog) {
    this.#prefix = `${options.prefix}:`
    this.#log = log
    const connect = (role: string): Redis | Cluster => {
      const connection = open(options, role)
      // Each failed attempt to connect emits an error; operations report what matters.
      connection.on('error', (error: Error) => log.debug({ role, error: error.message }, 'connection to the store'))
      return connection
    }
    this.#connection = connect('commands')
    // A subscribed connection accepts no other commands.
    this.#subscriber = connect('wakes')
    this.#subscriber.on('message', (channel: string, message: string) => this.#subscribers.deliver(channel, message))
    // The subscriber sends nothing by itself, and would not notice that its server hangs.
    this.#connection.on('close', () => {
      if (this.#subscriber.status === 'ready') this.#subscriber.ping().catch(() => undefined)
    })
  }

  /** Resolves when the first connection becomes ready; to be read before it does. */
  get connected(): Promise<void> {
    return new Promise((resolve) => void this.#connection.once('ready', resolve))
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.#connection.get(this.#prefix + key)) ?? undefined
  }

  async getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    // Single commands, sent together, since keys of a cluster are at several nodes.
    return Promise.all(keys.map((key) => this.get(key)))
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#connection.set(this.#prefix + key, value, 'PX', Math.max(1, Math.ceil(ttlMs)))
  }

  async delete(key: string): Promise<void> {
    await this.#connection.del(this.#prefix + key)
  }

  async claim(key: string, value: string, ttlMs: number, instead = value): Promise<string> {
    return String(await this.#run(CLAIM, key, value, Math.max(1, Math.ceil(ttlMs)), instead))
  }

  async release(key: string, value: string): Promise<boolean> {
    return (await this.#run(RELEASE, key, value)) === 1
  }

  async append(key: string, values: readonly string[], max: number, ttlMs: number): Promise<void> {
    // A script accepts a few thousand arguments.
    for (let at = 0; at < values.length; at += 1_000) await this.#run(APPEND, key, max, ttlMs, ...values.slice(at, at + 1_000))
  }

  range(key: string): Promise<readonly string[]> {
    return this.#connection.lrange(this.#prefix + key, 0, -1)
  }

  async add(key: string, amount: number, ttlMs: number): Promise<number> {
    return Number(await this.#run(ADD, key, amount, ttlMs))
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.#connection.publish(this.#prefix + channel, message)
  }

  subscribe(channel: string, receive: (message: string) => void): () => void {
    const name = this.#prefix + channel
    if (!this.#subscribers.has(name)) this.#subscriber.subscribe(name).catch((error: Error) => this.#refused(name, error))
    return this.#subscribers.add(name, receive)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.disconnect()
    this.#subscriber.disconnect()
  }

  /** A server that answers with an error will do so again. Without a connection the library subscribes once there is one. */
  #refused(channel: string, error: Error): void {
    if (error.name !== 'ReplyError') return
    const remedy = `its user needs &${this.#prefix}* and +subscribe (docs/scale-out.md)`
    this.#log.warn({ channel, error: error.message }, `the store refuses messages between replicas; ${remedy}`)
  }

  #run(script: string, key: string, ...values: (string | number)[]): Promise<unknown> {
    return this.#connection.eval(script, 1, this.#prefix + key, ...values)
  }
}

const open = ({ urls, sentinel, sentinelLogin, isCluster, tls }: StoreOptions, role: string): Redis | Cluster => {
  const [first] = urls.map((url) => new URL(url))
  if (first === undefined) throw new RangeError('a store has a URL')
  const isSecure = first.protocol === 'rediss:'
  const secured = {
    ...(tls?.ca !== undefined && { ca: tls.ca }),
    ...(tls?.cert !== undefined && { cert: tls.cert }),
    ...(tls?.key !== undefined && { key: tls.key }),
    ...(tls?.serverName !== undefined && { servername: tls.serverName }),
  }
  const common = {
    ...(first.username !== '' && { username: decodedLogin(first.username) }),
    ...(first.password !== '' && { password: decodedLogin(first.password) }),
    ...(isSecure && { tls: secured }),
    connectionName: `trunkline-${role}`,
    connectTimeout: CONNECT_MS,
    // A command that cannot be sent fails at once: its caller handles that.
    enableOfflineQueue: role === 'wakes',
    // A subscription may be sent twice, an addition must not.
    autoResendUnfulfilledCommands: role === 'wakes',
    socketTimeout: SILENT_MS,
    // A primary that has become a replica keeps its connections: a new one leads to the new primary.
    reconnectOnError: ({ message }: Error) => message.includes('READONLY'),
    maxRetriesPerRequest: role === 'wakes' ? null : 0,
    retryStrategy: (tries: number) => Math.min(50 * tries, MAX_PAUSE_MS),
  }
  const nodes = urls.map((url) => {
    const { hostname, port } = new URL(url)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || (sentinel === undefined ? 6379 : 26379)) }
  })
  const database = Number(first.pathname.slice(1) || 0)
  if (isCluster)
    return new Cluster(nodes, {
      redisOptions: common,
      enableOfflineQueue: role === 'wakes',
      clusterRetryStrategy: (tries) => Math.min(50 * tries, MAX_PAUSE_MS),
      // Uses the announced host names of nodes without resolving them, since their certificates name hosts.
      ...(isSecure && { dnsLookup: (address, callback) => callback(null, address) }),
    })
  if (sentinel !== undefined)
    return new Redis({
      ...common,
      sentinels: nodes,
      name: sentinel,
      db: database,
      ...(sentinelLogin !== undefined && { sentinelPassword: sentinelLogin.password }),
      ...(sentinelLogin?.user !== undefined && { sentinelUsername: sentinelLogin.user }),
      ...(isSecure && { enableTLSForSentinelMode: true, sentinelTLS: secured }),
    })
  return new Redis({ ...common, ...nodes[0], db: database })
}
