/**
 * A legacy session: the host's `initialize`, its requests in flight, and its outlets: the streams of its requests, and one outlet for
 * messages that belong to no request. A host may use one id for several requests at a time; an id then means the newest (B266).
 */
import { randomBytes } from 'node:crypto'
import { carriedCapabilities } from '../../era/host/legacy-host.ts'
import type { Introduction } from '../../era/host/legacy-host.ts'
import type { HostTransport } from '../../observe/capture/captured.ts'
import { cancelledParams } from '../../rpc/connection.ts'
import { firstRequestId } from '../../rpc/first-request-id.ts'
import type { Cancel } from '../../rpc/cancellation.ts'
import { errorAnswer, isBridge } from '../../rpc/call.ts'
import type {
  Answer,
  Caller,
  CallerFacts,
  Capabilities,
  ChangeListener,
  Flow,
  HostSession,
  Question,
  Refusal,
  Scope,
} from '../../rpc/call.ts'
import { parseJson } from '../../values/json-object.ts'
import { idKey, numberedId } from '../../wire/message/envelope.ts'
import type { Envelope, EnvelopeError, Id } from '../../wire/message/envelope.ts'
import type { Failure } from '../../wire/message/failure.ts'
import type { MessageEnds } from '../../wire/message/message-ends.ts'
import { notificationMessage, requestMessage } from '../../wire/message/message.ts'
import { CHANGED_LISTS, isLogLevel, LIST_CHANGED, listChangedMethod, reaches } from '../../wire/protocol/methods.ts'
import type { ChangedList, LogLevel } from '../../wire/protocol/methods.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { JsonObject, Parts } from '../../wire/message/payload.ts'
import type { LegacyRevision } from '../../wire/protocol/revisions.ts'
import { isSameFacts, withHost } from '../caller-facts.ts'
import type { Admission } from '../limits/admission.ts'
import type { EventLog } from '../response/event-log.ts'
import type { Exchange } from '../response/exchange.ts'
import type { Core, Subscriber } from '../core.ts'
import { EarlyCancellations } from './early-cancellations.ts'
import { NO_SETTINGS, SETTINGS } from './session-settings.ts'
import type { SessionSettings } from './session-settings.ts'

/** A host's request in flight. */
export interface Running {
  readonly id: Id
  readonly exchange: Exchange
  /** The exchange that the listener created; `exchange` may wrap it. */
  readonly listenerExchange: Exchange
  readonly abort: Cancel
  /** Answers it with an error. */
  readonly fail: (error: unknown) => void
  /** Size of the request. */
  readonly bytes: number
  /** The answer was sent: later messages go to the session's own outlet. */
  isOver: boolean
  /** Unanswered server requests of this request; created with the first. */
  questions: Set<Pending> | undefined
}

/** An unanswered server request that belongs to a host's request. */
interface Pending {
  /** The host's request, whose end withdraws the server request. */
  running: Running
  readonly withdraw: () => void
  readonly candidates: Question['candidates']
}

/** An unanswered server request of any kind. */
interface Open {
  readonly settle: (answer: Answer) => void
  readonly progress: Question['progress']
}

/** Receives messages for the host. */
export interface Outlet {
  readonly flow?: Flow | undefined
  send(parts: Parts): void
}

/** What a session watches until it ends. */
export type WatchCore = Pick<Core, 'watchLists' | 'unwatchLists' | 'unsubscribe'>

/** A server request waits this long for `notifications/initialized`, and then fails. */
const INITIALIZED_WAIT_MS = 10_000
const COMPLETED = 'notifications/elicitation/complete'
const UPDATED = 'notifications/resources/updated'
/** Notifications that wait for an outlet: updates, of any resources that servers report, and completed elicitations beside them. */
const MAX_UPDATED = 256
const MAX_WAITING = MAX_UPDATED + 32

interface SessionStart {
  readonly introduction: Introduction
  readonly principal: string
  readonly scope: Scope
  readonly admission: Pick<Admission, 'begin' | 'end'>
  /** Absent: a random one. */
  readonly id?: string
  readonly transport: HostTransport
}

export class Session implements HostSession, Subscriber, ChangeListener {
  /** Contains 128 random bits, so that it cannot be guessed (B197). */
  readonly id: string
  readonly principal: string
  readonly revision: LegacyRevision
  readonly capabilities: Capabilities
  /** Self-reported, for display only. */
  readonly clientInfo: unknown
  readonly transport: HostTransport
  /** Replaced when the scope of its credential changes. */
  caller: Caller
  startedMs = performance.now()
  settings: SessionSettings = NO_SETTINGS
  /** Event log for resumption; `undefined`: the transport cannot resume. */
  log: EventLog | undefined
  activeMs = performance.now()
  /** Called when the settings have changed. With the session, so that one function serves all. */
  onSet: ((settings: SessionSettings, session: Session) => void) | undefined
  /** Oldest first. At most `in_flight_per_session` entries, so a linear search is fastest. */
  readonly #running: Running[] = []
  /** Created on first use, like the next field: most of possibly ten thousand sessions never need it. */
  #questions: Map<Id, Open> | undefined
  /** Created with its first callback: pushing to an empty array allocates space for seventeen. */
  #endCallbacks: (() => void)[] | undefined
  readonly #admission: Pick<Admission, 'begin' | 'end'>
  #outlet: Outlet | undefined
  /** Notifications waiting for an outlet, by kind: list changes, updated resources, completed elicitations. */
  #waiting: Map<string, Parts> | undefined
  /** The id of the next server request: a number, since some hosts read no others. Undefined: there was none yet. */
  #nextQuestion: number | undefined
  /** Whether the host has sent `notifications/initialized`. */
  #isInitialized = false
  /** Server requests waiting for `notifications/initialized`: sends by id. */
  #unsent: Map<Id, () => void> | undefined
  #isEnded = false
  /** Where it watches lists and resources. */
  #core: WatchCore | undefined
  readonly #early = new EarlyCancellations()

  constructor({ introduction, principal, scope, admission, id, transport }: SessionStart) {
    this.transport = transport
    this.clientInfo = introduction.clientInfo
    this.id = id ?? randomBytes(16).toString('base64url')
    this.#admission = admission
    this.revision = introduction.revision
    this.capabilities = isBridge(scope) ? introduction.capabilities : carriedCapabilities(introduction)
    this.principal = principal
    this.caller = this.#callerFor(scope)
  }

  get facts(): CallerFacts | undefined {
    return this.caller.facts
  }

  get scope(): Scope {
    return this.caller.scope
  }

  get logLevel(): LogLevel | undefined {
    return this.settings.level
  }

  /** Applies the settings of a request that was answered with a result. */
  accepted(method: string, params: Payload | undefined): void {
    if (method === 'resources/unsubscribe') this.#waiting?.delete(waitingKey(params?.text('uri') ?? ''))
    const settings = SETTINGS.get(method)?.(this.settings, params) ?? this.settings
    if (settings === this.settings) return
    this.settings = settings
    this.onSet?.(settings, this)
  }

  /** Applies the scope and facts of the latest request's credential. */
  setAccess(scope: Scope, facts?: CallerFacts): void {
    const isSameScope = scope.granted === this.scope.granted && scope.server === this.scope.server
    if (isSameScope && isSameFacts(this.caller.facts, facts)) return
    this.caller = this.#callerFor(scope, facts)
    if (isSameScope || this.#core === undefined) return
    this.#core.watchLists(this.caller, this)
    this.mayAllHaveChanged()
  }

  /** Notifies the host of changed lists until the session ends, and of all lists when the scope of its credential changes. */
  watchLists(core: WatchCore): void {
    if (this.#isEnded) return
    this.#core = core
    core.watchLists(this.caller, this)
  }

  #callerFor(scope: Scope, facts?: CallerFacts): Caller {
    const { principal, revision, capabilities } = this
    const { clientInfo } = this
    return {
      principal,
      revision,
      capabilities,
      scope,
      session: this,
      ...(isBridge(scope) && { clientInfo }),
      ...(facts && { facts: withHost(facts, clientInfo) }),
    }
  }

  get isEnded(): boolean {
    return this.#isEnded
  }
  get inFlight(): number {
    return this.#running.length
  }
  /** Whether a call waits for an answer of the host. */
  get isAsking(): boolean {
    return this.#running.some(({ questions }) => questions !== undefined && questions.size > 0)
  }
  get isStalled(): boolean {
    return this.#outlet?.flow?.isStalled === true || this.#running.some(({ exchange }) => exchange.flow?.isStalled === true)
  }

  /** Handles `notifications/initialized`: sends the waiting server requests (B028). */
  initialized(): void {
    const unsent = this.#unsent
    this.#isInitialized = true
    this.#unsent = undefined
    for (const send of unsent?.values() ?? []) send()
  }

  /** Sets the outlet for messages that belong to no request, in place of an earlier one. Returns how to remove it. */
  attach(outlet: Outlet): () => void {
    this.#outlet = outlet
    for (const parts of this.#waiting?.values() ?? []) outlet.send(parts)
    this.#waiting = undefined
    return () => {
      if (this.#outlet === outlet) this.#outlet = undefined
    }
  }

  /** Returns the outlet for messages of a request: its own stream, or the session's outlet after the answer or a disconnect. */
  outletOf({ exchange, isOver }: Running): Outlet | undefined {
    return isOver || exchange.isGone === true ? this.#outlet : { send: (parts) => exchange.message(parts) }
  }

  /** Notifies the host of a changed list. */
  changed(list: ChangedList): void {
    this.notify(listChangedMethod(list), undefined)
  }

  /** Announces all lists, which may have changed unnoticed. */
  mayAllHaveChanged(): void {
    for (const list of CHANGED_LISTS) this.changed(list)
  }

  notify(method: string, params: JsonObject | undefined): void {
    if (method === 'notifications/message' && !this.#wantsLogLevel(params)) return
    const parts = notificationMessage(method, params?.parts())
    if (this.#outlet !== undefined) this.#outlet.send(parts)
    else if (LIST_CHANGED.has(method)) (this.#waiting ??= new Map()).set(method, parts)
    else if (method === UPDATED && params instanceof Payload) this.#keepUpdated(parseJson(params.final('uri')?.toString() ?? ''))
    else if (method === COMPLETED) this.#notifyCompleted(parts)
  }

  /** Without an outlet it is sent on the stream of a request with a server request, or waits for an outlet (B088). */
  #notifyCompleted(parts: Parts): void {
    const asked = this.#running.findLast(({ questions }) => questions !== undefined)
    if (asked !== undefined) return asked.exchange.message(parts)
    this.#waiting ??= new Map()
    if (this.#waiting.size < MAX_WAITING) this.#waiting.set(`${COMPLETED} ${this.#newId()}`, parts)
  }

  #newId(): Id {
    const id = (this.#nextQuestion ??= firstRequestId())
    this.#nextQuestion = id + 1
    return String(id)
  }

  updated(params: Payload): void {
    this.notify(UPDATED, params)
  }

  /** Announces a subscribed resource that may have changed unnoticed, at once or with the next outlet. */
  mayHaveChanged(uri: string): void {
    this.updated(Payload.of({ uri }))
  }

  /** Keeps an update for the next outlet, one for each resource. */
  #keepUpdated(uri: unknown): void {
    const waiting = (this.#waiting ??= new Map())
    if (typeof uri === 'string' && waiting.size < MAX_UPDATED)
      waiting.set(waitingKey(uri), notificationMessage(UPDATED, Payload.of({ uri }).parts()))
  }

  /** Whether the host's log level includes this level. True without a log level: servers choose (BRIDGING 3.11). */
  wantsLogLevel(level: string | undefined): boolean {
    return this.logLevel === undefined || isBridge(this.scope) || !isLogLevel(level) || reaches(level, this.logLevel)
  }

  ask(question: Question): Promise<Answer> {
    return this.#ask(this.#outlet, question)
  }

  /** Sends a server request on the stream of a host's request, whose end withdraws it. */
  askDuring(running: Running, question: Question): Promise<Answer> {
    return this.#ask(this.outletOf(running), question, running)
  }

  /** Resolves with an error answer if the host cannot be reached, the request is withdrawn, or the session ends. Never rejects. */
  #ask(outlet: Outlet | undefined, question: Question, running?: Running): Promise<Answer> {
    if (outlet === undefined || this.#isEnded) return Promise.resolve(noAnswer('the host cannot be reached now'))
    return new Promise((resolve) => {
      const id = this.#newId()
      const withdraw = (notice?: Payload): void => {
        remove()
        if (this.#questions?.delete(id) !== true) return
        const parts = cancelledParams(id, 'no longer needed', notice)
        const current = pending === undefined ? (this.#outlet ?? outlet) : this.outletOf(pending.running)
        if (this.#unsent?.delete(id) !== true) current?.send(notificationMessage('notifications/cancelled', parts))
        resolve(noAnswer('the question was taken back'))
      }
      const pending: Pending | undefined =
        running === undefined || running.isOver ? undefined : { running, withdraw, candidates: question.candidates }
      const remove = (): void => void (pending !== undefined && pending.running.questions?.delete(pending))
      this.#questions ??= new Map()
      const settle = (answer: Answer): void => {
        remove()
        resolve(answer)
      }
      this.#questions.set(id, { settle, progress: question.progress })
      // The id is unique within the session, so it is the progress token, too.
      if (question.progress !== undefined) question.params?.setIn('_meta', 'progressToken', id)
      if (pending !== undefined) addTo(pending.running, pending)
      question.onWithdrawn?.(withdraw)
      const send = (): void => outlet.send(requestMessage(id, question.method, question.params?.parts()))
      if (this.#isInitialized) send()
      else this.#sendLater(id, send)
    })
  }

  #sendLater(id: Id, send: () => void): void {
    this.#unsent ??= new Map()
    this.#unsent.set(id, send)
    const giveUp = (): void => {
      if (this.#unsent?.delete(id) === true) this.#answer(id, noAnswer('the host has not said notifications/initialized'))
    }
    setTimeout(giveUp, INITIALIZED_WAIT_MS).unref()
  }

  /** Handles a response of the host. Late and unsolicited responses are dropped. */
  settle(message: Envelope): void {
    const { id, result, error } = message
    if (id === undefined) return
    if (result !== undefined) this.#answer(id, { result })
    else if (error !== undefined) this.#answer(id, { error })
  }

  /** Handles a message that was refused. If it was meant to be the answer to a server request, the server gets an error in its place. */
  refused({ id, isCall, message }: Pick<EnvelopeError, 'id' | 'isCall' | 'message'>): void {
    if (id !== undefined && !isCall) this.#answer(id, noAnswer(`the answer of the host is invalid: ${message}`))
  }

  /** Handles a message of which only a part was read. An answer without a known id is that of the only open question, if there is one. */
  refusedPart({ kind, id }: MessageEnds, message: string): void {
    const open = this.#questions
    const only = open?.size === 1 ? open.keys().next().value : undefined
    this.refused({ id: id ?? only, isCall: kind !== 'response', message })
  }

  #answer(id: Id, answer: Answer): void {
    const key = numberedId(id)
    const open = this.#questions?.get(key)
    this.#questions?.delete(key)
    open?.settle(answer)
  }

  begin(running: Running): void {
    this.#running.push(running)
    this.#admission.begin(this.principal, running.bytes)
    const cancelled = this.#early.begun(running.id)
    // When its call has begun, like any other cancellation.
    if (cancelled !== undefined) queueMicrotask(() => this.cancel(cancelled))
  }

  /** A ping is answered at once. Its id counts as used: a late cancellation is not that of a later request. */
  pinged(id: Id): void {
    this.#early.begun(id)
  }

  finish(running: Running): void {
    this.activeMs = performance.now()
    if (running.questions !== undefined) this.#endQuestions(running, running.questions)
    running.isOver = true
    if (!removeItem(this.#running, running)) return
    this.#admission.end(this.principal, running.bytes)
  }

  /** Withdraws the server requests of an ended request, unless they may belong to another request in flight (B262). */
  #endQuestions(running: Running, questions: ReadonlySet<Pending>): void {
    for (const pending of questions) {
      const signals = pending.candidates?.().map(({ signal }) => signal) ?? []
      const next = this.#running.findLast((each) => each !== running && signals.includes(each.abort.signal))
      if (next === undefined) pending.withdraw()
      else addTo(next, pending)
    }
  }

  isRunning(id: Id): boolean {
    const key = idKey(id)
    return this.#running.some((each) => idKey(each.id) === key)
  }

  /** Handles `notifications/cancelled`: ends the newest request of that id. */
  cancel(notice: Payload | undefined): void {
    const id: Id | undefined = notice?.raw('requestId')?.toString()
    if (notice === undefined || id === undefined) return
    const key = idKey(id)
    const running = this.#running.findLast((each) => idKey(each.id) === key)
    if (running === undefined) return this.#early.keep(key, notice)
    this.finish(running)
    running.abort.abort(notice)
    running.exchange.end()
  }

  /** Handles `notifications/progress` of a server request (B274). */
  progress(params: Payload | undefined): void {
    const token = params?.raw('progressToken')?.toString()
    if (params !== undefined && token !== undefined) this.#questions?.get(numberedId(token))?.progress?.(params)
  }

  /** Ends the requests of an exchange whose host has not resumed its stream: one, or those of a batch. */
  abandon(exchange: Exchange): void {
    const left = this.#running.filter(({ listenerExchange: own }) => own === exchange || own.batch === exchange)
    for (const running of left) {
      this.finish(running)
      running.abort.abort()
      running.exchange.end()
    }
  }

  /** Excludes time in which the process was stopped. */
  excludePause(ms: number): void {
    this.activeMs += ms
    this.startedMs += ms
  }

  onEnd(callback: () => void): () => void {
    if (this.#isEnded) callback()
    else if (this.#endCallbacks === undefined) this.#endCallbacks = [callback]
    else this.#endCallbacks.push(callback)
    return () => {
      this.#endCallbacks = this.#endCallbacks?.filter((each) => each !== callback)
    }
  }

  /** Ends the session. `why`: answer to its requests in flight; `undefined`: they get none, since the host ends the session. */
  end(why?: Failure | Refusal): void {
    if (this.#isEnded) return
    this.#isEnded = true
    for (const running of this.#running.splice(0)) {
      this.#admission.end(this.principal, running.bytes)
      if (why !== undefined) running.fail(why)
      running.abort.abort()
      running.exchange.end()
    }
    for (const { settle } of this.#questions?.values() ?? []) settle(noAnswer('the session has ended'))
    this.#questions = undefined
    this.#unsent = undefined
    this.#core?.unwatchLists(this)
    this.#core?.unsubscribe(this)
    for (const callback of this.#endCallbacks ?? []) callback()
  }

  #wantsLogLevel(params: JsonObject | undefined): boolean {
    return this.wantsLogLevel(params instanceof Payload ? params.text('level') : undefined)
  }
}

const waitingKey = (uri: string): string => `${UPDATED} ${uri}`

const addTo = (running: Running, pending: Pending): void => {
  pending.running = running
  ;(running.questions ??= new Set()).add(pending)
}

/** Removes an item; false: it was not in the list. Runs with every call, and unlike `splice` allocates nothing. */
const removeItem = <T>(list: T[], item: T): boolean => {
  const at = list.indexOf(item)
  if (at === -1) return false
  // Cast: `next` is below the length.
  for (let next = at + 1; next < list.length; next++) list[next - 1] = list[next]!
  list.pop()
  return true
}

const noAnswer = (message: string): Answer => errorAnswer(-32603, message)
