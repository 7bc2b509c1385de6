/** One host on a pipe, which both eras share. No request is written before the host has sent `initialize` (BRIDGING 5.1). */
import { hopsIn } from '../../era/gateways.ts'
import { readInitialize } from '../../era/host/legacy-host.ts'
import { isModern } from '../../era/host/modern-host.ts'
import { isBridge, Refusal } from '../../rpc/call.ts'
import type { Capabilities, Scope } from '../../rpc/call.ts'
import { jsonObject } from '../../values/json-object.ts'
import { EnvelopeError, idKey, readHostMessage } from '../../wire/message/envelope.ts'
import { Cancellation } from '../../rpc/cancellation.ts'
import type { Cancel } from '../../rpc/cancellation.ts'
import type { Envelope, Id } from '../../wire/message/envelope.ts'
import { notificationMessage, PONG, refusalMessage, resultMessage } from '../../wire/message/message.ts'
import type { MessageEnds } from '../../wire/message/message-ends.ts'
import { META, PER_EXCHANGE } from '../../wire/protocol/meta.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { RELAY } from '../../wire/protocol/relay.ts'
import { latestLegacyWithin } from '../../wire/protocol/revisions.ts'
import type { LegacyRevision } from '../../wire/protocol/revisions.ts'
import { readBatch, serveBatch } from '../http/mcp/batch.ts'
import { UNREAD, withinMessage } from '../boundary.ts'
import { reportDeniedMessage } from '../denials.ts'
import type { Exchange } from '../response/exchange.ts'
import type { ListenerContext } from '../listener-context.ts'
import { announceChanges, receiveLegacy, serveLegacy } from '../legacy.ts'
import { PIPE_FACTS } from '../caller-facts.ts'
import { receiveModern, serveModern } from '../modern.ts'
import type { ModernOrigin } from '../modern.ts'
import { errorReply } from '../response/respond.ts'
import { Session } from '../session/session.ts'
import { howToBegin, initializeAnswer, whenReady } from '../handshake.ts'

/** The output side of a pipe. */
export interface Pipe {
  write(parts: Parts): void
  readonly isStalled: boolean
}

export interface StdioOptions {
  readonly principal: string
  readonly scope: Scope
  /** Called once, at the host's first modern request or its `initialize`. */
  readonly introduced: (host: IntroducedHost) => void
  /** The peer is an attached `trunkline stdio`, which continues with the next process. */
  readonly isRelay?: boolean
}

/** The host of a pipe, by its first message. */
export interface IntroducedHost {
  readonly capabilities: Capabilities
  /** `undefined`: a modern host. */
  readonly session: Session | undefined
  /** Number of gateways between the host and this one. */
  readonly hops: number
  /** Only at a bridge, for its server. */
  readonly clientInfo?: unknown
  /** Only at a bridge, of a legacy host. */
  readonly revision?: LegacyRevision
}

export class StdioListener {
  readonly #context: ListenerContext
  readonly #pipe: Pipe
  readonly #options: StdioOptions
  /** Modern requests in flight, by `idKey`. */
  readonly #modern = new Map<Id, Cancel>()
  #session: Session | undefined
  #isIntroduced = false
  /** Resolved when the relay has sent its last request. */
  readonly #holding = Promise.withResolvers<void>()

  constructor(pipe: Pipe, options: StdioOptions, context: ListenerContext) {
    this.#pipe = pipe
    this.#options = options
    this.#context = context
  }

  /** Requests that have not been answered. */
  get inFlight(): number {
    return this.#modern.size + (this.#session?.inFlight ?? 0)
  }

  /** Handles one line of the host. */
  receive(line: Buffer): void {
    withinMessage(
      this.#context,
      UNREAD,
      () => this.#line(line),
      (parts) => this.#pipe.write(parts),
    )
  }

  /** Answers a line that was dropped because of its length. */
  overflow(ends: MessageEnds): void {
    const { maxBodyBytes } = this.#context.options.limits
    this.#context.limits.hit('listen.limits.max_body')
    const text = `the message exceeds listen.limits.max_body (${maxBodyBytes} bytes)`
    this.#session?.refusedPart(ends, text)
    this.#note(new Error(text))
    this.#pipe.write(refusalMessage(ends.id, -32600, text))
  }

  /** Announces the end of the gateway to a relay. Resolves when the relay sends no further request; at once for a host. */
  drain(): Promise<void> {
    if (this.#options.isRelay !== true) return Promise.resolve()
    this.#pipe.write(notificationMessage(RELAY.draining))
    return this.#holding.promise
  }

  close(): void {
    for (const abort of this.#modern.values()) abort.abort()
    this.#session?.end()
  }

  #line(line: Buffer): void {
    let message: Envelope
    try {
      if (this.#batch(line)) return
      message = readHostMessage(line, this.#context.options.limits)
    } catch (error) {
      if (!(error instanceof EnvelopeError)) throw error
      if (error.limit !== undefined) this.#context.limits.hit(error.limit)
      this.#session?.refused(error)
      this.#note(error)
      return this.#pipe.write(refusalMessage(error.id, error.code, error.message))
    }
    const serve = (): void => (message.kind === 'request' ? this.#request(message) : this.#notification(message))
    withinMessage(this.#context, message, serve, (parts) => this.#pipe.write(parts))
  }

  /** Serves a batch. False: the line is not an array. */
  #batch(line: Buffer): boolean {
    const session = this.#session
    const elements = readBatch(line, session, this.#context.options.limits)
    if (elements === undefined || session === undefined) return false
    serveBatch(elements, session, { ...this.#exchange(), isStream: false }, this.#context, true)
    return true
  }

  #request(message: Envelope): void {
    const id = message.id ?? 'null'
    if (this.#modern.has(idKey(id)) || this.#session?.isRunning(id) === true)
      return this.#refuse(message, id, -32600, `a request with id ${id} is in progress`)
    if (isModern(message)) return this.#serveModern(message, id)
    if (message.method === 'initialize' && this.#session === undefined) return this.#initialize(message, id)
    if (this.#session !== undefined) return serveLegacy(message, this.#session, this.#exchange(), this.#context)
    const meta = message.params?.object('_meta')
    const { revisions } = this.#context.options
    if (latestLegacyWithin(revisions) === undefined || PER_EXCHANGE.some((key) => meta?.has(key) === true))
      return this.#refuse(message, id, -32602, `params._meta["${META.version}"] is missing`)
    // A host may ping before `initialize` ([2025-11-25 basic/lifecycle], B100).
    if (message.method === 'ping') return this.#pipe.write(resultMessage(id, PONG))
    this.#refuse(message, id, -32600, howToBegin(revisions))
  }

  #serveModern(message: Envelope, id: Id): void {
    const abort = new Cancellation()
    const key = idKey(id)
    const done = (): void => {
      // The host may have used the id again since it cancelled the request.
      if (this.#modern.get(key) === abort) this.#modern.delete(key)
    }
    const exchange: Exchange = {
      message: (parts) => this.#pipe.write(parts),
      answer: (parts) => {
        done()
        this.#pipe.write(parts)
      },
      end: done,
      flow: this.#pipe,
    }
    this.#modern.set(key, abort)
    const meta = message.params?.object('_meta')
    this.#introduce(jsonObject(meta?.value(META.capabilities)) ?? {}, undefined, hopsIn(meta), meta?.value(META.clientInfo))
    serveModern(message, this.#origin, exchange, abort.signal, this.#context)
  }

  get #origin(): ModernOrigin {
    const { principal, scope, isRelay } = this.#options
    const pipe = isRelay === true ? 'relay' : 'host'
    return { principal, scope, facts: PIPE_FACTS, headers: undefined, isAdmitted: false, pipe }
  }

  #initialize(message: Envelope, id: Id): void {
    const { principal, scope } = this.#options
    try {
      const introduction = readInitialize(message, this.#context.options.revisions)
      const session = new Session({ introduction, principal, scope, admission: this.#context.admission, transport: 'stdio' })
      session.setAccess(scope, PIPE_FACTS)
      this.#session = session
      session.attach({ send: (parts) => this.#pipe.write(parts), flow: this.#pipe })
      this.#introduce(session.capabilities, session, introduction.hops, introduction.clientInfo)
      whenReady(initializeAnswer(session.caller, this.#context, true), (result) => {
        this.#pipe.write(resultMessage(id, result))
        announceChanges(session, this.#context)
      })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.#note(error, message.method)
      const failed = { id, era: 'legacy', method: message.method, ref: this.#context.nextRef() } as const
      this.#pipe.write(errorReply(error, failed, this.#context).message)
    }
  }

  /** Handles a notification or response. A cancellation applies to a request of either era. */
  #notification(message: Envelope): void {
    if (message.method === RELAY.holding && this.#options.isRelay === true) return this.#holding.resolve()
    const id = message.method === 'notifications/cancelled' ? message.params?.raw('requestId')?.toString() : undefined
    const key = id === undefined ? undefined : idKey(id)
    const abort = key === undefined ? undefined : this.#modern.get(key)
    if (abort !== undefined && key !== undefined) {
      this.#modern.delete(key)
      abort.abort(message.params)
    } else if (this.#session === undefined || isModern(message)) receiveModern(message, this.#origin, this.#context)
    else receiveLegacy(message, this.#session, this.#context)
  }

  #introduce(capabilities: Capabilities, session: Session | undefined, hops: number, clientInfo: unknown): void {
    if (this.#isIntroduced) return
    this.#isIntroduced = true
    const facts = isBridge(this.#options.scope)
      ? { ...(clientInfo !== undefined && { clientInfo }), ...(session !== undefined && { revision: session.revision }) }
      : {}
    this.#options.introduced({ capabilities, session, hops, ...facts })
  }

  #exchange(): Exchange {
    const write = (parts: Parts): void => this.#pipe.write(parts)
    return { message: write, answer: write, end: () => undefined, flow: this.#pipe }
  }

  #refuse(message: Envelope, id: Id, code: number, text: string): void {
    this.#note(new Error(text), message.method)
    this.#pipe.write(refusalMessage(id, code, text))
  }

  #note(error: Error, method?: string): void {
    const { principal, scope } = this.#options
    reportDeniedMessage(
      this.#context,
      error,
      { principal, scope, ...(this.#session !== undefined && { session: this.#session }) },
      method,
    )
  }
}
