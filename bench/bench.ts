/**
 * `npm run bench`: CPU per call of the gateway beside a raw pass-through, raw with JSON, the SDK wired as a proxy, no proxy at all, nginx
 * and what npm has. `--full`: every transport, cold start, memory, lists, streams, profiles and the goals. Ends with 1 when a reply was
 * bad or a subject did not start, with 2 when it was asked for what there is not. Speed never decides the exit code.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beside } from './beside.ts'
import { changes } from './changes.ts'
import { coldStarts } from './cold-start.ts'
import { awaitWritable, numberOf, parseOptions, runProgram, UsageError } from './command-line.ts'
import { type Figures, renderComparison, shortFigures } from './compare.ts'
import { peakMiB, processTree } from './cpu.ts'
import { openField, openStage, type Stage } from './field.ts'
import type { Effort, Figure } from './figures.ts'
import { goalsOf } from './goals.ts'
import { lists } from './lists.ts'
import { findPeers } from './peers.ts'
import { ROOT } from './process.ts'
import { takeProfiles, WALKS } from './profiling.ts'
import { machine, render, type Report, rowName, versions } from './report.ts'
import { PAYLOAD_KINDS, type PayloadKind } from './payload-kinds.ts'
import { toolOf } from './payload.ts'
import { cellsOf, runRounds } from './rounds.ts'
import { sessions } from './sessions.ts'
import { firstBytes, peaks } from './streamed.ts'
import { type Between, SUBJECTS, type Subject } from './subjects.ts'

const PAGE = join(ROOT, 'docs/benchmarks.md')
const NOTES = join(ROOT, 'bench/notes.md')
const COMMITTED = join(ROOT, 'bench/figures.json')

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  full: { type: 'boolean', default: false },
  rounds: { type: 'string', default: '9' },
  subjects: { type: 'string' },
  payloads: { type: 'string', default: 'prose' },
  peers: { type: 'string' },
  json: { type: 'string' },
  read: { type: 'string' },
  write: { type: 'boolean', default: false },
  compare: { type: 'boolean', default: false },
} as const
type Values = ReturnType<typeof parseOptions<typeof OPTIONS>>

const USAGE = `npm run bench -- [--quick] [--full] [--rounds N] [--subjects direct,raw,…] [--payloads prose,dense,…] [--peers DIR] [--json FILE] [--read FILE] [--write] [--compare]
  --quick      one short round: shows that everything works, says nothing about speed
  --full       every transport, cold start, sessions, lists and their changes, streams, profiles, and the goals
  --rounds     rounds that count, 9 by default
  --subjects   of ${SUBJECTS.map(({ name }) => name).join(', ')}, and the peers; all by default
  --payloads   of ${PAYLOAD_KINDS.join(', ')}, or all; prose by default
  --peers      a folder in which npm installed mcp-hub, mcp-proxy and supergateway
  --json       writes everything found to FILE
  --read       takes what --json wrote in place of a run
  --write      writes docs/benchmarks.md and bench/figures.json, unless a reply was bad or a subject did not start
  --compare    sets the run beside bench/figures.json and names what worsened by more than 15 %`

const log = (text: string): void => void process.stderr.write(`${text}\n`)

const effortOf = (values: Values): Effort => {
  const rounds = numberOf('--rounds', values.rounds)
  if (values.quick) return { rounds: 1, warmUp: 0, forMs: 20, warmUpMs: 0, sessions: 20, servers: [2] }
  // The longest of a full run: some ninety contestants warm up in six cells each.
  const warm = values.full ? { warmUp: 1, warmUpMs: 1_000 } : { warmUp: 2, warmUpMs: 1_500 }
  return { ...warm, rounds, forMs: 300, sessions: 1_000, servers: [1, 10, 100] }
}

const SECTIONS = { 'cold start': coldStarts, sessions, lists, changes, 'first bytes': firstBytes, peaks, 'beside 100 MB': beside }

/** What only `--full` measures, one section after the other so that none disturbs another. */
const measureSections = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const figures: Figure[] = []
  for (const [name, section] of Object.entries(SECTIONS)) {
    log(name)
    await stage.attempt(name, async () => {
      figures.push(...(await stage.section((inner) => section(inner, subjects, effort))))
    })
  }
  return figures
}

/** Those of `names`, with commas between; all without it. */
const chosen = (names: string | undefined, known: readonly Subject[], absent: Readonly<Record<string, string>>) => {
  const wanted = names?.split(',') ?? known.map(({ name }) => name)
  const unknown = wanted.find((wish) => !known.some(({ name }) => name === wish))
  if (unknown === undefined) return known.filter(({ name }) => wanted.includes(name))
  if (absent[unknown] !== undefined) throw new UsageError(`--subjects: ${unknown} is not here: ${absent[unknown]}`)
  throw new UsageError(`--subjects: no subject "${unknown}"; there are ${known.map(({ name }) => name).join(', ')}`)
}

const kindsOf = (names: string): readonly PayloadKind[] => {
  const wanted = names === 'all' ? PAYLOAD_KINDS : names.split(',')
  const unknown = wanted.find((name) => !PAYLOAD_KINDS.some((kind) => kind === name))
  if (unknown !== undefined)
    throw new UsageError(`--payloads: no kind "${unknown}"; there are ${PAYLOAD_KINDS.join(', ')}, and all`)
  return PAYLOAD_KINDS.filter((kind) => wanted.includes(kind))
}

const overHttp = ([host, server]: Between): boolean => /^(legacy|modern)$/.test(host) && /^(legacy|modern)$/.test(server)

const measure = async (values: Values): Promise<Report> => {
  const options = effortOf(values)
  const cells = cellsOf(kindsOf(values.payloads))
  const peers = await findPeers(values.peers)
  const subjects = chosen(values.subjects, [...SUBJECTS, ...peers.subjects], peers.absent)

  await using stage = await openStage()
  const interrupted = (): void => void stage[Symbol.asyncDispose]().finally(() => process.exit(130))
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
  const [rows, memory] = await stage.section(async (inner) => {
    const contestants = await openField(inner, subjects, values.full ? () => true : overHttp)
    const rows = await runRounds(
      contestants,
      { ...options, cells },
      (round) => log(`round ${round + options.warmUp + 1} of ${options.rounds + options.warmUp}`),
      (name, error) => inner.lose(name, error),
    )
    return [rows, contestants.map((one) => [rowName(one), peakMiB(processTree(one.pid))] as const)] as const
  })
  const able = subjects.filter(({ name }) => rows.some(({ subject }) => subject === name))
  const figures = values.full ? await measureSections(stage, able, options) : []
  if (values.full) log('profiles')
  const profiles = values.full ? await takeProfiles(stage, values.quick ? WALKS.slice(0, 1) : WALKS, 10 * options.forMs) : []
  const started = subjects.filter(({ name }) => stage.commands.has(name))
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    versions: await versions(peers.versions),
    options: { ...options, cells },
    run: commandOf(values),
    rows,
    memory: Object.fromEntries(memory),
    commands: Object.fromEntries(started.map(({ name, what }) => [name, { what, command: stage.commands.get(name)! }])),
    failed: Object.fromEntries(stage.failed),
    absent: peers.absent,
    peers: peers.subjects.map(({ name }) => name),
    figures,
    goals: values.full ? goalsOf(rows, figures) : [],
    profiles,
  }
}

/** How anyone repeats the run; `DIR`: a folder with the peers. */
const commandOf = ({ quick, full, rounds, subjects, payloads, peers }: Values): string =>
  [
    'npm run bench --',
    ...(quick ? ['--quick'] : []),
    ...(full ? ['--full'] : []),
    ...(rounds === OPTIONS.rounds.default ? [] : ['--rounds', rounds]),
    ...(subjects === undefined ? [] : ['--subjects', subjects]),
    ...(payloads === OPTIONS.payloads.default ? [] : ['--payloads', payloads]),
    ...(peers === undefined ? [] : ['--peers', 'DIR']),
    '--write',
  ].join(' ')

/** Says what is wrong with a run; true when nothing is. What a peer cannot do is told on the page and no fault of the run. */
const isSound = ({ rows, failed, peers }: Report): boolean => {
  const bad = rows.filter((row) => row.bad > 0)
  for (const row of bad)
    log(`${row.bad} bad replies: ${rowName(row)}, ${toolOf(row.tool, row.kind)} × ${row.inFlight}\n${row.firstBad}`)
  for (const [name, why] of Object.entries(failed)) log(`${name} failed: ${why}`)
  return bad.length === 0 && !Object.keys(failed).some((name) => !peers.some((peer) => name.startsWith(peer)))
}

const inShort = ({ date, machine, versions, rows, figures }: Report): Figures => ({
  date,
  machine: `${machine.cores} cores (${machine.cpu})`,
  node: versions['node'],
  figures: shortFigures(rows, figures),
})

const read = async <T>(option: string, file: string): Promise<T> => {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as T
  } catch (error) {
    throw new UsageError(`${option}: ${(error as Error).message}`, { cause: error })
  }
}

const run = async (): Promise<boolean> => {
  const values = parseOptions(process.argv.slice(2), OPTIONS)
  if (values.json !== undefined) await awaitWritable('--json', values.json)
  const committed = values.compare ? await read<Figures>('--compare', COMMITTED) : undefined
  const report = values.read === undefined ? await measure(values) : await read<Report>('--read', values.read)
  const page = render(report, await readFile(NOTES, 'utf8'))
  process.stdout.write(page)
  if (values.json !== undefined) await writeFile(values.json, JSON.stringify(report, undefined, 1))
  const sound = isSound(report)
  if (committed !== undefined) process.stdout.write(`\n${renderComparison(committed, inShort(report))}`)
  if (values.write && sound) {
    await writeFile(PAGE, page)
    await writeFile(COMMITTED, `${JSON.stringify(inShort(report), undefined, 2)}\n`)
  }
  return sound
}

await runProgram(USAGE, run)
