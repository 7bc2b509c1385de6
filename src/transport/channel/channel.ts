/**
 * A message pipe to one server, over any transport. Transports know bytes and messages, but neither eras nor the names of tools. Transports
 * towards hosts have requests in place of channels (`transport/http1/server/http-server.ts`, `transport/pipe/stdio-host.ts`).
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Envelope, Id } from '../../wire/message/envelope.ts'
import type { Failure } from '../../wire/message/failure.ts'
import type { Parts } from '../../wire/message/payload.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'

/** A credential that may change while a channel is open; read for every request. */
export interface Bearer {
  /** Value of `Authorization`; `undefined`: none is known at present. */
  readonly value: string | undefined
}

/** The conditions under which a result may be streamed. */
export interface StreamTerms {
  /** The stream fails after this time without a byte. */
  readonly idleMs: number
  /** A member that must precede `content`, such as the type of the result. */
  readonly after?: string
}

/** One message to send. */
export interface Outgoing {
  readonly parts: Parts
  /** The id of a request, as used by `lost` and `abandon`. */
  readonly id?: number
  /** A response to a request of the server. Sent a second time if its connection breaks: a server ignores a duplicate response. */
  readonly isAnswer?: boolean
  /** HTTP headers that mirror the final body (`mcp-method` …), names in lower case; pipes ignore them. */
  readonly headers?: Readonly<Record<string, string>>
  /** The request is a host's call: its response is sent to that host only and not kept. */
  readonly isRelayed?: boolean
  /** A big result may be received as a `StreamedResult`. */
  readonly stream?: StreamTerms
}

export interface ChannelEvents {
  /**
   * A message was received. `during`: the id of the request on whose response stream it was received. Exact on Streamable HTTP; absent
   * on pipes, on HTTP+SSE and on the standalone GET stream.
   */
  receive(message: Envelope, during?: number): void
  /** A further part of a message on the response stream of request `id` was received. Only Streamable HTTP knows the request. */
  more?(id: number): void
  /** The request `id` will get no response. Reported once, and never after its response was received. */
  lost(id: number, failure: Failure): void
  /** A message was not valid JSON-RPC. The owner logs it, and refuses the request that it was meant to be (`requestId`). */
  unparsable(reason: string, sample: string, requestId?: Id): void
}

/** Limits that a reload changes for open channels. */
export interface ChannelLimits {
  /** One message from the server, in bytes. */
  readonly maxMessageBytes: number
  /** Bytes that wait for a server on a pipe to read them. */
  readonly maxQueuedBytes: number
}

export interface Channel {
  /** `http`: one exchange per request, ended by closing it. `pipe` and `sse`: one shared stream for all responses. */
  readonly kind: 'pipe' | 'http' | 'sse'
  /** Connects. Rejects with a `Failure` that names the reason. */
  open(events: ChannelEvents): Promise<void>
  /** Queues one message. False: backpressure. */
  send(message: Outgoing): boolean
  /** Pauses the stream of request `id`, or the shared stream. Returns how to resume it; `undefined`: there is none. */
  pause?(id: number | undefined): (() => void) | undefined
  /** Drops request `id` if the server cannot have received any of it. False: it can; absent: nothing waits in this channel. */
  withdraw?(id: number): boolean
  /** Sets the revision of the server, which all later HTTP requests name. Absent: the transport has no headers. */
  setRevision?(revision: Revision): void
  /** Changes the limits, also for open streams and for requests that wait. */
  resize?(limits: ChannelLimits): void
  /** Abandons request `id`: closes its stream, if it has one, and drops its later messages. */
  abandon(id: number): void
  /** Resolves once the channel has ended: with `undefined` after `close()`, otherwise with the reason. */
  readonly closed: Promise<Failure | undefined>
  /** Ends the channel as its transport prescribes. Resolves when all resources are released. */
  close(): Promise<void>
}

/** The reply to one POST, whatever its status. */
export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The first JSON-RPC response in the reply. */
  readonly message?: Envelope
  /** The body of a reply without a JSON-RPC response. */
  readonly body?: Buffer
}

/** The further operations of an HTTP channel, for the era detection and the legacy handshake. */
export interface HttpChannel extends Channel {
  readonly kind: 'http'
  /** Sends one POST outside of the pending requests. Rejects with a `Failure` if there is no HTTP response. */
  exchange(message: Outgoing, timeoutMs: number): Promise<HttpReply>
  /** Opens the standalone GET stream and keeps it open. Resolves with false if the server offers none. */
  openStream(): Promise<boolean>
}
