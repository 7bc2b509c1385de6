/**
 * Routes requests of legacy servers: to the host of the call they belong to, or to the configured answer; all others are declined. A
 * request never reaches a host of another principal (BRIDGING 3.0, 3.15; B048, B049, B051, B263).
 */
import { elicitationIdFor, noAnswer, QUESTION_METHODS } from '../../era/questions.ts'
import { errorAnswer, isBridge } from '../../rpc/call.ts'
import type { Answer, Call, HostSession, Question } from '../../rpc/call.ts'
import type { Fidelity } from '../../rpc/fidelity.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { isServerMethod } from '../../wire/protocol/methods.ts'
import type { ServerOptions } from '../options.ts'
import { setBounded } from '../../values/bounded-map.ts'

/** Lifetime of a modern host's roots, since it cannot announce a change. */
const ROOTS_TTL_MS = 300_000
/** The number of principals whose roots are stored. */
const MAX_ROOTS = 1_000
const MAX_SENT_AWAY = 256
/** Delay of a refusal, and the number of questions that may wait for it. */
const REFUSAL_DELAY_MS = 30_000
const MAX_DELAYED = 64

/** Possible recipients of a question. */
interface Recipients {
  /** The call that the question belongs to. */
  readonly call?: Call | undefined
  /** A call that waits for the link to open, for questions before the first call. */
  readonly waiting?: Call | undefined
  /** The session that used the link last. */
  readonly session?: HostSession | undefined
  /** The only host of the link, at a bridge: it gets questions outside of calls (B277). */
  readonly only?: HostSession | undefined
}

export class ServerRequests {
  readonly #options: () => ServerOptions
  readonly #fidelity: Fidelity
  /** Roots of modern hosts, by principal. */
  readonly #roots = new Map<string, { readonly answer: Answer; readonly untilMs: number }>()
  /** Functions that settle delayed refusals. */
  readonly #delayed = new Set<() => void>()
  /** Sessions whose person was sent to a URL, by the session's id of the elicitation: several server processes may use one id. */
  readonly #sentAway = new Map<string, { readonly original: string; readonly session: HostSession }>()

  constructor(options: () => ServerOptions, fidelity: Fidelity) {
    this.#options = options
    this.#fidelity = fidelity
  }

  /** Declines a question on a link without a host. `mayBeOfCall`: of a pending call on another link to the same process. */
  async decline(question: Question, mayBeOfCall = false): Promise<Answer> {
    if (question.method === 'roots/list') {
      const isDelayed = mayBeOfCall && question.isUnsolicited === true && this.#options().roots === undefined
      return isDelayed ? this.#delay(question, this.#configuredRoots()) : this.#configuredRoots()
    }
    if (question.isUnsolicited === true && !isServerMethod(question.method)) return this.#delay(question)
    return QUESTION_METHODS.has(question.method) ? noAnswer(question) : methodNotFound(question)
  }

  /** Answers later, unless too many wait: some servers ask on all connections and use the first answer (3.22; B295). */
  #delay(question: Question, answer = notNow(question)): Answer | Promise<Answer> {
    if (this.#delayed.size >= MAX_DELAYED) return answer
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer)
        this.#delayed.delete(settle)
        resolve(answer)
      }
      const timer = setTimeout(settle, REFUSAL_DELAY_MS).unref()
      this.#delayed.add(settle)
      question.onWithdrawn?.(settle)
    })
  }

  async ask(question: Question, { call, waiting, session, only }: Recipients): Promise<Answer> {
    if (question.method === 'roots/list') return this.#askRoots(question, call, waiting, session)
    if (!QUESTION_METHODS.has(question.method)) return this.#askOther(question, call, session)
    if (call?.ask === undefined && only !== undefined) return only.ask(question)
    if (call?.ask === undefined) {
      if (question.isUnsolicited === true) return this.#delay(question)
      this.#fidelity.note('unattributed', call)
      return errorAnswer(-32601, `no host can be asked ${question.method} now`)
    }
    const elicitationId = question.params?.text('elicitationId')
    const own = call.caller.session
    if (elicitationId !== undefined && own !== undefined) this.sentAway(elicitationId, own)
    return call.ask(question)
  }

  /** Relays a request that the protocol does not define to the host at a bridge; others are refused. */
  async #askOther(question: Question, call: Call | undefined, session: HostSession | undefined): Promise<Answer> {
    if (call?.ask !== undefined && isBridge(call.caller.scope)) return call.ask(question)
    if (call === undefined && session !== undefined && isBridge(session.scope)) return session.ask(question)
    const isDelayed = question.isUnsolicited === true && !isServerMethod(question.method)
    return isDelayed ? this.#delay(question) : methodNotFound(question)
  }

  /**
   * Notifies the session that was asked, under its own id, that an elicitation in URL mode is complete (B088). `session`: owner of the
   * link of the notification, if it has one owner; on other links the id must belong to exactly one session.
   */
  completed(original: string, session: HostSession | undefined): void {
    const asked = [...this.#sentAway].filter(
      ([, entry]) => entry.original === original && (session === undefined || entry.session === session),
    )
    const [only] = asked
    if (only === undefined || asked.length > 1) return
    const [own, entry] = only
    const elicitationId = isBridge(entry.session.scope) ? original : own
    this.#sentAway.delete(own)
    entry.session.notify('notifications/elicitation/complete', Payload.of({ elicitationId }))
  }

  async #askRoots(
    question: Question,
    call: Call | undefined,
    waiting: Call | undefined,
    session: HostSession | undefined,
  ): Promise<Answer> {
    if (this.#options().roots !== undefined) {
      this.#fidelity.note('configuredRoots', call)
      return this.#configuredRoots()
    }
    if (session !== undefined) return call?.ask?.(question) ?? this.#askSession(session, question, call)
    const principal = (call ?? waiting)?.caller.principal ?? ''
    // During a call the host is asked. Before a call, as some servers ask right after the handshake, a stored answer is used.
    const known = call === undefined ? this.#roots.get(principal) : undefined
    if (known !== undefined && known.untilMs > performance.now()) return known.answer
    const ask = (call ?? waiting)?.ask
    if (ask === undefined) return this.#noRoots(call)
    const answer = await ask(question)
    if ('result' in answer) {
      // A copy: the rest of the host's request is not kept, and its memory may be used again.
      const result = Payload.at(Buffer.from(join(answer.result.parts())))
      const untilMs = performance.now() + ROOTS_TTL_MS
      setBounded(this.#roots, principal, { answer: { result }, untilMs }, MAX_ROOTS)
    }
    return answer
  }

  /** Asks a session for roots outside of a call, if it declares them (B038). At a bridge its own refusal is relayed. */
  async #askSession(session: HostSession, question: Question, call: Call | undefined): Promise<Answer> {
    const mayBeAsked = isBridge(session.scope) || session.capabilities['roots'] !== undefined
    return mayBeAsked ? session.ask(question) : this.#noRoots(call)
  }

  #noRoots(call: Call | undefined): Answer {
    this.#fidelity.note('unattributed', call)
    return errorAnswer(-32601, 'no host can be asked for roots now')
  }

  #configuredRoots(): Answer {
    const roots = (this.#options().roots ?? []).map((root) => ({ uri: root.includes('://') ? root : `file://${root}` }))
    return { result: Payload.of({ roots }) }
  }

  /** Stores that the person of this session was sent to a URL of the server. */
  sentAway(original: string, session: HostSession): void {
    // A host at a bridge is notified over its own link.
    if (isBridge(session.scope) && this.#options().sharing === 'session') return
    const id = elicitationIdFor(session.id, this.#options().key, original)
    setBounded(this.#sentAway, id, { original, session }, MAX_SENT_AWAY)
  }
}

const notNow = (question: Question): Answer =>
  QUESTION_METHODS.has(question.method)
    ? errorAnswer(-32601, `no host can be asked ${question.method} now`)
    : methodNotFound(question)

const methodNotFound = ({ method }: Question): Answer => errorAnswer(-32601, `Method not found: ${method}`)
