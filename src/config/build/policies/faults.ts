/** Rules of injected faults (`faults`). Refused unless the process was started with `--allow-faults`. */
import type { FaultRule } from '../../../gateway/faults.ts'
import type { Gathered } from '../../read/gather.ts'
import type { RuntimeEnvironment } from '../../runtime-environment.ts'
import { reporterAt } from '../../syntax/problems.ts'
import type { Problem } from '../../syntax/problems.ts'

/** Adds problems for rules without a server, rules without an effect, and any rule where none is allowed. */
export const buildFaults = (
  { settings, sections, servers }: Gathered,
  { overrides }: RuntimeEnvironment,
  problems: Problem[],
): readonly FaultRule[] => {
  const rules = settings.faults ?? []
  const report = reporterAt(sections.get('faults'), problems)
  if (rules.length > 0 && overrides?.allowFaults !== true)
    report([], 'faults would be injected into calls', 'start with --allow-faults, or remove them')
  return rules.flatMap((rule, at): FaultRule[] => {
    const { server } = rule
    if (server === undefined) report([at], 'names no server', 'add server: KEY')
    else if (!servers.has(server)) report([at, 'server'], `there is no server "${server}"`, 'name a key of servers')
    if (rule.delay === undefined && rule.fault === undefined) report([at], 'does nothing', 'add delay, fault, or both')
    if (rule.tools !== undefined && rule.methods !== undefined && rule.methods.join() !== 'tools/call')
      report([at, 'tools'], 'tools are called by tools/call only', 'remove tools or methods')
    for (const key of ['code', 'message'] as const) {
      const isUsed = rule.fault === 'error' || (key === 'message' && rule.fault === 'tool_error')
      if (rule[key] !== undefined && !isUsed) report([at, key], `"${key}" has no effect here`, 'remove it')
    }
    if (server === undefined) return []
    return [
      {
        name: `faults[${at}]`,
        server,
        tools: rule.tools,
        methods: rule.methods ?? ['tools/call'],
        delayMs: rule.delay,
        kind: rule.fault,
        code: rule.code ?? -32603,
        message: rule.message ?? 'injected fault',
        every: rule.every ?? 1,
        share: rule.share ?? 1,
      },
    ]
  })
}
