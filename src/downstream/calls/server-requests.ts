/**
 * Routes the requests of legacy servers: to the host of the call they belong to, or to the configured answer. All others are
 * declined; a request never reaches a host of another principal (BRIDGING 3.0, 3.15; B048, B049, B051, B263).
 */
import { elicitationIdFor, noAnswer, QUESTION_METHODS } from '../../era/questions.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Answer, Call, HostSession, Question } from '../../rpc/call.ts'
import type { Fidelity } from '../../rpc/fidelity.ts'
import { Payload } from '../../wire/message/payload.ts'
import { isServerMethod } from '../../wire/protocol/methods.ts'
import type { ServerOptions } from '../options.ts'

/** A modern host's roots are believed this long, since it cannot announce a change. */
const ROOTS_TTL_MS = 300_000
const MAX_SENT_AWAY = 256
/** How long a question that nothing here answers stays open, and how many may. */
const LEFT_MS = 30_000
const MAX_LEFT = 64

/** Whom a question of a server may be for. */
export interface Askable {
  /** The call it belongs to. */
  readonly call?: Call | undefined
  /** A call that waits for this link, for questions before any call. */
  readonly waiting?: Call | undefined
  /** The session that used the link last. */
  readonly session?: HostSession | undefined
  /** The host at a bridge that the link serves alone: it is asked whatever belongs to no call (B277). */
  readonly only?: HostSession | undefined
}

export class ServerRequests {
  readonly #options: () => ServerOptions
  readonly #fidelity: Fidelity
  /** Roots that modern hosts gave, by principal. */
  readonly #roots = new Map<string, { readonly answer: Answer; readonly untilMs: number }>()
  /** Questions that nothing here answers; how to refuse each. */
  readonly #open = new Set<() => void>()
  /** Sessions whose person was sent to a URL, by their own id for it: servers in processes of their own give one id to many. */
  readonly #sentAway = new Map<string, { readonly original: string; readonly session: HostSession }>()

  constructor(options: () => ServerOptions, fidelity: Fidelity) {
    this.#options = options
    this.#fidelity = fidelity
  }

  /**
   * On a link that serves no host: declined, at once where it is asked within one of our own requests. `mayBeOfCall`: a call is under
   * way on another link to the same process, and the question may be of that call.
   */
  async decline(question: Question, mayBeOfCall = false): Promise<Answer> {
    if (question.method === 'roots/list') {
      const isLeft = mayBeOfCall && question.isUnsolicited === true && this.#options().roots === undefined
      return isLeft ? this.#leave(question, this.#configuredRoots()) : this.#configuredRoots()
    }
    if (question.isUnsolicited === true && !isServerMethod(question.method)) return this.#leave(question)
    return QUESTION_METHODS.has(question.method) ? noAnswer(question) : methodNotFound(question)
  }

  /**
   * Answers a question after a while only: it may have been asked on every connection of the server, whose first answer wins (BRIDGING
   * 3.22; B295). Of very many none is left open.
   */
  #leave(question: Question, answer = notNow(question)): Answer | Promise<Answer> {
    if (this.#open.size >= MAX_LEFT) return answer
    return new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer)
        this.#open.delete(settle)
        resolve(answer)
      }
      const timer = setTimeout(settle, LEFT_MS).unref()
      this.#open.add(settle)
      question.onWithdrawn?.(settle)
    })
  }

  async ask(question: Question, { call, waiting, session, only }: Askable): Promise<Answer> {
    if (question.method === 'roots/list') return this.#askRoots(question, call, waiting, session)
    if (!QUESTION_METHODS.has(question.method)) return this.#askOther(question, call, session)
    if (call?.ask === undefined && only !== undefined) return only.ask(question)
    if (call?.ask === undefined) {
      if (question.isUnsolicited === true) return this.#leave(question)
      this.#fidelity.note('unattributed', call)
      return error(-32601, `no host can be asked ${question.method} now`)
    }
    const elicitationId = question.params?.text('elicitationId')
    const own = call.caller.session
    if (elicitationId !== undefined && own !== undefined) this.sentAway(elicitationId, own)
    return call.ask(question)
  }

  /** What is no question of the protocol is between a host at a bridge and its server. */
  async #askOther(question: Question, call: Call | undefined, session: HostSession | undefined): Promise<Answer> {
    if (call?.ask !== undefined && isBridge(call.caller.scope)) return call.ask(question)
    if (call === undefined && session !== undefined && isBridge(session.scope)) return session.ask(question)
    const isLeft = question.isUnsolicited === true && !isServerMethod(question.method)
    return isLeft ? this.#leave(question) : methodNotFound(question)
  }

  /**
   * What a person was sent away to do is done: the session that was asked hears of it, under its own id (B088). `session`: whose
   * link it was said on, if that is one session's own; on any other link only an id that one session has is beyond doubt.
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
    if (session !== undefined) return call?.ask?.(question) ?? session.ask(question)
    const principal = (call ?? waiting)?.caller.principal ?? ''
    // In the middle of a call the host is asked; before any, as legacy servers do right after the handshake, it may have said it.
    const known = call === undefined ? this.#roots.get(principal) : undefined
    if (known !== undefined && known.untilMs > performance.now()) return known.answer
    const ask = (call ?? waiting)?.ask
    if (ask === undefined) {
      this.#fidelity.note('unattributed', call)
      return error(-32601, 'no host can be asked for roots now')
    }
    const answer = await ask(question)
    if ('result' in answer) this.#roots.set(principal, { answer, untilMs: performance.now() + ROOTS_TTL_MS })
    return answer
  }

  #configuredRoots(): Answer {
    const roots = (this.#options().roots ?? []).map((root) => ({ uri: root.includes('://') ? root : `file://${root}` }))
    return { result: Payload.of({ roots }) }
  }

  /** A person of this session is on the way to a URL of the server. */
  sentAway(original: string, session: HostSession): void {
    // A host at a bridge is told by its own link.
    if (isBridge(session.scope) && this.#options().sharing === 'session') return
    const [oldest] = this.#sentAway.keys()
    if (this.#sentAway.size >= MAX_SENT_AWAY && oldest !== undefined) this.#sentAway.delete(oldest)
    this.#sentAway.set(elicitationIdFor(session.id, this.#options().key, original), { original, session })
  }
}

const notNow = (question: Question): Answer =>
  QUESTION_METHODS.has(question.method) ? error(-32601, `no host can be asked ${question.method} now`) : methodNotFound(question)

const methodNotFound = ({ method }: Question): Answer => error(-32601, `Method not found: ${method}`)

const error = (code: number, message: string): Answer => ({ error: Payload.of({ code, message }) })
