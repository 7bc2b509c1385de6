/**
 * Confirmation of calls by a person: for tools of `toolsets.<name>.confirm`, and for rules of the policy with `confirm`. The layer ends
 * the call with `input_required`, like a modern server, so that hosts of both eras are asked in their form. The state is sealed; only
 * the used states are stored.
 *
 * Only a state sealed here confirms a call; states of later rounds of a confirmed call are sealed here again. The router refuses an
 * unconfirmed call of a tool that must be confirmed, so that no other path reaches it.
 */
import { randomUUID } from 'node:crypto'
import type { Purpose, Seal } from '../../auth/seal.ts'
import { findAppTool } from '../../catalog/view/apps.ts'
import { exposedTool, findTool } from '../../catalog/view/routes.ts'
import type { Route } from '../../catalog/view/routes.ts'
import type { View } from '../../catalog/view/view.ts'
import { answerIn, refusalOf, encodeQuestion } from '../../era/questions.ts'
import { digestOf } from '../../era/host/request-digest.ts'
import { endpointKey, Refusal, toolText } from '../../rpc/call.ts'
import type { Call, Handler, Layer, Outcome, Question, StateMaker } from '../../rpc/call.ts'
import type { Store } from '../../store/store.ts'
import { noteDenial, noteRoute } from '../../rpc/record.ts'
import { declaresApps } from '../../wire/protocol/extensions.ts'
import { Failure } from '../../wire/message/failure.ts'
import { cleanMessage } from '../../wire/protocol/label.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { isAtLeast } from '../../wire/protocol/revisions.ts'
import type { Feed } from '../lists/feed.ts'
import { Unconfirmed } from '../unconfirmed.ts'
import type { AskingRule } from '../unconfirmed.ts'
import type { Rounds } from './rounds.ts'

/** Purpose of the state of a question. */
const QUESTION: Purpose<Later> = 'confirmation'
/** Purpose of the state of a later round of a confirmed call. */
const CONFIRMED: Purpose<Later> = 'confirmed call'
/** Key of the question in `inputRequests`. */
const KEY = 'confirm'
/** By which clocks of replicas may differ. */
const CLOCKS_MS = 5 * 60_000
/** Characters of the arguments in the message. */
const MAX_SHOWN = 2_000
const REQUIRED = { requiredCapabilities: { elicitation: { form: {} } } }

/** Content of a sealed state, which is valid once, for this call of this caller at this endpoint. */
interface Ticket {
  readonly principal: string
  readonly endpoint: string
  readonly toolset: string
  /** The rule of the policy; absent: the toolset asks. */
  readonly rule?: string
  /** Digest of tool and arguments. */
  readonly digest: string
  readonly nonce: string
  /** End of the state, wall clock in milliseconds: a reload may change the lifetime of states, and replicas may differ in it. */
  readonly untilMs: number
}

/** Content of the state of a later round: the ticket, and the state of that round. */
interface Later extends Ticket {
  readonly state?: string | undefined
  readonly maker?: StateMaker | undefined
}

/** Throws `Failure` for a call that the policy denies, whether or not a person confirms it. */
type CheckPolicy = (call: Call, route: Route, view: View) => Promise<void>

interface ConfirmationsSource {
  readonly seal: Seal
  readonly feed: Feed
  /** Opens states of other origin. */
  readonly rounds: Pick<Rounds, 'open'>
  /** Lifetime of a question. */
  readonly ttlMs: () => number
  readonly checkPolicy: CheckPolicy
  /** Holds the used nonces of all replicas; `undefined`: without replicas. */
  readonly store: Store | undefined
}

export class Confirmations {
  readonly #source: ConfirmationsSource
  /** Expiry of used nonces (wall clock, ms). */
  readonly #used = new Map<string, number>()

  constructor(source: ConfirmationsSource) {
    this.#source = source
  }

  /** The inner state of the state of a confirmed call. */
  innerState(state: string): string | undefined {
    return this.#source.seal.open(CONFIRMED, state)?.state
  }

  /** `hasPolicy`: a rule may ask for any call. */
  layer(hasPolicy: boolean): Layer {
    return (inner) => (call) => {
      if (call.method !== 'tools/call') return inner(call)
      const { toolset } = this.#source.feed.viewOf(call.caller)
      return hasPolicy || toolset?.confirmsAny === true ? this.#guard(call, inner, toolset?.name ?? '') : inner(call)
    }
  }

  async #guard(call: Call, inner: Handler, toolset: string): Promise<Outcome> {
    const route = this.#routeOf(call)
    // A call that ends here reaches no router, which would note it.
    if (route !== undefined) noteRoute(call, route.serverKey, route.original, true)
    const later = this.#open(CONFIRMED, call, toolset)
    if (later !== undefined) return this.#run(laterRound(call, later), later, inner)
    const asked = this.#open(QUESTION, call, toolset)
    if (asked !== undefined) return this.#answered(call, asked, inner)
    const view = this.#source.feed.viewOf(call.caller)
    if (route?.entry !== undefined && view.confirms(route.entry)) {
      // With a valid state of an earlier round the person is asked now; a forged state, or one of another call, is refused.
      if (call.caller.session === undefined) this.#source.rounds.open(call)
      // No question about a call that would then be denied.
      await this.#source.checkPolicy(call, route, view)
      return this.#ask(call, toolset, undefined)
    }
    try {
      return await inner(call)
    } catch (error) {
      // The tool was not known before, or a rule asks.
      if (!(error instanceof Unconfirmed)) throw error
      return this.#ask(call, toolset, error.asking)
    }
  }

  #routeOf({ target = '', caller }: Call): Route | undefined {
    const view = this.#source.feed.viewOf(caller)
    return findTool(view, target) ?? (declaresApps(caller.capabilities) ? findAppTool(view, view.apps, target) : undefined)
  }

  /** Its name in lists, which names the server too; an app may call it by its original name. */
  #nameOf(call: Call): string {
    return exposedTool(this.#source.feed.viewOf(call.caller), call.target ?? '', this.#routeOf(call)?.entry)
  }

  #ticketFor(call: Call, toolset: string): Ticket {
    const { principal, scope } = call.caller
    const untilMs = Date.now() + this.#source.ttlMs()
    return { principal, endpoint: endpointKey(scope), toolset, digest: digestOf(call), nonce: randomUUID(), untilMs }
  }

  #ask(call: Call, toolset: string, asking: AskingRule | undefined): Outcome {
    const { caller } = call
    const asked: Question = { method: ELICITATION, params: Payload.of(elicitationFor(call, this.#nameOf(call), toolset, asking)) }
    const mayBeAsked =
      refusalOf(asked, caller.capabilities) === undefined &&
      isAtLeast(caller.revision, '2025-06-18') &&
      (caller.session === undefined || call.ask !== undefined)
    if (!mayBeAsked) return cannotBeAsked(call, asking?.rule ?? optionsOf(toolset))
    encodeQuestion(asked, { key: 'gateway', revision: undefined, label: undefined }, caller, () => undefined)
    const ticket = { ...this.#ticketFor(call, toolset), ...(asking !== undefined && { rule: asking.rule }) }
    const state = this.#source.seal.seal(QUESTION, ticket, this.#source.ttlMs())
    const params = join(asked.params?.parts() ?? []).toString()
    const result = `{"resultType":"input_required","inputRequests":{"${KEY}":{"method":"${asked.method}","params":${params}}},"requestState":${JSON.stringify(state)}}`
    return { kind: 'input_required', result: Payload.at(Buffer.from(result)), state, maker: 'confirmation' }
  }

  /** `undefined`: no state of this purpose. Throws -32602 for a state that belongs to another call or was used. */
  #open(purpose: Purpose<Later>, call: Call, toolset: string): Later | undefined {
    const state = stateOf(call)
    const ticket = state === undefined ? undefined : this.#source.seal.open(purpose, state)
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
    // Asks again, with the current text of the toolset or of the rule.
    if (responses?.has(KEY) !== true)
      return ticket.rule === undefined ? this.#ask(call, toolset, undefined) : this.#guard(asFirst(call), inner, toolset)
    const response = answerIn(responses, KEY, { method: ELICITATION, params: undefined })
    if (response.text('action') === 'accept') return this.#run(asFirst(call), ticket, inner)
    this.#use(ticket)
    void this.#useShared(call, ticket).catch(() => undefined)
    noteDenial(call, 'declined', ticket.rule ?? optionsOf(toolset))
    return toolText('declined by the user', true)
  }

  /** Runs the confirmed call. Its questions get a state sealed here, which marks the later rounds as confirmed. */
  async #run(call: Call, ticket: Ticket, inner: Handler): Promise<Outcome> {
    this.#use(ticket)
    if (!(await this.#useShared(call, ticket))) {
      this.#used.delete(ticket.nonce)
      const { rule, toolset } = ticket
      return rule === undefined ? this.#ask(call, toolset, undefined) : this.#guard(asFirst(call), inner, toolset)
    }
    const outcome = await inner({ ...call, isConfirmed: true }).catch((error: unknown) => {
      // The call was not executed, so the answer may be used again.
      if (error instanceof Failure && error.facts.executed === 'no') {
        this.#used.delete(ticket.nonce)
        this.#source.store?.delete(usedKey(ticket)).catch(() => undefined)
      }
      throw error
    })
    if (outcome.kind !== 'input_required') return outcome
    const untilMs = Date.now() + this.#source.ttlMs()
    const later: Later = { ...ticket, nonce: randomUUID(), untilMs, state: outcome.state, maker: outcome.maker }
    const state = this.#source.seal.seal(CONFIRMED, later, this.#source.ttlMs())
    if (call.caller.session === undefined) outcome.result.set('requestState', JSON.stringify(state))
    return { ...outcome, state, maker: 'confirmation' }
  }

  /**
   * Claims the nonce for all replicas before the call is sent. False: the store is unavailable, and the person is asked again. Throws
   * -32602 if another replica has claimed it. States of sessions never leave the process.
   */
  async #useShared({ caller }: Call, ticket: Ticket): Promise<boolean> {
    if (this.#source.store === undefined || caller.session !== undefined) return true
    const taker = randomUUID()
    const holder = await this.#source.store.claim(usedKey(ticket), taker, this.#usedMs(ticket)).catch(() => undefined)
    if (holder !== undefined && holder !== taker) throw new Refusal(-32602, 'requestState already used')
    return holder === taker
  }

  #use(ticket: Ticket): void {
    const nowMs = Date.now()
    for (const [old, expiresMs] of this.#used) {
      if (expiresMs > nowMs) break
      this.#used.delete(old)
    }
    this.#used.set(ticket.nonce, nowMs + this.#usedMs(ticket))
  }

  /** How long the ticket counts as used: at least until its state has ended at all replicas. */
  #usedMs({ untilMs }: Ticket): number {
    return Math.max(this.#source.ttlMs(), untilMs - Date.now() + CLOCKS_MS)
  }
}

const usedKey = ({ nonce }: Ticket): string => `used:${nonce}`

/** The state that this layer may have sealed. A legacy host cannot send a state, so that of a session is kept by the gateway. */
const stateOf = ({ caller, params, resume }: Call): string | undefined => {
  if (caller.session === undefined) return params.text('requestState')
  return resume?.maker === 'confirmation' ? resume.state : undefined
}

const ELICITATION = 'elicitation/create'

/** Params of the question: the origin, the tool and the arguments. */
const elicitationFor = ({ params }: Call, name: string, toolset: string, asking: AskingRule | undefined): object => {
  const args = params.raw('arguments')?.toString() ?? '{}'
  const shown = args.length > MAX_SHOWN ? `${args.slice(0, MAX_SHOWN)} […]` : args
  const why = asking?.reason ?? `Toolset ${toolset} asks before each call of ${name}.`
  const message = cleanMessage(`${why} ${asking === undefined ? 'Call it' : `Call ${name}`} with ${shown}?`)
  return { mode: 'form', message, requestedSchema: { type: 'object', properties: {} } }
}

/** Throws -32021 for a modern host, which can declare the capability and try again; a legacy session gets a result for its model. */
const cannotBeAsked = (call: Call, rule: string): Outcome => {
  const { caller, target } = call
  noteDenial(call, 'declined', rule)
  const text = `a person must be asked before each call of ${target} (${rule}), and this host cannot ask: it declares no form elicitation`
  if (caller.session === undefined) throw new Refusal(-32021, text, { status: 400, data: REQUIRED })
  return toolText(text, true)
}

const optionsOf = (toolset: string): string =>
  toolset
    .split(' ')
    .map((name) => `toolsets.${name}.confirm`)
    .join(', ')

/** The call without state and answers. */
const asFirst = (call: Call): Call =>
  call.caller.session === undefined
    ? { ...call, params: without(call.params, ['requestState', 'inputResponses']) }
    : { ...call, resume: undefined }

/** The call with the inner state, as the host would have sent it without the confirmation. */
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

/** The params with their edits as bytes, from which later readers read. */
const rebuilt = (params: Payload): Payload => Payload.at(join(params.parts()))
