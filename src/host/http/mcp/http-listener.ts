/** `/mcp` and `/servers/<key>/mcp`: both eras on one URL. Comments name the rows of BRIDGING 5.1, the order of the checks. */
import { isModern } from '../../../era/host/modern-host.ts'
import { Cancellation } from '../../../rpc/cancellation.ts'
import type { Sweeper } from '../../../rpc/sweeper.ts'
import { EnvelopeError, readHostMessage } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { IdTable } from '../../../wire/message/id-table.ts'
import { isModernRevision, latestLegacyWithin } from '../../../wire/protocol/revisions.ts'
import { withinRequest } from '../../boundary.ts'
import {
  accepts,
  carriesJson,
  EVENTS,
  JSON_BODY,
  refuse,
  refuseBody,
  refuseBusy,
  refuseMessage,
  refuseWithoutBody,
  streamDelayMs,
} from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'
import { PostExchange } from '../../response/exchange.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { receiveModern, serveModern } from '../../modern.ts'
import { Elsewhere } from './elsewhere.ts'
import { SessionRequests } from './session-requests.ts'

export class HttpListener {
  readonly #context: ListenerContext
  readonly #legacy: SessionRequests
  readonly #sweeper: Sweeper
  /** Routing to other replicas; `undefined`: none are configured. */
  readonly #elsewhere: Elsewhere | undefined
  /** Modern requests without a complete answer. */
  readonly #posts = new IdTable<PostExchange>()
  #nextPost = 0
  #isDraining = false

  constructor(context: ListenerContext, sweeper: Sweeper) {
    this.#context = context
    this.#legacy = new SessionRequests(context)
    this.#sweeper = sweeper
    this.#elsewhere = context.replicas && new Elsewhere(context, context.replicas)
    sweeper.watch(this)
  }

  get sessionCount(): number {
    return this.#legacy.sessions.size
  }
  /** Requests that have not been answered. */
  get inFlight(): number {
    return this.#posts.size + this.#legacy.sessions.inFlight
  }
  /** Whether a call waits for an answer of its host. */
  get isAsking(): boolean {
    return this.#legacy.sessions.isAsking
  }

  /** Refuses new requests; requests in flight continue. */
  drain(): void {
    this.#isDraining = true
  }

  close(): void {
    this.#sweeper.unwatch(this)
    this.#legacy.sessions.endAll()
    for (const post of this.#posts.values()) post.revoke()
  }

  /** Closes sessions that another replica has taken over. */
  releaseTakenOver(): Promise<void> {
    return this.#legacy.releaseTakenOver()
  }

  /** Ends the sessions and requests of revoked principals. */
  revoke(isRevoked: (principal: string) => boolean): void {
    this.#legacy.sessions.revoke(isRevoked)
    for (const post of this.#posts.values()) if (isRevoked(post.principal)) post.revoke()
  }

  sweep(): void {
    const nowMs = performance.now()
    for (const post of this.#posts.values()) post.sweep(nowMs, this.#context.options.limits, this.#context.limits)
    this.#legacy.sweep(nowMs)
  }

  handle(routed: RoutedRequest): void {
    const { request } = routed
    if (request.method === 'POST') this.#post(routed)
    else if (latestLegacyWithin(this.#context.options.revisions) === undefined)
      refuseWithoutBody(this.#context, routed, 405, { Allow: 'POST' })
    else if (request.method === 'GET') this.#routeToOwner(routed, undefined, () => this.#legacy.get(routed))
    else if (request.method === 'DELETE') this.#routeToOwner(routed, undefined, () => this.#legacy.delete(routed))
    else refuseWithoutBody(this.#context, routed, 405, { Allow: 'GET, POST, DELETE' })
  }

  #post(routed: RoutedRequest): void {
    const { request } = routed
    const { limits } = this.#context.options
    if (!carriesJson(request)) return refuse(this.#context, routed, 415, 'Content-Type must be application/json')
    if (!accepts(request, JSON_BODY) || !accepts(request, EVENTS))
      return refuse(this.#context, routed, 406, 'Accept must list application/json and text/event-stream')
    if (this.#isDraining) return refuseWithoutBody(this.#context, routed, 503, { 'Retry-After': '1', Connection: 'close' })
    request.readBody(limits.maxBodyBytes, (body, start) => {
      if (!Buffer.isBuffer(body)) return refuseBody(this.#context, routed, body, start, this.#legacy.sessionOf(routed))
      withinRequest(request, this.#context, () => {
        if (this.#elsewhere === undefined) this.#message(routed, body)
        else this.#routeToOwner(routed, body, () => this.#message(routed, body))
      })
    })
  }

  /** Serves a request here, or at the replica of its session or call. */
  #routeToOwner(routed: RoutedRequest, body: Buffer | undefined, serve: () => void): void {
    if (this.#elsewhere === undefined) return serve()
    const id = routed.request.header('mcp-session-id')
    this.#elsewhere.route(routed, body, id, () => id !== undefined && this.#legacy.sessions.has(id), serve)
  }

  #message(routed: RoutedRequest, body: Buffer): void {
    const { request } = routed
    let message: Envelope
    try {
      if (this.#legacy.batch(routed, body)) return
      message = readHostMessage(body, this.#context.options.limits)
    } catch (error) {
      if (error instanceof EnvelopeError) this.#legacy.refused(routed, error)
      return refuseMessage(this.#context, routed, error)
    }
    const version = request.header('mcp-protocol-version')
    const namesModern = version !== undefined && isModernRevision(version)
    // Row 9 precedes row 10: a request that names or opens a session is legacy, whatever the version header is.
    const isLegacy = message.method === 'initialize' || request.header('mcp-session-id') !== undefined
    const { revisions } = this.#context.options
    const allowsLegacy = latestLegacyWithin(revisions) !== undefined
    if (isModern(message) || (namesModern && !isLegacy) || (!allowsLegacy && message.method !== 'initialize'))
      this.#modern(message, routed)
    else if (message.method === 'initialize' && message.kind === 'request') this.#legacy.initialize(message, routed)
    // A stateless host that names no version (go-sdk). The cancelled request has ended with its connection (BRIDGING 3.22).
    else if (!isLegacy && message.kind === 'notification' && message.method === 'notifications/cancelled') request.reply(202, {})
    else this.#legacy.message(message, routed)
  }

  #modern(message: Envelope, routed: RoutedRequest): void {
    const { request, principal, scope, facts, untilMs, challenge } = routed
    if (message.kind === 'response') return refuse(this.#context, routed, 400, 'a modern host sends no responses')
    const origin = { principal, scope, facts, headers: request.headers(), isAdmitted: true, pipe: undefined }
    if (message.kind === 'notification') {
      receiveModern(message, origin, this.#context)
      return request.reply(202, {})
    }
    const refusal = this.#context.admission.refuse(principal)
    if (refusal !== undefined) return refuseBusy(this.#context, routed, refusal, message)
    const { streamAfterMs } = this.#context.options
    const abort = new Cancellation()
    const exchange = new PostExchange(this.#nextPost++, {
      request,
      streamAfterMs: streamDelayMs(streamAfterMs, scope),
      pollAfterMs: Infinity,
      log: undefined,
      primes: false,
      principal,
      challenge,
      // A call is authorized once; a stream of notifications ends with its credential.
      untilMs: message.method === 'subscriptions/listen' ? untilMs : Infinity,
      onDone: (post) => this.#posts.delete(post.number),
      // A modern host cancels by closing the connection before the answer (B138).
      onDisconnect: () => abort.abort(),
      onOrphaned: () => undefined,
    })
    this.#posts.set(exchange.number, exchange)
    serveModern(message, origin, exchange, abort.signal, this.#context)
  }
}
