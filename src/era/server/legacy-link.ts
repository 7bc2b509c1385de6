/**
 * Link to a legacy server: the handshake, calls without per-request `_meta`, notifications of the server ([2025-11-25
 * basic/lifecycle]; BRIDGING 3.3). `attribution.ts` handles its requests.
 */
import { complete, ServerError } from '../../rpc/call.ts'
import type { Call, Outcome } from '../../rpc/call.ts'
import { cancelledParams } from '../../rpc/connection.ts'
import type { CancelRequest, Connection } from '../../rpc/connection.ts'
import type { Channel, HttpChannel, Outgoing } from '../../transport/channel/channel.ts'
import { within } from '../../time/within.ts'
import { jsonObject } from '../../values/json-object.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import { requestMessage } from '../../wire/message/message.ts'
import { META, PER_EXCHANGE } from '../../wire/protocol/meta.ts'
import { isLogLevel, isVendorNotification, LIST_CHANGED, METHODS } from '../../wire/protocol/methods.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import type { Parts, Payload } from '../../wire/message/payload.ts'
import { isAtLeast, isLegacyRevision, LATEST_LEGACY } from '../../wire/protocol/revisions.ts'
import type { LegacyRevision } from '../../wire/protocol/revisions.ts'
import { declaresTasks, runsToolsAsTasks } from '../../wire/protocol/extensions.ts'
import { declaredOnly } from '../declared-capabilities.ts'
import { Attribution } from './attribution.ts'
import { gatewaysIn, hopsIn, nextHop, refuseCircle } from '../gateways.ts'
import type { Position } from '../gateways.ts'
import { LinkTasks } from './link-tasks.ts'
import { RequestMeta } from './request-meta.ts'
import { PendingCall } from './pending-call.ts'
import type { Carrier } from './pending-call.ts'
import { resultOf } from './result-of.ts'
import { modernCreation, relatedTask } from '../task-shapes.ts'
import { offeredLists } from './link.ts'
import type { ClientDescription, Declared, Link, LinkEvents, LinkTimeouts, ServerInfo } from './link.ts'

/** State before the handshake. */
const NOTHING_KNOWN: Handshake = { revision: LATEST_LEGACY, capabilities: {}, instructions: undefined, serverInfo: undefined }

interface Handshake {
  readonly revision: LegacyRevision
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
  readonly serverInfo: ServerInfo | undefined
}

/** How long a call waits for the answer to `logging/setLevel`; a slow server still gets that request first (B286). */
export const LEVEL_WAIT_MS = 1_000

export class LegacyLink implements Link, Carrier {
  readonly era = 'legacy'
  readonly connection: Connection
  readonly closed: Promise<Failure | undefined>
  readonly #events: LinkEvents
  readonly #timeouts: () => LinkTimeouts
  #handshake = NOTHING_KNOWN
  /** The accepted or requested log level; each refused level is requested once. */
  #level: { readonly name: LogLevel; readonly done: Promise<unknown> } | undefined
  readonly #refusedLevels = new Set<LogLevel>()
  #gateways: readonly string[] = []
  readonly #meta = new RequestMeta((meta) => {
    for (const key of PER_EXCHANGE) meta.delete(key)
    if (this.#isGateway) meta.set(META.hops, String(nextHop(hopsIn(meta))))
    else meta.delete(META.hops)
  })
  readonly #tasks = new LinkTasks(
    (method, params) =>
      method === 'tasks/result'
        ? this.#request(method, params, this.#timeouts().totalMs, 'timeouts.total')
        : this.#request(method, params),
    () => this.#timeouts().idleMs,
  )
  readonly #questions: Attribution

  constructor(connection: Connection, events: LinkEvents, timeouts: () => LinkTimeouts) {
    this.connection = connection
    this.#events = events
    this.#timeouts = timeouts
    this.closed = connection.channel.closed
    void this.closed.then(() => this.#tasks.close())
    this.#questions = new Attribution(connection, events, this.#tasks)
    connection.serve({
      request: (message, call, isWithin) => this.#questions.request(message, call, isWithin),
      notification: (message, call) => this.#onNotification(message, call),
      ...(events.isHostStalled && { isHostStalled: (on) => events.isHostStalled?.(on) === true }),
      violation: (reason, sample, error) => events.violation(reason, sample, error),
    })
  }

  get revision(): LegacyRevision {
    return this.#handshake.revision
  }
  get transport(): Channel['kind'] {
    return this.connection.channel.kind
  }
  get capabilities(): Readonly<Record<string, unknown>> {
    return this.#handshake.capabilities
  }
  get instructions(): string | undefined {
    return this.#handshake.instructions
  }
  get serverInfo(): ServerInfo | undefined {
    return this.#handshake.serverInfo
  }
  get gateways(): readonly string[] {
    return this.#gateways
  }
  get #isGateway(): boolean {
    return this.#gateways.length > 0
  }
  get tellsChanges(): boolean {
    const { all, announced } = offeredLists(this.capabilities)
    return announced.length === all.length
  }
  get inFlight(): number {
    return this.connection.inFlight
  }

  /** Sends `initialize` and `initialized`. Throws `ServerError` if the server refuses, `Failure` otherwise. */
  async initialize(
    declared: Declared,
    { identity, via, revision = LATEST_LEGACY }: ClientDescription,
    { instance, hops }: Position,
  ): Promise<void> {
    const result = await this.#request('initialize', {
      protocolVersion: revision,
      capabilities: declared,
      clientInfo: identity,
      _meta: { [META.hops]: nextHop(hops), ...(via !== undefined && { [META.via]: via }) },
    })
    this.#gateways = gatewaysIn(result)
    refuseCircle(this.#gateways, instance)
    const spoken = result.text('protocolVersion') ?? ''
    if (!isLegacyRevision(spoken))
      throw new Failure('version', `the server answered initialize with unsupported version "${spoken}"`)
    this.#handshake = {
      revision: spoken,
      capabilities: declaredOnly(jsonObject(result.value('capabilities')) ?? {}),
      instructions: result.text('instructions'),
      serverInfo: jsonObject(result.value('serverInfo')),
    }
    const { channel } = this.connection
    channel.setRevision?.(spoken)
    this.connection.notify('notifications/initialized')
    // Cast: a channel of kind `http` is an `HttpChannel`.
    if (channel.kind === 'http') void (channel as HttpChannel).openStream()
  }

  readonly handle = (call: Call): Promise<Outcome> => {
    const { method, caller, params } = call
    if (isOfTask(method) && caller.session === undefined) return this.#tasks.handle(call)
    if (method === 'tools/call' && !params.isAbsent('task')) return this.#asTask(call)
    const { idleMs, totalMs } = this.#timeouts()
    const silentMs = method === 'tasks/result' ? totalMs : idleMs
    return this.connection.request(new PendingCall(call, this, { idleMs: silentMs, totalMs }))
  }

  /** Calls a tool as a task, cancelled by the id in its answer (B142); a server without tasks runs and cancels a plain call. */
  async #asTask(call: Call): Promise<Outcome> {
    const carried = new PendingCall({ ...call, takesStreams: false }, this, this.#timeouts())
    const progress = (message: Envelope): void => carried.progress(message)
    let sentAs = 0
    const result = await this.connection.request({
      build: (id) => {
        sentAs = id
        return carried.build(id)
      },
      read: (message) => {
        call.record?.received?.(message)
        return resultOf(message)
      },
      idleMs: carried.idleMs,
      totalMs: carried.totalMs,
      limit: carried.limit,
      call,
      ...(runsToolsAsTasks(this.capabilities) ? { cancel: () => undefined } : { cancel: this.cancel, signal: call.signal }),
      progress,
    })
    const created = modernCreation(call.isUnchanged === true ? result.fresh() : result)
    if (created === undefined) return complete(result)
    const outcome = await this.#created(created, call, () => this.connection.outlive(sentAs, progress))
    return call.isUnchanged === true ? complete(result) : outcome
  }

  write(call: Call, id: number): Outgoing {
    const parts = requestMessage(id, call.method, this.#params(call, id))
    return call.takesStreams === true
      ? { id, parts, isRelayed: true, stream: { idleMs: this.#timeouts().idleMs } }
      : { id, parts, isRelayed: true }
  }

  read({ method, target, params }: Call, result: Payload): Outcome {
    if (method === 'logging/setLevel') this.#hasLevel(params.text('level'))
    if (isOfTask(method)) this.#tasks.observe(target, method === 'tasks/result' ? 'completed' : result.text('status'))
    return complete(result)
  }

  /** The server turned the call into a task. The task is cancelled if the call was cancelled meanwhile. */
  async #created(task: Payload, call: Call, keepProgress: () => () => void): Promise<Outcome> {
    const id = task.text('taskId') ?? ''
    if (call.signal.aborted) {
      await this.fetch('tasks/cancel', { taskId: id }).catch(() => undefined)
      throw new Failure('cancelled', 'cancelled by the host')
    }
    // The tasks extension has no progress notifications; it reports the status.
    const hasProgress = call.progressToken !== undefined && !declaresTasks(call.caller.capabilities)
    this.#tasks.created(id, task, call, hasProgress ? keepProgress() : () => undefined)
    return { kind: 'task', result: task }
  }

  async fetch(method: string, params: Readonly<Record<string, unknown>>): Promise<Payload> {
    return this.#request(method, params)
  }

  /** A legacy gateway lists the gateways behind it in its answer to a ping with a hop count. */
  async survey(): Promise<void> {
    this.#gateways = gatewaysIn(await this.#request('ping', { _meta: { [META.hops]: 1 } }))
  }

  /** Sent whatever the server declares: low-level servers accept subscriptions without declaring them (B287). */
  async subscribe(uri: string): Promise<boolean> {
    await this.#request('resources/subscribe', { uri })
    return true
  }

  async unsubscribe(uri: string): Promise<void> {
    await this.#request('resources/unsubscribe', { uri })
  }

  /** Legacy servers send status notifications without a subscription. */
  async followTask(): Promise<boolean> {
    return true
  }

  async unfollowTask(): Promise<void> {
    // There is no subscription.
  }

  async setLevel(name: LogLevel): Promise<void> {
    if (this.capabilities['logging'] === undefined || this.#refusedLevels.has(name)) return
    if (this.#level?.name !== name) this.#level = { name, done: within(LEVEL_WAIT_MS, this.#requestLevel(name)) }
    await this.#level.done
  }

  /** Never rejects: older SDKs declare logging without this method (B286). */
  async #requestLevel(level: LogLevel): Promise<void> {
    try {
      await this.#request('logging/setLevel', { level })
    } catch (error) {
      this.#refusedLevels.add(level)
      if (this.#level?.name === level) this.#level = undefined
      this.#events.violation(`logging/setLevel "${level}" was refused`, String(error))
    }
  }

  notify(method: string, params: Payload | undefined): void {
    this.connection.notify(method, params?.parts())
  }

  /** Stores a level that a host has set by a request of its own. */
  #hasLevel(level: string | undefined): void {
    if (isLogLevel(level)) this.#level = { name: level, done: Promise.resolve() }
  }

  rootsChanged(): void {
    this.connection.notify('notifications/roots/list_changed')
  }

  async close(): Promise<void> {
    await this.connection.channel.close()
  }

  async retire(): Promise<void> {
    await this.connection.drained()
    await this.close()
  }

  /** A host's params for a server of this era: without per-request keys and rounds, with the progress token of this link. */
  #params(call: Call, id: number): Parts {
    const { params } = call
    if (this.#isGateway || call.trace !== undefined || params.has('_meta')) this.#meta.write(call, id)
    // Between legacy peers these members have no meaning of the protocol: some SDKs (go-sdk) have rounds of their own.
    if (call.caller.session === undefined) {
      params.delete('requestState')
      params.delete('inputResponses')
    }
    if (call.method === 'completion/complete' && isAtLeast(call.caller.revision, CONTEXT) && !isAtLeast(this.revision, CONTEXT))
      params.delete('context')
    return params.parts()
  }

  async ping(limitMs: number): Promise<boolean> {
    try {
      await this.#request('ping', {}, limitMs, 'timeouts.ping')
      return true
    } catch (error) {
      this.#events.refused?.(error, this.era)
      return error instanceof ServerError
    }
  }

  async #request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    limitMs = this.#timeouts().startMs,
    limit = 'timeouts.start',
  ): Promise<Payload> {
    const body = [Buffer.from(JSON.stringify(params))]
    return this.connection.request({
      build: (id) => ({ id, parts: requestMessage(id, method, body) }),
      read: resultOf,
      idleMs: limitMs,
      totalMs: limitMs,
      limit,
      cancel: method === 'initialize' ? () => undefined : this.cancel,
    })
  }

  readonly cancel: CancelRequest = (id, reason, notice) =>
    this.connection.notify('notifications/cancelled', cancelledParams(id, reason, notice))

  /** The call that a log message belongs to: the creator of its task, else the only one that is pending. */
  #callOf(params: Payload): Call | undefined {
    const task = relatedTask(params)
    return (task === undefined ? undefined : this.#tasks.creatorOf(task)) ?? this.connection.onlyCall()
  }

  #onNotification(message: Envelope, during: Call | undefined): void {
    const list = LIST_CHANGED.get(message.method)
    const params = message.params
    if (list !== undefined) this.#events.listChanged(list)
    else if (message.method === 'notifications/cancelled') this.#questions.withdraw(params)
    else if (isVendorNotification(message.method))
      this.#events.vendor(message.method, params, during ?? this.connection.onlyCall())
    else if (params === undefined) return
    else if (message.method === 'notifications/elicitation/complete')
      this.#events.elicitationComplete(params.text('elicitationId') ?? '', params)
    else if (message.method === 'notifications/message') this.#events.message(params, during ?? this.#callOf(params))
    else if (message.method === 'notifications/tasks/status') {
      this.#tasks.observe(params.text('taskId'), params.text('status'))
      this.#events.taskChanged(params)
    } else if (message.method === 'notifications/resources/updated') this.#events.updated(params.text('uri') ?? '', params)
  }
}

/** The first revision whose completions have a `context`. An earlier host's `context` is an unknown member, which is relayed. */
const CONTEXT: LegacyRevision = '2025-06-18'

const isOfTask = (method: string): boolean => METHODS[method]?.handling === 'task'
