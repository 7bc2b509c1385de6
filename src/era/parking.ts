/**
 * A legacy server asks in the middle of a call; a modern host is asked by ending its request. So the server's call is parked:
 * it stays open here while the host, between two requests of its own, gathers the answers (BRIDGING 3.13, Example A).
 *
 *     host    ──7: call──►              ──8: call, answers, state──►
 *             ◄─7: input_required+state─               ◄─8: result──
 *     parked       │ carrier 7 │  (none, a person thinks)  │ carrier 8 │
 *     server  ──────────────── one call, 41, open all the time ────────
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Seal } from '../auth/seal.ts'
import { complete, Refusal } from '../rpc/call.ts'
import type { Answer, Call, Handler, Layer, Outcome, Question } from '../rpc/call.ts'
import { canonical } from '../wire/canonical.ts'
import { Failure } from '../wire/failure.ts'
import { METHODS } from '../wire/methods.ts'
import { Draft, join, Payload } from '../wire/payload.ts'
import { isAnswerTo, noAnswer } from './questions.ts'

export interface ParkingOptions {
  /** How long a host may take for one round (`limits.park_ttl`). */
  readonly ttlMs: number
  /** Parked calls in all, and of one authenticated principal (`limits.parked`, `limits.parked_per_principal`). */
  readonly maxParked: number
  readonly maxPerPrincipal: number
  /** Questions that come within this time share a round. */
  readonly siblingsMs: number
}

export const DEFAULT_PARKING: ParkingOptions = { ttlMs: 600_000, maxParked: 1_000, maxPerPrincipal: 8, siblingsMs: 25 }

const PURPOSE = 'parked call'
/** Everybody without a credential: bound by the total only (DECISIONS 7). */
const SHARED_PRINCIPAL = 'local'

/** What a parked call's `requestState` holds. */
interface Ticket {
  readonly park: string
  readonly nonce: string
  readonly principal: string
  readonly digest: string
  readonly method: string
}

export class Parking {
  readonly #seal: Seal
  readonly #options: ParkingOptions
  readonly #calls = new Map<string, ParkedCall>()

  constructor(seal: Seal, options: ParkingOptions = DEFAULT_PARKING) {
    this.#seal = seal
    this.#options = options
  }

  /** Calls that wait for a host's next request. */
  get size(): number {
    let parked = 0
    for (const call of this.#calls.values()) if (call.isParked) parked++
    return parked
  }

  /** Lets calls of modern hosts be asked in the middle, where the host declared anything that could be asked. */
  readonly layer: Layer = (inner) => (call) => {
    const { session, capabilities } = call.caller
    const mayBeAsked =
      capabilities['elicitation'] !== undefined || capabilities['sampling'] !== undefined || capabilities['roots'] !== undefined
    if (session !== undefined || !mayBeAsked || METHODS[call.method]?.mayAskInput !== true) return inner(call)
    const ticket = this.#open(call)
    return ticket === undefined ? this.#begin(call, inner) : this.#resume(call, ticket)
  }

  /** Ends everything that is parked, as if its time were over. */
  close(): void {
    for (const parked of this.#calls.values()) parked.abandon()
  }

  #open(call: Call): Ticket | undefined {
    const token = call.params.text('requestState')
    return token === undefined ? undefined : (this.#seal.open(PURPOSE, token) as Ticket | undefined)
  }

  #begin(call: Call, inner: Handler): Promise<Outcome> {
    const id = randomUUID()
    const digest = digestOf(call)
    const { principal } = call.caller
    const issue = (nonce: string): string =>
      this.#seal.seal(PURPOSE, { park: id, nonce, principal, digest, method: call.method } satisfies Ticket, this.#options.ttlMs)
    const parked = new ParkedCall(principal, this.#options, {
      issue,
      mayPark: () => this.#mayPark(principal),
      onEnd: () => this.#calls.delete(id),
    })
    this.#calls.set(id, parked)
    return parked.start(call, inner)
  }

  #resume(call: Call, ticket: Ticket): Promise<Outcome> {
    const isOurs = ticket.principal === call.caller.principal && ticket.digest === digestOf(call)
    if (!isOurs) throw new Refusal(-32602, 'invalid or expired requestState')
    const parked = this.#calls.get(ticket.park)
    if (parked !== undefined) return parked.resume(call, ticket.nonce)
    // The process that held the call is gone, and the call with it (rule 9): never played again.
    const text = 'the interaction with the server was lost; the action may or may not have happened'
    if (call.method !== 'tools/call') throw new Failure('lost', text)
    return Promise.resolve(complete(Payload.of({ content: [{ type: 'text', text }], isError: true })))
  }

  #mayPark(principal: string): boolean {
    const { maxParked, maxPerPrincipal } = this.#options
    let all = 0
    let own = 0
    for (const parked of this.#calls.values()) {
      if (!parked.isParked) continue
      all++
      if (parked.principal === principal) own++
    }
    return all < maxParked && (principal === SHARED_PRINCIPAL || own < maxPerPrincipal)
  }
}

interface Asked {
  readonly question: Question
  readonly answer: (answer: Answer) => void
}

interface Carrier {
  readonly call: Call
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: unknown) => void
}

interface Lot {
  readonly issue: (nonce: string) => string
  readonly mayPark: () => boolean
  readonly onEnd: () => void
}

class ParkedCall {
  readonly principal: string
  readonly #options: ParkingOptions
  readonly #lot: Lot
  readonly #abort = new AbortController()
  /** Unanswered questions by the key under which the host knows them. */
  readonly #asked = new Map<string, Asked>()
  #carrier: Carrier | undefined
  #outcome: Promise<Outcome> | undefined
  /** The nonce of the round the host holds, and of the one whose answers came last. */
  #nonce: string | undefined
  #usedNonce: string | undefined
  readonly #keys = new Set<string>()
  #siblings: NodeJS.Timeout | undefined
  #expiry: NodeJS.Timeout | undefined

  constructor(principal: string, options: ParkingOptions, lot: Lot) {
    this.principal = principal
    this.#options = options
    this.#lot = lot
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
      notify: (method, params) => this.#carrier?.call.notify(method, params),
    }).then(
      (outcome) => this.#settle(Promise.resolve(outcome)),
      (error: unknown) => this.#settle(Promise.reject(error)),
    )
    return carried
  }

  /** A retry: hands over its answers, then it is the carrier of whatever comes next. */
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
    // What the host left out is asked again, with a state of its own (rule 5).
    if (this.#outcome !== undefined) this.#deliver(this.#outcome)
    else if (this.#asked.size > 0) this.#endRound()
    return carried
  }

  /** Nobody came back in time: the server gets its non-answers and the call is cancelled (rule 4). */
  abandon(): void {
    for (const { question, answer } of this.#asked.values()) answer(noAnswer(question))
    this.#asked.clear()
    this.#abort.abort()
    this.#carrier?.reject(new Failure('cancelled', 'the gateway is stopping'))
    this.#end()
  }

  /** Answers by key; a malformed one refuses the retry and leaves everything as it was. */
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
    if (!this.#lot.mayPark())
      return Promise.resolve({ error: Payload.of({ code: -32601, message: 'too many calls wait for input (limits.parked)' }) })
    return new Promise((resolve) => {
      const key = this.#keyFor(question)
      this.#asked.set(key, { question, answer: resolve })
      question.onWithdrawn?.(() => this.#asked.delete(key))
      this.#siblings ??= setTimeout(() => {
        this.#siblings = undefined
        if (this.#carrier !== undefined && this.#asked.size > 0) this.#endRound()
      }, this.#options.siblingsMs)
    })
  }

  /** A key that says what is asked, where the question has one field; unique for the life of the call (B060). */
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

  /** Ends the carrier's request with everything that is unanswered. */
  #endRound(): void {
    const carrier = this.#carrier
    if (carrier === undefined) return
    this.#carrier = undefined
    this.#nonce = randomUUID()
    const requests = new Draft()
    for (const [key, { question }] of this.#asked) requests.set(key, inputRequest(question).parts())
    const state = this.#lot.issue(this.#nonce)
    const result = new Draft()
    result.set('resultType', '"input_required"')
    result.set('inputRequests', requests.parts())
    result.set('requestState', JSON.stringify(state))
    this.#expiry = setTimeout(() => this.abandon(), this.#options.ttlMs)
    carrier.resolve({ kind: 'input_required', result: Payload.at(join(result.parts())), state })
  }

  #carry(call: Call): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const carrier: Carrier = { call, resolve, reject }
      this.#carrier = carrier
      const leave = (): void => {
        // The host that carries it gave up: so does the server (rule 8).
        if (this.#carrier !== carrier) return
        this.abandon()
      }
      if (call.signal.aborted) leave()
      else call.signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** The server is done. Without a carrier the outcome waits for the next retry, until its time is over (rule 3). */
  #settle(outcome: Promise<Outcome>): void {
    outcome.catch(() => undefined)
    this.#outcome = outcome
    this.#asked.clear()
    if (this.#carrier !== undefined) this.#deliver(outcome)
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
    this.#lot.onEnd()
  }
}

const inputRequest = ({ method, params }: Question): Draft => {
  const request = new Draft()
  request.set('method', JSON.stringify(method))
  if (params !== undefined) request.set('params', params.parts())
  return request
}

/** A state opens only for the request it was made for (B064). */
const digestOf = ({ method, target, params }: Call): string => {
  const args = params.raw('arguments')
  return createHash('sha256')
    .update(`${method}\0${target ?? ''}\0${args === undefined ? '' : canonical(args)}`)
    .digest('base64url')
}
