/** Which values of a server's entry are secrets: those to keep out of logs (T-14), and those that a readable file contains (RELIABILITY 7). */
import type { GatheredServer } from '../read/gather.ts'
import { child, plainMap, scalars, valuesOf } from '../syntax/tree.ts'
import type { ScalarTree, Tree } from '../syntax/tree.ts'
import { SECRET_NAME, withoutSecrets } from './written-secrets.ts'

/** Shorter values are not treated as secrets: hiding them would hide ordinary words. */
const SHORTEST_SECRET = 6

/** The values of one server that must never be shown: its credentials, values that came from variables, and plain-text secrets. */
export const secretsOf = (server: GatheredServer): readonly string[] => {
  const fromVariables = scalars(child(server.tree, 'env')).filter(({ variables }) => variables === true)
  const values = [...fromVariables, ...pinned(server.tree)].map(({ value }) => String(value ?? '')).concat(writtenIn(server))
  return [...credentialsOf(server), ...values.filter((value) => value.length >= SHORTEST_SECRET)]
}

/** Values that are secrets by their place or name. A folder or a region from a variable is not one. */
export const credentialsOf = ({ tree }: GatheredServer): readonly string[] => {
  const bySource = ['args', 'env', 'headers'].flatMap((key) => scalars(child(tree, key))).filter(isFromSecret)
  const values = [...credentials(tree), ...bySource].map(({ value }) => String(value ?? ''))
  return [...values, ...inUrl(child(tree, 'url')), ...inUrl(child(tree, 'proxy'))].filter(
    (value) => value.length >= SHORTEST_SECRET,
  )
}

/** The section `credentials` without names of clients, scopes and issuers; and variables and headers that are named like secrets. */
const credentials = (tree: Tree): readonly ScalarTree[] => {
  const given = child(tree, 'credentials')
  const grants = ['oauth', 'client_credentials', 'exchange'].map((grant) => child(given, grant))
  const hidden = grants.flatMap((grant) => ['client_secret', 'private_key'].map((key) => child(grant, key)))
  const byName = ['env', 'headers'].flatMap((key) => named(child(tree, key)))
  return [child(given, 'bearer'), child(given, 'headers'), ...hidden, ...byName].flatMap(scalars)
}

/** Values of pinned arguments that came from variables. */
const pinned = (tree: Tree): readonly ScalarTree[] =>
  valuesOf(child(tree, 'tools'))
    .flatMap((tool) => valuesOf(child(tool, 'args')))
    .flatMap((argument) => scalars(child(argument, 'value')))
    .filter(({ variables }) => variables === true)

/** What `import` would move to `.env`. A word such as `created_at` for `SORT_KEY` is not taken for a secret. */
const writtenIn = ({ key, tree }: GatheredServer): readonly string[] => {
  const found: string[] = []
  withoutSecrets(key, plainMap(tree), (name, value) => {
    if (!/^[a-z]+(?:[_-][a-z]+)*$/.test(value) || SECRET_NAME.test(name) || name.endsWith('PWD')) found.push(value)
    return name
  })
  return found
}

/** Whether the variable is named like a secret: `${API_KEY}`, and not `${PROJECT_DIR}`. */
export const isFromSecret = ({ source, variables }: ScalarTree): boolean => variables === true && SECRET_NAME.test(source)

const inUrl = (tree: Tree | undefined): readonly string[] => {
  const url = tree?.kind === 'scalar' ? URL.parse(String(tree.value)) : null
  return url === null ? [] : [url.username, url.password, ...url.searchParams.values()]
}

/** One warning per file, with the paths of at most three of its secrets. */
export const warnOfReadableSecrets = (servers: Iterable<GatheredServer>): readonly string[] => {
  const found = new Map<string, string[]>()
  for (const { tree, readable } of servers) {
    const file = tree.place.replace(/:\d+:\d+$/, '')
    const paths = credentials(tree)
      .filter((scalar) => readable && isLiteral(scalar))
      .map(({ path }) => path)
    if (paths.length > 0) found.set(file, [...(found.get(file) ?? []), ...paths])
  }
  return [...found].map(
    ([file, paths]) =>
      `${file} can be read by others and contains secrets (${paths.slice(0, 3).join(', ')}); chmod 600 it, or use \${VAR}`,
  )
}

const named = (tree: Tree | undefined): readonly Tree[] =>
  tree?.kind === 'map' ? [...tree.entries].filter(([name]) => SECRET_NAME.test(name)).map(([, child]) => child) : []

const isLiteral = ({ value, variables }: ScalarTree) => variables === undefined && value !== null && value !== ''
