/**
 * Batches of 2025-03-26 hosts: several messages in one JSON array ([2025-03-26 basic/index], Batching; BRIDGING 5.1 row 8). Each element
 * is served like a single message. The answers are sent as one array, or one by one on a stream.
 */
import { isModern } from '../../../era/host/modern-host.ts'
import { EnvelopeError, readHostMessage, splitBatch } from '../../../wire/message/envelope.ts'
import type { Envelope } from '../../../wire/message/envelope.ts'
import { refusalMessage } from '../../../wire/message/message.ts'
import type { Parts } from '../../../wire/message/payload.ts'
import { withinMessage } from '../../boundary.ts'
import { reportDeniedMessage } from '../../denials.ts'
import type { Exchange } from '../../response/exchange.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { receiveLegacy, serveLegacy } from '../../legacy.ts'
import type { HostLimits } from '../../options.ts'
import type { Session } from '../../session/session.ts'

/** The only revision with batches. */
const REVISION = '2025-03-26'
/** Error for a modern request in a batch, which must not be served as a request of the session. */
const MODERN_ELEMENT = 'a request of 2026-07-28 must not be part of a batch'
const MAX_BATCH = 'listen.limits.max_batch'

/** A message, or why the element is not a valid message. */
export type BatchElement = Envelope | EnvelopeError

/**
 * Returns the elements of an array; `undefined`: not an array. Throws `EnvelopeError` for a batch that is refused as a whole: of a session
 * of another revision, empty, too long, or with `initialize` (B206, B207).
 */
export const readBatch = (
  bytes: Buffer,
  session: Session | undefined,
  limits: HostLimits,
): readonly BatchElement[] | undefined => {
  const spans = splitBatch(bytes, limits)
  if (spans === undefined) return undefined
  const refuse = (why: string, limit?: string): EnvelopeError => new EnvelopeError(-32600, why, undefined, { limit })
  if (session?.revision !== REVISION) throw refuse(`batches belong to sessions of ${REVISION}`)
  if (spans.length === 0) throw refuse('the batch is empty')
  if (spans.length > limits.maxBatch) throw refuse(`the batch exceeds ${MAX_BATCH} (${limits.maxBatch})`, MAX_BATCH)
  const elements = spans.map((span) => readElement(span, limits))
  if (elements.some((element) => !(element instanceof EnvelopeError) && element.method === 'initialize'))
    throw refuse('initialize must not be part of a batch')
  return elements
}

const readElement = (bytes: Buffer, limits: HostLimits): BatchElement => {
  try {
    return readHostMessage(bytes, limits)
  } catch (error) {
    if (error instanceof EnvelopeError) return error
    throw error
  }
}

/** Whether an element needs an answer. A batch without such an element is answered 202. */
export const needsAnswer = (element: BatchElement): boolean => element instanceof EnvelopeError || element.kind === 'request'

/** The response channel of a batch. `isStream`: answers are sent before all are complete. */
export interface BatchOutlet extends Exchange {
  readonly isStream: boolean
}

/** Serves all elements. `onePerId`: a request with an id in flight is refused, because the response channel is shared. */
export const serveBatch = (
  elements: readonly BatchElement[],
  session: Session,
  outlet: BatchOutlet,
  context: ListenerContext,
  onePerId: boolean,
): void => {
  const answers = new Answers(outlet, elements.filter(needsAnswer).length)
  const refuse = (error: EnvelopeError): void => {
    reportDeniedMessage(context, error, { ...session.caller, session })
    answers.refuse(error)
  }
  for (const element of elements) {
    if (element instanceof EnvelopeError) {
      session.refused(element)
      refuse(element)
    } else if (element.kind !== 'request') withinMessage(context, element, () => receiveLegacy(element, session, context))
    else if (isModern(element)) refuse(new EnvelopeError(-32600, MODERN_ELEMENT, element.id))
    else if (onePerId && session.isRunning(element.id ?? ''))
      refuse(new EnvelopeError(-32600, `a request with id ${element.id} is in progress`, element.id))
    else serveLegacy(element, session, answers.exchange(), context)
  }
}

/** Collects the answers of the elements until all are complete. */
class Answers {
  readonly #outlet: BatchOutlet
  #held: Parts[] = []
  #missing: number

  constructor(outlet: BatchOutlet, count: number) {
    this.#outlet = outlet
    this.#missing = count
  }

  exchange(): Exchange {
    const outlet = this.#outlet
    let isOver = false
    // The end of a session answers a request and ends its exchange.
    const finish = (parts: Parts | undefined): void => {
      if (!isOver) this.#add(parts)
      isOver = true
    }
    return {
      message: (parts, key) => outlet.message(parts, key),
      answer: finish,
      end: () => finish(undefined),
      transport: outlet.transport,
      ambient: outlet.ambient,
      batch: outlet,
      get isGone() {
        return outlet.isGone === true
      },
    }
  }

  refuse({ id, code, message }: EnvelopeError): void {
    this.#add(refusalMessage(id, code, message))
  }

  /** `undefined`: the element gets no answer. */
  #add(parts: Parts | undefined): void {
    this.#missing--
    if (parts !== undefined) this.#held.push(parts)
    if (this.#missing === 0) return this.#finish()
    if (!this.#outlet.isStream) return
    for (const parts of this.#held.splice(0)) this.#outlet.message(parts)
  }

  #finish(): void {
    const last = this.#held.at(-1)
    if (last === undefined) return this.#outlet.end()
    if (!this.#outlet.isStream) return this.#outlet.answer(arrayOf(this.#held), 200)
    for (const parts of this.#held.slice(0, -1)) this.#outlet.message(parts)
    this.#outlet.answer(last, 200)
  }
}

/** Returns a JSON array of messages. */
export const arrayOf = (messages: readonly Parts[]): Parts => [
  Buffer.from('['),
  ...messages.flatMap((parts, at) => (at === 0 ? parts : [Buffer.from(','), ...parts])),
  Buffer.from(']'),
]
