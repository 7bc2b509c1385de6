/**
 * Requests for what lives at another replica: a session of a legacy host, its streams, a call of a modern host that waits for answers. They
 * are passed on to it, or served here once it is lost (RELIABILITY 6). Used only where `replicas.url` is configured; all other requests go
 * on at once, without a promise.
 */
import { encodeModern } from '../../../era/host/modern-host.ts'
import { complete } from '../../../rpc/call.ts'
import { ReplicaAway } from '../../../replicas/replicas.ts'
import type { Home } from '../../../replicas/home.ts'
import type { Replicas } from '../../../replicas/replicas.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { StoreDown } from '../../../store/store.ts'
import { EnvelopeError, readHostMessage } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { withinRequest } from '../../boundary.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { JSON_TYPE } from '../../response/exchange.ts'
import { errorReply } from '../../response/respond.ts'
import { resultIdentity } from '../../welcome.ts'
import { refuseBusy } from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'

/** Found, lost and found again: a request is refused after so many replicas that did not take it. */
const MAX_TRIES = 3
/** Waits for the lease of a lost replica are not begun a second time: a host is answered within 35 s. */
const STORE_RETRY_MS = 5_000
const REQUEST_STATE = Buffer.from('"requestState"')

/** What a request names that may live elsewhere. */
interface Named {
  readonly home: string
  /** The session; `undefined`: a call that waits. */
  readonly id: string | undefined
}

export class Elsewhere {
  readonly #context: ListenerContext
  readonly #replicas: Replicas

  constructor(context: ListenerContext, replicas: Replicas) {
    this.#context = context
    this.#replicas = replicas
  }

  /** Serves the request here or at the replica it belongs to. `id`: the session it names; `has`: whether this process has it. */
  route(entrance: RoutedRequest, body: Buffer | undefined, id: string | undefined, has: () => boolean, serve: () => void): void {
    if (id === undefined && this.#replicas.isPassedOn(entrance.request)) return serve()
    if (id !== undefined && has() && this.#replicas.isLeased) return serve()
    const home = id === undefined ? this.#homeOfState(body) : this.#context.sessionIds.homeOf(id)
    if (home === undefined || (id !== undefined && this.#context.sessionIds.hasEnded(id))) return serve()
    void this.#send(entrance, body, { home, id }, has, serve)
  }

  isPassedOn(request: HttpRequest): boolean {
    return this.#replicas.isPassedOn(request)
  }

  /** The same for a message to an HTTP+SSE stream, which ends with its replica. */
  routeStream(entrance: RoutedRequest, body: Buffer, id: string, refuse: () => void): void {
    const home = this.#context.sessionIds.homeOf(id)
    if (home === undefined) return refuse()
    void this.#send(entrance, body, { home, id: undefined }, () => false, refuse)
  }

  #homeOfState(body: Buffer | undefined): string | undefined {
    if (body === undefined || !body.includes(REQUEST_STATE)) return undefined
    const state = this.#read(body)?.params?.text('requestState')
    return state === undefined ? undefined : this.#context.core.homeOf(state)
  }

  async #send(
    entrance: RoutedRequest,
    body: Buffer | undefined,
    { home, id }: Named,
    has: () => boolean,
    serve: () => void,
  ): Promise<void> {
    const { request } = entrance
    const retryUntilMs = performance.now() + STORE_RETRY_MS
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        let to: Home | undefined
        const wasHere = has()
        const { looks } = this.#replicas
        try {
          if (id !== undefined && !wasHere && this.#replicas.isPassedOn(request)) {
            // Not with the mark of this replica: what it names is not here.
            if (!(await this.#replicas.isOwner(home, id))) return request.reply(421, { 'Trunkline-Hop': '' })
          } else if (!wasHere) to = await this.#replicas.locate(home, id)
          if (to === undefined && id !== undefined) {
            if (!has()) await this.#context.sessionIds.learn(id)
            // Last, since this process may have been paused until now.
            if (!(await this.#replicas.mayServe())) throw new Failure('store_unavailable', LAPSED, RETRY)
            // Let go of while the request waited, or taken since its place was looked up: it is another replica's.
            if (!has() && (wasHere || looks !== this.#replicas.looks)) continue
          }
        } catch (error) {
          // One slow answer of the store is no outage. In an outage the next try fails at once (F-28).
          if (error instanceof StoreDown && tries + 1 < MAX_TRIES && performance.now() < retryUntilMs) continue
          throw error
        }
        if (to === undefined) {
          return withinRequest(request, this.#context, serve)
        }
        const end = await this.#replicas.passOn(request, body, to)
        if (end === 'answered') return
        if (end === 'refused' && id !== undefined) await this.#replicas.refused(id)
        if (end === 'lost') return this.#lost(entrance, body, id)
      }
      throw new Failure('store_unavailable', 'no replica takes the request', RETRY)
    } catch (error) {
      const failure = failureOf(error)
      if (failure !== undefined) return refuseBusy(this.#context, entrance, failure, body && this.#read(body))
      withinRequest(request, this.#context, () => {
        throw error
      })
    } finally {
      // Of another principal, or refused, or passed on: what was read is not needed.
      if (id !== undefined) this.#context.sessionIds.restored(id)
    }
  }

  /** The replica ended while it had the request. */
  #lost({ request, scope, principal }: RoutedRequest, body: Buffer | undefined, id: string | undefined): void {
    const message = body && this.#read(body)
    // Nothing was said to its host yet: a GET, a DELETE or a notification may be sent again.
    if (message?.kind !== 'request') return request.reply(503, { 'Retry-After': '1' })
    const era = id === undefined ? 'modern' : 'legacy'
    const failure = new Failure('lost', 'the replica that had the request ended', { executed: 'unknown' })
    const reply = errorReply(
      failure,
      {
        id: message.id,
        era,
        method: message.method,
        ref: this.#context.nextRef(),
        encode: (result) =>
          era === 'legacy'
            ? result
            : encodeModern(complete(result), message.method, resultIdentity({ scope, principal }, this.#context)),
      },
      this.#context,
    )
    request.reply(reply.status, JSON_TYPE, reply.message)
  }

  /** `undefined`: no message, or a batch. */
  #read(body: Buffer): Envelope | undefined {
    try {
      return readHostMessage(body, this.#context.options.limits)
    } catch (error) {
      if (error instanceof EnvelopeError) return undefined
      throw error
    }
  }
}

/** `undefined`: an error that is not expected. */
const failureOf = (error: unknown): Failure | undefined => {
  if (error instanceof Failure) return error
  if (error instanceof StoreDown) return new Failure('store_unavailable', error.message, { ...RETRY, limit: 'store' })
  return error instanceof ReplicaAway ? new Failure('store_unavailable', error.message, RETRY) : undefined
}

const LAPSED = 'this replica does not reach the store, and another one may have taken the session over'

const RETRY = { executed: 'no', retryable: true, retryAfterMs: 1_000 } as const
