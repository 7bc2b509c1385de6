/**
 * Calls that a person is asked about: of the tools of `toolsets.<name>.confirm`, and where a rule of the policy says `confirm`. Asking ends the call with `input_required`, as a modern
 * server would, so every host is asked in the manner of its era; nothing is remembered but what is sealed into the state, and which
 * states have been used.
 *
 * A call is confirmed by a state that was sealed here, and by no other: later rounds of a confirmed call are sealed here again. The
 * router refuses a call that is not marked as confirmed where the tool it has found must be, so that no other path leads to one.
 */
import { randomUUID } from 'node:crypto'
import type { Purpose, Seal } from '../../auth/seal.ts'
import { findAppTool } from '../../catalog/view/apps.ts'
import type { Entry } from '../../catalog/inventory.ts'
import { findTool } from '../../catalog/view/routes.ts'
import { isAnswerTo, refusalOf, encodeQuestion } from '../../era/questions.ts'
import { digestOf } from '../../era/host/request-digest.ts'
import { complete, endpointKey, Refusal } from '../../rpc/call.ts'
import type { Call, Handler, Layer, Outcome, Question, StateMaker } from '../../rpc/call.ts'
import type { Store } from '../../store/store.ts'
import { noteDenial } from '../../rpc/record.ts'
import { declaresApps } from '../../wire/protocol/extensions.ts'
import { Failure } from '../../wire/message/failure.ts'
import { cleanMessage } from '../../wire/protocol/label.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { isAtLeast } from '../../wire/protocol/revisions.ts'
import type { Feed } from '../lists/feed.ts'
import { Unconfirmed } from '../unconfirmed.ts'
import type { AskingRule } from '../unconfirmed.ts'
import type { Rounds } from './rounds.ts'

/** Of a question that was put, and of what a confirmed call brings back later. */
const QUESTION: Purpose<Later> = 'confirmation'
const CONFIRMED: Purpose<Later> = 'confirmed call'
/** The question's key among `inputRequests`. */
const KEY = 'confirm'
/** Of the arguments a person is shown at most this many characters. */
const MAX_SHOWN = 2_000
const REQUIRED = { requiredCapabilities: { elicitation: { form: {} } } }

/** What every state of ours holds: it is good for this call of this caller at this endpoint alone, once. */
interface Ticket {
  readonly principal: string
  readonly endpoint: string
  readonly toolset: string
  /** Absent: the toolset asks. */
  readonly rule?: string
  /** Of tool and arguments. */
  readonly digest: string
  readonly nonce: string
}

/** What the state of a later round holds besides: the state of that round. */
interface Later extends Ticket {
  readonly state?: string | undefined
  readonly maker?: StateMaker | undefined
}

export class Confirmations {
  readonly #seal: Seal
  readonly #feed: Feed
  readonly #rounds: Pick<Rounds, 'open'>
  readonly #ttlMs: () => number
  /** Nonces of states that were brought back, until they expire (wall clock, ms). */
  readonly #used = new Map<string, number>()
  /** The same of all replicas; `undefined`: there are none. */
  readonly #store: Store | undefined

  /** `rounds`: knows the states that a call may have from elsewhere. `ttlMs`: how long a person may think. */
  constructor(seal: Seal, feed: Feed, rounds: Pick<Rounds, 'open'>, ttlMs: () => number, store?: Store) {
    this.#seal = seal
    this.#store = store
    this.#feed = feed
    this.#rounds = rounds
    this.#ttlMs = ttlMs
  }

  /** The state inside one of a confirmed call. */
  innerState(state: string): string | undefined {
    return this.#seal.open(CONFIRMED, state)?.state
  }

  /** `hasPolicy`: a rule may ask about any call. */
  layer(hasPolicy: boolean): Layer {
    return (inner) => (call) => {
      if (call.method !== 'tools/call') return inner(call)
      const { toolset } = this.#feed.viewOf(call.caller)
      return hasPolicy || toolset?.confirmsAny === true ? this.#guard(call, inner, toolset?.name ?? '') : inner(call)
    }
  }

  async #guard(call: Call, inner: Handler, toolset: string): Promise<Outcome> {
    const later = this.#open(CONFIRMED, call, toolset)
    if (later !== undefined) return this.#run(laterRound(call, later), later, inner)
    const asked = this.#open(QUESTION, call, toolset)
    if (asked !== undefined) return this.#answered(call, asked, inner)
    const view = this.#feed.viewOf(call.caller)
    const entry = this.#entryOf(call)
    if (entry !== undefined && view.confirms(entry)) {
      // A genuine state from before the question is asked about; what was made up, altered or meant for another call is refused.
      if (call.caller.session === undefined) this.#rounds.open(call)
      return this.#ask(call, toolset, undefined)
    }
    try {
      return await inner(call)
    } catch (error) {
      // Its name was not known before, or not as the one it has now; or a rule asks.
      if (!(error instanceof Unconfirmed)) throw error
      return this.#ask(call, toolset, error.asking)
    }
  }

  #entryOf({ target = '', caller }: Call): Entry | undefined {
    const view = this.#feed.viewOf(caller)
    const route = findTool(view, target) ?? (declaresApps(caller.capabilities) ? findAppTool(view, view.apps, target) : undefined)
    return route?.entry
  }

  #ticketFor(call: Call, toolset: string): Ticket {
    const { principal, scope } = call.caller
    return { principal, endpoint: endpointKey(scope), toolset, digest: digestOf(call), nonce: randomUUID() }
  }

  #ask(call: Call, toolset: string, asking: AskingRule | undefined): Outcome {
    const { caller } = call
    const asked: Question = { method: 'elicitation/create', params: Payload.of(wordsFor(call, toolset, asking)) }
    const mayBeAsked =
      refusalOf(asked, caller.capabilities) === undefined &&
      isAtLeast(caller.revision, '2025-06-18') &&
      (caller.session === undefined || call.ask !== undefined)
    if (!mayBeAsked) return cannotBeAsked(call, asking?.rule ?? optionsOf(toolset))
    encodeQuestion(asked, { key: 'gateway', revision: undefined, label: undefined }, caller, () => undefined)
    const ticket = { ...this.#ticketFor(call, toolset), ...(asking !== undefined && { rule: asking.rule }) }
    const state = this.#seal.seal(QUESTION, ticket, this.#ttlMs())
    const params = join(asked.params?.parts() ?? []).toString()
    const result = `{"resultType":"input_required","inputRequests":{"${KEY}":{"method":"${asked.method}","params":${params}}},"requestState":${JSON.stringify(state)}}`
    return { kind: 'input_required', result: Payload.at(Buffer.from(result)), state, maker: 'confirmation' }
  }

  /** `undefined`: the state is not one of this purpose. Throws -32602 for one that is not for this call, or was used. */
  #open(purpose: Purpose<Later>, call: Call, toolset: string): Later | undefined {
    const state = stateOf(call)
    const ticket = state === undefined ? undefined : this.#seal.open(purpose, state)
    if (ticket === undefined) return undefined
    const expected = this.#ticketFor(call, toolset)
    const isOurs =
      expected.principal === ticket.principal &&
      expected.endpoint === ticket.endpoint &&
      expected.toolset === ticket.toolset &&
      expected.digest === ticket.digest
    if (!isOurs) throw new Refusal(-32602, 'invalid or expired requestState')
    if (this.#used.has(ticket.nonce)) throw new Refusal(-32602, 'requestState already used')
    return ticket
  }

  #answered(call: Call, ticket: Ticket, inner: Handler): Promise<Outcome> | Outcome {
    const { toolset } = ticket
    const { session } = call.caller
    const responses = session === undefined ? call.params.object('inputResponses') : call.resume?.responses
    // Asked again in the words of the toolset, or, where a rule asks, of the rule as it is now.
    if (responses?.has(KEY) !== true)
      return ticket.rule === undefined ? this.#ask(call, toolset, undefined) : this.#guard(asFirst(call), inner, toolset)
    const response = responses.object(KEY)
    if (response === undefined || !isAnswerTo({ method: 'elicitation/create', params: undefined }, response))
      throw new Refusal(-32602, `inputResponses["${KEY}"] is no answer to elicitation/create`)
    if (response.text('action') === 'accept') return this.#run(asFirst(call), ticket, inner)
    this.#use(ticket)
    void this.#useShared(call, ticket).catch(() => undefined)
    noteDenial(call, 'declined', ticket.rule ?? optionsOf(toolset))
    return said('declined by the user')
  }

  /** The confirmed call. What it is asked on the way comes back with a state of ours, which says that it is confirmed. */
  async #run(call: Call, ticket: Ticket, inner: Handler): Promise<Outcome> {
    this.#use(ticket)
    if (!(await this.#useShared(call, ticket))) {
      this.#used.delete(ticket.nonce)
      const { rule, toolset } = ticket
      return rule === undefined ? this.#ask(call, toolset, undefined) : this.#guard(asFirst(call), inner, toolset)
    }
    const outcome = await inner({ ...call, isConfirmed: true }).catch((error: unknown) => {
      // Nothing was done with the answer: it may be brought again.
      if (error instanceof Failure && error.facts.executed === 'no') {
        this.#used.delete(ticket.nonce)
        this.#store?.delete(usedKey(ticket)).catch(() => undefined)
      }
      throw error
    })
    if (outcome.kind !== 'input_required') return outcome
    const later: Later = { ...ticket, nonce: randomUUID(), state: outcome.state, maker: outcome.maker }
    const state = this.#seal.seal(CONFIRMED, later, this.#ttlMs())
    if (call.caller.session === undefined) outcome.result.set('requestState', JSON.stringify(state))
    return { ...outcome, state, maker: 'confirmation' }
  }

  /**
   * Takes the nonce for all replicas, before the call is sent. False: the store is away, and a person is asked again. Throws -32602 where
   * another replica has taken it. The state of a session never leaves the process.
   */
  async #useShared({ caller }: Call, ticket: Ticket): Promise<boolean> {
    if (this.#store === undefined || caller.session !== undefined) return true
    const taker = randomUUID()
    const holder = await this.#store.claim(usedKey(ticket), taker, this.#ttlMs()).catch(() => undefined)
    if (holder !== undefined && holder !== taker) throw new Refusal(-32602, 'requestState already used')
    return holder === taker
  }

  #use({ nonce }: Ticket): void {
    const nowMs = Date.now()
    for (const [old, expiresMs] of this.#used) {
      if (expiresMs > nowMs) break
      this.#used.delete(old)
    }
    this.#used.set(nonce, nowMs + this.#ttlMs())
  }
}

const usedKey = ({ nonce }: Ticket): string => `used:${nonce}`

/** What this layer may have sealed. Of a session only what the gateway kept for it: a legacy host cannot bring a state. */
const stateOf = ({ caller, params, resume }: Call): string | undefined => {
  if (caller.session === undefined) return params.text('requestState')
  return resume?.maker === 'confirmation' ? resume.state : undefined
}

/** What the person reads: who asks, which tool, with what. */
const wordsFor = ({ target, params }: Call, toolset: string, asking: AskingRule | undefined): object => {
  const args = params.raw('arguments')?.toString() ?? '{}'
  const shown = args.length > MAX_SHOWN ? `${args.slice(0, MAX_SHOWN)} […]` : args
  const why = asking?.reason ?? `Toolset ${toolset} asks before each call of ${target}.`
  const message = cleanMessage(`${why} ${asking === undefined ? 'Call it' : `Call ${target}`} with ${shown}?`)
  return { mode: 'form', message, requestedSchema: { type: 'object', properties: {} } }
}

/** The host can declare the capability and try again; a session cannot, so its model is told. */
const cannotBeAsked = (call: Call, rule: string): Outcome => {
  const { caller, target } = call
  noteDenial(call, 'declined', rule)
  const text = `a person must be asked before each call of ${target} (${rule}), and this host cannot ask: it declares no form elicitation`
  if (caller.session === undefined) throw new Refusal(-32021, text, { status: 400, data: REQUIRED })
  return said(text)
}

const optionsOf = (toolset: string): string =>
  toolset
    .split(' ')
    .map((name) => `toolsets.${name}.confirm`)
    .join(', ')

const said = (text: string): Outcome => complete(Payload.of({ content: [{ type: 'text', text }], isError: true }))

/** The call as if nothing had been asked. */
const asFirst = (call: Call): Call =>
  call.caller.session === undefined
    ? { ...call, params: without(call.params, ['requestState', 'inputResponses']) }
    : { ...call, resume: undefined }

/** The call as its host would have brought it back, had it not been confirmed here. */
const laterRound = (call: Call, { state, maker }: Later): Call => {
  if (call.caller.session !== undefined) return { ...call, resume: { state, maker, responses: call.resume?.responses } }
  if (state === undefined) return { ...call, params: without(call.params, ['requestState']) }
  const params = call.params.fresh()
  params.set('requestState', JSON.stringify(state))
  return { ...call, params: rebuilt(params) }
}

const without = (before: Payload, keys: readonly string[]): Payload => {
  const params = before.fresh()
  for (const key of keys) params.delete(key)
  return rebuilt(params)
}

/** Its edits in its own bytes: what is read next is read from there. */
const rebuilt = (params: Payload): Payload => Payload.at(join(params.parts()))
