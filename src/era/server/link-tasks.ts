/**
 * The tasks that one legacy server runs on one link: their creators, and the methods of the tasks extension translated to those of
 * 2025-11-25 for modern hosts (BRIDGING 3.17, the T25 → T26 bridge).
 *
 *     host    tasks/get ──►            ──► input_required{sure}     tasks/update{sure} ──►
 *     server      tasks/get ──► input_required; tasks/result ──► elicitation/create … ◄── its answer
 */
import { complete, Refusal, ServerError } from '../../rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../../rpc/call.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import { declaresTasks, isTerminal } from '../../wire/protocol/extensions.ts'
import { answerIn, inputRequests, noAnswer, refusalOf } from '../questions.ts'
import type { PendingQuestion } from '../questions.ts'
import { addMeta, modernTask, relateTo, storedMs, unrelate } from '../task-shapes.ts'
import { within } from '../../time/within.ts'
import { SparseMap } from '../../values/sparse-map.ts'

/** How long the first `tasks/get` of a task that needs input waits for the server's question. */
const FIRST_QUESTION_MS = 500

interface Task {
  /** The creating call; `undefined`: created before a restart. */
  readonly creator: Call | undefined
  /** Removes the task after its lifetime. */
  readonly timer: NodeJS.Timeout
  /** Called when the task has ended. */
  readonly onEnd: () => void
  /** Unanswered questions by key; a key is used once. */
  readonly asked: Map<string, PendingQuestion>
  keys: number
  /** Response to `tasks/result`. */
  result: Promise<Answer> | undefined
  /** Ends the wait for the first question. */
  wake: () => void
}

/** Sends a request of the gateway on the link; `tasks/result` may take as long as the task. */
type Fetch = (method: string, params: Readonly<Record<string, unknown>>) => Promise<Payload>

export class LinkTasks {
  readonly #fetch: Fetch
  readonly #idleMs: () => number
  readonly #tasks = new SparseMap<string, Task>()

  /** `idleMs`: how long the result of an ended task is waited for. */
  constructor(fetch: Fetch, idleMs: () => number) {
    this.#fetch = fetch
    this.#idleMs = idleMs
  }

  /** Stores the task that a call has created; `task` in the modern form. */
  created(id: string, task: Payload, creator: Call, onEnd: () => void): void {
    this.#remove(id)
    this.#add(id, task.value('ttlMs'), creator, onEnd)
  }

  /** Handles a received status. Ended tasks are removed, except those with a follower that uses the tasks extension. */
  observe(id: string | undefined, status: string | undefined): void {
    const task = id === undefined ? undefined : this.#tasks.get(id)
    if (id === undefined || task === undefined || !isTerminal(status)) return
    if (isFollowed(task)) end(task)
    else this.#remove(id)
  }

  /** The call that created the task. */
  creatorOf(id: string): Call | undefined {
    return this.#tasks.get(id)?.creator
  }

  /** Asks the follower that uses the tasks extension; `undefined`: there is no such follower. */
  ask(id: string, question: Question): Promise<Answer> | undefined {
    const task = this.#tasks.get(id)
    if (task === undefined || !isFollowed(task)) return undefined
    // The host would not be shown it, so that the server would wait for the task's end.
    const refusal = task.creator && refusalOf(question, task.creator.caller.capabilities)
    if (refusal !== undefined) return Promise.resolve(refusal)
    return new Promise((answer) => {
      const key = `input-${++task.keys}`
      const params = question.params?.fresh()
      if (params !== undefined) unrelate(params)
      task.asked.set(key, { question: { ...question, params }, answer })
      question.onWithdrawn?.(() => {
        task.asked.delete(key)
        answer(noAnswer(question))
      })
      task.wake()
    })
  }

  /** Handles `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension. */
  async handle(call: Call): Promise<Outcome> {
    const id = call.target ?? ''
    if (call.method === 'tasks/get') return complete(await this.#get(id))
    if (call.method === 'tasks/update') await this.#update(id, call.resume?.responses)
    else await this.#cancel(id)
    return complete(new Draft())
  }

  /** Removes all tasks. */
  close(): void {
    for (const id of this.#tasks.keys()) this.#remove(id)
  }

  async #get(id: string): Promise<Payload> {
    const reply = await this.#fetch('tasks/get', { taskId: id })
    const task = this.#tasks.get(id) ?? this.#add(id, reply.value('ttl'))
    const status = reply.text('status')
    const draft = modernTask(reply)
    addMeta(draft, reply)
    if (isTerminal(status)) {
      if (status !== 'cancelled') await this.#addOutcome(draft, id, task)
      this.observe(id, status)
    } else {
      if (status === 'input_required' && task.asked.size === 0) await this.#firstQuestion(id, task)
      addQuestions(draft, task)
    }
    return Payload.at(join(draft.parts()))
  }

  /** Adds the outcome of the call. Any result completes a task, also one with `isError`; only a JSON-RPC error fails it (B180). */
  async #addOutcome(draft: Draft, id: string, task: Task): Promise<void> {
    const outcome = await this.#resultOfEnded(id, task)
    if ('error' in outcome) {
      draft.set('status', '"failed"')
      draft.set('error', outcome.error.parts())
      return
    }
    const result = outcome.result.fresh()
    unrelate(result)
    draft.set('status', '"completed"')
    draft.set('result', result.parts())
  }

  /** Requests `tasks/result`, during which servers ask, and waits a moment for the first question, which arrives at `ask`. */
  async #firstQuestion(id: string, task: Task): Promise<void> {
    void this.#resultOf(id, task).catch(() => undefined)
    await within(FIRST_QUESTION_MS, new Promise<void>((resolve) => (task.wake = resolve)))
  }

  /** Throws `Failure` if the server does not answer `tasks/result` of a task that it calls ended; it is requested again at the next look. */
  async #resultOfEnded(id: string, task: Task): Promise<Answer> {
    const idleMs = this.#idleMs()
    const outcome = await within(idleMs, this.#resultOf(id, task))
    if (outcome !== undefined) return outcome
    task.result = undefined
    const facts = { amount: Math.round(idleMs / 1000), limit: 'timeouts.idle' }
    throw new Failure('timeout', `no answer to tasks/result of an ended task within ${idleMs} ms (timeouts.idle)`, facts)
  }

  /** The result is requested once; again after a failure of the link. */
  #resultOf(id: string, task: Task): Promise<Answer> {
    task.result ??= this.#fetch('tasks/result', { taskId: id }).then(
      (result): Answer => ({ result }),
      (error: unknown): Answer => {
        if (error instanceof ServerError) return { error: error.error }
        task.result = undefined
        throw error
      },
    )
    return task.result
  }

  /** Ignores unknown and answered keys. Throws `Refusal` for a malformed answer, before any answer is delivered. */
  async #update(id: string, responses: Payload | undefined): Promise<void> {
    if (responses === undefined) throw new Refusal(-32602, 'params.inputResponses must be an object')
    const reply = this.#tasks.has(id) ? undefined : await this.#fetch('tasks/get', { taskId: id })
    const task = this.#tasks.get(id) ?? this.#add(id, reply?.value('ttl'))
    const answers: (() => void)[] = []
    for (const { key } of responses.members) {
      const asked = task.asked.get(key)
      if (asked === undefined) continue
      const result = answerIn(responses, key, asked.question)
      relateTo(result, id)
      answers.push(() => {
        task.asked.delete(key)
        asked.answer({ result })
      })
    }
    for (const answer of answers) answer()
  }

  /** Cancelling an ended task is not an error. */
  async #cancel(id: string): Promise<void> {
    try {
      await this.#fetch('tasks/cancel', { taskId: id })
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== -32602) throw error
      const reply = await this.#fetch('tasks/get', { taskId: id })
      if (!isTerminal(reply.text('status'))) throw error
    }
    const task = this.#tasks.get(id)
    if (task !== undefined) end(task)
  }

  #add(id: string, ttlMs: unknown, creator?: Call, onEnd = (): void => undefined): Task {
    const task: Task = {
      creator,
      timer: setTimeout(() => this.#remove(id), storedMs(ttlMs)).unref(),
      onEnd,
      asked: new Map(),
      keys: 0,
      result: undefined,
      wake: () => undefined,
    }
    this.#tasks.set(id, task)
    return task
  }

  #remove(id: string): void {
    const task = this.#tasks.get(id)
    if (task === undefined) return
    this.#tasks.delete(id)
    clearTimeout(task.timer)
    end(task)
  }
}

/** Whether a caller follows the task by the tasks extension: its creator, or a caller that knew its id before a restart. */
const isFollowed = ({ creator }: Task): boolean =>
  creator === undefined || (creator.caller.session === undefined && declaresTasks(creator.caller.capabilities))

/** Declines the questions and calls `onEnd`. */
const end = (task: Task): void => {
  for (const { question, answer } of task.asked.values()) answer(noAnswer(question))
  task.asked.clear()
  task.wake()
  task.onEnd()
}

/** Sets the status, which is `input_required` exactly while the task has open questions, and adds these. */
const addQuestions = (draft: Draft, { asked }: Task): void => {
  draft.set('status', asked.size > 0 ? '"input_required"' : '"working"')
  if (asked.size > 0) draft.set('inputRequests', inputRequests(asked))
}
