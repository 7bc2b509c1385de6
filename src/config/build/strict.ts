/**
 * `strict: true` (RELIABILITY 7): hidden characters, changed definitions and equal names are blocked, where the default is a warning.
 * It changes the defaults; a weaker option anywhere in the files is a problem.
 */
import type { Settings } from '../schema/file-schema.ts'
import type { Gathered } from '../read/gather.ts'
import type { Problem } from '../syntax/problems.ts'
import { child } from '../syntax/tree.ts'
import type { Tree } from '../syntax/tree.ts'

/** Values that allow what `strict` blocks, by path, and those that are allowed. */
const HIDDEN_CHARACTERS = { path: ['hidden_characters'], weak: ['warn'], strong: 'strip or drop' }
const ON_CHANGE = { path: ['lock', 'on_change'], weak: ['allow', 'warn'], strong: 'hold or quarantine' }

/** The settings with the defaults that `lock` and `strict` imply. */
export const withStrict = (settings: Settings): Settings => {
  const { strict, lock, defaults, naming } = settings
  const onChange = defaults?.lock?.on_change ?? lock?.on_change ?? (strict === true ? 'quarantine' : undefined)
  const hidden = defaults?.hidden_characters ?? (strict === true ? 'drop' : undefined)
  return {
    ...settings,
    defaults: {
      ...defaults,
      ...(onChange !== undefined && { lock: { on_change: onChange } }),
      ...(hidden !== undefined && { hidden_characters: hidden }),
    },
    ...(strict === true && { naming: { ...naming, collision: naming?.collision ?? 'error' } }),
  }
}

/** Adds a problem for each value that contradicts `strict`. */
export const checkStrict = ({ settings, sections, servers }: Gathered, problems: Problem[]): void => {
  if (settings.strict !== true) return
  const refuse = (tree: Tree | undefined, weak: readonly string[], strong: string): void => {
    if (tree?.kind !== 'scalar' || !weak.includes(String(tree.value))) return
    const message = `${JSON.stringify(tree.value)} contradicts strict: true`
    problems.push({ place: tree.place, path: tree.path, message, remedy: `write ${strong}, or remove it` })
  }
  refuse(child(sections.get('lock'), 'on_change'), ON_CHANGE.weak, ON_CHANGE.strong)
  refuse(child(sections.get('naming'), 'collision'), ['warn'], 'error')
  const inServers = [...servers.values()].filter(({ enabled }) => enabled).map(({ tree }) => tree)
  for (const tree of [sections.get('defaults'), ...inServers])
    for (const { path, weak, strong } of [HIDDEN_CHARACTERS, ON_CHANGE])
      refuse(path.reduce<Tree | undefined>(child, tree), weak, strong)
}
