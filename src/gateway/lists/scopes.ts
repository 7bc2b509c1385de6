/**
 * The part of the catalog that a path and a credential select; equal parts are the same object, by which views are found. An unknown
 * toolset, or one that the credential does not allow, is not an endpoint (DECISIONS 5; T-03).
 */
import type { Identity } from '../../auth/identity.ts'
import { limitingScopes } from '../../catalog/view/grants.ts'
import type { Toolsets } from '../../catalog/view/toolsets.ts'
import { EVERYTHING } from '../../rpc/call.ts'
import type { EndpointPath, Scope } from '../../rpc/call.ts'

export class Scopes {
  readonly #toolsets: Toolsets
  readonly #asked: ReadonlySet<string>
  /** Whether any requested scope limits views: otherwise nothing is computed for a call. */
  readonly #isLimited: boolean
  readonly #made = new Map<string, Scope>()
  /** By scope of the merged endpoint. */
  readonly #merged = new WeakMap<Scope, Scope>()

  /** `asked`: the OAuth scopes that the gateway requests from hosts. */
  constructor(toolsets: Toolsets, asked: readonly string[]) {
    this.#toolsets = toolsets
    this.#asked = new Set(asked)
    this.#isLimited = limitingScopes([], this.#asked) !== undefined
  }

  /** `undefined`: this caller has no endpoint at that path. Does not check whether the server exists. */
  of({ toolsets, scopes }: Identity, { server, toolset }: EndpointPath): Scope | undefined {
    if (toolset !== undefined && (server !== undefined || !this.#toolsets.has(toolset))) return undefined
    if (toolset !== undefined && toolsets?.includes(toolset) === false) return undefined
    const granted = scopes === undefined || !this.#isLimited ? undefined : limitingScopes(scopes, this.#asked)
    if (server !== undefined) return this.#make(server, toolsets?.join(' '), granted)
    const chosen = toolset ?? toolsets?.[0]
    if (toolsets !== undefined && (chosen === undefined || !this.#toolsets.has(chosen))) return undefined
    return this.#make(undefined, chosen, granted)
  }

  /** The scope of the merged endpoint as a bridge, while `server` is the only server. */
  merged(scope: Scope, server: string): Scope {
    const known = this.#merged.get(scope)
    if (known?.server === server) return known
    const made: Scope = { ...scope, server, isMerged: true }
    this.#merged.set(scope, made)
    return made
  }

  #make(server: string | undefined, toolset: string | undefined, granted: string | undefined): Scope {
    if (server === undefined && toolset === undefined && granted === undefined) return EVERYTHING
    const key = `${server ?? ''}\n${toolset ?? ''}\n${granted ?? '-'}`
    let scope = this.#made.get(key)
    if (scope === undefined) {
      scope = { server, ...(toolset !== undefined && { toolset }), ...(granted !== undefined && { granted }) }
      this.#made.set(key, scope)
    }
    return scope
  }
}
