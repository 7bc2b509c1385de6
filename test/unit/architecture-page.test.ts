/** What the architecture page names exists: its paths are the answers to a newcomer's questions. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PAGE = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
const FOLDERS = new Set([
  'src',
  'test',
  'scripts',
  'bench',
  'docs',
  ...readdirSync(join(ROOT, 'src'), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])),
])
/** As the page writes them: from `src/` or from the root, with or without the ending. */
const exists = (path: string): boolean =>
  [path, `src/${path}`, `src/${path}.ts`, `src/${path}.tsx`].some((one) => existsSync(join(ROOT, one)))

test('every path of the page leads to a file or folder', () => {
  const quoted = [...PAGE.matchAll(/`([\w.-]+(?:\/[\w.-]+)+)\/?`/g)].map(([, path = '']) => path)
  const paths = quoted.filter((path) => FOLDERS.has(path.split('/', 1)[0] ?? ''))
  expect(paths.length).toBeGreaterThan(60)
  expect(paths.filter((path) => !exists(path))).toEqual([])
})

test('each question is answered by files', () => {
  const [, table = ''] = /### Where to look\n[^]*?\n\| --- \| --- \|\n([^]*?)\n\n/.exec(PAGE) ?? []
  const rows = table.split('\n').map((row) => row.split('|').slice(1, -1))
  expect(rows.length).toBeGreaterThanOrEqual(18)
  for (const [question = '', answer = ''] of rows) {
    const files = [...answer.matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(([, path = '']) => path)
    expect(files, question).not.toEqual([])
    expect(
      files.filter((path) => !exists(path)),
      question,
    ).toEqual([])
  }
})
