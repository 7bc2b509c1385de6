/**
 * No export of the source lives for tests alone: what the program does not use is tested for nothing, and mostly was meant to be
 * used. A value that its own file uses may be exported for a test.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** What the package offers, what the program begins with, and what is compiled by another compiler. */
const ENTRIES = new Set(['src/index.ts', 'src/main.ts', 'src/dashboard/main.tsx', 'src/wire/kernel/assembly/scan.ts'])

interface Source {
  /** From the root of the repository. */
  readonly file: string
  /** Without comments. */
  readonly code: string
}

const read = (folder: string): Source[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => ({
      file: posix.join(folder, name.replaceAll('\\', '/')),
      code: readFileSync(join(ROOT, folder, name), 'utf8').replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, ''),
    }))

const EXPORT = /^export (?:abstract )?(?:async )?(?:const|let|class|function\*?|type|interface|enum) (\w+)/gm
/** `{ a, type b, c as d } from './x.ts'` of imports and of exports; `import('./x.ts')`, by which any name may be taken. */
const NAMED = /(?:import|export) (?:type )?(?:\w+, )?\{([^}]*)\} from '(\.[^']+)'/g
const WHOLE = /(?:\* as \w+ from |import\()'(\.[^']+)'/g

const targetOf = (from: string, path: string): string => posix.join(posix.dirname(from), path)
const namesIn = (list: string): string[] =>
  list
    .split(',')
    .map(
      (item) =>
        item
          .trim()
          .replace(/^type /, '')
          .split(' as ')[0] ?? '',
    )
    .filter((name) => name !== '')

/** `file name` of each export that no other file of these takes and its own file does not use. */
const unused = (sources: readonly Source[], users: readonly Source[]): string[] => {
  const taken = new Set(
    users.flatMap(({ file, code }) => [
      ...[...code.matchAll(NAMED)].flatMap(([, list, path]) =>
        namesIn(list ?? '').map((name) => `${targetOf(file, path ?? '')} ${name}`),
      ),
      ...[...code.matchAll(WHOLE)].flatMap(([, path]) =>
        [...code.matchAll(/[.{,]\s*(\w+)/g)].map(([, name]) => `${targetOf(file, path ?? '')} ${name}`),
      ),
    ]),
  )
  return sources.flatMap(({ file, code }) =>
    [...code.matchAll(EXPORT)]
      .map(([, name]) => name ?? '')
      .filter((name) => !taken.has(`${file} ${name}`) && code.match(new RegExp(`\\b${name}\\b`, 'g'))?.length === 1)
      .map((name) => `${file} ${name}`),
  )
}

test('every export of the source is used by the program itself, not by tests alone', () => {
  const src = read('src')
  const users = [...src, ...read('bench'), ...read('scripts')]
  expect(
    unused(
      src.filter(({ file }) => !ENTRIES.has(file)),
      users,
    ),
  ).toEqual([])
})
test('what only tests use is found, however it is exported', () => {
  const dead =
    'export const a = 1\nexport class B {}\nexport async function c() {}\nexport interface D {}\nexport const own = 1\nown'
  const found = unused([{ file: 'src/x.ts', code: dead }], [{ file: 'src/y.ts', code: "import { a } from './z.ts'" }])
  expect(found).toEqual(['a', 'B', 'c', 'D'].map((name) => `src/x.ts ${name}`))
  const users = ["import { a as z, type B } from './x.ts'", "export { c } from './x.ts'", "import('./x.ts').then((x) => x.D)"]
  expect(
    unused(
      [{ file: 'src/x.ts', code: dead }],
      users.map((code) => ({ file: 'src/y.ts', code })),
    ),
  ).toEqual([])
})
