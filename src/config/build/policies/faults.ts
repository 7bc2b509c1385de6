/** The faults to inject, as rules. Refused unless the process was started with `--allow-faults`. */
import type { FaultRule } from '../../../gateway/faults.ts'
import type { Gathered } from '../../read/gather.ts'
import type { Context } from '../../runtime-environment.ts'
import type { Problem } from '../../syntax/problems.ts'
import { nearest } from '../../syntax/tree.ts'

/** Adds problems for rules about nothing, rules that do nothing, and any rule where none is allowed. */
export const buildFaults = (
  { settings, sections, servers }: Gathered,
  { overrides }: Context,
  problems: Problem[],
): readonly FaultRule[] => {
  const rules = settings.faults ?? []
  const complain = (path: readonly PropertyKey[], message: string, remedy: string): void => {
    // Cast: the section is what is complained of.
    const node = nearest(sections.get('faults')!, path)
    problems.push({ place: node.place, path: node.path, message, remedy })
  }
  if (rules.length > 0 && overrides?.allowFaults !== true)
    complain([], 'faults would be injected into calls', 'start with --allow-faults, or remove them')
  return rules.flatMap((rule, at): FaultRule[] => {
    const { server } = rule
    if (server === undefined) complain([at], 'names no server', 'add server: KEY')
    else if (!servers.has(server)) complain([at, 'server'], `there is no server "${server}"`, 'name a key of servers')
    if (rule.delay === undefined && rule.fault === undefined) complain([at], 'does nothing', 'add delay, fault, or both')
    if (rule.tools !== undefined && rule.methods !== undefined && rule.methods.join() !== 'tools/call')
      complain([at, 'tools'], 'tools are called by tools/call alone', 'remove tools or methods')
    for (const key of ['code', 'message'] as const) {
      const isUsed = rule.fault === 'error' || (key === 'message' && rule.fault === 'tool_error')
      if (rule[key] !== undefined && !isUsed) complain([at, key], `"${key}" has no effect here`, 'remove it')
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
