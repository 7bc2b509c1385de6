/**
 * A message pipe to one downstream server, whatever carries it. Transports know bytes and messages; they know neither eras
 * nor the names of tools. Host-side transports have exchanges instead (`transport/http1/server/http-server.ts`, `transport/pipe/stdio-host.ts`).
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

/** When a result may pass while it comes. */
export interface StreamTerms {
  readonly idleMs: number
  /** A member that must have come first: what kind of result this is. */
  readonly after?: string
}

/** One message to send. */
export interface Outgoing {
  readonly parts: Parts
  /** The id we minted, if this is a request: what `lost` and `abandon` speak of. */
  readonly id?: number
  /** HTTP headers that mirror the final body (`mcp-method` …), names in lower case; pipes ignore them. */
  readonly headers?: Readonly<Record<string, string>>
  /** A host's call: its response is sent to that host and not kept. */
  readonly isRelayed?: boolean
  /** A big result may reach its receiver while it still comes, as a `StreamedResult`; silence of so long breaks it. */
  readonly stream?: StreamTerms
}

export interface ChannelEvents {
  /**
   * A message came. `during` is the id of our request on whose response stream it came: exact on Streamable HTTP, absent on
   * pipes, on HTTP+SSE and on the standalone GET stream.
   */
  receive(message: Envelope, during?: number): void
  /** The request `id` will not be answered; exactly once, and never after its response was received. */
  lost(id: number, failure: Failure): void
  /** A message that was no JSON-RPC; counted and logged by the owner, never fatal by itself. */
  unparsable(reason: string, sample: string): void
}

export interface Channel {
  /** `http`: one exchange per request, ended by closing it. `pipe` and `sse`: one shared way back. */
  readonly kind: 'pipe' | 'http' | 'sse'
  /** Connects. Rejects with a `Failure` that names the reason. */
  open(events: ChannelEvents): Promise<void>
  /** Queues one message. False: the peer is slow, its queue is over the mark. */
  send(message: Outgoing): boolean
  /**
   * Reads no more of what the server says: on the response stream of request `id`, or without one on the shared way back. What comes
   * back goes on reading; nothing comes back where there is no such stream.
   */
  pause?(id: number | undefined): (() => void) | undefined
  /** Gives up the exchange of request `id`: closes its stream where it has one; later messages of it are dropped. */
  abandon(id: number): void
  /** Settles once, when the channel has ended for whatever reason: `undefined` after `close()`, else the reason. */
  readonly closed: Promise<Failure | undefined>
  /** Ends the channel in the orderly way of its transport; resolves when nothing of it is left. */
  close(): Promise<void>
}

/** What an HTTP channel can do beyond sending messages; the era detection and the legacy handshake need it. */
export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The JSON-RPC response it carried, if it carried one. */
  readonly message?: Envelope | undefined
  /** The body of an answer without one. */
  readonly body?: Buffer
}
export interface HttpChannel extends Channel {
  readonly kind: 'http'
  /** One POST looked at as HTTP, apart from everything pending. Rejects with `Failure` for what is no HTTP answer at all. */
  exchange(message: Outgoing, timeoutMs: number): Promise<HttpReply>
  /** The legacy handshake is done: `MCP-Protocol-Version` from now on. */
  setRevision(revision: string): void
  /** Opens the standalone GET stream and keeps it open; false: the server offers none. */
  openStream(): Promise<boolean>
}
