/**
 * One call to one server: finds the owner, rewrites the request, calls, and rewrites the answer (BRIDGING 2.5, 3.3–3.6, 4).
 *
 *     owners ──► guards ──► rewrite-request ──► sign-in or task or plain call ──► ask-host | rewrite-error | rewrite-result
 */
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Fleet } from '../downstream/fleet.ts'
import { withoutModernMembers, withoutModernMeta } from '../era/host/legacy-host.ts'
import { complete, Refusal } from '../rpc/call.ts'
import type { Call, Outcome } from '../rpc/call.ts'
import { noteDenial, noteRoute } from '../rpc/record.ts'
import { Payload } from '../wire/message/payload.ts'
import { withoutTasks } from '../wire/protocol/extensions.ts'
import type { Access } from './access.ts'
import type { Overflow } from './limits/overflow.ts'
import type { Rates } from './limits/rates.ts'
import { isAsItCame, isTranslated } from './lists/bridges.ts'
import type { Feed } from './lists/feed.ts'
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

/** What routing depends on. */
export interface RouterParts {
  readonly feed: Pick<Feed, 'viewOf'>
  readonly owners: Owners
  readonly rounds: Rounds
  readonly signIns: SignInRounds
  readonly tasks: Tasks
  readonly rates: Rates
  readonly overflow: Overflow
  readonly access: Access
  readonly fleet: Pick<Fleet, 'for'>
}

export class Router {
  readonly #parts: RouterParts

  constructor(parts: RouterParts) {
    this.#parts = parts
  }

  /** Calls the server that owns what the call names. */
  async forward(call: Call): Promise<Outcome> {
    const { feed, owners, rounds, fleet } = this.#parts
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
    const { access } = this.#parts
    noteRoute(call, route.serverKey, route.original, route.entry !== undefined)
    const asked = access.check(asRouted)
    const replaced = asked === undefined ? undefined : await asked
    const routed = replaced === undefined ? asRouted : { ...asRouted, call: { ...call, params: replaced } }
    this.#guard(routed)
    const fault = rewriteParams(routed)
    if (fault === undefined) {
      const isInspected = access.inspects(call)
      if (replaced === undefined && !isInspected) return this.#exchange(routed)
      const outcome = await this.#exchange(isInspected ? asWhole(routed) : routed)
      if (replaced !== undefined) access.mark(call, outcome)
      return isInspected ? access.inspect(routed, outcome) : outcome
    }
    noteDenial(call, 'invalid')
    return complete(Payload.of({ content: [{ type: 'text', text: fault }], isError: true }))
  }

  /** What may still refuse a call whose route is known. */
  #guard(routed: RoutedCall): void {
    const { call, route, view } = routed
    if (view.toolset?.confirmsAny === true && call.isConfirmed !== true) refuseUnconfirmed(call, route, view)
    // A legacy host that was asked within its call goes on with that call.
    const { rates } = this.#parts
    if (rates.limitsRoutes && (call.caller.session === undefined || call.resume === undefined))
      rates.checkRoute(call, route.serverKey, route.original)
  }

  /** The call at its server, and what becomes of the answer. */
  async #exchange(routed: RoutedCall): Promise<Outcome> {
    const { signIns, tasks, rounds, overflow } = this.#parts
    const { call, route, downstream, view } = routed
    const isRaw = isAsItCame(call.caller, downstream)
    const asking = tasks.asked(isRaw ? { ...call, isAsItCame: true } : call, downstream, view)
    let sent = callForServer(routed, isRaw, asking.ask)
    let outcome: Outcome
    try {
      if (signIns.isOurs(sent.resume)) {
        const back = await signIns.resume(sent, downstream)
        if ('outcome' in back) return back.outcome
        sent = { ...sent, resume: back.resume }
      }
      outcome = isSignInTool(route) ? await downstream.signedIn() : await tasks.runs.run(sent, route.entry, downstream)
    } catch (error) {
      outcome = signIns.isNeeded(error)
        ? await signIns.ask(error, call, sent, downstream)
        : rewriteError(asking.refused(error), routed)
    }
    if (outcome.kind === 'input_required') return askHost(outcome, routed, rounds)
    if (outcome.kind === 'task') tasks.created(outcome.result, call, downstream)
    else if (call.caller.session === undefined) asking.refuseIfMissing(outcome)
    return rewriteResult(outcome, routed, overflow)
  }

  /** A request at a bridge that names nothing of the catalog: its server's to answer (B277). */
  async relay(call: Call): Promise<Outcome> {
    const { fleet, tasks, access, feed } = this.#parts
    const { caller, method } = call
    const downstream = caller.scope.server === undefined ? undefined : fleet.for(caller.scope.server, caller.principal)
    if (downstream === undefined) throw new Refusal(-32601, `Method not found: ${method}`, { status: 404 })
    const { key } = downstream.options
    noteRoute(call, key, method)
    if (!isOfOwnCalls(method))
      await access.check({
        call,
        route: { serverKey: key, original: '', entry: undefined },
        downstream,
        view: feed.viewOf(caller),
      })
    // A modern server is told the level with each request.
    if (method === 'logging/setLevel' && downstream.eras.eraFor(caller) === 'modern') return complete(Payload.of({}))
    const sent: Call = { ...call, isAsItCame: isAsItCame(caller, downstream), withheld: withheldFrom(downstream) }
    const outcome = await downstream.handle({ ...sent, ask: tasks.asked(sent, downstream).ask })
    const { kind, result } = outcome
    const isForLegacyHost = caller.session !== undefined && isTranslated(caller, downstream)
    if (kind === 'complete' && result instanceof Payload && isForLegacyHost) {
      withoutModernMembers(result)
      withoutModernMeta(result)
    }
    return outcome
  }
}

/** The tool that stands in the place of a server's lists until a person has signed in; never the server's own of that name. */
const isSignInTool = ({ entry, isSignIn = entry?.isSignIn }: Route): boolean => isSignIn === true

/** Whether the method is about calls that were allowed, or about what the caller is told of them. */
const isOfOwnCalls = (method: string): boolean =>
  method === 'logging/setLevel' || method === 'resources/unsubscribe' || method.startsWith('tasks/')

/** Its result is read before it is passed on, and must not come on another path. */
const asWhole = (routed: RoutedCall): RoutedCall => {
  const { caller } = routed.call
  const capabilities = withoutTasks(caller.capabilities)
  return { ...routed, call: { ...routed.call, takesStreams: false, caller: { ...caller, capabilities } } }
}

/** A person agrees first, whatever found the route and whatever state was brought (T-06). */
const refuseUnconfirmed = ({ method }: Call, { entry }: Route, view: View): void => {
  if (method === 'tools/call' && entry !== undefined && view.confirms(entry)) throw new Unconfirmed()
}

/** `inputResponses` without a state start afresh; a modern server may still want them (BRIDGING 3.2). */
const freshResponses = (call: Call): Call['resume'] => {
  const responses = call.params.object('inputResponses')
  return responses === undefined ? undefined : { state: undefined, responses: responses.fresh() }
}
