/** A call: one request in the gateway, in the modern model, ended by one `Outcome`. Only `era/` knows the legacy era. */
import type { Id } from '../wire/message/envelope.ts'
import type { ChangedList, LogLevel } from '../wire/protocol/methods.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import { Payload } from '../wire/message/payload.ts'
import type { JsonObject } from '../wire/message/payload.ts'
import type { Era, Revision } from '../wire/protocol/revisions.ts'
import type { CancelSignal } from './cancellation.ts'
import type { CallRecord } from './record.ts'

/** Client capabilities as parsed JSON; unknown members are kept. */
export type Capabilities = Readonly<Record<string, unknown>>

/** The part of the catalog that a caller sees. It depends on path and credential, never on the host's `clientInfo` (DECISIONS 5). */
export interface Scope {
  /** The only server of the scope (`/servers/<key>/mcp`): its names have no prefix. */
  readonly server: string | undefined
  /** The scope is that of the merged endpoint while one server is configured. */
  readonly isMerged?: true
  /** The chosen toolset; for one server, all toolsets of the caller, separated by spaces. Absent: neither path nor credential names one. */
  readonly toolset?: string
  /** OAuth scopes of the credential, sorted and separated by spaces. Absent: the caller is not limited by scopes. */
  readonly granted?: string
}

/** What a path or a command-line option selects: one server, a toolset, or neither. */
export interface EndpointPath {
  readonly server?: string | undefined
  readonly toolset?: string | undefined
}

/** The merged endpoint without limits. */
export const EVERYTHING: Scope = { server: undefined }

/** Whether the scope is a bridge to one server: its host gets the messages of a direct connection (BRIDGING 3.21; B277). */
export const isBridge = ({ server }: Scope): boolean => server !== undefined

/** Whether both have the same server and toolset, which are fixed for a session. Its granted scopes may change. */
export const isSameEndpoint = (a: Scope, b: Scope): boolean => endpointServer(a) === endpointServer(b) && a.toolset === b.toolset

/** The server named by the endpoint; `undefined` for the merged endpoint, even while that is a bridge to the only server. */
export const endpointServer = ({ server, isMerged }: Scope): string | undefined => (isMerged === true ? undefined : server)

/** The principal of all unauthenticated callers. Limits per principal do not apply to it (DECISIONS 7). */
export const SHARED_PRINCIPAL = 'local'

/** The caller of a request. */
export interface Caller {
  /** As in the audit log: `token:ID`, `["ISSUER","sub","SUBJECT"]`, or `local` without a credential. */
  readonly principal: string
  readonly revision: Revision
  readonly capabilities: Capabilities
  readonly scope: Scope
  /** The session of a legacy host; `undefined` for modern hosts. */
  readonly session: HostSession | undefined
  /** `clientInfo` of the host, as parsed JSON. Present only at a bridge, where it is relayed to the server. */
  readonly clientInfo?: unknown
  /** Present while a policy needs them; always absent for calls of the operator. */
  readonly facts?: CallerFacts | undefined
}

/** Facts about a caller that rules of the policy may use. */
export interface CallerFacts {
  /** Claims of the token, or the answer of its introspection; empty for other credentials. */
  readonly claims: Readonly<Record<string, unknown>>
  readonly scopes: readonly string[]
  /** Address of the peer of the connection; empty on a pipe. */
  readonly address: string
  /** Self-reported name of the host (`clientInfo.name`). */
  readonly host: string
}

/** The session of a legacy host, as far as servers may use it. */
export interface HostSession {
  readonly id: string
  readonly scope: Scope
  /** Those of its latest request. */
  readonly facts?: CallerFacts | undefined
  readonly capabilities: Capabilities
  /** Sends a notification that belongs to no request: a list change, an update, a log message without attribution. */
  notify(method: string, params: JsonObject | undefined): void
  /** Sends a request that belongs to no request of the host, such as `roots/list` after a link was opened. */
  ask(question: Question): Promise<Answer>
  /** Notifies the host that a resource it subscribed to has changed. */
  updated(params: Payload): void
  /** The level of `logging/setLevel`; `undefined` before that. */
  readonly logLevel: LogLevel | undefined
  /** Whether the host does not read (backpressure). */
  readonly isStalled?: boolean
  /** Calls back once when the session ends; at once if it has ended. Returns a function that removes the callback. */
  onEnd(callback: () => void): () => void
}

/** Is notified of changed lists of one caller. */
export interface ChangeListener {
  changed(list: ChangedList): void
  /** The gateway stops: changes are no longer notified. */
  ended?(): void
}

/** A request of a server to a host. */
export interface Question {
  readonly method: string
  readonly params: Payload | undefined
  /** Calls back if the server cancels the question before it is answered; `notice`: the params of its notification. */
  readonly onWithdrawn?: (callback: (notice?: Payload) => void) => void
  /** Relays the progress of a legacy host's answer to the server; absent: the server gave no progress token (B274). */
  readonly progress?: (params: Payload) => void
  /** No request is pending on its connection: the server may ask on all connections and use the first answer (B295). */
  readonly isUnsolicited?: true
  /** Where several calls of one host may have caused it: those that are still pending. Once there is none, no answer is needed. */
  readonly candidates?: () => readonly Call[]
}

/** The host's answer: a result, or the received error object. */
export type Answer = { readonly result: Payload } | { readonly error: Payload }

/** The answer of a refused question. */
export const errorAnswer = (code: number, message: string): Answer => ({ error: Payload.of({ code, message }) })

/** A text that identifies the endpoint. A state that was sealed at one endpoint is refused at another. */
export const endpointKey = ({ server = '', toolset = '' }: Scope): string => `${server}\n${toolset}`

/** The part of the gateway that made a state of its own: it asks to sign in, to visit URLs, or to confirm a call. */
export type StateMaker = 'sign-in' | 'visit' | 'confirmation'

/** The opened state of an input round and the received answers, carried by the retried call. */
export interface Resume {
  readonly state: string | undefined
  /** Absent: the state is the server's own. */
  readonly maker?: StateMaker | undefined
  readonly responses: Payload | undefined
}

/** How the response of a call reaches its host. */
export interface ResponseChannel {
  readonly flow?: Flow | undefined
  /** The id of the host's request, as JSON text. */
  readonly hostId?: Id | undefined
  /** `tcp`: HTTP. */
  readonly transport?: 'pipe' | 'tcp' | undefined
  /** The W3C `traceparent` of the HTTP request. */
  readonly ambient?: string | undefined
  /** Set once the trace of the call is known, for log lines. */
  traceId?: string | undefined
}

/** A stream to a host that may exert backpressure. */
export interface Flow {
  readonly isStalled: boolean
}

/** One request in the gateway. A layer that changes it passes a copy on. */
export interface Call {
  /** Number of the host's request, as shown in the log and in errors. */
  readonly ref: number
  readonly method: string
  /** Tool or prompt name, URI or task id: the exposed one, and the original one once routed. */
  readonly target: string | undefined
  readonly params: Payload
  readonly caller: Caller
  readonly resume: Resume | undefined
  /** Aborted when the host cancels. */
  readonly signal: CancelSignal
  /** The host's progress token, as JSON text. */
  readonly progressToken: Id | undefined
  /** The log level of a modern request; legacy hosts have one per session. */
  readonly logLevel: LogLevel | undefined
  /** Parameters that are mirrored into headers; known once routed. */
  readonly paramHeaders: readonly ParamHeader[]
  /** `Mcp-Param-*` headers of the host that mirror no known parameter; they must be forwarded. */
  readonly unknownHeaders: Readonly<Record<string, string>>
  /** A big result may be a `StreamedResult`: the response channel can relay it while it is being received. */
  readonly takesStreams?: boolean
  /** Relayed unchanged (B277): at a bridge between peers of one era, whose link no other principal uses. */
  readonly isUnchanged?: boolean
  /** Maximum time of the call, where it differs from the options of the server. */
  readonly totalMs?: number | undefined
  /** While it exerts backpressure, streams that send to this caller alone are not read (F-21). */
  readonly responseChannel?: ResponseChannel
  /**
   * Sends progress and log messages to this caller only. The params have the server's own progress token. `isOfPeer`: the message is from
   * a server of the caller's era at a bridge, which applies the caller's log level itself.
   */
  notify(method: string, params: Payload, isOfPeer?: boolean): void
  /** A person has confirmed the call (`toolsets.<name>.confirm`). Set only by the layer that asks for it. */
  readonly isConfirmed?: true
  /** Asks the host during this request, in the form of its era. A refusal of the host resolves as an answer. */
  readonly ask: ((question: Question) => Promise<Answer>) | undefined
  /** Present while there is an audit log or calls are captured. */
  readonly record?: CallRecord | undefined
  /** Keys of the host's `_meta` that are not relayed to the server. */
  readonly withheld?: readonly string[] | undefined
  /** Present while traces are configured. */
  readonly trace?: TracePoint
}

/** How a call ended. Errors are thrown: `Refusal`, `ServerError`, `Failure`. */
export type Outcome =
  /** `type`: `resultType` of a declared extension, in place of `complete`. `era`: the server answered as a modern one (B268). */
  | { readonly kind: 'complete'; readonly result: JsonObject; readonly type?: string; readonly era?: 'modern' }
  | InputRequired
  /** The server runs the call as a task; `result` is its `CreateTaskResult` ([ext tasks, Task Creation]). */
  | { readonly kind: 'task'; readonly result: Payload }

/** The server of a request, as recorded in a span. */
export interface TracedServer {
  /** Key of the server in the configuration. */
  readonly key: string
  /** `undefined`: the server is connected by pipes. */
  readonly url: URL | undefined
  readonly revision: string
}

/** The position of a call in its trace. Present only if traces are configured (`telemetry.otlp`). */
export interface TracePoint {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits: the parent span of the requests that are sent from here. */
  readonly spanId: string
  /** Writes the W3C trace context of this span into `meta`, under the keys of SEP-414. `id`: the id of the request at the server. */
  write(meta: JsonObject, id: number): void
  /** Wraps `send` in a span for the request to the server. */
  sending(server: TracedServer, send: Handler): Handler
}

/** The value of `unknownHeaders` for calls without any; shared. */
export const NO_HEADERS: Call['unknownHeaders'] = {}

/** Executes a call. Rejects with `Refusal` (not allowed), `ServerError` (the server's JSON-RPC error) or `Failure` (of Trunkline). */
export type Handler = (call: Call) => Promise<Outcome>
/** Wraps a handler: a policy, a limit, a record. */
export type Layer = (inner: Handler) => Handler

export interface InputRequired {
  readonly kind: 'input_required'
  readonly result: Payload
  readonly state: string | undefined
  /** Absent: the state is the server's own. */
  readonly maker?: StateMaker | undefined
  /** By key, the requests that the host's revision cannot express, with the answers given in the host's place. */
  readonly refused?: ReadonlyMap<string, Answer>
  /** Maximum time of the call over all its rounds. */
  readonly totalMs?: number
}

/** Composes the layers around `innermost`, in the order in which a call passes them. */
export const stack = (layers: readonly Layer[], innermost: Handler): Handler =>
  layers.reduceRight((inner, layer) => layer(inner), innermost)

/** Whether nothing reads the params of the request after this outcome: a completed tool call without a task. */
export const isEndOf = (method: string, params: Payload | undefined, { kind }: Outcome): boolean =>
  method === 'tools/call' && kind === 'complete' && params?.isAbsent('task') === true

/** A completed call; `result` is the result of its method, such as `Payload.of({ content: [] })`. */
export const complete = (result: JsonObject): Outcome => ({ kind: 'complete', result })

/** The result of a tool with one text block; `isError`: the tool failed. */
export const toolText = (text: string, isError: boolean): Outcome =>
  complete(Payload.of({ content: [{ type: 'text', text }], ...(isError && { isError }) }))

/** A JSON-RPC error of a server. It is relayed unchanged, except in the cases of BRIDGING 7.3. */
export class ServerError extends Error {
  readonly code: number
  readonly error: Payload
  /** Key of the server, once it is known. */
  readonly server: string | undefined
  /** The era of the server's link, once it is known. */
  readonly era: Era | undefined
  /** The HTTP status of the error, or the one that its code maps to; `undefined`: none is known. */
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

  /** The same error with facts about its server. */
  at(facts: ServerErrorFacts): ServerError {
    return new ServerError(this.code, this.message, this.error, { status: this.status, ...facts })
  }
}

export interface ServerErrorFacts {
  readonly server?: string | undefined
  readonly era?: Era | undefined
  readonly status?: number | undefined
}

/** A call of the gateway itself: from the command line, or about a task. Everything that only hosts request is absent. */
export const ownCall = (facts: Pick<Call, 'ref' | 'method' | 'target' | 'params' | 'caller' | 'signal'>): Call => ({
  ...facts,
  resume: undefined,
  progressToken: undefined,
  logLevel: undefined,
  paramHeaders: [],
  unknownHeaders: NO_HEADERS,
  notify: () => undefined,
  ask: undefined,
})

/** A request of a host that is refused: becomes a JSON-RPC error, and for modern hosts an HTTP status. */
export class Refusal extends Error {
  readonly code: number
  readonly data: unknown
  /** HTTP status, if the response has not begun; 200: the error is in the body only. */
  readonly status: number
  /** The OAuth scopes that the call requires (BRIDGING 6.1). */
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
