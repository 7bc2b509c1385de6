/**
 * Finds the server of a call: the owner of its name, or for a retry the server of the first attempt. An unlisted name may belong to a
 * server whose lists are not known yet (B279), to a server that does not list it (B278), or to the server of a bridge (B277).
 */
import { findAppTemplate, findAppTool } from '../../catalog/view/apps.ts'
import { exposedTool, findOriginal, findPrompt, findResource, findTemplateRef, findTool } from '../../catalog/view/routes.ts'
import type { Route } from '../../catalog/view/routes.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Fleet } from '../../downstream/fleet.ts'
import { Refusal } from '../../rpc/call.ts'
import type { Call, Outcome } from '../../rpc/call.ts'
import { noteDenial, noteRoute } from '../../rpc/record.ts'
import type { Failure } from '../../wire/message/failure.ts'
import { declaresApps } from '../../wire/protocol/extensions.ts'
import { mayBeUnlisted } from '../bridges.ts'
import type { Feed } from '../lists/feed.ts'
import { askHost } from '../rounds/ask-host.ts'
import type { OpenedRound, Rounds } from '../rounds/rounds.ts'
import type { SignInRounds } from '../rounds/sign-in.ts'
import { isPromptRef, refName } from '../completion-ref.ts'
import type { LateNames, LateOwner } from './late-names.ts'
import { unknownName } from '../unknown-name.ts'
import { UnlistedNames } from './unlisted-names.ts'

/** The refusal of a call for which the token lacks some of these scopes (BRIDGING 6.1; B238). */
export const insufficientScope = (call: Call, scopes: readonly string[]): Refusal => {
  noteDenial(call, 'forbidden', scopes.join(' '))
  // Granted scopes included: hosts before 2026-07-28 request exactly these scopes and would lose the others.
  const { granted = '' } = call.caller.scope
  const all = [...new Set([...granted.split(' '), ...scopes])].filter((scope) => scope !== '')
  return new Refusal(-32602, `insufficient_scope: this takes ${scopes.join(' ')}`, { status: 403, scopes: all })
}

/** The list of a method whose call may be retried with a sealed state. */
const LISTED = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' } as const

export class Owners {
  readonly #feed: Feed
  readonly #late: LateNames
  readonly #unlisted: UnlistedNames
  readonly #rounds: Rounds
  readonly #signIns: SignInRounds
  readonly #fleet: Pick<Fleet, 'bridged' | 'for'>

  constructor(feed: Feed, late: LateNames, rounds: Rounds, signIns: SignInRounds, fleet: Pick<Fleet, 'bridged' | 'for'>) {
    this.#feed = feed
    this.#late = late
    this.#unlisted = new UnlistedNames({ feed, ownerOf: (call) => late.byForm(call) })
    this.#rounds = rounds
    this.#signIns = signIns
    this.#fleet = fleet
  }

  /** The owner by the current lists. `round`: present for a retry. Throws `Refusal` for a call without a name. */
  find(call: Call, round: OpenedRound | undefined, view: View): Route | undefined {
    return round === undefined ? this.#lookUp(call, view) : this.#goBack(call, round, view)
  }

  /**
   * The owner of a name that the current lists do not contain: waits for servers that may own it. Resolves with an outcome if the caller
   * must sign in first. Rejects with the `Refusal` of an unknown name, or with the `Failure` of the server that may own it.
   */
  findLater(call: Call, round: OpenedRound | undefined): Promise<Route | Outcome> {
    return round === undefined ? this.#findLater(call) : this.#goBackLater(call, round)
  }

  async #findLater(call: Call): Promise<Route | Outcome> {
    this.#refuseUngranted(call)
    const signIn = await this.#awaitName(call)
    if (signIn !== undefined) return signIn
    const late =
      this.#lookUp(call) ??
      this.#signIns.routeOf(call.resume) ??
      (await this.#lookUpRefreshed(call)) ??
      this.#unlisted.routeOf(call) ??
      this.#bridged(call)
    if (late !== undefined) return late
    noteDenial(call, 'unknown')
    throw unknownName(call)
  }

  async #lookUpRefreshed(call: Call): Promise<Route | undefined> {
    await this.#unlisted.refreshed(call)
    return this.#lookUp(call)
  }

  /** The route of an unlisted name at a bridge, unless a rule of the configuration applies to it (BRIDGING 3.21). */
  #bridged(call: Call): Route | undefined {
    const downstream = this.#fleet.bridged(call.caller)
    if (downstream === undefined || !mayBeUnlisted(call, downstream, this.#feed.viewOf(call.caller))) return undefined
    const original = call.target ?? refName(call.params) ?? ''
    return { serverKey: downstream.options.key, original, entry: undefined }
  }

  /** Waits until the name can be looked up again; throws the failure of its server. Returns what asks for a sign-in. */
  async #awaitName(call: Call, resume = call.resume): Promise<Outcome | undefined> {
    const owner = this.#late.ownerOf(call)
    try {
      if (owner !== undefined && this.#signIns.isOurs(resume)) {
        const back = await this.#signIns.resume({ ...call, resume }, owner.downstream)
        if ('outcome' in back) return back.outcome
      }
      await this.#late.known(call, owner)
      return undefined
    } catch (error) {
      if (owner === undefined) throw error
      noteRoute(call, owner.downstream.options.key, owner.original)
      if (!this.#signIns.isNeeded(error)) throw error
      return this.#askToSignIn(error, call, owner)
    }
  }

  async #askToSignIn(error: Failure, call: Call, { downstream, original }: LateOwner): Promise<Outcome> {
    const route: Route = { serverKey: downstream.options.key, original, entry: undefined, isByForm: true }
    const outcome = await this.#signIns.ask(error, call, { ...call, target: original }, downstream)
    if (outcome.kind !== 'input_required') return outcome
    return askHost(outcome, { call, route, downstream, view: this.#feed.viewOf(call.caller) }, this.#rounds)
  }

  /** The route of a retry: the server of the first attempt, even if names have changed; an entry hidden meanwhile does not exist. */
  #goBack(call: Call, { server, original }: OpenedRound, view = this.#feed.viewOf(call.caller)): Route | undefined {
    if (original === undefined) {
      const named = this.#lookUp(call, view)
      return named?.serverKey === server ? named : undefined
    }
    // Cast: only these methods have rounds.
    const kind = LISTED[call.method as keyof typeof LISTED]
    return findOriginal(view, kind, server, original)
  }

  async #goBackLater(call: Call, round: OpenedRound): Promise<Route | Outcome> {
    if (this.#fleet.for(round.server, call.caller.principal) === undefined)
      throw new Refusal(-32602, 'invalid or expired requestState')
    const signIn = await this.#awaitName(call, round.resume)
    if (signIn !== undefined) return signIn
    const late = this.#goBack(call, round) ?? this.#signIns.routeOf(round.resume)
    if (late !== undefined) return late
    const unlisted = this.#unlisted.routeOf(call)
    const isSame = round.original === undefined || unlisted?.original === round.original
    if (unlisted?.serverKey === round.server && isSame) return unlisted
    noteDenial(call, 'unknown')
    throw unknownName(call)
  }

  /** Throws `Refusal` with the needed scopes if only the scopes of the token hide the name (BRIDGING 6.1; B238). */
  #refuseUngranted(call: Call): void {
    if (call.caller.scope.granted === undefined) return
    const { granted, ...scope } = call.caller.scope
    const view = this.#feed.viewOf({ ...call.caller, scope })
    const route = this.#lookUp(call, view)
    const grants = this.#feed.grantsOf({ ...scope, granted })
    if (route === undefined || grants === undefined) return
    throw insufficientScope(call, grants.needed(route.serverKey, call.method === 'tools/call' && view.isWrite(call.target ?? '')))
  }

  #lookUp(call: Call, view = this.#feed.viewOf(call.caller)): Route | undefined {
    if (call.method === 'completion/complete') {
      const name = refName(call.params)
      if (name === undefined) throw new Refusal(-32602, 'params.ref must name a prompt or a resource')
      return isPromptRef(call.params) ? findPrompt(view, name) : findTemplateRef(view, name)
    }
    if (call.target === undefined)
      throw new Refusal(-32602, `params.${call.method === 'resources/read' ? 'uri' : 'name'} must be a string`)
    if (call.method === 'prompts/get') return findPrompt(view, call.target)
    const isTool = call.method === 'tools/call'
    const route = isTool ? findTool(view, call.target) : findResource(view, call.target)
    if (route !== undefined || !declaresApps(call.caller.capabilities)) return route
    const own = isTool ? findAppTool(view, view.apps, call.target) : findAppTemplate(view, view.apps, call.target)
    if (own !== undefined) this.#noteAppName(call, own, view)
    return own
  }

  /** Notes the use of an app's original name, with the exposed name (B171). */
  #noteAppName(call: Call, { serverKey, entry }: Route, view: View): void {
    const exposed = exposedTool(view, call.target ?? '', entry)
    this.#fleet.for(serverKey, call.caller.principal)?.fidelity.note('appName', call, { name: call.target, exposed })
  }
}
