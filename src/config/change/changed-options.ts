/** The options of a server that differ between two configurations, under their names in files. */
import { differing } from './difference.ts'
import type { Fingerprints } from './fingerprints.ts'

/** Members whose name in files is not the snake_case form of their own. */
const NAMES: Readonly<Record<string, string>> = {
  headers: 'headers or credentials',
  proxies: 'proxy',
  sharing: 'lifecycle.sharing',
  start: 'lifecycle.start',
  spare: 'lifecycle.spare',
  idleStopMs: 'lifecycle.idle_stop',
  uris: 'resources.rewrite',
  hidden: 'hidden_characters',
  onChange: 'lock.on_change',
  curation: 'filter, tools, resources or prompts',
}

/** Names only, since values may be secrets; in the order of the schema. */
export const changedOptions = (before: Fingerprints, after: Fingerprints): readonly string[] => [
  ...new Set(differing(before, after).map((member) => NAMES[member] ?? snakeCase(member.replace('launch.', '')))),
]

const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
