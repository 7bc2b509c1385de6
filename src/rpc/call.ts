/**
 * One request inside the gateway: self-contained, and ended by one `Outcome`. That is the modern model. The legacy era exists only
 * in `era/`.
 */
import type { Id } from '../wire/message/envelope.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import { Payload } from '../wire/message/payload.ts'
import type { JsonObject } from '../wire/message/payload.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'
import type { CancelSignal } from './cancellation.ts'
import type { CallRecord } from './record.ts'

/** Client capabilities as parsed JSON; unknown members are kept. */
export type Capabilities = Readonly<Record<string, unknown>>

/** The part of the catalog that a caller sees. Path and credential alone decide it, not `clientInfo` of the host (DECISIONS 5). */
export interface Scope {
  /** One server alone, unprefixed: `/servers/<key>/mcp`. */
  readonly server: string | undefined
  /** The merged endpoint with a single configured server: names have no prefix. */
  readonly isMerged?: true
  /** The chosen toolset; for a single server all toolsets of the caller, separated by spaces. Absent: neither path nor credential names one. */
  readonly toolset?: string
  /** The OAuth scopes of the credential, sorted, separated by spaces. Absent: the caller is not limited by scopes. */
  readonly granted?: string
}

/** What a path or a command-line option selects: one server, a toolset, or neither. */
export interface EndpointPath {
  readonly server?: string | undefined
  readonly toolset?: string | undefined
}

export const EVERYTHING: Scope = { server: undefined }

/**
 * Whether the scope is a bridge: one server alone. Its messages with the host are those of a direct connection, apart from transport
 * and era (BRIDGING 3.21; B277).
 */
export const isBridge = ({ server }: Scope): boolean => server !== undefined

/** Whether both have the same server and toolset. A session keeps both; the granted scopes may change within a session. */
export const isSameEndpoint = (a: Scope, b: Scope): boolean => endpointServer(a) === endpointServer(b) && a.toolset === b.toolset

/** The server that the endpoint names; the merged endpoint names none, also while it is a bridge to the only server. */
export const endpointServer = ({ server, isMerged }: Scope): string | undefined => (isMerged === true ? undefined : server)

/** The principal of all unauthenticated callers. Limits per principal do not apply to it (DECISIONS 7). */
export const SHARED_PRINCIPAL = 'local'

/** The caller of a request. */
export interface Caller {
  readonly principal: string
  readonly revision: Revision
  readonly capabilities: Capabilities
  readonly scope: Scope
  /** The legacy session; modern hosts have none. */
  readonly session: HostSession | undefined
  /** `clientInfo` of the host, as parsed JSON. Present only at a bridge, which relays it to its server. */
  readonly clientInfo?: unknown
  /** Present while a policy asks for it; absent also of calls of the operator. */
  readonly facts?: CallerFacts | undefined
}

/** What is known of a caller beside its principal. */
export interface CallerFacts {
  /** Of its token, or what introspection answered; of other credentials none. */
  readonly claims: Readonly<Record<string, unknown>>
  readonly scopes: readonly string[]
  /** Address of the peer of its connection; empty on a pipe. */
  readonly address: string
  /** Self-reported name of the host (`clientInfo.name`). */
  readonly host: string
}

/** The session of a legacy host, as far as servers may use it. */
export interface HostSession {
  readonly id: string
  readonly scope: Scope
  /** Sends a notification that belongs to no request: list changes, updates, unattributed log messages. */
  notify(method: string, params: JsonObject | undefined): void
  /** Sends a request that belongs to no request of the host (`roots/list` right after a link was opened). */
  ask(question: Question): Promise<Answer>
  /** A resource it subscribed to has changed. */
  updated(params: Payload): void
  /** The level of `logging/setLevel`; `undefined` before that. */
  readonly logLevel: LogLevel | undefined
  /** The host does not read (backpressure). */
  readonly isStalled?: boolean
  /** Calls back once when the session ends; at once if it has ended. Returns a function that removes the callback. */
  onEnd(callback: () => void): () => void
}

/** A request of a server to its host, and the host's answer: a result, or the received error object. */
export interface Question {
  readonly method: string
  readonly params: Payload | undefined
  /** Calls back if the server cancels the question before it is answered; `notice`: the params of its notification. */
  readonly onWithdrawn?: (callback: (notice?: Payload) => void) => void
  /** Relays the progress of a legacy host's answer to the server; absent: the server gave no progress token (B274). */
  readonly progress?: (params: Payload) => void
  /** No request is pending on its connection: the server may send the same question on all connections and use the first answer (B295). */
  readonly isUnsolicited?: true
  /** Where it may be of several calls of one session: those that are still under way. It is not needed any more once there is none. */
  readonly candidates?: () => readonly Call[]
}
export type Answer = { readonly result: Payload } | { readonly error: Payload }

/** A text for each endpoint. A state that was sealed at one endpoint is refused at another. */
export const endpointKey = ({ server = '', toolset = '' }: Scope): string => `${server}\n${toolset}`

/** The part of the gateway that made a state of its own: the question to sign in, to visit URLs, to confirm a call. */
export type StateMaker = 'sign-in' | 'visit' | 'confirmation'

/** What a retried call carries: the opened state of the round, and the received answers. */
export interface Resume {
  readonly state: string | undefined
  /** Absent: the state is the server's own, for any text. */
  readonly maker?: StateMaker | undefined
  readonly responses: Payload | undefined
}

/** The response channel of a call. */
export interface ResponseChannel {
  readonly flow?: Flow | undefined
  /** JSON text of the id that the host gave its request. */
  readonly hostId?: Id | undefined
  /** `pipe`, or the transport protocol of HTTP. */
  readonly transport?: 'pipe' | 'tcp' | undefined
  /** The received trace context of the HTTP request (W3C `traceparent`). */
  readonly ambient?: string | undefined
  /** Set once its trace is known: for the log lines about it. */
  traceId?: string | undefined
}

/** A stream to a host that may exert backpressure. */
export interface Flow {
  readonly isStalled: boolean
}

export interface Call {
  /** Number of the host's request in the log and in errors. */
  readonly ref: number
  readonly method: string
  /** Tool or prompt name, URI or task id: the exposed one, after routing the original one. */
  readonly target: string | undefined
  readonly params: Payload
  readonly caller: Caller
  readonly resume: Resume | undefined
  /** Aborted when the host cancels. */
  readonly signal: CancelSignal
  /** JSON text of the host's progress token. */
  readonly progressToken: Id | undefined
  /** The log level of a modern request; the router knows that of a legacy session. */
  readonly logLevel: LogLevel | undefined
  /** Parameters to mirror into headers, once routed. */
  readonly paramHeaders: readonly ParamHeader[]
  /** Unknown `Mcp-Param-*` headers of the host, which must be forwarded. */
  readonly unknownHeaders: Readonly<Record<string, string>>
  /** A big result may be a `StreamedResult`: the response channel can relay it while it is received. */
  readonly takesStreams?: boolean
  /**
   * Host and server are of one era at a bridge, and no other principal uses the link: params, questions, results and ids are relayed
   * unchanged (B277).
   */
  readonly isAsItCame?: boolean
  /** The maximum time of the call, where it differs from the server's options. */
  readonly totalMs?: number | undefined
  /** The response channel. Under backpressure, sources that send to this caller alone are not read (F-21). */
  readonly responseChannel?: ResponseChannel
  /**
   * Progress and log messages, to this caller only. The params keep the server's own progress token. `isOfPeer`: from a server of the
   * caller's era at a bridge, so that the level which the caller asked for has been applied by the server, or not.
   */
  notify(method: string, params: Payload, isOfPeer?: boolean): void
  /** A person has confirmed the call (`toolsets.<name>.confirm`); only the confirming layer sets it. */
  readonly isConfirmed?: true
  /** Asks the host during this request, in the form of its era. A refusal is an answer, not a rejection. */
  readonly ask: ((question: Question) => Promise<Answer>) | undefined
  /** Where an audit log is kept or calls are captured: what those whom it passes write down of it. */
  readonly record?: CallRecord | undefined
  /** Keys of the host's `_meta` that are not relayed to the server. */
  readonly withheld?: readonly string[] | undefined
  /** Where traces are kept: the span that what it becomes is part of. */
  readonly trace?: TracePoint
}

export type Outcome =
  /**
   * `type`: the `resultType` of an extension that the host declared, in place of `complete`. `era`: of a server that answered as a modern
   * one, which may be another than it was listed as (B268).
   */
  | { readonly kind: 'complete'; readonly result: JsonObject; readonly type?: string; readonly era?: 'modern' }
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
  /** Requests, by key, that this host's revision cannot express, and the answers in its place. */
  readonly refused?: ReadonlyMap<string, Answer>
  /** Maximum time of the call, all rounds together. */
  readonly totalMs?: number
}

/** The layers in the order in which a call meets them, around `innermost`. */
export const stack = (layers: readonly Layer[], innermost: Handler): Handler =>
  layers.reduceRight((inner, layer) => layer(inner), innermost)

/** Whether a request ended with this outcome so that nothing reads its params again: a call of a tool that no task goes on for. */
export const isEndOf = (method: string, params: Payload | undefined, { kind }: Outcome): boolean =>
  method === 'tools/call' && kind === 'complete' && params?.isAbsent('task') === true

export const complete = (result: JsonObject): Outcome => ({ kind: 'complete', result })

/** The result of a tool with one text block; `isError`: the tool failed. */
export const toolText = (text: string, isError: boolean): Outcome =>
  complete(Payload.of({ content: [{ type: 'text', text }], ...(isError && { isError }) }))

/** A server's own JSON-RPC error; relayed unchanged except in the cases of BRIDGING 7.3. */
export class ServerError extends Error {
  readonly code: number
  readonly error: Payload
  /** Key of the server, once that is known. */
  readonly server: string | undefined
  /** The era of the server's link, once it is known. */
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

/** What a call of the gateway itself must say; everything else is as for a host that asked for nothing. */
export type OwnCallFacts = Pick<Call, 'ref' | 'method' | 'target' | 'params' | 'caller' | 'signal'>

/** A call that no host made: from the command line, or about a task. */
export const ownCall = (facts: OwnCallFacts): Call => ({
  ...facts,
  resume: undefined,
  progressToken: undefined,
  logLevel: undefined,
  paramHeaders: [],
  unknownHeaders: {},
  notify: () => undefined,
  ask: undefined,
})

/** An invalid request of the host: becomes a JSON-RPC error, and an HTTP status for modern hosts. */
export class Refusal extends Error {
  readonly code: number
  readonly data: unknown
  /** HTTP status if the response has not begun; 200: the error is only in the body. */
  readonly status: number
  /** All OAuth scopes that the call requires (BRIDGING 6.1). */
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
