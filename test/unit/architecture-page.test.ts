/** What the architecture page names exists: its paths are the answers to a newcomer's questions. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

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

/** Files of `src/`, relative to it. */
const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => /\.(tsx?|css)$/.test(file))
const modules = [...new Set(files.filter((file) => file.includes('/')).map((file) => file.split('/', 1)[0]!))]
const isOf = (module: string, file: string): boolean => file.startsWith(`${module}/`) || file === `${module}.ts`

describe('one screen per module', () => {
  const [, section = ''] = /\n## One screen per module\n([^]*?)\n## /.exec(PAGE) ?? []
  const screens = section.split(/\n(?=### )/).slice(1)
  const screenOf = (module: string): string =>
    screens.find((screen) => screen.split('\n', 1)[0]!.includes(`\`${module}/\``)) ?? ''
  const wordsOf = (module: string, label: string): string[] => {
    const [, list = ''] = new RegExp(`^- \\*\\*${label}:\\*\\* ([^]*?)\\.$`, 'm').exec(screenOf(module)) ?? []
    return [...list.matchAll(/`([\w-]+)`/g)].map(([, word]) => word!)
  }

  test.each(modules)('%s has one, of 40 lines at most, with each of its folders', (module) => {
    const screen = screenOf(module)
    expect(screen).not.toBe('')
    expect(screen.trimEnd().split('\n').length).toBeLessThanOrEqual(40)
    const folders = new Set(files.filter((file) => isOf(module, file)).map((file) => dirname(file)))
    const below = [...folders].filter((folder) => folder.includes('/') && !folder.endsWith('/assembly'))
    expect(below.filter((folder) => !screen.includes(`\`${folder}\``))).toEqual([])
  })

  test.each(modules)('%s imports the modules that its screen says', (module) => {
    const imported = files
      .filter((file) => isOf(module, file) && !file.includes('/assembly/'))
      .flatMap((file) => {
        const code = readFileSync(join(ROOT, 'src', file), 'utf8')
        return [...code.matchAll(/(?:^import |\bfrom |\bimport\()'(\.[^']+)'/gm)].map(
          ([, to]) => join(dirname(file), to!).split('/', 1)[0]!,
        )
      })
    const expected = new Set(imported.filter((other) => modules.includes(other) && other !== module))
    expect(wordsOf(module, 'Imports')).toEqual([...expected].toSorted())
  })

  test.each(modules)('%s has the files and types that its screen names', (module) => {
    const own = files.filter((file) => isOf(module, file))
    const code = own.map((file) => readFileSync(join(ROOT, 'src', file), 'utf8')).join('\n')
    const named = [...screenOf(module).matchAll(/`([\w-]+\.tsx?)`/g)].map(([, name]) => name!)
    expect(named.filter((name) => !own.some((file) => basename(file) === name) && !exists(name))).toEqual([])
    const types = wordsOf(module, 'Types')
    expect(types.filter((type) => !new RegExp(`^export (abstract )?(class|interface|type) ${type}\\b`, 'm').test(code))).toEqual(
      [],
    )
  })

  test('each file beside the modules is named', () => {
    const beside = files.filter((file) => !file.includes('/'))
    expect(beside.filter((file) => !section.includes(`\`${file}\``))).toEqual([])
  })
})
