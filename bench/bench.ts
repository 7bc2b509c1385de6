/**
 * `npm run bench`: CPU per call of the gateway, compared with a raw pass-through, raw with JSON, the SDK wired as a proxy, no proxy, nginx
 * and programs from npm. `--full`: every transport and payload, cold start, memory, lists, streams, growth, profiles and the goals. Exits with 1 if a reply
 * was bad or a subject did not start, with 2 for wrong arguments. Speed never changes the exit code.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { loadavg, cpus } from 'node:os'
import { join } from 'node:path'
import { Budget } from './budget.ts'
import { cellName, fullCells, fullCopies, isShown, plainCells } from './cells.ts'
import { changes } from './changes.ts'
import { coldStarts } from './cold-start.ts'
import { awaitWritable, numberOf, parseOptions, runProgram, UsageError } from './command-line.ts'
import { type Figures, renderComparison, shortFigures } from './compare.ts'
import { sameWorkMs, machineTime, othersBetween, peakMiB, processTree } from './cpu.ts'
import { type Contestant, openField, openStage, type Stage } from './field.ts'
import { type Field, fieldsOf } from './fields.ts'
import type { Effort, Figure } from './figures.ts'
import { goalsOf } from './goals.ts'
import { growth } from './growth.ts'
import { lists } from './lists.ts'
import { findPeers } from './peers.ts'
import { ROOT } from './process.ts'
import { takeProfiles, WALKS } from './profiling.ts'
import { isUneven, type Load, machine, render, renderSections, type Report, rowName, versions } from './report.ts'
import { PAYLOAD_KINDS, type PayloadKind } from './payload-kinds.ts'
import { type Row, runRounds } from './rounds.ts'
import { rules } from './rules.ts'
import { sessions } from './sessions.ts'
import { spread } from './stats.ts'
import { firstBytes, peaks } from './streamed.ts'
import { type Between, SUBJECTS, type Subject } from './subjects.ts'
import { tail } from './tail.ts'
import { turns } from './turns.ts'
import { workers } from './workers.ts'

const PAGE = join(ROOT, 'docs/benchmarks.md')
const NOTES = join(ROOT, 'bench/notes.md')
const COMMITTED = join(ROOT, 'bench/figures.json')

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  full: { type: 'boolean', default: false },
  sections: { type: 'string' },
  rounds: { type: 'string', default: '9' },
  subjects: { type: 'string' },
  payloads: { type: 'string' },
  minutes: { type: 'string' },
  peers: { type: 'string' },
  json: { type: 'string' },
  read: { type: 'string' },
  write: { type: 'boolean', default: false },
  compare: { type: 'boolean', default: false },
} as const
type Values = ReturnType<typeof parseOptions<typeof OPTIONS>>

/** Each with its share of the time, where that is limited; the rounds of all subjects have most of it. */
const SECTIONS = [
  ['start', coldStarts, 4],
  ['sessions', sessions, 5],
  ['lists', lists, 5],
  ['changes', changes, 5],
  ['first-bytes', firstBytes, 4],
  ['peaks', peaks, 5],
  ['neighbours', tail, 8],
  ['growth', growth, 10],
  ['turns', turns, 2],
  ['rules', rules, 4],
  ['workers', workers, 5],
] as const
type Section = (typeof SECTIONS)[number]
const ROUNDS_WEIGHT = 48
const PROFILES_WEIGHT = 4

const USAGE = `npm run bench -- [--quick] [--full] [--sections start,…] [--rounds N] [--minutes N] [--subjects direct,raw,…] [--payloads prose,dense,…] [--peers DIR] [--json FILE] [--read FILE] [--write] [--compare]
  --quick      one short round: shows that everything works, says nothing about speed
  --full       every transport and payload, cold start, memory, lists and their changes, streams, growth, workers, profiles, and the goals
  --sections   of ${SECTIONS.map(([name]) => name).join(', ')}: these alone, without the table of calls; with --read they take the place of those in FILE
  --rounds     rounds that count, 9 by default
  --minutes    with --full or --sections: rounds are left out, down to 3, so that the run takes about so long; 18 by default with --full
  --subjects   of ${SUBJECTS.map(({ name }) => name).join(', ')}, and the peers; all by default
  --payloads   of ${PAYLOAD_KINDS.join(', ')}, or all; prose by default, all with --full
  --peers      a folder in which npm installed mcp-hub, mcp-proxy and supergateway, and in which agentgateway may lie (else it is looked for in PATH)
  --json       writes everything found to FILE
  --read       takes what --json wrote in place of a run
  --write      writes docs/benchmarks.md and bench/figures.json, unless a reply was bad or a subject did not start; refused on a busy machine
  --compare    sets the run beside bench/figures.json and names what worsened by more than 15 %`

const log = (text: string): void => void process.stderr.write(`${text}\n`)

const effortOf = (values: Values): Effort => {
  const rounds = numberOf('--rounds', values.rounds)
  if (values.quick)
    return { rounds: 1, warmUp: 0, warmUpCalls: 0, forMs: 20, warmUpMs: 0, settleMs: 0, sessions: 20, servers: [2] }
  const common = { rounds, sessions: 1_000, servers: [1, 10, 100] }
  if (values.full || values.sections !== undefined)
    return { ...common, warmUp: 1, warmUpCalls: WARM_UP_CALLS, forMs: 150, warmUpMs: 200, settleMs: SETTLE_MS }
  return { ...common, warmUp: 2, warmUpCalls: WARM_UP_CALLS, forMs: 300, warmUpMs: 300, settleMs: SETTLE_MS }
}
const WARM_UP_CALLS = 8_000
const SETTLE_MS = 1_500
const FULL_MINUTES = 18

/** What only `--full` measures, one section after the other so that none disturbs another. */
const measureSections = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  sections: readonly Section[],
  budget: Budget,
): Promise<readonly Figure[]> => {
  const figures: Figure[] = []
  for (const [name, section, weight] of sections) {
    const deadline = budget.part(weight)
    const started = performance.now()
    await stage.attempt(name, async () => {
      figures.push(...(await stage.section((inner) => section(inner, subjects, effort, deadline))))
    })
    log(`${name}: ${((performance.now() - started) / 1e3).toFixed(0)} s`)
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

const sectionsOf = ({ full, sections }: Values): readonly Section[] => {
  if (sections === undefined) return full ? SECTIONS : []
  const wanted = sections.split(',')
  const unknown = wanted.find((name) => !SECTIONS.some(([known]) => known === name))
  if (unknown !== undefined)
    throw new UsageError(`--sections: no section "${unknown}"; there are ${SECTIONS.map(([name]) => name).join(', ')}`)
  return SECTIONS.filter(([name]) => wanted.includes(name))
}

const kindsOf = (names: string): readonly PayloadKind[] => {
  const wanted = names === 'all' ? PAYLOAD_KINDS : names.split(',')
  const unknown = wanted.find((name) => !PAYLOAD_KINDS.some((kind) => kind === name))
  if (unknown !== undefined)
    throw new UsageError(`--payloads: no kind "${unknown}"; there are ${PAYLOAD_KINDS.join(', ')}, and all`)
  return PAYLOAD_KINDS.filter((kind) => wanted.includes(kind))
}

const overHttp = ([host, server]: Between): boolean => /^(legacy|modern)$/.test(host) && /^(legacy|modern)$/.test(server)

/** Cores that others may use: with more, times say nothing of what is measured. */
const MAX_OTHERS = 0.15
const LOOK_MS = 3_000
const WORK_EVERY_MS = 5_000

/** Told before a run of minutes, not after it. */
const refuseBusy = async (): Promise<void> => {
  const before = machineTime()
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  const others = othersBetween(before, machineTime())
  if (others > MAX_OTHERS * cpus().length)
    throw new UsageError(
      `--write: the machine is busy: others use ${others.toFixed(2)} of ${cpus().length} cores; run it without --write, or when they have ended`,
    )
}

const measure = async (values: Values): Promise<Report> => {
  const effort = effortOf(values)
  const sections = sectionsOf(values)
  const isAlone = values.sections !== undefined
  const isFull = values.full && !isAlone
  const kinds = kindsOf(values.payloads ?? (isFull && !values.quick ? 'all' : values.quick ? 'prose,dense' : 'prose'))
  const minutes = values.minutes === undefined ? undefined : numberOf('--minutes', values.minutes, true)
  const peers = await findPeers(values.peers)
  const subjects = chosen(values.subjects, [...SUBJECTS, ...peers.subjects], peers.absent)
  if (values.write) await refuseBusy()
  const [started, [loadBefore]] = [machineTime(), loadavg()]
  const works = [sameWorkMs()]
  const working = setInterval(() => works.push(sameWorkMs()), WORK_EVERY_MS)

  await using stage = await openStage()
  const interrupted = (): void => void stage[Symbol.asyncDispose]().finally(() => process.exit(130))
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
  const weight = sections.reduce((sum, [, , weight]) => sum + weight, isFull ? ROUNDS_WEIGHT + PROFILES_WEIGHT : 0)
  const budget = new Budget(values.quick ? undefined : isFull ? (minutes ?? FULL_MINUTES) : isAlone ? minutes : undefined, weight)
  const isWanted = !isFull ? overHttp : values.quick ? isShown : () => true
  const cellsOf = (subject: string, between: Between) => (isFull ? fullCells(subject, between, kinds) : plainCells(kinds))
  const copiesOf = (subject: string, between: Between) => (isFull && !values.quick ? fullCopies(subject, between) : 1)
  const fields = isAlone ? [] : fieldsOf(subjects, isWanted, copiesOf)
  const rows: Row[] = []
  const memory: (readonly [name: string, mib: number])[] = []
  const burstsOf = ({ subjects, role }: Field): number => {
    const pairs = subjects.flatMap(({ name, between }) => between.map((pair) => [name, pair] as const))
    return pairs.reduce((sum, pair) => (role(...pair) === undefined ? sum : sum + cellsOf(...pair).length), 0)
  }
  const bursts = fields.reduce((sum, field) => sum + burstsOf(field), 0)
  const measureField = async (inner: Stage, field: Field) => {
    const { name, subjects, role, copies } = field
    const until = isFull ? budget.part((ROUNDS_WEIGHT * burstsOf(field)) / bursts) : undefined
    const contestants = await openField(inner, subjects, {
      isWanted: (subject, between) => role(subject, between) !== undefined,
      cells: cellsOf,
      copies: (subject, between) => (role(subject, between) === 'counted' ? copiesOf(subject, between) : copies),
    })
    log(`${name}: ${contestants.length} contestants are up`)
    const isCounted = ({ subject, between }: Pick<Row, 'subject' | 'between'>) => role(subject, between) === 'counted'
    const found = await runRounds(needed(contestants, isCounted), effort, until, (what, error) => inner.lose(what, error))
    rows.push(...found.filter(isCounted))
    const peakOf = ({ instances }: Contestant) => Math.max(...instances.map(({ pid }) => peakMiB(processTree(pid))))
    memory.push(...contestants.filter(isCounted).map((one) => [rowName(one), peakOf(one)] as const))
  }
  for (const field of fields) {
    const began = performance.now()
    await stage.section((inner) => measureField(inner, field))
    log(`${field.name}: ${((performance.now() - began) / 1e3).toFixed(0)} s`)
  }
  const able = isAlone ? subjects : subjects.filter(({ name }) => rows.some(({ subject }) => subject === name))
  const figures = await measureSections(stage, able, effort, sections, budget)
  if (isFull) log('profiles')
  const profiles = isFull ? await takeProfiles(stage, values.quick ? WALKS.slice(0, 1) : WALKS, values.quick ? 200 : 3_000) : []
  clearInterval(working)
  const ended = machineTime()
  const others = othersBetween(started, ended)
  const sameWork = spread(works)
  const load: Load = {
    before: loadBefore!,
    after: loadavg()[0]!,
    others,
    isBusy: others > MAX_OTHERS * cpus().length || isUneven(sameWork),
    sameWork,
    minutes: (ended.atMs - started.atMs) / 60_000,
    refaults: ended.refaults - started.refaults,
  }
  const ran = subjects.filter(({ name }) => stage.commands.has(name))
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    versions: await versions(peers.versions),
    options: effort,
    load,
    run: commandOf(values),
    rows,
    memory: Object.fromEntries(memory),
    commands: Object.fromEntries(ran.map(({ name, what }) => [name, { what, command: stage.commands.get(name)! }])),
    failed: Object.fromEntries(stage.failed),
    absent: peers.absent,
    peers: peers.subjects.map(({ name }) => name),
    figures,
    goals:
      isFull || isAlone ? goalsOf(rows, figures, load.isBusy).filter(({ measured }) => isFull || measured !== undefined) : [],
    profiles,
  }
}

/** `report` with the sections that were measured again. */
const withAgain = (report: Report, again: Report, names: string): Report => {
  const isSame = (one: Figure, other: Figure) =>
    one.section === other.section && one.subject === other.subject && one.what === other.what
  const kept = report.figures.filter((one) => !again.figures.some((other) => isSame(one, other)))
  const figures = [...kept, ...again.figures].toSorted(bySection([...report.figures, ...again.figures]))
  return {
    ...report,
    figures,
    goals: goalsOf(report.rows, figures, report.load.isBusy || again.load.isBusy),
    failed: { ...report.failed, ...again.failed },
    again: [...(report.again ?? []), { names, date: again.date, load: again.load }],
  }
}

/** Figures of a section stand together, sections in the order in which they were first met. */
const bySection = (figures: readonly Figure[]) => {
  const order = [...new Set(figures.map(({ section }) => section))]
  return (one: Figure, other: Figure) => order.indexOf(one.section) - order.indexOf(other.section)
}

/** Baselines take part in the columns of the others alone. */
const needed = (contestants: readonly Contestant[], isCounted: (one: Contestant) => boolean): readonly Contestant[] => {
  const wanted = new Set(contestants.filter(isCounted).flatMap(({ cells }) => cells.map(cellName)))
  return contestants.map((one) =>
    isCounted(one) ? one : { ...one, cells: one.cells.filter((cell) => wanted.has(cellName(cell))) },
  )
}

/** How anyone repeats the run; `DIR`: a folder with the peers. */
const commandOf = ({ quick, full, rounds, minutes, subjects, payloads, peers }: Values): string =>
  [
    'npm run bench --',
    ...(quick ? ['--quick'] : []),
    ...(full ? ['--full'] : []),
    ...(rounds === OPTIONS.rounds.default ? [] : ['--rounds', rounds]),
    ...(subjects === undefined ? [] : ['--subjects', subjects]),
    ...(minutes === undefined ? [] : ['--minutes', minutes]),
    ...(payloads === undefined ? [] : ['--payloads', payloads]),
    ...(peers === undefined ? [] : ['--peers', 'DIR']),
    '--write',
  ].join(' ')

/** Says what is wrong with a run; true when nothing is. What a peer cannot do is told on the page and no fault of the run. */
const isSound = ({ rows, failed, peers }: Report): boolean => {
  const bad = rows.filter((row) => row.bad > 0)
  for (const row of bad) log(`${row.bad} bad replies: ${rowName(row)}, ${cellName(row)}\n${row.firstBad}`)
  for (const [name, why] of Object.entries(failed)) log(`${name} failed: ${why}`)
  return bad.length === 0 && !Object.keys(failed).some((name) => !peers.some((peer) => name.startsWith(peer)))
}

const inShort = ({ date, machine, versions, rows, figures }: Report): Figures => ({
  date,
  machine: `${machine.cores} cores (${machine.cpu})`,
  node: versions['node']!,
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
  if (values.write && values.sections !== undefined && values.read === undefined)
    throw new UsageError('--write: a page holds a whole run; name its JSON with --read, or leave --sections out')
  const earlier = values.read === undefined ? undefined : await read<Report>('--read', values.read)
  const measured = earlier === undefined || values.sections !== undefined ? await measure(values) : undefined
  const report = earlier && measured ? withAgain(earlier, measured, values.sections ?? '') : (earlier ?? measured!)
  const page = render(report, await readFile(NOTES, 'utf8'))
  process.stdout.write(measured && values.sections !== undefined ? renderSections(measured) : page)
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
