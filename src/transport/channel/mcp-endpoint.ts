/** The URL of a Streamable HTTP server, and the state in the headers of its requests: the session and the negotiated revision. */
import { within } from '../../time/within.ts'
import { isModernRevision } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import type { Bearer, Outgoing } from './channel.ts'
import type { HttpClient, HttpRequest } from '../http1/client/http-client.ts'
import { Reply } from '../http1/client/http-reply.ts'
import type { HeadWatcher, MessageLimit, ReplyEvents } from '../http1/client/http-reply.ts'
import type { ReplyHead } from '../http1/client/reply-head.ts'
import { RequestHeaders } from './request-headers.ts'

export class McpEndpoint implements HeadWatcher {
  readonly #client: HttpClient
  readonly #url: URL
  readonly #headers: RequestHeaders
  readonly #limit: MessageLimit
  #hasSession = false
  #revision: Revision | undefined

  /** `headers` are sent to the origin of `url` only; headers of the protocol replace them. */
  constructor(
    client: HttpClient,
    url: URL,
    headers: Readonly<Record<string, string>>,
    limit: MessageLimit,
    bearer: Bearer | undefined,
  ) {
    this.#client = client
    this.#url = url
    this.#headers = new RequestHeaders(headers, bearer)
    this.#limit = limit
  }

  get hasSession(): boolean {
    return this.#hasSession
  }

  get isModern(): boolean {
    return this.#revision !== undefined && isModernRevision(this.#revision)
  }

  setRevision(revision: Revision): void {
    this.#revision = revision
    this.#headers.set('mcp-protocol-version', revision)
  }

  /**
   * Sends one message. The first legacy response with a session id is the response to `initialize`. A modern server and a modern request
   * (it has `Mcp-Method`) open no session, even if the server sends a session id.
   */
  post(message: Outgoing, events: ReplyEvents): Reply {
    const own = message.headers
    const mayOpenSession = !this.#hasSession && !this.isModern && own?.['mcp-method'] === undefined
    const headers = this.#headers.post
    const request: HttpRequest = { method: 'POST', url: this.#url, headers, ownHeaders: own, body: message.parts }
    return this.#open(request, events, mayOpenSession ? this : undefined)
  }

  /** The head of a response that may open the session. */
  onHead({ status, headers }: ReplyHead): void {
    const session = headers['mcp-session-id']
    // An empty id is none, as in the SDKs.
    if (status >= 300 || typeof session !== 'string' || session === '' || this.#hasSession) return
    this.#hasSession = true
    this.#headers.set('mcp-session-id', session)
  }

  /** Opens the standalone stream, or resumes the stream of the event `lastEventId`. */
  get(lastEventId: string | undefined, events: ReplyEvents): Reply {
    const headers = { ...this.#headers.bodiless, accept: 'text/event-stream' }
    const resuming = lastEventId === undefined ? headers : { ...headers, 'last-event-id': lastEventId }
    return this.#open({ method: 'GET', url: this.#url, headers: resuming }, events)
  }

  /** Sends DELETE for the session, if there is one, and waits at most `timeoutMs`. The response is ignored. */
  endSession(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (!this.hasSession) return Promise.resolve()
    const reply = this.#open(
      { method: 'DELETE', url: this.#url, headers: this.#headers.bodiless },
      { onEvent: () => undefined, onEnd: () => resolve(), onError: () => resolve() },
    )
    return within(timeoutMs, promise).finally(() => reply.abort())
  }

  #open(request: HttpRequest, events: ReplyEvents, watcher?: HeadWatcher): Reply {
    return new Reply(this.#client, request, this.#limit, events, watcher)
  }
}
