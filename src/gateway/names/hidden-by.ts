/** Finds the rule that hides an unknown name from its caller, for the audit log. Called only for refused calls. */
import { rulesFor } from '../../catalog/curate/curated-rules.ts'
import type { ListKind } from '../../catalog/inventory.ts'
import { findPrompt, findResource, findTool } from '../../catalog/view/routes.ts'
import { exposeListed } from '../../catalog/names/uris.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import type { Call } from '../../rpc/call.ts'
import type { Feed } from '../lists/feed.ts'

const NAMED: Readonly<Record<string, { readonly find: typeof findTool; readonly kinds: readonly ListKind[] }>> = {
  'tools/call': { find: findTool, kinds: ['tools'] },
  'prompts/get': { find: findPrompt, kinds: ['prompts'] },
  'resources/read': { find: findResource, kinds: ['resources', 'templates'] },
  'resources/subscribe': { find: findResource, kinds: ['resources'] },
}

/** The path of the rule in the configuration, with its place if known; `undefined`: the name does not exist. */
export const hiddenBy = (
  { caller, method, target }: Call,
  feed: Feed,
  downstreams: readonly Downstream[],
): string | undefined => {
  const named = NAMED[method]
  if (named === undefined || target === undefined) return undefined
  const { scope } = caller
  const isIn = (view: View): boolean => named.find(view, target) !== undefined
  const { granted, ...ungranted } = scope
  if (granted !== undefined && isIn(feed.viewOf({ ...caller, scope: ungranted }))) return 'auth.oauth.scopes'
  const toolset = feed.toolsets.of(scope)
  if (isIn(feed.whole(caller.revision)))
    return toolset === undefined ? `/servers/${scope.server ?? ''}/mcp` : toolset.name.replaceAll(/\S+/g, 'toolsets.$&')
  for (const { options, inventory$ } of downstreams) {
    for (const kind of named.kinds) {
      const entry = inventory$.value?.lists[kind].find(({ original }) => isNamed(target, original, kind, options.prefix))
      const rule = entry && rulesFor(options, kind, entry).find(({ effect }) => effect === 'hides')
      if (rule !== undefined) return `${rule.path} (${rule.place})`
    }
  }
  return undefined
}

const isNamed = (target: string, original: string, kind: ListKind, prefix: string): boolean =>
  target === original ||
  target === (kind === 'resources' || kind === 'templates' ? exposeListed(prefix, original) : `${prefix}__${original}`)
