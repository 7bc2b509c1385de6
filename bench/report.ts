/** What a run found, as JSON and as the page `docs/benchmarks.md`: losses included, no cell left out. */
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
  /** So much that times have no verdict. */
  readonly isBusy: boolean
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
    ['subject', 'what', 'median (first to third quartile)', 'to its yardstick'],
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

From CPU profiles of the gateway run from its sources, as \`npm run profile\` writes them with a flame graph beside; the profiler itself costs some.

${profiles.map(profileText).join('\n')}`,
        ]
  return [...text, ...time].join('\n')
}

const SECTION_NOTES: Readonly<Record<string, string>> = {
  'cold start': 'From the spawn of the process to the answer of the first handshake; the yardstick is raw.',
  sessions: `Memory after full collections, in three steps over as many sessions; a session that made a call has a connection of its own
before a server of the legacy era.`,
  lists: `One \`tools/list\` after another. Raw and no proxy stand before one server that answers as long a list; the yardstick is raw.`,
  'lists that change': `One server of 50 tools, alone or beside 99 like it, or one of 5,000, changes its list ten times a second; a host is told each time. A list
is read whole, since the protocol tells no more than that it changed. Changes that come close together are read once: what they cost beyond the
same gateway without them is divided by the readings. The yardstick is the gateway with that one server of 50.`,
  'big and slow results': `First and last bytes: the server writes 3.9 MB in pieces of 64 KB, one every 4 ms, or a word of progress and 50 ms later the result;
the least of five calls by round. Memory: the peak of a fresh process. The yardstick is raw.`,
  'the worst neighbour': `One host calls a tool of 100 B, one call after another, while another host has big results passed to it from the same gateway, one after
another (the gateway: \`max_message\` raised to 128 MiB). The small calls go to the server that answers the big ones; where those are lines of a
pipe, to one beside it, and raw passes the same over HTTP. All share the machine's cores. Memory: the peak beside 100 MB less what was resident before.
The yardstick is raw beside the same.`,
  'growth in one process': `The same process before and after; beside each burst one of a second process that does not grow, whose change is divided out. Servers and
tools are added by reloading the configuration. Calls of many sessions: each session has one call under way, eight servers share them, and the yardstick
is one call at a time.`,
  'ten rules in one process': `One process, with a policy of ten rules and without in turns, by reloading its configuration; two of the rules read the arguments of each call. 32 calls
in flight. The yardstick is the same process without them.`,
  workers: `\`listen.workers: 2\` beside 1, before one server of the modern era; a call carries some two hundred records (10 KB of arguments), seventy rules of a policy
look at each of them. The yardstick is one worker; that of the host and the server is the gateway of the same row: they share the cores with it. CPU and memory
are those of all processes of the gateway: the workers and, with two, their supervisor. One worker is the code path of a gateway without the option. "Two processes" are two gateways of one worker each that know nothing of each other, with half of the
calls in flight to each: what two cores of this machine give at most.`,
  'longest turn of the event loop': `A line or an event of 15 MB arrives in pieces of 64 KB, 32 in each turn, which is what Node reads at most from one pipe before it turns to
others. CPU time of the thread in the longest turn, the last one with the whole message included.`,
}

/** Rounds that were done, which a run of limited time may have cut. */
const roundsOf = (rows: readonly Row[]): number => Math.max(0, ...rows.map(({ cpuByRound }) => cpuByRound.length))

const loadText = ({ before, after, others, isBusy, minutes, refaults = 0 }: Load): string =>
  `The run took ${minutes.toFixed(1)} minutes. Load average of the minute before it ${before.toFixed(2)}, at its end ${after.toFixed(2)} (its own processes included); other
processes used ${others.toFixed(2)} cores meanwhile${isBusy ? ': **the machine was busy, so that times have no verdict**' : ''}.${refaults > REFAULTS_PER_MINUTE * minutes ? `\n${takenText(refaults)}` : ''}`

/** From here on they are seen in what is short. */
const REFAULTS_PER_MINUTE = 1_000

const takenText = (refaults: number): string =>
  `The machine took ${refaults} pages of 4 KB from processes that had no turn, and they were read again in their bursts: that is CPU time, too, and it weighs most on what is
short, and on the larger program. Compare sections that measure one process.`

const againText = ({ again = [] }: Report): string =>
  again
    .map(
      ({ names, date, load: { others, isBusy } }) =>
        `Measured again on ${date}: ${names}; other processes used ${others.toFixed(2)} cores meanwhile${isBusy ? ': **the machine was busy**' : ''}.\n`,
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
${goals.length === 0 ? '' : `## In short\n\n${answersText(report)}\n\n## Goals\n\n${goalTable(goals)}\n\n## How it is measured\n\n`}One host calls a tool of one server through each subject; the result is a text of 100 B, 10 KB or 1 MB. Hosts and servers are written on
bare sockets and pipes: \`legacy\` and \`modern\` are Streamable HTTP of 2025-11-25 (with sessions) and 2026-07-28, \`sse-reply\` is a legacy
server that answers in event streams, \`http-sse\` the transport of 2024-11-05. Hosts send a token with every request over HTTP. The gateway
refuses requests without one; \`trunkline-jwt\` verifies its signature.

A few processes are up at once: those before one kind of server, in groups, with what they are set against in each. ${options.warmUpCalls === 0 ? '' : `Each process first answers ${options.warmUpCalls} calls of 100 B (slow ones as many as they can in 4 s). `}Then comes one column after the other: each
process makes calls of it for ${options.settleMs} ms, and in each of ${roundsOf(rows)} rounds every subject has one burst of ${options.forMs} ms, in an order that rotates, after ${options.warmUpMs / 2} ms of the same calls that
do not count: a process that did something else before, or nothing, is slower at first. Where a goal is judged over the set of payloads there are three processes of the same, which take turns by round. The host looks at every
reply: status, id, size, and a nonce at both ends of the text. ${calls} calls, ${bad} bad replies. \`× 32\`: 32 calls in flight.

## CPU per call, as a ratio to raw

User and system time of the subject's whole process tree (the bench's own servers on pipes left out), from
\`/proc/PID/task/*/schedstat\`, divided by that of what passes bytes before the same server in the same round: median over rounds (first to
third quartile). That is raw; between two pipes it is lines; for other hosts of a server on a pipe it is raw before the legacy server.
These ratios hold on a busy machine; the times below do not.

${matrices(rows, ({ ratio }) => (ratio === undefined ? '–' : withSpread(ratio)))}

## Where Trunkline costs more than raw

${lossLines(rows)}

## CPU per call, µs

${matrices(rows, ({ cpuPerCall }) => withSpread(cpuPerCall))}

## Time of a call, ms: p50 / p99

Hosts, servers and subjects share the machine's cores: reported, no verdict.

${matrices(rows, ({ p50, p99 }) => `${number(p50)} / ${number(p99)}`)}

## Time added to a call, ms: p50 / p99

Beside no proxy, where there is one between the same kinds.

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
