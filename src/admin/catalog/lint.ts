/** The catalog as hosts would get it, against what they are known to take. */
import { lintHost } from '../../catalog/lint/host-lint.ts'
import type { HostFinding, Linted } from '../../catalog/lint/host-lint.ts'
import { joinInstructions } from '../../catalog/view/instructions.ts'
import { Toolsets } from '../../catalog/view/toolsets.ts'
import { Views } from '../../catalog/view/view.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { GatewayOptions } from '../../gateway/options.ts'
import { EVERYTHING } from '../../rpc/call.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'

/** What was found, and how much was looked at. */
export interface Lint {
  readonly findings: readonly HostFinding[]
  readonly tools: number
  /** Keys of servers of which nothing is known, so that nothing of theirs was looked at. */
  readonly unknown: readonly string[]
}

/** What hosts get at `/mcp`, and at each toolset. `hosts`: words of `HOST_LIMITS`. */
export const lintCatalog = (catalog: Catalog, options: GatewayOptions, hosts: readonly string[]): Lint => {
  const views = new Views()
  const toolsets = new Toolsets(options.toolsets)
  const all = ['', ...options.toolsets.map(({ name }) => name)].map((toolset): Linted => {
    const scope = toolset === '' ? EVERYTHING : { server: undefined, toolset }
    const view = views.of(catalog, { revision: MODERN, toolset: toolsets.of(scope) })
    return { toolset, view, instructions: joinInstructions(view, options) }
  })
  return {
    findings: hosts.flatMap((host) => all.flatMap((linted) => lintHost(host, linted, all))),
    tools: catalog.lists.tools.length,
    unknown: catalog.sources.filter(({ inventory }) => inventory === undefined).map(({ server }) => server.key),
  }
}
