/**
 * A legacy server: the handshake, calls without per-request `_meta`, and requests that the server sends back
 * ([2025-11-25 basic/lifecycle]; BRIDGING 3.0 attribution, 3.3).
 */
import { complete, ServerError } from '../rpc/call.ts'
import type { Answer, Call, Outcome, Question } from '../rpc/call.ts'
import type { Connection } from '../rpc/connection.ts'
import type { Channel, HttpChannel } from '../transport/channel.ts'
import type { Envelope, Id } from '../wire/envelope.ts'
import { Failure } from '../wire/failure.ts'
import { requestMessage } from '../wire/message.ts'
import { PER_EXCHANGE, progressTokenOf } from '../wire/meta.ts'
import { METHODS } from '../wire/methods.ts'
import type { LogLevel } from '../wire/methods.ts'
import type { Parts, Payload } from '../wire/payload.ts'
import { isAtLeast, isLegacyRevision, LATEST_LEGACY } from '../wire/revisions.ts'
import type { LegacyRevision } from '../wire/revisions.ts'
import { declaresTasks } from '../wire/tasks.ts'
import { LinkTasks } from './link-tasks.ts'
import { QUESTION_METHODS } from './questions.ts'
import { RequestMeta } from './request-meta.ts'
import { modernCreation, relatedTask } from './task-shapes.ts'
import type { ChangedList, Declared, Identity, Link, LinkEvents, LinkTimeouts } from './link.ts'

const LIST_CHANGED: Readonly<Record<string, ChangedList>> = {
  'notifications/tools/list_changed': 'tools',
  'notifications/prompts/list_changed': 'prompts',
  'notifications/resources/list_changed': 'resources',
}
/** While a person thinks, servers that gave a progress token hear from us this often (BRIDGING 3.13 rule 3). */
const KEEP_ALIVE_MS = 20_000
const EMPTY: Parts = [Buffer.from('{}')]
/** Until the handshake has said otherwise. */
const NOTHING_KNOWN: Handshake = { revision: LATEST_LEGACY, capabilities: {}, instructions: undefined }

interface Handshake {
  readonly revision: LegacyRevision
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
}

export class LegacyLink implements Link {
  readonly era = 'legacy'
  readonly connection: Connection
  readonly closed: Promise<Failure | undefined>
  readonly #events: LinkEvents
  readonly #timeouts: LinkTimeouts
  #handshake = NOTHING_KNOWN
  #level: LogLevel | undefined
  readonly #meta = new RequestMeta((meta) => {
    for (const key of PER_EXCHANGE) meta.delete(key)
  })
  readonly #tasks = new LinkTasks((method, params) =>
    this.#request(method, params, method === 'tasks/result' ? this.#timeouts.totalMs : undefined),
  )
  /** Questions of the server that are not answered yet, and how to take them back. */
  readonly #questions = new Map<Id, () => void>()

  constructor(connection: Connection, events: LinkEvents, timeouts: LinkTimeouts) {
    this.connection = connection
    this.#events = events
    this.#timeouts = timeouts
    this.closed = connection.channel.closed
    void this.closed.then(() => this.#tasks.close())
    connection.serve({
      request: (message, call) => this.#onRequest(message, call),
      notification: (message, call) => this.#onNotification(message, call),
      oddity: (reason, sample) => events.oddity(reason, sample),
    })
  }

  get revision(): LegacyRevision {
    return this.#handshake.revision
  }
  get transport(): Channel['kind'] {
    return this.connection.channel.kind
  }
  get capabilities(): Readonly<Record<string, unknown>> {
    return this.#handshake.capabilities
  }
  get instructions(): string | undefined {
    return this.#handshake.instructions
  }
  get inFlight(): number {
    return this.connection.inFlight
  }

  /** `initialize` and `initialized`. Throws `ServerError` if the server refuses, `Failure` otherwise. */
  async initialize(declared: Declared, identity: Identity): Promise<void> {
    const result = await this.#request('initialize', {
      protocolVersion: LATEST_LEGACY,
      capabilities: declared,
      clientInfo: identity,
    })
    const revision = result.text('protocolVersion') ?? ''
    if (!isLegacyRevision(revision))
      throw new Failure('version', `the server answered initialize with unsupported version "${revision}"`)
    this.#handshake = {
      revision,
      capabilities: (result.value('capabilities') ?? {}) as Readonly<Record<string, unknown>>,
      instructions: result.text('instructions'),
    }
    const { channel } = this.connection
    const http = channel.kind === 'http' ? (channel as HttpChannel) : undefined
    http?.setRevision(revision)
    this.connection.notify('notifications/initialized')
    void http?.openStream()
  }

  readonly handle = async (call: Call): Promise<Outcome> => {
    const isOfTask = METHODS[call.method]?.way === 'task'
    if (isOfTask && call.caller.session === undefined) return this.#tasks.handle(call)
    const isTask = call.method === 'tools/call' && call.params.has('task')
    const { idleMs, totalMs } = this.#timeouts
    const progress = ({ method, params }: Envelope): void => {
      if (params !== undefined) call.notify(method, params)
    }
    let sentAs = 0
    const message = await this.connection.request(
      (id) => {
        sentAs = id
        return { id, parts: requestMessage(id, call.method, this.#params(call, id)), isRelayed: true }
      },
      {
        idleMs: call.method === 'tasks/result' ? totalMs : idleMs,
        totalMs,
        call,
        // A task is cancelled by its id, which only the answer tells (B142).
        ...(!isTask && { signal: call.signal }),
        cancel: isTask ? () => undefined : this.#cancel,
        progress,
      },
    )
    const result = resultOf(message)
    const created = isTask ? modernCreation(result) : undefined
    if (created !== undefined) return this.#created(created, call, () => this.connection.outlive(sentAs, progress))
    if (isOfTask) this.#tasks.seen(call.target, call.method === 'tasks/result' ? 'completed' : result.text('status'))
    return complete(result)
  }

  /** The server made a task of it. Whoever has given up meanwhile does not want it any more. */
  async #created(task: Payload, call: Call, keepProgress: () => () => void): Promise<Outcome> {
    const id = task.text('taskId') ?? ''
    if (call.signal.aborted) {
      await this.fetch('tasks/cancel', { taskId: id }).catch(() => undefined)
      throw new Failure('cancelled', 'cancelled by the host')
    }
    // The extension has no progress; there the status says how it goes.
    const hasProgress = call.progressToken !== undefined && !declaresTasks(call.caller.capabilities)
    this.#tasks.created(id, task, call, hasProgress ? keepProgress() : () => undefined)
    return { kind: 'task', result: task }
  }

  async fetch(method: string, params: Readonly<Record<string, unknown>>): Promise<Payload> {
    return this.#request(method, params)
  }

  async subscribe(uri: string): Promise<boolean> {
    const resources = this.capabilities['resources'] as { subscribe?: unknown } | undefined
    if (resources?.subscribe !== true) return false
    await this.#request('resources/subscribe', { uri })
    return true
  }

  async unsubscribe(uri: string): Promise<void> {
    await this.#request('resources/unsubscribe', { uri })
  }

  async followTask(): Promise<void> {
    // Told unasked, if at all.
  }

  async unfollowTask(): Promise<void> {
    // As above.
  }

  async setLevel(level: LogLevel): Promise<void> {
    if (this.capabilities['logging'] === undefined || this.#level === level) return
    this.#level = level
    await this.#request('logging/setLevel', { level })
  }

  rootsChanged(): void {
    this.connection.notify('notifications/roots/list_changed')
  }

  async close(): Promise<void> {
    await this.connection.channel.close()
  }

  /** What a server of this era gets of a host's params: no per-request keys, no rounds, our own progress token. */
  #params(call: Call, id: number): Parts {
    const { params } = call
    if (params.has('_meta')) this.#meta.write(call, id)
    params.delete('requestState')
    params.delete('inputResponses')
    if (call.method === 'completion/complete' && !isAtLeast(this.revision, '2025-06-18')) params.delete('context')
    return params.parts()
  }

  async ping(limitMs: number): Promise<boolean> {
    try {
      await this.#request('ping', {}, limitMs)
      return true
    } catch (error) {
      return error instanceof ServerError
    }
  }

  async #request(method: string, params: Readonly<Record<string, unknown>>, limitMs = this.#timeouts.startMs): Promise<Payload> {
    const body = [Buffer.from(JSON.stringify(params))]
    const message = await this.connection.request((id) => ({ id, parts: requestMessage(id, method, body) }), {
      idleMs: limitMs,
      totalMs: limitMs,
      cancel: method === 'initialize' ? () => undefined : this.#cancel,
    })
    return resultOf(message)
  }

  readonly #cancel = (id: number, reason: string): void => {
    this.connection.notify('notifications/cancelled', [Buffer.from(JSON.stringify({ requestId: id, reason }))])
  }

  /** A request of the server ([BRIDGING 2.2]). */
  #onRequest(message: Envelope, during: Call | undefined): void {
    const id = message.id ?? 'null'
    if (message.method === 'ping') return this.connection.respond(id, EMPTY)
    if (!QUESTION_METHODS.has(message.method)) return this.connection.refuse(id, -32601, `Method not found: ${message.method}`)
    const task = relatedTask(message.params)
    const call = task === undefined ? (during ?? this.#attribute()) : this.#callOf(task)
    const resume = call === undefined ? () => undefined : this.connection.pause(call)
    const quiet = this.#keepPatient(message)
    let isWithdrawn = false
    const onWithdrawn = (callback: () => void): void => {
      this.#questions.set(id, () => {
        isWithdrawn = true
        callback()
      })
    }
    const question: Question = { method: message.method, params: message.params, onWithdrawn }
    const asked = (task === undefined ? undefined : this.#tasks.ask(task, question)) ?? this.#events.ask(question, call)
    void asked
      .then((answer) => (isWithdrawn ? undefined : this.#reply(id, answer)))
      .finally(() => {
        this.#questions.delete(id)
        quiet()
        resume()
      })
  }

  /** Increasing progress resets the timer of most servers that wait for a person. Returns how to end it. */
  #keepPatient(message: Envelope): () => void {
    const token = progressTokenOf(message.params)
    if (token === undefined) return () => undefined
    let progress = 0
    const timer = setInterval(() => {
      this.connection.notify('notifications/progress', [Buffer.from(`{"progressToken":${token},"progress":${++progress}}`)])
    }, KEEP_ALIVE_MS)
    return () => clearInterval(timer)
  }

  /** The server takes a question back (BRIDGING 2.3). */
  #withdraw(params: Payload | undefined): void {
    const id = params?.raw('requestId')?.toString()
    if (id !== undefined) this.#questions.get(id)?.()
  }

  #onNotification(message: Envelope, during: Call | undefined): void {
    const list = LIST_CHANGED[message.method]
    const params = message.params
    if (list !== undefined) this.#events.listChanged(list)
    else if (message.method === 'notifications/cancelled') this.#withdraw(params)
    else if (params === undefined) return
    else if (message.method === 'notifications/elicitation/complete')
      this.#events.elicitationComplete(params.text('elicitationId') ?? '')
    else if (message.method === 'notifications/message') this.#events.message(params, during ?? this.connection.onlyCall())
    else if (message.method === 'notifications/tasks/status') {
      this.#tasks.seen(params.text('taskId'), params.text('status'))
      this.#events.taskChanged(params)
    } else if (message.method === 'notifications/resources/updated') this.#events.updated(params.text('uri') ?? '', params)
  }

  #reply(id: string, answer: Answer): void {
    if ('result' in answer) this.connection.respond(id, answer.result.parts())
    else this.connection.respondError(id, answer.error.parts())
  }

  /** Who waits for the task's result now, or made it. */
  #callOf(task: string): Call | undefined {
    const waiting = this.connection.calls().findLast((call) => call.method === 'tasks/result' && call.target === task)
    return waiting ?? this.#tasks.creatorOf(task)
  }

  /** BRIDGING 3.0 (b): the one call that can carry input, or the newest of one legacy session; never a guess. */
  #attribute(): Call | undefined {
    const carriers = this.connection.calls().filter((call) => METHODS[call.method]?.mayAskInput === true)
    // A call that cannot carry it has an answer of its own (BRIDGING 3.13 rule 1).
    if (carriers.length === 0) return this.connection.onlyCall()
    const newest = carriers.at(-1)
    const session = newest?.caller.session
    const sameSession = session !== undefined && carriers.every((call) => call.caller.session === session)
    return carriers.length === 1 || sameSession ? newest : undefined
  }
}

/** The result of a response; throws the server's own error as `ServerError`. */
export const resultOf = (message: Envelope): Payload => {
  if (message.result !== undefined) return message.result
  const error = message.error
  const code = error?.value('code')
  const text = error?.text('message')
  if (error === undefined || !Number.isInteger(code) || text === undefined)
    throw new Failure('bad_response', 'an error without an integer code and a message')
  throw new ServerError(code as number, text, error)
}
