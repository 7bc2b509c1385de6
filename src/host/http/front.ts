/**
 * The HTTP front: routes all paths, after the one guard (BRIDGING 5, 5.1 row 1; T-01, T-04). Paths that are not named here do not
 * exist.
 */
import { isDeepStrictEqual } from 'node:util'
import { LOCAL_ADMITTED } from '../../auth/identity.ts'
import type { Admitted, Identity } from '../../auth/identity.ts'
import type { Fetch } from '../../auth/oauth/safe-fetch.ts'
import { revokedBy } from '../../auth/inbound/revocation.ts'
import { serverKeyAt } from '../../auth/inbound/server-endpoints.ts'
import type { EndpointKind } from '../../auth/inbound/server-endpoints.ts'
import type { EndpointPath, Scope } from '../../rpc/call.ts'
import type { Sweeper } from '../../rpc/sweeper.ts'
import { ConnectionCaps } from '../../transport/http1/server/connection-caps.ts'
import type { ConnectionLimits } from '../../transport/http1/server/connection-caps.ts'
import { LINGER_MS, listenHttp } from '../../transport/http1/server/http-server.ts'
import type { HttpRequest } from '../../transport/http1/server/http-request.ts'
import type { HttpServerOptions, Listening } from '../../transport/http1/server/http-server.ts'
import { latestLegacyWithin } from '../../wire/protocol/revisions.ts'
import { Throttle } from '../../time/throttle.ts'
import { withinRequest } from '../boundary.ts'
import { factsOf } from '../caller-facts.ts'
import type { Replicas } from '../../replicas/replicas.ts'
import { AuthorizationPages } from './authorization-pages.ts'
import { ConnectPages, MAX_FORM_BYTES } from './sign-in-pages.ts'
import { refuseEncoded, turnAway } from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'
import { connectionsWithin } from '../limits/gauges.ts'
import { Guard } from './guard.ts'
import { HttpListener } from './http-listener.ts'
import type { ListenerContext } from '../listener-context.ts'
import { OriginGuard } from './origin-guard.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import type { Address, HostOptions } from '../options.ts'
import type { ListenAddress, TcpAddress } from '../../transport/http1/server/listen-address.ts'
import { trustedProxies } from '../../transport/http1/server/trusted-proxies.ts'
import type { TrustedProxies } from '../../transport/http1/server/trusted-proxies.ts'
import type { OriginRules } from './origins.ts'
import { Readiness } from './readiness.ts'
import { SseListener } from './sse-listener.ts'
import { asksForPage, StatusPage } from './status-page.ts'

const NAMELESS: EndpointPath = {}
const CORS_HEADERS =
  'Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID, Mcp-Method, Mcp-Name, ' +
  'traceparent, tracestate, baggage'
const CORS_EXPOSED = 'Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After'
/** Seconds; no browser keeps the answer to a preflight longer. */
const PREFLIGHT_MAX_AGE = '7200'
/** Polling period of waits. */
const LOOK_MS = 10
const PLAIN_TEXT = { 'Content-Type': 'text/plain' }

export class Front {
  readonly #hub: ListenerContext
  readonly #mcp: HttpListener
  readonly #sse: SseListener
  readonly #connect: ConnectPages
  readonly #authorization: AuthorizationPages
  readonly #status: StatusPage
  readonly #sweeper: Sweeper
  readonly #caps: ConnectionCaps
  readonly #fetch: Fetch
  readonly #origins: OriginGuard
  #rules: OriginRules
  #trusted: TrustedProxies | undefined
  #prefix: string
  #guard: Guard | undefined
  /** By the address as configured. */
  #listening = new Map<string, Listening>()
  #servedElsewhere: readonly TcpAddress[] | undefined
  /** A loopback listener for sign-in pages only. */
  #signInListener: Promise<Listening> | undefined
  readonly #readiness = new Readiness()
  readonly #troubles = new Throttle(1_000)

  /** `fetch`: how authorization servers are asked. */
  constructor(hub: ListenerContext, sweeper: Sweeper, fetch: Fetch) {
    this.#hub = hub
    this.#origins = new OriginGuard(hub)
    this.#mcp = new HttpListener(hub, sweeper)
    this.#sse = new SseListener(hub)
    this.#connect = new ConnectPages({
      signIns: hub.signIns,
      publicUrl: () => publicUrlOf(hub.options),
      origin: () => this.origin(),
      whose: () => this.#guard?.whose,
      signInOf: async (principal) => this.#guard?.signInOf(principal),
      log: hub.log,
      denied: () => hub.denied,
    })
    this.#authorization = new AuthorizationPages({
      proxy: () => this.#guard?.proxy?.(),
      issuer: () => this.#guard?.resource?.base ?? '',
      log: hub.log,
      denied: () => hub.denied,
    })
    this.#status = new StatusPage({
      hub,
      origin: () => this.origin(),
      publicUrl: () => publicUrlOf(hub.options),
      identityOf: () => {
        const guard = this.#guard
        return guard && ((token) => guard.identityOf(token))
      },
    })
    this.#sweeper = sweeper
    this.#caps = new ConnectionCaps(() => connectionLimits(hub), hub.limits.hit)
    this.#fetch = fetch
    this.#guard = this.#guardOf(hub.options)
    this.#rules = rulesOf(hub.options)
    this.#trusted = trustedProxies(hub.options.trustedProxies)
    this.#prefix = prefixOf(hub.options)
    sweeper.watch(this)
  }

  /** The identity of a token at another listener; `undefined`: it is invalid, or no authentication is configured. */
  async identityOf(token: string): Promise<Identity | undefined> {
    return this.#guard?.identityOf(token)
  }

  get sessionCount(): number {
    return this.#mcp.sessionCount + this.#sse.sessionCount
  }
  get inFlight(): number {
    return this.#mcp.inFlight + this.#sse.inFlight
  }

  /** The TCP addresses bound, with the ports the system gave; or those at which other processes serve hosts for this one. */
  get addresses(): readonly TcpAddress[] {
    return this.#bound.flatMap(({ tcp }) => tcp ?? [])
  }

  /** Other processes serve hosts at these addresses: links to pages name them. */
  servedAt(addresses: readonly TcpAddress[]): void {
    this.#servedElsewhere = addresses
  }

  get #bound(): readonly Pick<Listening, 'tcp' | 'path' | 'isSecure'>[] {
    if (this.#servedElsewhere === undefined) return [...this.#listening.values()]
    const isSecure = this.#hub.options.tls !== undefined
    return this.#servedElsewhere.map((tcp) => ({ tcp, path: undefined, isSecure }))
  }

  /** URLs of a path: at TCP addresses first, then at unix sockets as VS Code writes them (`unix:///run/x.sock#/mcp`). */
  urls(path: string): readonly string[] {
    const all = this.#bound
    return [
      ...all.flatMap(({ tcp, isSecure }) => (tcp === undefined ? [] : [`${urlOf(tcp, isSecure)}${path}`])),
      ...all.flatMap((listening) => (listening.path === undefined ? [] : [`unix://${listening.path}#${path}`])),
    ]
  }

  /**
   * Origin and path prefix under which a browser reaches the gateway. Without a listener, behind a pipe, it opens one port of the
   * loopback address for sign-in pages only.
   */
  async origin(): Promise<string> {
    const publicUrl = publicUrlOf(this.#hub.options)
    const first = this.#bound.find(({ tcp }) => tcp !== undefined)
    if (publicUrl !== undefined) return publicUrl
    if (first !== undefined) return originOf(first)
    this.#signInListener ??= listenHttp(DOOR, serverOptions(this.#hub.options), this.#hub.bodies, this.#caps, {
      request: (request) => this.#onDoor(request),
      trouble: (error) => this.#troubled(error),
      reached: this.#hub.limits.hit,
    })
    // A port that could not be bound now may be bound later.
    this.#signInListener.catch(() => (this.#signInListener = undefined))
    return originOf(await this.#signInListener)
  }

  #onDoor(request: HttpRequest): void {
    withinRequest(request, this.#hub, () => {
      if (this.#origins.refuses(request, this.#rules, true) || refuseEncoded(this.#hub, request)) return
      this.#connect.handle(request)
    })
  }

  /** Binds all addresses. Rejects with the system's error and leaves nothing bound. */
  listen(): Promise<void> {
    return this.rebind(this.#hub.options)
  }

  /**
   * Serves the addresses of `options`. Unchanged addresses are not touched; new ones are bound before old ones are closed. Rejects with
   * the system's error and changes nothing then.
   */
  async rebind(options: HostOptions): Promise<void> {
    const before = this.#listening
    const after = new Map<string, Listening>()
    try {
      for (const address of addressesOf(options)) {
        const name = nameOf(address)
        const known = before.get(name)
        if (known !== undefined && options.tls !== undefined) known.renew(options.tls)
        const listening = known ?? (await this.#bind(address, options))
        if (listening !== undefined) after.set(name, listening)
      }
    } catch (error) {
      const bound = [...after].filter(([name]) => !before.has(name))
      await Promise.all(bound.map(([, listening]) => listening.close()))
      throw error
    }
    this.#listening = after
    this.#trusted = trustedProxies(options.trustedProxies)
    this.#rules = rulesOf(options)
    this.#prefix = prefixOf(options)
    this.#authorize(this.#hub.options, options)
    for (const [name, listening] of before) if (!after.has(name)) this.#retire(listening, options.drainMs)
  }

  /** Ends sessions and streams of principals whose credentials were revoked. */
  #authorize(before: HostOptions, after: HostOptions): void {
    if (isDeepStrictEqual([before.auth, before.path], [after.auth, after.path])) return
    this.#guard = this.#guardOf(after)
    const isRevoked = revokedBy(before.auth, after.auth)
    this.#mcp.revoke(isRevoked)
    this.#sse.revoke(isRevoked)
  }

  #guardOf({ auth, path }: HostOptions): Guard | undefined {
    return auth && new Guard(auth, path, this.#fetch, this.#hub.seal, this.#hub)
  }

  /** Refuses new connections; open requests have the drain time. */
  #retire(listening: Listening, drainMs: number): void {
    void listening.stopAccepting()
    setTimeout(() => void listening.close(), drainMs).unref()
  }

  async #bind(address: ListenAddress, options: HostOptions): Promise<Listening | undefined> {
    // Of an inherited socket it is known once it listens; before, nothing of it is read.
    let isLoopback = 'host' in address && isLoopbackHost(address.host)
    try {
      const listening = await listenHttp(address, this.#serverOptions(options), this.#hub.bodies, this.#caps, {
        request: (request) => withinRequest(request, this.#hub, () => this.#handle(request, isLoopback)),
        trouble: (error) => this.#troubled(error),
        reached: this.#hub.limits.hit,
      })
      if (!('fd' in address)) return listening
      isLoopback = listening.tcp !== undefined && isLoopbackHost(listening.tcp.host)
      if (listening.tcp === undefined || isLoopback || options.auth !== undefined || options.allowUnauthenticatedNetwork)
        return listening
      await listening.close()
      throw new OpenSocket(listening.tcp)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // A machine without IPv6 still has its other loopback address.
      const isNoIpv6 =
        'host' in address &&
        address.host === '::1' &&
        options.addresses.length > 1 &&
        (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')
      if (isNoIpv6) return undefined
      const facts =
        'host' in address
          ? { address: nameOf(address), port: address.port }
          : { address: nameOf(address), option: 'path' in address ? 'listen.unix' : 'listen.systemd' }
      throw Object.assign(error as Error, facts)
    }
  }

  #serverOptions(options: HostOptions): HttpServerOptions {
    const { tls, takesProxyHeader } = options
    return {
      ...serverOptions(options),
      tls,
      takesProxyHeader,
      trusted: (address) => this.#trusted?.(address) === true,
      forwarded: () => this.#hub.options.forwarded,
    }
  }

  /** Logs one line per second for all connections. */
  #troubled(error: Error): void {
    if (this.#troubles.due() !== undefined) this.#hub.log.warn({ error: error.message }, 'trouble with connections of hosts')
  }

  /**
   * Answers `/readyz` with 503 and serves all else until proxies have noticed (`reload.lame_duck`), or for `maxMs`. Each answer closes
   * its connection, so that no proxy keeps a connection that is about to close.
   */
  async announceEnd(maxMs: number): Promise<void> {
    const { lameDuckMs } = this.#hub.options
    const startMs = performance.now()
    this.#readiness.end()
    for (const listening of this.#listening.values()) listening.endConnections()
    const isOver = (): boolean => performance.now() - startMs >= maxMs || this.#readiness.isNoticed(lameDuckMs)
    if (!isOver()) this.#hub.log.info({}, 'stopping: not ready any more, and serving on until proxies notice (reload.lame_duck)')
    while (!isOver()) await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }

  /** Refuses new connections; resolves when requests already sent on open ones have been received. */
  async stopAccepting(): Promise<void> {
    await Promise.all([...this.#listening.values()].map((listening) => listening.stopAccepting()))
    const endMs = performance.now() + LINGER_MS
    while (this.#caps.open > 0 && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }

  /** Lets go of sessions that another replica has taken over. */
  yieldTaken(): Promise<void> {
    return this.#mcp.yieldTaken()
  }

  /** Refuses new requests; requests under way continue. */
  drain(): void {
    this.#mcp.drain()
    this.#sse.drain()
  }

  async close(): Promise<void> {
    this.#sweeper.unwatch(this)
    this.#mcp.close()
    this.#sse.close()
    const door = await this.#signInListener
    await Promise.all([...this.#listening.values(), ...(door === undefined ? [] : [door])].map((listening) => listening.close()))
  }

  sweep(): void {
    this.#sse.sweep()
  }

  /** A request at the listener for other processes of this machine: what they pass on is served, and nothing else. */
  receiveInner(request: HttpRequest): void {
    withinRequest(request, this.#hub, () => {
      const { replicas } = this.#hub
      if (replicas?.receives(request) === true) return
      if (replicas?.isPassedOn(request) !== true) return request.reply(404, {})
      this.#guarded(request, false)
    })
  }

  #handle(request: HttpRequest, isLoopback: boolean): void {
    if (this.#prefix !== '') request.cutPrefix(this.#prefix)
    if (this.#hub.replicas?.receives(request) !== true) this.#guarded(request, isLoopback)
  }

  #guarded(request: HttpRequest, isLoopback: boolean): void {
    const origin = request.header('origin')
    if (this.#origins.refuses(request, this.#rules, isLoopback && !isHealthCheck(request))) return
    if (origin !== undefined && this.#rules.allowedOrigins.has(origin)) this.#allowOrigin(request, origin)
    if (this.#isHealthAsked(request)) return
    if (request.method === 'OPTIONS') return request.reply(204, {})
    if (refuseEncoded(this.#hub, request)) return
    const guard = this.#guard
    // Sign-in pages: people have no credential in the request and prove their identity on the page.
    if (request.path.startsWith('/connect/')) return this.#signIn(request)
    if (asksForPage(request, this.#hub.options.path)) return this.#status.handle(request)
    if (guard === undefined) return this.#route(request, LOCAL_ADMITTED)
    if (guard.proxy !== undefined && this.#authorization.serves(request)) return
    if (guard.serves(request)) return
    const admitted = guard.check(request)
    if (admitted instanceof Promise) void this.#routeLater(request, admitted)
    else if (admitted !== undefined) this.#route(request, admitted)
  }

  /** A sign-in that began at another replica goes on there. */
  #signIn(request: HttpRequest): void {
    const { replicas, signIns } = this.#hub
    const [, id = ''] = /^\/connect\/([\w-]{22,64})$/.exec(request.path) ?? []
    // The `state` at the issuer of callers begins with the id of the link.
    const [state = ''] = (new URLSearchParams(request.query).get('state') ?? '').split('.')
    const name = id === '' ? state : id
    if (replicas === undefined || name === '' || signIns.has(name) || replicas.isPassedOn(request))
      return this.#connect.handle(request)
    if (request.method !== 'POST') return void this.#passOn(request, undefined, name, replicas)
    request.readBody(MAX_FORM_BYTES, (body) => {
      if (Buffer.isBuffer(body)) void this.#passOn(request, body, name, replicas)
      else request.reply(413, {})
    })
  }

  async #passOn(request: HttpRequest, body: Buffer | undefined, name: string, replicas: Replicas): Promise<void> {
    const home = await replicas.findHome(name).catch(() => undefined)
    if (home !== undefined && (await replicas.passOn(request, body, home)) === 'answered') return
    withinRequest(request, this.#hub, () => this.#connect.gone(request))
  }

  async #routeLater(request: HttpRequest, verified: Promise<Admitted | undefined>): Promise<void> {
    const admitted = await verified
    if (admitted !== undefined) withinRequest(request, this.#hub, () => this.#route(request, admitted))
  }

  /** Answers health checks, which need no credential. */
  #isHealthAsked(request: HttpRequest): boolean {
    if (!isHealthCheck(request)) return false
    if (request.path === '/healthz') request.reply(200, PLAIN_TEXT, [Buffer.from('ok\n')])
    else if (this.#readiness.probe()) request.reply(200, PLAIN_TEXT, [Buffer.from('ready\n')])
    else request.reply(503, PLAIN_TEXT, [Buffer.from('stopping\n')])
    return true
  }

  #route(request: HttpRequest, admitted: Admitted): void {
    const { path, revisions } = this.#hub.options
    const sse = this.#hub.options.sse && latestLegacyWithin(revisions) !== undefined
    const { identity } = admitted
    request.admitted()
    const mcp = this.#scope(identity, endpointBelow(path, request.path) ?? serverAt(request.path, 'mcp'))
    if (mcp !== undefined) return this.#mcp.handle(this.#entrance(request, admitted, mcp))
    const stream = sse ? this.#scope(identity, endpointBelow('/sse', request.path) ?? serverAt(request.path, 'sse')) : undefined
    if (stream !== undefined) {
      const entrance = this.#entrance(request, admitted, stream)
      return request.method === 'GET'
        ? this.#sse.open(entrance, this.#prefix)
        : turnAway(this.#hub, entrance, 405, { Allow: 'GET' })
    }
    const messages = sse
      ? this.#scope(identity, endpointBelow('/messages', request.path) ?? serverAt(request.path, 'messages'))
      : undefined
    if (messages !== undefined) {
      const entrance = this.#entrance(request, admitted, messages)
      return request.method === 'POST' ? this.#sse.post(entrance) : turnAway(this.#hub, entrance, 405, { Allow: 'POST' })
    }
    this.#hub.denied?.({ reason: 'path', status: 404, principal: identity.principal, path: request.path, client: request.client })
    // The same answer for an unknown toolset, a toolset of other callers, and any other path (T-03).
    request.reply(404, {})
  }

  #scope(identity: Identity, path: EndpointPath | undefined): Scope | undefined {
    return path && this.#hub.core.scopeFor(identity, path)
  }

  #entrance(request: HttpRequest, { identity, untilMs }: Admitted, scope: Scope): RoutedRequest {
    const facts = this.#hub.core.wantsFacts ? factsOf(identity, request.client ?? '') : undefined
    return { request, principal: identity.principal, scope, facts, untilMs, challenge: this.#guard?.challenge }
  }

  /** CORS for listed origins only; preflights are answered before anything else (T-02). */
  #allowOrigin(request: HttpRequest, origin: string): void {
    const asked = request.header('access-control-request-headers') ?? ''
    const params = asked
      .split(',')
      .map((name) => name.trim())
      .filter((name) => /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name))
    request.addHeaders({
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Methods': 'GET, POST, DELETE',
      'Access-Control-Allow-Headers': [CORS_HEADERS, ...params].join(', '),
      'Access-Control-Expose-Headers': CORS_EXPOSED,
      ...(request.method === 'OPTIONS' && { 'Access-Control-Max-Age': PREFLIGHT_MAX_AGE }),
      Vary: 'Origin',
    })
  }
}

/** The configured limits, bounded by the file descriptors (F-29). */
const connectionLimits = ({ options: { limits }, maxDescriptors }: ListenerContext): ConnectionLimits => {
  const most = connectionsWithin(maxDescriptors)
  return most < limits.maxConnections ? { ...limits, maxConnections: most } : limits
}

/** The public URL; with OAuth the origin of its audience. */
const publicUrlOf = ({ publicUrl, auth, path }: HostOptions): string | undefined => {
  if (publicUrl !== undefined || auth?.oauth === undefined) return publicUrl
  const { origin, pathname } = new URL(auth.oauth.audience)
  return origin + pathname.slice(0, -path.length)
}

/** The path prefix of a proxy: `/gateway`, or nothing. */
const prefixOf = (options: HostOptions): string => {
  const url = publicUrlOf(options)
  return url === undefined ? '' : new URL(url).pathname.replace(/\/$/, '')
}

const serverOptions = ({ limits, httpServer }: HostOptions): HttpServerOptions => ({ ...limits, httpServer })

const DOOR: Address = { host: '127.0.0.1', port: 0 }

/** The origin of a bound address; a wildcard address is replaced by loopback. */
const originOf = ({ tcp = DOOR, isSecure }: Pick<Listening, 'tcp' | 'isSecure'>): string =>
  urlOf({ ...tcp, host: tcp.host === '0.0.0.0' || tcp.host === '::' ? 'localhost' : tcp.host }, isSecure)

const urlOf = ({ host, port }: TcpAddress, isSecure: boolean): string =>
  `${isSecure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`

/** A socket of the service manager that the network reaches, where hosts are not authenticated. */
class OpenSocket extends Error {
  constructor({ host, port }: TcpAddress) {
    super(
      `the socket that systemd passes, ${host}:${port}, can be reached from the network, and hosts are not authenticated: configure auth, let it listen at 127.0.0.1, or start with --allow-unauthenticated-network`,
    )
    this.name = 'OpenSocket'
  }
}

/** Everything to be bound. */
const addressesOf = ({ addresses, unix, inherited }: HostOptions): readonly ListenAddress[] => [
  ...addresses,
  ...inherited.map((fd) => ({ fd })),
  ...(unix === undefined ? [] : [unix]),
]

const serverAt = (path: string, kind: EndpointKind): EndpointPath | undefined => {
  const server = serverKeyAt(path, kind)
  return server === undefined ? undefined : { server }
}

/** `<base>` and `<base>/<toolset>`. */
const endpointBelow = (base: string, path: string): EndpointPath | undefined => {
  if (path === base) return NAMELESS
  return path.startsWith(base) && path[base.length] === '/' ? { toolset: path.slice(base.length + 1) } : undefined
}

/** Besides the two paths, `OPTIONS /`: what HAProxy sends where its `option httpchk` names nothing. A preflight has an `Origin`. */
const isHealthCheck = (request: HttpRequest): boolean =>
  request.path === '/readyz' ||
  request.path === '/healthz' ||
  (request.path === '/' && request.method === 'OPTIONS' && request.header('origin') === undefined)

const nameOf = (address: ListenAddress): string => {
  if ('fd' in address) return `descriptor ${address.fd}`
  if ('path' in address) return address.path
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}

const rulesOf = (options: HostOptions): OriginRules => {
  const { allowedHosts, allowedOrigins } = options
  const publicUrl = publicUrlOf(options)
  const own = publicUrl === undefined ? undefined : new URL(publicUrl)
  return {
    allowedHosts: new Set([...allowedHosts, ...(own === undefined ? [] : [own.hostname])].map((host) => host.toLowerCase())),
    allowedOrigins: new Set([...allowedOrigins, ...(own === undefined ? [] : [own.origin])]),
  }
}
