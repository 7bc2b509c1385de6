/** Options that every command takes, before its name or after it. */
import type { Command } from 'commander'

export interface CommonOptions {
  readonly config?: readonly string[]
  readonly listen?: string
  readonly state?: string
  readonly allowUnauthenticatedNetwork?: boolean
  readonly allowFaults?: boolean
  readonly watch?: boolean
  readonly from?: readonly string[]
}

export const withCommon = (command: Command): Command =>
  command
    .option('-c, --config <file>', 'configuration: trunkline.yaml, or a host file such as .mcp.json (repeatable)', collect)
    .option('--state <folder>', 'folder for stored lists and approvals')
    .option('--json', 'print JSON; on failure the last line on stderr is one JSON object')

/** Collects the values of a repeatable option. */
export const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]
