/**
 * What of a bridge the configuration leaves to its server (BRIDGING 3.21): lists and unlisted names are the server's own where no
 * rule is about them; else both follow the rules, as at the merged endpoint.
 */
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Caller } from '../../rpc/call.ts'

/** Whether no rule of the configuration chooses or changes what this caller sees of the server. */
export const isUnruled = ({ options }: Downstream, view: View, { scope }: Pick<Caller, 'scope'>): boolean =>
  options.curation === undefined &&
  Object.keys(options.alias).length === 0 &&
  (options.onChange === 'allow' || options.onChange === 'warn') &&
  view.toolset === undefined &&
  scope.granted === undefined

/**
 * Whether the caller's lists are read from the server itself, over this caller's link: host and link are of one era, and nothing
 * would be changed on the way.
 */
export const isListedDirectly = (downstream: Downstream, view: View, caller: Pick<Caller, 'scope' | 'session'>): boolean => {
  const { link, options } = downstream
  return (
    isBridge(caller.scope) &&
    link !== undefined &&
    (downstream.eraFor(caller) === 'legacy') === (caller.session !== undefined) &&
    options.hidden === 'warn' &&
    !options.decorateTitles &&
    isUnruled(downstream, view, caller)
  )
}
