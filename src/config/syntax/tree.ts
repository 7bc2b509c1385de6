/**
 * A document as a tree in which every node has the place where it was written. Host files are converted as trees, so that an error still
 * points at the line of the original. A child of a mapping has the place of its key.
 */

export type Scalar = string | number | boolean | null

interface Written {
  /** `servers.github.args[1]`, as in the file it was written in. */
  readonly path: string
  /** `trunkline.yaml:31:7` */
  readonly place: string
}
export interface MapTree extends Written {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, Tree>
}
export interface ListTree extends Written {
  readonly kind: 'list'
  readonly items: readonly Tree[]
}
export interface ScalarTree extends Written {
  readonly kind: 'scalar'
  readonly value: Scalar
  /** The text as written, before variables: what is shown in messages, since a value may be a secret. */
  readonly source: string
  /** `true`: variables were replaced; `'unresolved'`: one could not be, which has been reported. */
  readonly variables?: true | 'unresolved'
}
export type Tree = MapTree | ListTree | ScalarTree

/** Plain data for validation. `fromEntries` defines keys, so `__proto__` stays an ordinary one. */
export const plain = (tree: Tree): unknown => {
  if (tree.kind === 'scalar') return tree.value
  if (tree.kind === 'list') return tree.items.map(plain)
  return plainMap(tree)
}

/** A mapping as plain data. */
export const plainMap = (tree: MapTree): Record<string, unknown> =>
  Object.fromEntries([...tree.entries].map(([key, child]) => [key, plain(child)]))

/** Plain data as a tree; every node has the same place, and what JSON cannot express becomes null. */
export const treeOf = (value: unknown, place: string, path = ''): Tree => {
  if (Array.isArray(value))
    return { kind: 'list', items: value.map((item, at) => treeOf(item, place, `${path}[${at}]`)), path, place }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).filter(([, child]) => child !== undefined)
    const entries = members.map(([key, child]) => [key, treeOf(child, place, childPath(path, key))] as const)
    return { kind: 'map', entries: new Map(entries), path, place }
  }
  const scalar = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
  return { kind: 'scalar', value: scalar, source: String(scalar ?? ''), path, place }
}

export const child = (tree: Tree | undefined, key: PropertyKey): Tree | undefined => {
  if (tree?.kind === 'map') return tree.entries.get(String(key))
  if (tree?.kind === 'list') return tree.items[Number(key)]
  return undefined
}

/** The node at `path`, or the nearest one above it that exists. */
export const nearest = (tree: Tree, path: readonly PropertyKey[]): Tree => {
  let node = tree
  for (const key of path) {
    const next = child(node, key)
    if (next === undefined) return node
    node = next
  }
  return node
}

/** The items of a list; none for anything else. */
export const itemsOf = (tree: Tree | undefined): readonly Tree[] => (tree?.kind === 'list' ? tree.items : [])

/** The values of a mapping; none for anything else. */
export const valuesOf = (tree: Tree | undefined): readonly Tree[] => (tree?.kind === 'map' ? [...tree.entries.values()] : [])

/** A mapping in the place of `at`. */
export const mapAt = ({ path, place }: Tree, entries: MapTree['entries']): MapTree => ({ kind: 'map', entries, path, place })

/** A list in the place of `at`. */
export const listAt = ({ path, place }: Tree, items: ListTree['items']): ListTree => ({ kind: 'list', items, path, place })

export const scalars = (tree: Tree | undefined): readonly ScalarTree[] =>
  tree?.kind === 'scalar' ? [tree] : [...itemsOf(tree), ...valuesOf(tree)].flatMap(scalars)

/** The texts of all scalars below `tree`. */
export const scalarTexts = (tree: Tree | undefined): readonly string[] => scalars(tree).map(({ value }) => String(value ?? ''))

/** The text of a scalar that is one. */
export const textOf = (tree: Tree | undefined): string | undefined =>
  tree?.kind === 'scalar' && typeof tree.value === 'string' ? tree.value : undefined

/** The same tree with numbers and booleans as they were typed, so that `1.10` in an environment stays `1.10`. */
export const asTyped = (tree: Tree): Tree => {
  if (tree.kind === 'list') return { ...tree, items: tree.items.map(asTyped) }
  if (tree.kind === 'map') return { ...tree, entries: new Map([...tree.entries].map(([key, child]) => [key, asTyped(child)])) }
  return typeof tree.value === 'number' || typeof tree.value === 'boolean' ? { ...tree, value: tree.source } : tree
}

/** `tree` with the child at `key` replaced by the result of `change`; the same tree where there is no such child. */
export const changeChild = (tree: MapTree, key: string, change: (child: Tree) => Tree): MapTree => {
  const found = tree.entries.get(key)
  return found === undefined ? tree : { ...tree, entries: new Map(tree.entries).set(key, change(found)) }
}

export const childPath = (path: string, key: string): string => {
  const step = /^[\w$-]+$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? step : `${path}.${step}`
}

/** The node in `expected …, got …`: never the value of a variable, nor what usually is a secret (T-14). */
export const describe = (tree: Tree): string => {
  if (tree.kind === 'map') return 'a mapping'
  if (tree.kind === 'list') return 'a list'
  if (tree.variables) return `what ${cut(tree.source)} holds`
  if (tree.value === null) return 'nothing'
  if (SECRET_PATH.test(tree.path)) return typeof tree.value === 'string' ? 'another text' : `a ${typeof tree.value}`
  if (typeof tree.value !== 'string') return cut(tree.source)
  return JSON.stringify(cut(tree.value.replaceAll(LOGIN, '//***@')))
}

const SECRET_PATH = /(^|\.)(credentials|headers|env|introspection)\.|\.(hash|client_secret)$|^state\.key\b/
/** The login in a URL, also one whose password contains `@`, or a `/` that makes the URL invalid. */
const LOGIN = /\/\/([^/\s]*|[^/@\s]*:(?!\d*\/)\S*)@/g

const cut = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text)
