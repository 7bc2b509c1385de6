/** Options that every command takes, before its name or after it. */
import type { Command } from 'commander'

export interface CommonOptions {
  readonly config?: readonly string[]
  readonly listen?: string
  readonly state?: string
  readonly json?: boolean
  readonly allowUnauthenticatedNetwork?: boolean
  readonly allowFaults?: boolean
  readonly watch?: boolean
  readonly from?: readonly string[]
}

export const withCommon = (command: Command): Command =>
  command
    .option('-c, --config <file>', 'configuration: trunkline.yaml, or a host file such as .mcp.json (repeatable)', collect)
    .option('--state <folder>', 'where to remember inventories and verdicts')
    .option('--json', 'answer for machines; on failure the last line on stderr is one JSON object')

/** Of an option that may be repeated. */
export const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]
