/** `trunkline plan` and `reload`: the changes that the files make to the running process. */
import type { PlanEnd } from '../../admin/change/reload-ends.ts'
import { isEmpty } from '../../admin/change/plan.ts'
import type { EntryPlan, Plan, ServerPlan, ToolsetPlan } from '../../admin/change/plan.ts'
import type { Cost } from '../../admin/catalog/toolset-costs.ts'
import { ConfigError } from '../../config/syntax/problems.ts'
import { running, runningProcess } from '../serve/inline.ts'
import { canAsk, confirm } from '../terminal/ask.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { changedWords, SINGULAR } from './lock.ts'
import { painter, printResult, remark, remarkLines } from '../terminal/print.ts'
import type { Line, Paint, Painted } from '../terminal/print.ts'
import { planElsewhere } from './plan-elsewhere.ts'
import { paintedRows, thousands } from '../terminal/table.ts'
import type { PaintedRow } from '../terminal/table.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import { counted } from '../../values/counted.ts'

/**
 * Shows the changes of a reload, or those of another file for the running process. `other`: the file of that process, where several run.
 * Exit code 2: it would be refused; 6: definitions differ from the lock file.
 */
export const plan = async (invocation: Invocation, other?: string): Promise<number> => {
  const { command } = invocation
  const own = other === undefined ? await runningProcess(invocation) : undefined
  const { made, against } = own === undefined ? await planElsewhere(invocation, other) : { made: planOf(await own.plan()) }
  await printResult(invocation, { ...made, ...(against !== undefined && { against }) }, (paint) => [
    ...(against === undefined ? [] : [`compared with the process of ${against.file} (pid ${against.pid})`]),
    ...(isEmpty(made) && made.lock.length === 0 ? ['nothing changes'] : lines(made, command, paint)),
  ])
  if (made.lock.length === 0) return EXIT.ok
  const verb = made.lock.length === 1 ? 'definition is' : 'definitions are'
  throw new CommandError(
    EXIT.mismatch,
    `${made.lock.length} ${verb} not as locked; see ${command('diff')}, approve them with ${command('lock')}`,
  )
}

export interface ReloadOptions {
  /** Do not ask on a terminal. */
  readonly yes?: boolean
}

/** Makes the running process read its files again, and shows the changes; on a terminal it shows them before, and asks. */
export const reload = async (invocation: Invocation, { yes }: ReloadOptions = {}): Promise<number> => {
  const { io, json, command } = invocation
  const control = await running(invocation)
  if (yes !== true && !json && canAsk(io) && !(await isConfirmed(invocation, planOf(await control.plan())))) {
    remark(io, 'nothing was applied')
    return EXIT.ok
  }
  const end = await control.reload()
  if (end.kind === 'refused') throw new ConfigError(end.problems)
  await printResult(invocation, end, (paint) =>
    isEmpty(end.plan) ? ['reloaded; nothing changed'] : lines(end.plan, command, paint),
  )
  if (!json) for (const option of end.needsRestart) remark(io, `${option} takes effect when trunkline is started again`)
  return EXIT.ok
}

/** Asks only if something changes. */
const isConfirmed = async ({ io, command, context }: Invocation, made: Plan): Promise<boolean> => {
  if (isEmpty(made)) return true
  remarkLines(io, lines(made, command, painter(io.stdout, context.env)))
  return confirm(io, 'Apply?', true)
}

const planOf = (end: PlanEnd): Plan => {
  if (end.kind === 'refused') throw new ConfigError(end.problems)
  return end.plan
}

const SIGNS = { added: ['+', 'green'], removed: ['-', 'red'], changed: ['~', 'yellow'] } as const
const WORDS = { added: 'new', removed: 'gone', changed: 'changed' } as const

const lines = (made: Plan, command: CommandPrinter, paint: Paint): Line[] => {
  const rows: PaintedRow[] = [
    ...made.servers.map(serverRow),
    ...made.entries.map(entryRow),
    ...made.lock.map((change): PaintedRow => {
      const words = `lock mismatch, see ${command('diff', change.exposed)}`
      return {
        cells: [
          '!',
          change.kind === 'instructions' ? 'text' : SINGULAR[change.kind],
          change.exposed,
          changedWords(change),
          words,
        ],
        colour: 'red',
      }
    }),
    ...(made.listeners ? [{ cells: ['~', 'listen', '', '', 'opens again'], colour: 'yellow' } as const] : []),
    ...made.needsRestart.map((path): PaintedRow => ({
      cells: ['!', 'option', path, 'changed', 'takes effect after a restart of trunkline'],
      colour: 'yellow',
    })),
  ]
  const collisions = made.collisions.map((words) => paint(`  ! ${words}`, 'red'))
  return [
    ...paintedRows(rows, paint),
    ...collisions,
    ...made.toolsets.map((toolset) => toolsetLine(toolset, paint)),
    `  ${totals(made)}`,
    ...made.warnings.map((warning) => `  warning: ${warning}`),
  ]
}

const serverRow = ({ key, change, options, effect, inFlight }: ServerPlan): PaintedRow => {
  const [sign, colour] = SIGNS[change]
  const calls = `${counted(inFlight, 'call')} in flight`
  const words = {
    start: 'starts; its lists are known then',
    end: `ends, ${calls}`,
    restart: `restart, ${calls}`,
    reconnect: `reconnect, ${calls}`,
    nothing: 'keeps running',
  }[effect]
  return { cells: [sign, 'server', key, options.length === 0 ? WORDS[change] : `${options.join(', ')} changed`, words], colour }
}

const entryRow = ({ kind, name, change, tokens }: EntryPlan): PaintedRow => {
  const [sign, colour] = SIGNS[change]
  return { cells: [sign, SINGULAR[kind], name, WORDS[change], kind === 'tools' ? signed(tokens) : ''], colour }
}

/** `toolset review: 14 → 15 tools, 3.2k → 3.5k tok (budget 6k tok)` */
const toolsetLine = ({ name, before, after }: ToolsetPlan, paint: Paint): string | Painted => {
  if (after === undefined) return paint(`  - toolset ${name}  gone`, 'red')
  const { budget, isOver, isSearched } = after
  const most = [
    ...(budget.tools === undefined ? [] : [counted(budget.tools, 'tool')]),
    ...(budget.tokens === undefined ? [] : [`${thousands(budget.tokens)} tok`]),
  ]
  const notes = [
    ...(most.length === 0 ? [] : [`${isOver ? 'over its budget of' : 'budget'} ${most.join(', ')}`]),
    ...(isSearched ? ['searched'] : []),
  ]
  const line = `toolset ${name}: ${costWords(before ?? after, after)}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`
  return before === undefined ? paint(`  + ${line}`, 'green') : paint(`  ~ ${line}`, isOver && !isSearched ? 'red' : 'yellow')
}

const signed = (tokens: number): string => `${tokens < 0 ? '-' : '+'}${thousands(Math.abs(tokens))} tok`

const totals = ({ total, servers, others }: Plan): string => {
  const restarts = servers.some(({ effect }) => effect === 'restart' || effect === 'reconnect')
  const rest = `${others ? 'other options change, ' : ''}nothing ${restarts ? 'else ' : ''}restarts`
  return `all: ${costWords(total.before, total.after)}    ${rest}`
}

/** `14 → 15 tools, 3.2k → 3.5k tok` */
const costWords = (before: Cost, after: Cost): string => {
  const change = (from: string, to: string): string => (from === to ? to : `${from} → ${to}`)
  const from = before.tools === after.tools ? '' : `${before.tools} → `
  return `${from}${counted(after.tools, 'tool')}, ${change(thousands(before.tokens), thousands(after.tokens))} tok`
}
