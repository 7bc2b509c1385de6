/** Each program on the page about embedding runs, and prints what stands below it. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const page = readFileSync(new URL('../../docs/embedding.md', import.meta.url), 'utf8')
const server = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
const shown = [...page.matchAll(/^```ts\n([^]*?)^```\n\n```text\n([^]*?)^```$/gm)].map(([, program = '', output = '']) => ({
  first: /^(?:import|const) .*/m.exec(program)?.[0],
  program: program
    .replaceAll("'trunkline'", JSON.stringify(new URL('../../src/index.ts', import.meta.url).href))
    .replaceAll(
      "command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything']",
      () => `command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(server)}, 'stdio']`,
    ),
  output,
}))

test('every program of the page has its output', () => {
  expect(shown).toHaveLength(page.match(/^```ts$/gm)?.length ?? 0)
  expect(shown.length).toBeGreaterThan(3)
})

test.for(shown)('the program that begins with $first prints what is shown', async ({ program, output }) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'tl-page-'))
  const file = join(folder.path, 'program.mts')
  await writeFile(file, program)
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--no-warnings', file], { cwd: folder.path })
  expect({ stdout, stderr }).toEqual({ stdout: output, stderr: '' })
})
