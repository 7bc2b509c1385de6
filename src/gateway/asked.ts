/**
 * What one server asked during one call: only what the host can answer, in words it knows, and not without end
 * (BRIDGING 3.13, 3.14); and what it asked in vain, because that may be why the call fails.
 */
import type { View } from '../catalog/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import { noAnswer, refusalOf, wordQuestion } from '../era/questions.ts'
import { wordSampled } from '../era/sampling.ts'
import { relatedTask, relateTo, unrelate } from '../era/task-shapes.ts'
import { Refusal } from '../rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../rpc/call.ts'
import type { DeviationName } from '../rpc/fidelity.ts'
import { Payload } from '../wire/payload.ts'
import { isAtLeast } from '../wire/revisions.ts'
import { askerOf } from './wording.ts'

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
  #missing: object | undefined

  /** Made for every call, and nearly never asked: it only keeps what it would need. */
  constructor(call: Call, downstream: Downstream, view: View, ids: TaskNames) {
    this.#call = call
    this.#downstream = downstream
    this.#view = view
    this.#ids = ids
    this.#knowsTasks = call.method !== 'tools/call' || call.params.has('task')
  }

  readonly ask = async (question: Question): Promise<Answer> => {
    const { ask, caller } = this.#call
    const refusal = refusalOf(question, caller.capabilities)
    if (refusal !== undefined) {
      this.#note('undeclared')
      this.#missing = CAPABILITIES[question.method]
      return refusal
    }
    // No request of this host may end with a question now (BRIDGING 3.13 rule 1).
    if (ask === undefined) {
      this.#note('notNow')
      return noAnswer(question)
    }
    if (question.method === 'sampling/createMessage' && ++this.#samplings > MAX_SAMPLINGS)
      return error(-1, `more than ${MAX_SAMPLINGS} sampling requests in one call`)
    const asker = askerOf(this.#downstream, this.#view)
    const worded = wordQuestion(question, asker, caller, (deviation) => this.#note(deviation))
    if (!('method' in worded)) return worded
    if (caller.session === undefined) this.#note('askedByRound')
    const answer = await this.#related(worded, ask)
    return question.method === 'sampling/createMessage' ? wordSampled(answer, asker.revision) : answer
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

  /** A call that failed after asking in vain: a modern host can declare what was missing and try again (BRIDGING 5.1 row 16). */
  refuseIfMissing({ result }: Outcome): void {
    const hasFailed = result instanceof Payload && result.raw('isError')?.toString() === 'true'
    if (this.#missing === undefined || !hasFailed) return
    const data = { requiredCapabilities: this.#missing }
    throw new Refusal(-32021, 'the server needs a capability that the request does not declare', { status: 400, data })
  }
}

const error = (code: number, message: string): Answer => ({ error: Payload.of({ code, message }) })
