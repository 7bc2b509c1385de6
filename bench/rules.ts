/**
 * The cost of a policy of ten rules per call. One process alternately has the policy and has none, by reloading its configuration: two processes of the same
 * code differ by more than the rules cost.
 */
import type { Deadline } from './budget.ts'
import { callMicros } from './call-cost.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import { countTools } from './lists.ts'
import type { Host } from './load.ts'
import type { Era, ToolName } from './payload.ts'
import { start } from './process.ts'
import { configuredTrunkline, type Subject } from './subjects.ts'

export const SECTION = 'ten rules in one process'
const ERAS: readonly Era[] = ['legacy', 'modern']
const SIZES = ['t100', 't10k'] as const satisfies readonly ToolName[]
const SIZE = { t100: '100 B', t10k: '10 KB' } as const
/** Bursts are so much longer than those of processes that take turns: the difference that is looked for is small. */
const LONGER = 4
/** For a reload to be seen in the list. */
const RELOAD_MS = 10_000

/** A tool that nobody calls here: it leaves the list while the rules are in force. */
const HIDDEN = 't1m_cjk'
/** As a team may have them; none denies what is called here. Two read the arguments of each call. */
const TEN_RULES = {
  default: 'allow',
  rules: [
    'call.server == "bank" && !("finance" in caller.claims.groups)',
    `call.original == "${HIDDEN}"`,
    'call.annotations.readOnlyHint && call.server == "production"',
    'request.host == "unknown"',
    'caller.principal == "token:retired"',
    'call.name.startsWith("admin__")',
    'call.original.matches("^(rm|unlink)_")',
    'caller.scopes.exists(scope, scope == "blocked")',
    'call.arguments.?text.orValue("") == "forbidden"',
    'call.arguments.?amount.orValue(0.0) > 100.0',
  ].map((when) => ({ when, decision: 'deny', reason: 'not here' })),
}

/** The gateway of one era, with its rules or without. */
interface Reloaded {
  readonly pid: number
  readonly host: Host
  have(rules: boolean): Promise<void>
}

const startReloaded = async (stage: Stage, era: Era): Promise<Reloaded> => {
  const subjects: Record<'true' | 'false', Subject> = {
    false: configuredTrunkline('trunkline', {}),
    true: configuredTrunkline('trunkline', { policy: TEN_RULES }),
  }
  const server = await stage.server(era)
  const folder = await stage.folder(`rules before ${era}`)
  const command = (rules: boolean) =>
    subjects[`${rules}`].command({ servers: [server], isPiped: false, folder, main: stage.main })
  const { pid, reach } = stage.stack.use(await start(await command(false)))
  const host = stage.stack.use(await openHostOf(subjects.false, reach, era))
  const all = await countTools(host)
  const have = async (rules: boolean) => {
    await command(rules) // writes the same file
    process.kill(pid, 'SIGHUP')
    const until = performance.now() + RELOAD_MS
    while ((await countTools(host)) !== (rules ? all - 1 : all)) {
      if (performance.now() > until) throw new Error(`the rules did not come or go within ${RELOAD_MS} ms`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  return { pid, host, have }
}

export const rules = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const trunkline = subjects.find(({ name }) => name === 'trunkline')
  if (trunkline === undefined) return []
  const contestants = await Promise.all(ERAS.map(async (era) => ({ era, gateway: await startReloaded(stage, era) })))
  const burst = (gateway: Reloaded, size: ToolName, forMs: number, calls?: number): Promise<number> =>
    callMicros(gateway, { tool: `${trunkline.prefix}${size}`, size }, forMs, calls)
  /** With rules and without, the order turned with each round. */
  let round = 0
  const measure = async ({ gateway }: (typeof contestants)[number]) => {
    const found = { true: new Map<ToolName, number>(), false: new Map<ToolName, number>() }
    for (const rules of round++ % 4 < 2 ? [true, false] : [false, true]) {
      await gateway.have(rules)
      await burst(gateway, 't100', 10 * effort.warmUpMs, effort.warmUpCalls)
      for (const tool of SIZES) found[`${rules}`].set(tool, await burst(gateway, tool, LONGER * effort.forMs))
    }
    return found
  }
  const all = await rotate(effort, contestants, measure, ({ era }, error) => stage.lose(`rules before ${era}`, error), deadline)
  return [...all].flatMap(([{ era }, rounds]) =>
    SIZES.map((tool) => {
      const [own, base] = [rounds.map((one) => one.true.get(tool)!), rounds.map((one) => one.false.get(tool)!)]
      return figure(SECTION, 'trunkline', `CPU of a call with ten rules, ${era} → ${era}, ${SIZE[tool]}`, 'µs', own, base)
    }),
  )
}
