/**
 * Unlisted names that may belong to a server whose lists are not known yet: starting, queued, down, or not signed in. A call then fails
 * with the state of that server, not with "unknown" (BRIDGING 7.2; B279). Used only if the caller's view does not contain the name.
 */
import { restoreUri } from '../../catalog/names/uris.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import type { Call } from '../../rpc/call.ts'
import type { Feed } from '../lists/feed.ts'
import { isPromptRef, refName } from '../completion-ref.ts'

interface LateNamesSource {
  readonly feed: Pick<Feed, 'reaches' | 'viewOf'>
  readonly downstreams: () => readonly Downstream[]
  /** Waits within the list budget for servers that are starting. */
  readonly known: (caller: Call['caller']) => Promise<void>
}

/** The only server that a name can belong to, and the original name, judged by the form of the name. */
export interface LateOwner {
  readonly downstream: Downstream
  readonly original: string
}

export class LateNames {
  readonly #source: LateNamesSource

  constructor(source: LateNamesSource) {
    this.#source = source
  }

  /** The only server without known lists that the name of this call can belong to. */
  ownerOf(call: Call): LateOwner | undefined {
    return this.#soleOwner(
      call,
      this.#reached(call).filter(({ offers }) => !offers.hasLists),
    )
  }

  /** The only server of all servers in the caller's scope that the name of this call can belong to. */
  byForm(call: Call): LateOwner | undefined {
    return this.#soleOwner(call, this.#reached(call))
  }

  /**
   * Resolves when the name should be looked up again. Waits for the lists of `owner` within `timeouts.wait`, and throws the `Failure` of
   * its state; without a single owner, waits for lists within the list budget.
   */
  async known(call: Call, owner = this.ownerOf(call)): Promise<void> {
    await (owner === undefined ? this.#source.known(call.caller) : owner.downstream.listed())
  }

  #isPrefixed({ caller }: Call): boolean {
    const { naming } = this.#source.feed.viewOf(caller).catalog
    return naming.prefix !== 'never' && caller.scope.server === undefined
  }

  #reached({ caller: { scope, principal } }: Call): Downstream[] {
    const reached = this.#source.downstreams().filter(({ options }) => this.#source.feed.reaches(scope, options))
    return reached.map((one) => one.for(principal))
  }

  #soleOwner(call: Call, downstreams: readonly Downstream[]): LateOwner | undefined {
    const owners = downstreams.flatMap((downstream) => {
      const original = originalOf(call, downstream, this.#isPrefixed(call))
      return original === undefined ? [] : [{ downstream, original }]
    })
    return owners.length === 1 ? owners[0] : undefined
  }
}

/** The original name; `undefined`: a name of this form cannot belong to the server. */
const originalOf = (call: Call, { options }: Downstream, isPrefixed: boolean): string | undefined => {
  const { method, target, params } = call
  const isCompletion = method === 'completion/complete'
  const name = isCompletion ? refName(params) : target
  if (name === undefined) return undefined
  if (!isPrefixed) return unrenamed(call, name, options)
  const alias = Object.keys(options.alias).find((original) => options.alias[original] === name)
  if (alias !== undefined) return alias
  if (method === 'resources/read' || (isCompletion && !isPromptRef(params)))
    return restoreUri(name, (prefix) => prefix === options.prefix)?.original
  const start = `${options.prefix}__`
  return name.startsWith(start) && name.length > start.length ? unrenamed(call, name.slice(start.length), options) : undefined
}

/** The original name of a tool that the configuration calls `name`; at an endpoint of its own, a server keeps its names. */
const unrenamed = ({ method, caller }: Call, name: string, { curation }: Downstream['options']): string => {
  if (method !== 'tools/call' || caller.scope.server !== undefined || curation === undefined) return name
  return [...curation.edits.values()].find((edit) => edit.name?.text === name)?.original ?? name
}
