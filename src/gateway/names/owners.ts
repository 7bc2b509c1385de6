/**
 * The server that a call belongs to: the owner of the name that the call carries, or, of a retry, the server that was asked before.
 * Where no list shows the name, it may belong to a server whose lists are not known yet (B279), to one that does not list it (B278), or
 * to the server of a bridge (B277).
 */
import { findAppTemplate, findAppTool } from '../../catalog/view/apps.ts'
import { findOriginal, findPrompt, findResource, findTemplateRef, findTool } from '../../catalog/view/routes.ts'
import type { Route } from '../../catalog/view/routes.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Fleet } from '../../downstream/fleet.ts'
import { Refusal } from '../../rpc/call.ts'
import type { Call, Outcome } from '../../rpc/call.ts'
import { noteDenial, noteRoute } from '../../rpc/record.ts'
import type { Failure } from '../../wire/message/failure.ts'
import { declaresApps } from '../../wire/protocol/extensions.ts'
import { mayBeUnlisted } from '../lists/bridges.ts'
import type { Feed } from '../lists/feed.ts'
import { askHost } from '../rounds/ask-host.ts'
import type { OpenedRound, Rounds } from '../rounds/rounds.ts'
import type { SignInRounds } from '../rounds/sign-in.ts'
import type { LateNames, LateOwner } from './late-names.ts'
import { unknownName } from '../unknown-name.ts'
import { UnlistedNames } from './unlisted-names.ts'

/** Where what is called back by a sealed state is listed. */
const LISTED = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' } as const

export class Owners {
  readonly #feed: Feed
  readonly #late: LateNames
  readonly #unlisted: UnlistedNames
  readonly #rounds: Rounds
  readonly #signIns: SignInRounds
  readonly #fleet: Pick<Fleet, 'for'>

  constructor(feed: Feed, late: LateNames, rounds: Rounds, signIns: SignInRounds, fleet: Pick<Fleet, 'for'>) {
    this.#feed = feed
    this.#late = late
    this.#unlisted = new UnlistedNames({ feed, ownerOf: (call) => late.byForm(call) })
    this.#rounds = rounds
    this.#signIns = signIns
    this.#fleet = fleet
  }

  /** The owner as far as the lists show it now. `round`: of a retry. Throws `Refusal` where the call names nothing at all. */
  find(call: Call, round: OpenedRound | undefined, view: View): Route | undefined {
    return round === undefined ? this.#lookUp(call, view) : this.#goBack(call, round, view)
  }

  /**
   * The owner where the lists did not show it: waits for servers that may be it. Resolves with an outcome where the caller is asked to
   * sign in before. Rejects with the `Refusal` of an unknown name, or the `Failure` of the server that keeps it from being known.
   */
  findLater(call: Call, round: OpenedRound | undefined): Promise<Route | Outcome> {
    return round === undefined ? this.#findLater(call) : this.#goBackLater(call, round)
  }

  /** Owner of what the call names, where only a server that is not known yet can be it; or what its caller is asked before. */
  async #findLater(call: Call): Promise<Route | Outcome> {
    this.#refuseUngranted(call)
    const asked = await this.#awaitName(call)
    if (asked !== undefined) return asked
    const late =
      this.#lookUp(call) ??
      this.#signIns.routeOf(call.resume) ??
      (await this.#lookUpAgain(call)) ??
      this.#unlisted.routeOf(call) ??
      this.#bridged(call)
    if (late !== undefined) return late
    noteDenial(call, 'unknown')
    throw unknownName(call)
  }

  async #lookUpAgain(call: Call): Promise<Route | undefined> {
    await this.#unlisted.refreshed(call)
    return this.#lookUp(call)
  }

  /**
   * At a bridge a name that no list shows is its server's to answer, unless a rule of the configuration is about it (BRIDGING 3.21).
   */
  #bridged(call: Call): Route | undefined {
    const { scope, principal } = call.caller
    const downstream = scope.server === undefined ? undefined : this.#fleet.for(scope.server, principal)
    if (downstream === undefined || !mayBeUnlisted(call, downstream, this.#feed.viewOf(call.caller))) return undefined
    const ref = call.method === 'completion/complete' ? call.params.object('ref') : undefined
    const original = call.target ?? ref?.text('name') ?? ref?.text('uri') ?? ''
    return { serverKey: downstream.options.key, original, entry: undefined }
  }

  /**
   * Waits until what the call names may be looked up again. Throws the failure of the server that keeps it from being known; one
   * that a sign-in mends is asked for, which is the outcome.
   */
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
    const route: Route = { serverKey: downstream.options.key, original, entry: undefined }
    const outcome = await this.#signIns.ask(error, call, { ...call, target: original }, downstream)
    if (outcome.kind !== 'input_required') return outcome
    return askHost(outcome, { call, route, downstream, view: this.#feed.viewOf(call.caller) }, this.#rounds)
  }

  /** A retry goes to the server that was asked first, also if it was renamed; an entry hidden meanwhile does not exist. */
  #goBack(call: Call, { server, original }: OpenedRound, view = this.#feed.viewOf(call.caller)): Route | undefined {
    // Cast: only these methods have rounds.
    const kind = LISTED[call.method as keyof typeof LISTED]
    return findOriginal(view, kind, server, original)
  }

  async #goBackLater(call: Call, round: OpenedRound): Promise<Route | Outcome> {
    if (this.#fleet.for(round.server, call.caller.principal) === undefined)
      throw new Refusal(-32602, 'invalid or expired requestState')
    const asked = await this.#awaitName(call, round.resume)
    if (asked !== undefined) return asked
    const late = this.#goBack(call, round) ?? this.#signIns.routeOf(round.resume)
    if (late !== undefined) return late
    const unlisted = this.#unlisted.routeOf(call)
    if (unlisted?.serverKey === round.server && unlisted.original === round.original) return unlisted
    noteDenial(call, 'unknown')
    throw unknownName(call)
  }

  /** What only the scopes of a token hide is refused with the scopes it takes, before anything else is said (BRIDGING 6.1; B238). */
  #refuseUngranted(call: Call): void {
    if (call.caller.scope.granted === undefined) return
    const { granted, ...scope } = call.caller.scope
    const view = this.#feed.viewOf({ ...call.caller, scope })
    const route = this.#lookUp(call, view)
    const grants = this.#feed.grantsOf({ ...scope, granted })
    if (route === undefined || grants === undefined) return
    const scopes = grants.needed(route.serverKey, call.method === 'tools/call' && view.isWrite(call.target ?? ''))
    noteDenial(call, 'forbidden', scopes.join(' '))
    // A host that asks for these alone, as hosts before 2026-07-28 do, keeps what it had.
    const all = [...new Set([...granted.split(' '), ...scopes])].filter((scope) => scope !== '')
    throw new Refusal(-32602, `insufficient_scope: this takes ${scopes.join(' ')}`, { status: 403, scopes: all })
  }

  #lookUp(call: Call, view = this.#feed.viewOf(call.caller)): Route | undefined {
    if (call.method === 'completion/complete') {
      const ref = call.params.object('ref')
      const type = ref?.text('type')
      const name = ref?.text(type === 'ref/prompt' ? 'name' : 'uri')
      if (name === undefined) throw new Refusal(-32602, 'params.ref must name a prompt or a resource')
      return type === 'ref/prompt' ? findPrompt(view, name) : findTemplateRef(view, name)
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

  /** B171: written down with both names. */
  #noteAppName(call: Call, { serverKey, entry }: Route, view: View): void {
    const exposed = view.catalog.lists.tools.find((row) => row.entry === entry)?.exposed
    this.#fleet.for(serverKey, call.caller.principal)?.fidelity.note('appName', call, { name: call.target, exposed })
  }
}
