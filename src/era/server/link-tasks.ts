/**
 * The tasks that one legacy server runs on one link: the creator of each, and the methods of the extension on top of those of
 * 2025-11-25, for modern hosts (BRIDGING 3.17, the T25 → T26 bridge).
 *
 *     host    tasks/get ──►            ──► input_required{sure}     tasks/update{sure} ──►
 *     server      tasks/get ──► input_required; tasks/result ──► elicitation/create … ◄── its answer
 */
import { complete, Refusal, ServerError } from '../../rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../../rpc/call.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import { declaresTasks, isTerminal } from '../../wire/protocol/extensions.ts'
import { isAnswerTo, noAnswer } from '../questions.ts'
import { modernTask, relateTo, unrelate } from '../task-shapes.ts'

/** How long the first `tasks/get` of a task that needs input waits for the server's question. */
const FIRST_QUESTION_MS = 500
/** Unlimited tasks are forgotten after this. */
const MAX_KEPT_MS = 24 * 3_600_000

interface Asked {
  readonly question: Question
  readonly answer: (answer: Answer) => void
}

interface Kept {
  /** The creating call; `undefined`: created before a restart. */
  readonly creator: Call | undefined
  /** Forgets it when its time is over. */
  readonly timer: NodeJS.Timeout
  /** Runs when the task has ended. */
  readonly onEnd: () => void
  /** Unanswered questions, under keys that are never used again. */
  readonly asked: Map<string, Asked>
  keys: number
  result: Promise<Answer> | undefined
  wake: () => void
}

/** Requests of our own on the link; `tasks/result` may take as long as the task. */
export type Fetch = (method: string, params: Readonly<Record<string, unknown>>) => Promise<Payload>

export class LinkTasks {
  readonly #fetch: Fetch
  readonly #kept = new Map<string, Kept>()

  constructor(fetch: Fetch) {
    this.#fetch = fetch
  }

  /** A call became this task; `task` in the modern form. */
  created(id: string, task: Payload, creator: Call, onEnd: () => void): void {
    this.#forget(id)
    this.#keep(id, task.value('ttlMs'), creator, onEnd)
  }

  /** A task was seen in this status. An ended task is kept only for followers that use the tasks extension. */
  seen(id: string | undefined, status: string | undefined): void {
    const kept = id === undefined ? undefined : this.#kept.get(id)
    if (id === undefined || kept === undefined || !isTerminal(status)) return
    kept.onEnd()
    if (!isFollowed(kept)) this.#forget(id)
  }

  /** Whose call this task is. */
  creatorOf(id: string): Call | undefined {
    return this.#kept.get(id)?.creator
  }

  /** Asks the follower that uses the tasks extension; `undefined`: there is none. */
  ask(id: string, question: Question): Promise<Answer> | undefined {
    const kept = this.#kept.get(id)
    if (kept === undefined || !isFollowed(kept)) return undefined
    return new Promise((answer) => {
      const key = `input-${++kept.keys}`
      kept.asked.set(key, { question, answer })
      question.onWithdrawn?.(() => {
        kept.asked.delete(key)
        answer(noAnswer(question))
      })
      kept.wake()
    })
  }

  /** `tasks/get`, `tasks/update` and `tasks/cancel` of the extension. */
  async handle(call: Call): Promise<Outcome> {
    const id = call.target ?? ''
    if (call.method === 'tasks/get') return complete(await this.#get(id))
    if (call.method === 'tasks/update') await this.#update(id, call.resume?.responses)
    else await this.#cancel(id)
    return complete(new Draft())
  }

  /** The link is closed: all tasks are dropped. */
  close(): void {
    for (const id of this.#kept.keys()) this.#forget(id)
  }

  async #get(id: string): Promise<Payload> {
    const task = await this.#fetch('tasks/get', { taskId: id })
    const kept = this.#kept.get(id) ?? this.#keep(id, task.value('ttl'))
    const status = task.text('status')
    const draft = modernTask(task)
    if (isTerminal(status)) {
      if (status !== 'cancelled') await this.#addOutcome(draft, id, kept)
      this.seen(id, status)
    } else {
      if (status === 'input_required' && kept.asked.size === 0) await this.#invite(id, kept)
      addQuestions(draft, kept)
    }
    return Payload.at(join(draft.parts()))
  }

  /** Adds the outcome of the call. Any result completes a task, also one with `isError`; only a JSON-RPC error fails it (B180). */
  async #addOutcome(draft: Draft, id: string, kept: Kept): Promise<void> {
    const outcome = await this.#resultOf(id, kept)
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

  /** Opens `tasks/result`, on which servers ask; the questions come by `ask`. */
  async #invite(id: string, kept: Kept): Promise<void> {
    void this.#resultOf(id, kept).catch(() => undefined)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, FIRST_QUESTION_MS)
      kept.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Requested once; again after a failure of the link. */
  #resultOf(id: string, kept: Kept): Promise<Answer> {
    kept.result ??= this.#fetch('tasks/result', { taskId: id }).then(
      (result): Answer => ({ result }),
      (error: unknown): Answer => {
        if (error instanceof ServerError) return { error: error.error }
        kept.result = undefined
        throw error
      },
    )
    return kept.result
  }

  /** Unknown and answered keys are ignored; a malformed answer refuses them all. */
  async #update(id: string, responses: Payload | undefined): Promise<void> {
    if (responses === undefined) throw new Refusal(-32602, 'params.inputResponses must be an object')
    const task = this.#kept.has(id) ? undefined : await this.#fetch('tasks/get', { taskId: id })
    const kept = this.#kept.get(id) ?? this.#keep(id, task?.value('ttl'))
    const answers: (() => void)[] = []
    for (const { key } of responses.members) {
      const asked = kept.asked.get(key)
      if (asked === undefined) continue
      const response = responses.object(key)?.fresh()
      if (response === undefined || !isAnswerTo(asked.question, response))
        throw new Refusal(-32602, `inputResponses["${key}"] is no answer to ${asked.question.method}`)
      relateTo(response, id)
      answers.push(() => {
        kept.asked.delete(key)
        asked.answer({ result: response })
      })
    }
    for (const answer of answers) answer()
  }

  /** Cooperative: cancelling an ended task is no error. */
  async #cancel(id: string): Promise<void> {
    try {
      await this.#fetch('tasks/cancel', { taskId: id })
    } catch (error) {
      if (!(error instanceof ServerError) || error.code !== -32602) throw error
      const task = await this.#fetch('tasks/get', { taskId: id })
      if (!isTerminal(task.text('status'))) throw error
    }
    const kept = this.#kept.get(id)
    if (kept !== undefined) decline(kept)
  }

  #keep(id: string, ttlMs: unknown, creator?: Call, onEnd = (): void => undefined): Kept {
    const keptMs = typeof ttlMs === 'number' ? Math.min(ttlMs, MAX_KEPT_MS) : MAX_KEPT_MS
    const kept: Kept = {
      creator,
      timer: setTimeout(() => this.#forget(id), keptMs).unref(),
      onEnd,
      asked: new Map(),
      keys: 0,
      result: undefined,
      wake: () => undefined,
    }
    this.#kept.set(id, kept)
    return kept
  }

  #forget(id: string): void {
    const kept = this.#kept.get(id)
    if (kept === undefined) return
    this.#kept.delete(id)
    clearTimeout(kept.timer)
    decline(kept)
  }
}

/** Whether a caller follows the task by the tasks extension: its creator, or a caller that knew its id before a restart. */
const isFollowed = ({ creator }: Kept): boolean =>
  creator === undefined || (creator.caller.session === undefined && declaresTasks(creator.caller.capabilities))

const decline = (kept: Kept): void => {
  for (const { question, answer } of kept.asked.values()) answer(noAnswer(question))
  kept.asked.clear()
  kept.wake()
  kept.onEnd()
}

/** A task needs input exactly as long as it has open questions. */
const addQuestions = (draft: Draft, { asked }: Kept): void => {
  draft.set('status', asked.size > 0 ? '"input_required"' : '"working"')
  if (asked.size === 0) return
  const requests = new Draft()
  for (const [key, { question }] of asked) {
    const params = question.params?.fresh()
    if (params !== undefined) unrelate(params)
    const request = new Draft()
    request.set('method', JSON.stringify(question.method))
    if (params !== undefined) request.set('params', params.parts())
    requests.set(key, request.parts())
  }
  draft.set('inputRequests', requests.parts())
}
