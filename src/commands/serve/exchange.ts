/**
 * Requests, answers and notifications between a worker and its supervisor, over the channel that Node opens between a process and its
 * parent. Both sides have the same build and configuration, so nothing is versioned.
 */
import { AdminRefusal } from '../../admin/refusal.ts'
import { asError } from '../../values/as-error.ts'
import { ConfigError } from '../../config/syntax/problems.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import { memberOf } from '../../values/json-object.ts'

/** Environment variable of processes that a supervisor started (`listen.workers`). */
export const WORKER_VARIABLE = 'TRUNKLINE_WORKER'

/** One end of the channel. */
export interface Port {
  /** False, or throws: the other process has ended. */
  send(message: Message): boolean
  onMessage(receive: (message: unknown) => void): void
  onClose(closed: () => void): void
}

/** A `request` expects an answer; a `notification` does not. */
export type Message =
  | { readonly kind: 'request'; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: SentError }
  | { readonly kind: 'notification'; readonly name: string; readonly args: readonly unknown[] }

/** By name. The answer to a request is the value or the error of its function. */
export type Handlers = Readonly<Record<string, (...args: never[]) => unknown>>

/** The members of an error that the other side needs. */
interface SentError {
  readonly message: string
  readonly problems?: readonly Problem[]
  readonly refusal?: readonly [status: number, code: string, at: number | undefined]
  /** Of a system error: code, address, port and the option that names them. */
  readonly facts: Readonly<Record<string, unknown>>
}

export class Exchange {
  readonly #port: Port
  readonly #handlers: Handlers
  readonly #pending = new Map<number, Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'>>()
  #nextId = 1
  #isClosed = false

  constructor(port: Port, handlers: Handlers) {
    this.#port = port
    this.#handlers = handlers
    port.onMessage((message) => {
      if (isMessage(message)) this.#receive(message)
    })
    port.onClose(() => {
      this.#isClosed = true
      for (const { reject } of this.#pending.values()) reject(ended())
      this.#pending.clear()
    })
  }

  /** `T`: the result of the other side's function. Rejects with its error, or if the other side has ended. */
  request<T>(name: string, ...args: readonly unknown[]): Promise<T> {
    const id = this.#nextId++
    const pending = Promise.withResolvers<T>()
    if (!this.#send({ kind: 'request', id, name, args })) return Promise.reject(ended())
    // Cast: both sides have the same build, so the value is a `T`.
    this.#pending.set(id, { ...pending, resolve: (value) => pending.resolve(value as T) })
    return pending.promise
  }

  notify(name: string, ...args: readonly unknown[]): void {
    this.#send({ kind: 'notification', name, args })
  }

  #receive(message: Message): void {
    if (message.kind === 'answer') {
      const pending = this.#pending.get(message.id)
      this.#pending.delete(message.id)
      if (message.error === undefined) pending?.resolve(message.value)
      else pending?.reject(receivedError(message.error))
      return
    }
    // Cast: both sides have the same build, so the arguments match the function.
    const handler = this.#handlers[message.name] as ((...args: readonly unknown[]) => unknown) | undefined
    if (message.kind === 'notification') return void handler?.(...message.args)
    const { id, name, args } = message
    new Promise((resolve) => {
      if (handler === undefined) throw new Error(`there is no request ${name}`)
      resolve(handler(...args))
    }).then(
      (value) => this.#send({ kind: 'answer', id, value }),
      (error: unknown) => this.#send({ kind: 'answer', id, error: sentError(error) }),
    )
  }

  #send(message: Message): boolean {
    if (this.#isClosed) return false
    try {
      // False means only that the channel is full at the moment: the message is sent nevertheless.
      this.#port.send(message)
      return true
    } catch {
      return false
    }
  }
}

const ended = (): Error => new Error('the other process has ended')

const isMessage = (message: unknown): message is Message =>
  typeof message === 'object' && message !== null && 'kind' in message && typeof message.kind === 'string'

const FACTS = ['code', 'address', 'port', 'option'] as const

const sentError = (error: unknown): SentError => {
  const { message } = asError(error)
  const facts = Object.fromEntries(FACTS.map((name) => [name, memberOf(error, name)]))
  if (error instanceof ConfigError) return { message, facts: {}, problems: error.problems }
  if (error instanceof AdminRefusal) return { message, facts: {}, refusal: [error.status, error.code, error.at] }
  return { message, facts }
}

const receivedError = ({ message, problems, refusal, facts }: SentError): Error => {
  if (problems !== undefined) return new ConfigError(problems)
  if (refusal !== undefined) return new AdminRefusal(refusal[0], refusal[1], message, refusal[2])
  return Object.assign(new Error(message), facts)
}
