/** One message that a fake server received, and the ways to react to it. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { FakeConnection } from './connection.ts'
import { notification, request } from './messages.ts'
import type { JsonMap, Message } from './messages.ts'

/** How a carrier takes what a server says to one request. */
export interface TurnCarrier {
  /** Anything that is not the answer: on the request's own stream where it has one. */
  say(text: string): void
  /** The answer; ends the stream where there is one. */
  finish(text: string): void
}

export interface Received {
  readonly message: Message
  /** The message as it came. */
  readonly raw: string
  /** HTTP headers; empty on pipes. */
  readonly headers: IncomingHttpHeaders
  readonly connection: FakeConnection
}

export class Turn implements Received {
  readonly message: Message
  readonly raw: string
  readonly headers: IncomingHttpHeaders
  readonly connection: FakeConnection
  /** The response being written, over HTTP: a test may answer with whatever status it likes. */
  readonly response: ServerResponse | undefined
  /** Settles when the gateway has closed the exchange of this request (HTTP only). */
  readonly closed: Promise<void>
  readonly #carrier: TurnCarrier

  constructor(received: Received, carrier: TurnCarrier, response?: ServerResponse) {
    this.message = received.message
    this.raw = received.raw
    this.headers = received.headers
    this.connection = received.connection
    this.#carrier = carrier
    this.response = response
    this.closed = new Promise((resolve) => response?.once('close', () => resolve()))
  }

  get id(): string | number {
    return this.message.id ?? 0
  }
  get params(): JsonMap {
    return this.message.params ?? {}
  }

  /** Writes text as it stands, on the stream of this request. */
  say(text: string): void {
    this.#carrier.say(text)
  }

  /** Writes text as it stands, as the answer. */
  finish(text: string): void {
    this.connection.open.delete(this)
    this.#carrier.finish(text)
  }

  /** Takes a notification or an answer: nothing may be said to those but HTTP's 202. */
  finishQuietly(): void {
    if (this.response !== undefined && !this.response.headersSent) this.#carrier.finish('')
  }

  notify(method: string, params?: JsonMap): void {
    this.say(notification(method, params))
  }

  /** Progress under the token of this request. */
  progress(progress: number, more: JsonMap = {}): void {
    const { progressToken } = (this.params['_meta'] ?? {}) as JsonMap
    this.notify('notifications/progress', { progressToken, progress, ...more })
  }

  /** Asks on the stream of this request; the host's answer. */
  ask(method: string, params?: JsonMap): Promise<Message> {
    const { id, answer } = this.connection.expectAnswer()
    this.say(request(id, method, params))
    return answer
  }

  answer(result: JsonMap): void {
    const whole = this.connection.era === 'modern' ? { resultType: 'complete', ...result } : result
    this.finish(JSON.stringify({ jsonrpc: '2.0', id: this.id, result: whole }))
  }

  fail(code: number, message: string, data?: JsonMap): void {
    this.finish(JSON.stringify({ jsonrpc: '2.0', id: this.id, error: { code, message, ...(data !== undefined && { data }) } }))
  }
}
