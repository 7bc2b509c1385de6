/**
 * One call of a modern host to a legacy server, and the successive requests of the host that carry it. A question ends the carrying
 * request; the next request brings the answers. Notifications of the server in between are dropped (BRIDGING 3.13, Example A).
 */
import { randomUUID } from 'node:crypto'
import { errorAnswer, Refusal } from '../../rpc/call.ts'
import type { Answer, Call, Flow, Handler, Outcome, Question, ResponseChannel } from '../../rpc/call.ts'
import { noteRound } from '../../rpc/record.ts'
import type { CallRecord } from '../../rpc/record.ts'
import { Cancellation } from '../../rpc/cancellation.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import type { ParkingOptions } from './parking-options.ts'
import { answerIn, inputRequests, noAnswer, refusalOf } from '../questions.ts'
import type { PendingQuestion } from '../questions.ts'

interface Carrier {
  readonly call: Call
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

/** The table of parked calls, as seen by one call. */
export interface ParkedCalls {
  /** Called with each question. Throws if the request can have no `requestState`. */
  readonly prepare: () => void
  /** Returns the `requestState` of a round. */
  readonly issue: (nonce: string) => string
  /** Returns the option whose limit forbids parking the call, with its value; `undefined`: it may be parked. */
  readonly limitReached: () => string | undefined
  /** Called when the host did not retry in time. */
  readonly expired: () => void
  readonly onEnd: () => void
}

/** The response channel of the call to the server. */
export class ParkedCall implements ResponseChannel {
  readonly principal: string
  readonly #options: ParkingOptions
  readonly #parked: ParkedCalls
  readonly #abort = new Cancellation()
  /** Unanswered questions by their key in `inputRequests`. */
  readonly #asked = new Map<string, PendingQuestion>()
  #carrier: Carrier | undefined
  /** The record of the first carrying request. */
  #record: CallRecord | undefined
  #outcome: Promise<Outcome> | undefined
  /** Nonce of the round that the host must answer. */
  #nonce: string | undefined
  /** Nonce of the last answered round. */
  #usedNonce: string | undefined
  readonly #keys = new Set<string>()
  #mayAsk = true
  /** Ends the coalescing window. */
  #window: NodeJS.Timeout | undefined
  #expiry: NodeJS.Timeout | undefined

  constructor(principal: string, options: ParkingOptions, parked: ParkedCalls) {
    this.principal = principal
    this.#options = options
    this.#parked = parked
  }

  get isParked(): boolean {
    return this.#carrier === undefined
  }

  /** That of the carrying request (F-21). */
  get flow(): Flow | undefined {
    return this.#carrier?.call.responseChannel?.flow
  }

  start(call: Call, inner: Handler): Promise<Outcome> {
    this.#record = call.record
    const carried = this.#carry(call)
    inner({
      ...call,
      signal: this.#abort.signal,
      responseChannel: this,
      ask: (question) => this.#ask(question),
      notify: (method, params, isOfPeer) => this.#carrier?.call.notify(method, params, isOfPeer),
    }).then(
      (outcome) => this.#settle(Promise.resolve(outcome)),
      (error: unknown) => this.#settle(Promise.reject(error)),
    )
    return carried
  }

  /** Delivers the answers of a retry, which carries the call from now on. */
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
    noteRound(call, this.#record)
    const carried = this.#carry(call)
    for (const [key, answer] of answers) {
      this.#asked.get(key)?.answer(answer)
      this.#asked.delete(key)
    }
    // Unanswered questions are asked again, with a new state (rule 5).
    if (this.#outcome !== undefined) this.#deliver(this.#outcome)
    else this.#endRound()
    return carried
  }

  /** Declines all questions and cancels the call to the server (rule 4). */
  abandon(notice?: Payload): void {
    this.#declineAll()
    this.#abort.abort(notice)
    this.#carrier?.reject(new Failure('cancelled', 'the gateway is stopping'))
    this.#end()
  }

  /** Declines open and later questions; the call continues. */
  stopAsking(): void {
    this.#mayAsk = false
    clearTimeout(this.#window)
    this.#declineAll()
  }

  /** Answers by key. Throws `Refusal` for a malformed answer, before any answer is delivered. */
  #read(responses: Payload | undefined): Map<string, Answer> {
    const answers = new Map<string, Answer>()
    for (const [key, { question }] of this.#asked)
      if (responses?.member(key) !== undefined) answers.set(key, { result: answerIn(responses, key, question) })
    return answers
  }

  #ask(question: Question): Promise<Answer> {
    if (!this.#mayAsk) return Promise.resolve(noAnswer(question))
    const limit = this.#parked.limitReached()
    if (limit !== undefined) return Promise.resolve(errorAnswer(-32601, `${limit} reached: too many calls wait for input`))
    this.#parked.prepare()
    return new Promise((resolve) => {
      const key = this.#keyFor(question)
      this.#asked.set(key, { question, answer: resolve })
      // Settled although the server needs no answer: the idle time-out of its call is suspended until then.
      question.onWithdrawn?.(() => {
        this.#asked.delete(key)
        resolve(noAnswer(question))
      })
      this.#window ??= setTimeout(() => {
        this.#window = undefined
        this.#endRound()
      }, this.#options.coalesceMs)
    })
  }

  /** The field's name if the form has exactly one field, else `input-<n>`; unique for the life of the call (B060). */
  #keyFor({ params }: Question): string {
    const fields = params?.object('requestedSchema')?.object('properties')?.members ?? []
    const field = fields.length === 1 ? fields[0]?.key : undefined
    const isKey = field !== undefined && /^[A-Za-z][\w-]{0,39}$/.test(field)
    let key = isKey ? field : numbered(this.#keys.size + 1)
    // A field may be called like a numbered key.
    for (let at = this.#keys.size + 1; this.#keys.has(key); at++) key = numbered(at)
    this.#keys.add(key)
    return key
  }

  /** Ends the carrying request with all unanswered questions. Refuses those for which it declares no capability (B059). */
  #endRound(): void {
    const carrier = this.#carrier
    if (carrier === undefined) return
    for (const [key, { question, answer }] of this.#asked) {
      const refusal = refusalOf(question, carrier.call.caller.capabilities)
      if (refusal === undefined) continue
      this.#asked.delete(key)
      answer(refusal)
    }
    if (this.#asked.size === 0) return
    this.#carrier = undefined
    this.#nonce = randomUUID()
    const state = this.#parked.issue(this.#nonce)
    const result = new Draft()
    result.set('resultType', '"input_required"')
    result.set('inputRequests', inputRequests(this.#asked))
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
      const onAbort = (): void => {
        // The host cancelled the carrying request: the server's call is cancelled, too (rule 8).
        if (this.#carrier === carrier) this.abandon(call.signal.notice)
      }
      if (call.signal.aborted) onAbort()
      else call.signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** The server's call has ended. Without a carrier the outcome is kept for the next retry until it expires (rule 3). */
  #settle(outcome: Promise<Outcome>): void {
    outcome.catch(() => undefined)
    this.#outcome = outcome
    for (const [key, { question, answer }] of this.#asked) {
      const other = question.candidates?.().findLast(({ signal }) => signal !== this.#abort.signal)
      // It may belong to another call (B262): the next retry brings the answer, or the other call asks.
      if (other !== undefined && this.#carrier === undefined) continue
      this.#asked.delete(key)
      void Promise.resolve(other?.ask?.(question) ?? noAnswer(question)).then(answer)
    }
    if (this.#carrier !== undefined) this.#deliver(outcome)
  }

  #declineAll(): void {
    for (const { question, answer } of this.#asked.values()) answer(noAnswer(question))
    this.#asked.clear()
  }

  #deliver(outcome: Promise<Outcome>): void {
    const carrier = this.#carrier
    this.#declineAll()
    this.#end()
    if (carrier !== undefined) outcome.then(carrier.resolve, carrier.reject)
  }

  #end(): void {
    clearTimeout(this.#window)
    clearTimeout(this.#expiry)
    this.#carrier = undefined
    this.#parked.onEnd()
  }
}

const numbered = (at: number): string => `input-${at}`
