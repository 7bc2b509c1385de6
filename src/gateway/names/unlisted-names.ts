/**
 * Unlisted names under the prefix of a server whose lists are known: servers have tools that they do not list, and lists change between
 * two calls. A call is forwarded if rules on names allow it (BRIDGING 3.20; B278). It is not forwarded if a rule would need the definition
 * (lock, hints, `where`, `confirm`), or if the server lists the name and a rule leaves it out.
 */
import { isPerUser } from '../../auth/credential-options.ts'
import type { CatalogServer } from '../../catalog/catalog.ts'
import { decideName } from '../../catalog/curate/curated-filter.ts'
import type { Route } from '../../catalog/view/routes.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { SIGN_IN_TOOL } from '../../downstream/lists/sign-in-tool.ts'
import type { Call } from '../../rpc/call.ts'
import type { Feed } from '../lists/feed.ts'
import { isPromptRef } from '../completion-ref.ts'
import type { LateOwner } from './late-names.ts'
import { within } from '../../time/within.ts'
import { FRESH_WAIT_MS } from '../lists/lists.ts'
import { ownValue } from '../../values/own-value.ts'

type NamedKind = 'tools' | 'prompts'

interface UnlistedNamesSource {
  readonly feed: Feed
  /** The only server that the name can belong to, by its form. */
  readonly ownerOf: (call: Call) => LateOwner | undefined
}

export class UnlistedNames {
  readonly #source: UnlistedNamesSource

  constructor(source: UnlistedNamesSource) {
    this.#source = source
  }

  /** Waits briefly for outdated lists of the server to be read again (B285). */
  async refreshed(call: Call): Promise<void> {
    const kind = kindOf(call)
    const pending = kind && this.#source.ownerOf(call)?.downstream.callerLists.freshen(call.caller, kind)
    if (pending !== undefined) await within(FRESH_WAIT_MS, pending)
  }

  /** The route of the call; `undefined`: it must not be forwarded. */
  routeOf(call: Call): Route | undefined {
    const kind = kindOf(call)
    const owner = kind && this.#source.ownerOf(call)
    if (kind === undefined || owner === undefined || !this.#mayForward(call, kind, owner)) return undefined
    return { serverKey: owner.downstream.options.key, original: owner.original, entry: undefined }
  }

  #mayForward({ caller }: Call, kind: NamedKind, { downstream, original }: LateOwner): boolean {
    const { options } = downstream
    if (!downstream.offers.hasLists || downstream.callerLists.names(caller, kind, original)) return false
    // The sign-in tool of the gateway, which is listed only while it is needed.
    if (original === SIGN_IN_TOOL && isPerUser(options.credential)) return false
    if (options.onChange === 'hold' || options.onChange === 'quarantine') return false
    return isAllowed(options, kind, original) && this.#isInScope(caller.scope, options, kind, original)
  }

  /** Toolsets refer to the exposed names under `/mcp`. */
  #isInScope(scope: Call['caller']['scope'], server: CatalogServer, kind: NamedKind, original: string): boolean {
    const { feed } = this.#source
    const grants = feed.grantsOf(scope)
    if (grants !== undefined && !(kind === 'tools' ? grants.writes(server.key) : grants.reads(server.key))) return false
    const toolset = feed.toolsets.of(scope)
    if (toolset === undefined) return true
    const hasPrefix = feed.catalog.naming.prefix === 'always'
    const alias = ownValue(server.alias, original)
    const exposed = alias ?? (hasPrefix ? `${server.prefix}__${original}` : original)
    return toolset.showsName(kind, server, exposed) && !toolset.isConfirmed(exposed)
  }
}

/** Whether the filters of the server allow the name, and no other rule applies to it. */
const isAllowed = ({ curation }: Downstream['options'], kind: NamedKind, original: string): boolean => {
  if (curation === undefined) return true
  if (kind === 'tools' && (curation.tools.hints.length > 0 || curation.edits.has(original))) return false
  return decideName(curation[kind], original).isShown
}

const kindOf = ({ method, params }: Call): NamedKind | undefined => {
  if (method === 'tools/call') return 'tools'
  const isPrompt = method === 'prompts/get' || (method === 'completion/complete' && isPromptRef(params))
  return isPrompt ? 'prompts' : undefined
}
