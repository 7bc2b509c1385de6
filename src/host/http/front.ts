/** The HTTP front end: routes all paths, after the one guard (BRIDGING 5, 5.1 row 1; T-01, T-04). Every other path is answered 404. */
import { isDeepStrictEqual } from 'node:util'
import { LOCAL_ADMITTED } from '../../auth/identity.ts'
import type { Admitted, Identity } from '../../auth/identity.ts'
import { serverKeyAt } from '../../auth/inbound/server-endpoints.ts'
import type { EndpointKind } from '../../auth/inbound/server-endpoints.ts'
import { revokedBy } from '../../auth/inbound/revocation.ts'
import type { Fetch } from '../../auth/fetch/safe-fetch.ts'
import type { EndpointPath, Scope } from '../../rpc/call.ts'
import type { Sweeper } from '../../rpc/sweeper.ts'
import type { EventStream } from '../../transport/http1/server/request/event-stream.ts'
import type { HttpRequest } from '../../transport/http1/server/request/http-request.ts'
import { latestLegacyWithin } from '../../wire/protocol/revisions.ts'
import { withinRequest } from '../boundary.ts'
import { factsOf } from '../caller-facts.ts'
import { reportRefused } from '../denials.ts'
import type { ListenerContext } from '../listener-context.ts'
import type { HostOptions } from '../options.ts'
import { Addresses } from './addresses.ts'
import { AuthorizationPages } from './pages/authorization-pages.ts'
import { allowOrigin } from './guard/cors.ts'
import { Guard } from './guard/guard.ts'
import { answerHealth, isHealthCheck, Readiness } from './health.ts'
import { HttpListener } from './mcp/http-listener.ts'
import { OriginGuard } from './guard/origin-guard.ts'
import type { OriginRules } from './guard/origins.ts'
import { originRulesOf, prefixOf, publicUrlOf } from './public-url.ts'
import { refuseEncoded, refuseWithoutBody } from './mcp/routed-request.ts'
import type { RoutedRequest } from './mcp/routed-request.ts'
import { handleSignIn } from './pages/sign-in-routing.ts'
import { ConnectPages } from './pages/sign-in-pages.ts'
import { SseListener } from './mcp/sse-listener.ts'
import { asksForPage, StatusPage } from './pages/status-page.ts'
import { sweepStream } from '../response/exchange.ts'
import { until } from '../../time/within.ts'

/** Polling period of `announceEnd`. */
const POLL_MS = 10

export class Front {
  readonly addresses: Addresses
  readonly #context: ListenerContext
  readonly #mcp: HttpListener
  readonly #sse: SseListener
  readonly #connect: ConnectPages
  readonly #authorization: AuthorizationPages
  readonly #status: StatusPage
  readonly #sweeper: Sweeper
  readonly #fetch: Fetch
  readonly #origins: OriginGuard
  #rules: OriginRules
  #prefix: string
  #guard: Guard | undefined
  readonly #readiness = new Readiness()
  /** Ended streams whose hosts have not read all of them. */
  readonly #finishing = new Set<EventStream>()

  /** `fetch`: for requests to authorization servers. */
  constructor(context: ListenerContext, sweeper: Sweeper, fetch: Fetch) {
    this.#context = context
    this.addresses = new Addresses(context, {
      request: (request, isLoopback) => withinRequest(request, context, () => this.#handle(request, isLoopback)),
      signInRequest: (request) => this.#handleSignIn(request),
      finishing: (stream) => {
        this.#finishing.add(stream)
        stream.onClose(() => this.#finishing.delete(stream))
      },
    })
    this.#origins = new OriginGuard(context)
    this.#mcp = new HttpListener(context, sweeper)
    this.#sse = new SseListener(context)
    this.#connect = new ConnectPages({
      context,
      publicUrl: () => publicUrlOf(context.options),
      origin: () => this.addresses.origin(),
      principalOf: () => this.#guard?.principalOf,
      signInOf: async (principal) => this.#guard?.signInOf(principal),
    })
    this.#authorization = new AuthorizationPages({
      context,
      proxy: () => this.#guard?.proxy?.(),
      issuer: () => this.#guard?.resource?.base ?? '',
    })
    this.#status = new StatusPage({
      context,
      origin: () => this.addresses.origin(),
      publicUrl: () => publicUrlOf(context.options),
      identityOf: () => this.#guard?.identityOf,
    })
    this.#sweeper = sweeper
    this.#fetch = fetch
    this.#guard = this.#guardOf(context.options)
    this.#rules = originRulesOf(context.options)
    this.#prefix = prefixOf(context.options)
    sweeper.watch(this)
  }

  /** Resolves with the identity of a token sent to another listener; `undefined`: invalid, or no authentication is configured. */
  async identityOf(token: string): Promise<Identity | undefined> {
    return this.#guard?.identityOf(token)
  }

  get sessionCount(): number {
    return this.#mcp.sessionCount + this.#sse.sessionCount
  }
  get inFlight(): number {
    return this.#mcp.inFlight + this.#sse.inFlight
  }
  /** Whether a call waits for an answer of its host, which needs a listener and the session. */
  get isAsking(): boolean {
    return this.#mcp.isAsking || this.#sse.isAsking
  }

  /** Binds all addresses. Rejects with the system's error and leaves nothing bound. */
  listen(): Promise<void> {
    return this.rebind(this.#context.options)
  }

  /** Applies new options. Rejects with the system's error and changes nothing if an address cannot be bound. */
  async rebind(options: HostOptions): Promise<void> {
    await this.addresses.rebind(options)
    this.#rules = originRulesOf(options)
    this.#prefix = prefixOf(options)
    this.#authorize(this.#context.options, options)
  }

  /** Applies a new `auth` or `path`, and ends sessions and streams of principals whose credentials were revoked. */
  #authorize(before: HostOptions, after: HostOptions): void {
    if (isDeepStrictEqual([before.auth, before.path], [after.auth, after.path])) return
    this.#guard = this.#guardOf(after)
    const isRevoked = revokedBy(before.auth, after.auth)
    this.#mcp.revoke(isRevoked)
    this.#sse.revoke(isRevoked)
  }

  #guardOf({ auth, path }: HostOptions): Guard | undefined {
    return auth && new Guard(auth, path, this.#fetch, this.#context.seal, this.#context)
  }

  /** Handles a request at the inner listener: serves what another process forwards, and answers 404 to all else. */
  receiveInner(request: HttpRequest): void {
    withinRequest(request, this.#context, () => {
      const { replicas } = this.#context
      if (replicas?.receives(request) === true) return
      if (replicas?.isForwarded(request) !== true) return request.reply(404, {})
      this.#guarded(request, false)
    })
  }

  #handleSignIn(request: HttpRequest): void {
    withinRequest(request, this.#context, () => {
      if (this.#origins.refuses(request, this.#rules, true) || refuseEncoded(this.#context, request)) return
      this.#connect.handle(request)
    })
  }

  #handle(request: HttpRequest, isLoopback: boolean): void {
    if (this.#prefix !== '') request.cutPrefix(this.#prefix)
    if (this.#context.replicas?.receives(request) !== true) this.#guarded(request, isLoopback)
  }

  #guarded(request: HttpRequest, isLoopback: boolean): void {
    const origin = request.header('origin')
    const isHealth = isHealthCheck(request)
    if (this.#origins.refuses(request, this.#rules, isLoopback && !isHealth)) return
    if (origin !== undefined && this.#rules.allowedOrigins.has(origin)) allowOrigin(request, origin)
    if (isHealth) return answerHealth(request, this.#readiness)
    if (request.method === 'OPTIONS') return request.reply(204, {})
    if (refuseEncoded(this.#context, request)) return
    const guard = this.#guard
    // Requests for sign-in pages have no credential: people prove their identity on the page.
    if (request.path.startsWith('/connect/')) return handleSignIn(request, this.#connect, this.#context)
    if (asksForPage(request, this.#context.options.path)) return this.#status.handle(request)
    if (guard === undefined) return this.#route(request, LOCAL_ADMITTED)
    if (guard.proxy !== undefined && this.#authorization.serves(request)) return
    if (guard.serves(request)) return
    const admitted = guard.check(request)
    if (admitted instanceof Promise) void this.#routeLater(request, admitted)
    else if (admitted !== undefined) this.#route(request, admitted)
  }

  async #routeLater(request: HttpRequest, verified: Promise<Admitted | undefined>): Promise<void> {
    const admitted = await verified
    if (admitted !== undefined) withinRequest(request, this.#context, () => this.#route(request, admitted))
  }

  #route(request: HttpRequest, admitted: Admitted): void {
    const { path, revisions } = this.#context.options
    const sse = this.#context.options.sse && latestLegacyWithin(revisions) !== undefined
    const { identity } = admitted
    request.admitted()
    const mcp = this.#scope(identity, endpointAt('mcp', path, request.path))
    if (mcp !== undefined) return this.#mcp.handle(this.#routedRequest(request, admitted, mcp))
    const stream = sse ? this.#scope(identity, endpointAt('sse', '/sse', request.path)) : undefined
    if (stream !== undefined) {
      const routed = this.#routedRequest(request, admitted, stream)
      return request.method === 'GET'
        ? this.#sse.open(routed, this.#prefix)
        : refuseWithoutBody(this.#context, routed, 405, { Allow: 'GET' })
    }
    const messages = sse ? this.#scope(identity, endpointAt('messages', '/messages', request.path)) : undefined
    if (messages !== undefined) {
      const routed = this.#routedRequest(request, admitted, messages)
      return request.method === 'POST' ? this.#sse.post(routed) : refuseWithoutBody(this.#context, routed, 405, { Allow: 'POST' })
    }
    reportRefused(this.#context, request, 'path', 404, { principal: identity.principal })
    // An unknown toolset, a toolset of other callers and any other path get the same answer (T-03).
    request.reply(404, {})
  }

  #scope(identity: Identity, path: EndpointPath | undefined): Scope | undefined {
    return path && this.#context.core.scopeFor(identity, path)
  }

  #routedRequest(request: HttpRequest, { identity, untilMs }: Admitted, scope: Scope): RoutedRequest {
    const facts = this.#context.core.wantsFacts ? factsOf(identity, request.client ?? '') : undefined
    return { request, principal: identity.principal, scope, facts, untilMs, challenge: this.#guard?.challenge }
  }

  sweep(): void {
    this.#sse.sweep()
    for (const stream of this.#finishing) sweepStream(stream, this.#context.options.limits, this.#context.limits)
  }

  /** Answers `/readyz` with 503, and serves until proxies have noticed (`reload.lame_duck`), for `maxMs` at most. */
  async announceEnd(maxMs: number): Promise<void> {
    const { lameDuckMs } = this.#context.options
    this.#readiness.end()
    this.addresses.endConnections()
    const isNoticed = (): boolean => this.#readiness.isNoticed(lameDuckMs)
    if (maxMs > 0 && !isNoticed())
      this.#context.log.info({}, 'stopping: no longer ready; requests are served until proxies notice (reload.lame_duck)')
    await until(isNoticed, maxMs, POLL_MS)
  }

  /** Closes sessions that another replica has taken over. */
  releaseTakenOver(): Promise<void> {
    return this.#mcp.releaseTakenOver()
  }

  /** Refuses new requests. Requests in progress continue. */
  drain(): void {
    this.#mcp.drain()
    this.#sse.drain()
  }

  async close(): Promise<void> {
    this.#sweeper.unwatch(this)
    this.#mcp.close()
    this.#sse.close()
    await this.addresses.close()
  }
}

const NAMELESS: EndpointPath = {}

/** Returns the endpoint at a path: the merged one (`base`), of a toolset or of a server; `undefined`: none of this kind. */
const endpointAt = (kind: EndpointKind, base: string, path: string): EndpointPath | undefined => {
  if (path === base) return NAMELESS
  if (path.startsWith(base) && path[base.length] === '/') return { toolset: path.slice(base.length + 1) }
  const server = serverKeyAt(path, kind)
  return server === undefined ? undefined : { server }
}
