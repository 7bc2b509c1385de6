/**
 * `/mcp` and `/servers/<key>/mcp`: both eras on one URL. The order of the checks and their statuses are those of BRIDGING 5.1; comments
 * have the row numbers.
 */
import { isModern } from '../../../era/host/modern-host.ts'
import { Cancellation } from '../../../rpc/cancellation.ts'
import type { Sweeper } from '../../../rpc/sweeper.ts'
import { EnvelopeError, readHostMessage } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { IdTable } from '../../../wire/message/id-table.ts'
import { errorMessage, errorObject } from '../../../wire/message/message.ts'
import { isModernRevision, latestLegacyWithin } from '../../../wire/protocol/revisions.ts'
import { withinRequest } from '../../boundary.ts'
import { note } from '../../denials.ts'
import {
  accepts,
  carriesJson,
  decidedFirst,
  EVENTS,
  JSON_BODY,
  refuse,
  refuseBody,
  refuseBusy,
  turnAway,
} from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'
import { JSON_TYPE, PostExchange } from '../../response/exchange.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { serveModern } from '../../modern.ts'
import { Elsewhere } from './elsewhere.ts'
import { SessionRequests } from './session-requests.ts'

export class HttpListener {
  readonly #context: ListenerContext
  readonly #sessions: SessionRequests
  readonly #sweeper: Sweeper
  /** What lives at other replicas; `undefined`: there are none. */
  readonly #elsewhere: Elsewhere | undefined
  /** Modern requests without a complete answer. */
  readonly #posts = new IdTable<PostExchange>()
  #nextPost = 0
  #isDraining = false

  constructor(context: ListenerContext, sweeper: Sweeper) {
    this.#context = context
    this.#sessions = new SessionRequests(context)
    this.#sweeper = sweeper
    this.#elsewhere = context.replicas && new Elsewhere(context, context.replicas)
    sweeper.watch(this)
  }

  get sessionCount(): number {
    return this.#sessions.size
  }
  /** Requests that have not been answered. */
  get inFlight(): number {
    return this.#posts.size + this.#sessions.inFlight
  }

  /** Refuses new requests; requests under way continue. */
  drain(): void {
    this.#isDraining = true
  }

  close(): void {
    this.#sweeper.unwatch(this)
    this.#sessions.endAll()
    for (const post of this.#posts.values()) post.revoke()
  }

  /** Lets go of sessions that another replica has taken over. */
  yieldTaken(): Promise<void> {
    return this.#sessions.yieldTaken()
  }

  /** Ends the streams of these principals. */
  revoke(isRevoked: (principal: string) => boolean): void {
    this.#sessions.revoke(isRevoked)
    for (const post of this.#posts.values()) if (isRevoked(post.principal)) post.revoke()
  }

  sweep(): void {
    const nowMs = performance.now()
    for (const post of this.#posts.values()) post.sweep(nowMs, this.#context.options.limits, this.#context.limits)
    this.#sessions.sweep(nowMs)
  }

  handle(entrance: RoutedRequest): void {
    const { request } = entrance
    if (request.method === 'POST') this.#post(entrance)
    else if (latestLegacyWithin(this.#context.options.revisions) === undefined)
      turnAway(this.#context, entrance, 405, { Allow: 'POST' })
    else if (request.method === 'GET') this.#routed(entrance, undefined, () => this.#sessions.get(entrance))
    else if (request.method === 'DELETE') this.#routed(entrance, undefined, () => this.#sessions.delete(entrance))
    else turnAway(this.#context, entrance, 405, { Allow: 'GET, POST, DELETE' })
  }

  #post(entrance: RoutedRequest): void {
    const { request } = entrance
    const { limits } = this.#context.options
    if (!carriesJson(request)) return refuse(this.#context, entrance, 415, -32600, 'Content-Type must be application/json')
    if (!accepts(request, JSON_BODY) || !accepts(request, EVENTS))
      return refuse(this.#context, entrance, 406, -32600, 'Accept must list application/json and text/event-stream')
    if (this.#isDraining) return turnAway(this.#context, entrance, 503, { 'Retry-After': '1', Connection: 'close' })
    request.readBody(limits.maxBodyBytes, (body) => {
      if (!Buffer.isBuffer(body)) return refuseBody(this.#context, entrance, body)
      withinRequest(request, this.#context, () => {
        if (this.#elsewhere === undefined) this.#message(entrance, body)
        else this.#routed(entrance, body, () => this.#message(entrance, body))
      })
    })
  }

  /** Serves a request here, or where its session or its call is. */
  #routed(entrance: RoutedRequest, body: Buffer | undefined, serve: () => void): void {
    if (this.#elsewhere === undefined) return serve()
    const id = entrance.request.header('mcp-session-id')
    this.#elsewhere.route(entrance, body, id, () => id !== undefined && this.#sessions.has(id), serve)
  }

  #message(entrance: RoutedRequest, body: Buffer): void {
    const { request } = entrance
    let message: Envelope
    try {
      if (this.#sessions.batch(entrance, body)) return
      message = readHostMessage(body, this.#context.options.limits)
    } catch (error) {
      if (!(error instanceof EnvelopeError)) throw error
      if (error.limit !== undefined) this.#context.limits.hit(error.limit)
      note(this.#context, entrance, 400, error.message, undefined)
      return request.reply(400, JSON_TYPE, errorMessage(error.id, errorObject(error.code, error.message)))
    }
    const version = request.header('mcp-protocol-version')
    const namesModern = version !== undefined && isModernRevision(version)
    // Row 9 comes before row 10: a request that names or opens a session is legacy, for any value of the header.
    const isLegacy = message.method === 'initialize' || request.header('mcp-session-id') !== undefined
    const { revisions } = this.#context.options
    const isLegacySpoken = latestLegacyWithin(revisions) !== undefined
    if (isModern(message) || (namesModern && !isLegacy) || (!isLegacySpoken && message.method !== 'initialize'))
      this.#modern(message, entrance)
    else if (message.method === 'initialize' && message.kind === 'request') this.#sessions.initialize(message, entrance)
    // Of a stateless host that says no version beside it (go-sdk): what it cancels has ended with its connection (BRIDGING 3.22).
    else if (!isLegacy && message.kind === 'notification' && message.method === 'notifications/cancelled') request.reply(202, {})
    else this.#sessions.message(message, entrance, version)
  }

  #modern(message: Envelope, entrance: RoutedRequest): void {
    const { request, principal, scope, facts, untilMs, challenge } = entrance
    if (message.kind === 'response') return refuse(this.#context, entrance, 400, -32600, 'a modern host sends no responses')
    if (message.kind === 'notification') return request.reply(202, {})
    const refusal = this.#context.admission.refuse(principal)
    if (refusal !== undefined) return refuseBusy(this.#context, entrance, refusal, message)
    const { streamAfterMs } = this.#context.options
    const abort = new Cancellation()
    const exchange = new PostExchange(this.#nextPost++, {
      request,
      streamAfterMs: decidedFirst(streamAfterMs, scope),
      pollAfterMs: Infinity,
      log: undefined,
      primes: false,
      principal,
      challenge,
      // A call was allowed when it came; a stream of changes is allowed as long as its credential is good.
      untilMs: message.method === 'subscriptions/listen' ? untilMs : Infinity,
      onDone: (post) => this.#posts.delete(post.number),
      // Closing the connection before the answer is how a modern host cancels (B138).
      onDisconnect: () => abort.abort(),
      onOrphaned: () => undefined,
    })
    this.#posts.set(exchange.number, exchange)
    serveModern(message, { principal, scope, facts, headers: request.headers(), pipe: undefined }, exchange, abort, this.#context)
  }
}
