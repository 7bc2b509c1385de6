/**
 * Runs the interop matrix through Trunkline and writes docs/protocol.md from what came out. Exits with 1 when a cell fails; the
 * page then says which.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cellTitle } from '../test/e2e/gateway-cells.ts'
import { renderProtocolPage } from './protocol-page.ts'

/** The part of Vitest's JSON report that is read here. */
interface Report {
  testResults: { assertionResults: { ancestorTitles: string[]; title: string; status: string }[] }[]
}

const root = fileURLToPath(new URL('../', import.meta.url))

const runMatrix = async (): Promise<Report> => {
  const folder = await mkdtemp(join(tmpdir(), 'protocol-'))
  try {
    const file = join(folder, 'report.json')
    const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs')
    const args = [vitest, 'run', '--project', 'e2e', 'test/e2e/gateway-matrix-', '--reporter=json', `--outputFile=${file}`]
    await new Promise((resolve) => execFile(process.execPath, args, { cwd: root, maxBuffer: 64 * 2 ** 20 }, resolve))
    return JSON.parse(await readFile(file, 'utf8')) as Report
  } finally {
    await rm(folder, { recursive: true })
  }
}

const report = await runMatrix()
const passed = new Map<string, boolean>()
for (const { ancestorTitles, title, status } of report.testResults.flatMap(({ assertionResults }) => assertionResults))
  passed.set(`${ancestorTitles.at(-1)}: ${title}`, status === 'passed')

const page = renderProtocolPage((host, downstream, feature) => {
  const result = passed.get(`${cellTitle(host, downstream)}: ${feature}`)
  return result === undefined ? undefined : result ? 'passed' : 'failed'
})
await writeFile(join(root, 'docs/protocol.md'), page)
const failed = [...passed].filter(([, isPassed]) => !isPassed).map(([cell]) => cell)
console.log(`${passed.size - failed.length} of ${passed.size} tests passed`)
for (const cell of failed) console.log(`  FAILED  ${cell}`)
process.exitCode = failed.length > 0 ? 1 : 0
