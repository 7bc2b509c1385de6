/** Which requests at a bridge its server handles itself (BRIDGING 3.21), unless rules of the configuration apply to them. */
import type { View } from '../catalog/view/view.ts'
import type { Downstream } from '../downstream/downstream.ts'
import { isBridge, SHARED_PRINCIPAL } from '../rpc/call.ts'
import type { Call, Caller } from '../rpc/call.ts'

/** Whether no rule of the configuration selects or changes what this caller sees of the server. */
const isUnruled = ({ options }: Downstream, view: View, { scope }: Pick<Caller, 'scope'>): boolean =>
  options.curation === undefined &&
  Object.keys(options.alias).length === 0 &&
  (options.onChange === 'allow' || options.onChange === 'warn') &&
  options.hidden === 'warn' &&
  view.toolset === undefined &&
  scope.granted === undefined

/** Whether list requests are relayed over the caller's link: host and link are of one era, and nothing would be changed or left out. */
export const isListedDirectly = (downstream: Downstream, view: View, caller: Pick<Caller, 'scope' | 'session'>): boolean => {
  const { link, options, inventory$ } = downstream
  return (
    isBridge(caller.scope) &&
    link !== undefined &&
    inventory$.value?.leftOut.some(({ isInvalid }) => isInvalid === true) !== true &&
    (downstream.eras.eraFor(caller) === 'legacy') === (caller.session !== undefined) &&
    !options.decorateTitles &&
    isUnruled(downstream, view, caller)
  )
}

/** Whether host and server are of different eras. */
export const isTranslated = ({ session }: Pick<Caller, 'session'>, downstream: Pick<Downstream, 'eras'>): boolean =>
  (session === undefined) !== (downstream.eras.eraFor({ session }) === 'modern')

/** See `Call.isUnchanged`. */
export const isRelayedUnchanged = (caller: Pick<Caller, 'scope' | 'session' | 'principal'>, downstream: Downstream): boolean =>
  isBridge(caller.scope) &&
  !isTranslated(caller, downstream) &&
  (caller.principal === SHARED_PRINCIPAL || (caller.session !== undefined && downstream.options.sharing !== 'shared'))

/** Whether the rules of the configuration allow an unlisted name. */
export const mayBeUnlisted = (
  { method, target, caller }: Pick<Call, 'method' | 'target' | 'caller'>,
  downstream: Downstream,
  view: View,
): boolean => {
  const { options, inventory$ } = downstream
  if (method === 'resources/read' && !view.showsUri(options, target ?? '')) return false
  const isRefused = inventory$.value?.leftOut.some((out) => out.name === target && out.isRefused === true) === true
  return !isRefused && isUnruled(downstream, view, caller)
}

/** Whether subscriptions of a legacy host are relayed to its server, which reports changes over the link of this host. */
export const isWatchedDirectly = (downstream: Downstream, view: View, caller: Caller): boolean =>
  isBridge(caller.scope) &&
  caller.session !== undefined &&
  !isTranslated(caller, downstream) &&
  downstream.sessions.hasOwnLinkFor(caller.session) &&
  isUnruled(downstream, view, caller)
