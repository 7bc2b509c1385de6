/** Tools that servers offer and that a filter of the configuration hides, each with the rule. */
import type { Running } from '../../app/running.ts'
import { decideEntry } from '../../catalog/curate/curated-filter.ts'
import type { Decision } from '../../catalog/curate/curated-filter.ts'
import { estimateTokens } from '../../catalog/tokens.ts'
import { parseOwnJson } from '../../values/own-json.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { exposedName } from './offered.ts'
import type { ToolDefinition } from './tools.ts'

export interface HiddenTool {
  /** The name it would have for hosts. */
  readonly name: string
  /** Key of the server. */
  readonly server: string
  readonly original: string
  /** Estimated cost. */
  readonly tokens: number
  readonly description: string
  /** `servers.github.filter.deny[0]`. */
  readonly path: string
  /** `trunkline.yaml:31:7` */
  readonly place: string
  /** The rule names this tool only, so that removing it shows no other. */
  readonly isNamed: boolean
}

const SHOWN: Decision = { isShown: true, by: undefined }

export const listHiddenTools = ({ fleet, gateway }: Pick<Running, 'fleet' | 'gateway'>): HiddenTool[] => {
  const { catalog } = gateway.feed.whole(MODERN)
  return fleet.downstreams$.value.flatMap(({ options, inventory$ }) =>
    (inventory$.value?.lists.tools ?? []).flatMap((entry): HiddenTool[] => {
      const { curation } = options
      const { isShown, by } = curation === undefined ? SHOWN : decideEntry(curation, 'tools', entry)
      if (isShown || by === undefined) return []
      const { description = '' } = parseOwnJson<ToolDefinition>(entry.raw.toString())
      return [
        {
          name: exposedName(catalog, options, { kind: 'tools', name: entry.original, from: undefined, to: undefined }),
          server: options.key,
          original: entry.original,
          tokens: estimateTokens(entry.raw),
          description: typeof description === 'string' ? description : '',
          path: by.path,
          place: by.place,
          isNamed: 'glob' in by && by.glob === entry.original,
        },
      ]
    }),
  )
}
