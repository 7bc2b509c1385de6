/**
 * Which values of a configuration are secrets: those to keep out of logs (T-14), and those that stand in a file as they are, where
 * others may read it (RELIABILITY 7).
 */
import type { GatheredServer } from '../read/gather.ts'
import { child, scalars } from '../syntax/tree.ts'
import type { ScalarTree, Tree } from '../syntax/tree.ts'

/** Names of variables, headers and options whose values are secrets. */
export const SECRET_NAME = /token|secret|passw|credential|authorization|cookie|(api|private|access)[-_]?key/i

/** Below this a value is no secret worth the name, and hiding it would blacken ordinary words. */
const SHORTEST_SECRET = 6

/** The values of one server that must never be shown: its credentials, and what variables brought into its environment. */
export const secretsOf = (server: GatheredServer): readonly string[] => {
  const fromVariables = scalars(child(server.tree, 'env')).filter(({ variables }) => variables === true)
  const values = [...fromVariables, ...pinned(server.tree)].map(({ value }) => String(value ?? ''))
  return [...credentialsOf(server), ...values.filter((value) => value.length >= SHORTEST_SECRET)]
}

/** Those that are secrets by their place or name; a folder or a region that a variable brought is none. */
export const credentialsOf = ({ tree }: GatheredServer): readonly string[] => {
  const namedSo = ['env', 'headers'].flatMap((key) => named(child(tree, key))).flatMap(scalars)
  const bySource = ['args', 'env', 'headers'].flatMap((key) => scalars(child(tree, key))).filter(isFromSecret)
  const values = [...credentials(tree), ...namedSo, ...bySource]
  return [...values.map(({ value }) => String(value ?? '')), ...inUrl(child(tree, 'url')), ...inUrl(child(tree, 'proxy'))].filter(
    (value) => value.length >= SHORTEST_SECRET,
  )
}

/** Names of clients, scopes and issuers are none. */
const credentials = (tree: Tree): readonly ScalarTree[] => {
  const given = child(tree, 'credentials')
  const ways = ['oauth', 'client_credentials', 'exchange'].map((way) => child(given, way))
  const hidden = ways.flatMap((way) => ['client_secret', 'private_key'].map((key) => child(way, key)))
  return [child(given, 'bearer'), child(given, 'headers'), ...hidden].flatMap(scalars)
}
/** Values of pinned arguments that variables brought. */
const pinned = (tree: Tree): readonly ScalarTree[] =>
  childrenOf(child(tree, 'tools'))
    .flatMap((tool) => childrenOf(child(tool, 'args')))
    .flatMap((argument) => scalars(child(argument, 'value')))
    .filter(({ variables }) => variables === true)

const childrenOf = (tree: Tree | undefined): readonly Tree[] => (tree?.kind === 'map' ? [...tree.entries.values()] : [])

/** `${API_KEY}` says of itself what it is; `${PROJECT_DIR}` does too. */
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
    const literal = [...credentials(tree), ...['env', 'headers'].flatMap((key) => named(child(tree, key))).flatMap(scalars)]
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
