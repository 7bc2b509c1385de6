/**
 * The state of one host's conversation with a gateway behind a pipe that another process needs to continue it: the handshake, settings and
 * pending requests of the host. Reads every line, changes none (B296).
 *
 * Answers to requests of the relay itself (repeated `initialize` and subscriptions) arrive between those for the host, so `fromGateway`
 * decides for each line whether it is for the host.
 */
import { isModern, encodeModern } from '../../era/host/modern-host.ts'
import { errorReply } from '../../host/response/respond.ts'
import type { Failed } from '../../host/response/respond.ts'
import { complete } from '../../rpc/call.ts'
import { readHostMessage, readServerMessage, splitBatch } from '../../wire/message/envelope.ts'
import type { Envelope, Id } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import { notificationMessage, requestMessage } from '../../wire/message/message.ts'
import { META } from '../../wire/protocol/meta.ts'
import { CHANGED_LISTS } from '../../wire/protocol/methods.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { RELAY } from '../../wire/protocol/relay.ts'
import { NO_LIMITS } from '../../wire/json/scan.ts'
import { attempt } from '../../values/attempt.ts'

/** A pending request of the host. */
interface Pending {
  readonly message: Envelope
  /** A modern listen that was acknowledged to the host. */
  isAcknowledged: boolean
}

/** Idempotent methods: the next process gets those that are pending. */
const REPEATABLE: ReadonlySet<string> = new Set([
  'initialize',
  'server/discover',
  'ping',
  'subscriptions/listen',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'completion/complete',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
])
const LISTEN = 'subscriptions/listen'
const SILENT = {
  limits: { hit: () => undefined },
  unexpected: { report: () => undefined },
  hideJson: (json: string) => json,
  command: () => '',
}

export class Conversation {
  readonly #pending = new Map<Id, Pending>()
  /** Pending requests of the gateway to the host. */
  readonly #serverRequests = new Set<Id>()
  /** Pending requests of the relay, by id. */
  readonly #own = new Map<Id, (answer: Envelope) => void>()
  #nextOwn = 1
  /** The host's `initialize`, once it was answered with a result. */
  #initialize: Envelope | undefined
  #initialized: Envelope | undefined
  #level: Envelope | undefined
  /** By the URI as the host wrote it. */
  readonly #subscriptions = new Map<string, Envelope>()
  #refs = 0

  /** Whether no request of the host is pending. */
  get isIdle(): boolean {
    return this.#pending.size === 0
  }

  /** Whether a line for the gateway starts new work: while a gateway stops, such a line waits for the next one. */
  startsWork(line: Buffer): boolean {
    return messagesIn(line, readHost).some(({ kind, method }) => kind === 'request' || method === 'notifications/initialized')
  }

  /** Records a line that was sent to the gateway. */
  fromHost(line: Buffer): void {
    for (const message of messagesIn(line, readHost)) this.#sent(message)
  }

  /** Records a line of the gateway. `host`: it is for the host; `relay`: it is not; `draining`: the gateway is about to stop. */
  fromGateway(line: Buffer, tell: (parts: Parts) => void): 'host' | 'relay' | 'draining' {
    const messages = messagesIn(line, readServer)
    const [first] = messages
    if (messages.length === 1 && first !== undefined) {
      if (first.method === RELAY.draining) return 'draining'
      const own = first.kind === 'response' && first.id !== undefined ? this.#own.get(first.id) : undefined
      if (own !== undefined && first.id !== undefined) {
        this.#own.delete(first.id)
        own(first)
        return 'relay'
      }
      if (first.method === 'notifications/subscriptions/acknowledged' && this.#isKnownTo(first, tell)) return 'relay'
    }
    for (const message of messages) this.#received(message)
    return 'host'
  }

  /**
   * The pipe has ended: answers the host's requests that cannot be repeated with an error, and cancels those of the gateway. Requests that
   * can be repeated stay pending.
   */
  lost(tell: (parts: Parts) => void): void {
    this.#own.clear()
    for (const id of this.#serverRequests)
      tell(
        notificationMessage('notifications/cancelled', [Buffer.from(`{"requestId":${id},"reason":"the gateway was stopped"}`)]),
      )
    this.#serverRequests.clear()
    for (const [id, { message }] of this.#pending) {
      if (REPEATABLE.has(message.method)) continue
      this.#pending.delete(id)
      tell(this.#failure(message))
    }
  }

  /**
   * Continues with another process: repeats the handshake, the settings and the pending requests of the host. Resolves once further lines
   * of the host may be sent. The host is then notified that every list may have changed.
   */
  async resume(send: (parts: Parts) => void, tell: (parts: Parts) => void): Promise<void> {
    const pending = [...this.#pending.values()]
    if (this.#initialize !== undefined) {
      const answer = await this.#ask(send, this.#initialize)
      if (answer.error !== undefined) throw new Error(`the session cannot continue: ${answer.error.text('message') ?? 'refused'}`)
      if (this.#initialized !== undefined) {
        send([this.#initialized.bytes])
        if (this.#level !== undefined) void this.#ask(send, this.#level)
        for (const subscription of this.#subscriptions.values()) void this.#ask(send, subscription)
        this.#notifyChanges(answer, tell)
      }
    }
    for (const { message } of pending) send([message.bytes])
  }

  #sent(message: Envelope): void {
    const { kind, id, method, params } = message
    if (kind === 'response') {
      if (id !== undefined) this.#serverRequests.delete(id)
    } else if (kind === 'request' && id !== undefined) this.#pending.set(id, { message, isAcknowledged: false })
    else if (method === 'notifications/initialized') this.#initialized = message
    else if (method === 'notifications/cancelled') this.#cancelled(params?.raw('requestId')?.toString() ?? '')
  }

  /** `initialize` cannot be cancelled (B141). */
  #cancelled(id: Id): void {
    if (this.#pending.get(id)?.message.method !== 'initialize') this.#pending.delete(id)
  }

  /** Records the handshake and the settings of a request that was answered with a result. */
  #accepted(request: Envelope): void {
    const { method, params } = request
    const uri = params?.raw('uri')?.toString()
    if (method === 'initialize') this.#initialize = request
    else if (method === 'logging/setLevel') this.#level = request
    else if (method === 'resources/subscribe' && uri !== undefined) this.#subscriptions.set(uri, request)
    else if (method === 'resources/unsubscribe' && uri !== undefined) this.#subscriptions.delete(uri)
  }

  #received({ kind, id, method, params, result }: Envelope): void {
    if (kind === 'request' && id !== undefined) this.#serverRequests.add(id)
    else if (kind === 'response' && id !== undefined) {
      const request = this.#pending.get(id)?.message
      if (request !== undefined && result !== undefined) this.#accepted(request)
      this.#pending.delete(id)
    } else if (method === 'notifications/cancelled') this.#serverRequests.delete(params?.raw('requestId')?.toString() ?? '')
  }

  /** Whether the host already has an acknowledgement of this listen: then it is notified of possible changes instead. */
  #isKnownTo({ params }: Envelope, tell: (parts: Parts) => void): boolean {
    const id = params?.object('_meta')?.raw(META.subscriptionId)?.toString()
    const listen = id === undefined ? undefined : this.#pending.get(id)
    if (id === undefined || listen?.message.method !== LISTEN) return false
    if (!listen.isAcknowledged) {
      listen.isAcknowledged = true
      return false
    }
    const accepted = params?.object('notifications')
    for (const list of CHANGED_LISTS) {
      if (accepted?.value(`${list}ListChanged`) !== true) continue
      const changed = Payload.of({})
      changed.setIn('_meta', META.subscriptionId, id)
      tell(notificationMessage(`notifications/${list}/list_changed`, changed.parts()))
    }
    return true
  }

  #ask(send: (parts: Parts) => void, { method, params }: Envelope): Promise<Envelope> {
    const id = `"trunkline-relay-${this.#nextOwn++}"`
    return new Promise((resolve) => {
      this.#own.set(id, resolve)
      send(requestMessage(id, method, params?.parts()))
    })
  }

  /** Notifies the host that its lists and subscribed resources may have changed. */
  #notifyChanges({ result }: Envelope, tell: (parts: Parts) => void): void {
    const capabilities = result?.object('capabilities')
    for (const list of CHANGED_LISTS)
      if (capabilities?.object(list)?.value('listChanged') === true)
        tell(notificationMessage(`notifications/${list}/list_changed`))
    for (const uri of this.#subscriptions.keys())
      tell(notificationMessage('notifications/resources/updated', [Buffer.from(`{"uri":${uri}}`)]))
  }

  #failure(message: Envelope): Parts {
    const { id, method } = message
    const era = isModern(message) ? 'modern' : 'legacy'
    const encode: Failed['encode'] = (result) => (era === 'modern' ? encodeModern(complete(result), method, undefined) : result)
    return errorReply(new Failure('lost', 'the gateway ended'), { id, era, method, ref: ++this.#refs, encode }, SILENT).message
  }
}

/** The place of the line whose only request this line cancels; -1: none of them. `initialize` cannot be cancelled (B141). */
export const cancelledBy = (line: Buffer, waiting: readonly Buffer[]): number => {
  const [message, ...rest] = messagesIn(line, readHost)
  const id = message?.params?.raw('requestId')?.toString()
  if (message?.method !== 'notifications/cancelled' || id === undefined || rest.length > 0) return -1
  return waiting.findIndex((other) => {
    const [request, ...more] = messagesIn(other, readHost)
    return request?.kind === 'request' && request.id === id && request.method !== 'initialize' && more.length === 0
  })
}

/** Without limits: the gateway checks its own. */
const readHost = (bytes: Buffer): Envelope => readHostMessage(bytes, NO_LIMITS)
const readServer = (bytes: Buffer): Envelope => readServerMessage(bytes)

/** The messages of a line, without those that cannot be parsed, which its receiver reports. */
const messagesIn = (line: Buffer, read: (bytes: Buffer) => Envelope): readonly Envelope[] =>
  (attempt(() => splitBatch(line) ?? [line]) ?? []).flatMap((each) => attempt(() => read(each)) ?? [])
