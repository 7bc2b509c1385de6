/**
 * Calls over a channel: assigns ids, keeps pending requests, matches responses and applies time-outs. The surprise: the progress token
 * of a request is its id, so one table finds both.
 */
import type { Channel, ChannelEvents, Outgoing } from '../transport/channel/channel.ts'
import { numberedId } from '../wire/message/envelope.ts'
import type { Envelope, Id } from '../wire/message/envelope.ts'
import { Failure } from '../wire/message/failure.ts'
import { IdTable } from '../wire/message/id-table.ts'
import { errorMessage, notificationMessage, PONG, refusalMessage, resultMessage } from '../wire/message/message.ts'
import { PER_EXCHANGE } from '../wire/protocol/meta.ts'
import type { Parts, Payload } from '../wire/message/payload.ts'
import { ScanError } from '../wire/json/scan-error.ts'
import type { Call } from './call.ts'
import type { CancelSignal } from './cancellation.ts'
import { PausedSources } from './paused-sources.ts'
import type { Sweepable, Sweeper } from './sweeper.ts'
import { SparseMap } from '../values/sparse-map.ts'

/** Finds the pending call, if there is exactly one. */
export interface OneCall {
  onlyCall(): Call | undefined
}

export interface ConnectionEvents {
  /**
   * A request of the server, to be answered by `respond` or `refuse`. `call`: the call that it belongs to, where that is certain;
   * `isWithin`: it was received on the response stream of a pending request.
   */
  request(message: Envelope, call: Call | undefined, isWithin: boolean): void
  /** Any notification except the progress of a pending request. */
  notification(message: Envelope, call: Call | undefined): void
  /** Backpressure of the only host that this connection serves; absent where it serves several. */
  isHostStalled?(on: OneCall): boolean
  /** An unparsable message or an unsolicited response. `error`: an unexpected error of the gateway, for the log. */
  violation(reason: string, sample: string, error?: unknown): void
}

/** A request to the server. */
export interface Request<T> {
  /** Builds the message with this id; called once. */
  build(id: number): Outgoing
  /** Converts the response, which may be a JSON-RPC error. The request rejects with what this throws. */
  read(message: Envelope): T
  /** Idle time after which the request fails; `Infinity` for streams that are normally quiet. */
  readonly idleMs: number
  readonly totalMs: number
  /** The option that sets both times; absent: `timeouts.idle` and `timeouts.total` set one each. */
  readonly limit?: string | undefined
  /** The call that this request carries. Messages about the request belong to it. */
  readonly call?: Call
  readonly signal?: CancelSignal
  /** Progress of this request. */
  progress?(message: Envelope): void
  /** Sends the cancellation to the server, where the transport needs a message for it. The exchange is closed afterwards. */
  readonly cancel: CancelRequest
}

/** `notice`: the params of the host's own cancellation, in place of the reason (B273). */
export type CancelRequest = (id: number, reason: string, notice?: Payload) => void

/** Returns the params of `notifications/cancelled`: those of the host's notification with the id at the server, else the reason. */
export const cancelledParams = (id: number | string, reason: string, notice: Payload | undefined): Parts => {
  if (notice === undefined) return [Buffer.from(`{"requestId":${id},"reason":${JSON.stringify(reason)}}`)]
  const own = notice.fresh()
  own.set('requestId', String(id))
  const meta = own.object('_meta')
  for (const key of PER_EXCHANGE) meta?.delete(key)
  return own.parts()
}

/** A request without a response yet. */
class Pending {
  readonly id: number
  readonly request: Request<unknown>
  readonly startedMs: number
  activeMs: number
  /** Above 0 the idle time-out is suspended, since the host is being asked. */
  pauses = 0
  readonly reject: (reason: unknown) => void
  readonly #resolve: (answer: unknown) => void
  readonly #onCancelled: (id: number) => void

  constructor(
    id: number,
    request: Request<unknown>,
    nowMs: number,
    resolve: (answer: unknown) => void,
    reject: (reason: unknown) => void,
    onCancelled: (id: number) => void,
  ) {
    this.id = id
    this.request = request
    this.startedMs = this.activeMs = nowMs
    this.#resolve = resolve
    this.reject = reject
    this.#onCancelled = onCancelled
  }

  answer(message: Envelope): void {
    try {
      this.#resolve(this.request.read(message))
    } catch (error) {
      this.reject(error instanceof ScanError ? unreadable(error) : error)
    }
  }

  /** Called by the `CancelSignal` when the host cancels. */
  handleEvent(): void {
    this.#onCancelled(this.id)
  }
}

/** The failure of a response that is valid JSON with an invalid value. */
const unreadable = (error: ScanError): Failure =>
  new Failure('bad_response', `the response is unusable: ${error.message}`, {}, error)

/** Limit of notifications, requests and unparsable messages per turn of the event loop. The rest is read in the next turn. */
const MAX_UNSOLICITED = 64
/** This many responses with ids that were never issued, within a minute, close the connection (T-19). */
const MAX_FORGED = 10

/** The counter of request ids, which connections may share. */
export interface RequestIds {
  /** The id of the next request. */
  next: number
  readonly siblings?: Siblings
}

/** Connections that may receive what belongs to a request of another one. `answer` and `progress` return whether one of them took it. */
export interface Siblings {
  add(connection: Connection): void
  remove(connection: Connection): void
  answer(id: number, message: Envelope): boolean
  progress(token: number, message: Envelope): boolean
}

export class Connection implements Sweepable, ChannelEvents {
  readonly channel: Channel
  /** Until `serve` is called, no request of the server can be meant for a host. It is answered all the same (B072, B100). */
  #events: ConnectionEvents = {
    request: ({ id = 'null', method }) =>
      method === 'ping' ? this.respond(id, PONG) : this.refuse(id, -32601, `Method not found: ${method}`),
    notification: () => undefined,
    violation: () => undefined,
  }
  readonly #sweeper: Sweeper
  readonly #pending = new IdTable<Pending>()
  /** Progress callbacks of answered requests that continue as tasks. */
  readonly #outliving = new SparseMap<number, (message: Envelope) => void>()
  readonly #paused: PausedSources
  /** Unsolicited messages of this turn of the event loop. */
  #unsolicited = 0
  /** Streams that are not read until the next turn, by the id of their request (`undefined`: the shared stream); with what resumes them. */
  #held = new SparseMap<number | undefined, () => void>()
  readonly #ids: RequestIds
  #ended: Failure | undefined
  /** Called after each request that has ended, while `drained` waits. */
  #onTaken: (() => void) | undefined
  #forged: number[] = []

  /** `ids`: a counter shared with other connections; absent: a counter of its own, from 1. */
  constructor(channel: Channel, sweeper: Sweeper, ids: RequestIds = { next: 1 }) {
    this.channel = channel
    this.#ids = ids
    this.#sweeper = sweeper
    this.#paused = new PausedSources(sweeper)
  }

  /** Sets the receiver of the server's requests and notifications. */
  serve(events: ConnectionEvents): void {
    this.#events = events
  }

  async open(): Promise<void> {
    this.#ids.siblings?.add(this)
    void this.channel.closed.then((failure) => this.#end(failure ?? new Failure('shutting_down', 'the connection was closed')))
    await this.channel.open(this)
  }

  get inFlight(): number {
    return this.#pending.size
  }

  /** Calls of hosts that are pending on this connection, oldest first. */
  calls(): Call[] {
    const oldestFirst = this.#pending.values().sort((a, b) => a.id - b.id)
    return oldestFirst.flatMap(({ request: { call } }) => (call === undefined ? [] : [call]))
  }

  /** Whether no pending request can have caused a request of the server. On a pipe, requests of the gateway itself can. */
  get isQuiet(): boolean {
    if (this.channel.kind === 'pipe') return this.#pending.size === 0
    for (const { request } of this.#pending.values()) if (request.call !== undefined) return false
    return true
  }

  /** The pending call, if there is exactly one: messages without attribution can only belong to it. */
  onlyCall(): Call | undefined {
    const calls = this.calls()
    return calls.length === 1 ? calls[0] : undefined
  }

  /** Resolves once no call of a host is pending. */
  async drained(): Promise<void> {
    while (this.calls().length > 0) await new Promise<void>((resolve) => (this.#onTaken = resolve))
    this.#onTaken = undefined
  }

  /** Sends a request. Resolves with what its `read` returns; rejects with a `Failure`, or with what `read` throws. */
  request<T>(request: Request<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const { signal } = request
      if (this.#ended !== undefined) return reject(notSent(this.#ended))
      if (signal?.aborted) return reject(new Failure('cancelled', 'cancelled before it was sent', { executed: 'no' }))
      const id = this.#ids.next++
      // Cast: the value is returned by `read` of this request.
      const pending = new Pending(id, request, this.#sweeper.nowMs, resolve as (answer: unknown) => void, reject, this.#cancelled)
      signal?.addEventListener('abort', pending)
      if (this.#pending.size === 0) this.#sweeper.watch(this)
      this.#pending.set(id, pending)
      try {
        this.channel.send(request.build(id))
      } catch (error) {
        const settled = this.#take(id)
        settled?.reject(error instanceof Failure ? error : new Failure('lost', 'sending failed', { executed: 'no' }, error))
      }
    })
  }

  notify(method: string, params?: Parts): void {
    this.#send(notificationMessage(method, params))
  }

  respond(id: Id, result: Parts): void {
    this.#send(resultMessage(id, result), true)
  }

  refuse(id: Id, code: number, message: string): void {
    this.#send(refusalMessage(id, code, message), true)
  }

  respondError(id: Id, error: Parts): void {
    this.#send(errorMessage(id, error), true)
  }

  /** Suspends the idle time-out of the request that carries `call`, until the returned function is called. */
  pause(call: Call): () => void {
    for (const pending of this.#pending.values()) {
      if (pending.request.call !== call) continue
      pending.pauses++
      return () => {
        pending.pauses--
        pending.activeMs = this.#sweeper.nowMs
      }
    }
    return () => undefined
  }

  /** Passes on progress under the id of an answered request (a task), until the returned function is called. */
  outlive(id: number, progress: (message: Envelope) => void): () => void {
    this.#outliving.set(id, progress)
    return () => this.#outliving.delete(id)
  }

  /** An unexpected error while a message is handled affects that message only (B271, F-31). */
  receive(message: Envelope, during?: number): void {
    try {
      this.#receive(message, during)
    } catch (error) {
      this.#events.violation('a message could not be handled', message.method, error)
      if (message.kind === 'request') this.refuse(message.id ?? 'null', -32603, 'internal error')
    }
  }

  #receive(message: Envelope, during: number | undefined): void {
    const on = during === undefined ? undefined : this.#pending.get(during)
    if (on !== undefined) on.activeMs = this.#sweeper.nowMs
    if (message.kind === 'response') return this.#settle(message)
    const call = on?.request.call
    this.#count(during)
    if (message.kind === 'request') return this.#events.request(message, call, on !== undefined)
    if (message.method !== 'notifications/progress') this.#events.notification(message, call)
    else this.#progress(message)
    this.#applyBackpressure(during, call)
  }

  /** Counts an unsolicited message. At the limit per turn of the event loop, its source is paused until the next turn (B256). */
  #count(during: number | undefined): void {
    if (this.#unsolicited++ === 0) setImmediate(this.#onTurnOver)
    if (this.#unsolicited < MAX_UNSOLICITED || this.#held.has(during) || this.#paused.has(during)) return
    const resume = this.channel.pause?.(during)
    if (resume !== undefined) this.#held.set(during, resume)
  }

  readonly #onTurnOver = (): void => {
    this.#unsolicited = 0
    if (this.#held.size === 0 || this.#ended !== undefined) return
    const held = this.#held
    this.#held = new SparseMap()
    for (const [during, resume] of held) {
      if (this.#paused.has(during)) continue
      // While the loop is late, the servers that cause it wait for the next sweep, so that no host has to be refused (F-30).
      if (this.#sweeper.isLate) this.#paused.add(during, { resume, isStalled: () => false })
      else resume()
    }
  }

  /** Pauses a source whose messages can only go to a host that does not read (F-21). */
  #applyBackpressure(during: number | undefined, call: Call | undefined): void {
    const isStalled = (): boolean =>
      during === undefined ? this.#events.isHostStalled?.(this) === true : call?.responseChannel?.flow?.isStalled === true
    if (this.#paused.has(during) || !isStalled()) return
    const resume = this.channel.pause?.(during)
    if (resume !== undefined) this.#paused.add(during, { resume, isStalled })
  }

  more(id: number): void {
    const pending = this.#pending.get(id)
    if (pending !== undefined) pending.activeMs = this.#sweeper.nowMs
  }

  lost(id: number, failure: Failure): void {
    this.#take(id)?.reject(failure)
  }

  unparsable(reason: string, sample: string, requestId?: Id): void {
    this.#events.violation(reason, sample)
    this.#count(undefined)
    if (requestId !== undefined) this.refuse(requestId, -32600, reason)
  }

  sweep(nowMs: number): void {
    for (const pending of this.#pending.values()) {
      const { idleMs, totalMs } = pending.request
      const isOver = nowMs - pending.startedMs >= totalMs
      const silent = !isOver && pending.pauses === 0 && nowMs - pending.activeMs >= idleMs
      if (!silent && !isOver) continue
      const limitMs = silent ? idleMs : totalMs
      this.#giveUp(pending.id, `no answer within ${limitMs} ms`)
      const { limit = silent ? 'timeouts.idle' : 'timeouts.total' } = pending.request
      const amount = Math.round(limitMs / 1000)
      pending.reject(new Failure('timeout', `no answer within ${limitMs} ms (${limit})`, { amount, limit }))
    }
  }

  readonly #cancelled = (id: number): void => {
    const pending = this.#pending.get(id)
    this.#giveUp(id, 'cancelled by the host', pending?.request.signal?.notice)
    pending?.reject(new Failure('cancelled', 'cancelled by the host'))
  }

  /** Sends a message that gets no response. If that fails, the failure is only reported. */
  #send(parts: Parts, isAnswer = false): void {
    if (this.#ended !== undefined) return
    try {
      this.channel.send({ parts, isAnswer })
    } catch (error) {
      this.#events.violation('a message could not be sent', String(error))
    }
  }

  #giveUp(id: number, reason: string, notice?: Payload): void {
    const pending = this.#take(id)
    // A request that the server has not received needs no cancellation.
    if (this.channel.withdraw?.(id) === true) return
    pending?.request.cancel(id, reason, notice)
    this.channel.abandon(id)
  }

  #settle(message: Envelope): void {
    const id = message.id === undefined ? NaN : Number(message.id)
    if (Number.isSafeInteger(id) && (this.answered(id, message) || this.#ids.siblings?.answer(id, message) === true)) return
    this.#events.violation('an unsolicited response', message.id ?? 'no id')
    this.#count(undefined)
    // Over HTTP+SSE some servers (supergateway) send each answer to all clients, of which other programs have ids of their own (3.22).
    if (this.channel.kind === 'sse') return
    // An error about a message whose id the server did not read, such as a notification that it does not know ([JSON-RPC 2.0, 5]).
    if (message.id === undefined) return
    // Late responses to cancelled requests are normal; ids that were never issued are not.
    if (Number.isSafeInteger(id) && id > 0 && id < this.#ids.next) return
    const nowMs = this.#sweeper.nowMs
    this.#forged = [...this.#forged.filter((at) => nowMs - at < 60_000), nowMs]
    if (this.#forged.length < MAX_FORGED) return
    this.#end(new Failure('protocol', `the server answered ${MAX_FORGED} requests that it was never sent`))
    void this.channel.close()
  }

  #progress(message: Envelope): void {
    const raw = message.params?.raw('progressToken')?.toString()
    const token = raw === undefined ? Number.NaN : Number(numberedId(raw))
    if (!Number.isSafeInteger(token) || this.progressed(token, message)) return
    const outliving = this.#outliving.get(token)
    if (outliving === undefined) this.#ids.siblings?.progress(token, message)
    else outliving(message)
  }

  /** Takes the answer to a pending request, which another connection may have received. Returns whether it is pending here. */
  answered(id: number, message: Envelope): boolean {
    const pending = this.#take(id)
    pending?.answer(message)
    return pending !== undefined
  }

  /** The same for progress. */
  progressed(token: number, message: Envelope): boolean {
    const pending = this.#pending.get(token)
    if (pending === undefined) return false
    pending.activeMs = this.#sweeper.nowMs
    pending.request.progress?.(message)
    return true
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.delete(id)
    if (pending === undefined) return undefined
    pending.request.signal?.removeEventListener('abort', pending)
    if (this.#pending.size === 0) this.#sweeper.unwatch(this)
    this.#onTaken?.()
    return pending
  }

  /** Ends the connection once; later reasons are ignored. */
  #end(failure: Failure): void {
    if (this.#ended !== undefined) return
    this.#ended = failure
    this.#ids.siblings?.remove(this)
    this.#paused.clear()
    for (const { id } of this.#pending.values()) this.#take(id)?.reject(failure)
  }
}

/** The same failure for a request of which nothing was written: the server did not execute it. */
const notSent = (failure: Failure): Failure =>
  new Failure(failure.kind, failure.message, { ...failure.facts, executed: 'no', retryable: true }, failure)
