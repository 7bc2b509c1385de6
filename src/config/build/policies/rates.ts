/** All rate limits of a configuration in one list, each with its YAML path. */
import type { ToolsetOptions } from '../../../catalog/view/toolset.ts'
import type { ServerOptions } from '../../../downstream/options.ts'
import type { RateRule } from '../../../gateway/limits/rates.ts'
import type { Settings } from '../../schema/file-schema.ts'

export const collectRates = (
  { limits }: Settings,
  servers: readonly ServerOptions[],
  toolsets: readonly ToolsetOptions[],
): readonly RateRule[] => {
  const perPrincipal = limits?.rate_per_principal
  const ofCallers: RateRule[] =
    perPrincipal === undefined ? [] : [{ option: 'limits.rate_per_principal', rate: perPrincipal, of: { kind: 'principal' } }]
  const ofServers = servers.flatMap(({ key, limits: { rate } }): RateRule[] =>
    rate === undefined ? [] : [{ option: `servers.${key}.limits.rate`, rate, of: { kind: 'server', server: key } }],
  )
  const ofTools = servers.flatMap(({ key, curation }) =>
    [...(curation?.edits.values() ?? [])].flatMap(({ original, rate }): RateRule[] =>
      rate === undefined ? [] : [{ option: rate.path, rate: rate.rate, of: { kind: 'tool', server: key, original } }],
    ),
  )
  const ofToolsets = toolsets.flatMap(({ name, rate }): RateRule[] =>
    rate === undefined ? [] : [{ option: `toolsets.${name}.limits.rate`, rate, of: { kind: 'toolset', toolset: name } }],
  )
  return [...ofCallers, ...ofToolsets, ...ofServers, ...ofTools]
}
