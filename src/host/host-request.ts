/** One request of a host while it is served. The eras differ in checks, in the form of answers, and in what counts the request. */
import type { Recording } from '../observe/capture/recording.ts'
import { complete, isBridge, isEndOf } from '../rpc/call.ts'
import type { Call, Outcome, Scope } from '../rpc/call.ts'
import type { CancelSignal } from '../rpc/cancellation.ts'
import { progressTokenOf } from '../wire/message/envelope.ts'
import type { Envelope, Id } from '../wire/message/envelope.ts'
import { resultMessage } from '../wire/message/message.ts'
import { Payload } from '../wire/message/payload.ts'
import { methodRow } from '../wire/protocol/methods.ts'
import type { Era } from '../wire/protocol/revisions.ts'
import { StreamedResult } from '../wire/result/streamed-result.ts'
import type { ListenerContext } from './listener-context.ts'
import type { Exchange } from './response/exchange.ts'
import { ProgressExchange } from './response/progress.ts'
import { errorReply } from './response/respond.ts'

export abstract class HostRequest {
  readonly message: Envelope
  readonly id: Id
  readonly exchange: ProgressExchange
  readonly context: ListenerContext
  abstract readonly era: Era
  abstract readonly signal: CancelSignal
  readonly isAtBridge: boolean
  /** Shared by its log lines and its error. */
  protected readonly ref: number
  readonly #progressToken: Id | undefined
  /** `undefined`: calls are not recorded. */
  protected recording: Recording | undefined

  /** The answer is sent to `listenerExchange`. */
  constructor(message: Envelope, scope: Scope, listenerExchange: Exchange, context: ListenerContext) {
    this.message = message
    this.id = message.id ?? 'null'
    this.isAtBridge = isBridge(scope)
    this.#progressToken = progressTokenOf(message.params)
    this.exchange = new ProgressExchange(listenerExchange, this.#progressToken, message.id)
    this.context = context
    this.ref = context.nextRef()
  }

  /** Checks the request and answers it, now or when its call ends. */
  abstract serve(): void
  /** Ends what counts the request as one in flight. Does nothing the second time. */
  protected abstract release(): void
  /** Relays a notification of its call. */
  protected abstract notify(...notified: Parameters<Call['notify']>): void
  protected abstract encode(outcome: Outcome): Outcome['result']
  /** Throws for an outcome that must not be sent. */
  protected check(_outcome: Outcome): void {}
  /** Called when an aborted request has failed. */
  protected aborted(): void {}

  /** The name or URI that it is about. */
  protected get target(): string | undefined {
    const field = methodRow(this.message.method, this.era)?.field
    return field === undefined || field === 'ref' ? undefined : this.message.params?.text(field)
  }

  protected makeCall(own: Pick<Call, 'target' | 'caller' | 'logLevel' | 'unknownHeaders' | 'ask'>): Call {
    const { message, exchange } = this
    return {
      ref: this.ref,
      method: message.method,
      target: own.target,
      params: message.params ?? Payload.of({}),
      caller: own.caller,
      resume: undefined,
      signal: this.signal,
      progressToken: this.#progressToken,
      logLevel: own.logLevel,
      paramHeaders: [],
      unknownHeaders: own.unknownHeaders,
      takesStreams: exchange.takesStreams,
      responseChannel: exchange,
      notify: (method, params, isOfPeer) => this.notify(method, params, isOfPeer),
      ask: own.ask,
      record: this.recording,
    }
  }

  answer(outcome: Outcome): void {
    const { id, message, exchange, recording, signal } = this
    this.release()
    try {
      this.check(outcome)
      recording?.returned({ method: message.method, signal }, outcome)
      const result = this.encode(outcome)
      if (result instanceof StreamedResult) return exchange.stream(result, id, signal, (error) => this.fail(error))
      if (signal.aborted) return recording?.answered(undefined)
      const parts = resultMessage(id, result.parts())
      recording?.answered(parts)
      if (recording !== undefined) exchange.onTaken(() => recording.written())
      else if (isEndOf(message.method, message.params, outcome)) exchange.freeRequest()
      exchange.answer(parts, 200)
    } catch (error) {
      this.fail(error)
    }
  }

  /** Answers with an error. An aborted request gets no answer. */
  fail(error: unknown): void {
    const { context, exchange, recording, ref, signal } = this
    const { method } = this.message
    this.release()
    recording?.rejected(error, signal.aborted)
    if (signal.aborted) {
      recording?.answered(undefined)
      return this.aborted()
    }
    const encode = (result: Outcome['result']): Outcome['result'] => this.encode(complete(result))
    const failed = { id: this.id, era: this.era, method, ref, isBridge: this.isAtBridge, encode }
    const { status, message, scopes } = errorReply(error, failed, context)
    recording?.answered(message)
    context.log.debug({ ref, trace_id: exchange.traceId, method, error: String(error) }, 'request failed')
    exchange.answer(message, status, scopes)
  }
}
