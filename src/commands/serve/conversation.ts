/**
 * The conversation of one host with a gateway behind a pipe, as far as it must be known to go on with another process: what the host said
 * once and for all, what is not answered yet. Looks at every line, changes none (B296).
 *
 * The surprise: answers to what is said here on the gateway's behalf (`initialize` again, subscriptions again) come in between those to
 * the host, so `fromGateway` decides line by line what reaches the host.
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
import { Payload } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { RELAY } from '../../wire/protocol/relay.ts'
import { NO_LIMITS } from '../../wire/json/scan.ts'

/** A request of the host that is not answered. */
interface Pending {
  readonly message: Envelope
  /** A listen of the modern era that was acknowledged, and the host was told so. */
  isAcknowledged: boolean
}

/** Repeating these changes nothing, so the next process is asked what the last one did not answer. */
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
/** As a listen names them in its acknowledgement, or as capabilities do. */
const LISTS = ['tools', 'prompts', 'resources'] as const
const SILENT = {
  limits: { hit: () => undefined },
  unexpected: { report: () => undefined },
  hideJson: (json: string) => json,
  command: () => '',
}

export class Conversation {
  readonly #pending = new Map<Id, Pending>()
  /** Requests of the gateway that the host has not answered. */
  readonly #questions = new Set<Id>()
  /** Ours, by id. */
  readonly #own = new Map<Id, (answer: Envelope) => void>()
  #nextOwn = 1
  /** The host's `initialize`, once it was answered with a result. */
  #initialize: Envelope | undefined
  #initialized: Envelope | undefined
  #level: Envelope | undefined
  /** By the URI as the host wrote it. */
  readonly #subscriptions = new Map<string, Envelope>()
  #refs = 0

  /** Whether the host waits for anything. */
  get isIdle(): boolean {
    return this.#pending.size === 0
  }

  /** A line that goes to the gateway. Returns whether it asks for new work: where the gateway stops, such a line waits for the next. */
  asks(line: Buffer): boolean {
    return messagesIn(line, readHost).some(({ kind, method }) => kind === 'request' || method === 'notifications/initialized')
  }

  /** A line was sent to the gateway. */
  fromHost(line: Buffer): void {
    for (const message of messagesIn(line, readHost)) this.#sent(message)
  }

  /** A line of the gateway has come. `host`: it is for the host; `draining`: the gateway is about to stop. */
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
   * The pipe has ended: tells the host what will not be answered any more, and takes back what it was asked. What can be repeated
   * stays pending.
   */
  lost(tell: (parts: Parts) => void): void {
    this.#own.clear()
    for (const id of this.#questions)
      tell(
        notificationMessage('notifications/cancelled', [Buffer.from(`{"requestId":${id},"reason":"the gateway was stopped"}`)]),
      )
    this.#questions.clear()
    for (const [id, { message }] of this.#pending) {
      if (REPEATABLE.has(message.method)) continue
      this.#pending.delete(id)
      tell(this.#failure(message))
    }
  }

  /**
   * Goes on with another process: introduces the host, sets what it had set, and repeats what was not answered. Resolves once further
   * lines of the host may follow; the host is told then that every list may be another.
   */
  async takeUp(send: (parts: Parts) => void, tell: (parts: Parts) => void): Promise<void> {
    const pending = [...this.#pending.values()]
    if (this.#initialize !== undefined) {
      const answer = await this.#ask(send, this.#initialize)
      if (answer.error !== undefined) throw new Error(`the session cannot go on: ${answer.error.text('message') ?? 'refused'}`)
      if (this.#initialized !== undefined) {
        send([this.#initialized.bytes])
        if (this.#level !== undefined) void this.#ask(send, this.#level)
        for (const subscription of this.#subscriptions.values()) void this.#ask(send, subscription)
        this.#tellChanges(answer, tell)
      }
    }
    for (const { message } of pending) send([message.bytes])
  }

  #sent(message: Envelope): void {
    const { kind, id, method, params } = message
    if (kind === 'response') {
      if (id !== undefined) this.#questions.delete(id)
    } else if (kind === 'request' && id !== undefined) {
      this.#pending.set(id, { message, isAcknowledged: false })
      const uri = params?.raw('uri')?.toString()
      if (method === 'logging/setLevel') this.#level = message
      else if (method === 'resources/subscribe' && uri !== undefined) this.#subscriptions.set(uri, message)
      else if (method === 'resources/unsubscribe' && uri !== undefined) this.#subscriptions.delete(uri)
    } else if (method === 'notifications/initialized') this.#initialized = message
    else if (method === 'notifications/cancelled') this.#pending.delete(params?.raw('requestId')?.toString() ?? '')
  }

  #received({ kind, id, method, params, result }: Envelope): void {
    if (kind === 'request' && id !== undefined) this.#questions.add(id)
    else if (kind === 'response' && id !== undefined) {
      const request = this.#pending.get(id)?.message
      if (request?.method === 'initialize' && result !== undefined) this.#initialize = request
      this.#pending.delete(id)
    } else if (method === 'notifications/cancelled') this.#questions.delete(params?.raw('requestId')?.toString() ?? '')
  }

  /** Whether the host knows that this listen was acknowledged: then it is told what may have changed in place of it. */
  #isKnownTo({ params }: Envelope, tell: (parts: Parts) => void): boolean {
    const id = params?.object('_meta')?.raw(META.subscriptionId)?.toString()
    const listen = id === undefined ? undefined : this.#pending.get(id)
    if (id === undefined || listen?.message.method !== LISTEN) return false
    if (!listen.isAcknowledged) {
      listen.isAcknowledged = true
      return false
    }
    const accepted = params?.object('notifications')
    for (const list of LISTS) {
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

  /** Every list that may change may have changed, and so may every resource. */
  #tellChanges({ result }: Envelope, tell: (parts: Parts) => void): void {
    const capabilities = result?.object('capabilities')
    for (const list of LISTS)
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

/** Without limits: the gateway has its own, and names them. */
const readHost = (bytes: Buffer): Envelope => readHostMessage(bytes, NO_LIMITS)
const readServer = (bytes: Buffer): Envelope => readServerMessage(bytes)

/** The messages of a line; none where it cannot be parsed: its receiver reports that. */
const messagesIn = (line: Buffer, read: (bytes: Buffer) => Envelope): readonly Envelope[] => {
  try {
    return splitBatch(line)?.map(read) ?? [read(line)]
  } catch {
    return []
  }
}
