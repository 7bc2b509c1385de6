/**
 * The admin listener: the routes of the admin socket for browsers and programs, at a TCP address of its own (T-37). It is closed until
 * the configuration binds it (`admin.bind`) or `trunkline open` opens it. Every request needs a token, except those for the files of the
 * dashboard.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Identity } from '../../auth/identity.ts'
import type { Log } from '../../values/log.ts'
import type { ListenerContext } from '../../host/listener-context.ts'
import { OPEN_METRICS_TYPE, prefersOpenMetrics, PROMETHEUS_TYPE } from '../../observe/metrics/exposition.ts'
import { DEFAULT_ADMIN_ADDRESS } from '../../observe/options.ts'
import type { BindAddress, ObserveOptions } from '../../observe/options.ts'
import type { Viewer } from '../../observe/viewer.ts'
import { ConnectionCaps } from '../../transport/http1/server/connection/connection-caps.ts'
import type { EventStream } from '../../transport/http1/server/request/event-stream.ts'
import type { HttpRequest } from '../../transport/http1/server/request/http-request.ts'
import { listenHttp } from '../../transport/http1/server/http-server.ts'
import type { Listening } from '../../transport/http1/server/http-server.ts'
import { asError } from '../../values/as-error.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import { VERSION } from '../../version.ts'
import { countOf } from '../calls/calls.ts'
import type { FeedMessage } from '../calls/calls.ts'
import type { Control, OpenEnd } from '../control.ts'
import { AdminRefusal } from '../refusal.ts'
import { findRoute } from '../routes.ts'
import { OPERATOR } from '../../observe/viewer.ts'
import type { Access } from '../routes.ts'
import { checkOrigin, tokenOf, viewerOf } from './access.ts'
import type { Assets } from './assets.ts'
import type { AdminCredentials } from './credentials.ts'
import { PAGE_HEADERS } from './page-headers.ts'

export interface AdminListenerOptions {
  readonly control: Control
  readonly context: Pick<ListenerContext, 'bodies' | 'limits' | 'options' | 'hideJson'>
  readonly credentials: AdminCredentials
  /** File with a token for programs; `undefined`: there is none. */
  readonly tokenFile: string | undefined
  /** The arguments of `-c`, for commands that the page shows. */
  readonly named: () => readonly string[]
  /** Whether faults are injected. */
  readonly hasFaults: () => boolean
  /** The caller of a token that `auth` accepts. */
  readonly identityOf: (token: string) => Promise<Identity | undefined>
  readonly assets: Assets
  /** The listener was opened or closed; calls are observed while it is open. */
  readonly changed: (isOpen: boolean) => void
  readonly log: Log
}

const MAX_BODY_BYTES = 1024 * 1024
/** Interval at which feeds are checked. */
const SWEEP_MS = 500
/** The tokens of their readers are checked less often. */
const SWEEPS_PER_CHECK = 4
const JSON_TYPE = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
const CHALLENGE = { 'WWW-Authenticate': 'Bearer realm="trunkline admin"' }

/** The reader of a feed. */
interface FeedReader {
  readonly token: string
  readonly viewer: Viewer
  readonly stop: () => void
  sweeps: number
}

export class AdminListener implements AsyncDisposable {
  readonly #options: AdminListenerOptions
  readonly #caps: ConnectionCaps
  #observe: ObserveOptions
  /** By address as configured. */
  #listening = new Map<string, Listening>()
  /** It was opened by `open` and not by the configuration: a reload leaves it open. */
  #isOnDemand = false
  /** Addresses are bound and released one change after the other: a reload may come while it is being opened. */
  #last: Promise<unknown> = Promise.resolve()
  readonly #streams = new Map<EventStream, FeedReader>()
  #sweeping: NodeJS.Timeout | undefined

  constructor(observe: ObserveOptions, options: AdminListenerOptions) {
    this.#observe = observe
    this.#options = options
    const limits = () => {
      const { maxConnections } = this.#observe.admin
      const { maxUnreadBytes, requestTimeoutMs } = options.context.options.limits
      return {
        maxConnections,
        maxConnectionsPerAddress: maxConnections,
        maxConnectionsPerLoopback: maxConnections,
        maxUnreadBytes,
        requestTimeoutMs,
      }
    }
    const names = { all: 'admin.connections', perAddress: 'admin.connections' }
    this.#caps = new ConnectionCaps(limits, options.context.limits.hit, names)
  }

  /** The origin of the first address; `undefined`: it is closed. */
  get origin(): string | undefined {
    const [first] = this.#listening.values()
    return first && originOf(first)
  }

  /** Binds the configured addresses and releases others. Rejects with the system's error, and changes nothing then. */
  rebind(observe: ObserveOptions): Promise<void> {
    return this.#inTurn(async () => {
      const { addresses } = observe.admin
      const wanted = addresses.length === 0 && this.#isOnDemand ? undefined : addresses
      if (wanted !== undefined) {
        await this.#bindAll(wanted)
        this.#isOnDemand = false
      }
      this.#observe = observe
      this.#options.changed(this.#listening.size > 0)
    })
  }

  /** A link to the dashboard; if no address is bound, binds the default one, with any port if its port is taken. */
  async open(): Promise<OpenEnd> {
    await this.#inTurn(async () => {
      if (this.#listening.size === 0 && this.#observe.admin.hasUi) await this.#openOnDemand()
    })
    const { origin } = this
    if (origin === undefined) return undefined
    return { url: `${origin}/#k=${this.#options.credentials.mintKey()}`, origin, tokenFile: this.#options.tokenFile }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweeping)
    for (const stream of this.#streams.keys()) stream.breakOff()
    const all = [...this.#listening.values()]
    this.#listening = new Map()
    await Promise.all(all.map((listening) => listening.close()))
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.#last.then(change)
    this.#last = done.catch(() => undefined)
    return done
  }

  async #openOnDemand(): Promise<void> {
    await this.#bindAll([DEFAULT_ADMIN_ADDRESS]).catch(() => this.#bindAll([{ ...DEFAULT_ADMIN_ADDRESS, port: 0 }]))
    this.#isOnDemand = true
    this.#options.changed(true)
    this.#options.log.info({ address: this.origin }, 'the admin listener was opened on demand')
  }

  async #bindAll(addresses: readonly BindAddress[]): Promise<void> {
    const before = this.#listening
    const after = new Map<string, Listening>()
    try {
      for (const address of addresses) {
        const name = `${address.host}:${address.port}`
        after.set(name, before.get(name) ?? (await this.#bind(address)))
      }
    } catch (error) {
      await Promise.all([...after].filter(([name]) => !before.has(name)).map(([, listening]) => listening.close()))
      throw error
    }
    this.#listening = after
    await Promise.all([...before].filter(([name]) => !after.has(name)).map(([, listening]) => listening.close()))
  }

  async #bind(address: BindAddress): Promise<Listening> {
    const { context, log } = this.#options
    const { limits, httpServer } = context.options
    try {
      return await listenHttp(address, { ...limits, httpServer }, context.bodies, this.#caps, {
        request: (request) => void this.#handle(request),
        trouble: (error) => log.warn({ error: error.message }, 'trouble with connections of the admin listener'),
        reached: context.limits.hit,
      })
    } catch (error) {
      throw Object.assign(asError(error), {
        address: `${address.host}:${address.port}`,
        port: address.port,
        option: 'admin.bind',
      })
    }
  }

  async #handle(request: HttpRequest): Promise<void> {
    try {
      request.addHeaders(PAGE_HEADERS)
      checkOrigin(request, this.#observe.admin)
      if (request.path.startsWith('/api/')) await this.#handleApi(request)
      else if (request.path === this.#observe.metrics.path && this.#observe.metrics.isOn) await this.#replyMetrics(request)
      else this.#replyFile(request)
    } catch (error) {
      if (error instanceof AdminRefusal) return refuse(request, error)
      this.#options.log.error({ error: String(error), path: request.path }, 'the admin listener could not answer')
      refuse(request, new AdminRefusal(500, 'internal', 'internal error; see the log'))
    }
  }

  #replyFile(request: HttpRequest): void {
    const asset = this.#observe.admin.hasUi ? this.#options.assets(request.path) : undefined
    if (asset === undefined) throw new AdminRefusal(404, 'path', 'there is nothing at this path')
    if (request.method !== 'GET' && request.method !== 'HEAD') return request.reply(405, { Allow: 'GET' })
    const kept = asset.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache'
    request.reply(200, { 'Content-Type': asset.type, 'Cache-Control': kept }, request.method === 'HEAD' ? [] : [asset.body])
  }

  async #handleApi(request: HttpRequest): Promise<void> {
    const { control } = this.#options
    const path = request.path.slice('/api'.length)
    if (path === '/session' && request.method === 'POST') return this.#exchangeKey(request)
    const viewer = await this.#authenticate(request)
    if (path === '/session') return this.#handleSession(request, viewer)
    if (path === '/feed' && request.method === 'GET') return this.#streamFeed(request, viewer)
    const found = findRoute(request.method, path)
    if (found === undefined || found.route.access === 'socket')
      throw new AdminRefusal(404, 'path', `there is no ${request.method} ${request.path}`)
    const { route, id } = found
    this.#checkAccess(route.access, viewer)
    const body = await this.#readBody(request)
    if (body === undefined) return
    const gone = new AbortController()
    request.onDisconnect(() => gone.abort())
    const query = new URLSearchParams(request.query)
    const answer = await route.answer({ query, body, control, signal: gone.signal, viewer, id })
    request.reply(200, JSON_TYPE, [Buffer.isBuffer(answer) ? answer : Buffer.from(JSON.stringify(answer))])
  }

  /** The viewer of the request. Rejects with `AdminRefusal` for a request without a valid token. */
  async #authenticate(request: HttpRequest): Promise<Viewer> {
    const token = tokenOf(request)
    const viewer = token === undefined ? undefined : await this.#viewer(token)
    if (viewer === undefined) {
      const message = 'this needs a token: exchange the key of the link for one at POST /api/session'
      throw new AdminRefusal(401, 'unauthorized', message, undefined, CHALLENGE)
    }
    request.admitted()
    return viewer
  }

  /** Replies all metrics in the requested format. */
  async #replyMetrics(request: HttpRequest): Promise<void> {
    this.#checkAccess('read', await this.#authenticate(request))
    if (request.method !== 'GET') return request.reply(405, { Allow: 'GET' })
    const isOpenMetrics = prefersOpenMetrics(request.header('accept') ?? '')
    const text = await this.#options.control.metrics(isOpenMetrics)
    const type = isOpenMetrics ? OPEN_METRICS_TYPE : PROMETHEUS_TYPE
    request.reply(200, { 'Content-Type': type, 'Cache-Control': 'no-store' }, [Buffer.from(text)])
  }

  /** Sends rows as events, until the reader disconnects, or has read nothing for too long. */
  async #streamFeed(request: HttpRequest, viewer: Viewer): Promise<void> {
    if (!this.#observe.admin.hasUi) throw new AdminRefusal(404, 'path', 'ui.enabled is off')
    const { control, context } = this.#options
    const query = new URLSearchParams(request.query)
    const over = new AbortController()
    const reader = { token: tokenOf(request) ?? '', viewer, stop: () => over.abort(), sweeps: 0 }
    const options = { viewer, filter: query.get('filter') ?? '', after: countOf(query, 'after'), isWhole: false }
    let stream: EventStream | undefined
    const open = (): EventStream => {
      const opened = request.openEvents({ 'Cache-Control': 'no-store' })
      this.#streams.set(opened, reader)
      opened.onClose(() => {
        this.#streams.delete(opened)
        over.abort()
      })
      this.#sweeping ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
      return opened
    }
    const sink = {
      get isStalled() {
        return stream?.isStalled === true
      },
      send: (message: FeedMessage) => {
        stream ??= open()
        stream.message([Buffer.from(context.hideJson(JSON.stringify(message)))])
      },
    }
    request.onDisconnect(() => over.abort())
    await control.follow(options, sink, over.signal)
    stream?.end()
  }

  /** Keeps idle feeds alive, and ends those of readers that read nothing. */
  #sweep(): void {
    const { limits, options } = this.#options.context
    const { sseKeepAliveMs: keepAliveMs, writeStallMs: stallMs, maxQueuedBytes } = options.limits
    for (const [stream, reader] of this.#streams) {
      const limit = stream.sweep({ keepAliveMs, stallMs, maxQueuedBytes })
      if (limit !== undefined) limits.hit(limit)
      if (++reader.sweeps % SWEEPS_PER_CHECK === 0) void this.#recheck(reader)
    }
    if (this.#streams.size > 0) return
    clearInterval(this.#sweeping)
    this.#sweeping = undefined
  }

  /** Ends the feed of a reader whose token is no longer valid, or of another viewer. It goes on while the token cannot be verified. */
  async #recheck({ token, viewer, stop }: FeedReader): Promise<void> {
    const now = await this.#verified(token).catch(() => viewer)
    if (!isDeepStrictEqual(now, viewer)) stop()
  }

  #verified(token: string): Promise<Viewer | undefined> {
    const { credentials, identityOf } = this.#options
    return viewerOf(token, credentials, identityOf, this.#observe.admin.operatorScope)
  }

  async #viewer(token: string): Promise<Viewer | undefined> {
    const { log } = this.#options
    try {
      return await this.#verified(token)
    } catch (error) {
      log.warn({ error: asError(error).message }, 'a token could not be verified')
      throw new AdminRefusal(503, 'busy', 'the token cannot be verified now', undefined, { 'Retry-After': '2' })
    }
  }

  /** Throws `AdminRefusal` for a viewer without this access. */
  #checkAccess(access: Access, viewer: Viewer): void {
    if (access !== 'everyone' && !viewer.isOperator) {
      const message = 'this is for operators: a token with "operator: true", or with the scope admin.operator_scope'
      throw new AdminRefusal(403, 'operator_only', message)
    }
    if (access === 'write' && !this.#observe.admin.mayWrite)
      throw new AdminRefusal(403, 'read_only', 'changes are not allowed (ui.write is off)')
  }

  /** Exchanges the key of a link, `{"key": …}`, for a token. */
  async #exchangeKey(request: HttpRequest): Promise<void> {
    const body = await this.#readBody(request)
    if (body === undefined) return
    const token = this.#options.credentials.trade(keyIn(body))
    if (token === undefined) throw new AdminRefusal(401, 'key', 'the link was already used or has expired: ask for another')
    request.admitted()
    reply(request, { token, ...this.#describeSession(OPERATOR) })
  }

  #handleSession(request: HttpRequest, viewer: Viewer): void {
    if (request.method === 'GET') return reply(request, this.#describeSession(viewer))
    if (request.method !== 'DELETE') return request.reply(405, { Allow: 'GET, POST, DELETE' })
    this.#options.credentials.end(tokenOf(request) ?? '')
    for (const reader of this.#streams.values()) void this.#recheck(reader)
    reply(request, {})
  }

  #describeSession({ principal, isOperator }: Viewer): object {
    const { admin, capture } = this.#observe
    const write = isOperator && admin.mayWrite
    const named = isOperator ? this.#options.named() : []
    const faults = this.#options.hasFaults()
    return { principal, role: isOperator ? 'operator' : 'user', write, bodies: capture.bodies, version: VERSION, named, faults }
  }

  /** The text of the body; `undefined`: the caller disconnected. Rejects with `AdminRefusal`. */
  async #readBody(request: HttpRequest): Promise<string | undefined> {
    if (request.method !== 'POST') return ''
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
    request.onDisconnect(() => resolve(undefined))
    request.readBody(MAX_BODY_BYTES, (body) => {
      if (Buffer.isBuffer(body)) resolve(body.toString())
      else reject(new AdminRefusal(413, 'too_large', `a request has at most ${MAX_BODY_BYTES} bytes`))
    })
    const body = await promise
    const isJson = (request.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
    if (body === undefined || body === '' || isJson) return body
    throw new AdminRefusal(415, 'type', 'a body must be JSON, with Content-Type: application/json')
  }
}

const keyIn = (body: string): string => {
  const key = parseJsonObject(body)?.['key']
  return typeof key === 'string' ? key : ''
}

const reply = (request: HttpRequest, value: object): void => request.reply(200, JSON_TYPE, [Buffer.from(JSON.stringify(value))])

const refuse = (request: HttpRequest, { status, body, headers }: AdminRefusal): void =>
  request.reply(status, { ...JSON_TYPE, ...headers }, [Buffer.from(JSON.stringify(body))])

/** The listener always has a TCP address. */
const originOf = ({ tcp: { host, port } = { host: '', port: 0 } }: Listening): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`
