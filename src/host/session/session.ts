/**
 * What a legacy host told us once, and the ways to reach it: the streams of its requests, and one way for what belongs to no
 * request. The surprise: a host may use one id for several requests at a time, so ids only ever find the newest (B266).
 */
import { randomBytes } from 'node:crypto'
import type { Introduction } from '../../era/host/legacy-host.ts'
import type { HostTransport } from '../../observe/capture/captured.ts'
import { cancelledParams } from '../../rpc/connection.ts'
import type { Cancel } from '../../rpc/cancellation.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Answer, Caller, CallerFacts, Capabilities, Flow, HostSession, Question, Refusal, Scope } from '../../rpc/call.ts'
import { idKey } from '../../wire/message/envelope.ts'
import type { Envelope, Id } from '../../wire/message/envelope.ts'
import type { Failure } from '../../wire/message/failure.ts'
import { notificationMessage, requestMessage } from '../../wire/message/message.ts'
import { isLogLevel, reaches } from '../../wire/protocol/methods.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { JsonObject, Parts } from '../../wire/message/payload.ts'
import type { LegacyRevision } from '../../wire/protocol/revisions.ts'
import { isSameFacts, withHost } from '../caller-facts.ts'
import type { Admission } from '../limits/admission.ts'
import type { EventLog } from '../response/event-log.ts'
import type { Exchange } from '../response/exchange.ts'
import type { Subscriber } from '../core.ts'
import { NO_SETTINGS, SETTINGS } from './session-settings.ts'
import type { SessionSettings } from './session-settings.ts'

/** A host's request that is under way. */
export interface Running {
  readonly id: Id
  readonly exchange: Exchange
  /** The exchange as the listener made it; `exchange` may stand around it. */
  readonly way: Exchange
  readonly abort: Cancel
  /** Answers it with an error. */
  readonly fail: (error: unknown) => void
  readonly method: string
  /** Of the request as it came. */
  readonly bytes: number
  /** Its answer is out: whatever still comes for it goes the session's own way. */
  isOver: boolean
  /** What the host was asked for it and has not answered, once it has been asked anything. */
  questions: Set<Pending> | undefined
}

/** A question of one request, as long as it is not answered. */
interface Pending {
  /** The request that ended with it. */
  running: Running
  /** Takes it back. */
  readonly withdraw: () => void
  readonly candidates: Question['candidates']
}

/** A question that the host has not answered. */
interface Open {
  readonly settle: (answer: Answer) => void
  readonly progress: Question['progress']
}

/** Where messages go that belong to no request. */
export interface Outlet {
  readonly flow?: Flow | undefined
  send(parts: Parts): void
}

/** A host that has not said `initialized` by then counts as one that cannot be asked. */
const INITIALIZED_WAIT_MS = 10_000
const CHANGES = new Set([
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
])

const COMPLETED = 'notifications/elicitation/complete'
const UPDATED = 'notifications/resources/updated'
const MAX_WAITING = 32

export class Session implements HostSession, Subscriber {
  /** Holds 128 random bits: what the host presents over HTTP, and nothing it could guess (B197). */
  readonly id: string
  readonly principal: string
  readonly revision: LegacyRevision
  readonly capabilities: Capabilities
  /** Self-reported, for display only. */
  readonly clientInfo: unknown
  /** How it comes in. */
  readonly transport: HostTransport
  /** The session as a caller; replaced when the scopes of its credential change. */
  caller: Caller
  startedMs = performance.now()
  settings: SessionSettings = NO_SETTINGS
  /** What was streamed to it, where its transport can resume. */
  log: EventLog | undefined
  activeMs = performance.now()
  /** Runs when it sees another part than before. */
  onSee: (() => void) | undefined
  /** Runs when its host has set something else. */
  onSet: ((settings: SessionSettings) => void) | undefined
  /** Oldest first; at most `in_flight_per_session`, so that looking through it is the fastest way to find one. */
  readonly #running: Running[] = []
  /** Made when first needed, like the next: most sessions are never asked, and there may be ten thousand. */
  #questions: Map<Id, Open> | undefined
  /** A list of one from its first on: an empty one that is added to has room for seventeen. */
  #endCallbacks: (() => void)[] | undefined
  readonly #admission: Pick<Admission, 'begin' | 'end'>
  readonly #introduction: Introduction
  #outlet: Outlet | undefined
  /** What could not be told yet: list changes, at most one of a kind, resources to read again, and visits that are done. */
  #waiting: Map<string, Parts> | undefined
  #nextQuestion = 1
  /** Part of the ids of questions: a late answer to a process before, which the session has outlived, is an answer to none of ours. */
  #questionTag: string | undefined
  /** The host has said `initialized`; before that its questions wait here, by their ids, with how to send them. */
  #isInitialized = false
  #held: Map<Id, () => void> | undefined
  #isEnded = false

  constructor(
    introduction: Introduction,
    principal: string,
    scope: Scope,
    admission: Pick<Admission, 'begin' | 'end'>,
    id = randomBytes(16).toString('base64url'),
    transport: HostTransport = 'stdio',
  ) {
    this.transport = transport
    this.clientInfo = introduction.clientInfo
    this.id = id
    this.#admission = admission
    this.revision = introduction.revision
    this.capabilities = introduction.capabilities
    this.principal = principal
    this.#introduction = introduction
    this.caller = this.#callerFor(scope)
  }

  get scope(): Scope {
    return this.caller.scope
  }

  get logLevel(): LogLevel | undefined {
    return this.settings.level
  }

  /** A request of this method was answered with a result. */
  accepted(method: string, params: Payload | undefined): void {
    const settings = SETTINGS.get(method)?.(this.settings, params) ?? this.settings
    if (settings === this.settings) return
    this.settings = settings
    this.onSet?.(settings)
  }

  /** What the credential of its latest request may see, and whether the endpoint is a bridge by now. */
  see(scope: Scope, facts?: CallerFacts): void {
    const isSameScope = scope.granted === this.scope.granted && scope.server === this.scope.server
    if (isSameScope && isSameFacts(this.caller.facts, facts)) return
    this.caller = this.#callerFor(scope, facts)
    if (!isSameScope) this.onSee?.()
  }

  #callerFor(scope: Scope, facts?: CallerFacts): Caller {
    const { principal, revision, capabilities } = this
    const told = isBridge(scope) ? { clientInfo: this.#introduction.clientInfo } : undefined
    const known = facts && { facts: withHost(facts, this.#introduction.clientInfo) }
    return { principal, revision, capabilities, scope, session: this, ...told, ...known }
  }

  get isEnded(): boolean {
    return this.#isEnded
  }
  get inFlight(): number {
    return this.#running.length
  }
  get isStalled(): boolean {
    return this.#outlet?.flow?.isStalled === true || this.#running.some(({ exchange }) => exchange.flow?.isStalled === true)
  }
  get hasOutlet(): boolean {
    return this.#outlet !== undefined
  }

  /** The host has said `initialized`: from now on it may be asked (B028). */
  initialized(): void {
    const held = this.#held
    this.#isInitialized = true
    this.#held = undefined
    for (const send of held?.values() ?? []) send()
  }

  /** From now on unsolicited messages go here; the newest wins. Returns how to take it away again. */
  attach(outlet: Outlet): () => void {
    this.#outlet = outlet
    for (const parts of this.#waiting?.values() ?? []) outlet.send(parts)
    this.#waiting = undefined
    return () => {
      if (this.#outlet === outlet) this.#outlet = undefined
    }
  }

  /** Where what belongs to this request goes now: its own stream, or after its answer, or a disconnect before it, the session's way. */
  outletOf({ exchange, isOver }: Running): Outlet | undefined {
    return isOver || exchange.isGone === true ? this.#outlet : { send: (parts) => exchange.message(parts) }
  }

  notify(method: string, params: JsonObject | undefined): void {
    if (method === 'notifications/message' && !this.#hears(params)) return
    const parts = notificationMessage(method, params?.parts())
    if (this.#outlet !== undefined) this.#outlet.send(parts)
    else if (CHANGES.has(method)) (this.#waiting ??= new Map()).set(method, parts)
    else if (method === COMPLETED) this.#tellCompleted(parts)
  }

  /** Without a way of its own it goes where the host was asked to visit, or waits for a way (B088). */
  #tellCompleted(parts: Parts): void {
    const asked = this.#running.findLast(({ questions }) => questions !== undefined)
    if (asked !== undefined) return asked.exchange.message(parts)
    this.#waiting ??= new Map()
    if (this.#waiting.size < MAX_WAITING) this.#waiting.set(`${COMPLETED} ${this.#nextQuestion++}`, parts)
  }

  updated(params: Payload): void {
    this.notify(UPDATED, params)
  }

  /** A resource that it watches may have changed while no process watched it; it is told once it can be. */
  mayHaveChanged(uri: string): void {
    const params = Payload.of({ uri })
    if (this.#outlet !== undefined) this.updated(params)
    else (this.#waiting ??= new Map()).set(`${UPDATED} ${uri}`, notificationMessage(UPDATED, params.parts()))
  }

  /** Whether a log message is as severe as the host asked for; before it asked, servers choose (BRIDGING 3.11). */
  hears(level: string | undefined): boolean {
    return this.logLevel === undefined || isBridge(this.scope) || !isLogLevel(level) || reaches(level, this.logLevel)
  }

  ask(question: Question): Promise<Answer> {
    return this.#ask(this.#outlet, question)
  }

  /** Asks on the stream of one request; the question is withdrawn when that request ends. */
  askDuring(running: Running, question: Question): Promise<Answer> {
    return this.#ask(this.outletOf(running), question, running)
  }

  /** Settles with an error answer if there is no way to ask, if the question is taken back, or when the session ends. */
  #ask(outlet: Outlet | undefined, question: Question, running?: Running): Promise<Answer> {
    if (outlet === undefined || this.#isEnded) return Promise.resolve(noAnswer('the host cannot be reached now'))
    return new Promise((resolve) => {
      const id = `"q${(this.#questionTag ??= randomBytes(6).toString('base64url'))}-${this.#nextQuestion++}"`
      const withdraw = (notice?: Payload): void => {
        forget()
        if (this.#questions?.delete(id) !== true) return
        const parts = cancelledParams(id, 'not needed any more', notice)
        const way = pending === undefined ? outlet : this.outletOf(pending.running)
        if (this.#held?.delete(id) !== true) way?.send(notificationMessage('notifications/cancelled', parts))
        resolve(noAnswer('the question was taken back'))
      }
      const pending: Pending | undefined =
        running === undefined || running.isOver ? undefined : { running, withdraw, candidates: question.candidates }
      const forget = (): void => void (pending !== undefined && pending.running.questions?.delete(pending))
      this.#questions ??= new Map()
      const settle = (answer: Answer): void => {
        forget()
        resolve(answer)
      }
      this.#questions.set(id, { settle, progress: question.progress })
      // The id names the question among all of this session's, so it is its progress token, too.
      if (question.progress !== undefined) question.params?.setIn('_meta', 'progressToken', id)
      if (pending !== undefined) keepFor(pending.running, pending)
      question.onWithdrawn?.(withdraw)
      const send = (): void => outlet.send(requestMessage(id, question.method, question.params?.parts()))
      if (this.#isInitialized) send()
      else this.#hold(id, send)
    })
  }

  #hold(id: Id, send: () => void): void {
    this.#held ??= new Map()
    this.#held.set(id, send)
    const giveUp = (): void => {
      if (this.#held?.delete(id) === true) this.#answer(id, noAnswer('the host has not said notifications/initialized'))
    }
    setTimeout(giveUp, INITIALIZED_WAIT_MS).unref()
  }

  /** The host answers one of our questions; late and foreign answers are dropped. */
  settle(message: Envelope): void {
    const { id, result, error } = message
    if (id === undefined) return
    if (result !== undefined) this.#answer(id, { result })
    else if (error !== undefined) this.#answer(id, { error })
  }

  #answer(id: Id, answer: Answer): void {
    const open = this.#questions?.get(id)
    this.#questions?.delete(id)
    open?.settle(answer)
  }

  begin(running: Running): void {
    this.#running.push(running)
    this.#admission.begin(this.principal, running.bytes)
  }

  finish(running: Running): void {
    this.activeMs = performance.now()
    if (running.questions !== undefined) this.#endQuestions(running, running.questions)
    running.isOver = true
    if (!remove(this.#running, running)) return
    this.#admission.end(this.principal, running.bytes)
  }

  /** What the host was asked for a request is not needed any more, unless it may be of another request that is under way (B262). */
  #endQuestions(running: Running, questions: ReadonlySet<Pending>): void {
    for (const pending of questions) {
      const signals = pending.candidates?.().map(({ signal }) => signal) ?? []
      const next = this.#running.findLast((each) => each !== running && signals.includes(each.abort.signal))
      if (next === undefined) pending.withdraw()
      else keepFor(next, pending)
    }
  }

  isRunning(id: Id): boolean {
    const key = idKey(id)
    return this.#running.some((each) => idKey(each.id) === key)
  }

  /** `notifications/cancelled`: ends the newest request of that id, if there is one. */
  cancel(notice: Payload | undefined): void {
    const id: Id | undefined = notice?.raw('requestId')?.toString()
    if (id === undefined) return
    const key = idKey(id)
    const running = this.#running.findLast((each) => idKey(each.id) === key)
    if (running === undefined) return
    this.finish(running)
    running.abort.abort(notice)
    running.exchange.end()
  }

  /** `notifications/progress`: how far the host is with the answer to one of our questions (B274). */
  progress(params: Payload | undefined): void {
    const token = params?.raw('progressToken')?.toString()
    if (params !== undefined && token !== undefined) this.#questions?.get(token)?.progress?.(params)
  }

  /** Gives up the request of this exchange: the host did not resume its stream. */
  abandon(way: Exchange): void {
    const running = this.#running.find((each) => each.way === way)
    if (running === undefined) return
    this.finish(running)
    running.abort.abort()
    running.exchange.end()
  }

  /** Time that passed while the process was stopped does not count. */
  forgive(ms: number): void {
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

  /** `why`: what its requests under way are answered with; nothing where the host itself ends it. */
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
    this.#held = undefined
    for (const callback of this.#endCallbacks ?? []) callback()
  }

  #hears(params: JsonObject | undefined): boolean {
    return this.hears(params instanceof Payload ? params.text('level') : undefined)
  }
}

const keepFor = (running: Running, pending: Pending): void => {
  pending.running = running
  ;(running.questions ??= new Set()).add(pending)
}

/** False if it was not there. Unlike `splice` it makes nothing, for it runs with every call. */
const remove = <T>(list: T[], item: T): boolean => {
  const at = list.indexOf(item)
  if (at === -1) return false
  // Cast: `next` is below the length.
  for (let next = at + 1; next < list.length; next++) list[next - 1] = list[next]!
  list.pop()
  return true
}

const noAnswer = (message: string): Answer => ({ error: Payload.of({ code: -32603, message }) })
