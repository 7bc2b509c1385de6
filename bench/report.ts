/** The results of a run, as JSON and as the page `docs/benchmarks.md`, with losses and all cells. */
import { readFile } from 'node:fs/promises'
import { cpus, release } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './process.ts'
import type { Figure } from './figures.ts'
import type { Goal } from './goals.ts'
import type { Taken } from './profiling.ts'
import { cellName } from './cells.ts'
import { answersText } from './questions.ts'
import type { Row, RoundsOptions } from './rounds.ts'
import type { Spread } from './stats.ts'

export interface Report {
  readonly date: string
  readonly machine: { readonly cores: number; readonly cpu: string; readonly kernel: string }
  readonly versions: Readonly<Record<string, string>>
  readonly options: RoundsOptions
  readonly load: Load
  readonly rows: readonly Row[]
  /** Peak resident memory by `rowName`, MiB. */
  readonly memory: Readonly<Record<string, number>>
  /** How the run itself was started. */
  readonly run: string
  /** What each subject is, and its command. */
  readonly commands: Readonly<Record<string, { readonly what: string; readonly command: string }>>
  /** What did not start, and why. */
  readonly failed: Readonly<Record<string, string>>
  /** What this machine does not have, and why. */
  readonly absent: Readonly<Record<string, string>>
  /** Names of the subjects that are not of this project. */
  readonly peers: readonly string[]
  /** Of `--full` alone. */
  readonly figures: readonly Figure[]
  readonly goals: readonly Goal[]
  readonly profiles: readonly Taken[]
  /** Sections that were measured again, after the run. */
  readonly again?: readonly { readonly names: string; readonly date: string; readonly load: Load }[]
}

/** What else the machine did. */
export interface Load {
  /** Of the last minute: before the run and at its end. */
  readonly before: number
  readonly after: number
  /** Cores that others used during the run, on average. */
  readonly others: number
  /** They used so much, or the processors were so uneven, that times have no verdict. */
  readonly isBusy: boolean
  /** CPU time of always the same work during the run, ms. */
  readonly sameWork?: Spread
  /** How long the run took. */
  readonly minutes: number
  /** Pages that the machine took from processes while they had no turn, and that were read again in their bursts. */
  readonly refaults?: number
}

export const machine = (): Report['machine'] => ({ cores: cpus().length, cpu: cpus()[0]?.model ?? 'unknown', kernel: release() })

/** Of what was compared; `peers`: those that are not of this project. */
export const versions = async (peers: Report['versions']): Promise<Report['versions']> => {
  const version = async (folder: string): Promise<string> =>
    JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8')).version
  return {
    node: process.versions.node,
    trunkline: await version('.'),
    undici: await version('node_modules/undici'),
    '@modelcontextprotocol/sdk': await version('node_modules/@modelcontextprotocol/sdk'),
    ...peers,
  }
}

export const rowName = ({ subject, between: [host, server] }: Pick<Row, 'subject' | 'between'>): string =>
  `${subject} | ${host} → ${server}`

const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2))

const withSpread = ({ median, q1, q3 }: Spread): string => `${number(median)} (${number(q1)}–${number(q3)})`

const table = (head: readonly string[], lines: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n')

/** Contestants down, cells across; cells that none of them has are left out. */
const matrix = (rows: readonly Row[], text: (row: Row) => string): string => {
  const lines = Map.groupBy(rows, rowName)
  const cells = [...new Set(rows.map(cellName))]
  return table(
    ['subject', 'host → server', ...cells],
    [...lines].map(([name, own]) => [
      name,
      ...cells.map((cell) => {
        const row = own.find((one) => cellName(one) === cell)
        return row === undefined ? '' : text(row)
      }),
    ]),
  )
}

/** One table of what everybody was asked, one of the other kinds of payload in each direction. */
const matrices = (rows: readonly Row[], text: (row: Row) => string): string => {
  const others = rows.filter(({ kind }) => kind !== 'prose')
  const parts: readonly (readonly [title: string, rows: readonly Row[]])[] = [
    ['Prose', rows.filter(({ kind, way }) => kind === 'prose' && way === undefined)],
    ['10 KB of other kinds', others.filter(({ tool, way }) => tool === 't10k' && way === undefined)],
    ['1 MB of other kinds', others.filter(({ tool, way }) => tool === 't1m' && way === undefined)],
    ['1 MB in the arguments', rows.filter(({ way }) => way === 'arguments')],
  ]
  const some = parts.filter(([, own]) => own.length > 0)
  return some.length === 1 ? matrix(rows, text) : some.map(([title, own]) => `### ${title}\n\n${matrix(own, text)}`).join('\n\n')
}

const lossLines = (rows: readonly Row[]): string => {
  const lost = rows.filter(({ subject, ratio }) => subject === 'trunkline' && ratio !== undefined && ratio.median > 1)
  if (!rows.some(({ subject }) => subject === 'trunkline')) return 'Trunkline was not part of this run.'
  if (lost.length === 0) return 'Nowhere in this run.'
  return lost.map((row) => `- ${row.between.join(' → ')}, ${cellName(row)}: ${withSpread(row.ratio!)}`).join('\n')
}

const goalTable = (goals: readonly Goal[]): string =>
  table(
    ['goal', 'what', 'target', 'median (first to third quartile)', 'verdict'],
    goals.map(({ id, what, target, measured, unit, verdict, beside }) => {
      const value = measured === undefined ? '–' : `${withSpread(measured)}${unit === '×' ? '×' : ` ${unit}`}`
      return [
        id,
        what,
        target,
        beside === undefined ? value : `${value}; ${beside}`,
        verdict === 'missed' ? '**missed**' : verdict,
      ]
    }),
  )

const figureTable = (figures: readonly Figure[]): string =>
  table(
    ['subject', 'what', 'median (first to third quartile)', '÷ baseline'],
    figures.map(({ subject, what, unit, value, ratio }) => [
      subject,
      what,
      `${withSpread(value)} ${unit}`,
      ratio === undefined ? '–' : `${withSpread(ratio)}×`,
    ]),
  )

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

const profileText = ({ name, watchedMs, busyMs, groups, functions }: Taken): string => `### ${name}

Busy for ${percent(busyMs / watchedMs)} of ${(watchedMs / 1e3).toFixed(1)} s, 32 in flight.

${table(
  ['where', 'share'],
  groups.filter(({ share }) => share >= 0.005).map(({ name, share }) => [name, percent(share)]),
)}

${table(
  ['function, its own time', 'share'],
  functions.slice(0, 12).map(({ name, share }) => [`\`${name}\``, percent(share)]),
)}
`

/** What only `--full` has. */
const fullText = ({ figures, profiles }: Report): string => {
  const sections = [...Map.groupBy(figures, ({ section }) => section)]
  const text = sections.map(
    ([section, own]) => `## ${section[0]!.toUpperCase()}${section.slice(1)}

${SECTION_NOTES[section] ?? ''}

${figureTable(own)}
`,
  )
  const time =
    profiles.length === 0
      ? []
      : [
          `## Where the time goes

From CPU profiles of the gateway, run from its sources (\`npm run profile\` writes them with a flame graph). The profiler itself takes some of the time.

${profiles.map(profileText).join('\n')}`,
        ]
  return [...text, ...time].join('\n')
}

const SECTION_NOTES: Readonly<Record<string, string>> = {
  'cold start': 'Time from the spawn of the process to the answer of the first handshake. Baseline: raw.',
  sessions: `Memory after full garbage collections. Sessions are opened in three steps of the same size. A session that made a call has a connection of its own
to a legacy server.`,
  lists: `One \`tools/list\` after another. Raw and no proxy are before one server with a list of the same length. Baseline: raw.`,
  'lists that change': `A server changes its list ten times a second: one with 50 tools, alone or beside 99 others, or one with 5,000 tools. A host is notified each time. The protocol
only reports that a list changed, so the whole list is read. Changes that are close together are read once. The CPU beyond the same gateway without changes is divided
by the number of readings. Baseline: the gateway with one server of 50 tools.`,
  'big and slow results': `First and last bytes: the server writes 3.9 MB in pieces of 64 KB, one every 4 ms; or it writes progress, and 50 ms later the result.
The least of five calls per round counts. Memory: the peak of a new process. Baseline: raw.`,
  'the worst neighbour': `One host calls a tool of 100 B, one call after another, while another host receives big results from the same gateway, one after
another (\`max_message\` is raised to 128 MiB). Small and big calls go to the same server. Where the big results are lines of a
pipe, the small calls go to another server, and raw relays the same results over HTTP. All processes share the cores. Memory: the peak beside 100 MB, minus the resident memory before.
Baseline: raw beside the same results.`,
  'growth in one process': `The same process before and after its growth. Each burst is paired with a burst of a second process that does not grow; the change of that process is divided out. Servers and
tools are added by reloading the configuration. Calls of many sessions: each session has one call in flight, and eight servers share them. Their baseline
is one call at a time.`,
  'ten rules in one process': `One process, alternately with a policy of ten rules and without, by reloading its configuration. Two of the rules read the arguments of each call. 32 calls
are in flight. Baseline: the same process without rules.`,
  workers: `\`listen.workers: 2\` compared with 1, before one modern server. A call carries about two hundred records (10 KB of arguments), and seventy rules of a policy
read each of them. Baseline: one worker; for host and server, the gateway of the same row, with which they share the cores. CPU and memory
cover all processes of the gateway: the workers and, with two, their supervisor. One worker is the code path of a gateway without the option. "Two processes" are two separate gateways of one worker each, with half of the
calls in flight each: the most that two cores of this machine can give.`,
  'longest turn of the event loop': `A line or an event of 15 MB arrives in pieces of 64 KB, 32 in each turn. Node reads at most that much from one pipe before it reads from
others. The figure is the longest turn, including the last one, in which the message is complete: its time by the clock or the CPU time of the
process, whichever is less.`,
}

/** Rounds that were done, which a run of limited time may have cut. */
const roundsOf = (rows: readonly Row[]): number => Math.max(0, ...rows.map(({ cpuByRound }) => cpuByRound.length))

const loadText = ({ before, after, others, isBusy, sameWork, minutes, refaults = 0 }: Load): string =>
  `The run took ${minutes.toFixed(1)} minutes. Load average before it ${before.toFixed(2)}, at its end ${after.toFixed(2)} (with its own processes). Other
processes used ${others.toFixed(2)} cores during the run${isBusy ? ': **the machine was busy or uneven, so that times have no verdict**' : ''}.${sameWork === undefined ? '' : `\n${sameWorkText(sameWork)}`}${refaults > REFAULTS_PER_MINUTE * minutes ? `\n${takenText(refaults)}` : ''}`

/** Above it, a figure depends on when it was measured. */
const MAX_UNEVEN = 1.5

export const isUneven = ({ min, q3 }: Spread): boolean => q3 > MAX_UNEVEN * min

const sameWorkText = (work: Spread): string =>
  `The same work, every five seconds, took ${work.min.toFixed(1)} ms of CPU at least, ${work.median.toFixed(1)} in the median, ${work.q3.toFixed(1)} at the third quartile${isUneven(work) ? ': **the processors did not do the same in the same time**' : ''}.`

/** From here on they are seen in what is short. */
const REFAULTS_PER_MINUTE = 1_000

const takenText = (refaults: number): string =>
  `The machine took ${refaults} pages of 4 KB from processes that had no turn, and they were read again in their bursts: that is CPU time, too, and it weighs most on what is
short, and on the larger program. Compare sections that measure one process.`

const againText = ({ again = [] }: Report): string =>
  again
    .map(
      ({ names, date, load: { others, isBusy } }) =>
        `Measured again on ${date}: ${names}; other processes used ${others.toFixed(2)} cores during the run${isBusy ? ': **the machine was busy or uneven**' : ''}.\n`,
    )
    .join('')

/** Sections that were measured alone. */
export const renderSections = (report: Report): string =>
  `${loadText(report.load)}\n\n${goalTable(report.goals)}\n\n${fullText(report)}`

/** The page. The same text goes to the terminal. `notes`: what a person wrote to go with it. */
export const render = (report: Report, notes: string): string => {
  const { rows, options, machine, versions, commands, absent, failed, goals, load } = report
  const calls = rows.reduce((sum, row) => sum + row.calls, 0)
  const bad = rows.reduce((sum, row) => sum + row.bad, 0)
  const versionText = Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ')
  const missing = Object.entries({ ...absent, ...failed }).map(([name, why]) => [name, why.replace(/\n[^]*/, ''), ''])
  return `# Benchmarks

Written by \`${report.run}\` on ${report.date}: ${machine.cores} cores (${machine.cpu}), Linux ${machine.kernel}, ${versionText}.

${loadText(load)}
${againText(report)}
${goals.length === 0 ? '' : `## In short\n\n${answersText(report)}\n\n## Goals\n\n${goalTable(goals)}\n\n## How it is measured\n\n`}One host calls a tool of one server through each subject. The result is a text of 100 B, 10 KB or 1 MB. Hosts and servers are written on
bare sockets and pipes. \`legacy\` and \`modern\` are Streamable HTTP of 2025-11-25 (with sessions) and 2026-07-28. \`sse-reply\` is a legacy
server that answers in event streams. \`http-sse\` is the transport of 2024-11-05. Hosts send a token with every request over HTTP. The gateway
refuses requests without a token; \`trunkline-jwt\` verifies its signature. \`× 32\`: 32 calls in flight.

Few processes run at once: the subjects before one kind of server, in groups, with their baselines in each group. ${options.warmUpCalls === 0 ? '' : `Each process first answers ${options.warmUpCalls} calls of 100 B (slow subjects as many as they can in 4 s). `}Then the columns are measured one after the other. Each
process makes calls of a column for ${options.settleMs} ms. In each of ${roundsOf(rows)} rounds every subject then has one burst of ${options.forMs} ms in rotating order, after ${options.warmUpMs / 2} ms of calls that
do not count: a process that was idle or did something else is slower at first. Where a goal covers the set of payloads, three processes of a subject take turns by round. The host checks every
reply: status, id, size, and a nonce at both ends of the text. ${calls} calls, ${bad} bad replies.

## CPU per call, as a ratio to raw

User and system time of the subject's whole process tree (without the benchmark's own servers on pipes), from
\`/proc/PID/task/*/schedstat\`, divided by the time of the baseline before the same server in the same round: median over rounds (first to
third quartile). The baseline is \`raw\`; between two pipes it is \`lines\`; for other hosts of a server on a pipe it is \`raw\` before the legacy server.
These ratios hold on a busy machine; the times below do not.

${matrices(rows, ({ ratio }) => (ratio === undefined ? '–' : withSpread(ratio)))}

## Where Trunkline costs more than raw

${lossLines(rows)}

## CPU per call, µs

${matrices(rows, ({ cpuPerCall }) => withSpread(cpuPerCall))}

## Time of a call, ms: p50 / p99

Hosts, servers and subjects share the cores of the machine, so these times have no verdict.

${matrices(rows, ({ p50, p99 }) => `${number(p50)} / ${number(p99)}`)}

## Time added to a call, ms: p50 / p99

Compared with no proxy between the same kinds of host and server, where that was measured.

${matrices(rows, added(rows))}

## Calls per second

${matrices(rows, ({ callsPerSecond }) => callsPerSecond.median.toFixed(0))}

## Peak resident memory over the whole run, MiB

${table(
  ['subject', 'host → server', 'MiB'],
  Object.entries(report.memory).map(([name, mib]) => [name, mib.toFixed(0)]),
)}

${fullText(report)}
${notes}
## How each subject was started

${table(
  ['subject', 'what it is', 'command'],
  [...Object.entries(commands).map(([name, { what, command }]) => [name, what, `\`${command}\``]), ...missing],
)}
`
}

const added =
  (rows: readonly Row[]) =>
  (row: Row): string => {
    const [host, server] = row.between
    const between = [server === 'stdio' || server === 'http-sse' ? server : host === 'modern' ? host : 'legacy', server].join()
    const direct = rows.find(
      (one) =>
        one.subject === 'direct' &&
        one.between.join() === between &&
        one.tool === row.tool &&
        one.kind === row.kind &&
        one.inFlight === row.inFlight,
    )
    return direct === undefined || direct === row ? '–' : `${number(row.p50 - direct.p50)} / ${number(row.p99 - direct.p99)}`
  }
