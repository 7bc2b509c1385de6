/**
 * `npm run hosts [-- HOST…] [--packages FOLDER] [--page]`: runs real hosts from npm against this checkout (see hosts/run.ts) and prints the
 * results. Hosts are large and are downloaded, so this is not part of `npm test`. Missing hosts are installed in FOLDER (by default in the
 * cache of this user). `--page` writes docs/hosts/runs.json, the source of the pages of the hosts.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { runHost } from './hosts/run.ts'
import type { Outcome } from './hosts/run.ts'
import { REAL_HOSTS } from './hosts/table.ts'
import type { RealHost } from './hosts/table.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { packages: { type: 'string' }, page: { type: 'boolean' } },
})
const folder = resolve(values.packages ?? join(homedir(), '.cache', 'trunkline-hosts'))
const unknown = positionals.find((word) => !REAL_HOSTS.some(({ host }) => host === word))
if (unknown !== undefined) throw new Error(`no host ${unknown}; there are: ${REAL_HOSTS.map(({ host }) => host).join(', ')}`)

const tell = (line: string): void => void process.stdout.write(`${line}\n`)

const binOf = async ({ package: name, version, bin }: RealHost): Promise<string> => {
  const own = join(folder, name.replaceAll(/[@/]/g, '_'))
  const file = join(own, 'node_modules', '.bin', bin)
  if (existsSync(file)) return file
  await mkdir(own, { recursive: true })
  await writeFile(join(own, 'package.json'), '{"private":true}')
  tell(`installing ${name}@${version}`)
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', `${name}@${version}`], {
    cwd: own,
    stdio: 'inherit',
  })
  return file
}

const outcomes: Outcome[] = []
for (const real of REAL_HOSTS.filter(({ host }) => positionals.length === 0 || positionals.includes(host)))
  for (const transport of ['stdio', 'http'] as const) {
    tell(`${real.host} ${real.version} over ${transport}`)
    const outcome = await runHost(real, await binOf(real), transport, (line) => tell(`  ${line}`))
    outcomes.push(outcome)
    const { client, revision, tools, shown, hasCalled, undone, seconds } = outcome
    tell(
      `  ${client || 'no request'}  ${revision}  ${tools ?? '-'} tools  shown: ${shown ?? '-'}  called: ${hasCalled} (${seconds} s)  undone: ${undone}`,
    )
  }

if (values.page === true) {
  const page = new URL('../docs/hosts/runs.json', import.meta.url)
  const before = JSON.parse(await readFile(page, 'utf8').catch(() => '[]')) as Outcome[]
  const isNew = (one: Outcome): boolean =>
    outcomes.some(({ host, transport }) => host === one.host && transport === one.transport)
  const all = [...before.filter((one) => !isNew(one)), ...outcomes].toSorted((a, b) =>
    `${a.host} ${a.transport}` < `${b.host} ${b.transport}` ? -1 : 1,
  )
  await writeFile(page, `${JSON.stringify(all, null, 2)}\n`)
}
process.exitCode = outcomes.every(({ hasCalled, shown, undone }) => hasCalled && shown !== 'not' && undone !== 'not') ? 0 : 1
