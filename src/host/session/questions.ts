/** The server requests that a legacy host has not answered, sent under ids of the session. */
import { cancelledParams } from '../../rpc/connection.ts'
import { firstRequestId } from '../../rpc/first-request-id.ts'
import { errorAnswer } from '../../rpc/call.ts'
import type { Answer, Question } from '../../rpc/call.ts'
import { numberedId } from '../../wire/message/envelope.ts'
import type { Envelope, EnvelopeError, Id } from '../../wire/message/envelope.ts'
import type { MessageEnds } from '../../wire/message/message-ends.ts'
import { notificationMessage, requestMessage } from '../../wire/message/message.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { Outlet } from './outlet.ts'

/** A server request waits this long for `notifications/initialized`, and then fails. */
const INITIALIZED_WAIT_MS = 10_000

/** How a server request reaches the host. */
interface Way {
  readonly outlet: Outlet
  /** Where its cancellation is sent. */
  readonly outletNow: () => Outlet | undefined
  /** Called before it is sent. */
  readonly onOpen?: (withdraw: () => void) => void
  /** Called when it is answered or withdrawn. */
  readonly onClosed?: () => void
}

interface Open {
  readonly settle: (answer: Answer) => void
  readonly progress: Question['progress']
}

export class Questions {
  /** The next id: a number, since some hosts read no others. */
  #next = firstRequestId()
  readonly #open = new Map<Id, Open>()
  /** Sends by id, until the host has sent `notifications/initialized`. */
  readonly #unsent = new Map<Id, () => void>()
  #isInitialized: boolean

  constructor(isInitialized: boolean) {
    this.#isInitialized = isInitialized
  }

  /** Sends the waiting ones (B028). */
  initialized(): void {
    this.#isInitialized = true
    const sends = [...this.#unsent.values()]
    this.#unsent.clear()
    for (const send of sends) send()
  }

  /** Resolves with an error answer if the request is withdrawn, or the session ends. Never rejects. */
  send(question: Question, { outlet, outletNow, onOpen, onClosed }: Way): Promise<Answer> {
    return new Promise((resolve) => {
      const id = String(this.#next++)
      const withdraw = (notice?: Payload): void => {
        onClosed?.()
        if (!this.#open.delete(id)) return
        const parts = cancelledParams(id, 'no longer needed', notice)
        if (!this.#unsent.delete(id)) outletNow()?.send(notificationMessage('notifications/cancelled', parts))
        resolve(noAnswer('the question was taken back'))
      }
      const settle = (answer: Answer): void => {
        onClosed?.()
        resolve(answer)
      }
      this.#open.set(id, { settle, progress: question.progress })
      // The id is unique within the session, so it is the progress token, too.
      if (question.progress !== undefined) question.params?.setIn('_meta', 'progressToken', id)
      onOpen?.(withdraw)
      question.onWithdrawn?.(withdraw)
      const send = (): void => outlet.send(requestMessage(id, question.method, question.params?.parts()))
      if (this.#isInitialized) send()
      else this.#sendLater(id, send)
    })
  }

  #sendLater(id: Id, send: () => void): void {
    this.#unsent.set(id, send)
    const giveUp = (): void => {
      if (this.#unsent.delete(id)) this.#answer(id, noAnswer('the host has not said notifications/initialized'))
    }
    setTimeout(giveUp, INITIALIZED_WAIT_MS).unref()
  }

  /** Handles a response of the host. Late and unsolicited responses are dropped. */
  settle({ id, result, error }: Envelope): void {
    if (id === undefined) return
    if (result !== undefined) this.#answer(id, { result })
    else if (error !== undefined) this.#answer(id, { error })
  }

  /** Handles a message that was refused. If it was meant to be the answer to a server request, the server gets an error in its place. */
  refused({ id, isCall, message }: Pick<EnvelopeError, 'id' | 'isCall' | 'message'>): void {
    if (id !== undefined && !isCall) this.#answer(id, noAnswer(`the answer of the host is invalid: ${message}`))
  }

  /** Handles a message of which only a part was read. An answer without a known id is that of the only open request, if there is one. */
  refusedPart({ kind, id }: MessageEnds, message: string): void {
    const only = this.#open.size === 1 ? this.#open.keys().next().value : undefined
    this.refused({ id: id ?? only, isCall: kind !== 'response', message })
  }

  #answer(id: Id, answer: Answer): void {
    const key = numberedId(id)
    const open = this.#open.get(key)
    this.#open.delete(key)
    open?.settle(answer)
  }

  /** Handles `notifications/progress` of the host (B274). */
  progress(params: Payload | undefined): void {
    const token = params?.raw('progressToken')?.toString()
    if (params !== undefined && token !== undefined) this.#open.get(numberedId(token))?.progress?.(params)
  }

  /** The session has ended. */
  end(): void {
    const open = [...this.#open.values()]
    this.#open.clear()
    this.#unsent.clear()
    for (const { settle } of open) settle(noAnswer('the session has ended'))
  }
}

export const noAnswer = (message: string): Answer => errorAnswer(-32603, message)
