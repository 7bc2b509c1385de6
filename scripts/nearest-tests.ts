/** The tests that reach a file of `src`, ordered by how likely they detect a defect in it. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A file that another one names by its URL is a program that it starts. */
const IMPORT = /(?:^(?:import|export)(?!\s+type\b)[^'"]*?from\s*|^import\s*|\bimport\([^()']*|\bnew URL\(\s*)'(\.[^']+)'/gm
const TEST = /\.test\.ts$/

/** Which files import or start each file, by paths from `root`. Imports of types alone are left out, because nothing runs through them. */
const importersOf = (root: string): ReadonlyMap<string, readonly string[]> => {
  const files = execFileSync('git', ['ls-files', '*.ts'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
  const pairs = files
    .filter((file) => existsSync(join(root, file)))
    .flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(IMPORT)].map(([, to]) => [join(dirname(file), to!), file] as const),
    )
  return new Map([...Map.groupBy(pairs, ([to]) => to)].map(([to, found]) => [to, found.map(([, from]) => from)]))
}

const wordsOf = (path: string): Set<string> => new Set(path.replace(/\.test\.ts$|\.ts$/, '').split(/[/-]/))

/** Test files, by path from `root`: fewest imports away first, and among those whose paths have most words in common. */
export const nearestTests = (root: string): ((file: string) => readonly string[]) => {
  const importers = importersOf(root)
  return (file) => {
    const away = new Map([[file, 0]])
    for (const [at, steps] of away)
      for (const importer of importers.get(at) ?? []) if (!away.has(importer)) away.set(importer, steps + 1)
    const own = wordsOf(file)
    const common = (test: string) => [...wordsOf(test)].filter((word) => own.has(word)).length
    return [...away.keys()]
      .filter((found) => TEST.test(found))
      .sort((one, other) => away.get(one)! - away.get(other)! || common(other) - common(one) || (one < other ? -1 : 1))
  }
}
