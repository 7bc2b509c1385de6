/** Secrets that stand in a file as they are, where others may read it (RELIABILITY 7). Only their paths are told. */
import type { GatheredServer } from './gather.ts'
import { child, scalars } from './tree.ts'
import type { ScalarTree, Tree } from './tree.ts'

const SECRET_NAME = /token|secret|passw|credential|authorization|cookie|(api|private|access)[-_]?key/i

/** One warning per file, with the paths of at most three of its secrets. */
export const warnOfReadableSecrets = (servers: Iterable<GatheredServer>): readonly string[] => {
  const found = new Map<string, string[]>()
  for (const { tree, readable } of servers) {
    const file = tree.place.replace(/:\d+:\d+$/, '')
    const literal = [child(tree, 'credentials'), ...['env', 'headers'].map((key) => named(child(tree, key)))]
      .flat()
      .flatMap(scalars)
    const paths = literal.filter((scalar) => readable && isLiteral(scalar)).map(({ path }) => path)
    if (paths.length > 0) found.set(file, [...(found.get(file) ?? []), ...paths])
  }
  return [...found].map(
    ([file, paths]) =>
      `${file} can be read by others and holds secrets (${paths.slice(0, 3).join(', ')}); chmod 600 it, or use \${VAR}`,
  )
}

const named = (tree: Tree | undefined): readonly Tree[] =>
  tree?.kind === 'map' ? [...tree.entries].filter(([name]) => SECRET_NAME.test(name)).map(([, child]) => child) : []

const isLiteral = ({ value, variables }: ScalarTree) => variables === undefined && value !== null && value !== ''
