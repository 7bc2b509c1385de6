/**
 * `npm run bench`: CPU per call of the gateway beside a raw pass-through, raw with JSON, the SDK wired as a proxy, and no proxy at all.
 * Ends with 1 when a reply was bad or a subject did not start. Speed never decides the exit code.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { peakMiB, processTree } from './cpu.ts'
import { startField } from './field.ts'
import { ROOT } from './process.ts'
import { machine, render, type Report, rowName, versions } from './report.ts'
import { CELLS, runRounds, type RoundsOptions } from './rounds.ts'
import { SUBJECTS } from './subjects.ts'

const USAGE = `npm run bench -- [--quick] [--rounds N] [--subjects direct,raw,…] [--json FILE] [--write]
  --quick      one short round: shows that everything works, says nothing about speed
  --rounds     rounds that count, 9 by default
  --subjects   of ${SUBJECTS.map(({ name }) => name).join(', ')}; all by default
  --json       writes all figures to FILE
  --write      writes docs/benchmarks.md, unless a reply was bad or a subject did not start`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '9' },
    subjects: { type: 'string' },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const run = async (): Promise<boolean> => {
  const names = SUBJECTS.map(({ name }) => name)
  const wanted = values.subjects?.split(',') ?? names
  const unknown = wanted.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`--subjects: no subject "${unknown}"; there are ${names.join(', ')}`)
  if (!(Number(values.rounds) >= 1)) throw new Error(`--rounds: expected a number from 1, got ${values.rounds}`)
  const subjects = SUBJECTS.filter(({ name }) => wanted.includes(name))
  const options: RoundsOptions = values.quick
    ? { cells: CELLS, rounds: 1, warmUp: 0, forMs: 20, warmUpMs: 0 }
    : { cells: CELLS, rounds: Number(values.rounds), warmUp: 2, forMs: 300, warmUpMs: 1_500 }

  await using field = await startField(subjects)
  const { contestants, commands, failed } = field
  const rows = await runRounds(contestants, options, (round) => process.stderr.write(`round ${round + options.warmUp + 1}\n`))
  const report: Report = {
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    versions: await versions(),
    options,
    rows,
    memory: Object.fromEntries(contestants.map((one) => [rowName(one), peakMiB(processTree(one.pid))])),
    commands: Object.fromEntries(commands),
    failed: Object.fromEntries(failed),
  }
  const page = render(report, subjects)
  process.stdout.write(page)
  if (values.json !== undefined) await writeFile(values.json, JSON.stringify(report, undefined, 1))

  const bad = rows.filter((row) => row.bad > 0)
  for (const row of bad) console.error(`${row.bad} bad replies: ${rowName(row)}, ${row.tool} × ${row.inFlight}\n${row.firstBad}`)
  for (const [name, why] of failed) console.error(`${name} did not start: ${why}`)
  const sound = bad.length === 0 && failed.size === 0
  if (values.write && sound) await writeFile(join(ROOT, 'docs/benchmarks.md'), page)
  return sound
}

if (values.help) console.log(USAGE)
else process.exitCode = (await run()) ? 0 : 1
