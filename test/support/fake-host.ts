/**
 * MCP hosts that write raw messages, over any transport of either era. `everyTransport` is what suites run over; a host says
 * what a test tells it to and keeps everything it hears.
 */
import type { Identity } from '../../src/auth/identity.ts'
import { connectHttp, connectModernHttp, connectSse } from './fakes/http-hosts.ts'
import type { Journal } from './fakes/journal.ts'
import type { JsonMap, Message } from './fakes/messages.ts'
import { connectPipe } from './fakes/pipe-host.ts'
import type { TestGateway } from './gateway.ts'

export interface HostOptions {
  /** Of legacy hosts; 2025-11-25 by default. */
  readonly revision?: string
  readonly capabilities?: JsonMap
  /** In place of `/mcp`. */
  readonly path?: string
  /** Below `/mcp` or `/sse`, or for the pipe. */
  readonly toolset?: string
  /** Pipes: who is behind it, in place of everybody. */
  readonly identity?: Identity
  /** What is added to `_meta` of every request. */
  readonly meta?: JsonMap
  /** Over HTTP: the token of each request, asked for anew for each. */
  readonly token?: () => string
  /** Legacy Streamable HTTP: do not open the standalone stream. */
  readonly deaf?: boolean
  /** Legacy Streamable HTTP: resume streams that break, where they ended. What is awaited before each try. */
  readonly resumes?: (() => Promise<void>) | undefined
  /** Legacy hosts: do not say `initialized` after the handshake. */
  readonly hesitates?: boolean
  /** Legacy hosts: cancel `initialize` at once. */
  readonly cancelsOpening?: boolean
  /** Pipes: this server only. */
  readonly server?: string
}

/** What a host answers, at once or later. */
export type Answering = (params: JsonMap) => JsonMap | Promise<JsonMap>

/** A request under way. */
export interface Pending {
  readonly id: string | number
  /** The answer; rejects if its stream ends without one. */
  readonly response: Promise<Message>
  /** What came before it, on its own stream where it has one. */
  readonly messages: Journal<Message>
  /** The same, as text. */
  readonly texts: readonly string[]
  /** The answer as text. */
  readonly raw: Promise<string>
  /** Gives up in the manner of the era: `notifications/cancelled`, or closing the stream. */
  cancel(): void
  /** Settles when nothing more can come for it. */
  readonly over: Promise<void>
}

export interface CallOptions {
  readonly id?: string | number
  readonly meta?: JsonMap
  readonly headers?: Readonly<Record<string, string | undefined>>
}

export interface Host extends AsyncDisposable {
  readonly era: 'legacy' | 'modern'
  /** What came and belonged to no request of this host, or could not be told to belong. */
  readonly heard: Journal<Message>
  /** The same, as text; not answers. */
  readonly texts: string[]
  /** The answer to `initialize` or `server/discover`. */
  readonly welcome: JsonMap
  /** A request; resolves with its result, rejects with `RpcError`. */
  call(method: string, params?: JsonMap, options?: CallOptions): Promise<JsonMap>
  begin(method: string, params?: JsonMap, options?: CallOptions): Pending
  notify(method: string, params?: JsonMap): void
  /** Answers requests of the gateway, with an error where it throws `RpcError`; without it they stay unanswered. */
  answer(method: string, handle: Answering): void
  /** Answers requests of the gateway with the result that `write` makes of the request, both as they stand. */
  answerText(method: string, write: (text: string) => string): void
  /** One message as it stands; a request is tracked by the id given. */
  sendRaw(text: string, id: string | number): Pending
}

export interface TransportRow {
  readonly name: string
  readonly era: 'legacy' | 'modern'
  readonly connect: (gateway: TestGateway, options?: HostOptions) => Promise<Host>
}

export const legacyHttp: TransportRow = { name: 'legacy Streamable HTTP', era: 'legacy', connect: connectHttp }
export const legacySse: TransportRow = { name: 'HTTP+SSE', era: 'legacy', connect: connectSse }
export const modernHttp: TransportRow = { name: 'modern Streamable HTTP', era: 'modern', connect: connectModernHttp }
export const legacyPipe: TransportRow = {
  name: 'legacy stdio',
  era: 'legacy',
  connect: (gateway, options) => connectPipe('legacy', gateway, options),
}
export const modernPipe: TransportRow = {
  name: 'modern stdio',
  era: 'modern',
  connect: (gateway, options) => connectPipe('modern', gateway, options),
}

export const everyTransport: readonly TransportRow[] = [legacyHttp, legacySse, legacyPipe, modernHttp, modernPipe]
export const everyLegacyTransport = everyTransport.filter(({ era }) => era === 'legacy')
export const everyModernTransport = everyTransport.filter(({ era }) => era === 'modern')

/** What a host is offered by now. */
export const toolNames = async (host: Host): Promise<unknown[]> =>
  ((await host.call('tools/list'))['tools'] as JsonMap[]).map(({ name }) => name)
