/**
 * Requests of a server on a link: finds the call that each request belongs to (BRIDGING 3.0), suspends the idle time-out of that call,
 * and sends the answer.
 */
import type { Answer, Call, Question } from '../../rpc/call.ts'
import type { Connection } from '../../rpc/connection.ts'
import { idKey, progressTokenOf } from '../../wire/message/envelope.ts'
import type { Envelope, Id } from '../../wire/message/envelope.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { PONG } from '../../wire/message/message.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { LinkEvents } from './link.ts'
import type { LinkTasks } from './link-tasks.ts'
import { relatedTask } from '../task-shapes.ts'
import { SparseMap } from '../../values/sparse-map.ts'

/** Period of progress heartbeats to servers that sent a progress token, while a person is asked (BRIDGING 3.13 rule 3). */
const HEARTBEAT_MS = 20_000
/** Requests of the server without an answer (B257). */
const MAX_UNANSWERED = 1_000
/** The heartbeats of one request. */
interface Heartbeats {
  /** The last value; 0: none was sent. */
  readonly sent: number
  readonly stop: () => void
}
const NO_HEARTBEATS: Heartbeats = { sent: 0, stop: () => undefined }

export class Attribution {
  readonly #connection: Connection
  readonly #events: Pick<LinkEvents, 'ask' | 'violation' | 'isOfOneHost'>
  readonly #tasks: Pick<LinkTasks, 'ask' | 'creatorOf'> | undefined
  /** Functions that withdraw unanswered questions, by request id. */
  readonly #open = new SparseMap<Id, (notice: Payload) => void>()
  #unanswered = 0

  /** `tasks`: tasks of 2025-11-25 on the link; absent for a modern server. */
  constructor(
    connection: Connection,
    events: Pick<LinkEvents, 'ask' | 'violation' | 'isOfOneHost'>,
    tasks?: Pick<LinkTasks, 'ask' | 'creatorOf'>,
  ) {
    this.#connection = connection
    this.#events = events
    this.#tasks = tasks
  }

  /** Handles a request of the server (BRIDGING 2.2), received on the stream of `during`, or of any request (`isWithin`). */
  request(message: Envelope, during: Call | undefined, isWithin: boolean): void {
    const id = message.id ?? 'null'
    if (message.method === 'ping') return this.#connection.respond(id, PONG)
    if (this.#unanswered >= MAX_UNANSWERED)
      return this.#connection.refuse(id, -32603, `${MAX_UNANSWERED} requests of the server are unanswered`)
    this.#unanswered++
    const task = relatedTask(message.params)
    const candidates = task === undefined && during === undefined ? this.#candidates() : []
    const call = task === undefined ? (during ?? candidates.at(-1)) : this.#callOf(task)
    const isGuess = candidates.length > 1
    const resumes = (isGuess ? candidates : call === undefined ? [] : [call]).map((each) => this.#connection.pause(each))
    const token = progressTokenOf(message.params)
    const heartbeats = token === undefined ? NO_HEARTBEATS : this.#startHeartbeats(token)
    let isWithdrawn = false
    const onWithdrawn: Question['onWithdrawn'] = (callback) => {
      this.#open.set(idKey(id), (notice) => {
        isWithdrawn = true
        callback(notice)
      })
    }
    const progress = (params: Payload): void => {
      // Values only increase (B136): those of a host are relayed once they exceed the last heartbeat.
      if (heartbeats.sent > 0 && !(Number(params.raw('progress')?.toString()) > heartbeats.sent)) return
      heartbeats.stop()
      const own = params.fresh()
      own.set('progressToken', token ?? '')
      this.#connection.notify('notifications/progress', own.parts())
    }
    const isUnsolicited = !isWithin && task === undefined && this.#connection.isQuiet
    const question: Question = {
      method: message.method,
      params: message.params,
      onWithdrawn,
      ...(isUnsolicited && { isUnsolicited }),
      ...(isGuess && { candidates: () => this.#connection.calls().filter((each) => candidates.includes(each)) }),
      ...(token !== undefined && { progress }),
    }
    const asked = (task === undefined ? undefined : this.#tasks?.ask(task, question)) ?? this.#events.ask(question, call)
    void asked
      .then((answer) => (isWithdrawn ? undefined : this.#reply(id, answer)))
      // For example, a text is no valid JSON, which the scan of a large message does not find (B271, F-31).
      .catch((error: unknown) => {
        this.#events.violation('a request could not be handled', message.method, error)
        if (!isWithdrawn) this.#connection.refuse(id, -32603, 'internal error')
      })
      .finally(() => {
        this.#unanswered--
        this.#open.delete(idKey(id))
        heartbeats.stop()
        for (const resume of resumes) resume()
      })
  }

  /** The server cancels a question (BRIDGING 2.3). */
  withdraw(params: Payload | undefined): void {
    const id = params?.raw('requestId')?.toString()
    if (params !== undefined && id !== undefined) this.#open.get(idKey(id))?.(params)
  }

  #reply(id: Id, answer: Answer): void {
    if ('result' in answer) this.#connection.respond(id, answer.result.parts())
    else this.#connection.respondError(id, answer.error.parts())
  }

  /** Sends increasing progress, which resets the time-out of most servers. */
  #startHeartbeats(token: Id): Heartbeats {
    const heartbeats = { sent: 0, stop: () => clearInterval(timer) }
    const timer = setInterval(() => {
      const progress = ++heartbeats.sent
      this.#connection.notify('notifications/progress', [Buffer.from(`{"progressToken":${token},"progress":${progress}}`)])
    }, HEARTBEAT_MS)
    return heartbeats
  }

  /** The call that waits for the task's result, else the call that created the task. */
  #callOf(task: string): Call | undefined {
    const waiting = this.#connection.calls().findLast((call) => call.method === 'tasks/result' && call.target === task)
    return waiting ?? this.#tasks?.creatorOf(task)
  }

  /**
   * The calls that a question without attribution may belong to, oldest first; the newest is asked (BRIDGING 3.0 (b)). Either one call
   * that can carry input, or several calls of one legacy session or of the only host of a pipe, never calls of several callers.
   */
  #candidates(): readonly Call[] {
    const carriers = this.#connection.calls().filter((call) => METHODS[call.method]?.mayAskInput === true)
    if (carriers.length === 0) {
      // A call that cannot carry input has another answer (BRIDGING 3.13 rule 1).
      const only = this.#connection.onlyCall()
      return only === undefined ? [] : [only]
    }
    if (carriers.length === 1) return carriers
    if (this.#events.isOfOneHost === true) return carriers.filter(({ ask }) => ask !== undefined)
    const session = carriers[0]?.caller.session
    const isOfOneSession = session !== undefined && carriers.every((call) => call.caller.session === session)
    return isOfOneSession ? carriers : []
  }
}
