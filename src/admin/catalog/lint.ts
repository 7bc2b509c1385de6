/** Checks the catalog, as hosts get it, against their known limits. */
import { lintHost } from '../../catalog/lint/host-lint.ts'
import type { HostFinding, Linted } from '../../catalog/lint/host-lint.ts'
import { joinInstructions } from '../../catalog/view/instructions.ts'
import { Toolsets } from '../../catalog/view/toolsets.ts'
import { Views } from '../../catalog/view/view.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { GatewayOptions } from '../../gateway/options.ts'
import { EVERYTHING } from '../../rpc/call.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'

/** The findings, and what was checked. */
export interface Lint {
  readonly findings: readonly HostFinding[]
  readonly tools: number
  /** Keys of servers whose lists are not known, so that nothing of them was checked. */
  readonly unknown: readonly string[]
}

/** Checks `/mcp` and each toolset. `hosts`: keys of `HOST_LIMITS`. */
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
