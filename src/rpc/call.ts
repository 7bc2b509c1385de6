/**
 * One request on its way through, in the one language the inside speaks: self-contained, and ended by one `Outcome`. That is
 * the modern model; the legacy era exists only in `era/`.
 */
import type { Id } from '../wire/message/envelope.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { JsonObject, Payload } from '../wire/message/payload.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'
import type { CancelSignal } from './cancellation.ts'
import type { CallRecord } from './record.ts'

/** Client capabilities as parsed JSON; unknown members are kept. */
export type Capabilities = Readonly<Record<string, unknown>>

/** Which part of the catalog a caller sees: by path and credential alone, never by what a host says of itself (DECISIONS 5). */
export interface Scope {
  /** One server alone, unprefixed: `/servers/<key>/mcp`. */
  readonly server: string | undefined
  /** It is the merged endpoint: no other server is configured, and names have no prefix. */
  readonly isMerged?: true
  /** The toolset that was chosen (of a server alone: all that could be, with blanks between); absent: none, nor by a credential. */
  readonly toolset?: string
  /** The OAuth scopes of its credential, sorted, with spaces between; absent: it is not limited by scopes. */
  readonly granted?: string
}

/** What a path, or an option of the command line, names: one server alone, or a toolset, or neither. */
export interface EndpointPath {
  readonly server?: string | undefined
  readonly toolset?: string | undefined
}

export const EVERYTHING: Scope = { server: undefined }

/**
 * Whether the scope is a bridge: one server alone, whose conversation with the host is what it would be directly, but for transport
 * and era (BRIDGING 3.21; B277).
 */
export const isBridge = ({ server }: Scope): boolean => server !== undefined

/** Whether both came to the same part; a session is of one. What of it a credential may see can change within a session. */
export const isSameEndpoint = (a: Scope, b: Scope): boolean => endpointServer(a) === endpointServer(b) && a.toolset === b.toolset

/** The server that the endpoint names; the merged one names none, though it may be a bridge while there is but one. */
export const endpointServer = ({ server, isMerged }: Scope): string | undefined => (isMerged === true ? undefined : server)

/** Everybody without a credential: limits of one principal do not bind them (DECISIONS 7). */
export const SHARED_PRINCIPAL = 'local'

/** Who is calling, as far as it matters inside. */
export interface Caller {
  readonly principal: string
  readonly revision: Revision
  readonly capabilities: Capabilities
  readonly scope: Scope
  /** The legacy session; modern hosts have none. */
  readonly session: HostSession | undefined
  /** What the host says it is, as parsed JSON; only at a bridge, where its server is told so. */
  readonly clientInfo?: unknown
}

/** What a legacy host told us once, as far as the other side may use it. */
export interface HostSession {
  readonly id: string
  readonly scope: Scope
  /** Says something that belongs to no request: list changes, updates, unattributed log messages. */
  notify(method: string, params: JsonObject | undefined): void
  /** Asks what belongs to no request of its own (`roots/list` right after a link was opened). */
  ask(question: Question): Promise<Answer>
  /** A resource it subscribed to has changed. */
  updated(params: Payload): void
  /** What the host asked to hear by `logging/setLevel`; `undefined` before that. */
  readonly logLevel: LogLevel | undefined
  /** The host takes nothing of what it is told. */
  readonly isStalled?: boolean
  /** Runs once when the session ends; at once if it has. */
  onEnd(callback: () => void): void
}

/** A request of a server to its host, and the host's answer: a result, or the error object as it came. */
export interface Question {
  readonly method: string
  readonly params: Payload | undefined
  /** Calls back if the server takes the question back before it is answered; `notice`: the params of its notification. */
  readonly onWithdrawn?: (callback: (notice?: Payload) => void) => void
  /** Tells the server how far a legacy host is with its answer; absent: the server gave no progress token (B274). */
  readonly progress?: (params: Payload) => void
  /** Nothing of ours is under way on its connection: the server may ask all its connections the same, and take the first answer (B295). */
  readonly isUnsolicited?: true
  /** Where it may be of several calls of one session: those that are still under way. It is not needed any more once there is none. */
  readonly candidates?: () => readonly Call[]
}
export type Answer = { readonly result: Payload } | { readonly error: Payload }

/** One text for each endpoint: what is sealed at one is refused at another. */
export const endpointKey = ({ server = '', toolset = '' }: Scope): string => `${server}\n${toolset}`

/** Part of the gateway that made a state of its own: the question to sign in, to visit URLs, to confirm a call. */
export type StateMaker = 'sign-in' | 'visit' | 'confirmation'

/** What a retried call brings: the opened state of the round, and the answers as they came. */
export interface Resume {
  readonly state: string | undefined
  /** Absent: the state is the server's own, whatever its text looks like. */
  readonly maker?: StateMaker | undefined
  readonly responses: Payload | undefined
}

/** The way a call came and its answer goes. */
export interface CallWay {
  readonly flow?: Flow | undefined
  /** JSON text of the id that the host gave its request. */
  readonly hostId?: Id | undefined
  /** `pipe`, or the transport protocol of HTTP. */
  readonly transport?: 'pipe' | 'tcp' | undefined
  /** The trace context of the HTTP request that brought it, as it came (W3C `traceparent`). */
  readonly ambient?: string | undefined
  /** Set once its trace is known: for the log lines about it. */
  traceId?: string | undefined
}

/** A way to a host, that may take less than it is given. */
export interface Flow {
  readonly isStalled: boolean
}

export interface Call {
  /** Our own number: ties together in log and errors what belongs to one host request. */
  readonly ref: number
  readonly method: string
  /** Tool or prompt name, URI or task id: as the host said it, the original once routed. */
  readonly target: string | undefined
  readonly params: Payload
  readonly caller: Caller
  readonly resume: Resume | undefined
  /** The host gave up. */
  readonly signal: CancelSignal
  /** JSON text of the host's progress token. */
  readonly progressToken: Id | undefined
  /** The level a modern request asks for; of legacy sessions the router knows it. */
  readonly logLevel: LogLevel | undefined
  /** Parameters to mirror into headers, once routed. */
  readonly paramHeaders: readonly ParamHeader[]
  /** `Mcp-Param-*` headers of the host that we do not know and must forward. */
  readonly unknownHeaders: Readonly<Record<string, string>>
  /** A big result may be a `StreamedResult`: the host's way takes it as it comes. */
  readonly takesStreams?: boolean
  /**
   * Host and server are of one era at a bridge, and no other principal uses the link: params, questions, results and ids pass as they
   * came (B277).
   */
  readonly isAsItCame?: boolean
  /** The longest it may take, where that is not what its server's options say. */
  readonly totalMs?: number | undefined
  /** Its way back: while that is stalled, what speaks to this caller alone need not be read (F-21). */
  readonly way?: CallWay
  /**
   * Progress and log messages, to this caller only. The params keep the server's own progress token. `isOfPeer`: from a server of the
   * caller's era at a bridge, so that the level which the caller asked for has been applied by the server, or not.
   */
  notify(method: string, params: Payload, isOfPeer?: boolean): void
  /** A person has agreed to it (`toolsets.<name>.confirm`); set by the layer that asks, and by nothing else. */
  readonly isConfirmed?: true
  /** Asks the host in the middle of this request, in the way of its era. Never rejects for a refusal: that is an answer. */
  readonly ask: ((question: Question) => Promise<Answer>) | undefined
  /** Where an audit log is kept or calls are captured: what those whom it passes write down of it. */
  readonly record?: CallRecord | undefined
  /** Keys of the host's `_meta` that its server is not told. */
  readonly withheld?: readonly string[] | undefined
  /** Where traces are kept: the span that what it becomes is part of. */
  readonly trace?: TracePoint
}

export type Outcome =
  /** `type`: the `resultType` of an extension that the host declared, in place of `complete`. */
  | { readonly kind: 'complete'; readonly result: JsonObject; readonly type?: string }
  | InputRequired
  /** The server made a task of it: `CreateTaskResult` of the extension ([ext tasks, Task Creation]). */
  | { readonly kind: 'task'; readonly result: Payload }

/** The server of a request, as a span names it. */
export interface TracedServer {
  /** Key in the configuration. */
  readonly key: string
  /** `undefined`: it is spoken to over pipes. */
  readonly url: URL | undefined
  readonly revision: string
}

/** Where a call stands in its trace: what is needed below of it. Absent unless traces are configured (`telemetry.otlp`). */
export interface TracePoint {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits: the span whose children are what is sent on from here. */
  readonly spanId: string
  /**
   * Makes this point the parent of what the receiver of `meta` does: W3C trace context under the keys of SEP-414. `id`: under which the
   * request leaves.
   */
  write(meta: JsonObject, id: number): void
  /** Sends the call to a server, as a span of its own. */
  sending(server: TracedServer, send: Handler): Handler
}

/** `unknownHeaders` of a call that has none. */
export const NO_HEADERS: Call['unknownHeaders'] = {}

export type Handler = (call: Call) => Promise<Outcome>
export type Layer = (inner: Handler) => Handler

export interface InputRequired {
  readonly kind: 'input_required'
  readonly result: Payload
  readonly state: string | undefined
  /** Absent: the state is the server's own. */
  readonly maker?: StateMaker | undefined
  /** Requests by key that this host's revision has no words for, and the answers in its place. */
  readonly refused?: ReadonlyMap<string, Answer>
  /** How long the call may take in all, its rounds together. */
  readonly totalMs?: number
}

/** The layers in the order in which a call meets them, around `innermost`. */
export const stack = (layers: readonly Layer[], innermost: Handler): Handler =>
  layers.reduceRight((inner, layer) => layer(inner), innermost)

export const complete = (result: JsonObject): Outcome => ({ kind: 'complete', result })

/** A server's own JSON-RPC error; relayed as it is unless BRIDGING 7.3 says otherwise. */
export class ServerError extends Error {
  readonly code: number
  readonly error: Payload
  /** Key of the server, once that is known. */
  readonly server: string | undefined
  /** The era in which the server said it, once that is known. */
  readonly era: Era | undefined
  /** The HTTP status that it came with, or would have; `undefined`: nothing tells. */
  readonly status: number | undefined
  constructor(code: number, message: string, error: Payload, facts: ServerErrorFacts = {}) {
    super(message)
    this.name = 'ServerError'
    this.code = code
    this.error = error
    this.server = facts.server
    this.era = facts.era
    this.status = facts.status
  }

  /** The same error, with what is known of its sender. */
  at(facts: ServerErrorFacts): ServerError {
    return new ServerError(this.code, this.message, this.error, { status: this.status, ...facts })
  }
}

export interface ServerErrorFacts {
  readonly server?: string | undefined
  readonly era?: Era | undefined
  readonly status?: number | undefined
}

/** The host's own mistake, found by us: becomes a JSON-RPC error, and an HTTP status for modern hosts. */
export class Refusal extends Error {
  readonly code: number
  readonly data: unknown
  /** HTTP status where the answer has not begun; 200: in-band. */
  readonly status: number
  /** OAuth scopes that the caller would need, all of them (BRIDGING 6.1). */
  readonly scopes: readonly string[] | undefined
  constructor(code: number, message: string, options: { data?: unknown; status?: number; scopes?: readonly string[] } = {}) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.data = options.data
    this.status = options.status ?? 200
    this.scopes = options.scopes
  }
}
