/**
 * The one URL of a Streamable HTTP server, and the headers that every request to it carries: the configured ones, the session
 * that the server opened, the revision that the handshake agreed on.
 */
import { isModernRevision } from '../wire/revisions.ts'
import type { Revision } from '../wire/revisions.ts'
import type { Outgoing } from './channel.ts'
import type { HttpClient, HttpRequest } from './http-client.ts'
import { Reply } from './http-reply.ts'
import type { ReplyEvents } from './http-reply.ts'

export class McpEndpoint {
  readonly #client: HttpClient
  readonly #url: URL
  readonly #static: Readonly<Record<string, string>>
  readonly #maxMessageBytes: number
  #session: string | undefined
  #revision: Revision | undefined

  /** `headers` go to the origin of `url` and nowhere else; the protocol's own headers win over them. */
  constructor(client: HttpClient, url: URL, headers: Readonly<Record<string, string>>, maxMessageBytes: number) {
    this.#client = client
    this.#url = url
    this.#static = lowerCased(headers)
    this.#maxMessageBytes = maxMessageBytes
  }

  get hasSession(): boolean {
    return this.#session !== undefined
  }

  get isModern(): boolean {
    return this.#revision !== undefined && isModernRevision(this.#revision)
  }

  setRevision(revision: Revision): void {
    this.#revision = revision
  }

  /**
   * Sends one message. The first legacy answer that names a session is the one to `initialize`; modern requests (they have
   * `Mcp-Method`) open none, whatever the server says.
   */
  post(message: Outgoing, events: ReplyEvents): Reply {
    const more = message.headers === undefined ? undefined : lowerCased(message.headers)
    const mayOpenSession = this.#session === undefined && more?.['mcp-method'] === undefined
    const accepted = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
    return this.#open(
      { method: 'POST', url: this.#url, headers: { ...this.#headers(), ...accepted, ...more }, body: message.parts },
      {
        ...events,
        onHead: (head) => {
          const session = head.headers['mcp-session-id']
          if (mayOpenSession && head.status < 300 && typeof session === 'string') this.#session ??= session
          events.onHead?.(head)
        },
      },
    )
  }

  /** Opens the standalone stream, or resumes the one on which the event `lastEventId` came. */
  get(lastEventId: string | undefined, events: ReplyEvents): Reply {
    const headers = { ...this.#headers(), accept: 'text/event-stream' }
    const resuming = lastEventId === undefined ? headers : { ...headers, 'last-event-id': lastEventId }
    return this.#open({ method: 'GET', url: this.#url, headers: resuming }, events)
  }

  /** Ends the session, if there is one, within `timeoutMs`; whatever the server says to that is fine. */
  leave(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (!this.hasSession) return Promise.resolve()
    const reply = this.#open(
      { method: 'DELETE', url: this.#url, headers: this.#headers() },
      { onEvent: () => undefined, onEnd: () => resolve(), onError: () => resolve() },
    )
    const timer = setTimeout(resolve, timeoutMs)
    return promise.finally(() => {
      clearTimeout(timer)
      reply.abort()
    })
  }

  #open(request: HttpRequest, events: ReplyEvents): Reply {
    return new Reply(this.#client, request, this.#maxMessageBytes, events)
  }

  #headers(): Record<string, string> {
    const headers: Record<string, string> = { ...this.#static }
    if (this.#session !== undefined) headers['mcp-session-id'] = this.#session
    if (this.#revision !== undefined) headers['mcp-protocol-version'] = this.#revision
    return headers
  }
}

/** Header names are the same in any case; a record's keys are not. */
export const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
