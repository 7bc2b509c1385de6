/** Whether the configuration would accept an entry, before it is written. Texts with variables are checked when the configuration is read. */
import { buildServer } from '../config/build/servers/server.ts'
import type { RuntimeEnvironment } from '../config/runtime-environment.ts'
import { formatProblem } from '../config/syntax/problems.ts'
import type { Problem } from '../config/syntax/problems.ts'
import { treeOf } from '../config/syntax/tree.ts'
import type { MapTree, Tree } from '../config/syntax/tree.ts'
import type { FoundFile, ServerDraft } from './found.ts'

/** Reasons why the configuration would refuse the entry. `place`: of the entry, for messages. */
export const problemsOfDraft = (
  draft: ServerDraft,
  key: string,
  place: string,
  folder: string,
  context: RuntimeEnvironment,
): readonly Problem[] => {
  const problems: Problem[] = []
  // Cast: a draft is a mapping.
  const tree = withOpenVariables(treeOf(draft, place, `servers.${key}`)) as MapTree
  const about = { tags: [], enabled: true, readable: false, isHosts: false, isLeftOut: false }
  buildServer({ key, tree, folder, ...about }, {}, context, problems)
  return problems
}

const withOpenVariables = (tree: Tree): Tree => {
  if (tree.kind === 'list') return { ...tree, items: tree.items.map(withOpenVariables) }
  if (tree.kind === 'map')
    return { ...tree, entries: new Map([...tree.entries].map(([key, member]) => [key, withOpenVariables(member)])) }
  return tree.source.includes('${') ? { ...tree, variables: 'unresolved' } : tree
}

/** The file without the servers that the configuration would refuse; each of them becomes a problem. */
export const usableIn = (found: FoundFile, context: RuntimeEnvironment): FoundFile => {
  const problems: string[] = []
  const servers = found.servers.filter(({ name, draft, place, folder }) => {
    const own = problemsOfDraft(draft, name, place, folder ?? context.cwd, context)
    problems.push(...own.map(formatProblem))
    return own.length === 0
  })
  return { ...found, servers, problems: [...found.problems, ...problems] }
}
