/**
 * One call of a modern host to a legacy server, and the successive requests of the host that carry it: a question ends the carrying
 * request, the next request brings the answers. Messages of the server in between wait (BRIDGING 3.13, Example A).
 */
import { randomUUID } from 'node:crypto'
import { Refusal } from '../../rpc/call.ts'
import type { Answer, Call, Handler, Outcome, Question } from '../../rpc/call.ts'
import { Cancellation } from '../../rpc/cancellation.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import type { ParkingOptions } from './parking-options.ts'
import { isAnswerTo, noAnswer } from '../questions.ts'

interface Asked {
  readonly question: Question
  readonly answer: (answer: Answer) => void
}

interface Carrier {
  readonly call: Call
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** The table of parked calls, as one call uses it. */
export interface ParkedCalls {
  /** The `requestState` of a round. */
  readonly issue: (nonce: string) => string
  /** The option whose limit forbids parking it, with its value. */
  readonly limitReached: () => string | undefined
  /** The host did not retry in time. */
  readonly expired: () => void
  readonly onEnd: () => void
}

export class ParkedCall {
  readonly principal: string
  readonly #options: ParkingOptions
  readonly #parked: ParkedCalls
  readonly #abort = new Cancellation()
  /** Unanswered questions by the key under which the host knows them. */
  readonly #asked = new Map<string, Asked>()
  #carrier: Carrier | undefined
  #outcome: Promise<Outcome> | undefined
  /** The nonce of the round the host holds, and of the last round that was answered. */
  #nonce: string | undefined
  #usedNonce: string | undefined
  readonly #keys = new Set<string>()
  #mayAsk = true
  #siblings: NodeJS.Timeout | undefined
  #expiry: NodeJS.Timeout | undefined

  constructor(principal: string, options: ParkingOptions, parked: ParkedCalls) {
    this.principal = principal
    this.#options = options
    this.#parked = parked
  }

  get isParked(): boolean {
    return this.#carrier === undefined
  }

  start(call: Call, inner: Handler): Promise<Outcome> {
    const carried = this.#carry(call)
    inner({
      ...call,
      signal: this.#abort.signal,
      ask: (question) => this.#ask(question),
      notify: (method, params, isOfPeer) => this.#carrier?.call.notify(method, params, isOfPeer),
    }).then(
      (outcome) => this.#settle(Promise.resolve(outcome)),
      (error: unknown) => this.#settle(Promise.reject(error)),
    )
    return carried
  }

  /** A retry: delivers its answers and carries the call from now on. */
  resume(call: Call, nonce: string): Promise<Outcome> {
    if (nonce !== this.#nonce) {
      if (nonce === this.#usedNonce && this.#carrier !== undefined)
        throw new Refusal(-32600, 'this round is being answered already')
      throw new Refusal(-32602, 'requestState already used')
    }
    const answers = this.#read(call.params.object('inputResponses'))
    this.#usedNonce = nonce
    this.#nonce = undefined
    clearTimeout(this.#expiry)
    const carried = this.#carry(call)
    for (const [key, answer] of answers) {
      this.#asked.get(key)?.answer(answer)
      this.#asked.delete(key)
    }
    // Unanswered questions are asked again, with a new state (rule 5).
    if (this.#outcome !== undefined) this.#deliver(this.#outcome)
    else if (this.#asked.size > 0) this.#endRound()
    return carried
  }

  /** The host did not answer in time: the server gets non-answers and the call is cancelled (rule 4). */
  abandon(notice?: Payload): void {
    this.#declineAll()
    this.#abort.abort(notice)
    this.#carrier?.reject(new Failure('cancelled', 'the gateway is stopping'))
    this.#end()
  }

  /** No new round can begin: open and later questions get non-answers, and the call continues. */
  stopAsking(): void {
    this.#mayAsk = false
    clearTimeout(this.#siblings)
    this.#declineAll()
  }

  /** Answers by key; a malformed answer refuses the retry and changes nothing. */
  #read(responses: Payload | undefined): Map<string, Answer> {
    const answers = new Map<string, Answer>()
    for (const [key, { question }] of this.#asked) {
      if (responses?.member(key) === undefined) continue
      const response = responses.object(key)
      if (response === undefined || !isAnswerTo(question, response))
        throw new Refusal(-32602, `inputResponses["${key}"] is no answer to ${question.method}`)
      answers.set(key, { result: response.fresh() })
    }
    return answers
  }

  #ask(question: Question): Promise<Answer> {
    if (!this.#mayAsk) return Promise.resolve(noAnswer(question))
    const limit = this.#parked.limitReached()
    if (limit !== undefined)
      return Promise.resolve({ error: Payload.of({ code: -32601, message: `${limit} reached: too many calls wait for input` }) })
    return new Promise((resolve) => {
      const key = this.#keyFor(question)
      this.#asked.set(key, { question, answer: resolve })
      // Settled, although the server wants no answer: until then the idle time-out of its call is suspended.
      question.onWithdrawn?.(() => {
        this.#asked.delete(key)
        resolve(noAnswer(question))
      })
      this.#siblings ??= setTimeout(() => {
        this.#siblings = undefined
        if (this.#carrier !== undefined && this.#asked.size > 0) this.#endRound()
      }, this.#options.siblingsMs)
    })
  }

  /** The name of the field, where the question has one field, else a number; unique for the life of the call (B060). */
  #keyFor({ params }: Question): string {
    const fields = params?.object('requestedSchema')?.object('properties')?.members ?? []
    const field = fields.length === 1 ? fields[0]?.key : undefined
    const key =
      field !== undefined && /^[A-Za-z][\w-]{0,39}$/.test(field) && !this.#keys.has(field)
        ? field
        : `input-${this.#keys.size + 1}`
    this.#keys.add(key)
    return key
  }

  /** Ends the carrying request with all unanswered questions. */
  #endRound(): void {
    const carrier = this.#carrier
    if (carrier === undefined) return
    this.#carrier = undefined
    this.#nonce = randomUUID()
    const requests = new Draft()
    for (const [key, { question }] of this.#asked) requests.set(key, inputRequest(question).parts())
    const state = this.#parked.issue(this.#nonce)
    const result = new Draft()
    result.set('resultType', '"input_required"')
    result.set('inputRequests', requests.parts())
    result.set('requestState', JSON.stringify(state))
    this.#expiry = setTimeout(() => {
      this.#parked.expired()
      this.abandon()
    }, this.#options.ttlMs)
    carrier.resolve({ kind: 'input_required', result: Payload.at(join(result.parts())), state })
  }

  #carry(call: Call): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const carrier: Carrier = { call, resolve, reject }
      this.#carrier = carrier
      const leave = (): void => {
        // The host cancelled the carrying request: the server's call is cancelled, too (rule 8).
        if (this.#carrier !== carrier) return
        this.abandon(call.signal.notice)
      }
      if (call.signal.aborted) leave()
      else call.signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** The server's call has ended. Without a carrier the outcome waits for the next retry until it expires (rule 3). */
  #settle(outcome: Promise<Outcome>): void {
    outcome.catch(() => undefined)
    this.#outcome = outcome
    this.#declineAll()
    if (this.#carrier !== undefined) this.#deliver(outcome)
  }

  /** Open questions get non-answers. */
  #declineAll(): void {
    for (const { question, answer } of this.#asked.values()) answer(noAnswer(question))
    this.#asked.clear()
  }

  #deliver(outcome: Promise<Outcome>): void {
    const carrier = this.#carrier
    this.#end()
    if (carrier !== undefined) outcome.then(carrier.resolve, carrier.reject)
  }

  #end(): void {
    clearTimeout(this.#siblings)
    clearTimeout(this.#expiry)
    this.#carrier = undefined
    this.#parked.onEnd()
  }
}

const inputRequest = ({ method, params }: Question): Draft => {
  const request = new Draft()
  request.set('method', JSON.stringify(method))
  if (params !== undefined) request.set('params', params.parts())
  return request
}
