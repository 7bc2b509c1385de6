/**
 * Rewrites a server's result for its host: exposed URIs, cache hints, limits, the server's key, and the form of the host's revision
 * (BRIDGING 2.5, 2.6, 4.4). At a bridge between peers of one era only limits and cache hints are changed (3.21).
 */
import { isPerUser } from '../../auth/credential-options.ts'
import type { Exposed } from '../../catalog/catalog.ts'
import type { ResultLimit } from '../../catalog/curation.ts'
import { matchesTemplate, parseTemplate } from '../../catalog/names/templates.ts'
import { correctReadHints } from '../../catalog/view/cache-hints.ts'
import { exposeResult } from '../../catalog/view/expose-result.ts'
import { exposedUri } from '../../catalog/view/routes.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { withoutModernMembers, withoutModernMeta } from '../../era/host/legacy-host.ts'
import { project } from '../../era/host/projections.ts'
import { isBridge, SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Call, Caller, Outcome } from '../../rpc/call.ts'
import type { BlockPlace } from '../../wire/message/content-blocks.ts'
import { elementsAt } from '../../wire/message/members.ts'
import { Payload } from '../../wire/message/payload.ts'
import { META } from '../../wire/protocol/meta.ts'
import type { Overflow } from '../limits/overflow.ts'
import { limitResult } from '../limits/result-limit.ts'
import { isTranslated } from '../bridges.ts'
import { unknownName } from '../unknown-name.ts'
import type { RoutedCall } from '../routed-call.ts'

/** Where results of a method hold URIs. */
const PLACES: Readonly<Record<string, BlockPlace>> = {
  'tools/call': 'content',
  'prompts/get': 'messages',
  'resources/read': 'contents',
}

/** Maximum number of completion values (B111). */
const MAX_COMPLETIONS = 100

/** Edits the payload for the host. Throws `Refusal` if an empty result means an unknown resource. `isJudged`: by a policy. */
export const rewriteResult = (outcome: Outcome, routed: RoutedCall, overflow: Overflow, isJudged: boolean): Outcome => {
  const { call, route, downstream, view } = routed
  let { result } = outcome
  if (!(result instanceof Payload)) return outcome
  const isAtBridge = isBridge(call.caller.scope)
  if (call.caller.session !== undefined && downstream.eras.eraFor(call.caller) === 'modern') {
    withoutModernMeta(result)
    if (isAtBridge) withoutModernMembers(result)
  }
  if (call.method === 'resources/read' && outcome.kind === 'complete' && call.caller.session === undefined)
    correctReadHints(result, isJudged || isPersonal(call.caller, downstream))
  if (isAtBridge && !isTranslated(call.caller, downstream)) return limitedOnly(outcome, result, routed, overflow)
  if (call.method === 'completion/complete') {
    if (limitCompletions(result)) downstream.fidelity.note('completionCut', call)
  } else if (outcome.kind === 'complete') {
    const place = PLACES[call.method]
    if (call.method === 'resources/read') refuseEmpty(result, routed)
    if (view.mayRenameUris(downstream.options) && place !== undefined) exposeResult(result, place, exposer(routed))
    const limit = route.entry?.rule?.result
    if (limit !== undefined) result = limited(result, limit, call, overflow)
  }
  if (call.caller.session === undefined && view.catalog.sources.length > 1)
    result.setIn('_meta', META.server, JSON.stringify(downstream.options.key))
  if (outcome.kind !== 'complete') return outcome
  // The era of this answer decides, since the lists may be of another era of the server (B268): answers of modern servers are wrapped,
  // those of legacy servers never (B108).
  const isModern = outcome.era === 'modern'
  const isLegacy = !isModern && downstream.eras.eraFor(call.caller) === 'legacy'
  const projected = project(result, call, downstream.fidelity, () =>
    isLegacy ? 'plain' : view.outputFormOf(route.serverKey, route.entry, isModern),
  )
  return projected === outcome.result ? outcome : { ...outcome, result: projected }
}

/** The limited result may have a link of the gateway, which the host's revision may not define. */
const limitedOnly = (outcome: Outcome, result: Payload, { call, route, downstream }: RoutedCall, overflow: Overflow): Outcome => {
  const limit = outcome.kind === 'complete' && call.method !== 'completion/complete' ? route.entry?.rule?.result : undefined
  if (limit === undefined || outcome.kind !== 'complete') return outcome
  const cut = limited(result, limit, call, overflow)
  return cut === result ? outcome : { ...outcome, result: project(cut, call, downstream.fidelity, () => 'plain') }
}

const limited = (result: Payload, limit: ResultLimit, { caller }: Call, overflow: Overflow): Payload =>
  limitResult(result, limit, (text, partBytes) => overflow.keep(caller.principal, text, partBytes))

/** Whether the answer may be specific to this caller: the caller is authenticated, or has its own credential at the server (T-30). */
const isPersonal = ({ principal }: Caller, { options }: Downstream): boolean =>
  principal !== SHARED_PRINCIPAL || isPerUser(options.credential)

/** Returns the host's spelling for the requested URI, and the exposed form for others. */
const exposer = ({ call, route, downstream, view }: RoutedCall): ((uri: string) => string) => {
  const isRead = call.method === 'resources/read'
  return (uri) =>
    isRead && uri === route.original && call.target !== undefined ? call.target : exposedUri(view, downstream.options, uri)
}

/** Throws `Refusal` for an unlisted resource with an empty result, the answer of legacy servers for unknown resources (BRIDGING 3.4; B103). */
const refuseEmpty = (result: Payload, { call, route, downstream, view }: RoutedCall): void => {
  if (downstream.eras.eraFor(call.caller) !== 'legacy' || !isEmpty(result.raw('contents'))) return
  const { serverKey, original, entry } = route
  const { resources, templates } = view.catalog.lists
  const isListed = ({ server, entry: { original: uri } }: Exposed): boolean => server.key === serverKey && uri === original
  const isMatch = ({ server, entry: { original: text } }: Exposed): boolean => {
    if (server.key !== serverKey) return false
    const template = parseTemplate(text)
    // A template without a literal scheme may match any URI.
    return template === undefined || matchesTemplate(template, original)
  }
  if (entry === undefined && !resources.some(isListed) && !templates.some(isMatch)) throw unknownName(call)
}

/** Whether it is an empty list, or null, which Go writes for one (B282). */
const isEmpty = (contents: Buffer | undefined): boolean => /^(?:\[\s*\]|null)$/.test(contents?.toString() ?? '')

/** Cuts the values after the first hundred; returns whether there were more (B111). */
const limitCompletions = (result: Payload): boolean => {
  const completion = result.object('completion')
  const list = completion?.member('values')
  const values = list === undefined ? [] : elementsAt(result.bytes, list.start)
  const last = values[MAX_COMPLETIONS - 1]
  if (completion === undefined || list === undefined || last === undefined || values.length === MAX_COMPLETIONS) return false
  completion.replace({ start: last.end, end: list.end - 1 }, '')
  completion.set('hasMore', 'true')
  return true
}
