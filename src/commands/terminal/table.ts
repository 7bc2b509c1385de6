/** Tables: aligned columns. Cells are escaped here, so that their width is the printed one. */
import { printable } from '../../log.ts'
import type { ServerStatus } from '../../admin/state/server-status.ts'
import type { FaultCount } from '../../gateway/faults.ts'
import { withoutColours } from '../../transport/process/output-tail.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import type { ToolsetSummary } from '../../catalog/lint/toolset-findings.ts'
import type { Colour, Line, Paint } from './print.ts'
import { counted } from '../../values/counted.ts'

/** Rows of cells as lines, every column but the last padded; `right`: the columns that are aligned to the right. */
export const columns = (rows: readonly (readonly string[])[], right: ReadonlySet<number> = new Set()): string[] => {
  const clean = rows.map((row) => row.map(printable))
  const widths = clean.reduce<number[]>((most, row) => row.map((cell, at) => Math.max(most[at] ?? 0, cell.length)), [])
  const pad = (cell: string, at: number): string =>
    right.has(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)
  return clean.map((row) => row.map(pad).join('  ').trimEnd())
}

/** A row of a table in one colour. */
export interface PaintedRow {
  readonly cells: readonly string[]
  readonly colour: Colour
}

/** The rows as indented lines. */
export const paintedRows = (rows: readonly PaintedRow[], paint: Paint): Line[] => {
  const lines = columns(rows.map(({ cells }) => cells))
  return rows.map(({ colour }, at) => ['  ', paint(lines[at] ?? '', colour)])
}

/** Only problems have a colour. */
const MARKS: Readonly<Record<string, readonly [mark: string, colour: Colour | undefined]>> = {
  healthy: ['●', undefined],
  degraded: ['▲', 'yellow'],
  starting: ['○', 'dim'],
  draining: ['○', 'dim'],
  down: ['✗', 'red'],
  failed: ['✗', 'red'],
}

/** Injected faults, which are printed first. */
export const faultLines = (faults: readonly FaultCount[], paint: Paint): Line[] =>
  faults.map(({ rule, what, calls, injected }) => [
    '  ',
    paint(`FAULT ${rule} (--allow-faults): ${what}; injected into ${injected} of ${counted(calls, 'call')}`, 'red'),
  ])

/**
 * One line per server: `● github  healthy  http  2026-07-28  41 tools  9.8k tok`, and why it is not healthy. If that is wider than the
 * terminal (`width` characters), the reason gets its own line, and columns are dropped: processes, cost, revision.
 */
export const serverLines = (
  servers: readonly ServerStatus[],
  paint: Paint,
  command: CommandPrinter,
  width = Infinity,
): Line[] => {
  const facts = servers.map((server) => {
    const { key, state, needsSignIn, callers, transport, revision, tools, tokens } = server
    return [
      key,
      needsSignIn ? 'needs sign-in' : state,
      callers === undefined ? toolCell(tools) : '-',
      transport,
      revision ?? '-',
      tools === 0 ? '' : `${thousands(tokens)} tok`,
      processCell(server),
    ]
  })
  const remarks = servers.map((server) => remarkOn(server, command))
  const inOrder = facts.map(([key, state, tools, transport, revision, tokens, processes], at) =>
    [key, state, transport, revision, tools, tokens, processes, remarks[at]].map((cell = '') => cell),
  )
  const whole = columns(inOrder, new Set([4, 5]))
  const isNarrow = whole.some((line) => line.length + INDENT > width)
  const lines = isNarrow ? fitting(facts, width - INDENT) : whole
  return servers.flatMap(({ state, needsSignIn }, at): Line[] => {
    const line = lines[at] ?? ''
    const [mark, colour] = MARKS[needsSignIn ? 'degraded' : state] ?? ['?', 'yellow']
    const first: Line = ['  ', colour === undefined ? mark : paint(mark, colour), ` ${line}`]
    const remark = remarks[at] ?? ''
    return isNarrow && remark !== '' ? [first, `      ${remark}`] : [first]
  })
}

/** Width of the prefix of a server's line: two spaces, its mark, a space. */
const INDENT = 4

/** With as many columns as fit, at least two. */
const fitting = (rows: readonly (readonly string[])[], width: number): string[] => {
  for (let count = rows[0]?.length ?? 0; count > 2; count--) {
    const lines = columns(rows.map((row) => row.slice(0, count)))
    if (lines.every((line) => line.length <= width)) return lines
  }
  return columns(rows.map((row) => row.slice(0, 2)))
}

/** `pid 4711 96 MB`, or all process ids and their memory together. */
const processCell = ({ processes }: ServerStatus): string => {
  const [first, ...others] = processes
  if (first === undefined) return ''
  const bytes = processes.reduce((sum, { memoryBytes = 0 }) => sum + memoryBytes, 0)
  const memory = bytes === 0 ? '' : ` ${Math.round(bytes / 1_000_000)} MB`
  return others.length === 0 ? `pid ${first.pid}${memory}` : `pids ${processes.map(({ pid }) => pid).join(' ')}${memory}`
}

/** What to do, the number of callers, or the problem. */
const remarkOn = (
  { key, state, needsSignIn, callers, nextTryMs, startup, reason = '' }: ServerStatus,
  command: CommandPrinter,
): string => {
  if (needsSignIn) return `→ ${command('login', key)}`
  if (startup !== undefined && reason === '') return startupText(startup)
  const [first] = reason.split('\n', 1)
  const next = nextTryMs === undefined ? '' : `; next attempt in ${Math.ceil(nextTryMs / 1_000)} s`
  const remedy = state === 'down' || state === 'failed' ? ` → ${command('restart', key)}` : ''
  if (callers === undefined) return first === '' ? first : `${first}${next}${remedy}`
  const unsigned = callers.unsigned === 0 ? '' : `, ${callers.unsigned} not signed in`
  return callers.all === 0
    ? 'each caller signs in through its host'
    : `${counted(callers.all, 'caller')}${unsigned}${first && `: ${first}`}`
}

/** `for 12 s: npx downloads a package that it does not have yet`, or the last output of the process. */
export const startupText = ({ forMs, fetching, printed }: NonNullable<ServerStatus['startup']>): string => {
  if (forMs < SHOWN_MS) return ''
  const what = [fetching, printed === undefined ? undefined : withoutColours(printed)].filter(Boolean).join('; ')
  return `for ${Math.round(forMs / 1_000)} s${what === '' ? '' : `: ${what}`}`
}

/** Shorter starts are not shown. */
const SHOWN_MS = 2_000

/** One line per toolset: `toolset review  14 tools  3.2k tok`, and whether its tools are found by search. */
export const toolsetLines = (toolsets: readonly ToolsetSummary[]): string[] =>
  columns(
    toolsets.map(({ name, tools, tokens, isSearched }) => [
      `  toolset ${name}`,
      toolCell(tools),
      tools === 0 ? '' : `${thousands(tokens)} tok`,
      isSearched ? 'searched' : '',
    ]),
    new Set([1, 2]),
  )

/** Of a column that is aligned at its right: the numbers stand below each other. */
const toolCell = (tools: number): string => counted(tools, 'tool').padEnd(`${tools} tools`.length)

/** The last output of the processes of servers in trouble (F-08). */
export const stderrLines = (servers: readonly ServerStatus[], paint: Paint): Line[] =>
  servers.flatMap(({ key, stderr }) => stderr.map((line) => paint(`    ${key} | ${line}`, 'dim')))

/** 9,840 is `9.8k`. */
export const thousands = (number: number): string => (number < 1_000 ? String(number) : `${(number / 1_000).toFixed(1)}k`)
