/**
 * Requests for state at another replica: a legacy session, its streams, or a parked call of a modern host. They are forwarded to that
 * replica, or served here once it is lost (RELIABILITY 6). Used only with `replicas.url`; all other requests are served at once, without a
 * promise.
 */
import { encodeModern, isModern } from '../../../era/host/modern-host.ts'
import { complete } from '../../../rpc/call.ts'
import { ReplicaAway } from '../../../replicas/replicas.ts'
import type { Home } from '../../../replicas/home.ts'
import type { Replicas } from '../../../replicas/replicas.ts'
import { StoreDown } from '../../../store/store.ts'
import { attempt } from '../../../values/attempt.ts'
import { EnvelopeError, readHostMessage, splitBatch } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { Failure } from '../../../wire/message/failure.ts'
import type { Parts } from '../../../wire/message/payload.ts'
import { META } from '../../../wire/protocol/meta.ts'
import { withinRequest } from '../../boundary.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { JSON_TYPE } from '../../response/exchange.ts'
import { errorReply } from '../../response/respond.ts'
import type { Failed } from '../../response/respond.ts'
import { resultIdentity } from '../../handshake.ts'
import { arrayOf } from './batch.ts'
import { refuseBusy } from './routed-request.ts'
import type { RoutedRequest } from './routed-request.ts'

/** A request is refused after this many replicas have not served it. */
const MAX_TRIES = 3
/** Store errors are retried within this time. Bounds the answer to 35 s: the wait for the lease of a lost replica is not repeated. */
const STORE_RETRY_MS = 5_000
const REQUEST_STATE = Buffer.from('"requestState"')
const INITIALIZE = Buffer.from('"initialize"')
const NOT_HERE = (): boolean => false

/** State named by a request. */
interface Named {
  readonly home: string
  /** Id of the session; `undefined`: a parked call or an HTTP+SSE stream. */
  readonly id: string | undefined
  readonly kind: 'session' | 'call' | 'stream'
}

export class Elsewhere {
  readonly #context: ListenerContext
  readonly #replicas: Replicas

  constructor(context: ListenerContext, replicas: Replicas) {
    this.#context = context
    this.#replicas = replicas
  }

  /** Serves the request here or at the replica of its state. `id`: the session it names; `has`: whether this process has the session. */
  route(routed: RoutedRequest, body: Buffer | undefined, id: string | undefined, has: () => boolean, serve: () => void): void {
    if (id !== undefined && has() && this.#replicas.isLeased) return serve()
    const needed = id === undefined || this.#needsNoSession(body) ? undefined : id
    if (needed === undefined && this.#replicas.isForwarded(routed.request)) return serve()
    const home = needed === undefined ? this.#homeOfState(body) : this.#context.sessionIds.homeOf(needed)
    if (home === undefined || (needed !== undefined && this.#context.sessionIds.hasEnded(needed))) return serve()
    const kind = needed === undefined ? 'call' : 'session'
    void this.#send(routed, body, { home, id: needed, kind }, needed === undefined ? NOT_HERE : has, serve)
  }

  /** Forwards a message to an HTTP+SSE stream. `refuse`: the stream ended with its replica, or the id is unknown. */
  routeStream(routed: RoutedRequest, body: Buffer, id: string, refuse: () => void): void {
    const home = this.#context.sessionIds.homeOf(id)
    if (home === undefined) return refuse()
    void this.#send(routed, body, { home, id: undefined, kind: 'stream' }, NOT_HERE, refuse)
  }

  /** Whether the message is not of the session that its header names: `initialize` opens another one, and modern requests have none (B201). */
  #needsNoSession(body: Buffer | undefined): boolean {
    if (body === undefined || !(body.includes(INITIALIZE) || body.includes(META.version))) return false
    const message = this.#read(body)
    return message !== undefined && (message.method === 'initialize' || isModern(message))
  }

  #homeOfState(body: Buffer | undefined): string | undefined {
    if (body === undefined || !body.includes(REQUEST_STATE)) return undefined
    const state = this.#read(body)?.params?.text('requestState')
    return state === undefined ? undefined : this.#context.core.homeOf(state)
  }

  async #send(
    routed: RoutedRequest,
    body: Buffer | undefined,
    { home, id, kind }: Named,
    has: () => boolean,
    serve: () => void,
  ): Promise<void> {
    const { request } = routed
    const retryUntilMs = performance.now() + STORE_RETRY_MS
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        let to: Home | undefined
        const wasHere = has()
        const { looks } = this.#replicas
        try {
          if (id !== undefined && !wasHere && this.#replicas.isForwarded(request)) {
            // Without the mark of this replica, so that the sender looks for another one.
            if (!(await this.#replicas.isOwner(home, id))) return request.reply(421, { 'Trunkline-Hop': '' })
          } else if (!wasHere) to = await this.#replicas.locate(home, id)
          if (to === undefined && id !== undefined) {
            if (!has()) await this.#context.sessionIds.learn(id)
            // Checked last, since this process may have been paused until now.
            if (!(await this.#replicas.mayServe())) throw new Failure('store_unavailable', LAPSED, RETRY)
            // Released while the request waited, or taken over since the lookup: another replica has it.
            if (!has() && (wasHere || looks !== this.#replicas.looks)) continue
          }
        } catch (error) {
          // One slow answer of the store is not an outage. In an outage the next try fails at once (F-28).
          if (error instanceof StoreDown && tries + 1 < MAX_TRIES && performance.now() < retryUntilMs) continue
          throw error
        }
        if (to === undefined) return withinRequest(request, this.#context, serve)
        const end = await this.#replicas.forward(request, body, to)
        if (end === 'answered') return
        if (end === 'refused' && id !== undefined) await this.#replicas.refused(id)
        if (end === 'lost') return this.#lost(routed, body, kind)
      }
      throw new Failure('store_unavailable', 'no replica takes the request', RETRY)
    } catch (error) {
      const failure = failureOf(error)
      if (failure !== undefined) return refuseBusy(this.#context, routed, failure, body && this.#read(body))
      withinRequest(request, this.#context, () => {
        throw error
      })
    } finally {
      // Drops streams that `learn` has read and no session has used.
      if (id !== undefined) this.#context.sessionIds.restored(id)
    }
  }

  /** Answers a request whose replica ended before it answered. */
  #lost(routed: RoutedRequest, body: Buffer | undefined, kind: Named['kind']): void {
    const { request } = routed
    const batch = body && this.#readBatch(body)
    const message = body && this.#read(body)
    const requests = (batch ?? [message]).flatMap((each) => (each?.kind === 'request' ? [each] : []))
    // A GET, a DELETE or a notification may be sent again.
    if (requests.length === 0) return request.reply(503, { 'Retry-After': '1' })
    const replies = requests.map((each) => this.#lostReply(each, routed, kind))
    // The answers of a stream are not in the answers of its messages: only their status is read.
    const status = kind === 'stream' ? 502 : 200
    request.reply(status, JSON_TYPE, batch === undefined ? (replies[0] ?? []) : arrayOf(replies))
  }

  #lostReply({ id, method }: Envelope, { scope, principal }: RoutedRequest, kind: Named['kind']): Parts {
    const failure = new Failure('lost', 'the replica that had the request ended', { executed: 'unknown' })
    const failed = { id, method, ref: this.#context.nextRef() }
    if (kind !== 'call') return errorReply(failure, { ...failed, era: 'legacy' }, this.#context).message
    const encode: Failed['encode'] = (result) =>
      encodeModern(complete(result), method, resultIdentity({ scope, principal }, this.#context))
    return errorReply(failure, { ...failed, era: 'modern', encode }, this.#context).message
  }

  /** Returns the valid messages of a batch; `undefined`: not a batch. */
  #readBatch(body: Buffer): readonly Envelope[] | undefined {
    const spans = attempt(() => splitBatch(body, this.#context.options.limits))
    return spans?.flatMap((span) => this.#read(span) ?? [])
  }

  /** Returns the message; `undefined`: not a valid message, or a batch. */
  #read(body: Buffer): Envelope | undefined {
    try {
      return readHostMessage(body, this.#context.options.limits)
    } catch (error) {
      if (error instanceof EnvelopeError) return undefined
      throw error
    }
  }
}

/** Returns the failure for an expected error; `undefined`: an unexpected error. */
const failureOf = (error: unknown): Failure | undefined => {
  if (error instanceof Failure) return error
  if (error instanceof StoreDown) return new Failure('store_unavailable', error.message, { ...RETRY, limit: 'store' })
  return error instanceof ReplicaAway ? new Failure('store_unavailable', error.message, RETRY) : undefined
}

const LAPSED = 'this replica does not reach the store, and another one may have taken the session over'

const RETRY = { executed: 'no', retryable: true, retryAfterMs: 1_000 } as const
