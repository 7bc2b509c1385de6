/**
 * A legacy session: the host's `initialize`, its requests in flight, and its outlets: the streams of its requests, and one outlet for
 * messages that belong to no request. A host may use one id for several requests at a time; an id then means the newest (B266).
 */
import { randomBytes } from 'node:crypto'
import { carriedCapabilities } from '../../era/host/legacy-host.ts'
import type { Introduction } from '../../era/host/legacy-host.ts'
import type { HostTransport } from '../../observe/capture/captured.ts'
import type { Cancel } from '../../rpc/cancellation.ts'
import { isBridge } from '../../rpc/call.ts'
import type {
  Answer,
  Caller,
  CallerFacts,
  Capabilities,
  ChangeListener,
  HostSession,
  Question,
  Refusal,
  Scope,
} from '../../rpc/call.ts'
import { idKey } from '../../wire/message/envelope.ts'
import type { Envelope, EnvelopeError, Id } from '../../wire/message/envelope.ts'
import type { Failure } from '../../wire/message/failure.ts'
import type { MessageEnds } from '../../wire/message/message-ends.ts'
import { notificationMessage } from '../../wire/message/message.ts'
import { CHANGED_LISTS, isLogLevel, listChangedMethod, reaches } from '../../wire/protocol/methods.ts'
import type { ChangedList, LogLevel } from '../../wire/protocol/methods.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { JsonObject } from '../../wire/message/payload.ts'
import type { LegacyRevision } from '../../wire/protocol/revisions.ts'
import { isSameFacts, withHost } from '../caller-facts.ts'
import type { Admission } from '../limits/admission.ts'
import type { EventLog } from '../response/event-log.ts'
import type { Exchange } from '../response/exchange.ts'
import type { Core, Subscriber } from '../core.ts'
import { EarlyCancellations } from './early-cancellations.ts'
import { NO_SETTINGS, SETTINGS } from './session-settings.ts'
import type { SessionSettings } from './session-settings.ts'
import type { Outlet } from './outlet.ts'
import { noAnswer, Questions } from './questions.ts'
import { COMPLETED, UPDATED, WaitingNotifications } from './waiting-notifications.ts'

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

/** What a session watches until it ends. */
export type WatchCore = Pick<Core, 'watchLists' | 'unwatchLists' | 'unsubscribe'>

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
  #questions: Questions | undefined
  /** Created with its first callback: pushing to an empty array allocates space for seventeen. */
  #endCallbacks: (() => void)[] | undefined
  readonly #admission: Pick<Admission, 'begin' | 'end'>
  #outlet: Outlet | undefined
  /** Notifications waiting for an outlet. */
  #waiting: WaitingNotifications | undefined
  /** Whether the host has sent `notifications/initialized`. */
  #isInitialized = false
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
    if (method === 'resources/unsubscribe') this.#waiting?.unsubscribed(params?.text('uri') ?? '')
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
    this.#isInitialized = true
    this.#questions?.initialized()
  }

  /** Sets the outlet for messages that belong to no request, in place of an earlier one. Returns how to remove it. */
  attach(outlet: Outlet): () => void {
    this.#outlet = outlet
    this.#waiting?.sendTo(outlet)
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
    // Without an outlet, a completed elicitation is sent on the stream of a request with a server request, or waits (B088).
    const asked = method === COMPLETED ? this.#running.findLast(({ questions }) => questions !== undefined) : undefined
    if (this.#outlet !== undefined) this.#outlet.send(parts)
    else if (asked !== undefined) asked.exchange.message(parts)
    else (this.#waiting ??= new WaitingNotifications()).keep(method, params, parts)
  }

  updated(params: Payload): void {
    this.notify(UPDATED, params)
  }

  /** Announces a subscribed resource that may have changed unnoticed, at once or with the next outlet. */
  mayHaveChanged(uri: string): void {
    this.updated(Payload.of({ uri }))
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
    this.#questions ??= new Questions(this.#isInitialized)
    if (running === undefined || running.isOver)
      return this.#questions.send(question, { outlet, outletNow: () => this.#outlet ?? outlet })
    let pending: Pending | undefined
    return this.#questions.send(question, {
      outlet,
      outletNow: () => this.outletOf(pending?.running ?? running),
      onOpen: (withdraw) => addTo(running, (pending = { running, withdraw, candidates: question.candidates })),
      onClosed: () => pending?.running.questions?.delete(pending),
    })
  }

  /** Handles a response of the host. */
  settle(message: Envelope): void {
    this.#questions?.settle(message)
  }

  /** Handles a message that was refused. */
  refused(error: Pick<EnvelopeError, 'id' | 'isCall' | 'message'>): void {
    this.#questions?.refused(error)
  }

  /** Handles a message of which only a part was read. */
  refusedPart(ends: MessageEnds, message: string): void {
    this.#questions?.refusedPart(ends, message)
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
    this.#questions?.progress(params)
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
    this.#questions?.end()
    this.#questions = undefined
    this.#core?.unwatchLists(this)
    this.#core?.unsubscribe(this)
    for (const callback of this.#endCallbacks ?? []) callback()
  }

  #wantsLogLevel(params: JsonObject | undefined): boolean {
    return this.wantsLogLevel(params instanceof Payload ? params.text('level') : undefined)
  }
}

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
