/**
 * The URL of a Streamable HTTP server, and the headers of every request to it: the configured ones, the session of the server, and
 * the negotiated revision.
 */
import { isModernRevision } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import type { Bearer, Outgoing } from './channel.ts'
import type { HttpClient, HttpRequest } from '../http1/client/http-client.ts'
import { Reply } from '../http1/client/http-reply.ts'
import type { HeadWatcher, ReplyEvents } from '../http1/client/http-reply.ts'
import type { ReplyHead } from '../http1/client/reply-head.ts'

const ACCEPTED = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

export class McpEndpoint implements HeadWatcher {
  readonly #client: HttpClient
  readonly #url: URL
  readonly #static: Readonly<Record<string, string>>
  readonly #maxMessageBytes: number
  readonly #bearer: Bearer | undefined
  /** The credential in `#postHeaders`. */
  #postCredential: string | undefined
  #session: string | undefined
  #revision: Revision | undefined
  /** Headers of every POST: built again when the session or the revision becomes known. */
  #postHeaders: Readonly<Record<string, string>> | undefined

  /** `headers` are sent to the origin of `url` only; headers of the protocol replace them. */
  constructor(
    client: HttpClient,
    url: URL,
    headers: Readonly<Record<string, string>>,
    maxMessageBytes: number,
    bearer: Bearer | undefined,
  ) {
    this.#client = client
    this.#url = url
    this.#bearer = bearer
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
    this.#postHeaders = undefined
  }

  /**
   * Sends one message. The first legacy response with a session id is the response to `initialize`. Modern requests (they
   * have `Mcp-Method`) open no session, even if the server sends a session id.
   */
  post(message: Outgoing, events: ReplyEvents): Reply {
    const own = message.headers
    const mayOpenSession = this.#session === undefined && own?.['mcp-method'] === undefined
    const credential = this.#bearer?.value
    if (this.#postHeaders === undefined || credential !== this.#postCredential)
      this.#postHeaders = { ...this.#headers(), ...ACCEPTED }
    this.#postCredential = credential
    const headers = this.#postHeaders
    const request: HttpRequest = { method: 'POST', url: this.#url, headers, ownHeaders: own, body: message.parts }
    return this.#open(request, events, mayOpenSession ? this : undefined)
  }

  /** The head of a response that may open the session. */
  onHead({ status, headers }: ReplyHead): void {
    const session = headers['mcp-session-id']
    if (status >= 300 || typeof session !== 'string' || this.#session !== undefined) return
    this.#session = session
    this.#postHeaders = undefined
  }

  /** Opens the standalone stream, or resumes the stream of the event `lastEventId`. */
  get(lastEventId: string | undefined, events: ReplyEvents): Reply {
    const headers = { ...this.#headers(), accept: 'text/event-stream' }
    const resuming = lastEventId === undefined ? headers : { ...headers, 'last-event-id': lastEventId }
    return this.#open({ method: 'GET', url: this.#url, headers: resuming }, events)
  }

  /** Sends DELETE for the session, if there is one, and waits at most `timeoutMs`. The response is ignored. */
  endSession(timeoutMs: number): Promise<void> {
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

  #open(request: HttpRequest, events: ReplyEvents, watcher?: HeadWatcher): Reply {
    return new Reply(this.#client, request, this.#maxMessageBytes, events, watcher)
  }

  #headers(): Record<string, string> {
    const headers: Record<string, string> = { ...this.#static }
    const credential = this.#bearer?.value
    if (credential !== undefined) headers['authorization'] = credential
    if (this.#session !== undefined) headers['mcp-session-id'] = this.#session
    if (this.#revision !== undefined) headers['mcp-protocol-version'] = this.#revision
    return headers
  }
}

/** HTTP header names are case-insensitive; keys of a record are not. */
export const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> => {
  const lower: Record<string, string> = {}
  for (const name in headers) lower[name.toLowerCase()] = headers[name] ?? ''
  return lower
}
