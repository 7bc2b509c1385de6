/**
 * A store at a Redis or Valkey server. Every command or script has one key, so that it is atomic and works with a cluster. A connection is
 * replaced if its server hangs or takes no writes (decision 0228). The library is loaded with this file, which is imported only if `store` is
 * configured.
 */
import { Cluster, Redis } from 'ioredis'
import { asError } from '../values/as-error.ts'
import { memberOf } from '../values/json-object.ts'
import { decodedLogin } from '../values/url-login.ts'
import type { StoreOptions } from './store-options.ts'
import type { Store } from './store.ts'
import { Subscribers } from './subscribers.ts'

/** Sets the value if the key is absent, holds no text, or holds this value or the one to replace. */
const CLAIM = `
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'string' and held ~= ARGV[1] and held ~= ARGV[3] then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]`
const RELEASE = `
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`
/** Replaces what is no list. */
const APPEND = `
local added = redis.pcall('RPUSH', KEYS[1], unpack(ARGV, 3))
if type(added) == 'table' and added.err then
  if not string.find(added.err, 'WRONGTYPE', 1, true) then return added end
  redis.call('DEL', KEYS[1])
  redis.call('RPUSH', KEYS[1], unpack(ARGV, 3))
end
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
/** Refusals of one kind are logged once in this time. */
const REFUSAL_LOG_MS = 10 * 60_000

/** What an operator can do, by the beginning of the server's error. */
const REMEDIES: readonly (readonly [error: RegExp, remedy: string])[] = [
  [/^(NOAUTH|WRONGPASS)/, 'user and password belong into the URL: redis://user:password@host'],
  [/^NOPERM/, 'give its user the rights of docs/scale-out.md'],
  [/^ERR DB index/, 'the last part of the URL is the number of a database that the server has: redis://host/0'],
  [/unknown command 'sentinel'/i, 'it is no sentinel: remove store.sentinel'],
  [/^ERR unknown command/, 'if it is a sentinel, name the primary: store: { url, sentinel: name-of-the-primary }'],
  [/^(MOVED|ASK|CLUSTERDOWN|CROSSSLOT)/, 'a node of a cluster needs store: { url, cluster: true }'],
  [/^ERR This instance has cluster support disabled/, 'it is no cluster: remove store.cluster'],
  [/^WRONGTYPE/, 'another program uses keys of this prefix: set store.prefix'],
]

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
  /** Time of the latest log line, by kind of refusal. */
  readonly #loggedMs = new Map<string, number>()
  #trouble: string | undefined
  #warnsOfEviction = false

  /** Connects in the background, and reconnects after a failure. Operations without a connection fail. */
  constructor(options: StoreOptions, log: RedisLog) {
    this.#prefix = `${options.prefix}:`
    this.#log = log
    const connect = (role: string): Redis | Cluster => {
      const connection = open(options, role)
      // Each failed attempt to connect emits an error; operations report what matters.
      connection.on('error', (error: Error) => {
        const reason = reasonOf(error)
        log.debug({ role, error: reason }, 'connection to the store')
        // Of a connection that has just been closed.
        if (role === 'commands' && !reason.startsWith("Stream isn't writeable")) this.#trouble = reason
        // The library would use database 0 instead.
        if (memberOf(memberOf(error, 'command'), 'name') === 'select') connection.disconnect(true)
      })
      return connection
    }
    this.#connection = connect('commands')
    this.#connection.on('ready', () => {
      this.#trouble = undefined
      void this.#checkEviction()
    })
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

  /** Why there is no connection; `undefined`: there is one, or the first attempt has not ended. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.#ask((connection) => connection.get(this.#prefix + key), null)) ?? undefined
  }

  async getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    // Single commands, sent together, since keys of a cluster are at several nodes.
    return Promise.all(keys.map((key) => this.get(key)))
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    await this.#ask((connection) => connection.set(this.#prefix + key, value, 'PX', Math.max(1, Math.ceil(ttlMs))))
  }

  async delete(key: string): Promise<void> {
    await this.#ask((connection) => connection.del(this.#prefix + key))
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
    return this.#ask((connection) => connection.lrange(this.#prefix + key, 0, -1), [])
  }

  async add(key: string, amount: number, ttlMs: number): Promise<number> {
    return Number(await this.#run(ADD, key, amount, ttlMs))
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.#ask((connection) => connection.publish(this.#prefix + channel, message))
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
    return this.#ask((connection) => connection.eval(script, 1, this.#prefix + key, ...values))
  }

  /** Rejects with the reason. `absent`: the result for a key of another type. */
  async #ask<T>(operate: (connection: Redis | Cluster) => Promise<T>, absent?: T): Promise<T> {
    try {
      return await operate(this.#connection)
    } catch (error) {
      // Without a connection the library says that it has none.
      const isRefused = asError(error).name === 'ReplyError'
      const reason = isRefused ? reasonOf(error) : (this.#trouble ?? 'it is not connected')
      if (isRefused) this.#logRefusal(reason)
      if (absent !== undefined && reason.startsWith('WRONGTYPE')) return absent
      throw new Error(reason, { cause: error })
    }
  }

  /** A server that refuses some operations only is not unavailable. */
  #logRefusal(reason: string): void {
    const [kind = ''] = reason.split(' ', 1)
    const nowMs = performance.now()
    if (nowMs - (this.#loggedMs.get(kind) ?? -Infinity) < REFUSAL_LOG_MS) return
    this.#loggedMs.set(kind, nowMs)
    this.#log.warn({ error: reason }, 'the shared store refuses an operation (store)')
  }

  /** A removed key is lost data: two replicas may serve one session. */
  async #checkEviction(): Promise<void> {
    const connection = this.#connection
    const nodes = connection instanceof Cluster ? connection.nodes('master') : [connection]
    const texts = await Promise.all(nodes.map((node) => node.info('memory').catch(() => '')))
    const policies = texts.flatMap((text) => {
      const policy = /^maxmemory_policy:(\S+)/m.exec(text)?.[1] ?? 'noeviction'
      return policy === 'noeviction' || /^maxmemory:0\r?$/m.test(text) ? [] : policy
    })
    const [policy] = policies
    if (policy === undefined || this.#warnsOfEviction) return
    this.#warnsOfEviction = true
    this.#log.warn(
      { 'maxmemory-policy': policy },
      'the shared store may remove keys when its memory is full, and replicas then lose track of sessions: set maxmemory-policy noeviction (store)',
    )
  }
}

/** The server's error without the arguments of the command, and what to do. */
const reasonOf = (error: unknown): string => {
  const { message } = asError(memberOf(error, 'lastNodeError') ?? error)
  const [whole = ''] = message.split(/, (?:with args beginning with|otherwise).*|\.$/, 1)
  const text = whole.replace(/^All sentinels are unreachable.* Last error: /, 'no sentinel helps: ')
  const [, remedy] = REMEDIES.find(([pattern]) => pattern.test(text)) ?? []
  return remedy === undefined ? text : `${text}; ${remedy}`
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
