/**
 * One call to one server: finds the owner, rewrites the request, calls, and rewrites the answer (BRIDGING 2.5, 3.3–3.6, 4).
 *
 *     owners ──► guards ──► rewrite-request ──► sign-in or task or plain call ──► ask-host | rewrite-error | rewrite-result
 */
import { isSignInRoute } from '../catalog/view/routes.ts'
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Fleet } from '../downstream/fleet.ts'
import { withoutModernMembers, withoutModernMeta } from '../era/host/legacy-host.ts'
import { complete, Refusal, toolText } from '../rpc/call.ts'
import type { Call, Caller, Outcome } from '../rpc/call.ts'
import { noteDenial, noteRoute } from '../rpc/record.ts'
import { Payload } from '../wire/message/payload.ts'
import { withoutTasks } from '../wire/protocol/extensions.ts'
import { isServerMethod, isVendorNotification, TASKS_LIST } from '../wire/protocol/methods.ts'
import type { Access } from './access.ts'
import type { Overflow } from './limits/overflow.ts'
import type { Rates } from './limits/rates.ts'
import { isRelayedUnchanged, isTranslated } from './bridges.ts'
import type { Feed } from './lists/feed.ts'
import { insufficientScope } from './names/owners.ts'
import type { Owners } from './names/owners.ts'
import { rewriteError } from './rewrite/rewrite-error.ts'
import { callForServer, rewriteParams, withheldFrom } from './rewrite/rewrite-request.ts'
import { rewriteResult } from './rewrite/rewrite-result.ts'
import { askHost } from './rounds/ask-host.ts'
import { Unconfirmed } from './unconfirmed.ts'
import type { Rounds } from './rounds/rounds.ts'
import type { SignInRounds } from './rounds/sign-in.ts'
import type { RoutedCall } from './routed-call.ts'
import type { Tasks } from './tasks/tasks.ts'

interface RouterParts {
  readonly feed: Pick<Feed, 'grantsOf' | 'viewOf'>
  readonly owners: Owners
  readonly rounds: Rounds
  readonly signIns: SignInRounds
  readonly tasks: Tasks
  readonly rates: Rates
  readonly overflow: Overflow
  readonly access: Access
  readonly fleet: Pick<Fleet, 'bridged' | 'for'>
}

export class Router {
  readonly #parts: RouterParts

  constructor(parts: RouterParts) {
    this.#parts = parts
  }

  /** Sends the call to the server that owns its name. */
  async forward(given: Call): Promise<Outcome> {
    const { access, feed, owners, rounds, fleet } = this.#parts
    const call = access.recorded(given)
    const isModern = call.caller.session === undefined
    const round = isModern ? rounds.open(call) : undefined
    let view = feed.viewOf(call.caller)
    let route = owners.find(call, round, view)
    if (route === undefined) {
      const late = await owners.findLater(call, round)
      if ('kind' in late) return late
      route = late
      view = feed.viewOf(call.caller)
    }
    const downstream = fleet.for(route.serverKey, call.caller.principal)
    if (downstream === undefined) throw new Refusal(-32602, 'invalid or expired requestState')
    const settling = downstream.eras.settled(call.caller)
    if (settling !== undefined) await settling
    const resume = round?.resume ?? call.resume ?? (isModern ? freshResponses(call) : undefined)
    const asRouted: RoutedCall = { call, route, downstream, view, resume }
    noteRoute(call, route.serverKey, route.original, route.entry !== undefined)
    const deciding = access.check(asRouted)
    const replaced = deciding === undefined ? undefined : await deciding
    const routed = replaced === undefined ? asRouted : { ...asRouted, call: { ...call, params: replaced }, received: call }
    this.#guard(routed)
    const fault = rewriteParams(routed)
    if (fault === undefined) {
      const isInspected = access.inspects(call)
      if (replaced === undefined && !isInspected) return this.#send(routed)
      const outcome = await this.#send(isInspected ? asWhole(routed) : routed, isInspected)
      access.mark(call, outcome)
      return outcome
    }
    noteDenial(call, 'invalid')
    return toolText(fault, true)
  }

  /** Throws if the call must be confirmed first, or if a rate limit of its server or tool is reached. */
  #guard(routed: RoutedCall): void {
    const { call, route, view } = routed
    if (view.toolset?.confirmsAny === true && call.isConfirmed !== true) refuseUnconfirmed(call, route, view)
    // The answer of a legacy host continues a call that has taken its tokens.
    const { rates } = this.#parts
    if (rates.limitsRoutes && (call.caller.session === undefined || call.resume === undefined))
      rates.checkRoute(call, route.serverKey, route.original)
  }

  /** Sends the call to its server and rewrites the answer. `isInspected`: see `Access.inspects`. */
  async #send(routed: RoutedCall, isInspected = false): Promise<Outcome> {
    const { access, signIns, tasks, rounds, overflow } = this.#parts
    const { call, route, downstream, view } = routed
    // A task whose result is inspected must not pass unchanged.
    const isUnchanged = !isInspected && isRelayedUnchanged(call.caller, downstream)
    const asking = tasks.asked(isUnchanged ? { ...call, isUnchanged: true } : call, downstream, view)
    let sent = callForServer(routed, isUnchanged, asking.ask)
    let outcome: Outcome
    try {
      if (signIns.isOurs(sent.resume)) {
        const back = await signIns.resume(sent, downstream)
        if ('outcome' in back) return back.outcome
        sent = { ...sent, resume: back.resume }
      }
      outcome = isSignInRoute(route)
        ? await downstream.signedIn()
        : await tasks.runs.run(sent, route.entry, downstream, call.target)
    } catch (error) {
      outcome = signIns.isNeeded(error)
        ? await signIns.ask(error, call, sent, downstream)
        : rewriteError(asking.refused(error), routed)
    }
    if (outcome.kind === 'input_required') return askHost(outcome, routed, rounds)
    // Before a limit is applied: what follows the limit is read later without another inspection.
    if (isInspected) outcome = await access.inspect(routed, outcome)
    if (outcome.kind === 'task') tasks.created(outcome.result, call, downstream)
    else if (call.caller.session === undefined) asking.refuseIfMissing(outcome)
    return rewriteResult(outcome, routed, overflow, access.policy !== undefined)
  }

  /** Relays a request at a bridge that has no name of the catalog to its server (B277). */
  async relay(call: Call): Promise<Outcome> {
    const { fleet, tasks, access, feed } = this.#parts
    const { caller, method } = call
    const downstream = fleet.bridged(caller)
    if (downstream === undefined) throw new Refusal(-32601, `Method not found: ${method}`, { status: 404 })
    const { key } = downstream.options
    noteRoute(call, key, method)
    // A link that several principals share has the tasks of all of them.
    if (method === TASKS_LIST && !isRelayedUnchanged(caller, downstream)) throw new Refusal(-32601, `Method not found: ${method}`)
    const view = feed.viewOf(caller)
    if (!isServerMethod(method) && !view.allowsAllOf(downstream.options)) throw this.#refusalOf(call, downstream)
    const route: Route = { serverKey: key, original: call.target ?? '', entry: undefined }
    if (!isOfOwnCalls(method)) await access.check({ call, route, downstream, view })
    // Requests to a modern server carry the level.
    if (method === 'logging/setLevel' && downstream.eras.eraFor(caller) === 'modern') return complete(Payload.of({}))
    const sent: Call = { ...call, isUnchanged: isRelayedUnchanged(caller, downstream), withheld: withheldFrom(downstream) }
    const outcome = await downstream.handle({ ...sent, ask: tasks.asked(sent, downstream).ask })
    const { kind, result } = outcome
    const isForLegacyHost = caller.session !== undefined && isTranslated(caller, downstream)
    if (kind === 'complete' && result instanceof Payload && isForLegacyHost) {
      withoutModernMembers(result)
      withoutModernMeta(result)
    }
    return outcome
  }

  /** The refusal of a method of no revision, which toolset or scopes do not allow: no list shows it, so only all of the server includes it. */
  #refusalOf(call: Call, { options }: Downstream): Refusal {
    const { feed } = this.#parts
    const { granted: _, ...scope } = call.caller.scope
    const grants = feed.grantsOf(call.caller.scope)
    if (grants !== undefined && feed.viewOf({ ...call.caller, scope }).allowsAllOf(options))
      return insufficientScope(call, grants.needed(options.key, true))
    noteDenial(call, 'unknown')
    return new Refusal(-32601, `Method not found: ${call.method}`, { status: 404 })
  }

  /**
   * Relays a notification of a host at a bridge to its server (B277). The policy decides on one that no revision defines, as on a request. A
   * request without an id is dropped: no rule for requests would apply to it, and a server may execute it.
   */
  notify(caller: Caller, method: string, params: Payload | undefined): void {
    const { access, feed, fleet } = this.#parts
    const downstream = fleet.bridged(caller)
    if (downstream === undefined || isServerMethod(method)) return
    const view = feed.viewOf(caller)
    if (isVendorNotification(method) && !view.allowsAllOf(downstream.options)) return
    const route: Route = { serverKey: downstream.options.key, original: '', entry: undefined }
    const call = { method, target: undefined, params: params ?? Payload.of({}), caller }
    const check = async (): Promise<unknown> => access.check({ call, route, downstream, view })
    downstream.sessions.notified(caller, method, params, isVendorNotification(method) ? check() : undefined)
  }
}

/** Whether the method refers to earlier, allowed calls of the caller, so that the policy is not applied. */
const isOfOwnCalls = (method: string): boolean =>
  isServerMethod(method) && (method === 'logging/setLevel' || method === 'resources/unsubscribe' || method.startsWith('tasks/'))

/** The call with a result that is neither streamed nor a task, so that it can be inspected. */
const asWhole = (routed: RoutedCall): RoutedCall => {
  const { caller } = routed.call
  const capabilities = withoutTasks(caller.capabilities)
  return { ...routed, call: { ...routed.call, takesStreams: false, caller: { ...caller, capabilities } } }
}

/** Throws `Unconfirmed` for a tool that must be confirmed, on every path (T-06). */
const refuseUnconfirmed = ({ method }: Call, { entry }: Route, view: View): void => {
  if (method === 'tools/call' && entry !== undefined && view.confirms(entry)) throw new Unconfirmed()
}

/** `inputResponses` without a state belong to a new call; they are relayed to a modern server (BRIDGING 3.2). */
const freshResponses = (call: Call): Call['resume'] => {
  const responses = call.params.object('inputResponses')
  return responses === undefined ? undefined : { state: undefined, responses: responses.fresh() }
}
