/** One connection of the gateway to a fake server: a process, a session, an SSE stream; of a modern HTTP server all requests. */
import { notification, request } from './messages.ts'
import type { JsonMap, Message } from './messages.ts'
import type { Turn } from './turn.ts'

/** The ways that a carrier has beside answering. */
export interface ConnectionCarrier {
  /** Says something that belongs to no request. */
  say(text: string): void
  /** Ends the connection from the server's side: the process exits, the streams break, the session is forgotten. */
  drop(): void
}

export class FakeConnection {
  readonly era: 'legacy' | 'modern'
  /** Client capabilities of `initialize`. */
  declared: JsonMap | undefined
  /** Requests that have not been answered. */
  readonly open = new Set<Turn>()
  isOpen = true
  /** Process id of a child. */
  pid: number | undefined
  /** Of a child: writes to its stderr. */
  stderr: (text: string) => void = () => undefined
  /** Of a child: writes bytes to its stdout as they are. */
  stdout: (bytes: Buffer) => void = () => undefined
  readonly closed: Promise<void>
  readonly #carrier: ConnectionCarrier
  readonly #answers = new Map<number, (answer: Message) => void>()
  #close: () => void = () => undefined
  #nextId = 0

  constructor(era: 'legacy' | 'modern', carrier: ConnectionCarrier) {
    this.era = era
    this.#carrier = carrier
    this.closed = new Promise((resolve) => (this.#close = resolve))
  }

  /** Writes text as it stands, on the way that belongs to no request. */
  say(text: string): void {
    this.#carrier.say(text)
  }

  notify(method: string, params?: JsonMap): void {
    this.say(notification(method, params))
  }

  /** Asks on the way that belongs to no request. */
  ask(method: string, params?: JsonMap): Promise<Message> {
    const { id, answer } = this.expectAnswer()
    this.say(request(id, method, params))
    return answer
  }

  /** Servers number their requests from 0, and 0 is an id. */
  expectAnswer(): { id: number; answer: Promise<Message> } {
    const id = this.#nextId++
    return { id, answer: new Promise((resolve) => this.#answers.set(id, resolve)) }
  }

  drop(): void {
    this.#carrier.drop()
  }

  /** Called by the carrier. */
  answered(message: Message): void {
    this.#answers.get(Number(message.id))?.(message)
  }

  /** Called by the carrier. */
  ended(): void {
    this.isOpen = false
    this.#close()
  }
}
