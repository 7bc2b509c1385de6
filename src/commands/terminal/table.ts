/** Tables for people: aligned columns. Cells are escaped here already, so that their width is what is printed. */
import { printable } from '../../log.ts'
import type { ServerStatus } from '../../admin/status.ts'
import type { FaultCount } from '../../gateway/faults.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import type { ToolsetSummary } from '../../catalog/lint/toolset-findings.ts'
import type { Colour, Line, Paint } from './print.ts'

/** Rows of cells as lines, every column but the last padded; `right`: the columns aligned to the right. */
export const columns = (rows: readonly (readonly string[])[], right: ReadonlySet<number> = new Set()): string[] => {
  const clean = rows.map((row) => row.map(printable))
  const widths = clean.reduce<number[]>((most, row) => row.map((cell, at) => Math.max(most[at] ?? 0, cell.length)), [])
  const pad = (cell: string, at: number): string => (right.has(at) ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))
  return clean.map((row) => row.map(pad).join('  ').trimEnd())
}

const MARKS: Readonly<Record<string, readonly [mark: string, colour: Colour]>> = {
  healthy: ['●', 'green'],
  degraded: ['▲', 'yellow'],
  starting: ['○', 'dim'],
  draining: ['○', 'dim'],
  down: ['✗', 'red'],
  failed: ['✗', 'red'],
}

/** What is injected on purpose stands before everything else. */
export const faultLines = (faults: readonly FaultCount[], paint: Paint): Line[] =>
  faults.map(({ rule, what, calls, injected }) => [
    '  ',
    paint(`FAULT ${rule} (--allow-faults): ${what}; injected into ${injected} of ${calls} calls`, 'red'),
  ])

/** One line per server: `● github  healthy  http  2026-07-28  41 tools  9.8k tok`, and why it is not healthy. */
export const serverLines = (servers: readonly ServerStatus[], paint: Paint, command: CommandPrinter): Line[] => {
  const cells = servers.map((server) => {
    const { key, state, needsSignIn, callers, transport, revision, tools, tokens } = server
    return [
      key,
      needsSignIn ? 'needs sign-in' : state,
      transport,
      revision ?? '-',
      callers === undefined ? `${tools} tools` : '-',
      tools === 0 ? '' : `${thousands(tokens)} tok`,
      processCell(server),
      remarkOn(server, command),
    ]
  })
  return columns(cells, new Set([4, 5])).map((line, at) => {
    const { state, needsSignIn } = servers[at]
    const [mark, colour] = MARKS[needsSignIn ? 'degraded' : state] ?? ['?', 'yellow']
    return ['  ', paint(mark, colour), ` ${line}`]
  })
}

/** `pid 4711 96 MB`, or the number of processes and what they hold together. */
const processCell = ({ processes }: ServerStatus): string => {
  if (processes.length === 0) return ''
  const bytes = processes.reduce((sum, { memoryBytes = 0 }) => sum + memoryBytes, 0)
  const memory = bytes === 0 ? '' : ` ${Math.round(bytes / 1_000_000)} MB`
  return processes.length === 1
    ? `pid ${processes[0].pid}${memory}`
    : `pids ${processes.map(({ pid }) => pid).join(' ')}${memory}`
}

/** What is to be done, who is there, or what is wrong. */
const remarkOn = (
  { key, state, needsSignIn, callers, nextTryMs, reason = '' }: ServerStatus,
  command: CommandPrinter,
): string => {
  if (needsSignIn) return `→ ${command('login', key)}`
  const [first] = reason.split('\n', 1)
  const next = nextTryMs === undefined ? '' : `; next attempt in ${Math.ceil(nextTryMs / 1_000)} s`
  const remedy = state === 'down' || state === 'failed' ? ` → ${command('restart', key)}` : ''
  if (callers === undefined) return first === '' ? first : `${first}${next}${remedy}`
  const who = callers.all === 1 ? '1 caller' : `${callers.all} callers`
  const unsigned = callers.unsigned === 0 ? '' : `, ${callers.unsigned} not signed in`
  return callers.all === 0 ? 'each caller signs in through its host' : `${who}${unsigned}${first && `: ${first}`}`
}

/** One line per toolset: `toolset review  14 tools  3.2k tok`, and whether its tools are searched for. */
export const toolsetLines = (toolsets: readonly ToolsetSummary[]): string[] =>
  columns(
    toolsets.map(({ name, tools, tokens, isSearched }) => [
      `  toolset ${name}`,
      `${tools} tools`,
      tools === 0 ? '' : `${thousands(tokens)} tok`,
      isSearched ? 'searched' : '',
    ]),
    new Set([1, 2]),
  )

/** What the processes of servers in trouble said last (F-08). */
export const stderrLines = (servers: readonly ServerStatus[], paint: Paint): Line[] =>
  servers.flatMap(({ key, stderr }) => stderr.map((line) => paint(`    ${key} | ${line}`, 'dim')))

/** 9,840 is `9.8k`. */
export const thousands = (number: number): string => (number < 1_000 ? String(number) : `${(number / 1_000).toFixed(1)}k`)
