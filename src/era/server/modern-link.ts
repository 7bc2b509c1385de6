/**
 * Link to a modern server: each request describes its client, results may ask for input, changes arrive on `subscriptions/listen`
 * streams ([2026-07-28 basic/index, basic/patterns/mrtr, basic/patterns/subscriptions]).
 */
import { errorAnswer, isBridge, NO_HEADERS } from '../../rpc/call.ts'
import type { Call, Outcome } from '../../rpc/call.ts'
import { cancelledParams } from '../../rpc/connection.ts'
import type { CancelRequest, Connection } from '../../rpc/connection.ts'
import type { Channel, Outgoing } from '../../transport/channel/channel.ts'
import { memberOf } from '../../values/json-object.ts'
import { ScanError } from '../../wire/json/scan-error.ts'
import { checkQuestion } from '../../wire/message/envelope.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { Failure } from '../../wire/message/failure.ts'
import { requestMessage } from '../../wire/message/message.ts'
import { META } from '../../wire/protocol/meta.ts'
import { CHANGED_LISTS, isVendorNotification, LIST_CHANGED, METHODS } from '../../wire/protocol/methods.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import { headersFor } from '../../wire/headers/param-headers.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { declaresTasks, withTasks } from '../../wire/protocol/extensions.ts'
import { Attribution } from './attribution.ts'
import { PendingCall } from './pending-call.ts'
import type { Carrier } from './pending-call.ts'
import { gatewaysIn, hopsIn, nextHop } from '../gateways.ts'
import { offeredLists } from './link.ts'
import type { Declared, Identity, Link, LinkEvents, LinkTimeouts, ServerInfo } from './link.ts'
import { ListenStreams, subscriptionOf, withoutSubscription } from './listen-streams.ts'
import { MirrorHeaders } from './mirror-headers.ts'
import type { MirrorRecord } from './mirror-headers.ts'
import { withClientCredentials } from './client-credentials.ts'
import { RequestMeta } from './request-meta.ts'
import { resultOf } from './result-of.ts'

const MODERN_JSON = Buffer.from(JSON.stringify(MODERN))

export type ModernServer = Pick<Link, 'capabilities' | 'instructions' | 'serverInfo' | 'gateways'>

export class ModernLink implements Link, Carrier {
  readonly era = 'modern'
  readonly revision = MODERN
  readonly connection: Connection
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
  readonly serverInfo: ServerInfo | undefined
  readonly closed: Promise<Failure | undefined>
  readonly #events: LinkEvents
  readonly #timeouts: () => LinkTimeouts
  readonly #identity: Identity
  readonly #meta: RequestMeta
  readonly #mirrors = new MirrorHeaders()
  /** Capabilities in the gateway's own requests. */
  readonly #declared: Declared
  /** See `Dialing`. */
  readonly #usesClientCredentials: boolean
  readonly #streams: ListenStreams
  /** Servers of this era must not send requests, but SDKs do and wait for the response (B072). */
  readonly #questions: Attribution
  #gateways: readonly string[]

  constructor(
    connection: Connection,
    server: ModernServer,
    { identity, declared, usesClientCredentials }: { identity: Identity; declared: Declared; usesClientCredentials: boolean },
    events: LinkEvents,
    timeouts: () => LinkTimeouts,
  ) {
    this.connection = connection
    this.capabilities = server.capabilities
    this.instructions = server.instructions
    this.serverInfo = server.serverInfo
    this.#gateways = server.gateways
    const isGateway = server.gateways.length > 0
    this.#identity = identity
    this.#usesClientCredentials = usesClientCredentials
    const identityJson = Buffer.from(JSON.stringify(identity))
    this.#meta = new RequestMeta((meta, call) => {
      const { caller } = call
      const logLevel = levelOf(call)
      meta.set(META.version, MODERN_JSON)
      if (!isBridge(caller.scope)) meta.set(META.clientInfo, identityJson)
      else {
        // Requests of a modern host already have `clientInfo`.
        if (caller.session !== undefined) meta.set(META.clientInfo, JSON.stringify(caller.clientInfo ?? identity))
        meta.set(META.via, identityJson)
      }
      const capabilities = withClientCredentials(modernCapabilities(caller.capabilities), usesClientCredentials)
      meta.set(META.capabilities, JSON.stringify(capabilities))
      if (isGateway) meta.set(META.hops, String(nextHop(hopsIn(meta))))
      else meta.delete(META.hops)
      if (logLevel === undefined) meta.delete(META.logLevel)
      else meta.set(META.logLevel, JSON.stringify(logLevel))
    })
    this.#declared = withTasks(declared)
    this.#events = events
    this.#timeouts = timeouts
    this.closed = connection.channel.closed
    connection.channel.setRevision?.(MODERN)
    this.#questions = new Attribution(connection, { ask: askWithin, violation: (...facts) => events.violation(...facts) })
    connection.serve({
      request: (message, call, isWithin) => {
        events.violation('a request on a modern link', message.method)
        this.#questions.request(message, call, isWithin)
      },
      notification: (message, call) => this.#onNotification(message, call),
      ...(events.isHostStalled && { isHostStalled: (on) => events.isHostStalled?.(on) === true }),
      violation: (reason, sample, error) => events.violation(reason, sample, error),
    })
    this.#streams = new ListenStreams(connection, {
      params: (filter) => this.#ownParams({ notifications: filter }),
      headers: (params) => this.#headers('subscriptions/listen', params),
      missedLists: () => {
        for (const list of CHANGED_LISTS) events.listChanged(list)
      },
      missedResource: (uri) => events.updated(uri, Payload.of({ uri })),
      missedTask: (id) => this.#readTask(id),
      refused: (error) => events.refused?.(error, this.era),
    })
  }

  get transport(): Channel['kind'] {
    return this.connection.channel.kind
  }
  get gateways(): readonly string[] {
    return this.#gateways
  }
  /** A server may acknowledge fewer lists than it declares. */
  get tellsChanges(): boolean {
    return offeredLists(this.capabilities).all.every((list) => this.#streams.accepted[`${list}ListChanged`] === true)
  }
  get inFlight(): number {
    return this.connection.inFlight
  }

  readonly handle = (call: Call): Promise<Outcome> => {
    return this.connection.request(new PendingCall(call, this, this.#timeouts()))
  }

  write(call: Call, id: number): Outgoing {
    this.#describe(call, id)
    const headers = this.#headers(call.method, call.params, call)
    const parts = requestMessage(id, call.method, call.params.parts())
    return call.takesStreams === true
      ? { id, parts, headers, isRelayed: true, stream: { idleMs: this.#timeouts().idleMs, after: 'resultType' } }
      : { id, parts, headers, isRelayed: true }
  }

  read(call: Call, result: Payload): Outcome {
    return outcomeOf(call, result)
  }

  async fetch(method: string, params: Readonly<Record<string, unknown>>, declared = this.#declared): Promise<Payload> {
    const { startMs } = this.#timeouts()
    const payload = this.#ownParams(params, declared)
    return this.connection.request({
      build: (id) => ({ id, parts: requestMessage(id, method, payload.parts()), headers: this.#headers(method, payload) }),
      read: (message) => completeOf(method, resultOf(message)),
      idleMs: startMs,
      totalMs: startMs,
      limit: 'timeouts.start',
      cancel: this.cancel,
    })
  }

  async survey(): Promise<void> {
    this.#gateways = gatewaysIn(await this.fetch('server/discover', {}))
  }

  /** Subscribes to list changes that the server announces. */
  listen(): void {
    const { announced } = offeredLists(this.capabilities)
    this.#streams.lists(Object.fromEntries(announced.map((list) => [`${list}ListChanged`, true])))
  }

  async subscribe(uri: string): Promise<boolean> {
    return memberOf(this.capabilities['resources'], 'subscribe') === true && this.#streams.resources.add(uri)
  }

  async unsubscribe(uri: string): Promise<void> {
    this.#streams.resources.remove(uri)
  }

  async followTask(id: string): Promise<boolean> {
    return declaresTasks(this.capabilities) && this.#streams.tasks.add(id)
  }

  async unfollowTask(id: string): Promise<void> {
    this.#streams.tasks.remove(id)
  }

  async setLevel(): Promise<void> {
    // Each request carries its level.
  }

  notify(method: string, params: Payload | undefined): void {
    this.connection.notify(method, params?.parts())
  }

  rootsChanged(): void {
    // Modern servers ask for roots within each request.
  }

  async close(): Promise<void> {
    this.#streams.close()
    await this.connection.channel.close()
  }

  async retire(): Promise<void> {
    this.#streams.close()
    await this.connection.drained()
    await this.close()
  }

  /** Writes the `_meta` and the round of this request into the params (B013, B037, B066). */
  #describe(call: Call, id: number): void {
    const { params, resume } = call
    this.#meta.write(call, id)
    params.delete('task')
    if (resume?.state === undefined) params.delete('requestState')
    else params.set('requestState', JSON.stringify(resume.state))
    if (resume?.responses === undefined) params.delete('inputResponses')
    else params.set('inputResponses', resume.responses.parts())
  }

  #ownParams(params: Readonly<Record<string, unknown>>, declared = this.#declared): Payload {
    const capabilities = withClientCredentials(declared, this.#usesClientCredentials)
    const meta = { [META.version]: MODERN, [META.clientInfo]: this.#identity, [META.capabilities]: capabilities }
    return Payload.of({ ...params, _meta: meta })
  }

  /** Headers that mirror the final body (B219), names in lower case; none on a pipe. */
  #headers(method: string, params: Payload, call?: Call): MirrorRecord {
    if (this.transport === 'pipe') return NO_HEADERS
    const row = METHODS[method]
    const name = row?.hasNameHeader === true ? (call === undefined ? params.text(row.field ?? '') : call.target) : undefined
    const mirrors = this.#mirrors.of(method, name)
    if (call === undefined || (call.unknownHeaders === NO_HEADERS && call.paramHeaders.length === 0)) return mirrors
    const headers = { ...call.unknownHeaders, ...mirrors }
    const args = call.paramHeaders.length === 0 ? undefined : params.final('arguments')
    return args === undefined ? headers : { ...headers, ...headersFor(call.paramHeaders, args) }
  }

  readonly cancel: CancelRequest = (id, reason, notice) => {
    // Over HTTP closing the stream is the cancellation (B140).
    if (this.transport !== 'http') this.connection.notify('notifications/cancelled', cancelledParams(id, reason, notice))
  }

  #onNotification(message: Envelope, during: Call | undefined): void {
    const params = message.params
    const list = LIST_CHANGED.get(message.method)
    if (message.method === 'notifications/subscriptions/acknowledged') this.#streams.acknowledged(params)
    else if (message.method === 'notifications/cancelled') {
      this.#streams.ended(params)
      this.#questions.withdraw(params)
    } else if (list !== undefined) this.#events.listChanged(list)
    else if (isVendorNotification(message.method))
      this.#events.vendor(message.method, params, during ?? this.connection.onlyCall())
    else if (params === undefined) return
    else if (message.method === 'notifications/message') this.#onLog(params, during ?? this.connection.onlyCall())
    else if (message.method === 'notifications/tasks') this.#onTask(params)
    else if (message.method === 'notifications/resources/updated') this.#onUpdate(params.text('uri') ?? '', params)
  }

  #onUpdate(uri: string, params: Payload): void {
    if (this.#streams.resources.isNews(uri, subscriptionOf(params))) this.#events.updated(uri, withoutSubscription(params))
  }

  #onTask(params: Payload): void {
    const fault = faultInQuestions(params)
    if (fault === undefined) this.#events.taskChanged(params)
    else this.#events.violation(fault, 'notifications/tasks')
  }

  /** Reads a task that may have changed while no stream was open. */
  #readTask(taskId: string): void {
    this.fetch('tasks/get', { taskId })
      .then((task) => {
        task.delete('resultType')
        this.#events.taskChanged(Payload.at(join(task.parts())))
      })
      .catch((error: unknown) => this.#events.violation('a task could not be read', String(error)))
  }

  /**
   * Relays log messages of requests that carry a level: a server of this era must not log for others ([2026-07-28
   * server/utilities/logging]). At a bridge all log messages for a modern host are relayed.
   */
  #onLog(params: Payload, call: Call | undefined): void {
    if (call === undefined) return
    const isOfPeer = isBridge(call.caller.scope) && call.caller.session === undefined
    if (isOfPeer || levelOf(call) !== undefined) this.#events.message(params, call, isOfPeer)
  }
}

/** Asks the host of the call; an error without a call, or for a call that cannot carry input. */
const askWithin: LinkEvents['ask'] = async (question, call) =>
  call?.ask?.(question) ?? errorAnswer(-32601, `Method not found: ${question.method} outside of a call that can carry it`)

/** The log level of a call; for legacy hosts without a level the default (BRIDGING 3.11). */
const levelOf = ({ logLevel, caller }: Call): LogLevel | undefined =>
  logLevel ?? (caller.session === undefined ? undefined : 'info')

/** Converts a modern result to an outcome; throws `Failure` for an invalid one (B009, B010, B057, B173, B290). */
const outcomeOf = ({ method, caller }: Call, result: Payload): Outcome => {
  const type = typeOf(result)
  if (type === undefined) throw new Failure('protocol', 'resultType is not a string')
  if (isComplete(type, method)) {
    if (method === 'tasks/get') checkQuestions(result)
    return { kind: 'complete', result, era: 'modern' }
  }
  if (type === 'task' && method === 'tools/call' && declaresTasks(caller.capabilities)) {
    if (result.text('taskId') === undefined) throw new Failure('bad_response', 'a task without an id')
    return { kind: 'task', result }
  }
  if (type !== 'input_required') {
    // A task here belongs to an extension that the host did not declare (B173).
    const isDeclared = type !== 'task' && declaresExtensions(caller.capabilities)
    if (caller.session === undefined && isDeclared) return { kind: 'complete', result, type }
    throw new Failure('protocol', `unknown resultType "${type}"`)
  }
  if (METHODS[method]?.mayAskInput !== true) throw new Failure('protocol', `input_required in answer to ${method}`)
  if (result.isAbsent('inputRequests') && result.isAbsent('requestState'))
    throw new Failure('protocol', 'input_required without anything required')
  checkQuestions(result)
  if (!result.isAbsent('requestState') && result.text('requestState') === undefined)
    throw new Failure('protocol', 'requestState is not a string')
  return { kind: 'input_required', result, state: result.text('requestState') }
}

const checkQuestions = (result: Payload): void => {
  const fault = faultInQuestions(result)
  if (fault !== undefined) throw new Failure('protocol', fault)
}

/** Why the questions cannot be checked for the host (B059, B270); `undefined`: they can. */
const faultInQuestions = (result: Payload): string | undefined => {
  if (result.isAbsent('inputRequests')) return undefined
  const members = result.object('inputRequests')?.members
  if (members === undefined) return 'inputRequests is not an object'
  if (new Set(members.map(({ key }) => key)).size < members.length) return 'inputRequests repeats a key'
  try {
    for (const member of members) checkQuestion(result.bytes, member)
    return undefined
  } catch (error) {
    if (error instanceof ScanError) return `a question is unusable: ${error.message}`
    throw error
  }
}

/** The result of a request of the gateway itself; throws `Failure` unless it is complete (B010). */
const completeOf = (method: string, result: Payload): Payload => {
  const type = typeOf(result)
  if (isComplete(type, method)) return result
  throw new Failure('bad_response', `the result is of type "${type ?? 'unknown'}", not "complete"`)
}

/** The text of the tasks extension says `complete` for `tasks/get`, its examples say `task` (BRIDGING 9). */
const isComplete = (type: string | undefined, method: string): boolean =>
  type === 'complete' || (type === 'task' && method === 'tasks/get')

/** The type of a result, by default `complete`; `undefined`: it is not a string. */
const typeOf = (result: Payload): string | undefined =>
  result.text('resultType') ?? (result.isAbsent('resultType') ? 'complete' : undefined)

const declaresExtensions = ({ extensions }: Declared): boolean =>
  typeof extensions === 'object' && extensions !== null && Object.keys(extensions).length > 0

/** Client capabilities in the form of this era: `elicitation: {}` means forms (B039). */
const modernCapabilities = (capabilities: Declared): Declared => {
  const elicitation = capabilities['elicitation']
  if (typeof elicitation !== 'object' || elicitation === null || Object.keys(elicitation).length > 0) return capabilities
  return { ...capabilities, elicitation: { form: {} } }
}
