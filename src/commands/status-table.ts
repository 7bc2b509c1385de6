/** The table of servers that a person sees at start and in `ps`. */
import type { Running } from '../app.ts'
import { printable } from '../log.ts'

/** One server as `ps --json` prints it. */
export interface ServerStatus {
  readonly key: string
  readonly state: string
  readonly reason: string | undefined
  readonly transport: string
  readonly revision: string | undefined
  readonly tools: number
  readonly resources: number
  readonly prompts: number
  readonly links: number
  readonly inFlight: number
  readonly failures: number
  readonly nextTryMs: number | undefined
  readonly leftOut: readonly { readonly kind: string; readonly name: string; readonly reason: string }[]
  readonly warnings: readonly string[]
}

export const serverStatuses = ({ fleet, gateway }: Pick<Running, 'fleet' | 'gateway'>): ServerStatus[] =>
  fleet.downstreams$.value.map(({ options, health$, inventory$, link, linkCount, inFlight }) => {
    const { state, reason, failures, nextTryMs } = health$.value
    const inventory = inventory$.value
    return {
      key: options.key,
      state,
      reason,
      transport: transportName(link?.transport, options.url === undefined),
      revision: link?.revision ?? inventory?.revision,
      tools: inventory?.lists.tools.length ?? 0,
      resources: (inventory?.lists.resources.length ?? 0) + (inventory?.lists.templates.length ?? 0),
      prompts: inventory?.lists.prompts.length ?? 0,
      links: linkCount,
      inFlight,
      failures,
      nextTryMs,
      leftOut: gateway.feed.catalog.leftOut.filter(({ server }) => server === options.key),
      warnings: inventory?.warnings ?? [],
    }
  })

const transportName = (transport: 'pipe' | 'http' | 'sse' | undefined, isPipe: boolean): string =>
  transport === 'pipe' || (transport === undefined && isPipe) ? 'stdio' : (transport ?? 'http')

const MARKS: Readonly<Record<string, string>> = {
  healthy: '●',
  degraded: '▲',
  starting: '○',
  draining: '○',
  down: '✗',
  failed: '✗',
}

export const statusLines = (statuses: readonly ServerStatus[]): string[] => {
  const width = Math.max(6, ...statuses.map(({ key }) => key.length))
  return statuses.map(({ key, state, transport, revision, tools, reason }) => {
    const facts = [
      MARKS[state] ?? '?',
      key.padEnd(width),
      state.padEnd(8),
      transport.padEnd(5),
      (revision ?? '-').padEnd(10),
      `${tools} tools`.padStart(9),
    ]
    return `  ${facts.join('  ')}${reason === undefined ? '' : `  ${printable(reason)}`}`
  })
}

export const statusTable = (running: Running, url: string): string => {
  const statuses = serverStatuses(running)
  const tools = statuses.reduce((sum, status) => sum + status.tools, 0)
  return `${statusLines(statuses).join('\n')}\n  MCP  ${url}     ${tools} tools\n`
}
