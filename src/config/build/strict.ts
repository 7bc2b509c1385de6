/**
 * `strict: true` (RELIABILITY 7): what is only warned of by default is blocked: hidden characters, changed definitions, equal names.
 * It sets the defaults, and a weaker word anywhere in the files contradicts it.
 */
import type { Settings } from '../schema/file-schema.ts'
import type { Gathered } from '../read/gather.ts'
import type { Problem } from '../syntax/problems.ts'
import { child } from '../syntax/tree.ts'
import type { Tree } from '../syntax/tree.ts'

/** Words that let pass what `strict` blocks, by path, and the ones that do not. */
const WEAK = [
  { path: ['hidden_characters'], words: ['warn'], strong: 'strip or drop' },
  { path: ['lock', 'on_change'], words: ['allow', 'warn'], strong: 'hold or quarantine' },
] as const

/** The settings with what `lock` and `strict` say for every server, and what `strict` says of names. */
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

/** Adds a problem for each word that contradicts `strict`. */
export const checkStrict = ({ settings, sections, servers }: Gathered, problems: Problem[]): void => {
  if (settings.strict !== true) return
  const refuse = (tree: Tree | undefined, words: readonly string[], strong: string): void => {
    if (tree?.kind !== 'scalar' || !words.includes(String(tree.value))) return
    const message = `${JSON.stringify(tree.value)} contradicts strict: true`
    problems.push({ place: tree.place, path: tree.path, message, remedy: `write ${strong}, or leave it out` })
  }
  refuse(child(sections.get('lock'), 'on_change'), WEAK[1].words, WEAK[1].strong)
  refuse(child(sections.get('naming'), 'collision'), ['warn'], 'error')
  const inServers = [...servers.values()].filter(({ enabled }) => enabled).map(({ tree }) => tree)
  for (const tree of [sections.get('defaults'), ...inServers])
    for (const { path, words, strong } of WEAK) refuse(path.reduce<Tree | undefined>(child, tree), words, strong)
}
