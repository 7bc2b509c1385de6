/** The difference between two configurations (DECISIONS 2): which servers restart, and what else changes. Pure. */
import { randomBytes } from 'node:crypto'
import type { ServerOptions } from '../../downstream/options.ts'
import { fingerprint, isSame } from './fingerprints.ts'
import type { ConfigurationFingerprints, Fingerprints } from './fingerprints.ts'
import type { Configuration } from '../options.ts'

export interface Difference {
  /** Server keys, each in at most one of the three. Servers in none keep process, links and sessions; prefix and limits may differ. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Their launch or address differs: they restart. */
  readonly changed: readonly string[]
  /** The listener closes and opens again. */
  readonly listeners: boolean
  /** YAML paths that take effect only when the whole process starts again. */
  readonly needsRestart: readonly string[]
  /** Any other option differs. */
  readonly others: boolean
}

const LAUNCHED_WITH = ['launch.command', 'launch.args', 'launch.env', 'launch.cwd']
const REACHED_WITH = [
  'url',
  'transport',
  'era',
  'httpClient',
  'headers',
  'proxies',
  'tls',
  'credential',
  'roots',
  'sharing',
] satisfies (keyof ServerOptions)[]
const STARTED_WITH: ReadonlySet<string> = new Set([...LAUNCHED_WITH, ...REACHED_WITH])

export const diffConfigurations = (before: Configuration, after: Configuration): Difference => {
  const salt = randomBytes(32)
  return diffFingerprints(fingerprint(before, { salt }), fingerprint(after, { salt }))
}

/** The difference between two configurations that were digested with one salt. */
export const diffFingerprints = (before: ConfigurationFingerprints, after: ConfigurationFingerprints): Difference => {
  const old = new Map(before.servers.map(({ key, options }) => [key, options]))
  const keys = after.servers.map(({ key }) => key)
  const kept = after.servers.filter(({ key }) => old.has(key))
  const restarted = kept.filter(({ key, options }) =>
    differing(old.get(key) ?? {}, options).some((name) => STARTED_WITH.has(name)),
  )
  return {
    added: keys.filter((key) => !old.has(key)),
    removed: [...old.keys()].filter((key) => !keys.includes(key)),
    changed: restarted.map(({ key }) => key),
    listeners: !isSame(before.listeners, after.listeners),
    needsRestart: differing(before.kept, after.kept),
    others: !isSame(before.others, after.others),
  }
}

/** Names whose digests differ, in the order of the second. */
export const differing = (before: Fingerprints, after: Fingerprints): string[] =>
  [...new Set([...Object.keys(after), ...Object.keys(before)])].filter((name) => !isSame(before[name], after[name]))

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

/** The options of a server that differ, under their names in files; in the order of the schema. Values may be secrets. */
export const changedOptions = (before: Fingerprints, after: Fingerprints): readonly string[] => [
  ...new Set(differing(before, after).map((member) => NAMES[member] ?? snakeCase(member.replace('launch.', '')))),
]

const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
