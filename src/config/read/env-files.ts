/** Files of `NAME=value` lines: values of variables (`env_file`), or the environment of one server in a host's file (`envFile`). */
import { readFile, stat } from 'node:fs/promises'
import { parseEnv } from 'node:util'
import { asError } from '../../values/as-error.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import { reporterAt } from '../syntax/problems.ts'
import type { Problem } from '../syntax/problems.ts'
import { isWritableByAll } from './source.ts'
import { childPath, plain } from '../syntax/tree.ts'
import type { MapTree, ScalarTree, Tree } from '../syntax/tree.ts'
import { absolutePath, expandTree } from '../syntax/variables.ts'
import type { Scope } from '../syntax/variables.ts'

type Values = Readonly<Record<string, string | undefined>>

const REMEDIES: Readonly<Record<string, string>> = { ENOENT: 'create it, or remove it here', EISDIR: 'name a file' }

/** All values; later files win. `node` names the files; problems are reported there. */
export const readEnvFiles = async (paths: readonly string[], scope: Scope, node: Tree, problems: Problem[]): Promise<Values> => {
  const values: Record<string, string | undefined> = {}
  for (const [index, path] of paths.entries()) {
    const file = absolutePath(path, scope.folder, scope.home)
    const refuse = (message: string, remedy: string) => reporterAt(node, problems)([index], `env_file ${path} ${message}`, remedy)
    scope.files.add(file)
    try {
      if (isWritableByAll(await stat(file))) refuse('can be written by every user', 'chmod o-w it')
      const text = decodeUtf8(await readFile(file))
      if (text === undefined) refuse('is not UTF-8', 'save it as UTF-8')
      else Object.assign(values, parseEnv(text))
    } catch (error) {
      const { code } = asError(error)
      refuse(`cannot be read (${code})`, REMEDIES[code ?? ''] ?? 'check its permissions')
    }
  }
  return values
}

/** A server of a host's file with the values of its `envFile` in its environment, where its own values win, and without that member. */
export const withEnvFile = async (entry: MapTree, scope: Scope, problems: Problem[]): Promise<MapTree> => {
  const { env_file: named, ...rest } = Object.fromEntries(entry.entries)
  if (named === undefined) return entry
  const path = String(plain(await expandTree(named, scope, problems)))
  const values = await readEnvFiles([path], scope, named, problems)
  const literal = ([name, value]: [string, string | undefined]): [string, ScalarTree] => [
    name,
    { kind: 'scalar', value: value ?? '', source: path, path: childPath(named.path, name), place: named.place, variables: true },
  ]
  const own = rest['env']?.kind === 'map' ? rest['env'].entries : []
  const env: MapTree = { ...entry, entries: new Map<string, Tree>([...Object.entries(values).map(literal), ...own]) }
  return { ...entry, entries: new Map(Object.entries({ ...rest, env })) }
}
