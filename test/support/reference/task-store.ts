/** Tasks of one reference server process: what was begun, how far it is, what it still wants to know ([ext tasks]). */
import { randomUUID } from 'node:crypto'
import { ProtocolError } from '@modelcontextprotocol/server'
import type { CallToolResult, InputRequest } from '@modelcontextprotocol/server'

/** What a task may do while it runs. */
export interface Work {
  readonly signal: AbortSignal
  /** Asks all at once; resolves when every question has its answer. */
  ask: (requests: Record<string, InputRequest>) => Promise<Record<string, unknown>>
}

/** A task as `tasks/get` shows it. */
export interface Task {
  taskId: string
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  createdAt: string
  lastUpdatedAt: string
  ttlMs: number
  pollIntervalMs: number
  result?: CallToolResult
  error?: { code: number; message: string } | undefined
  inputRequests?: Record<string, InputRequest>
}

interface Begun {
  readonly task: Task
  readonly abort: AbortController
  readonly answers: Record<string, unknown>
  answered: () => void
}

export class TaskStore {
  readonly #begun = new Map<string, Begun>()

  /** Begins `run`; the task can be asked for at once. */
  create(run: (work: Work) => Promise<CallToolResult>): Task {
    const createdAt = new Date().toISOString()
    const taskId = randomUUID()
    const task: Task = { taskId, status: 'working', createdAt, lastUpdatedAt: createdAt, ttlMs: 600_000, pollIntervalMs: 100 }
    const begun: Begun = { task, abort: new AbortController(), answers: {}, answered: () => undefined }
    this.#begun.set(taskId, begun)
    const seed = { ...task }
    run({ signal: begun.abort.signal, ask: (requests) => this.#ask(begun, requests) }).then(
      (result) => change(begun, { status: 'completed', result }),
      (error: unknown) => change(begun, { status: 'failed', error: wireError(error) }),
    )
    return seed
  }

  /** Throws -32602 for an id nobody was given. */
  get(taskId: string): Task {
    return this.#find(taskId).task
  }

  update(taskId: string, responses: Record<string, unknown>): void {
    const begun = this.#find(taskId)
    const { inputRequests = {} } = begun.task
    for (const [key, response] of Object.entries(responses)) {
      if (inputRequests[key] === undefined) continue
      begun.answers[key] = response
      delete inputRequests[key]
    }
    if (begun.task.status === 'input_required' && Object.keys(inputRequests).length === 0) begun.answered()
  }

  /** A task that has ended stays as it is. */
  cancel(taskId: string): void {
    const begun = this.#find(taskId)
    change(begun, { status: 'cancelled' })
    begun.abort.abort()
  }

  async #ask(begun: Begun, requests: Record<string, InputRequest>): Promise<Record<string, unknown>> {
    const { promise, resolve } = Promise.withResolvers<void>()
    begun.answered = resolve
    change(begun, { status: 'input_required', inputRequests: { ...requests } })
    await promise
    delete begun.task.inputRequests
    change(begun, { status: 'working' })
    return begun.answers
  }

  #find(taskId: string): Begun {
    const begun = this.#begun.get(taskId)
    if (begun === undefined) throw new ProtocolError(-32602, 'Task not found')
    return begun
  }
}

const change = ({ task }: Begun, changes: Partial<Task>): void => {
  if (task.status === 'completed' || task.status === 'failed' || task.status === 'cancelled') return
  delete task.inputRequests
  Object.assign(task, changes, { lastUpdatedAt: new Date().toISOString() })
}

const wireError = (error: unknown): Task['error'] =>
  error instanceof ProtocolError ? { code: error.code, message: error.message } : { code: -32603, message: String(error) }
