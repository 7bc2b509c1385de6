/** Toolsets for an operator: costs, budgets and endpoints. */
import type { Running } from '../../app/running.ts'
import type { ToolsetSummary } from '../../catalog/lint/toolset-findings.ts'
import { HOST_LIMITS } from '../../catalog/lint/host-limits.ts'
import { operatorCommand } from '../../operator-command.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { urlsOf } from '../state/status.ts'
import { toolsetCosts } from './toolset-costs.ts'
import type { Cost } from './toolset-costs.ts'

export interface ToolsetRow extends ToolsetSummary {
  readonly description: string | undefined
  /** Its endpoint; `undefined`: one host is served on a pipe. */
  readonly url: string | undefined
  /** Its limits; absent members are unlimited. */
  readonly budget: Partial<Cost>
  readonly isOver: boolean
}

/** The known limit of tools of a host. */
export interface HostCap {
  readonly host: string
  readonly label: string
  readonly most: number
  readonly effect: string
}

export interface Toolsets {
  /** Cost of `/mcp`. */
  readonly whole: Cost & { readonly url: string | undefined }
  readonly toolsets: readonly ToolsetRow[]
  readonly hosts: readonly HostCap[]
}

export const listToolsets = (running: Running): Toolsets => {
  const { gateway, configuration } = running
  const whole = gateway.feed.whole(MODERN)
  const costs = toolsetCosts(configuration, whole.catalog)
  const [url] = urlsOf(running)
  return {
    whole: { ...whole.cost, url },
    toolsets: gateway.feed.summaries(operatorCommand(configuration.named, 'tools')).map((summary): ToolsetRow => {
      const { budget = {}, isOver = false } = costs.get(summary.name) ?? {}
      const { description } = configuration.gateway.toolsets.find(({ name }) => name === summary.name) ?? {}
      return { ...summary, description, url: url && `${url}/${encodeURIComponent(summary.name)}`, budget, isOver }
    }),
    hosts: Object.entries(HOST_LIMITS).flatMap(([host, { label, tools }]) =>
      tools === undefined ? [] : [{ host, label, most: tools.most, effect: tools.effect }],
    ),
  }
}
