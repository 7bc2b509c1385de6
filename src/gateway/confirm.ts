/**
 * Tools whose calls a person is asked about (`toolsets.<name>.confirm`). Asking ends the call with `input_required`, as a modern
 * server would, so every host is asked in the way of its era; nothing is remembered but what is sealed into the state, and which
 * states have been used.
 */
import { randomUUID } from 'node:crypto'
import type { Seal } from '../auth/seal.ts'
import { findAppTool } from '../catalog/apps.ts'
import type { Entry } from '../catalog/inventory.ts'
import { findTool } from '../catalog/routes.ts'
import { isAnswerTo, refusalOf, wordQuestion } from '../era/questions.ts'
import { digestOf } from '../era/request-digest.ts'
import { complete, Refusal } from '../rpc/call.ts'
import type { Call, Handler, Layer, Outcome, Question } from '../rpc/call.ts'
import { noteDenial } from '../rpc/record.ts'
import { declaresApps } from '../wire/apps.ts'
import { cleanMessage } from '../wire/label.ts'
import { join, Payload } from '../wire/payload.ts'
import { isAtLeast } from '../wire/revisions.ts'
import type { Feed } from './feed.ts'

const PURPOSE = 'confirmation'
/** The question's key among `inputRequests`. */
const KEY = 'confirm'
/** Of the arguments a person is shown at most this many characters. */
const MAX_SHOWN = 2_000
const REQUIRED = { requiredCapabilities: { elicitation: { form: {} } } }

/** What the state of a question holds: the answer is good for this call of this caller alone, once. */
interface Ticket {
  readonly principal: string
  readonly toolset: string
  /** Of tool and arguments. */
  readonly digest: string
  readonly nonce: string
}

/** What a host brings back. */
interface Answered {
  readonly ticket: Ticket
  readonly response: Payload | undefined
}

export class Confirmations {
  readonly #seal: Seal
  readonly #feed: Feed
  readonly #awaitName: (call: Call) => Promise<Outcome | undefined>
  readonly #ttlMs: () => number
  /** Nonces of tickets that were answered, until they expire (wall clock, ms). */
  readonly #used = new Map<string, number>()

  /** `awaitName`: waits until a name that is not known may be; an outcome is the end of the call. `ttlMs`: how long a person may think. */
  constructor(seal: Seal, feed: Feed, awaitName: (call: Call) => Promise<Outcome | undefined>, ttlMs: () => number) {
    this.#seal = seal
    this.#feed = feed
    this.#awaitName = awaitName
    this.#ttlMs = ttlMs
  }

  readonly layer: Layer = (inner) => (call) => {
    const isAsked = call.method === 'tools/call' && this.#feed.viewOf(call.caller).toolset?.confirmsAny === true
    return isAsked ? this.#guard(call, inner) : inner(call)
  }

  async #guard(call: Call, inner: Handler): Promise<Outcome> {
    // A name that turns up only later must not slip by.
    if (this.#entryOf(call) === undefined) {
      const ended = await this.#awaitName(call)
      if (ended !== undefined) return ended
    }
    const entry = this.#entryOf(call)
    const view = this.#feed.viewOf(call.caller)
    if (entry === undefined || !view.confirms(entry)) return inner(call)
    const toolset = view.toolset?.name ?? ''
    const isFirst = call.caller.session === undefined ? call.params.isAbsent('requestState') : call.resume === undefined
    if (isFirst) return this.#ask(call, toolset)
    const answered = this.#open(call, toolset)
    // The state of a later round, which its maker checks: nobody has one without having been asked.
    if (answered === undefined) return inner(call)
    const { ticket, response } = answered
    if (response === undefined) return this.#ask(call, toolset)
    this.#use(ticket)
    if (response.text('action') === 'accept') return inner(asFirst(call))
    noteDenial(call, 'declined', optionsOf(toolset))
    return said('declined by the user')
  }

  #entryOf({ target = '', caller }: Call): Entry | undefined {
    const view = this.#feed.viewOf(caller)
    const route = findTool(view, target) ?? (declaresApps(caller.capabilities) ? findAppTool(view, view.apps, target) : undefined)
    return route?.entry
  }

  #ask(call: Call, toolset: string): Outcome {
    const { caller } = call
    const asked: Question = { method: 'elicitation/create', params: Payload.of(wordsFor(call, toolset)) }
    const mayBeAsked =
      refusalOf(asked, caller.capabilities) === undefined &&
      isAtLeast(caller.revision, '2025-06-18') &&
      (caller.session === undefined || call.ask !== undefined)
    if (!mayBeAsked) return cannotBeAsked(call, toolset)
    wordQuestion(asked, { key: 'gateway', revision: undefined, label: undefined }, caller, () => undefined)
    const ticket: Ticket = { principal: caller.principal, toolset, digest: digestOf(call), nonce: randomUUID() }
    const state = this.#seal.seal(PURPOSE, ticket, this.#ttlMs())
    const params = join(asked.params?.parts() ?? []).toString()
    const result = `{"resultType":"input_required","inputRequests":{"${KEY}":{"method":"${asked.method}","params":${params}}},"requestState":${JSON.stringify(state)}}`
    return { kind: 'input_required', result: Payload.at(Buffer.from(result)), state }
  }

  /** `undefined`: the state is none of ours. Throws -32602 for one that is, and not for this call, or was used. */
  #open(call: Call, toolset: string): Answered | undefined {
    const { session, principal } = call.caller
    const state = session === undefined ? call.params.text('requestState') : call.resume?.state
    const ticket = state === undefined ? undefined : (this.#seal.open(PURPOSE, state) as Ticket | undefined)
    if (ticket === undefined) return undefined
    const isOurs = ticket.principal === principal && ticket.toolset === toolset && ticket.digest === digestOf(call)
    if (!isOurs) throw new Refusal(-32602, 'invalid or expired requestState')
    if (this.#used.has(ticket.nonce)) throw new Refusal(-32602, 'requestState already used')
    const responses = session === undefined ? call.params.object('inputResponses') : call.resume?.responses
    if (responses?.has(KEY) !== true) return { ticket, response: undefined }
    const response = responses.object(KEY)
    if (response === undefined || !isAnswerTo({ method: 'elicitation/create', params: undefined }, response))
      throw new Refusal(-32602, `inputResponses["${KEY}"] is no answer to elicitation/create`)
    return { ticket, response }
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

/** What the person reads: who asks, which tool, with what. */
const wordsFor = ({ target, params }: Call, toolset: string): object => {
  const args = params.raw('arguments')?.toString() ?? '{}'
  const shown = args.length > MAX_SHOWN ? `${args.slice(0, MAX_SHOWN)} […]` : args
  const message = cleanMessage(`Toolset ${toolset} asks before each call of ${target}. Call it with ${shown}?`)
  return { mode: 'form', message, requestedSchema: { type: 'object', properties: {} } }
}

/** The host can declare the capability and try again; a session cannot, so its model is told. */
const cannotBeAsked = (call: Call, toolset: string): Outcome => {
  const { caller, target } = call
  noteDenial(call, 'declined', optionsOf(toolset))
  const text = `a person must be asked before each call of ${target} (${optionsOf(toolset)}), and this host cannot ask: it declares no form elicitation`
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
const asFirst = (call: Call): Call => {
  const params = call.params.fresh()
  params.delete('requestState')
  params.delete('inputResponses')
  return { ...call, params: Payload.at(join(params.parts())), resume: undefined }
}
