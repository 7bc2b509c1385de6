/**
 * The questions of one server during one call: checks them, encodes them for the host, limits their number (BRIDGING 3.13, 3.14), and
 * remembers a refused one, since the call may fail because of it.
 */
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { noAnswer, refusalOf, requiredFor, encodeQuestion, QUESTION_METHODS } from '../../era/questions.ts'
import { encodeSampled } from '../../era/sampling.ts'
import { relatedTask, relateTo, unrelate } from '../../era/task-shapes.ts'
import { errorAnswer, isBridge, Refusal, ServerError } from '../../rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../../rpc/call.ts'
import type { DeviationName } from '../../rpc/fidelity.ts'
import { elementsAt, membersAt } from '../../wire/message/members.ts'
import { Payload, stringAt } from '../../wire/message/payload.ts'
import { isAtLeast } from '../../wire/protocol/revisions.ts'
import { askerOf } from './encode-requests.ts'

/** Sampling requests of one call, since they cost the host money. */
const MAX_SAMPLINGS = 10

interface TaskNames {
  expose(principal: string, server: string, original: string): string
}

export class Asked {
  readonly #call: Call
  readonly #downstream: Downstream
  readonly #view: View
  readonly #ids: TaskNames
  /** Whether the host knows the task of the call: it has requested one. A task that only the gateway follows is unknown to the host. */
  readonly #knowsTasks: boolean
  #samplings = 0
  /** The capabilities that the host lacks, and the message of the refusal to the server. */
  #missing: { readonly capabilities: object; readonly message: string } | undefined

  /** Created for every call and rarely used, so it only stores its inputs. */
  constructor(call: Call, downstream: Downstream, view: View, ids: TaskNames) {
    this.#call = call
    this.#downstream = downstream
    this.#view = view
    this.#ids = ids
    this.#knowsTasks = call.method !== 'tools/call' || !call.params.isAbsent('task')
  }

  readonly ask = async (question: Question): Promise<Answer> => {
    const { ask, caller } = this.#call
    if (!QUESTION_METHODS.has(question.method)) return this.#askOther(question)
    if (this.#call.isUnchanged === true && ask !== undefined && caller.session !== undefined) return ask(question)
    const refusal = refusalOf(question, caller.capabilities)
    if (refusal !== undefined) {
      this.#note('undeclared')
      if ('error' in refusal)
        this.#missing = { capabilities: requiredFor(question), message: refusal.error.text('message') ?? '' }
      return refusal
    }
    // This request cannot end with a question (BRIDGING 3.13 rule 1).
    if (ask === undefined) {
      this.#note('notNow')
      return noAnswer(question)
    }
    if (question.method === 'sampling/createMessage' && ++this.#samplings > MAX_SAMPLINGS)
      return errorAnswer(-1, `more than ${MAX_SAMPLINGS} sampling requests in one call`)
    const asker = askerOf(this.#downstream, this.#view, caller)
    const encoded = encodeQuestion(question, asker, caller, (deviation) => this.#note(deviation))
    if (!('method' in encoded)) return encoded
    if (caller.session === undefined) this.#note('askedByRound')
    const answer = await this.#related(encoded, ask)
    return question.method === 'sampling/createMessage' ? encodeSampled(answer, asker.revision) : answer
  }

  /** Relays a request that the protocol does not define to a legacy host at a bridge; other hosts do not get it. */
  async #askOther(question: Question): Promise<Answer> {
    const { ask, caller } = this.#call
    if (ask !== undefined && caller.session !== undefined && isBridge(caller.scope)) return ask(question)
    return errorAnswer(-32601, `Method not found: ${question.method}`)
  }

  /** Translates the task id of a question and of its end for the host, and of progress and the answer for the server (B182). */
  async #related(question: Question, ask: NonNullable<Call['ask']>): Promise<Answer> {
    const { params } = question
    const task = relatedTask(params)
    if (params === undefined || task === undefined) return ask(question)
    const { session, revision } = this.#call.caller
    const exposed = session !== undefined && isAtLeast(revision, '2025-11-25') ? this.#expose(task) : undefined
    relateAs(params, exposed)
    const { onWithdrawn, progress } = question
    const answer = await ask({
      ...question,
      ...(onWithdrawn && { onWithdrawn: (callback) => onWithdrawn((notice) => callback(notice && relatedAs(notice, exposed))) }),
      ...(progress && { progress: (said) => progress(relatedAs(said, task)) }),
    })
    if ('result' in answer) relateTo(answer.result, task)
    return answer
  }

  /** The host's id of a task of the server; `undefined`: the host does not know the task. */
  #expose(original: string): string | undefined {
    const { principal } = this.#call.caller
    return this.#knowsTasks ? this.#ids.expose(principal, this.#downstream.options.key, original) : undefined
  }

  #note(deviation: DeviationName): void {
    this.#downstream.fidelity.note(deviation, this.#call)
  }

  /**
   * Throws -32021 if a call of a modern host failed only because a question was refused, so that the host can declare the capability and
   * try again (BRIDGING 5.1 row 16). That is a result with `isError` whose only text is the refusal, as SDKs build it if the tool does not
   * catch the error. Other results of the tool are relayed.
   */
  refuseIfMissing({ result }: Outcome): void {
    if (this.#missing === undefined || !(result instanceof Payload) || result.raw('isError')?.toString() !== 'true') return
    const content = result.member('content')
    const blocks = content === undefined ? [] : elementsAt(result.bytes, content.start)
    const [text, ...others] = blocks.map(({ start }) => membersAt(result.bytes, start).find(({ key }) => key === 'text'))
    if (others.length === 0 && text !== undefined && stringAt(result.bytes, text) === this.#missing.message)
      throw this.#refusal(this.#missing)
  }

  /** The error of a call, or -32021 if the error reports the refusal of a question. */
  refused(error: unknown): unknown {
    const isOfRefusal =
      this.#missing !== undefined &&
      this.#call.caller.session === undefined &&
      error instanceof ServerError &&
      error.message.includes(this.#missing.message)
    return isOfRefusal && this.#missing !== undefined ? this.#refusal(this.#missing) : error
  }

  #refusal({ capabilities }: { readonly capabilities: object }): Refusal {
    const data = { requiredCapabilities: capabilities }
    return new Refusal(-32021, 'the server needs a capability that the request does not declare', { status: 400, data })
  }
}

/** Replaces the task id of a message that has one; `undefined`: removes it. */
const relateAs = (params: Payload, task: string | undefined): void => {
  if (relatedTask(params) === undefined) return
  if (task === undefined) unrelate(params)
  else relateTo(params, task)
}

/** A copy with that id. */
const relatedAs = (params: Payload, task: string | undefined): Payload => {
  const copy = params.fresh()
  relateAs(copy, task)
  return copy.settled()
}
