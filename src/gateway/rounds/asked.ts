/**
 * What one server asked during one call: only what the host can answer, in words it knows, and not without end
 * (BRIDGING 3.13, 3.14); and what it asked in vain, because that may be why the call fails.
 */
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { noAnswer, refusalOf, encodeQuestion, QUESTION_METHODS } from '../../era/questions.ts'
import { encodeSampled } from '../../era/sampling.ts'
import { relatedTask, relateTo, unrelate } from '../../era/task-shapes.ts'
import { isBridge, Refusal, ServerError } from '../../rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../../rpc/call.ts'
import type { DeviationName } from '../../rpc/fidelity.ts'
import { elementsAt, membersAt } from '../../wire/message/members.ts'
import { Payload, stringAt } from '../../wire/message/payload.ts'
import { isAtLeast } from '../../wire/protocol/revisions.ts'
import { askerOf } from './encode-requests.ts'

/** Sampling costs the host money. */
const MAX_SAMPLINGS = 10
/** What a host would have had to declare ([2026-07-28 basic/index], -32021). */
const CAPABILITIES: Readonly<Record<string, object>> = {
  'elicitation/create': { elicitation: { form: {} } },
  'sampling/createMessage': { sampling: {} },
  'roots/list': { roots: {} },
}

/** Ids of tasks as hosts know them. */
interface TaskNames {
  expose(principal: string, server: string, original: string): string
}

export class Asked {
  readonly #call: Call
  readonly #downstream: Downstream
  readonly #view: View
  readonly #ids: TaskNames
  /** A task that only we follow is none that the host knows of: what it asked for itself counts. */
  readonly #knowsTasks: boolean
  #samplings = 0
  /** What the host would have had to declare, and the message with which its server was refused. */
  #missing: { readonly capabilities: object; readonly message: string } | undefined

  /** Made for every call, and nearly never asked: it only keeps what it would need. */
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
    if (this.#call.isAsItCame === true && ask !== undefined && caller.session !== undefined) return ask(question)
    const refusal = refusalOf(question, caller.capabilities)
    if (refusal !== undefined) {
      this.#note('undeclared')
      if ('error' in refusal)
        this.#missing = { capabilities: CAPABILITIES[question.method] ?? {}, message: refusal.error.text('message') ?? '' }
      return refusal
    }
    // No request of this host may end with a question now (BRIDGING 3.13 rule 1).
    if (ask === undefined) {
      this.#note('notNow')
      return noAnswer(question)
    }
    if (question.method === 'sampling/createMessage' && ++this.#samplings > MAX_SAMPLINGS)
      return error(-1, `more than ${MAX_SAMPLINGS} sampling requests in one call`)
    const asker = askerOf(this.#downstream, this.#view, caller)
    const encoded = encodeQuestion(question, asker, caller, (deviation) => this.#note(deviation))
    if (!('method' in encoded)) return encoded
    if (caller.session === undefined) this.#note('askedByRound')
    const answer = await this.#related(encoded, ask)
    return question.method === 'sampling/createMessage' ? encodeSampled(answer, asker.revision) : answer
  }

  /** A modern host is asked by what its revision defines alone. */
  async #askOther(question: Question): Promise<Answer> {
    const { ask, caller } = this.#call
    if (ask !== undefined && caller.session !== undefined && isBridge(caller.scope)) return ask(question)
    return error(-32601, `Method not found: ${question.method}`)
  }

  /** A question that belongs to a task names it in the host's words, and the answer in the server's (B182). */
  async #related(question: Question, ask: NonNullable<Call['ask']>): Promise<Answer> {
    const { params } = question
    const task = relatedTask(params)
    if (params === undefined || task === undefined) return ask(question)
    const { session, revision } = this.#call.caller
    const exposed = session !== undefined && isAtLeast(revision, '2025-11-25') ? this.#expose(task) : undefined
    if (exposed === undefined) unrelate(params)
    else relateTo(params, exposed)
    const answer = await ask(question)
    if ('result' in answer) relateTo(answer.result, task)
    return answer
  }

  /** The id under which the host knows a task of the server, if it knows of it. */
  #expose(original: string): string | undefined {
    const { principal } = this.#call.caller
    return this.#knowsTasks ? this.#ids.expose(principal, this.#downstream.options.key, original) : undefined
  }

  #note(deviation: DeviationName): void {
    this.#downstream.fidelity.note(deviation, this.#call)
  }

  /**
   * A call of a modern host that got no result because its server was refused a question: the host can declare what was missing and
   * try again (BRIDGING 5.1 row 16). A tool's own result is relayed, also that of a tool that fails for a reason of its own; no
   * result is one that says the refusal and nothing else, which is what SDKs make of it where the tool does not catch it.
   */
  refuseIfMissing({ result }: Outcome): void {
    if (this.#missing === undefined || !(result instanceof Payload) || result.raw('isError')?.toString() !== 'true') return
    const content = result.member('content')
    const blocks = content === undefined ? [] : elementsAt(result.bytes, content.start)
    const words = blocks.map(({ start }) => membersAt(result.bytes, start).find(({ key }) => key === 'text'))
    if (words.length === 1 && words[0] !== undefined && stringAt(result.bytes, words[0]) === this.#missing.message)
      throw this.#refusal(this.#missing)
  }

  /** The error of a call, or the refusal of which it tells. */
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

const error = (code: number, message: string): Answer => ({ error: Payload.of({ code, message }) })
