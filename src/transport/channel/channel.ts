/**
 * A message pipe to one downstream server over any transport. Transports know bytes and messages; they know neither eras nor the
 * names of tools. Host-side transports have exchanges instead (`transport/http1/server/http-server.ts`, `transport/pipe/stdio-host.ts`).
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Envelope } from '../../wire/message/envelope.ts'
import type { Failure } from '../../wire/message/failure.ts'
import type { Parts } from '../../wire/message/payload.ts'

/** A credential that may change while a channel is open; read for every request. */
export interface Bearer {
  /** Value of `Authorization`; `undefined`: there is none to send now. */
  readonly value: string | undefined
}

/** When a result may be relayed while it is received. */
export interface StreamTerms {
  readonly idleMs: number
  /** A member that must come before `content`: the type of the result. */
  readonly after?: string
}

/** One message to send. */
export interface Outgoing {
  readonly parts: Parts
  /** The id of a request, as in `lost` and `abandon`. */
  readonly id?: number
  /** An answer to a request of the server. Sent a second time if its connection breaks: a server ignores an answer that it has. */
  readonly isAnswer?: boolean
  /** HTTP headers that mirror the final body (`mcp-method` …), names in lower case; pipes ignore them. */
  readonly headers?: Readonly<Record<string, string>>
  /** A host's call: its response is sent to that host and not kept. */
  readonly isRelayed?: boolean
  /** A big result may be relayed while it is received, as a `StreamedResult`; it fails after this idle time. */
  readonly stream?: StreamTerms
}

export interface ChannelEvents {
  /**
   * A message was received. `during`: the id of our request on whose response stream it was received; exact on Streamable HTTP,
   * absent on pipes, on HTTP+SSE and on the standalone GET stream.
   */
  receive(message: Envelope, during?: number): void
  /** The request `id` will not be answered; exactly once, and never after its response was received. */
  lost(id: number, failure: Failure): void
  /** A message that is no JSON-RPC. The owner counts and logs it; it does not end the channel. */
  unparsable(reason: string, sample: string): void
}

export interface Channel {
  /** `http`: one exchange per request, ended by closing it. `pipe` and `sse`: one shared stream for all responses. */
  readonly kind: 'pipe' | 'http' | 'sse'
  /** Connects. Rejects with a `Failure` that names the reason. */
  open(events: ChannelEvents): Promise<void>
  /** Queues one message. False: backpressure. */
  send(message: Outgoing): boolean
  /**
   * Pauses the response stream of request `id`, or without `id` the shared stream. Returns a function that resumes it, or `undefined`
   * where there is no such stream.
   */
  pause?(id: number | undefined): (() => void) | undefined
  /** Gives up the exchange of request `id`: closes its stream where it has one; later messages of it are dropped. */
  abandon(id: number): void
  /** Settles once, when the channel has ended: `undefined` after `close()`, else the reason. */
  readonly closed: Promise<Failure | undefined>
  /** Ends the channel in the orderly way of its transport; resolves when all its resources are released. */
  close(): Promise<void>
}

/** Operations of an HTTP channel beside messages, for the era detection and the legacy handshake. */
export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The JSON-RPC response in the reply, if there is one. */
  readonly message?: Envelope | undefined
  /** The body of an answer without one. */
  readonly body?: Buffer
}
export interface HttpChannel extends Channel {
  readonly kind: 'http'
  /** One POST with its HTTP status, apart from pending requests. Rejects with `Failure` if there is no HTTP response. */
  exchange(message: Outgoing, timeoutMs: number): Promise<HttpReply>
  /** The legacy handshake is done: `MCP-Protocol-Version` from now on. */
  setRevision(revision: string): void
  /** Opens the standalone GET stream and keeps it open; false: the server offers none. */
  openStream(): Promise<boolean>
}
