/**
 * Applies the policy of the configuration once the server of a call is known, on all paths: plain calls, calls through the meta tools,
 * retries, bridges. Lists show what could be allowed.
 */
import { believed, type HintName } from '../catalog/hints.ts'
import type { CatalogServer, Exposed } from '../catalog/catalog.ts'
import { LIST_KINDS } from '../catalog/inventory.ts'
import type { ListKind } from '../catalog/inventory.ts'
import { plainUri } from '../catalog/names/plain-uri.ts'
import { isMetaTool } from '../catalog/view/meta-tools.ts'
import { exposedTool, exposedUri, findResource, isSignInRoute } from '../catalog/view/routes.ts'
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import { UnjudgedArguments } from '../policy/arguments.ts'
import type { ArgumentsJson } from '../policy/arguments.ts'
import type { DecisionService, ServiceAnswer } from '../policy/decision-service.ts'
import type { Policy, Judged, Verdict } from '../policy/policy.ts'
import { PolicyAnnotations, UNKNOWN } from '../policy/subject.ts'
import type { Call, Caller, Outcome } from '../rpc/call.ts'
import { noteDenial, notePolicy } from '../rpc/record.ts'
import { Failure } from '../wire/message/failure.ts'
import { join, Payload } from '../wire/message/payload.ts'
import { META } from '../wire/protocol/meta.ts'
import { isPromptRef, refName } from './completion-ref.ts'
import { Unconfirmed } from './unconfirmed.ts'
import { OPEN_BRACE } from '../wire/json/tokens.ts'

/** The method that uses an entry of a list. */
const USED_BY: Readonly<Record<ListKind, string>> = {
  tools: 'tools/call',
  prompts: 'prompts/get',
  resources: 'resources/read',
  templates: 'resources/read',
}

/** A call whose route is known. */
interface Placed {
  readonly call: Pick<Call, 'method' | 'target' | 'params' | 'caller' | 'record' | 'isConfirmed'>
  readonly route: Route
  readonly downstream: Pick<Downstream, 'options'>
  readonly view: View
}

export class Access {
  /** `undefined`: everything that a caller sees is allowed. */
  policy: Policy | undefined
  /** Decides if no rule does. */
  service: DecisionService | undefined

  /** The verdict on a call; `undefined`: no policy applies. */
  async judge(placed: Placed): Promise<Verdict | undefined> {
    const { policy, service } = this
    if (policy === undefined || isSignInRoute(placed.route)) return undefined
    const verdict = this.#verdictOn(policy, placed)
    if (service === undefined || !policy.isDefault(verdict)) return confirmable(verdict, placed.call)
    return (await this.#decide(placed, policy, service)).verdict
  }

  /**
   * Throws `Failure` for a denied call, and `Unconfirmed` for a call that a person must confirm first. Returns a promise if the service
   * decides; it resolves with new params if the service has replaced the arguments.
   */
  check(placed: Placed): Promise<Payload | undefined> | undefined {
    const { policy, service } = this
    if (policy === undefined || isSignInRoute(placed.route)) return undefined
    const verdict = this.#verdictOn(policy, placed)
    if (service !== undefined && policy.isDefault(verdict)) return this.#askService(placed, policy, service)
    enforce(placed.call, confirmable(verdict, placed.call))
    return undefined
  }

  /** The verdict of the rules on a call. */
  #verdictOn(policy: Policy, placed: Placed): Verdict {
    const { call, route, downstream, view } = placed
    const args = (): ArgumentsJson | undefined => argumentsAt(call)
    const judged = judgedCall(placed)
    const isListed = route.entry !== undefined || !isOfUri(call)
    return isListed ? policy.judge(judged, args) : this.#verdictOnUri(policy, judged, view, downstream.options, args)
  }

  /**
   * The verdict of the rules on an unlisted URI. A server may treat several spellings of a URI as one: as it is sent and in its
   * plain spelling, the stricter verdict counts. A URI that may mean any other is denied by each rule that denies some URI (decision 0219).
   */
  #verdictOnUri(
    policy: Policy,
    judged: Judged,
    view: View,
    server: CatalogServer,
    args: () => ArgumentsJson | undefined,
  ): Verdict {
    const verdict = policy.judge(judged, args)
    const { original } = judged
    const plain = typeof original === 'string' ? plainUri(original) : undefined
    if (plain === original) return verdict
    const names: Pick<Judged, 'name' | 'original'> =
      plain === undefined ? { name: UNKNOWN, original: UNKNOWN } : { name: exposedUri(view, server, plain), original: plain }
    const other = policy.judge({ ...judged, ...names }, args)
    const strictnessOf = (one: Verdict): number => {
      const isUndecided = policy.isDefault(one) && (one.decision === 'allow' || this.service !== undefined)
      return strictness(isUndecided ? 'undecided' : one.decision)
    }
    return strictnessOf(other) > strictnessOf(verdict) ? other : verdict
  }

  /** Whether a caller still gets updates of a resource; where a service decides, it has decided on the subscription. */
  mayWatch(caller: Caller, view: View, server: CatalogServer, original: string): boolean {
    const { policy, service } = this
    if (policy === undefined) return true
    const method = 'resources/subscribe'
    const name = exposedUri(view, server, original)
    const annotations = (): PolicyAnnotations => new PolicyAnnotations(ofRead)
    const facts = { method, server: server.key, name, original, annotations }
    const judged: Judged = { ...facts, caller, toolset: view.toolset?.name, entry: undefined }
    const isListed = findResource(view, name)?.entry !== undefined
    const verdict = isListed
      ? policy.judge(judged, () => undefined)
      : this.#verdictOnUri(policy, judged, view, server, () => undefined)
    return (service !== undefined && policy.isDefault(verdict)) || verdict.decision === 'allow'
  }

  /** Whether the service inspects the result of this call, so that the result must not be streamed. */
  inspects({ method }: Pick<Call, 'method'>): boolean {
    return method === 'tools/call' && this.inspectsResults
  }

  /** Whether the service inspects results of tools. */
  get inspectsResults(): boolean {
    return this.service?.options.replaces.includes('results') === true
  }

  /** The call with a record, in which replacements are noted until its result is marked. */
  recorded(call: Call): Call {
    return this.service === undefined || call.record !== undefined ? call : { ...call, record: {} }
  }

  /** The outcome with its content inspected, and perhaps replaced, by the service. Throws `Failure` if the service denies it. */
  async inspect<T extends Outcome>(placed: Placed, outcome: T): Promise<T> {
    const { service, policy } = this
    if (service === undefined || policy === undefined || isSignInRoute(placed.route)) return outcome
    const { call } = placed
    // The result of a task arrives by another request.
    if (outcome.kind === 'task')
      throw deniedResult(call, {
        decision: 'deny',
        rule: 'policy.service.replaces',
        reason: 'results of tasks cannot be inspected',
      })
    const { result } = outcome
    const { verdict = policy.otherwise, content } = await service.decide(
      judgedCall(placed),
      argumentsOf(call),
      join(result.parts()),
    )
    if (verdict.decision !== 'allow') throw deniedResult(call, verdict)
    if (content === undefined) return outcome
    result.set('content', content)
    result.delete('structuredContent')
    noteReplaced(call, 'result')
    // Joined, since the further edits read the bytes.
    return { ...outcome, result: Payload.at(join(result.parts())) }
  }

  /** Marks the result of a call of which the service has replaced something. */
  mark({ record }: Pick<Call, 'record'>, { result }: Outcome): void {
    const replaced = record?.policy?.replaced
    if (replaced !== undefined) result.setIn('_meta', META.gateway, JSON.stringify({ replaced, by: 'policy.service' }))
  }

  /** Selects the rows of a list that this caller is shown; `undefined`: all rows. */
  shown(view: View, kind: ListKind, caller: Caller): ShownRows | undefined | Promise<ShownRows> {
    const { policy, service } = this
    if (policy === undefined) return undefined
    const mayAllow = (row: Exposed): boolean | 'default' =>
      isOurs(kind, row) || policy.mayAllow(judgedRow(row, view, kind, caller))
    const isOpen = policy.otherwise.decision === 'allow'
    if (service === undefined) return (row) => orDefault(mayAllow(row), isOpen)
    if (!service.options.lists) return (row) => orDefault(mayAllow(row), true)
    const { rows } = view.list(kind)
    const undecided = rows.filter((row) => mayAllow(row) === 'default')
    // A template has no name of a call; the service gets the template itself.
    const asked = undecided.map((row) => ({
      ...judgedRow(row, view, kind, caller),
      name: row.exposed,
      original: row.entry.original,
    }))
    return service
      .visible(asked)
      .then((names) => (row: Exposed) => orDefault(mayAllow(row), names === undefined ? true : names.has(row.exposed)))
  }

  /** Whether a caller is shown some entry of a server, or the server has none. A service is not asked: it may show what no rule decides. */
  showsAnyOf(server: string, view: View, caller: Caller): boolean {
    const { policy, service } = this
    if (policy === undefined) return true
    const isOpen = service !== undefined || policy.otherwise.decision === 'allow'
    const rows = LIST_KINDS.flatMap((kind) =>
      view.catalog.lists[kind].filter((row) => row.server.key === server && view.shows(row)).map((row) => ({ kind, row })),
    )
    const isShown = ({ kind, row }: (typeof rows)[number]): boolean =>
      isOurs(kind, row) || orDefault(policy.mayAllow(judgedRow(row, view, kind, caller)), isOpen)
    return rows.length === 0 || rows.some(isShown)
  }

  /** Whether `shown` asks the service. */
  get asksForLists(): boolean {
    return this.service?.options.lists === true
  }

  /** Decides as this one does now. */
  copy(): Access {
    const copy = new Access()
    copy.policy = this.policy
    copy.service = this.service
    return copy
  }

  /** Whether a list has the same rows as with `other`. False if a service decides, which is not asked. */
  showsSame(other: Access, view: View, kind: ListKind, caller: Caller): boolean {
    if (this.asksForLists || other.asksForLists) return false
    const [shown, before] = [this.shown(view, kind, caller), other.shown(view, kind, caller)]
    if (shown instanceof Promise || before instanceof Promise) return false
    return shown === before || view.listed(kind).rows.every((row) => (shown?.(row) ?? true) === (before?.(row) ?? true))
  }

  async #askService(placed: Placed, policy: Policy, service: DecisionService): Promise<Payload | undefined> {
    const { call } = placed
    const answer = await this.#decide(placed, policy, service)
    enforce(call, answer.verdict)
    if (answer.arguments === undefined) return undefined
    noteReplaced(call, 'arguments')
    const params = call.params.fresh()
    params.set('arguments', answer.arguments)
    return Payload.at(join(params.parts()))
  }

  async #decide(
    placed: Placed,
    policy: Policy,
    service: DecisionService,
  ): Promise<ServiceAnswer & { readonly verdict: Verdict }> {
    const args = argumentsOf(placed.call)
    try {
      if (args !== undefined) policy.checkArguments(args)
    } catch (error) {
      if (!(error instanceof UnjudgedArguments)) throw error
      return { verdict: { decision: 'deny', rule: 'policy.service', reason: error.message } }
    }
    const answer = await service.decide(judgedCall(placed), args)
    return { ...answer, verdict: confirmable(answer.verdict ?? policy.otherwise, placed.call) }
  }
}

type ShownRows = (row: Exposed) => boolean

const orDefault = (decided: boolean | 'default', otherwise: boolean): boolean => (decided === 'default' ? otherwise : decided)

/** Only calls of tools can be confirmed by a person: for other methods `confirm` denies. */
const confirmable = (verdict: Verdict, { method }: Pick<Call, 'method'>): Verdict =>
  verdict.decision !== 'confirm' || method === 'tools/call'
    ? verdict
    : { ...verdict, decision: 'deny', reason: `${verdict.reason ?? ''} (only calls of tools can be confirmed)` }

const enforce = (call: Placed['call'], verdict: Verdict): void => {
  notePolicy(call, { decision: verdict.decision, rule: verdict.rule, reason: verdict.reason })
  if (verdict.decision === 'deny') throw denied(call, verdict)
  if (verdict.decision === 'confirm' && call.isConfirmed !== true)
    throw new Unconfirmed({ rule: verdict.rule, reason: verdict.reason ?? '' })
}

/** Notes a replacement, for the result and the audit log. */
const noteReplaced = ({ record }: Pick<Call, 'record'>, what: 'arguments' | 'result'): void => {
  if (record?.policy === undefined) return
  record.policy = { ...record.policy, replaced: [...(record.policy.replaced ?? []), what] }
}

/** The failure of a call whose result was denied; the server has executed the call. */
const deniedResult = (call: Placed['call'], verdict: Verdict): Failure => {
  notePolicy(call, { decision: 'deny', rule: verdict.rule, reason: verdict.reason })
  const told = `the result is withheld by policy: ${verdict.reason ?? ''}`
  return new Failure('policy_denied', told, { executed: 'unknown', retryable: false, told })
}

/** Tools of the gateway itself, to which the policy does not apply. */
const isOurs = (kind: ListKind, { entry, exposed }: Exposed): boolean =>
  kind === 'tools' && (entry.isSignIn === true || isMetaTool(exposed))

const denied = (call: Placed['call'], { rule, reason = '', detail }: Verdict): Failure => {
  noteDenial(call, 'policy', rule)
  const told = `denied by policy: ${reason}`
  return new Failure('policy_denied', detail === undefined ? told : `${told} (${rule}: ${detail})`, {
    executed: 'no',
    retryable: false,
    told,
  })
}

/** How strict a verdict is. `undecided`: no rule decided, and the call is allowed or a service decides: rules that allow are less strict. */
const strictness = (decision: Verdict['decision'] | 'undecided'): number =>
  ['allow', 'undecided', 'confirm', 'deny'].indexOf(decision)

const judgedCall = ({ call, route, downstream: { options: server }, view }: Placed): Judged => {
  const { caller, method } = call
  const { entry } = route
  const isTool = method === 'tools/call'
  return {
    caller,
    toolset: view.toolset?.name,
    method,
    server: server.key,
    name: exposedName(call, route, server, view),
    original: route.original,
    entry: isTool ? entry : undefined,
    annotations: () =>
      new PolicyAnnotations((hint) => {
        if (!isTool) return ofRead(hint)
        return entry === undefined ? believed(hint, {}) : view.holds(hint, { server, entry })
      }),
  }
}

/** Whether the call names a URI. */
const isOfUri = ({ method, params }: Placed['call']): boolean =>
  method.startsWith('resources/') || (method === 'completion/complete' && !isPromptRef(params))

/** The name in lists: a rule on it applies as well to a call by an original name or URI that is accepted in its place. */
const exposedName = (call: Placed['call'], route: Route, server: CatalogServer, view: View): string => {
  const named = call.target ?? refName(call.params) ?? ''
  if (named !== route.original) return named
  if (call.method === 'tools/call') return exposedTool(view, named, route.entry)
  return isOfUri(call) ? exposedUri(view, server, named) : named
}

const judgedRow = ({ server, entry, exposed }: Exposed, view: View, kind: ListKind, caller: Caller): Judged => ({
  caller,
  toolset: view.toolset?.name,
  method: USED_BY[kind],
  server: server.key,
  name: kind === 'templates' ? UNKNOWN : exposed,
  original: kind === 'templates' ? UNKNOWN : entry.original,
  entry: kind === 'tools' ? entry : undefined,
  annotations: () => new PolicyAnnotations((hint) => (kind === 'tools' ? view.holds(hint, { server, entry }) : ofRead(hint))),
})

/** Prompts and resources have no annotations; they count as read-only. */
const ofRead = (hint: HintName): boolean => believed(hint, { readOnlyHint: true })

const argumentsOf = (call: Placed['call']): Buffer | undefined => {
  const { bytes, start, end } = argumentsAt(call) ?? {}
  return bytes?.subarray(start, end)
}

/** The arguments of a tool or prompt, within the params. */
const argumentsAt = ({ method, params }: Placed['call']): ArgumentsJson | undefined => {
  if (method !== 'tools/call' && method !== 'prompts/get') return undefined
  const { bytes } = params
  const args = params.member('arguments')
  return args !== undefined && bytes[args.start] === OPEN_BRACE ? { bytes, start: args.start, end: args.end } : undefined
}
