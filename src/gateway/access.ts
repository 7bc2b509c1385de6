/**
 * The policy of the configuration, applied where the server of a call is known, whatever path led there: plain calls, calls through
 * the tools of a search, retries, bridges. Lists show what could be allowed.
 */
import { believed, type HintName } from '../catalog/hints.ts'
import type { Exposed } from '../catalog/catalog.ts'
import type { ListKind } from '../catalog/inventory.ts'
import { isMetaTool } from '../catalog/view/meta-tools.ts'
import type { Route } from '../catalog/view/routes.ts'
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import type { Policy, Judged, Verdict } from '../policy/policy.ts'
import { PolicyAnnotations, UNKNOWN } from '../policy/subject.ts'
import type { Call, Caller } from '../rpc/call.ts'
import { noteDenial, notePolicy } from '../rpc/record.ts'
import { Failure } from '../wire/message/failure.ts'
import { Unconfirmed } from './unconfirmed.ts'

/** By what an entry of a list is used. */
const USED_BY: Readonly<Record<ListKind, string>> = {
  tools: 'tools/call',
  prompts: 'prompts/get',
  resources: 'resources/read',
  templates: 'resources/read',
}

/** A call and its server. */
export interface Placed {
  readonly call: Pick<Call, 'method' | 'target' | 'params' | 'caller' | 'record' | 'isConfirmed'>
  readonly route: Route
  readonly downstream: Pick<Downstream, 'options'>
  readonly view: View
}

export class Access {
  /** `undefined`: everything that a caller sees is allowed. */
  policy: Policy | undefined

  /** What the policy says of a call; `undefined`: nothing forbids it. */
  judge(placed: Placed): Verdict | undefined {
    const { call, route } = placed
    if (this.policy === undefined || route.entry?.isSignIn === true || route.isSignIn === true) return undefined
    const verdict = this.policy.judge(judgedCall(placed), argumentsOf(call))
    if (verdict.decision !== 'confirm' || call.method === 'tools/call') return verdict
    return { ...verdict, decision: 'deny', reason: `${verdict.reason ?? ''} (only calls of tools can be confirmed)` }
  }

  /** Throws `Failure` of a call that is denied, and `Unconfirmed` of one that a person has not confirmed. */
  check(placed: Placed): void {
    if (this.policy === undefined) return
    const { call } = placed
    const verdict = this.judge(placed)
    if (verdict === undefined) return
    notePolicy(call, { decision: verdict.decision, rule: verdict.rule, reason: verdict.reason })
    if (verdict.decision === 'allow') return
    if (verdict.decision === 'deny') throw denied(call, verdict)
    if (call.isConfirmed !== true) throw new Unconfirmed({ rule: verdict.rule, reason: verdict.reason ?? '' })
  }

  /** Which rows of a list this caller is shown; `undefined`: all. */
  shown(view: View, kind: ListKind, caller: Caller): ((row: Exposed) => boolean) | undefined {
    const { policy } = this
    if (policy === undefined) return undefined
    return (row) => isOurs(kind, row) || policy.mayAllow(judgedRow(row, view, kind, caller))
  }
}

/** What the gateway itself offers: it gives nothing that a call would not. */
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

const judgedCall = ({ call, route, downstream: { options: server }, view }: Placed): Judged => {
  const { caller, method, params } = call
  const ref = call.target === undefined ? params.object('ref') : undefined
  const { entry } = route
  const isTool = method === 'tools/call'
  return {
    caller,
    toolset: view.toolset?.name,
    method,
    server: server.key,
    name: call.target ?? ref?.text('name') ?? ref?.text('uri') ?? '',
    original: route.original,
    entry: isTool ? entry : undefined,
    annotations: () =>
      new PolicyAnnotations((hint) => {
        if (!isTool) return ofRead(hint)
        return entry === undefined ? believed(hint, {}) : view.holds(hint, { server, entry })
      }),
  }
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

/** Prompts and resources have no annotations: they are read. */
const ofRead = (hint: HintName): boolean => believed(hint, { readOnlyHint: true })

/** Those of tools and prompts. */
const argumentsOf = ({ method, params }: Placed['call']): Buffer | undefined => {
  if (method !== 'tools/call' && method !== 'prompts/get') return undefined
  const args = params.raw('arguments')
  return args?.[0] === OPEN ? args : undefined
}

const OPEN = 0x7b
