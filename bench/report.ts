/** What a run found, as JSON and as the page `docs/benchmarks.md`: losses included, no cell left out. */
import { readFile } from 'node:fs/promises'
import { cpus, release } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './process.ts'
import type { Row, RoundsOptions } from './rounds.ts'
import type { Spread } from './stats.ts'
import type { Subject } from './subjects.ts'

export interface Report {
  readonly date: string
  readonly machine: { readonly cores: number; readonly cpu: string; readonly kernel: string }
  readonly versions: Readonly<Record<string, string>>
  readonly options: RoundsOptions
  readonly rows: readonly Row[]
  /** Peak resident memory by `rowName`, MiB. */
  readonly memory: Readonly<Record<string, number>>
  readonly commands: Readonly<Record<string, string>>
  /** Subjects that did not start, and why. */
  readonly failed: Readonly<Record<string, string>>
}

export const machine = (): Report['machine'] => ({ cores: cpus().length, cpu: cpus()[0]?.model ?? 'unknown', kernel: release() })

export const versions = async (): Promise<Report['versions']> => {
  const version = async (folder: string): Promise<string> =>
    JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8')).version
  return {
    node: process.versions.node,
    trunkline: await version('.'),
    undici: await version('node_modules/undici'),
    '@modelcontextprotocol/sdk': await version('node_modules/@modelcontextprotocol/sdk'),
  }
}

export const rowName = ({ subject, between: [host, server] }: Pick<Row, 'subject' | 'between'>): string =>
  `${subject} | ${host} → ${server}`

const cellName = ({ tool, inFlight }: Row): string => `${{ t100: '100 B', t10k: '10 KB', t1m: '1 MB' }[tool]} × ${inFlight}`

const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2))

const withSpread = ({ median, q1, q3 }: Spread): string => `${number(median)} (${number(q1)}–${number(q3)})`

const table = (head: readonly string[], lines: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n')

/** Contestants down, cells across. */
const matrix = (rows: readonly Row[], text: (row: Row) => string): string => {
  const lines = Map.groupBy(rows, rowName)
  const cells = [...new Set(rows.map(cellName))]
  return table(
    ['subject', 'host → server', ...cells],
    [...lines].map(([name, own]) => [name, ...own.map(text)]),
  )
}

const losses = (rows: readonly Row[]): string => {
  const lost = rows.filter(({ subject, ratio }) => subject === 'trunkline' && ratio !== undefined && ratio.median > 1)
  if (!rows.some(({ subject }) => subject === 'trunkline')) return 'Trunkline was not part of this run.'
  if (lost.length === 0) return 'None in this run.'
  return lost.map((row) => `- ${row.between.join(' → ')}, ${cellName(row)}: ${withSpread(row.ratio!)}`).join('\n')
}

/** The page. The same text goes to the terminal. */
export const render = (report: Report, subjects: readonly Subject[]): string => {
  const { rows, options, machine, versions, commands } = report
  const calls = rows.reduce((sum, row) => sum + row.calls, 0)
  const bad = rows.reduce((sum, row) => sum + row.bad, 0)
  const started = subjects.filter(({ name }) => commands[name] !== undefined)
  return `# Benchmarks

Written by \`npm run bench -- --write\` on ${report.date}: ${machine.cores} cores (${machine.cpu}), Linux ${machine.kernel}, ${Object.entries(
    versions,
  )
    .map(([name, version]) => `${name} ${version}`)
    .join(', ')}.

One host calls a tool of one server through each subject over Streamable HTTP; the result is a text of 100 B, 10 KB or 1 MB. Host and
server are written on bare sockets. Everything is up at once; in each of ${options.rounds} rounds (${options.warmUp} longer ones before, to warm up) every subject has one burst
of ${options.forMs} ms per column, in an order that rotates. The host looks at every reply: status, id, size, and a nonce at both ends of the text.
${calls} calls, ${bad} bad replies. \`× 32\`: 32 calls in flight.

## CPU per call, as a ratio to raw

User and system time of the subject's whole process tree, from \`/proc/PID/task/*/schedstat\`, divided by that of raw before the same
server in the same round: median over rounds (first to third quartile). These ratios hold on a busy machine; the times below do not.

${matrix(rows, ({ ratio }) => (ratio === undefined ? '–' : withSpread(ratio)))}

## Where Trunkline costs more than raw

${losses(rows)}

## CPU per call, µs

${matrix(rows, ({ cpuPerCall }) => withSpread(cpuPerCall))}

## Time of a call, ms: p50 / p99

Hosts, servers and subjects share the machine's cores: reported, no verdict.

${matrix(rows, ({ p50, p99 }) => `${number(p50)} / ${number(p99)}`)}

## Calls per second

${matrix(rows, ({ callsPerSecond }) => callsPerSecond.median.toFixed(0))}

## Peak resident memory over the whole run, MiB

${table(
  ['subject', 'host → server', 'MiB'],
  Object.entries(report.memory).map(([name, mib]) => [name, mib.toFixed(0)]),
)}

## How each subject was started

${table(
  ['subject', 'what it is', 'command'],
  started.map(({ name, what }) => [name, what, `\`${commands[name]}\``]),
)}
`
}
